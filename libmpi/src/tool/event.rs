//! Events and their sources (MPI-5.0 section 15.3.8): there are none, so no index, name or handle of one is valid.

use super::{tool, write};
use crate::abi::*;

tool! {
    fn MPI_T_event_get_num(num_events: *mut c_int) -> c_int {
        write(num_events, 0)
    }

    fn MPI_T_source_get_num(num_sources: *mut c_int) -> c_int {
        write(num_sources, 0)
    }
}

/// Defines functions by their names. They answer one code.
macro_rules! refuse {
    ($code:ident: $($name:ident),* $(,)?) => {
        $(by_name! { $name, [refused] $code })*
    };
}

/// Defines a function that answers one code.
macro_rules! refused {
    (fn $name:ident($($arg:ident: $ty:ty),*) -> c_int; $code:ident) => {
        tool! {
            fn $name($($arg: $ty),*) -> c_int {
                let _ = ($($arg,)*);
                Err($code)
            }
        }
    };
}

refuse! {
    MPI_T_ERR_INVALID_INDEX:
    MPI_T_event_get_info, MPI_T_event_handle_alloc, MPI_T_source_get_info, MPI_T_source_get_timestamp,
}

refuse! {
    MPI_T_ERR_INVALID_NAME:
    MPI_T_event_get_index,
}

refuse! {
    MPI_T_ERR_INVALID_HANDLE:
    MPI_T_event_callback_get_info, MPI_T_event_callback_set_info, MPI_T_event_copy, MPI_T_event_get_source,
    MPI_T_event_get_timestamp, MPI_T_event_handle_free, MPI_T_event_handle_get_info, MPI_T_event_handle_set_info,
    MPI_T_event_read, MPI_T_event_register_callback, MPI_T_event_set_dropped_handler,
}
