//! Which launches of two runtimes are compared with one another: neighbours in time. Pure; called by
//! `analysis`.
//!
//! A machine that drifts is the same to two launches only if they are close together. So pairs are made
//! one-to-one, those of one round first, then the closest ones, none further apart than [`REACH`] rounds.
//! No figure is looked at: if both runtimes are the same, either is the faster one of a pair equally
//! often, which the tests simulate.

#[cfg(test)]
mod tests;

/// How many rounds apart the launches of a pair are at most.
pub const REACH: usize = 2;

/// When a figure was taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// The round.
    pub round: usize,
    /// Seconds from the start of the run to the start of the launch.
    pub at: f64,
}

impl Moment {
    /// How far they are apart: in rounds, then in seconds. Rounds come first so that no chain of
    /// neighbours of neighbours costs a pair.
    fn distance(&self, other: &Self) -> (usize, f64) {
        (self.round.abs_diff(other.round), (self.at - other.at).abs())
    }
}

/// Pairs of places in `ours` and in `peer`, ascending by the former. Every place is in one pair at most.
pub fn pairs(ours: &[Moment], peer: &[Moment]) -> Vec<(usize, usize)> {
    let mut candidates: Vec<((usize, f64), usize, usize)> = Vec::new();
    for (place, one) in ours.iter().enumerate() {
        let fitting =
            peer.iter().enumerate().filter(|(_, it)| one.round.abs_diff(it.round) <= REACH);
        candidates.extend(fitting.map(|(mate, other)| (one.distance(other), place, mate)));
    }
    candidates
        .sort_by(|(one, ..), (other, ..)| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut mates = vec![None; ours.len()];
    let mut is_taken = vec![false; peer.len()];
    for (_, place, mate) in candidates {
        if mates[place].is_none() && !is_taken[mate] {
            mates[place] = Some(mate);
            is_taken[mate] = true;
        }
    }
    let taken = mates.into_iter().enumerate();
    taken.filter_map(|(place, mate)| Some((place, mate?))).collect()
}
