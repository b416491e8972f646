//! Every interleaving of a small job and the two looks of its launcher (WD1 to WD3).
//!
//! A rank is the steps that a real one takes around its sleep, each of them atomic: send a frame; ring the
//! receiver's bell if it has announced itself; announce and take a ticket; look for frames; publish; sleep
//! until the bell has rung since the ticket; withdraw. The launcher reads one word after another. Whenever
//! it concludes that there is a deadlock, no rank may be able to take any step.

use std::collections::HashSet;

const RANKS: usize = 3;

/// What a rank's program does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Op {
    Send(usize),
    Recv(usize),
}

use Op::{Recv, Send};

/// Where a rank stands in the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    Start,
    /// Sent, and still has to ring.
    Sent,
    /// Announced, and has to look.
    Announced,
    /// Looked in vain, and has to publish.
    Looked,
    Asleep,
    Woken,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Rank {
    next: usize,
    at: At,
    ticket: u8,
    announced: bool,
    epoch: u8,
    published: bool,
    rung: u8,
    /// Frames in the ring from each rank, and those taken in early.
    frames: [u8; RANKS],
    early: [u8; RANKS],
}

/// What the launcher has read: per look and rank, epoch and ticket if it sleeps, and the bell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Launcher {
    slates: Vec<Option<(u8, u8)>>,
    bells: Vec<u8>,
    /// Which ranks had ended before each look (WD6).
    ended: Vec<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Job {
    ranks: Vec<Rank>,
    launcher: Launcher,
}

/// Which part of the protocol is left out, to see that the model notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    Bells,
    SecondLook,
    LookAfterAnnouncing,
}

type Programs = [&'static [Op]; RANKS];

fn start() -> Job {
    let rank = Rank {
        next: 0,
        at: At::Start,
        ticket: 0,
        announced: false,
        epoch: 0,
        published: false,
        rung: 0,
        frames: [0; RANKS],
        early: [0; RANKS],
    };
    Job { ranks: vec![rank; RANKS], launcher: Launcher::default() }
}

impl Job {
    /// The job after `me`'s next step, if there is one.
    fn step(&self, programs: &Programs, me: usize, without: Without) -> Option<Job> {
        let mut job = self.clone();
        let op = *programs[me].get(self.ranks[me].next)?;
        match op {
            Send(to) => job.send(me, to),
            Recv(from) => job.receive(me, from, without)?,
        }
        Some(job)
    }

    fn send(&mut self, me: usize, to: usize) {
        if self.ranks[me].at == At::Start {
            self.ranks[to].frames[me] += 1;
            self.ranks[me].at = At::Sent;
        } else {
            self.ranks[to].rung += u8::from(self.ranks[to].announced);
            self.ranks[me].at = At::Start;
            self.ranks[me].next += 1;
        }
    }

    fn receive(&mut self, me: usize, from: usize, without: Without) -> Option<()> {
        let rank = &mut self.ranks[me];
        rank.at = match rank.at {
            At::Start if rank.early[from] > 0 => {
                rank.early[from] -= 1;
                rank.next += 1;
                At::Start
            }
            At::Start => {
                (rank.announced, rank.ticket) = (true, rank.rung);
                At::Announced
            }
            At::Announced if without == Without::LookAfterAnnouncing => At::Looked,
            At::Announced => {
                let any = rank.take_in();
                rank.announced = !any;
                if any { At::Start } else { At::Looked }
            }
            At::Looked => {
                (rank.published, rank.epoch) = (true, rank.epoch + 1);
                At::Asleep
            }
            At::Asleep if rank.rung == rank.ticket => return None,
            At::Asleep => At::Woken,
            At::Woken => {
                (rank.published, rank.epoch) = (false, rank.epoch + 1);
                (rank.announced, _) = (false, rank.take_in());
                At::Start
            }
            At::Sent => unreachable!("a rank that receives has not sent"),
        };
        Some(())
    }

    /// The launcher reads the next word, or answers whether it sees a deadlock.
    fn read(&self, programs: &Programs, without: Without) -> Result<Job, bool> {
        let mut job = self.clone();
        let Launcher { slates, bells, ended } = &mut job.launcher;
        let rank = bells.len() % RANKS;
        if slates.len() == 2 * RANKS && bells.len() == 2 * RANKS {
            return Err(self.concludes(without));
        }
        if slates.len() == bells.len() && ended.len() == bells.len() {
            ended.extend((0..RANKS).map(|rank| self.has_ended(programs, rank)));
        } else if slates.len() == bells.len() {
            let Rank { published, epoch, ticket, .. } = self.ranks[rank];
            slates.push(published.then_some((epoch, ticket)));
        } else {
            bells.push(self.ranks[(slates.len() - 1) % RANKS].rung);
        }
        Ok(job)
    }

    fn has_ended(&self, programs: &Programs, rank: usize) -> bool {
        self.ranks[rank].next == programs[rank].len()
    }

    fn concludes(&self, without: Without) -> bool {
        let Launcher { slates, bells, ended } = &self.launcher;
        let place = |look: usize, rank: usize| look * RANKS + rank;
        let asleep = |look: usize, rank: usize| {
            let slate = slates[place(look, rank)]?;
            let undisturbed = without == Without::Bells || slate.1 == bells[place(look, rank)];
            undisturbed.then_some(slate)
        };
        let gone = |look: usize, rank: usize| ended[place(look, rank)];
        let all_asleep =
            |look| (0..RANKS).all(|rank| gone(look, rank) || asleep(look, rank).is_some());
        if without == Without::SecondLook {
            return ended[..RANKS].contains(&false) && all_asleep(0);
        }
        let mut running = (0..RANKS).filter(|&rank| !ended[RANKS + rank]).peekable();
        running.peek().is_some()
            && all_asleep(0)
            && all_asleep(1)
            && running.all(|rank| asleep(0, rank) == asleep(1, rank))
    }
}

impl Rank {
    /// Takes in all frames that have come, and answers whether there were any.
    fn take_in(&mut self) -> bool {
        let any = self.frames.iter().any(|frames| *frames > 0);
        for (early, frames) in self.early.iter_mut().zip(&mut self.frames) {
            *early += std::mem::take(frames);
        }
        any
    }
}

/// Whether a deadlock is ever seen, and whether ever wrongly.
fn explore(programs: Programs, without: Without) -> (bool, bool) {
    let (mut seen, mut wrong) = (false, false);
    let mut known = HashSet::from([start()]);
    let mut open = vec![start()];
    while let Some(job) = open.pop() {
        let steps: Vec<Job> =
            (0..RANKS).filter_map(|me| job.step(&programs, me, without)).collect();
        let read = match job.read(&programs, without) {
            Ok(read) => Some(read),
            Err(concluded) => {
                seen |= concluded;
                wrong |= concluded && !steps.is_empty();
                None
            }
        };
        open.extend(steps.into_iter().chain(read).filter(|job| known.insert(job.clone())));
    }
    (seen, wrong)
}

const CORRECT: [Programs; 4] = [
    [&[Send(1), Recv(1)], &[Recv(0), Send(0)], &[]],
    [&[Send(1), Recv(2)], &[Recv(0), Send(2)], &[Recv(1), Send(0)]],
    [&[Recv(1), Recv(2)], &[Send(0)], &[Send(0)]],
    [&[Recv(2), Send(1)], &[Recv(0), Recv(2)], &[Send(1), Send(0)]],
];

const STUCK: [Programs; 3] = [
    [&[Recv(1)], &[Recv(0)], &[]],
    [&[Recv(1), Send(1)], &[Recv(2), Send(2)], &[Recv(0), Send(0)]],
    [&[Send(1), Recv(1)], &[Recv(0)], &[Send(0), Recv(1)]],
];

#[test]
fn correct_programs_are_never_reported() {
    for programs in CORRECT {
        assert_eq!(explore(programs, Without::Nothing), (false, false), "{programs:?}");
    }
}

#[test]
fn deadlocks_are_seen_and_only_when_nothing_can_move() {
    for programs in STUCK {
        assert_eq!(explore(programs, Without::Nothing), (true, false), "{programs:?}");
    }
}

/// The model can tell a protocol that is wrong.
#[test]
fn each_part_of_the_protocol_is_needed() {
    for without in [Without::Bells, Without::SecondLook] {
        let mut all = CORRECT.into_iter().chain(STUCK);
        assert!(all.any(|programs| explore(programs, without).1), "{without:?}");
    }
    let mut all = CORRECT.into_iter();
    let lost = |programs| explore(programs, Without::LookAfterAnnouncing).0;
    assert!(all.any(lost), "a lost wake-up stops a correct program");
}
