//! Collectives among neighbours in a grid or a graph (MPI-5.0 section 8.6). One function serves all forms of blocks.

use super::buffer::Blocked;
use super::{Collective, collectives};
use crate::call::Outcome;
use crate::datatype::Data;

/// MPI_Neighbor_allgather and MPI_Neighbor_allgatherv.
unsafe fn allgather(send: Data, receive: impl Blocked, call: Collective) -> Outcome {
    let core = &call.comm.core;
    let sources = core.neighbours()?.sources.len() as u32;
    // SAFETY: FC1.
    let (sent, (output, division)) =
        unsafe { (send.input()?, receive.parts(sources, "recvcount")?.output()) };
    let plan = core.neighbour_allgather(sent, output, division.blocks())?;
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Neighbor_alltoall, MPI_Neighbor_alltoallv and MPI_Neighbor_alltoallw.
unsafe fn alltoall(send: impl Blocked, receive: impl Blocked, call: Collective) -> Outcome {
    let core = &call.comm.core;
    let neighbours = core.neighbours()?;
    let destinations = neighbours.destinations.len() as u32;
    // SAFETY: FC1.
    let ((input, sent), (output, received)) = unsafe {
        (
            send.parts(destinations, "sendcount")?.input(),
            receive.parts(neighbours.sources.len() as u32, "recvcount")?.output(),
        )
    };
    let plan = core.neighbour_alltoall((input, sent.blocks()), output, received.blocks())?;
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

collectives! {
    MPI_Neighbor_allgather, MPI_Neighbor_allgather_c, MPI_Ineighbor_allgather, MPI_Ineighbor_allgather_c,
    MPI_Neighbor_allgather_init, MPI_Neighbor_allgather_init_c => allgather;
    MPI_Neighbor_allgatherv, MPI_Neighbor_allgatherv_c, MPI_Ineighbor_allgatherv, MPI_Ineighbor_allgatherv_c,
    MPI_Neighbor_allgatherv_init, MPI_Neighbor_allgatherv_init_c => allgather;
    MPI_Neighbor_alltoall, MPI_Neighbor_alltoall_c, MPI_Ineighbor_alltoall, MPI_Ineighbor_alltoall_c,
    MPI_Neighbor_alltoall_init, MPI_Neighbor_alltoall_init_c => alltoall;
    MPI_Neighbor_alltoallv, MPI_Neighbor_alltoallv_c, MPI_Ineighbor_alltoallv, MPI_Ineighbor_alltoallv_c,
    MPI_Neighbor_alltoallv_init, MPI_Neighbor_alltoallv_init_c => alltoall;
    MPI_Neighbor_alltoallw, MPI_Neighbor_alltoallw_c, MPI_Ineighbor_alltoallw, MPI_Ineighbor_alltoallw_c,
    MPI_Neighbor_alltoallw_init, MPI_Neighbor_alltoallw_init_c => alltoall;
}
