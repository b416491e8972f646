//! Pairs launches of two runtimes that are neighbours in time. Pure; called by `analysis`.
//!
//! The machine drifts, so only launches that are close together see the same conditions. Pairs are
//! one-to-one: those of the same round first, then the closest ones, at most [`REACH`] rounds
//! apart. Pairing ignores the figures, so two equal runtimes are each the faster one of a pair
//! equally often; the tests simulate this.

#[cfg(test)]
mod tests;

/// The largest distance of two paired launches, in rounds.
pub const REACH: usize = 2;

/// The time of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// The round.
    pub round: usize,
    /// Seconds from the start of the run to the start of the launch.
    pub at: f64,
}

impl Moment {
    /// The distance in rounds, then in seconds. Rounds come first so that chains of near neighbours
    /// do not lose a pair.
    fn distance(&self, other: &Self) -> (usize, f64) {
        (self.round.abs_diff(other.round), (self.at - other.at).abs())
    }
}

/// Returns pairs of indices into `ours` and `peer`, ascending by the former. Each index occurs at
/// most once.
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
