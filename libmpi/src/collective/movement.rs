//! Collectives that move data (MPI-5.0 sections 6.4 to 6.8). One function serves all forms of blocks: equal ones, and those
//! with lengths, places and datatypes of their own.

use std::ffi::c_int;

use mpicore::collective::Blocks;
use mpicore::{Input, Output};

use super::buffer::{Blocked, Division, check_apart};
use super::{Collective, Root, collectives, short};
use crate::call::Outcome;
use crate::datatype::{Data, is_in_place};

/// MPI_Bcast.
#[inline(always)]
unsafe fn bcast(data: Data, root: c_int, call: Collective) -> Outcome {
    let root = call.root(root)?;
    // SAFETY: FC1.
    if let Some(done) = unsafe { short::bcast(&call, root, data) } {
        return done;
    }
    let (buffer, count) = match root.is_here() || root.is_served() {
        // SAFETY: FC1.
        true => unsafe { data.output() }?,
        false => (Output::none(), 0),
    };
    let core = &call.comm.core;
    let plan = match root {
        Root::Within(root, _) => core.bcast(buffer, count, root)?,
        Root::Between(root) => core.inter_bcast(buffer, count, root)?,
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Gather and MPI_Gatherv.
#[inline(always)]
unsafe fn gather<B: Blocked>(send: Data, receive: B, root: c_int, call: Collective) -> Outcome {
    let root = call.root(root)?;
    if let Some(receive) = receive.first() {
        // SAFETY: FC1.
        if let Some(done) = unsafe { short::gather(&call, root, send, receive) } {
            return done;
        }
    }
    let parts = match root.is_here() {
        // SAFETY: FC1.
        true => unsafe { receive.parts(call.blocks(), "recvcount") }?,
        false => B::NONE,
    };
    let sent = match root {
        Root::Within(_, true) if is_in_place(send.buffer) => None,
        // SAFETY: FC1.
        _ if root.is_served() => Some(unsafe { send.input() }?),
        _ => Some((Input::none(), 0)),
    };
    // SAFETY: FC1.
    let (output, division) = unsafe { parts.output() };
    let core = &call.comm.core;
    let plan = match (root, division.blocks()) {
        (Root::Within(root, _), Blocks::Equal { count }) => {
            core.gather(sent, output, count, root)?
        }
        (Root::Within(root, _), blocks) => core.gatherv(sent, output, blocks, root)?,
        (Root::Between(root), blocks) => {
            core.inter_gather(sent.unwrap_or((Input::none(), 0)), output, blocks, root)?
        }
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Scatter and MPI_Scatterv.
#[inline(always)]
unsafe fn scatter<B: Blocked>(send: B, receive: Data, root: c_int, call: Collective) -> Outcome {
    let root = call.root(root)?;
    if let Some(send) = send.first() {
        // SAFETY: FC1.
        if let Some(done) = unsafe { short::scatter(&call, root, send, receive) } {
            return done;
        }
    }
    let parts = match root.is_here() {
        // SAFETY: FC1.
        true => unsafe { send.parts(call.blocks(), "sendcount") }?,
        false => B::NONE,
    };
    let received = match root {
        Root::Within(_, true) if is_in_place(receive.buffer) => None,
        // SAFETY: FC1.
        _ if root.is_served() => Some(unsafe { receive.output() }?),
        _ => Some((Output::none(), 0)),
    };
    // SAFETY: FC1.
    let (input, division) = unsafe { parts.input() };
    let core = &call.comm.core;
    let plan = match (root, division.blocks()) {
        (Root::Within(root, _), Blocks::Equal { count }) => {
            core.scatter(input, count, received, root)?
        }
        (Root::Within(root, _), blocks) => core.scatterv(input, blocks, received, root)?,
        (Root::Between(root), blocks) => {
            core.inter_scatter(input, blocks, received.unwrap_or((Output::none(), 0)), root)?
        }
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Allgather and MPI_Allgatherv.
#[inline(always)]
unsafe fn allgather(send: Data, receive: impl Blocked, call: Collective) -> Outcome {
    if let Some(receive) = receive.first() {
        if send.datatype == receive.datatype {
            check_apart(send.buffer, receive.buffer, send.count)?;
        }
        // SAFETY: FC1.
        if let Some(done) = unsafe { short::allgather(&call, send, receive) } {
            return done;
        }
    }
    // SAFETY: FC1.
    let (output, division) = unsafe { receive.parts(call.blocks(), "recvcount")?.output() };
    let sent = match call.works_in_place(send.buffer) {
        true => None,
        // SAFETY: FC1.
        false => Some(unsafe { send.input() }?),
    };
    let core = &call.comm.core;
    let plan = match (core.is_inter(), division.blocks()) {
        (false, Blocks::Equal { count }) => core.allgather(sent, output, count)?,
        (false, blocks) => core.allgatherv(sent, output, blocks)?,
        (true, blocks) => {
            core.inter_allgather(sent.unwrap_or((Input::none(), 0)), output, blocks)?
        }
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw. In place, the received blocks replace those that are sent.
#[inline(always)]
unsafe fn alltoall(send: impl Blocked, receive: impl Blocked, call: Collective) -> Outcome {
    if let (Some(send), Some(receive)) = (send.first(), receive.first()) {
        if send.datatype == receive.datatype {
            check_apart(send.buffer, receive.buffer, send.count)?;
        }
        // SAFETY: FC1.
        if let Some(done) = unsafe { short::alltoall(&call, send, receive) } {
            return done;
        }
    }
    let sent = match call.works_in_place(send.buffer()) {
        true => None,
        // SAFETY: FC1.
        false => Some(unsafe { send.parts(call.blocks(), "sendcount")?.input() }),
    };
    // SAFETY: FC1.
    let (output, received) = unsafe { receive.parts(call.blocks(), "recvcount")?.output() };
    let (core, received) = (&call.comm.core, received.blocks());
    let (input, division) = sent.unzip();
    let plan = match input.zip(division.as_ref().map(Division::blocks)) {
        Some(sent) if core.is_inter() => core.inter_alltoall(sent, (output, received))?,
        sent => core.alltoall(sent, output, received)?,
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

collectives! {
    MPI_Bcast, MPI_Bcast_c, MPI_Ibcast, MPI_Ibcast_c, MPI_Bcast_init, MPI_Bcast_init_c => bcast;
    MPI_Gather, MPI_Gather_c, MPI_Igather, MPI_Igather_c, MPI_Gather_init, MPI_Gather_init_c => gather;
    MPI_Gatherv, MPI_Gatherv_c, MPI_Igatherv, MPI_Igatherv_c, MPI_Gatherv_init, MPI_Gatherv_init_c => gather;
    MPI_Scatter, MPI_Scatter_c, MPI_Iscatter, MPI_Iscatter_c, MPI_Scatter_init, MPI_Scatter_init_c => scatter;
    MPI_Scatterv, MPI_Scatterv_c, MPI_Iscatterv, MPI_Iscatterv_c, MPI_Scatterv_init, MPI_Scatterv_init_c => scatter;
    MPI_Allgather, MPI_Allgather_c, MPI_Iallgather, MPI_Iallgather_c, MPI_Allgather_init, MPI_Allgather_init_c
        => allgather;
    MPI_Allgatherv, MPI_Allgatherv_c, MPI_Iallgatherv, MPI_Iallgatherv_c, MPI_Allgatherv_init, MPI_Allgatherv_init_c
        => allgather;
    MPI_Alltoall, MPI_Alltoall_c, MPI_Ialltoall, MPI_Ialltoall_c, MPI_Alltoall_init, MPI_Alltoall_init_c => alltoall;
    MPI_Alltoallv, MPI_Alltoallv_c, MPI_Ialltoallv, MPI_Ialltoallv_c, MPI_Alltoallv_init, MPI_Alltoallv_init_c
        => alltoall;
    MPI_Alltoallw, MPI_Alltoallw_c, MPI_Ialltoallw, MPI_Ialltoallw_c, MPI_Alltoallw_init, MPI_Alltoallw_init_c
        => alltoall;
}
