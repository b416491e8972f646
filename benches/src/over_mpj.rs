//! Implements the benchmark programs' [`Job`] and [`Runtime`] on mpj.

use mpj::{Error, Op, World};
use mpj_bench_programs::{Failure, Job, Post, Runtime};

/// One rank of an mpj job.
pub struct OverMpj(World);

impl OverMpj {
    /// Joins the job that the environment describes.
    ///
    /// # Errors
    /// An error of mpj.
    pub fn init() -> Result<Self, Failure> {
        mpj::init().map(Self).map_err(Failure::new)
    }
}

impl OverMpj {
    /// Returns the bytes of all ranks, in rank order, each with as many.
    ///
    /// # Errors
    /// An error of mpj.
    pub fn exchange_bytes(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        let mut all = vec![0; bytes.len() * self.size()];
        self.0.all_gather(bytes, &mut all).map_err(Failure::new)?;
        Ok(all.chunks(bytes.len()).map(<[u8]>::to_vec).collect())
    }
}

impl Job for OverMpj {
    fn thresholds(&self) -> Vec<(usize, String)> {
        let steps = self.0.thresholds().unwrap_or_default();
        steps.into_iter().map(|step| (step.bytes, step.above.to_owned())).collect()
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("rendezvous reads by".to_owned(), self.0.one_sided_path().to_owned())]
    }

    #[inline]
    fn rank(&self) -> usize {
        self.0.rank()
    }

    #[inline]
    fn size(&self) -> usize {
        self.0.size()
    }

    #[inline]
    fn barrier(&self) -> Result<(), Failure> {
        self.0.barrier().map_err(Failure::new)
    }

    fn exchange(&self, word: u64) -> Result<Vec<u64>, Failure> {
        let mut words = vec![0; self.size()];
        self.0.all_gather(&word, &mut words).map_err(Failure::new)?;
        Ok(words)
    }

    #[inline]
    fn wtime(&self) -> f64 {
        mpj::wtime()
    }
}

impl Runtime for OverMpj {
    #[inline]
    fn send(&self, data: &[u8], to: usize, tag: i32) -> Result<(), Failure> {
        self.0.send(data, to, tag).map_err(Failure::new)
    }

    #[inline]
    fn recv(&self, buffer: &mut [u8], from: usize, tag: i32) -> Result<(), Failure> {
        self.0.recv(buffer, from, tag).map(drop).map_err(Failure::new)
    }

    #[inline]
    fn start_all<'buffer, R>(
        &self,
        posts: impl IntoIterator<Item = Post<'buffer>>,
        meanwhile: impl FnOnce() -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let outcome = self.0.try_scope(|scope| {
            for post in posts {
                match post {
                    Post::Send { data, to, tag } => scope.isend(data, to, tag).map(drop),
                    Post::Receive { buffer, from, tag } => scope.irecv(buffer, from, tag).map(drop),
                }?;
            }
            meanwhile().map_err(Stopped)
        });
        outcome.map_err(|Stopped(failure)| failure)
    }

    #[inline]
    fn broadcast(&self, buffer: &mut [u8], root: usize) -> Result<(), Failure> {
        self.0.broadcast(buffer, root).map_err(Failure::new)
    }

    #[inline]
    fn allreduce(&self, values: &mut [f64]) -> Result<(), Failure> {
        self.0.all_reduce(values, Op::Sum).map_err(Failure::new)
    }

    #[inline]
    fn reduce(&self, values: &[f64], sums: &mut [f64], root: usize) -> Result<(), Failure> {
        self.0.reduce(values, sums, Op::Sum, root).map_err(Failure::new)
    }

    #[inline]
    fn gather(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure> {
        self.0.gather(data, into, root).map_err(Failure::new)
    }

    #[inline]
    fn scatter(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure> {
        self.0.scatter(data, into, root).map_err(Failure::new)
    }

    #[inline]
    fn allgather(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure> {
        self.0.all_gather(data, into).map_err(Failure::new)
    }

    #[inline]
    fn alltoall(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure> {
        self.0.all_to_all(data, into).map_err(Failure::new)
    }
}

/// A failure within a scope, from mpj or from the code that runs in it.
struct Stopped(Failure);

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self(Failure::new(error))
    }
}
