//! How often an estimate that may become wrong without notice is checked, and when it changes. Copies depend on two:
//! which of two ways is faster (`trial.rs`), and whether the other processor is distant (`adapters/local/distance.rs`).

/// How many checks in a row must contradict an estimate before it changes: one may have been interrupted.
const CONTRADICTIONS: u32 = 2;

/// The checks of one estimate.
#[derive(Debug)]
pub(crate) struct Checks {
    shortest: u32,
    longest: u32,
    /// Uses of the estimate from one check to the next: `shortest` at first and after a check that contradicts it, and
    /// twice as many after each one that confirms it, up to `longest`.
    pub interval: u32,
    /// How many checks in a row have contradicted it.
    pub contradictions: u32,
}

impl Checks {
    pub(crate) const fn new(shortest: u32, longest: u32) -> Self {
        Self { shortest, longest, interval: shortest, contradictions: 0 }
    }

    /// Takes note of a check, and returns whether the estimate has to change.
    pub(crate) fn record(&mut self, confirms: bool) -> bool {
        if confirms {
            self.contradictions = 0;
            self.interval = self.longest.min(2 * self.interval);
            return false;
        }
        self.interval = self.shortest;
        self.contradictions = (self.contradictions + 1) % CONTRADICTIONS;
        self.contradictions == 0
    }
}
