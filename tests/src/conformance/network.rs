//! How ranks that are threads are connected.

use mpj_doubles::channels::{self, Cards};
use transport_lapi::AnyAdapter;
use transport_lapi::adapter::AdapterError;
use transport_lapi::wireup;

/// How ranks that are threads are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// By a segment, as in programs.
    Segment,
    /// By channels, which stand for a network: ranks share no memory, bodies are read later, and there is seldom room.
    Channels,
    /// Likewise, and the network accesses registered memory without its rank.
    OneSided,
}

impl Network {
    /// Makes the adapters of a job: for each rank in order, those of its contexts.
    ///
    /// # Panics
    /// When there cannot be so many ranks or contexts.
    pub fn adapters(self, ranks: usize, contexts: usize) -> Vec<Vec<AnyAdapter>> {
        let made = match self {
            Self::Segment => wireup::in_process(ranks, contexts),
            Self::Channels => Self::channels(ranks, contexts, Cards::Frames),
            Self::OneSided => Self::channels(ranks, contexts, Cards::OneSided),
        };
        made.expect("a job of threads")
    }

    fn channels(
        ranks: usize,
        contexts: usize,
        cards: Cards,
    ) -> Result<Vec<Vec<AnyAdapter>>, AdapterError> {
        let brought = |rank: Vec<_>| rank.into_iter().map(AnyAdapter::brought).collect();
        let ranks = channels::job_with_contexts(ranks, contexts, cards)?;
        Ok(ranks.into_iter().map(brought).collect())
    }
}
