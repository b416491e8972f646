//! How many tests and probes that find nothing pass before one yields the processor, where ranks share processors.
//! Waits yield by a rule of the transport (`progress/spin.rs` there).

/// Polls in vain from one yield to the next. They take about as long as a short message and its answer, as the spins of
/// a wait between two yields do.
const POLLS_PER_YIELD: u32 = 15;

/// Polls in vain since the last one that found something, or that yielded the processor.
#[derive(Debug, Default)]
pub(crate) struct VainPolls(u32);

impl VainPolls {
    /// Counts a poll, and returns whether the caller should yield the processor to the rank that it waits for.
    pub fn gives_way(&mut self, in_vain: bool) -> bool {
        self.0 = if in_vain { self.0 + 1 } else { 0 };
        let gives_way = self.0 == POLLS_PER_YIELD;
        if gives_way {
            self.0 = 0;
        }
        gives_way
    }
}

#[cfg(test)]
mod tests {
    use super::{POLLS_PER_YIELD, VainPolls};

    #[test]
    fn polls_in_vain_give_way_now_and_then() {
        let mut vain = VainPolls::default();
        let mut polls = |count, in_vain| (0..count).filter(|_| vain.gives_way(in_vain)).count();
        assert_eq!(polls(10 * POLLS_PER_YIELD, true), 10);
        assert_eq!(polls(10 * POLLS_PER_YIELD, false), 0, "what was found needs no other rank");
        assert_eq!(polls(POLLS_PER_YIELD - 1, true), 0);
        assert_eq!(polls(1, false), 0);
        let since = "counted from the last one that found something";
        assert_eq!(polls(POLLS_PER_YIELD - 1, true), 0, "{since}");
        assert_eq!(polls(1, true), 1);
    }
}
