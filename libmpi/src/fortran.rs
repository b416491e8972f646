//! What a layer for Fortran tells about its compiler (MPI-5.0 chapter 20).

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi_anytime, out};

/// Fortran's truth values, as bytes of this length.
struct Booleans {
    size: c_int,
    truth: Vec<u8>,
    falsehood: Vec<u8>,
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
