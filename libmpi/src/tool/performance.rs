//! Performance variables (MPI-5.0 section 15.3.7): the counters of the process's messages. Each handle counts by itself,
//! from the moment at which it is started; levels and peaks are always those of the whole process.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpjdev::{COUNTERS, Counter, CounterKind};

use super::{Answer, at, index, put, put_text, tool, write};
use crate::abi::*;
use crate::process;

impl MPI_T_pvar_session {
    /// Finds the session among those that are open.
    fn of(self, sessions: &mut Sessions) -> Answer<&mut Session> {
        sessions.open.get_mut(&self.0).ok_or(MPI_T_ERR_INVALID_SESSION)
    }
}

/// The handles of a session by their numbers.
type Session = BTreeMap<usize, Handle>;

/// What tools have made.
struct Sessions {
    open: BTreeMap<usize, Session>,
    /// The number of the next session or handle. The first ones are those of the constants.
    next: usize,
}

static SESSIONS: Mutex<Sessions> =
    Mutex::new(Sessions { open: BTreeMap::new(), next: MPI_T_PVAR_ALL_HANDLES.0 + 1 });

fn sessions() -> MutexGuard<'static, Sessions> {
    SESSIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all sessions.
pub(super) fn end_sessions() {
    sessions().open.clear();
}

impl Sessions {
    fn number(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }
}

/// A handle of a variable.
struct Handle {
    counter: &'static Counter,
    /// What was counted up to the last stop, reset or write.
    counted: u64,
    /// The counter of the process at the last start, reset or write; `None` while the handle is stopped.
    since: Option<u64>,
}

/// Whether a variable shows the process as it is, so that no handle of it is started, stopped or changed.
fn is_continuous(counter: &Counter) -> bool {
    matches!(counter.kind, CounterKind::Level | CounterKind::Peak)
}

/// Returns the counter of the process.
fn now(counter: &Counter) -> u64 {
    (counter.value)(&process::stats())
}

impl Handle {
    fn new(counter: &'static Counter) -> Self {
        Self { counter, counted: 0, since: is_continuous(counter).then_some(0) }
    }

    fn start(&mut self) -> Answer {
        if is_continuous(self.counter) {
            return Err(MPI_T_ERR_PVAR_NO_STARTSTOP);
        }
        self.since.get_or_insert_with(|| now(self.counter));
        Ok(())
    }

    fn stop(&mut self) -> Answer {
        if is_continuous(self.counter) {
            return Err(MPI_T_ERR_PVAR_NO_STARTSTOP);
        }
        self.counted = self.value();
        self.since = None;
        Ok(())
    }

    fn value(&self) -> u64 {
        let counting = self.since.map_or(0, |since| now(self.counter).saturating_sub(since));
        self.counted.saturating_add(counting)
    }

    /// Gives it another value, from which it counts on, and returns the one it had.
    fn replace(&mut self, value: u64) -> Answer<u64> {
        if is_continuous(self.counter) {
            return Err(MPI_T_ERR_PVAR_NO_WRITE);
        }
        let had = self.since.map_or(0, |since| now(self.counter).saturating_sub(since));
        self.since = self.since.map(|since| since.saturating_add(had));
        Ok(std::mem::replace(&mut self.counted, value).saturating_add(had))
    }
}

/// Does something with one handle, or with all of a session to which it can be done.
fn for_each(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    act: impl Fn(&mut Handle) -> Answer,
) -> Answer {
    let mut sessions = sessions();
    let session = session.of(&mut sessions)?;
    if handle == MPI_T_PVAR_ALL_HANDLES {
        let variable = |handle: &&mut Handle| !is_continuous(handle.counter);
        return session.values_mut().filter(variable).try_for_each(act);
    }
    act(session.get_mut(&handle.0).ok_or(MPI_T_ERR_INVALID_HANDLE)?)
}

/// Asks one handle.
fn ask(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    question: impl FnOnce(&mut Handle) -> Answer<u64>,
) -> Answer<u64> {
    let mut sessions = sessions();
    let session = session.of(&mut sessions)?;
    question(session.get_mut(&handle.0).ok_or(MPI_T_ERR_INVALID_HANDLE)?)
}

fn class(counter: &Counter) -> c_int {
    match counter.kind {
        CounterKind::Count => MPI_T_PVAR_CLASS_COUNTER,
        CounterKind::Sum => MPI_T_PVAR_CLASS_AGGREGATE,
        CounterKind::Level => MPI_T_PVAR_CLASS_LEVEL,
        CounterKind::Peak => MPI_T_PVAR_CLASS_HIGHWATERMARK,
    }
}

tool! {
    fn MPI_T_pvar_get_num(num_pvar: *mut c_int) -> c_int {
        write(num_pvar, COUNTERS.len() as c_int)
    }

    fn MPI_T_pvar_get_index(name: *const c_char, var_class: c_int, pvar_index: *mut c_int) -> c_int {
        let is = |counter: &Counter, name: &[u8]| counter.name.as_bytes() == name && class(counter) == var_class;
        write(pvar_index, index(&COUNTERS, name, is)?)
    }

    fn MPI_T_pvar_get_info(
        pvar_index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, var_class: *mut c_int,
        datatype: *mut MPI_Datatype, enumtype: *mut MPI_T_enum, desc: *mut c_char, desc_len: *mut c_int,
        bind: *mut c_int, readonly: *mut c_int, continuous: *mut c_int, atomic: *mut c_int
    ) -> c_int {
        let counter = at(&COUNTERS, pvar_index)?;
        put_text(name, name_len, counter.name);
        put(verbosity, MPI_T_VERBOSITY_USER_DETAIL);
        put(var_class, class(counter));
        put(datatype, MPI_UNSIGNED_LONG_LONG);
        put(enumtype, MPI_T_ENUM_NULL);
        put_text(desc, desc_len, counter.meaning);
        put(bind, MPI_T_BIND_NO_OBJECT);
        let is_continuous = c_int::from(is_continuous(counter));
        put(readonly, is_continuous);
        put(continuous, is_continuous);
        put(atomic, 1 - is_continuous);
        Ok(())
    }

    fn MPI_T_pvar_session_create(session: *mut MPI_T_pvar_session) -> c_int {
        let place = session.as_mut().ok_or(MPI_T_ERR_INVALID)?;
        let mut sessions = sessions();
        let number = sessions.number();
        sessions.open.insert(number, Session::new());
        *place = MPI_T_pvar_session(number);
        Ok(())
    }

    fn MPI_T_pvar_session_free(session: *mut MPI_T_pvar_session) -> c_int {
        let place = session.as_mut().ok_or(MPI_T_ERR_INVALID)?;
        sessions().open.remove(&place.0).ok_or(MPI_T_ERR_INVALID_SESSION)?;
        *place = MPI_T_PVAR_SESSION_NULL;
        Ok(())
    }

    // No variable belongs to an object.
    fn MPI_T_pvar_handle_alloc(
        session: MPI_T_pvar_session, pvar_index: c_int, obj_handle: *mut c_void, handle: *mut MPI_T_pvar_handle,
        count: *mut c_int
    ) -> c_int {
        let _ = obj_handle;
        let counter = at(&COUNTERS, pvar_index)?;
        let place = handle.as_mut().ok_or(MPI_T_ERR_INVALID)?;
        let mut sessions = sessions();
        let number = sessions.number();
        session.of(&mut sessions)?.insert(number, Handle::new(counter));
        *place = MPI_T_pvar_handle(number);
        put(count, 1);
        Ok(())
    }

    fn MPI_T_pvar_handle_free(session: MPI_T_pvar_session, handle: *mut MPI_T_pvar_handle) -> c_int {
        let place = handle.as_mut().ok_or(MPI_T_ERR_INVALID)?;
        session.of(&mut sessions())?.remove(&place.0).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
        *place = MPI_T_PVAR_HANDLE_NULL;
        Ok(())
    }

    fn MPI_T_pvar_start(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> c_int {
        for_each(session, handle, Handle::start)
    }

    fn MPI_T_pvar_stop(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> c_int {
        for_each(session, handle, Handle::stop)
    }

    fn MPI_T_pvar_reset(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> c_int {
        for_each(session, handle, |handle| handle.replace(0).map(drop))
    }

    fn MPI_T_pvar_read(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle, buf: *mut c_void) -> c_int {
        write(buf.cast(), ask(session, handle, |handle| Ok(handle.value()))?)
    }

    fn MPI_T_pvar_readreset(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle, buf: *mut c_void) -> c_int {
        if buf.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        let reset = |handle: &mut Handle| handle.replace(0).map_err(|_| MPI_T_ERR_PVAR_NO_ATOMIC);
        write(buf.cast(), ask(session, handle, reset)?)
    }

    fn MPI_T_pvar_write(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle, buf: *const c_void) -> c_int {
        let value = buf.cast::<u64>().as_ref().ok_or(MPI_T_ERR_INVALID)?;
        ask(session, handle, |handle| handle.replace(*value)).map(drop)
    }
}
