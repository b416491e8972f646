//! Info objects (MPI-5.0 chapter 10). They exist at any time, and any number of threads may use them.

use std::env;
use std::ffi::{CStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use mpicore::{Info, Start, job};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi_anytime, negative, out};
use crate::handles::{Held, OBJECTS};
use crate::process;

/// An info object.
#[derive(Default)]
pub(crate) struct Hints(Mutex<Info>);

/// MPI_INFO_ENV.
static ENVIRONMENT: LazyLock<Hints> = LazyLock::new(|| {
    let all: Vec<_> = env::args_os().collect();
    let arguments: Vec<&[u8]> = all.iter().map(|argument| argument.as_bytes()).collect();
    Hints::of_start(
        arguments.first().copied().unwrap_or_default(),
        arguments.get(1..).unwrap_or_default(),
    )
});

impl Hints {
    /// Makes an info object.
    pub fn of(info: Info) -> Self {
        Self(Mutex::new(info))
    }

    /// Makes an info object of the hints that are in use for an object, with the kinds of memory that programs may use
    /// with it (MPI-5.0 section 11.4.3), and returns its handle.
    pub fn keep_used(mut used: Info) -> Outcome<MPI_Info> {
        used.set(b"mpi_memory_alloc_kinds", b"mpi,system")?;
        Self::of(used).keep()
    }

    /// Describes the start of this process.
    fn of_start(command: &[u8], arguments: &[&[u8]]) -> Self {
        let (directory, system) = (env::current_dir().unwrap_or_default(), rustix::system::uname());
        Self::of(Info::of_start(&Start {
            command,
            arguments,
            processes: Some(job::size()),
            host: system.nodename().to_bytes(),
            architecture: system.machine().to_bytes(),
            directory: directory.as_os_str().as_bytes(),
            thread_level: level().as_bytes(),
        }))
    }

    /// Returns the keys and values, for as long as the caller keeps them.
    pub fn lock(&self) -> MutexGuard<'_, Info> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an info object into the table, and returns its handle.
    pub fn keep(self) -> Outcome<MPI_Info> {
        Ok(MPI_Info(OBJECTS.insert(self)?))
    }
}

impl MPI_Info {
    /// Holds the info object.
    ///
    /// # Errors
    /// MPI_ERR_INFO.
    pub fn find(self) -> Outcome<Held<'static, Hints>> {
        match self {
            // A program may have asked for the object before MPI_Init.
            MPI_INFO_ENV => {
                ENVIRONMENT.lock().set(b"thread_level", level().as_bytes())?;
                Ok(Held::forever(&*ENVIRONMENT))
            }
            MPI_Info(handle) => OBJECTS.hold(handle).map_err(|fault| fault.about("info")),
        }
    }

    /// Holds the info object for a change.
    ///
    /// # Errors
    /// MPI_ERR_INFO.
    fn changed(self) -> Outcome<Held<'static, Hints>> {
        match self {
            MPI_INFO_ENV => Err(Fault::argument(
                MPI_ERR_INFO,
                "info",
                "MPI_INFO_ENV cannot be changed or freed",
            )),
            _ => self.find(),
        }
    }

    /// Returns a copy of the keys and values that a program passes to another function; none for MPI_INFO_NULL.
    ///
    /// # Errors
    /// MPI_ERR_INFO.
    pub fn copied(self) -> Outcome<Info> {
        match self {
            MPI_INFO_NULL => Ok(Info::default()),
            _ => Ok(self.find()?.lock().clone()),
        }
    }
}

/// Returns the name of the level of thread support.
fn level() -> &'static str {
    match process::level() {
        MPI_THREAD_SINGLE => "MPI_THREAD_SINGLE",
        MPI_THREAD_FUNNELED => "MPI_THREAD_FUNNELED",
        MPI_THREAD_SERIALIZED => "MPI_THREAD_SERIALIZED",
        _ => "MPI_THREAD_MULTIPLE",
    }
}

/// Returns a key that the program gives.
unsafe fn key<'a>(key: *const c_char) -> Outcome<&'a [u8]> {
    // SAFETY: FC1.
    let key = unsafe { out::bytes(key, MPI_ERR_INFO_KEY, "key") }?;
    Info::check_key(key).map_err(|error| Fault::from(error).about("key"))?;
    Ok(key)
}

/// Writes as many bytes as fit into a place of this length, with the zero behind them.
unsafe fn put(bytes: &[u8], place: *mut c_char, room: usize) {
    let end = bytes.len().min(room - 1);
    // SAFETY: FC1: the program gives a place of this length.
    unsafe {
        place.copy_from_nonoverlapping(bytes.as_ptr().cast(), end);
        place.add(end).write(0);
    }
}

mpi_anytime! {
    fn MPI_Info_create(info: *mut MPI_Info) -> c_int {
        let place = out::place(info, "info")?;
        *place = Hints::default().keep()?;
        Ok(())
    }

    fn MPI_Info_create_env(argc: c_int, argv: *mut *mut c_char, info: *mut MPI_Info) -> c_int {
        let place = out::place(info, "info")?;
        let given = if argv.is_null() { &[][..] } else { out::list(argv, argc.into(), "argv")? };
        let words = given.iter().filter(|word| !word.is_null());
        // SAFETY: FC1: these are the strings that `main` got.
        let words: Vec<&[u8]> = words.map(|word| unsafe { CStr::from_ptr(*word) }.to_bytes()).collect();
        let command = words.first().copied().unwrap_or_default();
        *place = Hints::of_start(command, words.get(1..).unwrap_or_default()).keep()?;
        Ok(())
    }

    fn MPI_Info_dup(info: MPI_Info, newinfo: *mut MPI_Info) -> c_int {
        let place = out::place(newinfo, "newinfo")?;
        let copy = info.find()?.lock().clone();
        *place = Hints::of(copy).keep()?;
        Ok(())
    }

    fn MPI_Info_free(info: *mut MPI_Info) -> c_int {
        let place = out::place(info, "info")?;
        drop(place.changed()?);
        OBJECTS.free::<Hints>(place.0).map_err(|fault| fault.about("info"))?;
        *place = MPI_INFO_NULL;
        Ok(())
    }

    fn MPI_Info_set(info: MPI_Info, key: *const c_char, value: *const c_char) -> c_int {
        let (hints, key) = (info.changed()?, self::key(key)?);
        let value = out::bytes(value, MPI_ERR_INFO_VALUE, "value")?;
        hints.lock().set(key, value).map_err(|error| Fault::from(error).about("value"))
    }

    fn MPI_Info_delete(info: MPI_Info, key: *const c_char) -> c_int {
        let (hints, key) = (info.changed()?, self::key(key)?);
        hints.lock().delete(key).map_err(|error| Fault::from(error).about("key"))
    }

    fn MPI_Info_get(
        info: MPI_Info, key: *const c_char, valuelen: c_int, value: *mut c_char, flag: *mut c_int
    ) -> c_int {
        let (hints, key, flag) = (info.find()?, self::key(key)?, out::place(flag, "flag")?);
        if valuelen < 0 {
            return Err(negative(MPI_ERR_ARG, "valuelen", valuelen));
        }
        let hints = hints.lock();
        let found = hints.get(key);
        *flag = found.is_some().into();
        match found {
            Some(_) if value.is_null() => Err(Fault::argument(MPI_ERR_INFO_VALUE, "value", "the pointer is null")),
            // The place has one byte more than the program says, for the zero.
            Some(found) => {
                put(found, value, valuelen as usize + 1);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn MPI_Info_get_string(
        info: MPI_Info, key: *const c_char, buflen: *mut c_int, value: *mut c_char, flag: *mut c_int
    ) -> c_int {
        let (hints, key) = (info.find()?, self::key(key)?);
        let (room, flag) = (out::place(buflen, "buflen")?, out::place(flag, "flag")?);
        if *room < 0 {
            return Err(negative(MPI_ERR_ARG, "buflen", *room));
        }
        let hints = hints.lock();
        let found = hints.get(key);
        *flag = found.is_some().into();
        let Some(found) = found else { return Ok(()) };
        if *room > 0 {
            if value.is_null() {
                return Err(Fault::argument(MPI_ERR_INFO_VALUE, "value", "the pointer is null"));
            }
            put(found, value, *room as usize);
        }
        *room = found.len() as c_int + 1;
        Ok(())
    }

    fn MPI_Info_get_valuelen(info: MPI_Info, key: *const c_char, valuelen: *mut c_int, flag: *mut c_int) -> c_int {
        let (hints, key) = (info.find()?, self::key(key)?);
        let (len, flag) = (out::place(valuelen, "valuelen")?, out::place(flag, "flag")?);
        let hints = hints.lock();
        let found = hints.get(key);
        *flag = found.is_some().into();
        if let Some(found) = found {
            *len = found.len() as c_int;
        }
        Ok(())
    }

    fn MPI_Info_get_nkeys(info: MPI_Info, nkeys: *mut c_int) -> c_int {
        out::write(nkeys, "nkeys", info.find()?.lock().len() as c_int)
    }

    fn MPI_Info_get_nthkey(info: MPI_Info, n: c_int, key: *mut c_char) -> c_int {
        let hints = info.find()?;
        let place = out::place(key, "key")?;
        let number = usize::try_from(n).map_err(|_| negative(MPI_ERR_ARG, "n", n))?;
        let hints = hints.lock();
        let found = hints.key(number).map_err(|error| Fault::from(error).about("n"))?;
        put(found, place, MPI_MAX_INFO_KEY as usize);
        Ok(())
    }
}
