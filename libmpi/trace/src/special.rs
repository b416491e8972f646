//! The functions that are recorded in a way of their own: those that begin and end a program's part in the job, waits and
//! tests, starts of persistent requests, the ends of communicators, and marks.

use std::collections::HashMap;
use std::ffi::{c_char, c_int};
use std::sync::Mutex;

use transport_lapi::bootstrap::trace::{self, Kind};

use crate::abi::*;
use crate::communicator;
use crate::site::Site;

/// Defines functions, each with a body that passes the call on as `next`. While nothing is recorded it is only passed on.
macro_rules! special {
    ($(fn $name:ident($($arg:ident: $ty:ty),*) as $kind:ident, $twin:literal, |$next:ident, $call:ident| $body:block)+) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> c_int {
            static SITE: Site = Site::new($twin, Kind::$kind);
            type Next = unsafe extern "C-unwind" fn($($ty),*) -> c_int;
            // SAFETY: TP1.
            let Some($next) = (unsafe { SITE.next::<Next>() }) else { return MPI_ERR_OTHER };
            // SAFETY: TP2.
            let Some($call) = SITE.begin() else { return unsafe { $next($($arg),*) } };
            // SAFETY: TP2.
            let code = unsafe { $body };
            $call.end();
            code
        }
    )+};
}

/// Begins to record, once the program has joined its job.
macro_rules! beginning {
    ($name:ident($($arg:ident: $ty:ty),*), $twin:literal, $world:literal) => {
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> c_int {
            static SITE: Site = Site::new($twin, Kind::Other);
            type Next = unsafe extern "C-unwind" fn($($ty),*) -> c_int;
            // SAFETY: TP1.
            let Some(next) = (unsafe { SITE.next::<Next>() }) else { return MPI_ERR_OTHER };
            trace::join();
            let call = SITE.begin();
            // SAFETY: TP2.
            let code = unsafe { next($($arg),*) };
            if let Some(call) = call {
                if $world && code == MPI_SUCCESS {
                    communicator::world_made();
                }
                call.end();
            }
            code
        }
    };
}

beginning!(MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_char), c"PMPI_Init", true);
beginning!(
    MPI_Init_thread(argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int),
    c"PMPI_Init_thread",
    true
);
// Such a program may never have a world.
beginning!(
    MPI_Session_init(info: MPI_Info, errhandler: MPI_Errhandler, session: *mut MPI_Session),
    c"PMPI_Session_init",
    false
);

/// The most requests of a call for which no memory is allocated.
const FEW: usize = 16;

/// Runs a call for a list of requests. `run` gets the statuses, and the requests as they were.
///
/// # Safety
/// The lists are as long as is said, or the second is null.
unsafe fn with_lists(
    count: c_int,
    requests: *const MPI_Request,
    statuses: *mut MPI_Status,
    run: impl FnOnce(*mut MPI_Status, &[MPI_Request]) -> c_int,
) -> c_int {
    let len = if requests.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    let (mut few_handles, mut few_statuses) = ([MPI_REQUEST_NULL; FEW], [MPI_Status::EMPTY; FEW]);
    let (mut many_handles, mut many_statuses) = (Vec::new(), Vec::new());
    if len > FEW {
        many_handles.resize(len, MPI_REQUEST_NULL);
    }
    let handles = if len > FEW { &mut many_handles[..] } else { &mut few_handles[..len] };
    // The requests change during the call.
    if len > 0 {
        // SAFETY: the caller's promise.
        handles.copy_from_slice(unsafe { std::slice::from_raw_parts(requests, len) });
    }
    let statuses = match statuses.is_null() {
        false => statuses,
        true if len <= FEW => few_statuses.as_mut_ptr(),
        true => {
            many_statuses.resize(len, MPI_Status::EMPTY);
            many_statuses.as_mut_ptr()
        }
    };
    run(statuses, handles)
}

/// Whether a call for a list has results, which it also has if single operations have failed.
fn has_results(code: c_int) -> bool {
    code == MPI_SUCCESS || code == MPI_ERR_IN_STATUS
}

special! {
    fn MPI_Finalize() as Other, c"PMPI_Finalize", |next, call| { next() }

    fn MPI_Comm_free(comm: *mut MPI_Comm) as Other, c"PMPI_Comm_free", |next, call| {
        let handle = if comm.is_null() { MPI_COMM_NULL } else { *comm };
        call.within(handle);
        let code = next(comm);
        communicator::freed(handle);
        code
    }

    fn MPI_Comm_disconnect(comm: *mut MPI_Comm) as Other, c"PMPI_Comm_disconnect", |next, call| {
        let handle = if comm.is_null() { MPI_COMM_NULL } else { *comm };
        call.within(handle);
        let code = next(comm);
        communicator::freed(handle);
        code
    }

    fn MPI_Request_free(request: *mut MPI_Request) as Other, c"PMPI_Request_free", |next, call| {
        if !request.is_null() {
            communicator::request_freed(*request);
        }
        next(request)
    }

    fn MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) as Wait, c"PMPI_Wait", |next, call| {
        let handle = if request.is_null() { MPI_REQUEST_NULL } else { *request };
        let mut own = MPI_Status::EMPTY;
        let status = if status.is_null() { &raw mut own } else { status };
        let code = next(request, status);
        if code == MPI_SUCCESS {
            call.ended(handle, *status);
        }
        code
    }

    fn MPI_Test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status) as Wait, c"PMPI_Test", |next, call| {
        let handle = if request.is_null() { MPI_REQUEST_NULL } else { *request };
        let mut own = MPI_Status::EMPTY;
        let status = if status.is_null() { &raw mut own } else { status };
        let code = next(request, flag, status);
        if code == MPI_SUCCESS && (*flag == 0 || handle == MPI_REQUEST_NULL) {
            call.forget();
            return code;
        }
        if code == MPI_SUCCESS {
            call.ended(handle, *status);
        }
        code
    }

    fn MPI_Waitall(count: c_int, requests: *mut MPI_Request, statuses: *mut MPI_Status) as Wait, c"PMPI_Waitall", |next, call| {
        with_lists(count, requests, statuses, |statuses, handles| {
            let code = next(count, requests, statuses);
            if code == MPI_SUCCESS {
                handles.iter().enumerate().for_each(|(at, handle)| call.ended(*handle, *statuses.add(at)));
            }
            code
        })
    }

    fn MPI_Testall(count: c_int, requests: *mut MPI_Request, flag: *mut c_int, statuses: *mut MPI_Status) as Wait, c"PMPI_Testall", |next, call| {
        let mut is_forgotten = false;
        let code = with_lists(count, requests, statuses, |statuses, handles| {
            let code = next(count, requests, flag, statuses);
            is_forgotten = code == MPI_SUCCESS && *flag == 0;
            if code == MPI_SUCCESS && *flag != 0 {
                handles.iter().enumerate().for_each(|(at, handle)| call.ended(*handle, *statuses.add(at)));
            }
            code
        });
        if is_forgotten {
            call.forget();
            return code;
        }
        code
    }

    fn MPI_Waitany(count: c_int, requests: *mut MPI_Request, index: *mut c_int, status: *mut MPI_Status) as Wait, c"PMPI_Waitany", |next, call| {
        let mut own = MPI_Status::EMPTY;
        let status = if status.is_null() { &raw mut own } else { status };
        with_lists(count, requests, status, |status, handles| {
            let code = next(count, requests, index, status);
            let ended = handles.get(usize::try_from(*index).unwrap_or(usize::MAX));
            if let (MPI_SUCCESS, Some(handle)) = (code, ended) {
                call.ended(*handle, *status);
            }
            code
        })
    }

    fn MPI_Testany(count: c_int, requests: *mut MPI_Request, index: *mut c_int, flag: *mut c_int, status: *mut MPI_Status) as Wait, c"PMPI_Testany", |next, call| {
        let mut own = MPI_Status::EMPTY;
        let status = if status.is_null() { &raw mut own } else { status };
        let mut is_forgotten = false;
        let code = with_lists(count, requests, status, |status, handles| {
            let code = next(count, requests, index, flag, status);
            is_forgotten = code == MPI_SUCCESS && (*flag == 0 || *index == MPI_UNDEFINED);
            let ended = handles.get(usize::try_from(*index).unwrap_or(usize::MAX));
            if let (MPI_SUCCESS, false, Some(handle)) = (code, is_forgotten, ended) {
                call.ended(*handle, *status);
            }
            code
        });
        if is_forgotten {
            call.forget();
            return code;
        }
        code
    }

    fn MPI_Waitsome(incount: c_int, requests: *mut MPI_Request, outcount: *mut c_int, indices: *mut c_int, statuses: *mut MPI_Status) as Wait, c"PMPI_Waitsome", |next, call| {
        with_lists(incount, requests, statuses, |statuses, handles| {
            let code = next(incount, requests, outcount, indices, statuses);
            if has_results(code) {
                let ended = usize::try_from(*outcount).unwrap_or(0);
                (0..ended).for_each(|at| {
                    let handle = handles.get(*indices.add(at) as usize);
                    handle.into_iter().for_each(|handle| call.ended(*handle, *statuses.add(at)));
                });
            }
            code
        })
    }

    fn MPI_Testsome(incount: c_int, requests: *mut MPI_Request, outcount: *mut c_int, indices: *mut c_int, statuses: *mut MPI_Status) as Wait, c"PMPI_Testsome", |next, call| {
        let mut is_forgotten = false;
        let code = with_lists(incount, requests, statuses, |statuses, handles| {
            let code = next(incount, requests, outcount, indices, statuses);
            let ended = if has_results(code) { usize::try_from(*outcount).unwrap_or(0) } else { 0 };
            is_forgotten = ended == 0;
            (0..ended).for_each(|at| {
                let handle = handles.get(*indices.add(at) as usize);
                handle.into_iter().for_each(|handle| call.ended(*handle, *statuses.add(at)));
            });
            code
        });
        if is_forgotten {
            call.forget();
            return code;
        }
        code
    }

    fn MPI_Start(request: *mut MPI_Request) as Start, c"PMPI_Start", |next, call| {
        if !request.is_null() {
            call.entry().request(*request as u64);
        }
        next(request)
    }

    fn MPI_Startall(count: c_int, requests: *mut MPI_Request) as Other, c"PMPI_Startall", |next, call| {
        let len = if requests.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
        std::slice::from_raw_parts(if len == 0 { std::ptr::NonNull::dangling().as_ptr() } else { requests }, len)
            .iter()
            .for_each(|request| call.started(*request));
        next(count, requests)
    }
}

/// The most levels of MPI_Pcontrol that have a name of their own.
const LEVELS: usize = 64;

/// Marks a moment.
#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn MPI_Pcontrol(level: c_int) -> c_int {
    static SITE: Site = Site::new(c"PMPI_Pcontrol", Kind::Mark);
    static NAMES: Mutex<Option<HashMap<c_int, u32>>> = Mutex::new(None);
    type Next = unsafe extern "C-unwind" fn(c_int) -> c_int;
    if let (Some(call), Some(recorder)) = (SITE.begin(), trace::recorder()) {
        if let Ok(mut names) = NAMES.lock() {
            let names = names.get_or_insert_default();
            if names.len() < LEVELS || names.contains_key(&level) {
                let text = || recorder.text(&format!("MPI_Pcontrol({level})"));
                call.entry().name(*names.entry(level).or_insert_with(text));
            }
        }
        call.end();
    }
    // SAFETY: TP1, TP2.
    unsafe { SITE.next::<Next>().map_or(MPI_ERR_OTHER, |next| next(level)) }
}
