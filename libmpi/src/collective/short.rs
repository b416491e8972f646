//! Blocking collectives on elements of predefined datatypes, for which the core needs no plan if they are short: most
//! calls of programs that make many. `None` says that nothing was done. Then the call goes the general way, which also
//! returns the errors.

use mpicore::op::{ElementKind, Predefined};
use mpicore::{Communicator, Error, Plain};

use super::buffer::check_apart;
use super::reduction::Operands;
use super::{Collective, Form, Root};
use crate::call::Outcome;
use crate::datatype::{Data, is_in_place};

/// The outcome of a call that was made.
type Done = Option<Outcome>;

#[inline(always)]
fn done(outcome: Option<Result<(), Error>>) -> Done {
    Some(outcome?.map_err(Into::into))
}

impl Collective {
    /// Returns the communicator, if the call is a blocking one.
    #[inline(always)]
    fn if_blocking(&self) -> Option<&Communicator> {
        matches!(self.form, Form::Blocking).then_some(&self.comm.core)
    }
}

impl Root {
    /// Returns the root in an intracommunicator, and whether it is this rank.
    #[inline(always)]
    fn within(self) -> Option<(u32, bool)> {
        match self {
            Self::Within(rank, is_here) => Some((rank, is_here)),
            Self::Between(_) => None,
        }
    }
}

/// MPI_Bcast.
#[inline(always)]
pub(super) unsafe fn bcast(call: &Collective, root: Root, data: Data) -> Done {
    let (core, (root, _)) = (call.if_blocking()?, root.within()?);
    // SAFETY: FC1.
    let buffer = unsafe { data.plain_output(1) }?;
    done(core.short_bcast(buffer, data.count as u64, root))
}

/// MPI_Gather.
#[inline(always)]
pub(super) unsafe fn gather(call: &Collective, root: Root, send: Data, receive: Data) -> Done {
    let (core, (root, is_here)) = (call.if_blocking()?, root.within()?);
    // SAFETY: FC1.
    let (sent, (output, count)) = unsafe {
        let sent = send.plain_blocks(1, is_here)?;
        match is_here {
            true => (sent, (receive.plain_output(call.blocks())?, receive.count as u64)),
            false => (sent, (Plain::none(), 0)),
        }
    };
    done(core.short_gather(sent, output, count, root))
}

/// MPI_Scatter.
#[inline(always)]
pub(super) unsafe fn scatter(call: &Collective, root: Root, send: Data, receive: Data) -> Done {
    let (core, (root, is_here)) = (call.if_blocking()?, root.within()?);
    // SAFETY: FC1.
    let (received, (input, count)) = unsafe {
        let received = match is_here && is_in_place(receive.buffer) {
            true => None,
            false => Some((receive.plain_output(1)?, receive.count as u64)),
        };
        match is_here {
            true => (received, (send.plain_input(call.blocks())?, send.count as u64)),
            false => (received, (Plain::none(), 0)),
        }
    };
    done(core.short_scatter(input, count, received, root))
}

/// MPI_Allgather.
#[inline(always)]
pub(super) unsafe fn allgather(call: &Collective, send: Data, receive: Data) -> Done {
    let core = call.if_blocking()?;
    // SAFETY: FC1.
    let (sent, output) =
        unsafe { (send.plain_blocks(1, true)?, receive.plain_output(call.blocks())?) };
    done(core.short_allgather(sent, output, receive.count as u64))
}

/// MPI_Alltoall.
#[inline(always)]
pub(super) unsafe fn alltoall(call: &Collective, send: Data, receive: Data) -> Done {
    let (core, blocks) = (call.if_blocking()?, call.blocks());
    // SAFETY: FC1.
    let (sent, output) =
        unsafe { (send.plain_blocks(blocks, true)?, receive.plain_output(blocks)?) };
    done(core.short_alltoall(sent, output, receive.count as u64))
}

/// MPI_Reduce.
#[inline(always)]
pub(super) unsafe fn reduce(call: &Collective, root: Root, operands: Operands, count: i64) -> Done {
    let (core, (root, is_here)) = (call.if_blocking()?, root.within()?);
    // SAFETY: FC1.
    let (input, output) = unsafe {
        match is_here {
            true => operands.plain(count)?,
            false => (Some(operands.sent(count).plain_input(1)?), Plain::none()),
        }
    };
    done(core.short_reduce(input, output, count as u64, operands.predefined()?, root))
}

/// MPI_Allreduce.
#[inline(always)]
pub(super) unsafe fn allreduce(call: &Collective, operands: Operands, count: i64) -> Done {
    let core = call.if_blocking()?;
    // SAFETY: FC1.
    let (input, output) = unsafe { operands.plain(count) }?;
    done(core.short_allreduce(input, output, count as u64, operands.predefined()?))
}

impl Data {
    /// Returns so many blocks that are sent; `None` inside if the rank works in place and `may_be_in_place`.
    #[inline(always)]
    unsafe fn plain_blocks(
        self,
        blocks: u32,
        may_be_in_place: bool,
    ) -> Option<Option<(Plain, u64)>> {
        if may_be_in_place && is_in_place(self.buffer) {
            return Some(None);
        }
        // SAFETY: FC1.
        Some(Some((unsafe { self.plain_input(blocks) }?, self.count as u64)))
    }
}

impl Operands {
    /// Returns the operands, unless the rank works in place, and the place of the results.
    #[inline(always)]
    unsafe fn plain(self, count: i64) -> Option<(Option<Plain>, Plain)> {
        // SAFETY: FC1.
        let output = unsafe { self.received(count).plain_output(1) }?;
        if is_in_place(self.sendbuf) {
            return Some((None, output));
        }
        check_apart(self.sendbuf, self.recvbuf, count).ok()?;
        // SAFETY: FC1.
        Some((Some(unsafe { self.sent(count).plain_input(1) }?), output))
    }

    /// Returns the operation, if it is predefined, and the kind of the operands.
    #[inline(always)]
    fn predefined(self) -> Option<(Predefined, ElementKind)> {
        Some((self.op.predefined()?, self.datatype.kind()?))
    }
}
