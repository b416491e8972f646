//! Collective calls on intracommunicators (MPI-4.1 chapter 6). Each makes a [`Plan`] of the caller's buffers, which the
//! layer above runs, starts or keeps. Where there are several algorithms, the call chooses by length and number of ranks.
//!
//! - `create.rs`: calls that make communicators.
//! - `inter.rs`: calls on intercommunicators.
//! - `neighbour.rs`: calls among neighbours in a topology.
//! - `inline.rs`: short calls, run at once without a plan.
//!
//! A count is in elements of the buffer that it is passed with. If a buffer is an option, `None` is MPI_IN_PLACE.
//! Buffers that are used only at the root may be [`Input::none`] or [`Output::none`] on other ranks.
//!
//! The documentation of [`Communicator`] states the errors of all calls.

use mpjdev::{Call, recorded};
use transport_lapi::Ranges;

use crate::collective::{
    self, Blocks, Collective, Exchange, Local, Message, Operands, Order, Place, Round, Schedule,
};
use crate::communicator::{Communicator, InUse, Parts};
use crate::error::Error;
use crate::group::Group;
use crate::memory::{Input, Operand, Output, Reduction};
use crate::plan::claim::Claim;
use crate::plan::division::{division_of, split_elements};
use crate::plan::{self, BlockCollective, Plan, Route, Tag};

pub(crate) mod create;
mod inline;
mod inter;
mod neighbour;

/// What an allreduce exchanges, by its bytes: from 64 KiB on halves, since the data then take more time than the messages.
static EXCHANGES: Ranges<Exchange> =
    Ranges::fixed(&[((64 << 10) - 1, Exchange::Whole), (u64::MAX, Exchange::Halves)]);

/// Whether gathers and scatters exchange each block directly between the root and its rank, by the bytes of a block: from
/// 1 KiB on, since passing data on then takes more time than additional messages.
static DIRECTLY: Ranges<bool> = Ranges::fixed(&[((1 << 10) - 1, false), (u64::MAX, true)]);

/// Up to this many ranks, they do so with blocks of any length: the root's messages take less time than the steps of a
/// tree.
const DIRECTLY_TO: u32 = 8;

/// The same on several hosts, if each has consecutive ranks: from 8 KiB on, since a message between hosts takes as long as
/// to copy some thousand bytes.
static DIRECTLY_BETWEEN_HOSTS: Ranges<bool> =
    Ranges::fixed(&[((8 << 10) - 1, false), (u64::MAX, true)]);

/// Whether an allgather on several hosts goes around a ring, by the bytes of a block: from 64 KiB on, since the data then
/// take more time than the messages.
static BY_RING: Ranges<bool> = Ranges::fixed(&[((64 << 10) - 1, false), (u64::MAX, true)]);

/// Returns what an allreduce exchanges. It depends only on the kind and the number of the operands, so all ranks get
/// the same answer, even if the operands lie in a slice on one rank and in a few large elements on another.
#[inline]
fn exchange_of(reduction: &Reduction, data: usize, count: u64) -> Exchange {
    let bytes = count.saturating_mul(data as u64);
    match (EXCHANGES.choose_or_last(bytes), &reduction.operand) {
        (Exchange::Halves, Operand::Kind(kind)) if bytes % kind.size() as u64 == 0 => {
            Exchange::Halves
        }
        _ => Exchange::Whole,
    }
}

/// What a rank sends: the buffer and its number of elements; `None` to work in place.
pub type Sent = Option<(Input, u64)>;

/// Splits what a rank sends or receives into the buffer, which may be none, and the count.
#[inline(always)]
pub(super) fn split<B>(block: Option<(B, u64)>, none: fn() -> B) -> (B, Option<u64>) {
    match block {
        Some((buffer, count)) => (buffer, Some(count)),
        None => (none(), None),
    }
}

/// Returns how many bytes a rank sends, with those that it copies for itself.
#[cold]
fn sent(Parts { schedule, memory, .. }: Parts<'_>) -> u64 {
    let bytes = |place: &Place| memory.source(place).map_or(0, |data| data.len() as u64);
    let of = |round: Round<'_>| {
        let sends = round.messages.iter().filter_map(|message| match message {
            Message::Send { from, .. } => Some(from),
            Message::Receive { .. } => None,
        });
        let copies = round.local.iter().filter_map(|step| match step {
            Local::Copy { from, .. } => Some(from),
            _ => None,
        });
        sends.chain(copies).map(bytes).fold(0, u64::saturating_add)
    };
    schedule.rounds().map(of).fold(0, u64::saturating_add)
}

impl Communicator {
    /// Plans the next collective call, with the peers of the communicator. Its schedule is not kept.
    pub(crate) fn plan_once(
        &self,
        call: Call,
        schedule: Schedule,
        buffers: (Input, Output),
        reduction: Option<Reduction>,
    ) -> Result<Plan<'_>, Error> {
        self.plan(call, self.workspace().with(schedule), buffers, reduction)
    }

    /// [`Communicator::plan_once`] for a call that names a root.
    fn plan_rooted(
        &self,
        (call, root): (Call, u32),
        schedule: Schedule,
        buffers: (Input, Output),
    ) -> Result<Plan<'_>, Error> {
        self.plan_among(None, (call, Some(root)), self.workspace().with(schedule), buffers, None)
    }

    /// Plans the next collective call, with the peers of the communicator.
    pub(crate) fn plan<'c>(
        &'c self,
        call: Call,
        work: InUse<'c>,
        buffers: (Input, Output),
        reduction: Option<Reduction>,
    ) -> Result<Plan<'c>, Error> {
        self.plan_among(None, (call, None), work, buffers, reduction)
    }

    /// Plans the next collective call, whose messages may have other peers than the communicator. The number of the
    /// call is taken last, when nothing can be refused any more.
    #[inline]
    pub(crate) fn plan_among<'c>(
        &'c self,
        peers: Option<Box<Group>>,
        (call, root): (Call, Option<u32>),
        mut work: InUse<'c>,
        buffers: (Input, Output),
        reduction: Option<Reduction>,
    ) -> Result<Plan<'c>, Error> {
        let claim = (self.is_checked() && !self.is_inter())
            .then(|| Claim::of_call(call, self.rank(), root, reduction.as_ref()));
        work.fill(buffers, reduction)?;
        if self.is_described() {
            recorded::collective_bytes(sent(work.parts()));
        }
        let claim = claim.map(|claim| claim.with_messages(work.parts(), self.size()));
        let (context, tag) = (self.collective_context(), Tag::OfCall(self.next_number()));
        Ok(Plan::new(self, call, Route { peers, context, tag }, work).claiming(claim))
    }

    /// Plans a collective with equal blocks on an intracommunicator.
    #[inline(always)]
    fn plan_equal(
        &self,
        call: Call,
        collective: Collective,
        (input, output): (Input, Output),
        reduction: Option<Reduction>,
    ) -> Plan<'_> {
        let communicator = self;
        Plan::blocks(BlockCollective { communicator, call, collective, input, output, reduction })
    }

    /// Returns whether a gather or scatter moves each block directly between the root and its rank. This depends on the
    /// number and the size of a block's elements, in the buffer that the root uses at the root, and in the other buffer
    /// elsewhere.
    #[inline]
    pub(super) fn is_direct(
        &self,
        root: u32,
        at_root: (u64, usize),
        elsewhere: (u64, usize),
    ) -> bool {
        let (elements, size) = if self.rank() == root { at_root } else { elsewhere };
        let bytes = elements.saturating_mul(size as u64);
        match self.hosts() {
            Some(hosts) if hosts.are_consecutive() => *DIRECTLY_BETWEEN_HOSTS.choose_or_last(bytes),
            _ => self.size() <= DIRECTLY_TO || *DIRECTLY.choose_or_last(bytes),
        }
    }

    /// Plans a reduction with equal blocks. If there is no input, the operands are in the output.
    #[inline(always)]
    fn combine(
        &self,
        call: Call,
        (input, output): (Option<Input>, Output),
        reduction: Reduction,
        collective: impl FnOnce(Operands) -> Collective,
    ) -> Plan<'_> {
        let (input, operands) = operands_in(input, Input::none);
        self.plan_equal(call, collective(operands), (input, output), Some(reduction))
    }

    /// Returns on no rank before all ranks have called it: MPI_Barrier.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    #[inline]
    pub fn barrier(&self) -> Result<Plan<'_>, Error> {
        let none = (Input::none(), Output::none());
        Ok(self.plan_equal(Call::Barrier, Collective::Barrier, none, None))
    }

    /// [`Communicator::barrier`], run at once. To make a plan would take longer than the messages.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls), and of [`Plan::run`].
    pub fn run_barrier(&self) -> Result<(), Error> {
        plan::run_barrier(self)
    }

    /// Copies `count` elements of the root's buffer to all ranks: MPI_Bcast.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    #[inline]
    pub fn bcast(&self, buffer: Output, count: u64, root: u32) -> Result<Plan<'_>, Error> {
        let collective = Collective::Bcast { root, count };
        Ok(self.plan_equal(Call::Bcast, collective, (Input::none(), buffer), None))
    }

    /// Collects one block of each rank at the root: MPI_Gather. `count` is that of each block of the output, and is
    /// used only at the root.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    #[inline]
    pub fn gather(
        &self,
        send: Sent,
        output: Output,
        count: u64,
        root: u32,
    ) -> Result<Plan<'_>, Error> {
        let (input, sent) = split(send, Input::none);
        let block = (sent.unwrap_or(0), input.data_size());
        let directly = self.is_direct(root, (count, output.data_size()), block);
        let collective = Collective::Gather { root, send: sent, receive: count, directly };
        Ok(self.plan_equal(Call::Gather, collective, (input, output), None))
    }

    /// Like [`Communicator::gather`], with blocks of different lengths: MPI_Gatherv. The blocks are used only at the
    /// root.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn gatherv(
        &self,
        send: Sent,
        output: Output,
        blocks: Blocks<'_>,
        root: u32,
    ) -> Result<Plan<'_>, Error> {
        let (input, sent) = split(send, Input::none);
        let schedule = collective::gatherv(self.intra("this gatherv")?, root, sent, blocks)?;
        self.plan_rooted((Call::Gatherv, root), schedule, (input, output))
    }

    /// Sends one block of the root's input to each rank: MPI_Scatter. `count` is that of each block of the input, and
    /// is used only at the root.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    #[inline]
    pub fn scatter(
        &self,
        input: Input,
        count: u64,
        receive: Option<(Output, u64)>,
        root: u32,
    ) -> Result<Plan<'_>, Error> {
        let (output, received) = split(receive, Output::none);
        let block = (received.unwrap_or(0), output.data_size());
        let directly = self.is_direct(root, (count, input.data_size()), block);
        let collective = Collective::Scatter { root, send: count, receive: received, directly };
        Ok(self.plan_equal(Call::Scatter, collective, (input, output), None))
    }

    /// Like [`Communicator::scatter`], with blocks of different lengths: MPI_Scatterv. The blocks are used only at the
    /// root.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn scatterv(
        &self,
        input: Input,
        blocks: Blocks<'_>,
        receive: Option<(Output, u64)>,
        root: u32,
    ) -> Result<Plan<'_>, Error> {
        let (output, received) = split(receive, Output::none);
        let schedule = collective::scatterv(self.intra("this scatterv")?, root, blocks, received)?;
        self.plan_rooted((Call::Scatterv, root), schedule, (input, output))
    }

    /// Collects one block of each rank at all ranks: MPI_Allgather. `count` is that of each block of the output.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    #[inline]
    pub fn allgather(&self, send: Sent, output: Output, count: u64) -> Result<Plan<'_>, Error> {
        let (input, sent) = split(send, Input::none);
        let are_long = *BY_RING.choose_or_last(count.saturating_mul(output.data_size() as u64));
        let collective = Collective::Allgather { send: sent, receive: count, are_long };
        Ok(self.plan_equal(Call::Allgather, collective, (input, output), None))
    }

    /// Like [`Communicator::allgather`], with blocks of different lengths: MPI_Allgatherv.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn allgatherv(
        &self,
        send: Sent,
        output: Output,
        blocks: Blocks<'_>,
    ) -> Result<Plan<'_>, Error> {
        let (input, sent) = split(send, Input::none);
        let schedule = collective::allgatherv(self.intra("this allgatherv")?, sent, blocks)?;
        self.plan_once(Call::Allgatherv, schedule, (input, output), None)
    }

    /// Sends one block of each rank's input to each rank: MPI_Alltoall, MPI_Alltoallv or MPI_Alltoallw if the blocks of
    /// the output are equal, listed or typed.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn alltoall(
        &self,
        send: Option<(Input, Blocks<'_>)>,
        output: Output,
        blocks: Blocks<'_>,
    ) -> Result<Plan<'_>, Error> {
        let call = alltoall_call(blocks);
        let (input, sent) =
            send.map_or_else(|| (Input::none(), None), |(input, blocks)| (input, Some(blocks)));
        let equal = |blocks| match blocks {
            Blocks::Equal { count } => Some(count),
            Blocks::Listed { .. } | Blocks::Typed { .. } => None,
        };
        match (sent.map(equal), equal(blocks)) {
            (None, Some(receive)) | (Some(Some(_)), Some(receive)) => {
                let collective = Collective::Alltoall { send: sent.and_then(equal), receive };
                Ok(self.plan_equal(call, collective, (input, output), None))
            }
            (Some(None), _) | (_, None) => {
                let schedule = collective::alltoall(self.intra("this alltoall")?, sent, blocks)?;
                self.plan_once(call, schedule, (input, output), None)
            }
        }
    }

    /// Combines `count` elements of all ranks at the root: MPI_Reduce. Only the root uses the output, and only the root
    /// may work in place. Operands are combined in the order of ranks if the operation does not commute.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    #[inline]
    pub fn reduce(
        &self,
        input: Option<Input>,
        output: Output,
        count: u64,
        reduction: Reduction,
        root: u32,
    ) -> Result<Plan<'_>, Error> {
        let order = Order::of(reduction.op.commutes());
        Ok(self.combine(Call::Reduce, (input, output), reduction, |operands| Collective::Reduce {
            root,
            count,
            operands,
            order,
        }))
    }

    /// Combines `count` elements of all ranks and gives the results to all: MPI_Allreduce. All get the same bits.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    #[inline]
    pub fn allreduce(
        &self,
        input: Option<Input>,
        output: Output,
        count: u64,
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        let exchange = exchange_of(&reduction, output.data_size(), count);
        let order = Order::of(reduction.op.commutes());
        Ok(self.combine(Call::Allreduce, (input, output), reduction, |operands| {
            Collective::Allreduce { count, operands, order, exchange }
        }))
    }

    /// Combines one block of `count` elements for each rank, and gives each rank the results of its block:
    /// MPI_Reduce_scatter_block.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn reduce_scatter_block(
        &self,
        input: Option<Input>,
        output: Output,
        count: u64,
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        Ok(self.combine(Call::ReduceScatterBlock, (input, output), reduction, |operands| {
            Collective::ReduceScatterBlock { count, operands }
        }))
    }

    /// Like [`Communicator::reduce_scatter_block`], with blocks of `counts[rank]` elements: MPI_Reduce_scatter.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn reduce_scatter(
        &self,
        input: Option<Input>,
        output: Output,
        counts: &[u64],
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        reduction.check()?;
        let data = input.as_ref().map_or(output.data_size(), Input::data_size);
        let (input, operands) = operands_in(input, Input::none);
        let largest = counts.iter().copied().max().unwrap_or(0);
        let mut division = division_of(&reduction, self.size(), (largest, data), false);
        let member = self.intra("this reduction")?;
        let (each, buffers) = split_elements(&mut division, (input, output));
        let counts: Vec<_> = counts.iter().map(|count| count.saturating_mul(each)).collect();
        let schedule = collective::divided_reduce_scatter(member, &counts, operands, division)?;
        self.plan_once(Call::ReduceScatter, schedule, buffers, Some(reduction))
    }

    /// Combines, for each rank, `count` elements of the ranks up to that rank: MPI_Scan.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn scan(
        &self,
        input: Option<Input>,
        output: Output,
        count: u64,
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        Ok(self.combine(Call::Scan, (input, output), reduction, |operands| Collective::Scan {
            count,
            operands,
        }))
    }

    /// Combines, for each rank, `count` elements of the ranks before it; rank 0 gets nothing: MPI_Exscan.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn exscan(
        &self,
        input: Option<Input>,
        output: Output,
        count: u64,
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        Ok(self.combine(Call::Exscan, (input, output), reduction, |operands| Collective::Exscan {
            count,
            operands,
        }))
    }
}

/// Returns the input of a reduction, and where its operands are: in the output if there is no input.
#[inline(always)]
pub(super) fn operands_in<B>(input: Option<B>, none: fn() -> B) -> (B, Operands) {
    match input {
        Some(input) => (input, Operands::Input),
        None => (none(), Operands::InPlace),
    }
}

/// Returns which of MPI's three calls takes such blocks.
pub(super) fn alltoall_call(blocks: Blocks<'_>) -> Call {
    match blocks {
        Blocks::Equal { .. } => Call::Alltoall,
        Blocks::Listed { .. } => Call::Alltoallv,
        Blocks::Typed { .. } => Call::Alltoallw,
    }
}
