//! Packing and unpacking (MPI-4.1 sections 5.2 and 5.3).

use std::ffi::{CStr, c_char, c_void};

use mpjdev::{RecvRegion, SendRegion, Sink, Source};

use super::data::null_buffer;
use super::{Data, Number};
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi_bodies, out};

/// The packed bytes of a call: where they begin in the packed buffer, and where they end.
struct Part {
    from: usize,
    to: i64,
}

impl Part {
    /// Finds the place for `len` bytes at `position` of a packed buffer of `size` bytes.
    fn of(buffer: *const c_void, size: i64, position: i64, len: usize) -> Outcome<Self> {
        let wrong = |argument, text| Err(Fault::argument(MPI_ERR_ARG, argument, text));
        if size < 0 {
            return wrong("size", format!("the size {size} of the packed buffer is negative"));
        }
        if !(0..=size).contains(&position) {
            return wrong("position", format!("{position} is not inside the {size} bytes"));
        }
        let left = (size - position) as usize;
        if len > left {
            let text = format!(
                "the packed buffer has {left} bytes from position {position} on, {len} are needed"
            );
            return Err(Fault::argument(MPI_ERR_TRUNCATE, "position", text));
        }
        if len > 0 && buffer.is_null() {
            return Err(null_buffer());
        }
        Ok(Self { from: position as usize, to: position + len as i64 })
    }
}

unsafe fn pack<N: Number>(
    data: Data,
    outbuf: *mut c_void,
    outsize: N,
    position: *mut N,
    comm: MPI_Comm,
) -> Outcome {
    comm.find()?;
    // SAFETY: FC1.
    let (position, data) = unsafe { (out::place(position, "position")?, data.source()?) };
    let len = data.len();
    let part = Part::of(outbuf, outsize.wide(), position.wide(), len)?;
    let at = outbuf.cast::<u8>().wrapping_add(part.from);
    // SAFETY: FC1: the buffer has `outsize` bytes, and the part lies inside.
    data.copy_to(&mut Sink::from(unsafe { RecvRegion::new(at, len) }));
    *position = N::narrowed(part.to);
    Ok(())
}

unsafe fn unpack<N: Number>(
    inbuf: *const c_void,
    insize: N,
    position: *mut N,
    data: Data,
    comm: MPI_Comm,
) -> Outcome {
    comm.find()?;
    // SAFETY: FC1.
    let (position, mut into) = unsafe { (out::place(position, "position")?, data.sink()?) };
    let len = into.len();
    let part = Part::of(inbuf, insize.wide(), position.wide(), len)?;
    let at = inbuf.cast::<u8>().wrapping_add(part.from);
    // SAFETY: FC1: the buffer has `insize` bytes, and the part lies inside.
    Source::from(unsafe { SendRegion::new(at, len) }).copy_to(&mut into);
    *position = N::narrowed(part.to);
    Ok(())
}

unsafe fn pack_size<N: Number>(
    incount: N,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
    size: *mut N,
) -> Outcome {
    comm.find()?;
    let bytes = datatype.find()?.pack_size(incount.wide())?;
    // SAFETY: FC1.
    unsafe { out::write(size, "size", N::narrowed(bytes as i64)) }
}

/// Refuses all representations but the one that MPI defines.
unsafe fn check_datarep(datarep: *const c_char) -> Outcome {
    if datarep.is_null() {
        return Err(out::null("datarep"));
    }
    // SAFETY: FC1: it is a string.
    match unsafe { CStr::from_ptr(datarep) } {
        name if name == c"external32" => Ok(()),
        name => {
            let text = format!("the representation {name:?} is not known; give \"external32\"");
            Err(Fault::argument(MPI_ERR_ARG, "datarep", text))
        }
    }
}

unsafe fn pack_external<P: Number>(
    datarep: *const c_char,
    data: Data,
    outbuf: *mut c_void,
    outsize: P,
    position: *mut P,
) -> Outcome {
    let Data { count, datatype, .. } = data;
    // SAFETY: FC1.
    let (position, data) = unsafe {
        check_datarep(datarep)?;
        (out::place(position, "position")?, data.source()?)
    };
    let mut native = vec![0_u8; data.len()];
    // SAFETY: the vector is as long as the region.
    let region = unsafe { RecvRegion::new(native.as_mut_ptr(), native.len()) };
    data.copy_to(&mut Sink::from(region));
    let found = datatype.find()?;
    let mut external = vec![0_u8; found.pack_external_size(count)?];
    found.packed_to_external(&native, count, &mut external, &mut 0)?;
    let part = Part::of(outbuf, outsize.wide(), position.wide(), external.len())?;
    let at = outbuf.cast::<u8>().wrapping_add(part.from);
    // SAFETY: FC1: the buffer has `outsize` bytes, and the part lies inside.
    unsafe { at.copy_from_nonoverlapping(external.as_ptr(), external.len()) };
    *position = P::narrowed(part.to);
    Ok(())
}

unsafe fn unpack_external<P: Number>(
    datarep: *const c_char,
    inbuf: *const c_void,
    insize: P,
    position: *mut P,
    data: Data,
) -> Outcome {
    let Data { count, datatype, .. } = data;
    // SAFETY: FC1.
    let (position, mut into) = unsafe {
        check_datarep(datarep)?;
        (out::place(position, "position")?, data.sink()?)
    };
    let found = datatype.find()?;
    let mut external = vec![0_u8; found.pack_external_size(count)?];
    let part = Part::of(inbuf, insize.wide(), position.wide(), external.len())?;
    let at = inbuf.cast::<u8>().wrapping_add(part.from);
    // SAFETY: FC1: the buffer has `insize` bytes, and the part lies inside.
    unsafe { at.copy_to_nonoverlapping(external.as_mut_ptr(), external.len()) };
    let mut native = vec![0_u8; into.len()];
    found.external_to_packed(&external, &mut 0, &mut native, count)?;
    Source::from(native).copy_to(&mut into);
    *position = P::narrowed(part.to);
    Ok(())
}

unsafe fn pack_external_size(
    datarep: *const c_char,
    incount: impl Number,
    datatype: MPI_Datatype,
    size: *mut impl Number,
) -> Outcome {
    // SAFETY: FC1.
    unsafe { check_datarep(datarep) }?;
    let bytes = datatype.find()?.pack_external_size(incount.wide())?;
    // SAFETY: FC1.
    unsafe { out::write(size, "size", Number::narrowed(bytes as i64)) }
}

mpi_bodies! {
    MPI_Pack, MPI_Pack_c => pack();
    MPI_Unpack, MPI_Unpack_c => unpack();
    MPI_Pack_size, MPI_Pack_size_c => pack_size();
    MPI_Pack_external, MPI_Pack_external_c => pack_external();
    MPI_Unpack_external, MPI_Unpack_external_c => unpack_external();
    MPI_Pack_external_size, MPI_Pack_external_size_c => pack_external_size();
}
