//! Memory that MPI allocates for programs (MPI-4.1 section 9.2).

use std::alloc::{self, Layout};
use std::collections::HashMap;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::call::{Fault, mpi, negative, out};

/// The alignment of such memory in bytes: a cache line, more than any type needs.
const ALIGN: usize = 64;

/// The addresses of the memory that programs have and have not freed, with its layouts.
fn allocated() -> MutexGuard<'static, Option<HashMap<usize, Layout>>> {
    static ALLOCATED: Mutex<Option<HashMap<usize, Layout>>> = Mutex::new(None);
    ALLOCATED.lock().unwrap_or_else(PoisonError::into_inner)
}

mpi! {
    fn MPI_Alloc_mem(size: MPI_Aint, info: MPI_Info, baseptr: *mut c_void) -> c_int {
        let info = info.copied()?;
        let wanted = info.get(b"mpi_minimum_memory_alignment").and_then(|value| std::str::from_utf8(value).ok());
        let align = wanted.and_then(|value| value.parse().ok()).filter(|align| usize::is_power_of_two(*align));
        let place = out::place(baseptr.cast::<*mut c_void>(), "baseptr")?;
        let Ok(bytes) = usize::try_from(size) else {
            return Err(negative(MPI_ERR_ARG, "size", size));
        };
        let lacking = || Fault::new(MPI_ERR_NO_MEM, format!("there is no memory of {size} bytes"));
        // Each piece of memory has an address of its own, so none is empty.
        let layout = Layout::from_size_align(bytes.max(1), align.unwrap_or(ALIGN).max(ALIGN)).map_err(|_| lacking())?;
        // SAFETY: the size is not 0.
        let memory = alloc::alloc(layout);
        if memory.is_null() {
            return Err(lacking());
        }
        allocated().get_or_insert_default().insert(memory.expose_provenance(), layout);
        *place = memory.cast();
        Ok(())
    }

    fn MPI_Free_mem(base: *mut c_void) -> c_int {
        let found = allocated().as_mut().and_then(|allocated| allocated.remove(&base.addr()));
        match found {
            // SAFETY: the memory was allocated with this layout, and taken out of the list once.
            Some(layout) => alloc::dealloc(ptr::with_exposed_provenance_mut(base.addr()), layout),
            None if base.is_null() => {}
            None => {
                let text = "MPI_Alloc_mem has not returned this address, or it was freed";
                return Err(Fault::argument(MPI_ERR_BASE, "base", text));
            }
        }
        Ok(())
    }
}
