//! The functions that answer MPI_ERR_UNSUPPORTED_OPERATION, by chapter of the standard. A chapter that is written takes
//! its names out of here.

use super::{Fault, mpi_anytime};
use crate::abi::{MPI_ERR_UNSUPPORTED_OPERATION, by_name};
use crate::error::handler::FILES;

/// Defines functions by their names. They answer MPI_ERR_UNSUPPORTED_OPERATION.
macro_rules! unsupported {
    ($($name:ident),* $(,)?) => {
        $(by_name! { $name, [unsupported_function] unsupported_here() })*
    };
}

/// Like `unsupported!`, for functions on files.
macro_rules! unsupported_file {
    ($($name:ident),* $(,)?) => {
        $(by_name! { $name, [unsupported_function] unsupported_here().handled_by(&FILES.get()) })*
    };
}

/// Defines a function that fails.
macro_rules! unsupported_function {
    (fn $name:ident($($arg:ident: $ty:ty),*) -> c_int; $fault:expr) => {
        mpi_anytime! {
            fn $name($($arg: $ty),*) -> c_int {
                Err($fault)
            }
        }
    };
}

/// Returns the error of a function that is not supported.
#[cold]
fn unsupported_here() -> Fault {
    Fault::new(MPI_ERR_UNSUPPORTED_OPERATION, "this library does not support the function")
}

// One-sided communication (chapter 12).
unsupported! {
    MPI_Accumulate, MPI_Accumulate_c, MPI_Compare_and_swap, MPI_Fetch_and_op, MPI_Get, MPI_Get_c,
    MPI_Get_accumulate, MPI_Get_accumulate_c, MPI_Put, MPI_Put_c, MPI_Raccumulate, MPI_Raccumulate_c, MPI_Rget,
    MPI_Rget_c, MPI_Rget_accumulate, MPI_Rget_accumulate_c, MPI_Rput, MPI_Rput_c, MPI_Win_allocate,
    MPI_Win_allocate_c, MPI_Win_allocate_shared, MPI_Win_allocate_shared_c, MPI_Win_attach, MPI_Win_complete,
    MPI_Win_create, MPI_Win_create_c, MPI_Win_create_dynamic, MPI_Win_create_keyval, MPI_Win_delete_attr,
    MPI_Win_detach, MPI_Win_fence, MPI_Win_flush, MPI_Win_flush_all, MPI_Win_flush_local, MPI_Win_flush_local_all,
    MPI_Win_free, MPI_Win_free_keyval, MPI_Win_get_attr, MPI_Win_get_group, MPI_Win_get_info, MPI_Win_get_name,
    MPI_Win_lock, MPI_Win_lock_all, MPI_Win_post, MPI_Win_set_attr, MPI_Win_set_info, MPI_Win_set_name,
    MPI_Win_shared_query, MPI_Win_shared_query_c, MPI_Win_start, MPI_Win_sync, MPI_Win_test, MPI_Win_unlock,
    MPI_Win_unlock_all, MPI_Win_wait,
}

// Process creation and management (chapter 11).
unsupported! {
    MPI_Close_port, MPI_Comm_accept, MPI_Comm_connect, MPI_Comm_join, MPI_Comm_spawn, MPI_Comm_spawn_multiple,
    MPI_Lookup_name, MPI_Open_port, MPI_Publish_name, MPI_Unpublish_name,
}

// Files (chapter 14). There is no file but MPI_FILE_NULL, whose error handler gets the errors.
unsupported_file! {
    MPI_File_close, MPI_File_delete, MPI_File_get_amode, MPI_File_get_atomicity, MPI_File_get_byte_offset,
    MPI_File_get_group, MPI_File_get_info, MPI_File_get_position, MPI_File_get_position_shared, MPI_File_get_size,
    MPI_File_get_type_extent, MPI_File_get_type_extent_c, MPI_File_get_view, MPI_File_iread, MPI_File_iread_c,
    MPI_File_iread_all, MPI_File_iread_all_c, MPI_File_iread_at, MPI_File_iread_at_c, MPI_File_iread_at_all,
    MPI_File_iread_at_all_c, MPI_File_iread_shared, MPI_File_iread_shared_c, MPI_File_iwrite, MPI_File_iwrite_c,
    MPI_File_iwrite_all, MPI_File_iwrite_all_c, MPI_File_iwrite_at, MPI_File_iwrite_at_c, MPI_File_iwrite_at_all,
    MPI_File_iwrite_at_all_c, MPI_File_iwrite_shared, MPI_File_iwrite_shared_c, MPI_File_open, MPI_File_preallocate,
    MPI_File_read, MPI_File_read_c, MPI_File_read_all, MPI_File_read_all_c, MPI_File_read_all_begin,
    MPI_File_read_all_begin_c, MPI_File_read_all_end, MPI_File_read_at, MPI_File_read_at_c, MPI_File_read_at_all,
    MPI_File_read_at_all_c, MPI_File_read_at_all_begin, MPI_File_read_at_all_begin_c, MPI_File_read_at_all_end,
    MPI_File_read_ordered, MPI_File_read_ordered_c, MPI_File_read_ordered_begin, MPI_File_read_ordered_begin_c,
    MPI_File_read_ordered_end, MPI_File_read_shared, MPI_File_read_shared_c, MPI_File_seek, MPI_File_seek_shared,
    MPI_File_set_atomicity, MPI_File_set_info, MPI_File_set_size, MPI_File_set_view, MPI_File_sync, MPI_File_write,
    MPI_File_write_c, MPI_File_write_all, MPI_File_write_all_c, MPI_File_write_all_begin,
    MPI_File_write_all_begin_c, MPI_File_write_all_end, MPI_File_write_at, MPI_File_write_at_c,
    MPI_File_write_at_all, MPI_File_write_at_all_c, MPI_File_write_at_all_begin, MPI_File_write_at_all_begin_c,
    MPI_File_write_at_all_end, MPI_File_write_ordered, MPI_File_write_ordered_c, MPI_File_write_ordered_begin,
    MPI_File_write_ordered_begin_c, MPI_File_write_ordered_end, MPI_File_write_shared, MPI_File_write_shared_c,
    MPI_Register_datarep, MPI_Register_datarep_c,
}

// Sessions (chapter 11).
unsupported! {
    MPI_Session_attach_buffer, MPI_Session_attach_buffer_c, MPI_Session_detach_buffer, MPI_Session_detach_buffer_c,
    MPI_Session_flush_buffer, MPI_Session_iflush_buffer,
}
