//! The environment (MPI-5.0 chapter 9): versions, clocks, addresses, and handles as integers (chapter 20).
//!
//! - `memory.rs`: memory that MPI allocates.
//! - `fortran.rs`: what the binary interface and a layer for Fortran tell about their types.

use mpicore::{Info, job};

use crate::call::{mpi_anytime, mpi_value, out};
use crate::comm::create::SHARED;
use crate::info::Hints;

mod fortran;
mod memory;

/// The version that MPI_Get_library_version returns.
const LIBRARY: &str = concat!("mpj ", env!("CARGO_PKG_VERSION"), ", MPI over active messages");

mpi_anytime! {
    fn MPI_Get_version(version: *mut c_int, subversion: *mut c_int) -> c_int {
        out::write(version, "version", MPI_VERSION)?;
        out::write(subversion, "subversion", MPI_SUBVERSION)
    }

    fn MPI_Abi_get_version(abi_major: *mut c_int, abi_minor: *mut c_int) -> c_int {
        out::write(abi_major, "abi_major", MPI_ABI_VERSION)?;
        out::write(abi_minor, "abi_minor", MPI_ABI_SUBVERSION)
    }

    fn MPI_Get_library_version(version: *mut c_char, resultlen: *mut c_int) -> c_int {
        out::text(version, resultlen, LIBRARY, MPI_MAX_LIBRARY_VERSION_STRING)
    }

    fn MPI_Get_processor_name(name: *mut c_char, resultlen: *mut c_int) -> c_int {
        let system = rustix::system::uname();
        let host = system.nodename().to_string_lossy();
        out::text(name, resultlen, host.as_bytes(), MPI_MAX_PROCESSOR_NAME)
    }

    // The host's memory is all that is known of its hardware; a process is not bound to a part of it.
    fn MPI_Get_hw_resource_info(hw_info: *mut MPI_Info) -> c_int {
        let place = out::place(hw_info, "hw_info")?;
        let mut info = Info::default();
        info.set(SHARED, b"false")?;
        *place = Hints::of(info).keep()?;
        Ok(())
    }

    fn MPI_Get_address(location: *const c_void, address: *mut MPI_Aint) -> c_int {
        out::write(address, "address", location.expose_provenance() as MPI_Aint)
    }

    fn MPI_Address(location: *mut c_void, address: *mut MPI_Aint) -> c_int {
        out::write(address, "address", location.expose_provenance() as MPI_Aint)
    }

    // Programs for a profiler, of which there is none.
    fn MPI_Pcontrol(level: c_int) -> c_int {
        let _ = level;
        Ok(())
    }
}

mpi_value! {
    fn MPI_Wtime() -> f64 {
        job::wtime()
    }

    fn MPI_Wtick() -> f64 {
        // The clock counts nanoseconds.
        1e-9
    }

    fn MPI_Aint_add(base: MPI_Aint, disp: MPI_Aint) -> MPI_Aint {
        base.wrapping_add(disp)
    }

    fn MPI_Aint_diff(addr1: MPI_Aint, addr2: MPI_Aint) -> MPI_Aint {
        addr1.wrapping_sub(addr2)
    }
}

/// Handles are numbers of 31 bits, so a conversion changes nothing.
macro_rules! integers {
    ($($handle:ident $from:ident $to:ident,)*) => {
        mpi_value! {
            $(
                fn $from(handle: c_int) -> $handle {
                    $handle(handle as usize)
                }

                fn $to(handle: $handle) -> c_int {
                    handle.0 as c_int
                }
            )*
        }
    };
}

integers! {
    MPI_Comm MPI_Comm_fromint MPI_Comm_toint,
    MPI_Errhandler MPI_Errhandler_fromint MPI_Errhandler_toint,
    MPI_File MPI_File_fromint MPI_File_toint,
    MPI_Group MPI_Group_fromint MPI_Group_toint,
    MPI_Info MPI_Info_fromint MPI_Info_toint,
    MPI_Message MPI_Message_fromint MPI_Message_toint,
    MPI_Op MPI_Op_fromint MPI_Op_toint,
    MPI_Request MPI_Request_fromint MPI_Request_toint,
    MPI_Session MPI_Session_fromint MPI_Session_toint,
    MPI_Datatype MPI_Type_fromint MPI_Type_toint,
    MPI_Win MPI_Win_fromint MPI_Win_toint,
}
