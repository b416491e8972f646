//! Files (MPI-5.0 chapter 14). This file has what the C face adds to the files of `mpicore`, their handles, the calls that
//! open and close them, and those that ask about them and set what holds for them.
//!
//! - `access.rs`: reads and writes.

use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpicore::datatype::Datatype;
use mpicore::{Amode, File, Representation, Whence};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, mpi_anytime, mpi_bodies, negative, out};
use crate::comm::Owner;
use crate::comm::group;
use crate::datatype::{Found, Number};
use crate::error::handler::{FILES, Place};
use crate::handles::{Held, OBJECTS};
use crate::info::Hints;

mod access;

/// A file that is open.
pub(crate) struct OpenFile {
    core: File,
    /// The communicator of which it was opened, on which its requests are.
    comm: Owner,
    /// The error handler.
    pub handler: Place,
    /// The split collective that is under way: its name, and the bytes that it has moved.
    split: Mutex<Option<(&'static str, u64)>>,
}

impl OpenFile {
    fn split(&self) -> MutexGuard<'_, Option<(&'static str, u64)>> {
        self.split.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MPI_File {
    /// Holds the file.
    ///
    /// # Errors
    /// MPI_ERR_FILE.
    pub fn find(self) -> Outcome<Held<'static, Arc<OpenFile>>> {
        OBJECTS.hold(self.0).map_err(|fault| fault.about("fh"))
    }
}

/// Returns the path that a program gives.
unsafe fn path<'a>(filename: *const c_char) -> Outcome<&'a Path> {
    // SAFETY: FC1.
    let bytes = unsafe { out::bytes(filename, MPI_ERR_ARG, "filename") }?;
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Opens a file, and writes its handle. Errors are those of MPI_FILE_NULL.
unsafe fn open(
    comm: MPI_Comm,
    filename: *const c_char,
    amode: c_int,
    info: MPI_Info,
    fh: *mut MPI_File,
) -> Outcome {
    // SAFETY: FC1.
    let (place, path) = unsafe { (out::place(fh, "fh")?, path(filename)?) };
    *place = MPI_FILE_NULL;
    let (comm, info, slot) = (comm.find()?, info.copied()?, OBJECTS.reserve()?);
    let core = File::open(&comm.core, path, Amode(amode as u32), &info)?;
    let (handler, split) = (Place::new(FILES.get()), Mutex::default());
    *place = MPI_File(slot.fill(Arc::new(OpenFile { core, comm, handler, split })));
    Ok(())
}

/// Returns a number of bytes.
fn bytes(name: &'static str, given: MPI_Offset) -> Outcome<u64> {
    u64::try_from(given).map_err(|_| negative(MPI_ERR_ARG, name, given))
}

/// Returns from where a seek counts.
fn whence(given: c_int) -> Outcome<Whence> {
    match given {
        MPI_SEEK_SET => Ok(Whence::Set),
        MPI_SEEK_CUR => Ok(Whence::Current),
        MPI_SEEK_END => Ok(Whence::End),
        _ => {
            Err(Fault::argument(MPI_ERR_ARG, "whence", format!("{given} is none of MPI_SEEK_...")))
        }
    }
}

/// Returns the arguments that describe a view.
unsafe fn view(
    disp: MPI_Offset,
    (etype, filetype): (MPI_Datatype, MPI_Datatype),
    datarep: *const c_char,
    info: MPI_Info,
) -> Outcome<(Option<u64>, [Found; 2], Representation, mpicore::Info)> {
    let disp = match disp {
        MPI_DISPLACEMENT_CURRENT => None,
        _ => Some(bytes("disp", disp)?),
    };
    let etype = etype.committed().map_err(|fault| fault.about("etype"))?;
    let filetype = filetype.committed().map_err(|fault| fault.about("filetype"))?;
    // SAFETY: FC1.
    let name = unsafe { out::bytes(datarep, MPI_ERR_ARG, "datarep") }?;
    let representation = Representation::of_name(&String::from_utf8_lossy(name));
    let representation = representation.map_err(mpicore::Error::from)?;
    Ok((disp, [etype, filetype], representation, info.copied()?))
}

/// MPI_File_get_type_extent.
unsafe fn get_type_extent<N: Number>(
    fh: MPI_File,
    datatype: MPI_Datatype,
    extent: *mut N,
) -> Outcome {
    let (file, datatype) = (fh.find()?, datatype.find()?);
    let found = file.core.type_extent(&datatype)? as i64;
    // SAFETY: FC1.
    unsafe { out::write(extent, "extent", N::narrowed(found)) }
}

/// Notes the name of a representation that a program defines. Its functions are not called: a view with it is refused.
unsafe fn register(datarep: *const c_char) -> Outcome {
    static NAMES: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
    // SAFETY: FC1.
    let name = unsafe { out::bytes(datarep, MPI_ERR_ARG, "datarep") }?;
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = |name: &[u8]| {
        std::str::from_utf8(name).map(Representation::of_name).is_ok_and(|found| found.is_ok())
    };
    if name.len() >= MPI_MAX_DATAREP_STRING as usize {
        let text = format!("the name is longer than {} bytes", MPI_MAX_DATAREP_STRING - 1);
        return Err(Fault::argument(MPI_ERR_ARG, "datarep", text));
    }
    if is_known(name) || names.iter().any(|known| *known == name) {
        let text = "there is a representation with this name";
        return Err(Fault::argument(MPI_ERR_DUP_DATAREP, "datarep", text));
    }
    names.push(name.to_owned());
    Ok(())
}

mpi_bodies! {
    MPI_File_get_type_extent, MPI_File_get_type_extent_c => get_type_extent();
}

mpi_anytime! {
    fn MPI_Register_datarep(
        datarep: *const c_char, read_conversion_fn: Option<MPI_Datarep_conversion_function>,
        write_conversion_fn: Option<MPI_Datarep_conversion_function>,
        dtype_file_extent_fn: Option<MPI_Datarep_extent_function>, extra_state: *mut c_void
    ) -> c_int {
        let _ = (read_conversion_fn, write_conversion_fn, dtype_file_extent_fn, extra_state);
        register(datarep).map_err(|fault| fault.handled_by(&FILES.get()))
    }

    fn MPI_Register_datarep_c(
        datarep: *const c_char, read_conversion_fn: Option<MPI_Datarep_conversion_function_c>,
        write_conversion_fn: Option<MPI_Datarep_conversion_function_c>,
        dtype_file_extent_fn: Option<MPI_Datarep_extent_function>, extra_state: *mut c_void
    ) -> c_int {
        let _ = (read_conversion_fn, write_conversion_fn, dtype_file_extent_fn, extra_state);
        register(datarep).map_err(|fault| fault.handled_by(&FILES.get()))
    }
}

mpi! {
    fn MPI_File_open(
        comm: MPI_Comm, filename: *const c_char, amode: c_int, info: MPI_Info, fh: *mut MPI_File
    ) -> c_int {
        open(comm, filename, amode, info, fh).map_err(|fault| fault.handled_by(&FILES.get()))
    }

    fn MPI_File_close(fh: *mut MPI_File) -> c_int {
        let handle = *out::place(fh, "fh").map_err(|fault| fault.handled_by(&FILES.get()))?;
        let file = handle.find().map_err(|fault| fault.handled_by(&FILES.get()))?;
        let (closed, handler) = (file.core.close(), file.handler.get());
        drop(file);
        OBJECTS.free::<Arc<OpenFile>>(handle.0).map_err(|fault| fault.about("fh"))?;
        fh.write(MPI_FILE_NULL);
        closed.map_err(|error| Fault::from(error).handled_by(&handler))
    }

    fn MPI_File_delete(filename: *const c_char, info: MPI_Info) -> c_int {
        let _ = info;
        let deleted = path(filename).and_then(|path| Ok(File::delete(path)?));
        deleted.map_err(|fault| fault.handled_by(&FILES.get()))
    }

    fn MPI_File_get_size(fh: MPI_File, size: *mut MPI_Offset) -> c_int {
        out::write(size, "size", fh.find()?.core.size()? as MPI_Offset)
    }

    fn MPI_File_set_size(fh: MPI_File, size: MPI_Offset) -> c_int {
        Ok(fh.find()?.core.set_size(bytes("size", size)?)?)
    }

    fn MPI_File_preallocate(fh: MPI_File, size: MPI_Offset) -> c_int {
        Ok(fh.find()?.core.preallocate(bytes("size", size)?)?)
    }

    fn MPI_File_sync(fh: MPI_File) -> c_int {
        Ok(fh.find()?.core.sync()?)
    }

    fn MPI_File_get_group(fh: MPI_File, group: *mut MPI_Group) -> c_int {
        let place = out::place(group, "group")?;
        *place = group::keep(fh.find()?.core.group().clone(), None)?;
        Ok(())
    }

    fn MPI_File_get_amode(fh: MPI_File, amode: *mut c_int) -> c_int {
        out::write(amode, "amode", fh.find()?.core.amode().0 as c_int)
    }

    fn MPI_File_get_info(fh: MPI_File, info_used: *mut MPI_Info) -> c_int {
        let place = out::place(info_used, "info_used")?;
        *place = Hints::of(fh.find()?.core.info()?).keep()?;
        Ok(())
    }

    fn MPI_File_set_info(fh: MPI_File, info: MPI_Info) -> c_int {
        Ok(fh.find()?.core.set_info(&info.copied()?)?)
    }

    fn MPI_File_get_atomicity(fh: MPI_File, flag: *mut c_int) -> c_int {
        out::write(flag, "flag", fh.find()?.core.is_atomic().into())
    }

    fn MPI_File_set_atomicity(fh: MPI_File, flag: c_int) -> c_int {
        Ok(fh.find()?.core.set_atomicity(flag != 0)?)
    }

    fn MPI_File_set_view(
        fh: MPI_File, disp: MPI_Offset, etype: MPI_Datatype, filetype: MPI_Datatype, datarep: *const c_char,
        info: MPI_Info
    ) -> c_int {
        let (file, view) = (fh.find()?, view(disp, (etype, filetype), datarep, info));
        match view {
            Ok((disp, [etype, filetype], representation, info)) => {
                Ok(file.core.set_view(disp, &etype, &filetype, representation, &info)?)
            }
            Err(fault) => {
                // The other ranks do not wait: this one takes part with what is no view.
                let none = Datatype::contiguous(0, &*MPI_BYTE.find()?).map_err(mpicore::Error::from)?;
                let native = Representation::Native;
                let _ = file.core.set_view(None, &none, &none, native, &mpicore::Info::default());
                Err(fault)
            }
        }
    }

    fn MPI_File_get_view(
        fh: MPI_File, disp: *mut MPI_Offset, etype: *mut MPI_Datatype, filetype: *mut MPI_Datatype,
        datarep: *mut c_char
    ) -> c_int {
        let view = fh.find()?.core.view();
        let [etype, filetype] = [out::place(etype, "etype")?, out::place(filetype, "filetype")?];
        out::write(disp, "disp", view.displacement() as MPI_Offset)?;
        let mut len = 0;
        out::text(datarep, &raw mut len, view.representation().name(), MPI_MAX_DATAREP_STRING)?;
        *etype = MPI_Datatype::of_view(view.etype())?;
        *filetype = MPI_Datatype::of_view(view.filetype())?;
        Ok(())
    }

    fn MPI_File_get_byte_offset(fh: MPI_File, offset: MPI_Offset, disp: *mut MPI_Offset) -> c_int {
        out::write(disp, "disp", fh.find()?.core.byte_offset(offset)? as MPI_Offset)
    }

    fn MPI_File_get_position(fh: MPI_File, offset: *mut MPI_Offset) -> c_int {
        out::write(offset, "offset", fh.find()?.core.get_position()?)
    }

    fn MPI_File_get_position_shared(fh: MPI_File, offset: *mut MPI_Offset) -> c_int {
        out::write(offset, "offset", fh.find()?.core.get_position_shared()?)
    }

    fn MPI_File_seek(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> c_int {
        Ok(fh.find()?.core.seek(offset, self::whence(whence)?)?)
    }

    fn MPI_File_seek_shared(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> c_int {
        Ok(fh.find()?.core.seek_shared(offset, self::whence(whence)?)?)
    }
}

/// Files can be held by several threads.
const _: fn() = || {
    fn is_shared<T: crate::handles::kind::Kind + Send + Sync>() {}
    is_shared::<Arc<OpenFile>>();
};
