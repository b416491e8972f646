//! Collectives among neighbours in a grid or a graph (MPI-5.0 section 8.6).

use std::ffi::c_void;

use super::buffer::{Data, Number, Parts};
use super::{Collective, Form, collectives};
use crate::abi::*;
use crate::call::Outcome;

/// A call among neighbours, with the number of those to which a rank sends, and from which it receives.
struct Among {
    call: Collective,
    destinations: u32,
    sources: u32,
}

impl Among {
    /// Begins a call.
    ///
    /// # Errors
    /// MPI_ERR_COMM, MPI_ERR_ARG; MPI_ERR_TOPOLOGY if there are no neighbours.
    fn begin(comm: MPI_Comm, form: Form) -> Outcome<Self> {
        let call = Collective::begin(comm, form)?;
        let neighbours = call.comm.core.neighbours()?;
        let destinations = neighbours.destinations.len() as u32;
        Ok(Self { call, destinations, sources: neighbours.sources.len() as u32 })
    }

    unsafe fn allgather(&self, send: Data, parts: &Parts) -> Outcome {
        // SAFETY: FC1.
        let (sent, output) = unsafe { (send.input()?, parts.output()?) };
        let plan = self.call.comm.core.neighbour_allgather(sent, output, parts.blocks())?;
        // SAFETY: FC1.
        unsafe { self.call.finish(plan) }
    }

    unsafe fn alltoall(&self, sent: &Parts, received: &Parts) -> Outcome {
        // SAFETY: FC1.
        let (input, output) = unsafe { (sent.input()?, received.output()?) };
        let core = &self.call.comm.core;
        let plan = core.neighbour_alltoall((input, sent.blocks()), output, received.blocks())?;
        // SAFETY: FC1.
        unsafe { self.call.finish(plan) }
    }
}

/// MPI_Neighbor_allgather.
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
    let among = Among::begin(comm, form)?;
    let send = Data { buffer: sendbuf, count: sendcount.into(), datatype: sendtype };
    let receive = Data { buffer: recvbuf, count: recvcount.into(), datatype: recvtype };
    let parts = Parts::equal(among.sources, receive, "recvcount")?;
    // SAFETY: FC1.
    unsafe { among.allgather(send, &parts) }
}

/// MPI_Neighbor_allgatherv.
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
    let among = Among::begin(comm, form)?;
    let send = Data { buffer: sendbuf, count: sendcount.into(), datatype: sendtype };
    // SAFETY: FC1.
    unsafe {
        let parts = Parts::listed(among.sources, recvbuf, recvcounts, displs, recvtype)?;
        among.allgather(send, &parts)
    }
}

/// MPI_Neighbor_alltoall.
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
    let among = Among::begin(comm, form)?;
    let send = Data { buffer: sendbuf, count: sendcount.into(), datatype: sendtype };
    let receive = Data { buffer: recvbuf, count: recvcount.into(), datatype: recvtype };
    let sent = Parts::equal(among.destinations, send, "sendcount")?;
    let received = Parts::equal(among.sources, receive, "recvcount")?;
    // SAFETY: FC1.
    unsafe { among.alltoall(&sent, &received) }
}

/// MPI_Neighbor_alltoallv.
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
    let among = Among::begin(comm, form)?;
    // SAFETY: FC1.
    unsafe {
        let sent = Parts::listed(among.destinations, sendbuf, sendcounts, sdispls, sendtype)?;
        let received = Parts::listed(among.sources, recvbuf, recvcounts, rdispls, recvtype)?;
        among.alltoall(&sent, &received)
    }
}

/// MPI_Neighbor_alltoallw.
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
    let among = Among::begin(comm, form)?;
    // SAFETY: FC1.
    unsafe {
        let sent = Parts::typed(among.destinations, sendbuf, sendcounts, sdispls, sendtypes)?;
        let received = Parts::typed(among.sources, recvbuf, recvcounts, rdispls, recvtypes)?;
        among.alltoall(&sent, &received)
    }
}

collectives! {
    MPI_Neighbor_allgather, MPI_Neighbor_allgather_c, MPI_Ineighbor_allgather, MPI_Ineighbor_allgather_c,
    MPI_Neighbor_allgather_init, MPI_Neighbor_allgather_init_c => allgather;
    MPI_Neighbor_allgatherv, MPI_Neighbor_allgatherv_c, MPI_Ineighbor_allgatherv, MPI_Ineighbor_allgatherv_c,
    MPI_Neighbor_allgatherv_init, MPI_Neighbor_allgatherv_init_c => allgatherv;
    MPI_Neighbor_alltoall, MPI_Neighbor_alltoall_c, MPI_Ineighbor_alltoall, MPI_Ineighbor_alltoall_c,
    MPI_Neighbor_alltoall_init, MPI_Neighbor_alltoall_init_c => alltoall;
    MPI_Neighbor_alltoallv, MPI_Neighbor_alltoallv_c, MPI_Ineighbor_alltoallv, MPI_Ineighbor_alltoallv_c,
    MPI_Neighbor_alltoallv_init, MPI_Neighbor_alltoallv_init_c => alltoallv;
    MPI_Neighbor_alltoallw, MPI_Neighbor_alltoallw_c, MPI_Ineighbor_alltoallw, MPI_Ineighbor_alltoallw_c,
    MPI_Neighbor_alltoallw_init, MPI_Neighbor_alltoallw_init_c => alltoallw;
}
