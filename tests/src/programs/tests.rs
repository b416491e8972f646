//! Programs are what they are said to be: seen by a scheduler without any transport.

use std::collections::HashMap;

use super::*;

/// One end of a message: its tag and target, which of them it is, and how many were begun there
/// before.
#[derive(Clone, Copy)]
struct End {
    message: (i32, usize),
    sends: bool,
    number: usize,
}

/// Carries a program out in the worst case, where no send returns before its receive has begun.
struct Worst<'p> {
    rest: Vec<Vec<&'p Action>>,
    /// Sends and receives begun, by tag and target.
    sent: HashMap<(i32, usize), usize>,
    taken: HashMap<(i32, usize), usize>,
    /// What goes on.
    slots: HashMap<usize, End>,
    /// What each rank is in.
    waits: Vec<Option<Vec<End>>>,
    barriers: Vec<usize>,
}

/// Whether every rank comes to the end.
fn ends(program: &Program, ranks: usize) -> bool {
    let rest: Vec<Vec<_>> = (0..ranks).map(|rank| program.of_rank(rank).collect()).collect();
    let (barriers, waits) = (vec![0; ranks], vec![None; ranks]);
    let [sent, taken] = [HashMap::new(), HashMap::new()];
    let mut worst = Worst { rest, sent, taken, slots: HashMap::new(), waits, barriers };
    let mut next = vec![0; ranks];
    loop {
        let mut moved = false;
        for (rank, next) in next.iter_mut().enumerate() {
            let returned = worst.step(rank, *next);
            *next += usize::from(returned);
            moved |= returned;
        }
        if !moved {
            return (0..ranks).all(|rank| next[rank] == worst.rest[rank].len());
        }
    }
}

impl Worst<'_> {
    /// Begins the call at this place unless it was begun, and says whether it returns.
    fn step(&mut self, rank: usize, place: usize) -> bool {
        let Some(&action) = self.rest[rank].get(place) else { return false };
        let ends = match self.waits[rank].take() {
            Some(ends) => ends,
            None => self.begin(rank, action),
        };
        let mine = self.barriers[rank];
        let met = !matches!(action, Action::Together(_))
            || self.barriers.iter().all(|other| *other >= mine);
        let returns = met && ends.iter().all(|end| self.is_met(end));
        self.waits[rank] = (!returns).then_some(ends);
        returns
    }

    /// What the call waits for.
    fn begin(&mut self, rank: usize, action: &Action) -> Vec<End> {
        match *action {
            Action::Send { to, tag, .. } | Action::QuietSend { to, tag, .. } => {
                vec![self.end((tag, to), true)]
            }
            Action::Recv { tag, .. } | Action::QuietRecv { tag, .. } => {
                vec![self.end((tag, rank), false)]
            }
            Action::Exchange { to, tag, .. } => {
                vec![self.end((tag, to), true), self.end((tag, rank), false)]
            }
            Action::Start { slot, to, tag, .. } => {
                let end = self.end((tag, to), true);
                self.slots.insert(slot, end);
                Vec::new()
            }
            Action::Post { slot, tag, .. } => {
                let end = self.end((tag, rank), false);
                self.slots.insert(slot, end);
                Vec::new()
            }
            Action::Wait { ref slots, .. } => slots.iter().map(|slot| self.slots[slot]).collect(),
            Action::Together(_) => {
                self.barriers[rank] += 1;
                Vec::new()
            }
            Action::Pause(_) | Action::Compute(_) => Vec::new(),
            Action::Strangely(_) | Action::Drop { .. } => unreachable!("only mistakes"),
        }
    }

    fn end(&mut self, message: (i32, usize), sends: bool) -> End {
        let begun = if sends { &mut self.sent } else { &mut self.taken };
        let number = begun.entry(message).or_default();
        *number += 1;
        End { message, sends, number: *number }
    }

    /// Whether the other end has begun too.
    fn is_met(&self, end: &End) -> bool {
        let others = if end.sends { &self.taken } else { &self.sent };
        others.get(&end.message).is_some_and(|begun| *begun >= end.number)
    }
}

#[test]
fn correct_programs_end_and_spoilt_ones_do_not() {
    for seed in 0..2_000 {
        let ranks = 2 + seed as usize % 4;
        for calls in [Calls::All, Calls::Blocking] {
            let correct = Program::correct(seed, ranks, calls);
            assert!(ends(&correct, ranks), "seed {seed}: {correct:#?}");
        }
        let spoilt = Program::spoilt(seed, ranks);
        assert!(!ends(&spoilt, ranks), "seed {seed}: {spoilt:#?}");
    }
}

#[test]
fn a_program_keeps_to_its_tags() {
    for seed in 0..2_000 {
        let Program(ops) = Program::correct(seed, 5, Calls::All);
        for op in &ops {
            if let Action::Send { tag, .. } | Action::Start { tag, .. } = op.action {
                assert!((0..TAGS as i32 / 2).contains(&tag));
            }
        }
    }
}

#[test]
fn every_kind_of_mistake_is_planted() {
    let planted = |seed| Program::planted(seed, 2 + seed as usize % 4).1;
    let kinds: Vec<_> = (0..400).map(planted).collect();
    for kind in planted::Mistake::ALL {
        let often = kinds.iter().filter(|planted| **planted == kind).count();
        assert!(often >= 10, "{kind:?}: {often}");
    }
}
