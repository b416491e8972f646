//! The functions that are recorded, by what they do; their forms for large counts are recorded, too. A few are defined by
//! hand, in `src/special.rs`.

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Send,
    Receive,
    Exchange,
    Probe,
    Collective,
    OneSided,
    File,
    SendInit,
    ReceiveInit,
    Other,
}

impl Kind {
    /// Whether it is recorded which request a call has made, since a wait for it says something of this call.
    pub fn has_request(self) -> bool {
        use Kind::{Exchange, Receive, ReceiveInit, Send, SendInit};
        matches!(self, Send | Receive | Exchange | SendInit | ReceiveInit)
    }
}

/// All functions, without the prefix.
pub const CALLS: &[(Kind, &str)] = &[
    (Kind::Send, "Send Bsend Ssend Rsend Isend Ibsend Issend Irsend"),
    (Kind::Receive, "Recv Irecv Mrecv Imrecv"),
    (Kind::Exchange, "Sendrecv Sendrecv_replace Isendrecv Isendrecv_replace"),
    (Kind::Probe, "Probe Iprobe Mprobe Improbe"),
    (Kind::SendInit, "Send_init Bsend_init Ssend_init Rsend_init"),
    (Kind::ReceiveInit, "Recv_init"),
    (Kind::Other, "Psend_init Precv_init Pready Pready_range Pready_list"),
    (Kind::Other, "Buffer_detach Buffer_flush Comm_detach_buffer Comm_flush_buffer"),
    (Kind::Collective, "Barrier Bcast Gather Gatherv Scatter Scatterv Allgather Allgatherv"),
    (Kind::Collective, "Alltoall Alltoallv Alltoallw Reduce Allreduce Reduce_scatter"),
    (Kind::Collective, "Reduce_scatter_block Scan Exscan"),
    (Kind::Collective, "Neighbor_allgather Neighbor_allgatherv Neighbor_alltoall"),
    (Kind::Collective, "Neighbor_alltoallv Neighbor_alltoallw"),
    (Kind::Collective, "Ibarrier Ibcast Igather Igatherv Iscatter Iscatterv Iallgather"),
    (Kind::Collective, "Iallgatherv Ialltoall Ialltoallv Ialltoallw Ireduce Iallreduce"),
    (Kind::Collective, "Ireduce_scatter Ireduce_scatter_block Iscan Iexscan"),
    (Kind::Collective, "Ineighbor_allgather Ineighbor_allgatherv Ineighbor_alltoall"),
    (Kind::Collective, "Ineighbor_alltoallv Ineighbor_alltoallw"),
    (Kind::Collective, "Comm_dup Comm_dup_with_info Comm_idup Comm_idup_with_info Comm_split"),
    (Kind::Collective, "Comm_split_type Comm_create Cart_create Cart_sub Graph_create"),
    (Kind::Collective, "Dist_graph_create Dist_graph_create_adjacent Intercomm_create"),
    (Kind::Collective, "Intercomm_merge Comm_spawn Comm_spawn_multiple Comm_accept Comm_connect"),
    (Kind::Collective, "Win_create Win_create_dynamic Win_allocate Win_allocate_shared File_open"),
    (Kind::Other, "Comm_create_group Comm_create_from_group Intercomm_create_from_groups"),
    (Kind::Other, "Comm_join Comm_get_parent"),
    (Kind::OneSided, "Put Get Accumulate Get_accumulate Fetch_and_op Compare_and_swap"),
    (Kind::OneSided, "Rput Rget Raccumulate Rget_accumulate"),
    (Kind::OneSided, "Win_fence Win_start Win_complete Win_post Win_wait Win_lock Win_lock_all"),
    (Kind::OneSided, "Win_unlock Win_unlock_all Win_flush Win_flush_all Win_flush_local"),
    (Kind::OneSided, "Win_flush_local_all Win_sync Win_free"),
    (Kind::File, "File_delete File_set_size File_preallocate File_set_view File_seek"),
    (Kind::File, "File_seek_shared File_set_atomicity File_sync"),
    (Kind::File, "File_read File_read_all File_read_at File_read_at_all File_read_shared"),
    (Kind::File, "File_read_ordered File_write File_write_all File_write_at File_write_at_all"),
    (Kind::File, "File_write_shared File_write_ordered"),
    (Kind::File, "File_iread File_iread_all File_iread_at File_iread_at_all File_iread_shared"),
    (Kind::File, "File_iwrite File_iwrite_all File_iwrite_at File_iwrite_at_all"),
    (Kind::File, "File_iwrite_shared File_read_all_begin File_read_all_end"),
    (Kind::File, "File_read_at_all_begin File_read_at_all_end File_read_ordered_begin"),
    (Kind::File, "File_read_ordered_end File_write_all_begin File_write_all_end"),
    (Kind::File, "File_write_at_all_begin File_write_at_all_end File_write_ordered_begin"),
    (Kind::File, "File_write_ordered_end File_close"),
];
