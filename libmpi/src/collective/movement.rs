//! Collectives that move data (MPI-5.0 sections 6.4 to 6.8).

use std::ffi::{c_int, c_void};

use mpicore::collective::Blocks;
use mpicore::{Input, Output, Sent};

use super::buffer::{Data, Number, Parts, check_apart, is_in_place};
use super::{Collective, Form, Root, collectives, short};
use crate::abi::*;
use crate::call::Outcome;

/// MPI_Bcast.
unsafe fn bcast(
    buffer: *mut c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    form: Form,
) -> Outcome {
    let call = Collective::begin(comm, form)?;
    let root = call.root(root)?;
    let data = Data { buffer, count: count.into(), datatype };
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

/// MPI_Gather.
unsafe fn gather(
    sendbuf: *const c_void,
    sendcount: impl Into<i64>,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl Into<i64>,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    form: Form,
) -> Outcome {
    let call = Collective::begin(comm, form)?;
    let root = call.root(root)?;
    let send = Data { buffer: sendbuf, count: sendcount.into(), datatype: sendtype };
    let receive = Data { buffer: recvbuf, count: recvcount.into(), datatype: recvtype };
    // SAFETY: FC1.
    if let Some(done) = unsafe { short::gather(&call, root, send, receive) } {
        return done;
    }
    let parts = match root.is_here() {
        true => Parts::equal(call.blocks(), receive, "recvcount")?,
        false => Parts::NO_EQUAL,
    };
    // SAFETY: FC1.
    unsafe { collect(&call, root, send, &parts) }
}

/// MPI_Gatherv.
unsafe fn gatherv(
    sendbuf: *const c_void,
    sendcount: impl Into<i64>,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl Number,
    displs: *const impl Number,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    form: Form,
) -> Outcome {
    let call = Collective::begin(comm, form)?;
    let root = call.root(root)?;
    let send = Data { buffer: sendbuf, count: sendcount.into(), datatype: sendtype };
    let parts = match root.is_here() {
        // SAFETY: FC1.
        true => unsafe { Parts::listed(call.blocks(), recvbuf, recvcounts, displs, recvtype) }?,
        false => Parts::NO_LISTED,
    };
    // SAFETY: FC1.
    unsafe { collect(&call, root, send, &parts) }
}

/// Collects blocks at the root.
unsafe fn collect(call: &Collective, root: Root, send: Data, parts: &Parts) -> Outcome {
    let sent: Sent = match root {
        Root::Within(_, true) if is_in_place(send.buffer) => None,
        // SAFETY: FC1.
        _ if root.is_served() => Some(unsafe { send.input() }?),
        _ => Some((Input::none(), 0)),
    };
    // SAFETY: FC1.
    let output = unsafe { parts.output() }?;
    let (core, blocks) = (&call.comm.core, parts.blocks());
    let plan = match (root, blocks) {
        (Root::Within(root, _), Blocks::Equal { count }) => {
            core.gather(sent, output, count, root)?
        }
        (Root::Within(root, _), _) => core.gatherv(sent, output, blocks, root)?,
        (Root::Between(root), _) => {
            core.inter_gather(sent.unwrap_or((Input::none(), 0)), output, blocks, root)?
        }
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Scatter.
unsafe fn scatter(
    sendbuf: *const c_void,
    sendcount: impl Into<i64>,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl Into<i64>,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    form: Form,
) -> Outcome {
    let call = Collective::begin(comm, form)?;
    let root = call.root(root)?;
    let send = Data { buffer: sendbuf, count: sendcount.into(), datatype: sendtype };
    let receive = Data { buffer: recvbuf, count: recvcount.into(), datatype: recvtype };
    // SAFETY: FC1.
    if let Some(done) = unsafe { short::scatter(&call, root, send, receive) } {
        return done;
    }
    let parts = match root.is_here() {
        true => Parts::equal(call.blocks(), send, "sendcount")?,
        false => Parts::NO_EQUAL,
    };
    // SAFETY: FC1.
    unsafe { distribute(&call, root, &parts, receive) }
}

/// MPI_Scatterv.
unsafe fn scatterv(
    sendbuf: *const c_void,
    sendcounts: *const impl Number,
    displs: *const impl Number,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl Into<i64>,
    recvtype: MPI_Datatype,
    root: c_int,
    comm: MPI_Comm,
    form: Form,
) -> Outcome {
    let call = Collective::begin(comm, form)?;
    let root = call.root(root)?;
    let receive = Data { buffer: recvbuf, count: recvcount.into(), datatype: recvtype };
    let parts = match root.is_here() {
        // SAFETY: FC1.
        true => unsafe { Parts::listed(call.blocks(), sendbuf, sendcounts, displs, sendtype) }?,
        false => Parts::NO_LISTED,
    };
    // SAFETY: FC1.
    unsafe { distribute(&call, root, &parts, receive) }
}

/// Distributes blocks of the root.
unsafe fn distribute(call: &Collective, root: Root, parts: &Parts, receive: Data) -> Outcome {
    let received = match root {
        Root::Within(_, true) if is_in_place(receive.buffer) => None,
        // SAFETY: FC1.
        _ if root.is_served() => Some(unsafe { receive.output() }?),
        _ => Some((Output::none(), 0)),
    };
    // SAFETY: FC1.
    let input = unsafe { parts.input() }?;
    let (core, blocks) = (&call.comm.core, parts.blocks());
    let plan = match (root, blocks) {
        (Root::Within(root, _), Blocks::Equal { count }) => {
            core.scatter(input, count, received, root)?
        }
        (Root::Within(root, _), _) => core.scatterv(input, blocks, received, root)?,
        (Root::Between(root), _) => {
            core.inter_scatter(input, blocks, received.unwrap_or((Output::none(), 0)), root)?
        }
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Allgather.
unsafe fn allgather(
    sendbuf: *const c_void,
    sendcount: impl Into<i64>,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl Into<i64>,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    form: Form,
) -> Outcome {
    let call = Collective::begin(comm, form)?;
    let send = Data { buffer: sendbuf, count: sendcount.into(), datatype: sendtype };
    let receive = Data { buffer: recvbuf, count: recvcount.into(), datatype: recvtype };
    if sendtype == recvtype {
        check_apart(sendbuf, recvbuf, send.count)?;
    }
    // SAFETY: FC1.
    if let Some(done) = unsafe { short::allgather(&call, send, receive) } {
        return done;
    }
    let parts = Parts::equal(call.blocks(), receive, "recvcount")?;
    // SAFETY: FC1.
    unsafe { collect_everywhere(&call, send, &parts) }
}

/// MPI_Allgatherv.
unsafe fn allgatherv(
    sendbuf: *const c_void,
    sendcount: impl Into<i64>,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl Number,
    displs: *const impl Number,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    form: Form,
) -> Outcome {
    let call = Collective::begin(comm, form)?;
    let send = Data { buffer: sendbuf, count: sendcount.into(), datatype: sendtype };
    // SAFETY: FC1.
    unsafe {
        let parts = Parts::listed(call.blocks(), recvbuf, recvcounts, displs, recvtype)?;
        collect_everywhere(&call, send, &parts)
    }
}

/// Collects blocks at all ranks.
unsafe fn collect_everywhere(call: &Collective, send: Data, parts: &Parts) -> Outcome {
    let sent: Sent = match call.works_in_place(send.buffer) {
        true => None,
        // SAFETY: FC1.
        false => Some(unsafe { send.input() }?),
    };
    // SAFETY: FC1.
    let output = unsafe { parts.output() }?;
    let (core, blocks) = (&call.comm.core, parts.blocks());
    let plan = match (core.is_inter(), blocks) {
        (false, Blocks::Equal { count }) => core.allgather(sent, output, count)?,
        (false, _) => core.allgatherv(sent, output, blocks)?,
        (true, _) => core.inter_allgather(sent.unwrap_or((Input::none(), 0)), output, blocks)?,
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Alltoall.
unsafe fn alltoall(
    sendbuf: *const c_void,
    sendcount: impl Into<i64>,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcount: impl Into<i64>,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    form: Form,
) -> Outcome {
    let call = Collective::begin(comm, form)?;
    let send = Data { buffer: sendbuf, count: sendcount.into(), datatype: sendtype };
    let receive = Data { buffer: recvbuf, count: recvcount.into(), datatype: recvtype };
    if sendtype == recvtype {
        check_apart(sendbuf, recvbuf, send.count)?;
    }
    // SAFETY: FC1.
    if let Some(done) = unsafe { short::alltoall(&call, send, receive) } {
        return done;
    }
    let sent = match call.works_in_place(sendbuf) {
        true => None,
        false => Some(Parts::equal(call.blocks(), send, "sendcount")?),
    };
    let received = Parts::equal(call.blocks(), receive, "recvcount")?;
    // SAFETY: FC1.
    unsafe { exchange(&call, sent, &received) }
}

/// MPI_Alltoallv.
unsafe fn alltoallv(
    sendbuf: *const c_void,
    sendcounts: *const impl Number,
    sdispls: *const impl Number,
    sendtype: MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl Number,
    rdispls: *const impl Number,
    recvtype: MPI_Datatype,
    comm: MPI_Comm,
    form: Form,
) -> Outcome {
    let call = Collective::begin(comm, form)?;
    let blocks = call.blocks();
    // SAFETY: FC1.
    unsafe {
        let sent = match call.works_in_place(sendbuf) {
            true => None,
            false => Some(Parts::listed(blocks, sendbuf, sendcounts, sdispls, sendtype)?),
        };
        let received = Parts::listed(blocks, recvbuf, recvcounts, rdispls, recvtype)?;
        exchange(&call, sent, &received)
    }
}

/// MPI_Alltoallw.
unsafe fn alltoallw(
    sendbuf: *const c_void,
    sendcounts: *const impl Number,
    sdispls: *const impl Number,
    sendtypes: *const MPI_Datatype,
    recvbuf: *mut c_void,
    recvcounts: *const impl Number,
    rdispls: *const impl Number,
    recvtypes: *const MPI_Datatype,
    comm: MPI_Comm,
    form: Form,
) -> Outcome {
    let call = Collective::begin(comm, form)?;
    let blocks = call.blocks();
    // SAFETY: FC1.
    unsafe {
        let sent = match call.works_in_place(sendbuf) {
            true => None,
            false => Some(Parts::typed(blocks, sendbuf, sendcounts, sdispls, sendtypes)?),
        };
        let received = Parts::typed(blocks, recvbuf, recvcounts, rdispls, recvtypes)?;
        exchange(&call, sent, &received)
    }
}

/// Exchanges blocks between all ranks. If nothing is sent, the received blocks replace those that are sent.
unsafe fn exchange(call: &Collective, sent: Option<Parts>, received: &Parts) -> Outcome {
    // SAFETY: FC1.
    let input = sent.as_ref().map(|parts| unsafe { parts.input() }).transpose()?;
    // SAFETY: FC1.
    let output = unsafe { received.output() }?;
    let send = input.zip(sent.as_ref().map(Parts::blocks));
    let core = &call.comm.core;
    let plan = match send {
        Some(send) if core.is_inter() => core.inter_alltoall(send, (output, received.blocks()))?,
        send => core.alltoall(send, output, received.blocks())?,
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

collectives! {
    MPI_Bcast, MPI_Bcast_c, MPI_Ibcast, MPI_Ibcast_c, MPI_Bcast_init, MPI_Bcast_init_c => bcast;
    MPI_Gather, MPI_Gather_c, MPI_Igather, MPI_Igather_c, MPI_Gather_init, MPI_Gather_init_c => gather;
    MPI_Gatherv, MPI_Gatherv_c, MPI_Igatherv, MPI_Igatherv_c, MPI_Gatherv_init, MPI_Gatherv_init_c => gatherv;
    MPI_Scatter, MPI_Scatter_c, MPI_Iscatter, MPI_Iscatter_c, MPI_Scatter_init, MPI_Scatter_init_c => scatter;
    MPI_Scatterv, MPI_Scatterv_c, MPI_Iscatterv, MPI_Iscatterv_c, MPI_Scatterv_init, MPI_Scatterv_init_c => scatterv;
    MPI_Allgather, MPI_Allgather_c, MPI_Iallgather, MPI_Iallgather_c, MPI_Allgather_init, MPI_Allgather_init_c
        => allgather;
    MPI_Allgatherv, MPI_Allgatherv_c, MPI_Iallgatherv, MPI_Iallgatherv_c, MPI_Allgatherv_init, MPI_Allgatherv_init_c
        => allgatherv;
    MPI_Alltoall, MPI_Alltoall_c, MPI_Ialltoall, MPI_Ialltoall_c, MPI_Alltoall_init, MPI_Alltoall_init_c => alltoall;
    MPI_Alltoallv, MPI_Alltoallv_c, MPI_Ialltoallv, MPI_Ialltoallv_c, MPI_Alltoallv_init, MPI_Alltoallv_init_c
        => alltoallv;
    MPI_Alltoallw, MPI_Alltoallw_c, MPI_Ialltoallw, MPI_Ialltoallw_c, MPI_Alltoallw_init, MPI_Alltoallw_init_c
        => alltoallw;
}
