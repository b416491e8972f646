//! Reads and writes of files (MPI-5.0 section 14.4): blocking, nonblocking and split, with their forms for large counts.
//! A nonblocking access, and the first half of a split one, does all of its work before it returns.

use std::ffi::c_void;

use mpicore::{FileError, Part, Position};
use mpjdev::{Call, Sink, Source, Status};

use crate::abi::*;
use crate::call::{Outcome, mpi_bodies, out};
use crate::datatype::{Data, Found, check_given};
use crate::file::OpenFile;
use crate::handles::OBJECTS;
use crate::request::{Request, Role};

/// What a function does.
#[derive(Clone, Copy)]
struct Way {
    is_read: bool,
    /// Where, unless the program gives an offset.
    position: Position,
    is_collective: bool,
}

const READ: Way = Way { is_read: true, position: Position::Individual, is_collective: false };
const WRITE: Way = Way { is_read: false, ..READ };

impl Way {
    /// All ranks make the call.
    const fn all(self) -> Self {
        Self { is_collective: true, ..self }
    }

    /// It is at the shared pointer.
    const fn shared(self) -> Self {
        Self { position: Position::Shared, ..self }
    }

    /// It is at an offset.
    fn at(self, offset: MPI_Offset) -> Self {
        Self { position: Position::At(offset), ..self }
    }
}

/// Accesses a file. Returns the bytes of the elements that were moved.
///
/// # Safety
/// FC1.
unsafe fn access(fh: MPI_File, data: Data, way: Way) -> Outcome<u64> {
    let file = fh.find()?;
    let Way { position, is_collective, is_read } = way;
    // SAFETY: the caller's promise.
    match unsafe { elements(data, is_read) } {
        Ok((datatype, (into, from))) => {
            let part = Part { position, is_collective, count: data.count, datatype: &datatype };
            let moved =
                if is_read { file.core.read(part, into) } else { file.core.write(part, from) };
            Ok(moved?)
        }
        Err(fault) => {
            if is_collective {
                attend(&file, way)?;
            }
            Err(fault)
        }
    }
}

/// Takes part in a collective access with no elements, so that the other ranks do not wait for one whose call is wrong.
fn attend(file: &OpenFile, way: Way) -> Outcome {
    let (position, byte) = (way.position, MPI_BYTE.find()?);
    let part = Part { position, is_collective: true, count: 0, datatype: &byte };
    // What else is wrong matters less.
    let _ = match way.is_read {
        true => file.core.read(part, Sink::EMPTY),
        false => file.core.write(part, Source::EMPTY),
    };
    Ok(())
}

/// Returns the datatype of elements, and their memory as that which is read into, or written from.
///
/// # Safety
/// FC1.
unsafe fn elements(data: Data, is_read: bool) -> Outcome<(Found, (Sink, Source))> {
    check_given(data.buffer)?;
    let datatype = data.datatype.of_elements(data.count != 0).committed()?;
    // SAFETY: the caller's promise.
    let memory = unsafe {
        match is_read {
            true => (data.sink()?, Source::EMPTY),
            false => (Sink::EMPTY, data.source()?),
        }
    };
    Ok((datatype, memory))
}

fn status_of(bytes: u64) -> MPI_Status {
    let mut status = MPI_Status::EMPTY;
    status.set_bytes(bytes);
    status
}

/// A blocking access.
unsafe fn now(fh: MPI_File, data: Data, status: *mut MPI_Status, way: Way) -> Outcome {
    // SAFETY: FC1.
    unsafe {
        status_of(access(fh, data, way)?).store(status);
    }
    Ok(())
}

/// A blocking access at an offset.
unsafe fn now_at(
    fh: MPI_File,
    offset: MPI_Offset,
    data: Data,
    status: *mut MPI_Status,
    way: Way,
) -> Outcome {
    // SAFETY: FC1.
    unsafe { now(fh, data, status, way.at(offset)) }
}

/// A nonblocking access. A collective one works alone: no rank waits for others.
unsafe fn started(fh: MPI_File, data: Data, request: *mut MPI_Request, way: Way) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::place(request, "request") }?;
    let (file, slot) = (fh.find()?, OBJECTS.reserve()?);
    // SAFETY: FC1.
    let bytes = unsafe { access(fh, data, Way { is_collective: false, ..way }) }?;
    let comm = file.comm.clone();
    let (open, ending) = comm.device.begin(Call::Other, comm.context, 0)?;
    comm.device.end(ending, Ok(Status::new(0, 0, bytes as usize)));
    *place = Request::new(comm, Role::Access, open).keep(slot);
    Ok(())
}

/// A nonblocking access at an offset.
unsafe fn started_at(
    fh: MPI_File,
    offset: MPI_Offset,
    data: Data,
    request: *mut MPI_Request,
    way: Way,
) -> Outcome {
    // SAFETY: FC1.
    unsafe { started(fh, data, request, way.at(offset)) }
}

/// The first half of a split access.
unsafe fn begun(fh: MPI_File, data: Data, way: Way, name: &'static str) -> Outcome {
    let file = fh.find()?;
    if file.split().is_some() {
        attend(&file, way)?;
        let why = "a split collective of this file is under way; end it first";
        return Err(mpicore::Error::from(FileError::Split { why }).into());
    }
    // SAFETY: FC1.
    let bytes = unsafe { access(fh, data, way.all()) }?;
    *file.split() = Some((name, bytes));
    Ok(())
}

/// The first half of a split access at an offset.
unsafe fn begun_at(
    fh: MPI_File,
    offset: MPI_Offset,
    data: Data,
    way: Way,
    name: &'static str,
) -> Outcome {
    // SAFETY: FC1.
    unsafe { begun(fh, data, way.at(offset), name) }
}

/// The second half of a split access.
unsafe fn ended(
    fh: MPI_File,
    _buf: *const c_void,
    status: *mut MPI_Status,
    name: &'static str,
) -> Outcome {
    let file = fh.find()?;
    let found = file.split().take_if(|(begun, _)| *begun == name);
    let Some((_, bytes)) = found else {
        let why = "no such split collective of this file has begun";
        return Err(mpicore::Error::from(FileError::Split { why }).into());
    };
    // SAFETY: FC1.
    unsafe { status_of(bytes).store(status) };
    Ok(())
}

mpi_bodies! {
    MPI_File_read, MPI_File_read_c => now(READ);
    MPI_File_read_all, MPI_File_read_all_c => now(READ.all());
    MPI_File_read_shared, MPI_File_read_shared_c => now(READ.shared());
    MPI_File_read_ordered, MPI_File_read_ordered_c => now(READ.shared().all());
    MPI_File_read_at, MPI_File_read_at_c => now_at(READ);
    MPI_File_read_at_all, MPI_File_read_at_all_c => now_at(READ.all());
    MPI_File_write, MPI_File_write_c => now(WRITE);
    MPI_File_write_all, MPI_File_write_all_c => now(WRITE.all());
    MPI_File_write_shared, MPI_File_write_shared_c => now(WRITE.shared());
    MPI_File_write_ordered, MPI_File_write_ordered_c => now(WRITE.shared().all());
    MPI_File_write_at, MPI_File_write_at_c => now_at(WRITE);
    MPI_File_write_at_all, MPI_File_write_at_all_c => now_at(WRITE.all());
    MPI_File_iread, MPI_File_iread_c, MPI_File_iread_all, MPI_File_iread_all_c => started(READ);
    MPI_File_iread_shared, MPI_File_iread_shared_c => started(READ.shared());
    MPI_File_iread_at, MPI_File_iread_at_c, MPI_File_iread_at_all, MPI_File_iread_at_all_c => started_at(READ);
    MPI_File_iwrite, MPI_File_iwrite_c, MPI_File_iwrite_all, MPI_File_iwrite_all_c => started(WRITE);
    MPI_File_iwrite_shared, MPI_File_iwrite_shared_c => started(WRITE.shared());
    MPI_File_iwrite_at, MPI_File_iwrite_at_c, MPI_File_iwrite_at_all, MPI_File_iwrite_at_all_c => started_at(WRITE);
    MPI_File_read_all_begin, MPI_File_read_all_begin_c => begun(READ, "read_all");
    MPI_File_read_ordered_begin, MPI_File_read_ordered_begin_c => begun(READ.shared(), "read_ordered");
    MPI_File_read_at_all_begin, MPI_File_read_at_all_begin_c => begun_at(READ, "read_at_all");
    MPI_File_write_all_begin, MPI_File_write_all_begin_c => begun(WRITE, "write_all");
    MPI_File_write_ordered_begin, MPI_File_write_ordered_begin_c => begun(WRITE.shared(), "write_ordered");
    MPI_File_write_at_all_begin, MPI_File_write_at_all_begin_c => begun_at(WRITE, "write_at_all");
    MPI_File_read_all_end => ended("read_all");
    MPI_File_read_ordered_end => ended("read_ordered");
    MPI_File_read_at_all_end => ended("read_at_all");
    MPI_File_write_all_end => ended("write_all");
    MPI_File_write_ordered_end => ended("write_ordered");
    MPI_File_write_at_all_end => ended("write_at_all");
}
