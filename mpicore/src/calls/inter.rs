//! Collective calls on intercommunicators (MPI-4.1 section 6.2.3): all data go to the other group. Each makes a
//! [`Plan`], like those on intracommunicators in `calls.rs`. Rooted calls take a [`Root`].

use mpjdev::Call;

use super::alltoall_call;
use crate::collective::inter::{self, InterMember, Root};
use crate::collective::{Blocks, Division};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::group::Group;
use crate::memory::{Input, Output, Reduction};
use crate::plan::Plan;
use crate::plan::division::{division_of, split_elements};

impl Communicator {
    /// Returns the member for which schedules are built; refuses an intracommunicator.
    pub(crate) fn inter_member(&self) -> Result<InterMember, Error> {
        match self.remote_group() {
            Some(remote) => Ok(InterMember::new(self.rank(), self.size(), remote.size())?),
            None => Err(Error::Kind { call: "a call between groups", kind: "intracommunicator" }),
        }
    }

    /// Waits until every rank of both groups has called it: MPI_Barrier.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn inter_barrier(&self) -> Result<Plan<'_>, Error> {
        let schedule = inter::barrier(self.inter_member()?);
        self.plan_once(Call::Barrier, schedule, (Input::none(), Output::none()), None)
    }

    /// Copies `count` elements of the root's buffer to the other group: MPI_Bcast.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn inter_bcast(&self, buffer: Output, count: u64, root: Root) -> Result<Plan<'_>, Error> {
        let schedule = inter::bcast(self.inter_member()?, root, count)?;
        self.plan_once(Call::Bcast, schedule, (Input::none(), buffer), None)
    }

    /// Collects one block of each rank of the other group at the root: MPI_Gather or MPI_Gatherv for equal or listed
    /// blocks. Only the root uses the blocks, and only the other group the input.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn inter_gather(
        &self,
        (input, count): (Input, u64),
        output: Output,
        blocks: Blocks<'_>,
        root: Root,
    ) -> Result<Plan<'_>, Error> {
        let schedule = inter::gather(self.inter_member()?, root, count, blocks)?;
        let call = if is_equal(blocks) { Call::Gather } else { Call::Gatherv };
        self.plan_once(call, schedule, (input, output), None)
    }

    /// Sends one block of the root's input to each rank of the other group: MPI_Scatter or MPI_Scatterv for equal or
    /// listed blocks. Only the root uses the blocks, and only the other group the output.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn inter_scatter(
        &self,
        input: Input,
        blocks: Blocks<'_>,
        (output, count): (Output, u64),
        root: Root,
    ) -> Result<Plan<'_>, Error> {
        let schedule = inter::scatter(self.inter_member()?, root, blocks, count)?;
        let call = if is_equal(blocks) { Call::Scatter } else { Call::Scatterv };
        self.plan_once(call, schedule, (input, output), None)
    }

    /// Sends one block of each rank to all ranks of the other group: MPI_Allgather or MPI_Allgatherv for equal or
    /// listed blocks, one for each rank of the other group.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn inter_allgather(
        &self,
        (input, count): (Input, u64),
        output: Output,
        blocks: Blocks<'_>,
    ) -> Result<Plan<'_>, Error> {
        let schedule = inter::allgather(self.inter_member()?, count, blocks)?;
        let call = if is_equal(blocks) { Call::Allgather } else { Call::Allgatherv };
        self.plan_once(call, schedule, (input, output), None)
    }

    /// Sends one block of each rank's input to each rank of the other group: MPI_Alltoall, MPI_Alltoallv or
    /// MPI_Alltoallw for equal, listed or typed blocks.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn inter_alltoall(
        &self,
        (input, sent): (Input, Blocks<'_>),
        (output, received): (Output, Blocks<'_>),
    ) -> Result<Plan<'_>, Error> {
        let schedule = inter::alltoall(self.inter_member()?, sent, received)?;
        self.plan_once(alltoall_call(received), schedule, (input, output), None)
    }

    /// Combines `count` elements of the other group at the root: MPI_Reduce. Only the root uses the output, and only
    /// the other group the input.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn inter_reduce(
        &self,
        input: Input,
        output: Output,
        count: u64,
        reduction: Reduction,
        root: Root,
    ) -> Result<Plan<'_>, Error> {
        let data = if root == Root::Here { output.data_size() } else { input.data_size() };
        let (division, each, buffers) =
            self.divide_between(&reduction, (count, data), (input, output))?;
        let count = count.saturating_mul(each);
        let schedule = inter::divided_reduce(self.inter_member()?, root, count, division)?;
        self.plan_once(Call::Reduce, schedule, buffers, Some(reduction))
    }

    /// Combines `count` elements of each group, for all ranks of the other: MPI_Allreduce.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn inter_allreduce(
        &self,
        input: Input,
        output: Output,
        count: u64,
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        let data = input.data_size();
        let (division, each, buffers) =
            self.divide_between(&reduction, (count, data), (input, output))?;
        let count = count.saturating_mul(each);
        let schedule = inter::divided_allreduce(self.inter_member()?, count, division)?;
        self.plan_once(Call::Allreduce, schedule, buffers, Some(reduction))
    }

    /// Combines the elements of each group and divides the results among the ranks of the other: MPI_Reduce_scatter
    /// and MPI_Reduce_scatter_block. `counts` are those of this rank's group.
    ///
    /// # Errors
    /// Those of [collective calls](Communicator#errors-of-collective-calls).
    pub fn inter_reduce_scatter(
        &self,
        input: Input,
        output: Output,
        counts: &[u64],
        reduction: Reduction,
    ) -> Result<Plan<'_>, Error> {
        let total = counts.iter().fold(0_u64, |total, count| total.saturating_add(*count));
        let data = input.data_size();
        let (division, each, buffers) =
            self.divide_between(&reduction, (total, data), (input, output))?;
        let counts: Vec<_> = counts.iter().map(|count| count.saturating_mul(each)).collect();
        let schedule = inter::divided_reduce_scatter(self.inter_member()?, &counts, division)?;
        let both = Some(Box::new(self.peers().union(self.group())));
        let work = self.workspace().with(schedule);
        self.plan_among(both, (Call::ReduceScatter, None), work, buffers, Some(reduction))
    }

    /// Returns how a reduction of so many elements, with so many bytes of data each, is divided, in the same places in
    /// both groups, and how many operands each element of the returned buffers was before. Refuses operations that are
    /// not defined.
    fn divide_between(
        &self,
        reduction: &Reduction,
        elements: (u64, usize),
        buffers: (Input, Output),
    ) -> Result<(Division, u64, (Input, Output)), Error> {
        reduction.check()?;
        let remote = self.remote_group().map_or(0, Group::size);
        let ranks = self.size().saturating_add(remote);
        let mut division = division_of(reduction, ranks, elements, false);
        let (each, buffers) = split_elements(&mut division, buffers);
        Ok((division, each, buffers))
    }
}

fn is_equal(blocks: Blocks<'_>) -> bool {
    matches!(blocks, Blocks::Equal { .. })
}
