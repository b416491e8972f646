//! Carries out a rank's part of a program, and checks what it receives.

use std::collections::HashMap;
use std::process::Command;
use std::time::{Duration, Instant};

use mpj::{
    ANY_SOURCE, ANY_TAG, Communicator, Error, Number, Op, Request, Source, Status, collective,
    wait_all, wait_any,
};
use rayon::ThreadPool;

use super::{Action, Collective, Program, TAGS, Taking, Together, Waiting};

/// The communicators of one thread's programs.
pub struct Stage {
    /// For all messages but those received by any tag.
    pub world: Communicator,
    /// For those.
    pub quiet: Communicator,
}

/// What a rank has under way.
struct Player<'a> {
    stage: &'a Stage,
    /// First tag of this program.
    base: i32,
    open: HashMap<usize, Open>,
    /// Requests of a mistake, whose elements are of another type.
    strange: HashMap<usize, Request<f64>>,
}

/// A request, and the message that it must bring if it is a receive.
struct Open {
    request: Request<u64>,
    expected: Option<(i32, usize)>,
}

impl Stage {
    /// Carries out this rank's part. Programs that follow one another have different numbers, so that
    /// their messages do not mix.
    ///
    /// # Errors
    /// Those of the calls.
    ///
    /// # Panics
    /// When a message is not what the program says.
    pub fn play(&self, program: &Program, number: usize) -> Result<(), Error> {
        let base = (number % (1 << 20) * TAGS) as i32;
        let mut player = Player::new(self, base);
        program.of_rank(self.world.rank()).try_for_each(|action| player.act(action))
    }

    /// The same, in which most calls are made by threads of `pool` while this one waits for them, some after a nap or a
    /// computation. One rank of every fiftieth program keeps the others waiting.
    ///
    /// # Errors
    /// As [`Stage::play`].
    ///
    /// # Panics
    /// As [`Stage::play`].
    pub fn play_beside(
        &self,
        program: &Program,
        number: usize,
        pool: &ThreadPool,
    ) -> Result<(), Error> {
        let base = (number % (1 << 20) * TAGS) as i32;
        let mut player = Player::new(self, base);
        let time = Duration::from_micros(200);
        let turn = number / LINGERS_EVERY;
        if number % LINGERS_EVERY == 0 && turn % self.world.size() == self.world.rank() {
            pool.install(|| self.linger(turn))?;
        }
        program.of_rank(self.world.rank()).enumerate().try_for_each(|(at, action)| {
            match (number + at) % 5 {
                0 => return player.act(action),
                1 => pool.install(|| std::thread::sleep(time)),
                2 => drop(pool.install(|| rayon::join(|| compute(time), || compute(time)))),
                _ => {}
            }
            pool.install(|| player.act(action))
        })
    }

    /// A thread waits in a call for another one of this rank.
    fn linger(&self, turn: usize) -> Result<(), Error> {
        let (world, own) = (&self.world, self.world.rank());
        let sends = || {
            pass_time(turn);
            world.send(&[7u8], own, TO_ITSELF)
        };
        let (received, sent) = rayon::join(|| world.recv(&mut [0u8], own, TO_ITSELF), sends);
        received.and(sent)
    }
}

/// Where the number of a program is a multiple of this, a rank lingers.
const LINGERS_EVERY: usize = 50;
/// Longer than a launcher that looks all the time takes to find a deadlock.
const LONG: Duration = Duration::from_millis(400);

/// A tag that no program has.
const TO_ITSELF: i32 = i32::MAX;

/// Is outside of all calls for a long time, in turns of four ways.
fn pass_time(turn: usize) {
    match turn % 4 {
        0 => std::thread::sleep(LONG),
        1 => std::thread::park_timeout(LONG),
        2 => compute(LONG),
        _ => {
            let mut child = Command::new("sleep");
            let status = child.arg(LONG.as_secs_f64().to_string()).status();
            assert!(status.is_ok_and(|status| status.success()));
        }
    }
}

impl<'a> Player<'a> {
    fn new(stage: &'a Stage, base: i32) -> Self {
        Self { stage, base, open: HashMap::new(), strange: HashMap::new() }
    }

    fn act(&mut self, action: &Action) -> Result<(), Error> {
        let Stage { world, quiet } = self.stage;
        match *action {
            Action::Send { to, tag, bytes, sync: false } => {
                world.send(&data(tag, bytes), to, self.base + tag)
            }
            Action::Send { to, tag, bytes, sync: true } => {
                world.ssend(&data(tag, bytes), to, self.base + tag)
            }
            Action::Start { slot, to, tag, bytes, sync } => {
                let (data, on_wire) = (data(tag, bytes), self.base + tag);
                let request = match sync {
                    true => world.issend(data, to, on_wire)?,
                    false => world.isend(data, to, on_wire)?,
                };
                self.open.insert(slot, Open { request, expected: None });
                Ok(())
            }
            Action::Post { slot, from, tag, bytes } => {
                let request = world.irecv(vec![0; bytes / 8], source(from), self.base + tag)?;
                self.open.insert(slot, Open { request, expected: Some((tag, bytes)) });
                Ok(())
            }
            Action::Recv { from, tag, bytes, taking } => {
                self.recv(source(from), tag, bytes, taking)
            }
            Action::QuietSend { to, tag, bytes } => {
                quiet.send(&data(tag, bytes), to, self.base + tag)
            }
            Action::QuietRecv { from, tag, bytes } => {
                let (data, status) = quiet.recv_vec(from, ANY_TAG)?;
                check(self.base, (tag, bytes), &data, status);
                Ok(())
            }
            Action::Wait { ref slots, waiting } => self.wait(slots, waiting),
            Action::Exchange { to, from, tag, bytes } => {
                let (sent, on_wire) = (data(tag, bytes), self.base + tag);
                let mut room = vec![0; bytes / 8];
                let status = world.sendrecv(&sent, to, on_wire, &mut room, from, on_wire)?;
                check(self.base, (tag, bytes), &room, status);
                Ok(())
            }
            Action::Together(together) if together.floats => self.together::<f64>(together),
            Action::Together(together) => self.together::<i64>(together),
            Action::Strangely(ref action) => self.act_strangely(action),
            Action::Drop { from, tag, bytes } => {
                world.irecv(vec![0_u64; bytes / 8], source(from), self.base + tag).map(drop)
            }
            Action::Pause(micros) => {
                std::thread::sleep(Duration::from_micros(micros));
                Ok(())
            }
            Action::Compute(micros) => {
                compute(Duration::from_micros(micros));
                Ok(())
            }
        }
    }

    /// Makes a collective call, with ones as elements.
    fn together<T: Number + From<u8> + PartialEq>(&self, with: Together) -> Result<(), Error> {
        let Stage { world, .. } = self.stage;
        let Together { call, root, multiplies, elements, starts, .. } = with;
        let (ranks, rank) = (world.size(), world.rank());
        let op = if multiplies { Op::Product } else { Op::Sum };
        let mut ones = vec![T::from(1); elements];
        let mut results = match call {
            Collective::AllGather => vec![T::from(0); elements * ranks],
            _ => vec![T::from(0); elements],
        };
        match (call, starts) {
            (Collective::Barrier, false) => world.barrier()?,
            (Collective::Barrier, true) => drop(world.start(collective::barrier())?.wait()?),
            (Collective::Broadcast, false) => world.broadcast(&mut ones, root)?,
            (Collective::Broadcast, true) => {
                ones = world.start(collective::broadcast(ones, root))?.wait()?.0;
            }
            (Collective::Reduce, false) => world.reduce(&ones, &mut results, op, root)?,
            (Collective::Reduce, true) => {
                let call = collective::reduce(ones.clone(), results, op, root);
                results = world.start(call)?.wait()?.0;
            }
            (Collective::AllReduce, false) => world.all_reduce_into(&ones, &mut results, op)?,
            (Collective::AllReduce, true) => {
                results = world.start(collective::all_reduce(ones.clone(), op))?.wait()?.0;
            }
            (Collective::AllGather, false) => world.all_gather(&ones, &mut results)?,
            (Collective::AllGather, true) => {
                let call = collective::all_gather(ones.clone(), results);
                results = world.start(call)?.wait()?.0;
            }
            (Collective::Scan, false) => {
                results.clone_from(&ones);
                world.scan(&mut results, op)?;
            }
            (Collective::Scan, true) => {
                results = world.start(collective::scan(ones.clone(), op))?.wait()?.0;
            }
        }
        let expected = match call {
            Collective::Reduce if rank != root => return Ok(()),
            Collective::Scan if !multiplies => rank + 1,
            Collective::Reduce | Collective::AllReduce if !multiplies => ranks,
            _ => 1,
        };
        let expected = T::from(expected as u8);
        let results = match call {
            Collective::Barrier | Collective::Broadcast => ones,
            _ => results,
        };
        assert!(results.iter().all(|result| *result == expected), "{with:?}");
        Ok(())
    }

    /// Makes the call with numbers of another type.
    fn act_strangely(&mut self, action: &Action) -> Result<(), Error> {
        let Stage { world, quiet } = self.stage;
        let numbers = |bytes| vec![0.5; bytes / 8];
        match *action {
            Action::Send { to, tag, bytes, .. } => world.send(&numbers(bytes), to, self.base + tag),
            Action::QuietSend { to, tag, bytes } => {
                quiet.send(&numbers(bytes), to, self.base + tag)
            }
            Action::Start { slot, to, tag, bytes, .. } => {
                let request = world.isend(numbers(bytes), to, self.base + tag)?;
                self.strange.insert(slot, request);
                Ok(())
            }
            Action::Post { slot, from, tag, bytes } => {
                let request = world.irecv(numbers(bytes), source(from), self.base + tag)?;
                self.strange.insert(slot, request);
                Ok(())
            }
            Action::Recv { from, tag, taking: Taking::Vector, .. } => {
                world.recv_vec::<f64>(source(from), self.base + tag).map(drop)
            }
            Action::Recv { from, tag, bytes, .. } => {
                world.recv(&mut numbers(bytes), source(from), self.base + tag).map(drop)
            }
            Action::QuietRecv { from, .. } => quiet.recv_vec::<f64>(from, ANY_TAG).map(drop),
            _ => unreachable!("no such mistake is planted"),
        }
    }

    fn recv(&self, from: Source, tag: i32, bytes: usize, taking: Taking) -> Result<(), Error> {
        let (world, on_wire) = (&self.stage.world, self.base + tag);
        match taking {
            Taking::Vector => {
                let (data, status) = world.recv_vec(from, on_wire)?;
                check(self.base, (tag, bytes), &data, status);
                return Ok(());
            }
            Taking::Plain => {}
            Taking::Probe => assert_eq!(world.probe(from, on_wire)?.bytes, bytes),
            Taking::Poll => while world.iprobe(from, on_wire)?.is_none() {},
        }
        let mut room = vec![0; bytes / 8];
        let status = world.recv(&mut room, from, on_wire)?;
        check(self.base, (tag, bytes), &room, status);
        Ok(())
    }

    fn wait(&mut self, slots: &[usize], waiting: Waiting) -> Result<(), Error> {
        for request in slots.iter().filter_map(|slot| self.strange.remove(slot)) {
            request.wait()?;
        }
        let open = slots.iter().filter_map(|slot| self.open.remove(slot));
        let (mut requests, mut expected): (Vec<_>, Vec<_>) =
            open.map(|Open { request, expected }| (request, expected)).unzip();
        let base = self.base;
        let compare = |expected: Option<(i32, usize)>, data: &[u64], status| {
            expected.into_iter().for_each(|message| check(base, message, data, status));
        };
        match waiting {
            Waiting::Each => {
                for (request, expected) in requests.into_iter().zip(expected) {
                    let (data, status) = request.wait()?;
                    compare(expected, &data, status);
                }
            }
            Waiting::All => {
                wait_all(&mut requests)?;
                for (request, expected) in requests.into_iter().zip(expected) {
                    let (data, status) = request.wait()?;
                    compare(expected, &data, status);
                }
            }
            Waiting::Any => {
                while let Some(place) = wait_any(&mut requests)? {
                    let (data, status) = requests.remove(place).wait()?;
                    compare(expected.remove(place), &data, status);
                }
            }
            Waiting::Test => {
                for (mut request, expected) in requests.into_iter().zip(expected) {
                    let (data, status) = loop {
                        if let Some(done) = request.test()? {
                            break done;
                        }
                    };
                    compare(expected, &data, status);
                }
            }
        }
        Ok(())
    }
}

fn source(from: Option<usize>) -> Source {
    from.map_or(ANY_SOURCE, Source::Rank)
}

fn data(tag: i32, bytes: usize) -> Vec<u64> {
    vec![tag as u64; bytes / 8]
}

fn check(base: i32, (tag, bytes): (i32, usize), data: &[u64], status: Status) {
    assert_eq!((status.tag, status.bytes), (base + tag, bytes));
    assert!(data.iter().all(|word| *word == tag as u64), "the data of message {tag} are others");
}

/// Keeps a processor busy.
fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}
