//! What the binary interface tells about itself, and what a layer for Fortran tells about its compiler (MPI-5.0 chapter
//! 20).

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi_anytime, out};
use crate::info::Hints;
use mpicore::Info;

/// Fortran's truth values, as bytes of this length.
struct Booleans {
    size: c_int,
    truth: Vec<u8>,
    falsehood: Vec<u8>,
}

/// What the layer has told about its types; the first call counts.
static TYPES: OnceLock<Info> = OnceLock::new();

/// The sizes in bytes that the library has for Fortran's types without a size in their name.
const SIZES: [(&str, usize); 4] = [
    ("mpi_logical_size", 4),
    ("mpi_integer_size", 4),
    ("mpi_real_size", 4),
    ("mpi_double_precision_size", 8),
];

/// Refuses sizes that the library does not have.
fn check_types(info: &Info) -> Outcome {
    for (key, size) in SIZES {
        if let Some(given) =
            info.get(key.as_bytes()).filter(|given| *given != size.to_string().as_bytes())
        {
            let given = String::from_utf8_lossy(given);
            let text = format!("{key} is {given}, but the library has {size} bytes");
            return Err(Fault::argument(MPI_ERR_ABI, "info", text));
        }
    }
    Ok(())
}

/// The first call that sets them counts.
static BOOLEANS: OnceLock<Booleans> = OnceLock::new();

fn check_size(logical_size: c_int) -> Outcome<usize> {
    match logical_size {
        1 | 2 | 4 | 8 | 16 => Ok(logical_size as usize),
        _ => {
            let text = format!("{logical_size} is no size of truth values; give 1, 2, 4, 8 or 16");
            Err(Fault::argument(MPI_ERR_ARG, "logical_size", text))
        }
    }
}

unsafe fn read(value: *const c_void, size: usize, name: &'static str) -> Outcome<Vec<u8>> {
    // SAFETY: FC1.
    Ok(unsafe { out::list(value.cast::<u8>(), size as i64, name) }?.to_vec())
}

unsafe fn write(value: *mut c_void, bytes: &[u8], name: &'static str) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::list_mut(value.cast::<u8>(), bytes.len() as i64, name) }?;
    place.copy_from_slice(bytes);
    Ok(())
}

mpi_anytime! {
    fn MPI_Abi_get_info(info: *mut MPI_Info) -> c_int {
        let place = out::place(info, "info")?;
        let (aint, count, offset) = (size_of::<MPI_Aint>(), size_of::<MPI_Count>(), size_of::<MPI_Offset>());
        let mut sizes = Info::default();
        for (key, size) in [("mpi_aint_size", aint), ("mpi_count_size", count), ("mpi_offset_size", offset)] {
            sizes.set(key.as_bytes(), size.to_string().as_bytes())?;
        }
        *place = Hints::of(sizes).keep()?;
        Ok(())
    }

    fn MPI_Abi_set_fortran_info(info: MPI_Info) -> c_int {
        let given = info.find()?.lock().clone();
        check_types(&given)?;
        TYPES.set(given).map_err(|_| Fault::new(MPI_ERR_ABI, "Fortran's types are set already"))
    }

    // The library itself has no layer for Fortran, so it knows nothing until one tells.
    fn MPI_Abi_get_fortran_info(info: *mut MPI_Info) -> c_int {
        let place = out::place(info, "info")?;
        *place = TYPES.get().map_or(Ok(MPI_INFO_NULL), |known| Hints::of(known.clone()).keep())?;
        Ok(())
    }

    fn MPI_Abi_set_fortran_booleans(
        logical_size: c_int, logical_true: *mut c_void, logical_false: *mut c_void
    ) -> c_int {
        let len = check_size(logical_size)?;
        let truth = read(logical_true, len, "logical_true")?;
        let falsehood = read(logical_false, len, "logical_false")?;
        let text = "Fortran's truth values are set already";
        let set = BOOLEANS.set(Booleans { size: logical_size, truth, falsehood });
        set.map_err(|_| Fault::new(MPI_ERR_ABI, text))
    }

    fn MPI_Abi_get_fortran_booleans(
        logical_size: c_int, logical_true: *mut c_void, logical_false: *mut c_void, is_set: *mut c_int
    ) -> c_int {
        check_size(logical_size)?;
        let place = out::place(is_set, "is_set")?;
        let found = BOOLEANS.get().filter(|known| known.size == logical_size);
        if let Some(Booleans { truth, falsehood, .. }) = found {
            write(logical_true, truth, "logical_true")?;
            write(logical_false, falsehood, "logical_false")?;
        }
        *place = found.is_some().into();
        Ok(())
    }
}
