//! Every interleaving of a small job and the looks of its launcher (WD1 to WD3, WD6).
//!
//! A rank is the steps that a real one takes around its sleep, each of them atomic: send a frame; ring the
//! receiver's bell, or not, since a ring may be lost; look for frames; publish; look again, which finds
//! frames or is counted; wake up by the bell; withdraw. The launcher reads one slate after another, three
//! times. Whenever it concludes that there is a deadlock, no rank may ever get further.

use std::collections::HashSet;

const RANKS: usize = 3;
/// More looks than these are not told apart.
const MOST_LOOKS: u8 = 2;
/// Looks of the launcher.
const ROUNDS: usize = 3;

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
    /// Looked in vain, and has to publish.
    Looked,
    Asleep,
    /// Found frames or was woken, and has to withdraw.
    Awake,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Rank {
    next: usize,
    at: At,
    epoch: u8,
    looks: u8,
    rung: bool,
    /// Frames in the ring from each rank, and those taken in early.
    frames: [u8; RANKS],
    early: [u8; RANKS],
}

/// What the launcher has read: per look and rank, epoch and looks if it is asleep; and which ranks had
/// ended before each look (WD6).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Launcher {
    slates: Vec<Option<(u8, u8)>>,
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
    /// The looks of the threads are not asked for.
    Looks,
    /// Ranks may end between the looks.
    Ends,
    /// Ranks count as ended that ended during a look.
    Order,
}

type Programs = [&'static [Op]; RANKS];

fn start() -> Job {
    let rank = Rank {
        next: 0,
        at: At::Start,
        epoch: 0,
        looks: 0,
        rung: false,
        frames: [0; RANKS],
        early: [0; RANKS],
    };
    Job { ranks: vec![rank; RANKS], launcher: Launcher::default() }
}

impl Job {
    /// The job after each step that `me` may take next.
    fn steps(&self, programs: &Programs, me: usize) -> Vec<Job> {
        match programs[me].get(self.ranks[me].next) {
            None => Vec::new(),
            Some(&Send(to)) => self.send(me, to),
            Some(&Recv(from)) => self.ranks[me]
                .receive(from)
                .into_iter()
                .map(|rank| {
                    let mut job = self.clone();
                    job.ranks[me] = rank;
                    job
                })
                .collect(),
        }
    }

    fn send(&self, me: usize, to: usize) -> Vec<Job> {
        let mut job = self.clone();
        if self.ranks[me].at == At::Start {
            job.ranks[to].frames[me] += 1;
            job.ranks[me].at = At::Sent;
            return vec![job];
        }
        job.ranks[me].at = At::Start;
        job.ranks[me].next += 1;
        let lost = job.clone();
        job.ranks[to].rung = true;
        vec![job, lost]
    }

    /// The launcher reads the next slate, or answers whether it sees a deadlock.
    fn read(&self, programs: &Programs, without: Without) -> Result<Job, bool> {
        let mut job = self.clone();
        let Launcher { slates, ended } = &mut job.launcher;
        if slates.len() == ROUNDS * RANKS {
            return Err(self.concludes(programs, without));
        }
        if ended.len() == slates.len() {
            ended.extend((0..RANKS).map(|rank| self.has_ended(programs, rank)));
        } else {
            let Rank { at, epoch, looks, .. } = self.ranks[slates.len() % RANKS];
            let is_published = matches!(at, At::Asleep | At::Awake);
            slates.push(is_published.then_some((epoch, looks)));
        }
        Ok(job)
    }

    fn has_ended(&self, programs: &Programs, rank: usize) -> bool {
        self.ranks[rank].next == programs[rank].len()
    }

    fn concludes(&self, programs: &Programs, without: Without) -> bool {
        let Launcher { slates, ended } = &self.launcher;
        let gone = |round: usize, rank: usize| match without {
            Without::Order => self.has_ended(programs, rank),
            _ => ended[round * RANKS + rank],
        };
        let asleep = |round: usize, rank: usize| slates[round * RANKS + rank];
        let all_asleep = |round: usize| {
            (0..RANKS).all(|rank| gone(round, rank) || asleep(round, rank).is_some())
        };
        let mut left = (0..RANKS).filter(|&rank| !gone(ROUNDS - 1, rank)).peekable();
        let same_left =
            (0..RANKS).all(|rank| (1..ROUNDS).all(|round| gone(round, rank) == gone(0, rank)));
        left.peek().is_some()
            && (same_left || without == Without::Ends)
            && (0..ROUNDS).all(all_asleep)
            && left.all(|rank| {
                let looks: Option<Vec<_>> = (0..ROUNDS).map(|round| asleep(round, rank)).collect();
                let Some([first, then, last]) = looks.as_deref() else { return false };
                let same = first.0 == then.0 && then.0 == last.0;
                same && (last.1 >= then.1 + 2 || without == Without::Looks)
            })
    }
}

impl Rank {
    /// The rank after each step that it may take in a receive.
    fn receive(&self, from: usize) -> Vec<Rank> {
        let mut rank = self.clone();
        match self.at {
            At::Start if rank.early[from] > 0 => {
                rank.early[from] -= 1;
                rank.next += 1;
            }
            // It announces itself before it looks, so later rings are its own.
            At::Start => {
                rank.rung = false;
                rank.at = if rank.take_in() { At::Start } else { At::Looked };
            }
            At::Looked => (rank.at, rank.epoch, rank.looks) = (At::Asleep, rank.epoch + 1, 0),
            At::Asleep => {
                let mut steps = Vec::new();
                if self.rung {
                    steps.push(Rank { at: At::Awake, ..self.clone() });
                }
                if rank.take_in() {
                    rank.at = At::Awake;
                } else {
                    rank.looks = (rank.looks + 1).min(MOST_LOOKS);
                }
                steps.push(rank);
                return steps;
            }
            At::Awake => (rank.at, rank.epoch) = (At::Start, rank.epoch + 1),
            At::Sent => unreachable!("a rank that receives has not sent"),
        }
        vec![rank]
    }

    /// Takes in all frames that have come, and answers whether there were any.
    fn take_in(&mut self) -> bool {
        let any = self.frames.iter().any(|frames| *frames > 0);
        for (early, frames) in self.early.iter_mut().zip(&mut self.frames) {
            *early += std::mem::take(frames);
        }
        any
    }

    /// Whether nothing but others can get it further: it receives, and what it wants is not there.
    fn is_stuck(&self, program: &[Op]) -> bool {
        match program.get(self.next) {
            None => true,
            Some(&Recv(from)) => self.early[from] == 0 && self.frames == [0; RANKS],
            Some(Send(_)) => false,
        }
    }
}

/// Whether a deadlock is ever seen, and whether ever wrongly.
fn explore(programs: Programs, without: Without) -> (bool, bool) {
    let (mut seen, mut wrong) = (false, false);
    let mut known = HashSet::from([start()]);
    let mut open = vec![start()];
    while let Some(job) = open.pop() {
        match job.read(&programs, without) {
            Ok(read) => open.extend(Some(read).filter(|job| known.insert(job.clone()))),
            Err(concluded) => {
                let mut ranks = job.ranks.iter().zip(programs);
                let all_stuck = ranks.all(|(rank, program)| rank.is_stuck(program));
                seen |= concluded;
                wrong |= concluded && !all_stuck;
            }
        }
        let steps = (0..RANKS).flat_map(|me| job.steps(&programs, me));
        open.extend(steps.filter(|job| known.insert(job.clone())));
    }
    (seen, wrong)
}

const CORRECT: [Programs; 3] = [
    [&[Send(1), Recv(1)], &[Recv(0), Send(0)], &[]],
    [&[Recv(1), Recv(2)], &[Send(0)], &[Send(0)]],
    [&[Recv(2), Send(1)], &[Recv(0)], &[Send(0)]],
];

const STUCK: [Programs; 2] =
    [[&[Recv(1)], &[Recv(0)], &[]], [&[Send(1), Recv(1)], &[Recv(0), Recv(2)], &[Recv(1)]]];

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
    for without in [Without::Looks, Without::Ends, Without::Order] {
        let mut all = CORRECT.into_iter().chain(STUCK);
        assert!(all.any(|programs| explore(programs, without).1), "{without:?}");
    }
}
