//! The interface for tools (MPI-5.0 section 15.3). This library has no control variables, performance variables,
//! events, sources or categories, so there are zero of each, and no index, name or handle of one is valid.
//!
//! Tools call it before MPI_Init and after MPI_Finalize. Its errors are returned, and never go to error handlers.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::abi::*;
use crate::call::mpi_value;
use crate::process::thread_level;

/// How often MPI_T_init_thread was called, less the calls of MPI_T_finalize.
static USERS: AtomicUsize = AtomicUsize::new(0);

/// Returns a code, or that of a tool that has not initialized the interface.
fn if_initialized(code: c_int) -> c_int {
    if USERS.load(Ordering::Relaxed) > 0 { code } else { MPI_T_ERR_NOT_INITIALIZED }
}

/// Writes the number of things of a kind.
///
/// # Safety
/// The place is null or may be written: FC1.
unsafe fn none(place: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    match (if_initialized(MPI_SUCCESS), unsafe { place.as_mut() }) {
        (MPI_SUCCESS, Some(place)) => {
            *place = 0;
            MPI_SUCCESS
        }
        (MPI_SUCCESS, None) => MPI_T_ERR_INVALID,
        (code, _) => code,
    }
}

mpi_value! {
    fn MPI_T_init_thread(required: c_int, provided: *mut c_int) -> c_int {
        // SAFETY: FC1.
        match unsafe { provided.as_mut() } {
            Some(provided) => *provided = thread_level(required),
            None => return MPI_T_ERR_INVALID,
        }
        USERS.fetch_add(1, Ordering::Relaxed);
        MPI_SUCCESS
    }

    fn MPI_T_finalize() -> c_int {
        let less = |users: usize| users.checked_sub(1);
        match USERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
            Ok(_) => MPI_SUCCESS,
            Err(_) => MPI_T_ERR_NOT_INITIALIZED,
        }
    }

    fn MPI_T_cvar_get_num(num_cvar: *mut c_int) -> c_int {
        // SAFETY: FC1.
        unsafe { none(num_cvar) }
    }

    fn MPI_T_pvar_get_num(num_pvar: *mut c_int) -> c_int {
        // SAFETY: FC1.
        unsafe { none(num_pvar) }
    }

    fn MPI_T_event_get_num(num_events: *mut c_int) -> c_int {
        // SAFETY: FC1.
        unsafe { none(num_events) }
    }

    fn MPI_T_source_get_num(num_sources: *mut c_int) -> c_int {
        // SAFETY: FC1.
        unsafe { none(num_sources) }
    }

    fn MPI_T_category_get_num(num_cat: *mut c_int) -> c_int {
        // SAFETY: FC1.
        unsafe { none(num_cat) }
    }

    // The categories have never changed.
    fn MPI_T_category_changed(update_number: *mut c_int) -> c_int {
        // SAFETY: FC1.
        unsafe { none(update_number) }
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
        mpi_value! {
            fn $name($($arg: $ty),*) -> c_int {
                let _ = ($($arg,)*);
                if_initialized($code)
            }
        }
    };
}

refuse! {
    MPI_T_ERR_INVALID_INDEX:
    MPI_T_category_get_categories, MPI_T_category_get_cvars, MPI_T_category_get_events, MPI_T_category_get_info,
    MPI_T_category_get_num_events, MPI_T_category_get_pvars, MPI_T_cvar_get_info, MPI_T_cvar_handle_alloc,
    MPI_T_event_get_info, MPI_T_event_handle_alloc, MPI_T_pvar_get_info, MPI_T_source_get_info,
    MPI_T_source_get_timestamp,
}

refuse! {
    MPI_T_ERR_INVALID_NAME:
    MPI_T_category_get_index, MPI_T_cvar_get_index, MPI_T_event_get_index, MPI_T_pvar_get_index,
}

refuse! {
    MPI_T_ERR_INVALID_HANDLE:
    MPI_T_cvar_handle_free, MPI_T_cvar_read, MPI_T_cvar_write, MPI_T_enum_get_info, MPI_T_enum_get_item,
    MPI_T_event_callback_get_info, MPI_T_event_callback_set_info, MPI_T_event_copy, MPI_T_event_get_source,
    MPI_T_event_get_timestamp, MPI_T_event_handle_free, MPI_T_event_handle_get_info, MPI_T_event_handle_set_info,
    MPI_T_event_read, MPI_T_event_register_callback, MPI_T_event_set_dropped_handler,
}

refuse! {
    MPI_T_ERR_OUT_OF_SESSIONS:
    MPI_T_pvar_session_create,
}

refuse! {
    MPI_T_ERR_INVALID_SESSION:
    MPI_T_pvar_handle_alloc, MPI_T_pvar_handle_free, MPI_T_pvar_read, MPI_T_pvar_readreset, MPI_T_pvar_reset,
    MPI_T_pvar_session_free, MPI_T_pvar_start, MPI_T_pvar_stop, MPI_T_pvar_write,
}
