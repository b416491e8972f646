//! Sessions (MPI-5.0 section 11.3). The process joins its job with the first one, or by MPI_Init.

use std::sync::Arc;

use mpicore::group::Group;
use mpicore::{Info, SessionBuffer};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi_anytime, out};
use crate::comm::group;
use crate::error::handler::{Kind, Place};
use crate::handles::{Held, OBJECTS};
use crate::info::Hints;
use crate::process;

/// A session.
pub(crate) struct Session {
    /// The error handler.
    pub handler: Place,
    /// The level of thread support, by its name.
    level: &'static str,
    /// The place of the buffer for buffered sends on its communicators.
    pub buffer: Arc<SessionBuffer>,
}

/// The process set of all processes of the job.
pub(crate) const WORLD: &str = "mpi://WORLD";
/// The process set of this process.
pub(crate) const OWN: &str = "mpi://SELF";
/// The process sets that exist.
const SETS: [&str; 2] = [WORLD, OWN];

/// Returns whether a name is that of a process set. Names are URIs, of which these consist of scheme and authority
/// only, where upper and lower case are the same.
pub(crate) fn is_set(name: &[u8], set: &str) -> bool {
    name.eq_ignore_ascii_case(set.as_bytes())
}

/// The levels of thread support.
const LEVELS: [&str; 4] =
    ["MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"];

impl MPI_Session {
    /// Holds the session.
    ///
    /// # Errors
    /// MPI_ERR_SESSION.
    pub fn find(self) -> Outcome<Held<'static, Arc<Session>>> {
        OBJECTS.hold(self.0).map_err(|fault| fault.about("session"))
    }
}

/// Returns the group of a process set.
fn set(name: &[u8]) -> Outcome<Group> {
    let running = process::needed()?;
    match name {
        name if is_set(name, WORLD) => Ok(running.world.core.group().clone()),
        name if is_set(name, OWN) => Ok(running.own.core.group().clone()),
        _ => {
            let text = format!(
                "there is no process set {:?}; there are {SETS:?}",
                String::from_utf8_lossy(name)
            );
            Err(Fault::argument(MPI_ERR_ARG, "pset_name", text))
        }
    }
}

/// Returns the level of thread support for a program with these hints. All levels are provided; the highest one if the
/// program asks for none.
fn level(hints: &Info) -> Outcome<&'static str> {
    let Some(asked) = hints.get(b"thread_level") else { return Ok(LEVELS[3]) };
    LEVELS.into_iter().find(|level| asked == level.as_bytes()).ok_or_else(|| {
        let asked = String::from_utf8_lossy(asked);
        let text =
            format!("thread_level {asked:?} is no level of thread support; give one of {LEVELS:?}");
        Fault::argument(MPI_ERR_INFO_VALUE, "info", text)
    })
}

/// Makes the keys and values of an info object with one key.
fn of_one(key: &[u8], value: &str) -> Outcome<Info> {
    let mut info = Info::default();
    info.set(key, value.as_bytes())?;
    Ok(info)
}

mpi_anytime! {
    fn MPI_Session_init(info: MPI_Info, errhandler: MPI_Errhandler, session: *mut MPI_Session) -> c_int {
        let handler = errhandler.find(Kind::Session)?;
        let open = || {
            let place = out::place(session, "session")?;
            let level = level(&info.copied()?)?;
            let running = process::enter(MPI_THREAD_MULTIPLE)?;
            let buffer = Arc::new(SessionBuffer::new(running.world.core.process().clone()));
            let session = Session { handler: Place::new(handler.clone()), level, buffer };
            *place = MPI_Session(OBJECTS.insert(Arc::new(session))?);
            Ok(())
        };
        open().map_err(|fault: Fault| fault.handled_by(&handler))
    }

    fn MPI_Session_finalize(session: *mut MPI_Session) -> c_int {
        let place = out::place(session, "session")?;
        let handler = place.find()?.handler.get();
        OBJECTS.free::<Arc<Session>>(place.0).map_err(|fault| fault.about("session"))?;
        *place = MPI_SESSION_NULL;
        process::leave().map_err(|fault| fault.handled_by(&handler))
    }

    fn MPI_Session_get_info(session: MPI_Session, info_used: *mut MPI_Info) -> c_int {
        let place = out::place(info_used, "info_used")?;
        *place = Hints::keep_used(of_one(b"thread_level", session.find()?.level)?)?;
        Ok(())
    }

    fn MPI_Session_get_num_psets(session: MPI_Session, info: MPI_Info, npset_names: *mut c_int) -> c_int {
        session.find()?;
        drop(info.copied()?);
        out::write(npset_names, "npset_names", SETS.len() as c_int)
    }

    fn MPI_Session_get_nth_pset(
        session: MPI_Session, info: MPI_Info, n: c_int, pset_len: *mut c_int, pset_name: *mut c_char
    ) -> c_int {
        session.find()?;
        drop(info.copied()?);
        let room = out::place(pset_len, "pset_len")?;
        let name = usize::try_from(n).ok().and_then(|n| SETS.get(n)).ok_or_else(|| {
            Fault::argument(MPI_ERR_ARG, "n", format!("there is no process set {n}: there are {}", SETS.len()))
        })?;
        if *room > 0 {
            let mut len = 0;
            out::text(pset_name, &raw mut len, name, *room)?;
        }
        *room = name.len() as c_int + 1;
        Ok(())
    }

    fn MPI_Session_get_pset_info(session: MPI_Session, pset_name: *const c_char, info: *mut MPI_Info) -> c_int {
        session.find()?;
        let place = out::place(info, "info")?;
        let group = set(out::bytes(pset_name, MPI_ERR_ARG, "pset_name")?)?;
        *place = Hints::of(of_one(b"mpi_size", &group.size().to_string())?).keep()?;
        Ok(())
    }

    fn MPI_Group_from_session_pset(session: MPI_Session, pset_name: *const c_char, newgroup: *mut MPI_Group) -> c_int {
        let session = session.find()?;
        let place = out::place(newgroup, "newgroup")?;
        *place = group::keep(set(out::bytes(pset_name, MPI_ERR_ARG, "pset_name")?)?, Some(&session.buffer))?;
        Ok(())
    }
}
