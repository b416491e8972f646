//! How ranks that are threads are connected.

use std::thread;

use mpj_doubles::channels::{self, Cards};
use mpj_doubles::fault::{FaultAdapter, FaultPlan};
use mpj_doubles::{fabric, hosts};
use transport_lapi::AnyAdapter;
use transport_lapi::adapter::AdapterError;
use transport_lapi::adapters::shm::{GetMode, ShmAdapter, create_segment};
use transport_lapi::wireup;

/// How ranks that are threads are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// By a segment, as in programs.
    Segment,
    /// By a segment that each rank has mapped for itself, as if it were a process: ranks read and write memory of each other
    /// by the system.
    Mapped,
    /// By channels, which stand for a network: ranks share no memory, bodies are read later, and there is seldom room.
    Channels,
    /// Likewise, and the network accesses registered memory without its rank; operations are often refused,
    /// and end out of order.
    OneSided,
    /// Hosts of two ranks each, that share a segment, with channels between the hosts.
    Hosts,
    /// Likewise, with three ranks on one host and the others on a second one.
    UnevenHosts,
    /// Likewise, with ranks that are dealt out to three hosts in turn.
    DealtHosts,
    /// Likewise, with two hosts and channels that access registered memory, as in [`Network::OneSided`].
    OneSidedHosts,
    /// Likewise, and the channels refuse some puts for good.
    DenyingHosts,
    /// Likewise, with libfabric in place of channels, over the loopback interface. What its software does counts as done by
    /// hardware.
    Fabric,
}

impl Network {
    /// Makes the adapters of a job: for each rank in order, those of its contexts.
    ///
    /// # Panics
    /// When there cannot be so many ranks or contexts.
    pub fn adapters(self, ranks: usize, contexts: usize) -> Vec<Vec<AnyAdapter>> {
        let made = match self {
            Self::Segment => wireup::in_process(ranks, contexts),
            Self::Mapped => Self::mapped(ranks, contexts),
            Self::Channels => Self::channels(ranks, contexts, Cards::Frames, FaultPlan::NONE),
            Self::OneSided => {
                Self::channels(ranks, contexts, Cards::OneSided, FaultPlan::ONE_SIDED)
            }
            Self::Hosts => Self::hosts(ranks, contexts, |rank| rank / 2),
            Self::UnevenHosts => Self::hosts(ranks, contexts, |rank| u32::from(rank >= 3)),
            Self::DealtHosts => Self::hosts(ranks, contexts, |rank| rank % 3),
            Self::OneSidedHosts => Self::one_sided_hosts(ranks, contexts, FaultPlan::ONE_SIDED),
            Self::DenyingHosts => {
                let plan = FaultPlan { denied: 300, ..FaultPlan::ONE_SIDED };
                Self::one_sided_hosts(ranks, contexts, plan)
            }
            Self::Fabric => Self::over_fabric(ranks, contexts),
        };
        made.expect("a job of threads")
    }

    fn mapped(ranks: usize, contexts: usize) -> Result<Vec<Vec<AnyAdapter>>, AdapterError> {
        let segment = create_segment("ranks", ranks, contexts)?;
        let attach = |task| {
            let fd = segment.try_clone().expect("there are descriptors");
            ShmAdapter::attach_contexts(fd, task as u32, ranks, contexts, GetMode::Auto)
        };
        let attached = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..ranks).map(|task| scope.spawn(move || attach(task))).collect();
            let join =
                |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("it attaches");
            threads.into_iter().map(join).collect::<Result<Vec<_>, AdapterError>>()
        })?;
        let any = |rank: Vec<ShmAdapter>| rank.into_iter().map(AnyAdapter::from).collect();
        Ok(attached.into_iter().map(any).collect())
    }

    fn hosts(
        ranks: usize,
        contexts: usize,
        host_of: fn(u32) -> u32,
    ) -> Result<Vec<Vec<AnyAdapter>>, AdapterError> {
        let channels = |context, bells| channels::in_context(context, bells, Cards::Frames);
        let ranks = hosts::job(&hosts::plan(ranks, host_of), contexts, channels)?;
        Ok(ranks.into_iter().map(|rank| rank.into_iter().map(AnyAdapter::from).collect()).collect())
    }

    fn one_sided_hosts(
        ranks: usize,
        contexts: usize,
        plan: FaultPlan,
    ) -> Result<Vec<Vec<AnyAdapter>>, AdapterError> {
        let channels = |context, bells| {
            let adapters = channels::in_context(context, bells, Cards::OneSided)?;
            Ok(FaultAdapter::job(adapters, 1 + context as u64, plan))
        };
        let ranks = hosts::job(&hosts::plan(ranks, |rank| rank % 2), contexts, channels)?;
        Ok(ranks.into_iter().map(|rank| rank.into_iter().map(AnyAdapter::from).collect()).collect())
    }

    fn over_fabric(ranks: usize, contexts: usize) -> Result<Vec<Vec<AnyAdapter>>, AdapterError> {
        let plan = FaultPlan { as_hardware: true, ..FaultPlan::NONE };
        let network = |context, bells| {
            let adapters = fabric::in_context(context, bells)?;
            Ok(FaultAdapter::job(adapters, 1 + context as u64, plan))
        };
        let ranks = hosts::job(&hosts::plan(ranks, |rank| rank % 2), contexts, network)?;
        Ok(ranks.into_iter().map(|rank| rank.into_iter().map(AnyAdapter::from).collect()).collect())
    }

    fn channels(
        ranks: usize,
        contexts: usize,
        cards: Cards,
        plan: FaultPlan,
    ) -> Result<Vec<Vec<AnyAdapter>>, AdapterError> {
        let faulty = |(rank, seed)| FaultAdapter::job(rank, seed, plan).into_iter();
        let ranks = channels::job_with_contexts(ranks, contexts, cards)?.into_iter().zip(1..);
        Ok(ranks.map(|rank| faulty(rank).map(AnyAdapter::brought).collect()).collect())
    }
}
