//! The collectives of an intracommunicator whose blocks are equal, each as a value: with all arguments that its steps
//! depend on. Calls use it to find a schedule that was built before, or to take the steps without a schedule.

use super::allgather::allgather_steps;
use super::allreduce::{Exchange, allreduce_steps};
use super::alltoall::alltoall_steps;
use super::barrier::barrier_steps;
use super::bcast::bcast_steps;
use super::gather::{gather_steps, gatherv_steps};
use super::pieces::{Division, in_pieces, packed};
use super::reduce::{Order, reduce_steps};
use super::reduce_scatter::reduce_scatter_block_steps;
use super::scan::{exscan_steps, scan_steps};
use super::scatter::{scatter_steps, scatterv_steps};
use super::steps::Steps;
use super::{Blocks, CollectiveError, Member, Operands, Schedule};

/// A collective with equal blocks. Its arguments are those of the function of that name in this module. `directly` says
/// that each block moves directly between the root and its rank, `are_long` that blocks go around a ring of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collective {
    Barrier,
    Bcast { root: u32, count: u64 },
    Gather { root: u32, send: Option<u64>, receive: u64, directly: bool },
    Scatter { root: u32, send: u64, receive: Option<u64>, directly: bool },
    Allgather { send: Option<u64>, receive: u64, are_long: bool },
    Alltoall { send: Option<u64>, receive: u64 },
    Reduce { root: u32, count: u64, operands: Operands, order: Order },
    Allreduce { count: u64, operands: Operands, order: Order, exchange: Exchange },
    ReduceScatterBlock { count: u64, operands: Operands },
    Scan { count: u64, operands: Operands },
    Exscan { count: u64, operands: Operands },
}

/// What a collective uses of its buffers on one rank, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    /// Elements from the beginning of the input.
    pub input: u64,
    /// Elements from the beginning of the output.
    pub output: u64,
    /// If data are copied or combined between the two: as many elements of the input have as many bytes as that many of
    /// the output.
    pub between: Option<[u64; 2]>,
}

/// The data that all ranks give alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Significant {
    /// Number of elements; `None` if there are no data.
    pub count: Option<u64>,
    /// Whether these are elements of the input.
    pub of_input: bool,
}

impl Significant {
    /// Returns their bytes, if there are any data; elements of input and output have these sizes.
    pub fn bytes(self, sizes: [usize; 2]) -> Option<u64> {
        let size = sizes[usize::from(!self.of_input)] as u64;
        Some(self.count?.saturating_mul(size))
    }
}

impl Collective {
    /// Returns the root, if there is one.
    pub fn root(&self) -> Option<u32> {
        match *self {
            Self::Bcast { root, .. }
            | Self::Gather { root, .. }
            | Self::Scatter { root, .. }
            | Self::Reduce { root, .. } => Some(root),
            _ => None,
        }
    }

    /// Returns the data that all ranks give alike, as this rank gives them: those of a block, where each rank has one.
    pub fn significant(&self, rank: u32) -> Significant {
        let of = |count, of_input| Significant { count: Some(count), of_input };
        match *self {
            Self::Barrier => Significant { count: None, of_input: false },
            Self::Gather { root, send: Some(send), .. } if rank != root => of(send, true),
            Self::Scatter { root, send, .. } if rank == root => of(send, true),
            Self::Scatter { receive, .. } => of(receive.unwrap_or(0), false),
            Self::Reduce { root, count, .. } => of(count, rank != root),
            Self::Bcast { count, .. }
            | Self::Gather { receive: count, .. }
            | Self::Allgather { receive: count, .. }
            | Self::Alltoall { receive: count, .. }
            | Self::Allreduce { count, .. }
            | Self::ReduceScatterBlock { count, .. }
            | Self::Scan { count, .. } => of(count, false),
            // From C, the first rank has no output.
            Self::Exscan { count, operands } => of(count, operands == Operands::Input),
        }
    }

    /// Takes the steps of a member.
    #[inline]
    pub fn steps(self, steps: &mut impl Steps, member: Member) -> Result<(), CollectiveError> {
        let equal = |count| Blocks::Equal { count };
        match self {
            Self::Barrier => {
                barrier_steps(steps, member);
                Ok(())
            }
            Self::Bcast { root, count } => bcast_steps(steps, member, root, count),
            Self::Gather { root, send, receive, directly: true } => {
                gatherv_steps(steps, member, root, (send, equal(receive)))
            }
            Self::Gather { root, send, receive, directly: false } => {
                gather_steps(steps, member, root, (send, receive))
            }
            Self::Scatter { root, send, receive, directly: true } => {
                scatterv_steps(steps, member, root, (equal(send), receive))
            }
            Self::Scatter { root, send, receive, directly: false } => {
                scatter_steps(steps, member, root, (send, receive))
            }
            Self::Allgather { send, receive, are_long } => {
                allgather_steps(steps, member, (send, receive), are_long)
            }
            Self::Alltoall { send, receive } => {
                alltoall_steps(steps, member, send.map(equal), equal(receive))
            }
            Self::Reduce { root, count, operands, order } => {
                reduce_steps(steps, member, root, (count, operands, order))
            }
            Self::Allreduce { count, operands, order, exchange } => {
                allreduce_steps(steps, member, (count, operands, order), exchange)
            }
            Self::ReduceScatterBlock { count, operands } => {
                reduce_scatter_block_steps(steps, member, (count, operands), u64::MAX)
            }
            Self::Scan { count, operands } => scan_steps(steps, member, count, operands),
            Self::Exscan { count, operands } => exscan_steps(steps, member, count, operands),
        }
    }

    /// Returns what a member uses of its buffers. `None` if the arguments are to be refused, or if ranks pass on blocks of
    /// others, for which they may need much memory.
    #[inline]
    pub fn used(self, member: Member) -> Option<Used> {
        let ranks = u64::from(member.size());
        let is_root = |root| member.rank() == root;
        let used = |input, output| Used { input, output, between: None };
        let of_blocks = |input: u64, output: u64, [sent, received]: [u64; 2]| Used {
            input,
            output,
            between: Some([sent, received]),
        };
        let of_operands = |operands, all: u64, results: u64| match operands {
            Operands::Input => of_blocks(all, results, [1, 1]),
            Operands::InPlace => used(0, all),
        };
        match self {
            Self::Barrier => Some(used(0, 0)),
            Self::Bcast { root, count } => (root < member.size()).then(|| used(0, count)),
            Self::Gather { directly: false, .. } | Self::Scatter { directly: false, .. } => None,
            Self::Gather { root, send, receive, .. } => match send {
                _ if root >= member.size() => None,
                Some(send) if is_root(root) => {
                    Some(of_blocks(send, receive.saturating_mul(ranks), [send, receive]))
                }
                None if is_root(root) => Some(used(0, receive.saturating_mul(ranks))),
                Some(send) => Some(used(send, 0)),
                None => None,
            },
            Self::Scatter { root, send, receive, .. } => match receive {
                _ if root >= member.size() => None,
                Some(receive) if is_root(root) => {
                    Some(of_blocks(send.saturating_mul(ranks), receive, [send, receive]))
                }
                None if is_root(root) => Some(used(send.saturating_mul(ranks), 0)),
                Some(receive) => Some(used(0, receive)),
                None => None,
            },
            Self::Allgather { send, receive, .. } => {
                let all = receive.saturating_mul(ranks);
                Some(send.map_or(used(0, all), |send| of_blocks(send, all, [send, receive])))
            }
            Self::Alltoall { send, receive } => {
                let all = receive.saturating_mul(ranks);
                Some(send.map_or(used(0, all), |send| {
                    of_blocks(send.saturating_mul(ranks), all, [send, receive])
                }))
            }
            Self::Reduce { root, count, operands, .. } => match operands {
                _ if root >= member.size() => None,
                _ if is_root(root) => Some(of_operands(operands, count, count)),
                Operands::Input => Some(used(count, 0)),
                Operands::InPlace => None,
            },
            Self::Allreduce { count, operands, .. }
            | Self::Scan { count, operands }
            | Self::Exscan { count, operands } => Some(of_operands(operands, count, count)),
            Self::ReduceScatterBlock { count, operands } => {
                Some(of_operands(operands, count.saturating_mul(ranks), count))
            }
        }
    }

    /// Builds the schedule of a member.
    pub fn schedule(self, member: Member, division: Division) -> Result<Schedule, CollectiveError> {
        let Division { most, packing } = division;
        Schedule::of(|draft| match packing.zip(self.used(member)) {
            Some((packing, Used { input, output, .. })) => {
                let of_operands = self.with_count(|count| count.saturating_mul(packing.operands));
                packed(draft, packing, [input, output], |copies| {
                    of_operands.divided(copies, member, most)
                })
            }
            None => self.divided(draft, member, most),
        })
    }

    /// Takes the steps of a member, those of a reduction for at most `most` elements at a time.
    fn divided(
        self,
        steps: &mut impl Steps,
        member: Member,
        most: u64,
    ) -> Result<(), CollectiveError> {
        match self {
            Self::ReduceScatterBlock { count, operands } => {
                reduce_scatter_block_steps(steps, member, (count, operands), most)
            }
            _ => match self.operands() {
                Some((count, _)) if count > most => {
                    in_pieces(steps, (count, most), |piece, len| {
                        self.with_count(|_| len).steps(piece, member)
                    })
                }
                _ => self.steps(steps, member),
            },
        }
    }

    /// Returns how many elements a reduction combines, in each block if there are blocks, and where they are.
    pub fn operands(self) -> Option<(u64, Operands)> {
        match self {
            Self::Reduce { count, operands, .. }
            | Self::Allreduce { count, operands, .. }
            | Self::ReduceScatterBlock { count, operands }
            | Self::Scan { count, operands }
            | Self::Exscan { count, operands } => Some((count, operands)),
            Self::Barrier
            | Self::Bcast { .. }
            | Self::Gather { .. }
            | Self::Scatter { .. }
            | Self::Allgather { .. }
            | Self::Alltoall { .. } => None,
        }
    }

    /// Returns whether ranks exchange halves of their elements.
    pub fn is_by_halves(self) -> bool {
        matches!(self, Self::Allreduce { exchange: Exchange::Halves, .. })
    }

    /// Returns the same reduction with another number of operands.
    pub fn with_count(mut self, change: impl FnOnce(u64) -> u64) -> Self {
        if let Self::Reduce { count, .. }
        | Self::Allreduce { count, .. }
        | Self::ReduceScatterBlock { count, .. }
        | Self::Scan { count, .. }
        | Self::Exscan { count, .. } = &mut self
        {
            *count = change(*count);
        }
        self
    }
}
