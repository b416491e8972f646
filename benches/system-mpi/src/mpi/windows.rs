//! The programs' [`Windows`] over the C API of MPI.
//!
//! - SW1: the memory of a window lasts until MPI_Win_free has returned. A window that is dropped instead leaves its memory to
//!   MPI; the job then ends.
//! - SW2: `body` of [`Windows::local`] has the memory while no rank accesses it, which the programs see to.
//! - SW3: [`Windows::access`] borrows its buffers until MPI has completed the operation, and checks that they are not
//!   shorter than the window, or one element.

use std::ffi::{c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::{ptr, slice};

use mpi_sys::{self as sys, MPI_Aint, MPI_Datatype, MPI_Group, MPI_Info, MPI_Win};
use mpj_bench_programs::Failure;
use mpj_bench_programs::one_sided::{Epoch, Memory, Operation, Windows};
use mpj_bench_programs::payload::Buffer;

use super::{SystemMpi, done, int};

/// The rank whose window is accessed.
const TARGET: c_int = 1;
/// Bytes of an element.
const WORD: usize = size_of::<u64>();

unsafe extern "C" {
    /// MPI_LOCK_SHARED; see `constants.c`.
    static mpj_bench_lock_shared: c_int;
}

/// A window of two ranks.
pub struct Window {
    win: MPI_Win,
    base: *mut u8,
    len: usize,
    /// The memory, if it is the program's.
    own: Option<ManuallyDrop<Buffer<u8>>>,
    /// The other rank.
    other: MPI_Group,
    element: MPI_Datatype,
    lock_shared: c_int,
}

impl SystemMpi {
    /// Returns the group of the other one of two ranks.
    fn other(&self) -> Result<MPI_Group, Failure> {
        let (mut all, mut other) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let rank = int(1 - self.rank.min(1))?;
        // SAFETY: N1; the pointers are to local variables, which a call that succeeds has written.
        unsafe {
            done(sys::MPI_Comm_group(self.world, all.as_mut_ptr()), "MPI_Comm_group")?;
            let mut all = all.assume_init();
            done(
                sys::MPI_Group_incl(all, 1, &raw const rank, other.as_mut_ptr()),
                "MPI_Group_incl",
            )?;
            done(sys::MPI_Group_free(&raw mut all), "MPI_Group_free")?;
            Ok(other.assume_init())
        }
    }
}

impl Windows for SystemMpi {
    type Window = Window;

    fn window(&self, len: usize, memory: Memory) -> Result<Window, Failure> {
        let (bytes, unit) = (int(len)? as MPI_Aint, 1);
        let (mut base, mut win) = (ptr::null_mut::<u8>(), MaybeUninit::<MPI_Win>::uninit());
        // SAFETY: N4.
        let info: MPI_Info = unsafe { sys::RSMPI_INFO_NULL };
        let (world, place) = (self.world, win.as_mut_ptr());
        let mut own = None;
        match memory {
            Memory::Allocated => {
                let into = (&raw mut base).cast::<c_void>();
                // SAFETY: N1; the pointers are to local variables.
                let code = unsafe { sys::MPI_Win_allocate(bytes, unit, info, world, into, place) };
                done(code, "MPI_Win_allocate")?;
            }
            Memory::Created => {
                base = own.insert(ManuallyDrop::new(Buffer::zeroed(len))).as_mut_ptr();
                // SAFETY: N1; SW1.
                let code =
                    unsafe { sys::MPI_Win_create(base.cast(), bytes, unit, info, world, place) };
                done(code, "MPI_Win_create")?;
            }
        }
        // SAFETY: the call has succeeded, so that the window is there; N4 for the constants.
        let (win, element, lock_shared) =
            unsafe { (win.assume_init(), sys::RSMPI_UINT64_T, mpj_bench_lock_shared) };
        let mut window = Window { win, base, len, own, other: self.other()?, element, lock_shared };
        self.local(&mut window, |memory| memory.fill(0));
        self.fence(&window)?;
        Ok(window)
    }

    fn free(&self, mut window: Window) -> Result<(), Failure> {
        // SAFETY: N1.
        done(unsafe { sys::MPI_Win_free(&raw mut window.win) }, "MPI_Win_free")?;
        // SAFETY: N1.
        done(unsafe { sys::MPI_Group_free(&raw mut window.other) }, "MPI_Group_free")?;
        drop(window.own.map(ManuallyDrop::into_inner));
        Ok(())
    }

    fn local<R>(&self, window: &mut Window, body: impl FnOnce(&mut [u8]) -> R) -> R {
        // SAFETY: SW1, SW2; memory that MPI has allocated was written by `window`.
        body(unsafe { slice::from_raw_parts_mut(window.base, window.len) })
    }

    fn lock_all(&self, window: &Window) -> Result<(), Failure> {
        // SAFETY: N1.
        done(unsafe { sys::MPI_Win_lock_all(0, window.win) }, "MPI_Win_lock_all")
    }

    fn unlock_all(&self, window: &Window) -> Result<(), Failure> {
        // SAFETY: N1.
        done(unsafe { sys::MPI_Win_unlock_all(window.win) }, "MPI_Win_unlock_all")
    }

    #[inline]
    fn access(
        &self,
        window: &Window,
        epoch: Epoch,
        operation: Operation,
        data: &[u8],
        result: &mut [u8],
    ) -> Result<(), Failure> {
        let win = window.win;
        match epoch {
            Epoch::Flush => {
                self.operate(window, operation, data, result)?;
                // SAFETY: N1.
                done(unsafe { sys::MPI_Win_flush(TARGET, win) }, "MPI_Win_flush")
            }
            Epoch::Lock => {
                // SAFETY: N1.
                let code = unsafe { sys::MPI_Win_lock(window.lock_shared, TARGET, 0, win) };
                done(code, "MPI_Win_lock")?;
                self.operate(window, operation, data, result)?;
                // SAFETY: N1.
                done(unsafe { sys::MPI_Win_unlock(TARGET, win) }, "MPI_Win_unlock")
            }
            Epoch::Fence => {
                self.fence(window)?;
                self.operate(window, operation, data, result)?;
                self.fence(window)
            }
            Epoch::Pscw => {
                // SAFETY: N1.
                done(unsafe { sys::MPI_Win_start(window.other, 0, win) }, "MPI_Win_start")?;
                self.operate(window, operation, data, result)?;
                // SAFETY: N1.
                done(unsafe { sys::MPI_Win_complete(win) }, "MPI_Win_complete")
            }
        }
    }

    #[inline]
    fn expose(&self, window: &Window, epoch: Epoch) -> Result<(), Failure> {
        match epoch {
            Epoch::Flush | Epoch::Lock => Ok(()),
            Epoch::Fence => {
                self.fence(window)?;
                self.fence(window)
            }
            Epoch::Pscw => {
                // SAFETY: N1.
                done(unsafe { sys::MPI_Win_post(window.other, 0, window.win) }, "MPI_Win_post")?;
                // SAFETY: N1.
                done(unsafe { sys::MPI_Win_wait(window.win) }, "MPI_Win_wait")
            }
        }
    }
}

impl SystemMpi {
    #[inline]
    fn fence(&self, window: &Window) -> Result<(), Failure> {
        // SAFETY: N1.
        done(unsafe { sys::MPI_Win_fence(0, window.win) }, "MPI_Win_fence")
    }

    /// Starts an operation, which the caller completes.
    #[inline]
    fn operate(
        &self,
        window: &Window,
        operation: Operation,
        data: &[u8],
        result: &mut [u8],
    ) -> Result<(), Failure> {
        let (win, element, sum, len) = (window.win, window.element, self.sum, window.len);
        let count = int(len / WORD)?;
        let least = match operation {
            Operation::CompareAndSwap => 2 * WORD,
            _ => len,
        };
        if data.len() < least || result.len() < len || len < WORD {
            return Err(Failure::new("one-sided operations want buffers as long as the window"));
        }
        let (from, into) = (data.as_ptr().cast::<c_void>(), result.as_mut_ptr().cast::<c_void>());
        let compare = from.wrapping_byte_add(WORD);
        // SAFETY: N1, SW3, for all calls.
        let (code, call) = unsafe {
            match operation {
                Operation::Put => {
                    (sys::MPI_Put(from, count, element, TARGET, 0, count, element, win), "MPI_Put")
                }
                Operation::Get => {
                    (sys::MPI_Get(into, count, element, TARGET, 0, count, element, win), "MPI_Get")
                }
                Operation::Accumulate => (
                    sys::MPI_Accumulate(from, count, element, TARGET, 0, count, element, sum, win),
                    "MPI_Accumulate",
                ),
                Operation::GetAccumulate => (
                    sys::MPI_Get_accumulate(
                        from, count, element, into, count, element, TARGET, 0, count, element, sum,
                        win,
                    ),
                    "MPI_Get_accumulate",
                ),
                Operation::FetchAndOp => (
                    sys::MPI_Fetch_and_op(from, into, element, TARGET, 0, sum, win),
                    "MPI_Fetch_and_op",
                ),
                Operation::CompareAndSwap => (
                    sys::MPI_Compare_and_swap(from, compare, into, element, TARGET, 0, win),
                    "MPI_Compare_and_swap",
                ),
            }
        };
        done(code, call)
    }
}
