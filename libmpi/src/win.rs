//! Windows: one-sided communication (MPI-5.0 chapter 12). This file has what the C face adds to the windows of `mpicore`,
//! their handles, the calls that make and end them, and those that ask about them.
//!
//! - `operation.rs`: puts, gets and accumulates.
//! - `sync.rs`: fences, epochs, locks and flushes.
//! - `attribute.rs`: attributes of windows, those of programs and the predefined ones.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpicore::{Attributes, Flavor, Info, Window};
use mpjdev::RecvRegion;

use crate::abi::*;
use crate::call::{Fault, Outcome, failed, mpi, mpi_bodies, negative, out};
use crate::comm::Owner;
use crate::comm::group;
use crate::datatype::Number;
use crate::error::handler::{Handler, Place};
use crate::handles::{Held, OBJECTS};
use crate::info::Hints;

mod attribute;
mod operation;
mod sync;

pub(crate) use operation::Remote;

/// A window.
pub(crate) struct Win {
    core: Window,
    /// The communicator that it was made of, on which its requests are.
    comm: Owner,
    /// The error handler.
    pub handler: Place,
    attributes: Attributes<MPI_Win>,
    facts: Facts,
    /// The hints in use.
    hints: Mutex<Info>,
    /// The name that the program has set, in its encoding.
    name: Mutex<Option<Vec<u8>>>,
}

/// The values of predefined attributes, to which programs get pointers.
struct Facts {
    size: MPI_Aint,
    unit: c_int,
    flavor: c_int,
    model: c_int,
}

/// The hints that a window keeps and shows, with what holds for it if the program says nothing.
const HINTS: [(&[u8], &[u8]); 5] = [
    (b"no_locks", b"false"),
    (b"accumulate_ordering", b"rar,raw,war,waw"),
    (b"accumulate_ops", b"same_op_no_op"),
    (b"same_size", b"false"),
    (b"same_disp_unit", b"false"),
];
/// Those that only some windows have, and only if the program gives them.
const OTHER_HINTS: [&[u8]; 3] =
    [b"alloc_shared_noncontig", b"mpi_accumulate_granularity", b"mpi_assert_memory_alloc_kinds"];

impl Win {
    /// Puts a new window into the table, and returns its handle.
    fn keep(core: Window, comm: Owner, hints: &Info) -> Outcome<MPI_Win> {
        let slot = OBJECTS.reserve()?;
        core.check_as_mpi();
        let (size, unit) = core.extent();
        let flavor = match core.flavor() {
            Flavor::Create => MPI_WIN_FLAVOR_CREATE,
            Flavor::Allocate => MPI_WIN_FLAVOR_ALLOCATE,
            Flavor::Shared => MPI_WIN_FLAVOR_SHARED,
            Flavor::Dynamic => MPI_WIN_FLAVOR_DYNAMIC,
        };
        let unit = c_int::try_from(unit).unwrap_or(c_int::MAX);
        let facts = Facts { size: size as MPI_Aint, unit, flavor, model: MPI_WIN_UNIFIED };
        let (attributes, used, name) = Default::default();
        let handler = Place::new(Handler::Fatal);
        let made = Self { core, comm, handler, attributes, facts, hints: used, name };
        for (key, value) in HINTS {
            made.hints().set(key, value)?;
        }
        made.set_hints(hints)?;
        Ok(MPI_Win(slot.fill(Arc::new(made))))
    }

    /// Takes over those hints that a window keeps.
    fn set_hints(&self, given: &Info) -> Outcome {
        let is_kept =
            |key: &[u8]| HINTS.iter().any(|(kept, _)| *kept == key) || OTHER_HINTS.contains(&key);
        let mut hints = self.hints();
        for (key, value) in given.iter().filter(|(key, _)| is_kept(key)) {
            hints.set(key, value)?;
        }
        Ok(())
    }

    fn hints(&self) -> MutexGuard<'_, Info> {
        self.hints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn name(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.name.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a rank of the window; `None` for MPI_PROC_NULL.
    ///
    /// # Errors
    /// MPI_ERR_RANK.
    fn rank(&self, rank: c_int) -> Outcome<Option<u32>> {
        let size = self.core.group().size();
        match u32::try_from(rank) {
            _ if rank == MPI_PROC_NULL => Ok(None),
            Ok(rank) if rank < size => Ok(Some(rank)),
            _ => {
                let text = format!("rank {rank} is out of range: the window has {size} ranks");
                Err(Fault::argument(MPI_ERR_RANK, "rank", text))
            }
        }
    }
}

impl MPI_Win {
    /// Holds the window.
    ///
    /// # Errors
    /// MPI_ERR_WIN.
    pub fn find(self) -> Outcome<Held<'static, Arc<Win>>> {
        OBJECTS.hold(self.0).map_err(|fault| fault.about("win"))
    }
}

/// Returns the length of memory.
fn length(size: MPI_Aint) -> Outcome<usize> {
    usize::try_from(size).map_err(|_| negative(MPI_ERR_SIZE, "size", size))
}

/// Returns the unit of displacements.
fn unit(disp_unit: impl Number) -> Outcome<usize> {
    let given = disp_unit.wide();
    usize::try_from(given).ok().filter(|unit| *unit > 0).ok_or_else(|| {
        Fault::argument(MPI_ERR_DISP, "disp_unit", format!("the unit {given} is not positive"))
    })
}

/// Returns memory that the program exposes.
///
/// # Safety
/// FC1: the memory stays until the window has ended, or the memory is detached, and the program uses it beside other
/// ranks as the standard allows.
unsafe fn exposed(base: *mut c_void, size: MPI_Aint) -> Outcome<RecvRegion> {
    let len = length(size)?;
    if base.is_null() && len > 0 {
        return Err(Fault::argument(
            MPI_ERR_BASE,
            "base",
            "the address is null, and the size is not 0",
        ));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { RecvRegion::new(base.cast(), len) })
}

/// Makes a window, and writes its handle.
unsafe fn make(
    info: MPI_Info,
    comm: MPI_Comm,
    win: *mut MPI_Win,
    make: impl FnOnce(&Owner) -> Outcome<Window>,
) -> Outcome<Held<'static, Arc<Win>>> {
    // SAFETY: FC1.
    let place = unsafe { out::place(win, "win") }?;
    *place = MPI_WIN_NULL;
    let (hints, comm) = (info.copied()?, comm.find()?);
    let core = make(&comm)?;
    *place = Win::keep(core, comm, &hints)?;
    place.find()
}

/// MPI_Win_create.
unsafe fn create(
    base: *mut c_void,
    size: MPI_Aint,
    disp_unit: impl Number,
    info: MPI_Info,
    comm: MPI_Comm,
    win: *mut MPI_Win,
) -> Outcome {
    // SAFETY: FC1.
    let (memory, unit) = (unsafe { exposed(base, size) }?, unit(disp_unit)?);
    // SAFETY: FC1.
    unsafe { make(info, comm, win, |comm| Ok(Window::create(&comm.core, memory, unit)?)) }.map(drop)
}

/// MPI_Win_allocate, MPI_Win_allocate_shared.
unsafe fn allocate(
    size: MPI_Aint,
    disp_unit: impl Number,
    info: MPI_Info,
    comm: MPI_Comm,
    baseptr: *mut c_void,
    win: *mut MPI_Win,
    is_shared: bool,
) -> Outcome {
    let (size, unit) = (length(size)?, unit(disp_unit)?);
    // SAFETY: FC1: the place is that of a pointer, whatever its type.
    let base = unsafe { out::place(baseptr.cast::<*mut u8>(), "baseptr") }?;
    let allocate = if is_shared { Window::allocate_shared } else { Window::allocate };
    // SAFETY: FC1.
    let made = unsafe { make(info, comm, win, |comm| Ok(allocate(&comm.core, size, unit)?)) }?;
    *base = made.core.base();
    Ok(())
}

/// MPI_Win_shared_query.
unsafe fn shared_query<U: TryFrom<u64>>(
    win: MPI_Win,
    rank: c_int,
    size: *mut MPI_Aint,
    disp_unit: *mut U,
    baseptr: *mut c_void,
) -> Outcome {
    let win = win.find()?;
    let (base, len, unit) = win.core.shared_query(win.rank(rank)?)?;
    let too_long = |_| {
        Fault::argument(MPI_ERR_DISP, "disp_unit", "the unit does not fit the type of the result")
    };
    // SAFETY: FC1: the last place is that of a pointer, whatever its type.
    unsafe {
        out::write(size, "size", len as MPI_Aint)?;
        out::write(disp_unit, "disp_unit", U::try_from(unit).map_err(too_long)?)?;
        out::write(baseptr.cast(), "baseptr", base)
    }
}

mpi_bodies! {
    MPI_Win_create, MPI_Win_create_c => create();
    MPI_Win_allocate, MPI_Win_allocate_c => allocate(false);
    MPI_Win_allocate_shared, MPI_Win_allocate_shared_c => allocate(true);
    MPI_Win_shared_query, MPI_Win_shared_query_c => shared_query();
}

mpi! {
    fn MPI_Win_create_dynamic(info: MPI_Info, comm: MPI_Comm, win: *mut MPI_Win) -> c_int {
        make(info, comm, win, |comm| Ok(Window::dynamic(&comm.core)?)).map(drop)
    }

    fn MPI_Win_attach(win: MPI_Win, base: *mut c_void, size: MPI_Aint) -> c_int {
        Ok(win.find()?.core.attach(exposed(base, size)?)?)
    }

    fn MPI_Win_detach(win: MPI_Win, base: *const c_void) -> c_int {
        Ok(win.find()?.core.detach(base.cast())?)
    }

    // Callbacks of attributes may write to the place of the handle.
    fn MPI_Win_free(win: *mut MPI_Win) -> c_int {
        let handle = *out::place(win, "win")?;
        let found = handle.find()?;
        let on = |fault: Fault| fault.on_window(handle);
        found.core.check_free().map_err(|error| on(error.into()))?;
        found.attributes.delete_all(&handle).map_err(|error| on(failed(error)))?;
        found.core.clone().free().map_err(|error| on(error.into()))?;
        drop(found);
        OBJECTS.free::<Arc<Win>>(handle.0).map_err(|fault| fault.about("win"))?;
        win.write(MPI_WIN_NULL);
        Ok(())
    }

    fn MPI_Win_get_group(win: MPI_Win, group: *mut MPI_Group) -> c_int {
        let place = out::place(group, "group")?;
        let win = win.find()?;
        *place = group::keep(win.core.group().clone(), win.comm.core.session_buffer())?;
        Ok(())
    }

    fn MPI_Win_set_info(win: MPI_Win, info: MPI_Info) -> c_int {
        win.find()?.set_hints(&info.copied()?)
    }

    fn MPI_Win_get_info(win: MPI_Win, info_used: *mut MPI_Info) -> c_int {
        let place = out::place(info_used, "info_used")?;
        let hints = win.find()?.hints().clone();
        *place = Hints::keep_used(hints)?;
        Ok(())
    }

    fn MPI_Win_set_name(win: MPI_Win, win_name: *const c_char) -> c_int {
        let win = win.find()?;
        let name = out::bytes(win_name, MPI_ERR_ARG, "win_name")?;
        // A name that is too long is cut, as the standard says.
        let name = &name[..name.len().min(MPI_MAX_OBJECT_NAME as usize - 1)];
        win.core.set_name(String::from_utf8_lossy(name));
        *win.name() = Some(name.to_owned());
        Ok(())
    }

    fn MPI_Win_get_name(win: MPI_Win, win_name: *mut c_char, resultlen: *mut c_int) -> c_int {
        if win == MPI_WIN_NULL {
            return out::text(win_name, resultlen, "MPI_WIN_NULL", MPI_MAX_OBJECT_NAME);
        }
        let name = win.find()?.name().clone().unwrap_or_default();
        out::text(win_name, resultlen, name, MPI_MAX_OBJECT_NAME)
    }
}

/// Windows can be held by several threads.
const _: fn() = || {
    fn is_shared<T: crate::handles::kind::Kind + Send + Sync>() {}
    is_shared::<Arc<Win>>();
};
