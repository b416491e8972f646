//! The programs' [`Job`] and [`Runtime`] straight over the C API of MPI, as lean as a C program would be.
//!
//! - N1: there is one [`SystemMpi`] at most, made by MPI_Init, used up by MPI_Finalize, and kept on
//!   the thread that made it. All other calls of MPI are made by its methods.
//! - N2: pointer and count of a blocking call are those of a slice that is borrowed until the call
//!   returns, exclusively if MPI writes to it. Every byte is a valid `u8`, every eight a valid `f64`.
//! - N3: the buffer of an operation that was started is borrowed for longer than the call of
//!   `start_all`, and that call ends only after MPI_Waitall has succeeded. In every other case,
//!   unwinding included, [`Underway`] ends the process.
//! - N4: the names of handles and of marks are constants of MPI, which nobody changes.

#![expect(unsafe_code, reason = "calls C")]

mod windows;

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::{mem, process, ptr};

use mpi_sys::{self as sys, MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request, MPI_Status};
use mpj_bench_programs::{Failure, Job, Post, Runtime, worker};

const SUCCESS: c_int = sys::MPI_SUCCESS as c_int;

unsafe extern "C" {
    /// MPI_IN_PLACE; see `constants.c`.
    static mpj_bench_in_place: *const c_void;
}

/// The one connection of this process to MPI.
pub struct SystemMpi {
    rank: usize,
    size: usize,
    world: MPI_Comm,
    byte: MPI_Datatype,
    double: MPI_Datatype,
    sum: MPI_Op,
    in_place: *const c_void,
    no_status: *mut MPI_Status,
    no_statuses: *mut MPI_Status,
    /// Memory for requests, kept from one call of `start_all` to the next.
    spare: Cell<Vec<MPI_Request>>,
    /// Keeps this value on its thread.
    stays: PhantomData<*const ()>,
}

impl SystemMpi {
    /// Calls MPI_Init. Errors of all later calls end the job, which is what MPI does unless told
    /// otherwise.
    ///
    /// # Errors
    /// MPI runs, or has run, or does not start.
    pub fn init() -> Result<Self, Failure> {
        let (mut before, mut rank, mut size) = (0, 0, 0);
        // SAFETY: MPI_Initialized may be called at any time; the pointer is one to a local variable.
        done(unsafe { sys::MPI_Initialized(&raw mut before) }, "MPI_Initialized")?;
        if before != 0 {
            return Err(Failure::new("MPI runs already"));
        }
        // SAFETY: the first call of MPI_Init (N1); MPI does without the command line.
        done(unsafe { sys::MPI_Init(ptr::null_mut(), ptr::null_mut()) }, "MPI_Init")?;
        // SAFETY: N4.
        let world = unsafe { sys::RSMPI_COMM_WORLD };
        // SAFETY: MPI runs; the pointer is one to a local variable.
        done(unsafe { sys::MPI_Comm_rank(world, &raw mut rank) }, "MPI_Comm_rank")?;
        // SAFETY: as above.
        done(unsafe { sys::MPI_Comm_size(world, &raw mut size) }, "MPI_Comm_size")?;
        // SAFETY: N4, for all the constants.
        Ok(unsafe {
            Self {
                rank: rank as usize,
                size: size as usize,
                world,
                byte: sys::RSMPI_UINT8_T,
                double: sys::RSMPI_DOUBLE,
                sum: sys::RSMPI_SUM,
                in_place: mpj_bench_in_place,
                no_status: sys::RSMPI_STATUS_IGNORE,
                no_statuses: sys::RSMPI_STATUSES_IGNORE,
                spare: Cell::default(),
                stays: PhantomData,
            }
        })
    }

    /// Reports `failure` and ends the whole job.
    fn fail(&self, failure: Failure) -> ! {
        let _ = worker::ended(Err(failure));
        self.abort()
    }

    #[expect(clippy::disallowed_methods, reason = "MPI_Abort ends the process by its meaning")]
    fn abort(&self) -> ! {
        // SAFETY: N1.
        unsafe { sys::MPI_Abort(self.world, 1) };
        // MPI says that it tries to end the processes.
        process::abort()
    }

    /// Starts an operation. Its buffer belongs to MPI until the request is complete.
    ///
    /// # Safety
    /// The caller keeps the borrow inside `post` until then (N3).
    #[inline]
    unsafe fn start(&self, post: Post<'_>) -> Result<MPI_Request, Failure> {
        let mut request = mem::MaybeUninit::uninit();
        match post {
            Post::Send { data, to, tag } => {
                let (count, to, data) = (int(data.len())?, int(to)?, data.as_ptr().cast());
                let request = request.as_mut_ptr();
                // SAFETY: N1, and N3 by the caller's promise.
                let code =
                    unsafe { sys::MPI_Isend(data, count, self.byte, to, tag, self.world, request) };
                done(code, "MPI_Isend")?;
            }
            Post::Receive { buffer, from, tag } => {
                let (count, from) = (int(buffer.len())?, int(from)?);
                let (buffer, request) = (buffer.as_mut_ptr().cast(), request.as_mut_ptr());
                // SAFETY: N1, and N3 by the caller's promise.
                let code = unsafe {
                    sys::MPI_Irecv(buffer, count, self.byte, from, tag, self.world, request)
                };
                done(code, "MPI_Irecv")?;
            }
        }
        // SAFETY: a call that succeeded has stored the request.
        Ok(unsafe { request.assume_init() })
    }
}

/// The requests of one call of `start_all`. Where it is dropped with any of them, the job ends,
/// since MPI would go on using buffers that are borrowed no longer.
struct Underway<'mpi> {
    mpi: &'mpi SystemMpi,
    requests: Vec<MPI_Request>,
}

impl Underway<'_> {
    /// Waits for all of them. After an error they stay under way.
    #[inline]
    fn wait(&mut self) -> Result<(), Failure> {
        let count = int(self.requests.len())?;
        let requests = self.requests.as_mut_ptr();
        // SAFETY: N1; so many requests are there, and no statuses are wanted.
        let code = unsafe { sys::MPI_Waitall(count, requests, self.mpi.no_statuses) };
        done(code, "MPI_Waitall")?;
        self.requests.clear();
        self.mpi.spare.set(mem::take(&mut self.requests));
        Ok(())
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        if !self.requests.is_empty() {
            self.mpi.abort();
        }
    }
}

impl Job for SystemMpi {
    #[inline]
    fn rank(&self) -> usize {
        self.rank
    }

    #[inline]
    fn size(&self) -> usize {
        self.size
    }

    #[inline]
    fn barrier(&self) -> Result<(), Failure> {
        // SAFETY: N1.
        done(unsafe { sys::MPI_Barrier(self.world) }, "MPI_Barrier")
    }

    fn exchange(&self, word: u64) -> Result<Vec<u64>, Failure> {
        let mut words = vec![0; self.size * size_of::<u64>()];
        self.allgather(&word.to_ne_bytes(), &mut words)?;
        let words = words.chunks_exact(size_of::<u64>()).map(|word| word.try_into());
        Ok(words.map(|word| u64::from_ne_bytes(word.expect("it has 8 bytes"))).collect())
    }

    #[inline]
    fn wtime(&self) -> f64 {
        // SAFETY: N1.
        unsafe { sys::MPI_Wtime() }
    }

    /// Calls MPI_Finalize.
    fn leave(self) -> Result<(), Failure> {
        // SAFETY: N1; nothing is under way (N3).
        done(unsafe { sys::MPI_Finalize() }, "MPI_Finalize")
    }

    fn abandon(self) {
        self.abort()
    }
}

impl Runtime for SystemMpi {
    #[inline]
    fn send(&self, data: &[u8], to: usize, tag: i32) -> Result<(), Failure> {
        let (count, to, data) = (int(data.len())?, int(to)?, data.as_ptr().cast());
        // SAFETY: N1, N2.
        let code = unsafe { sys::MPI_Send(data, count, self.byte, to, tag, self.world) };
        done(code, "MPI_Send")
    }

    #[inline]
    fn recv(&self, buffer: &mut [u8], from: usize, tag: i32) -> Result<(), Failure> {
        let (count, from) = (int(buffer.len())?, int(from)?);
        let (buffer, none) = (buffer.as_mut_ptr().cast(), self.no_status);
        // SAFETY: N1, N2; no status is wanted.
        let code = unsafe { sys::MPI_Recv(buffer, count, self.byte, from, tag, self.world, none) };
        done(code, "MPI_Recv")
    }

    #[inline]
    fn start_all<'buffer, R>(
        &self,
        posts: impl IntoIterator<Item = Post<'buffer>>,
        meanwhile: impl FnOnce() -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut underway = Underway { mpi: self, requests: self.spare.take() };
        for post in posts {
            // SAFETY: `'buffer` is longer than this call, which ends as N3 says: `fail` does not
            // return, and `underway` sees to the rest.
            match unsafe { self.start(post) } {
                Ok(request) => underway.requests.push(request),
                Err(failure) => self.fail(failure),
            }
        }
        let ended = meanwhile().and_then(|value| {
            underway.wait()?;
            Ok(value)
        });
        ended.or_else(|failure| self.fail(failure))
    }

    #[inline]
    fn broadcast(&self, buffer: &mut [u8], root: usize) -> Result<(), Failure> {
        let (count, root, buffer) = (int(buffer.len())?, int(root)?, buffer.as_mut_ptr().cast());
        // SAFETY: N1, N2.
        let code = unsafe { sys::MPI_Bcast(buffer, count, self.byte, root, self.world) };
        done(code, "MPI_Bcast")
    }

    #[inline]
    fn allreduce(&self, values: &mut [f64]) -> Result<(), Failure> {
        let (count, values) = (int(values.len())?, values.as_mut_ptr().cast());
        let (double, sum) = (self.double, self.sum);
        // SAFETY: N1, N2; the mark says that the summands are where the sums go.
        let code =
            unsafe { sys::MPI_Allreduce(self.in_place, values, count, double, sum, self.world) };
        done(code, "MPI_Allreduce")
    }

    #[inline]
    fn reduce(&self, values: &[f64], sums: &mut [f64], root: usize) -> Result<(), Failure> {
        if self.rank == root && values.len() != sums.len() {
            return Err(Failure::new("reduce wants room for as many sums as there are values"));
        }
        let (count, root, double) = (int(values.len())?, int(root)?, self.double);
        let (values, sums) = (values.as_ptr().cast(), sums.as_mut_ptr().cast());
        let (sum, world) = (self.sum, self.world);
        // SAFETY: N1, N2: at the root both slices have the same length; elsewhere MPI leaves the sums alone.
        let code = unsafe { sys::MPI_Reduce(values, sums, count, double, sum, root, world) };
        done(code, "MPI_Reduce")
    }

    #[inline]
    fn gather(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure> {
        if self.rank == root && Some(into.len()) != data.len().checked_mul(self.size) {
            return Err(Failure::new("gather wants room for a block of each rank at the root"));
        }
        let (block, root, byte) = (int(data.len())?, int(root)?, self.byte);
        let (data, into) = (data.as_ptr().cast(), into.as_mut_ptr().cast());
        let world = self.world;
        // SAFETY: N1, N2: at the root there is room for all blocks; elsewhere MPI leaves it alone.
        let code = unsafe { sys::MPI_Gather(data, block, byte, into, block, byte, root, world) };
        done(code, "MPI_Gather")
    }

    #[inline]
    fn scatter(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure> {
        if self.rank == root && Some(data.len()) != into.len().checked_mul(self.size) {
            return Err(Failure::new("scatter wants a block for each rank at the root"));
        }
        let (block, root, byte) = (int(into.len())?, int(root)?, self.byte);
        let (data, into) = (data.as_ptr().cast(), into.as_mut_ptr().cast());
        let world = self.world;
        // SAFETY: N1, N2: at the root there are all blocks; elsewhere MPI leaves them alone.
        let code = unsafe { sys::MPI_Scatter(data, block, byte, into, block, byte, root, world) };
        done(code, "MPI_Scatter")
    }

    #[inline]
    fn allgather(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure> {
        if Some(into.len()) != data.len().checked_mul(self.size) {
            return Err(Failure::new("allgather wants room for a block of each rank"));
        }
        let (block, byte) = (int(data.len())?, self.byte);
        let (data, into) = (data.as_ptr().cast(), into.as_mut_ptr().cast());
        // SAFETY: N1, N2: there is room for all blocks.
        let code = unsafe { sys::MPI_Allgather(data, block, byte, into, block, byte, self.world) };
        done(code, "MPI_Allgather")
    }

    #[inline]
    fn alltoall(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure> {
        if data.len() != into.len() || data.len() % self.size != 0 {
            return Err(Failure::new("alltoall wants as many equal blocks on both sides as ranks"));
        }
        let (block, byte) = (int(data.len() / self.size)?, self.byte);
        let (data, into) = (data.as_ptr().cast(), into.as_mut_ptr().cast());
        // SAFETY: N1, N2: both slices have one block for each rank.
        let code = unsafe { sys::MPI_Alltoall(data, block, byte, into, block, byte, self.world) };
        done(code, "MPI_Alltoall")
    }
}

/// A length, a rank or a number of requests, as MPI counts.
#[inline]
fn int(value: usize) -> Result<c_int, Failure> {
    value
        .try_into()
        .map_err(|_| Failure::new(format_args!("MPI counts up to {}, this is {value}", c_int::MAX)))
}

/// The outcome of a call.
#[inline]
fn done(code: c_int, call: &str) -> Result<(), Failure> {
    if code == SUCCESS {
        return Ok(());
    }
    Err(Failure::new(format_args!("{call} returned error {code}")))
}
