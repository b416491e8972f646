//! Implements the benchmark programs' [`Job`] and [`Runtime`] on mpj.

use mpj::{Communicator, Error, Op};
use mpj_bench_programs::{Failure, Job, Post, Runtime};

/// One rank of an mpj job.
pub struct OverMpj<'world> {
    world: &'world Communicator,
}

impl<'world> OverMpj<'world> {
    /// Creates the runtime for `world`.
    pub fn new(world: &'world Communicator) -> Self {
        Self { world }
    }
}

impl Job for OverMpj<'_> {
    fn library(&self) -> String {
        concat!("mpj ", env!("CARGO_PKG_VERSION")).to_owned()
    }

    fn thresholds(&self) -> Vec<(usize, String)> {
        let steps = self.world.thresholds().unwrap_or_default();
        steps.into_iter().map(|step| (step.bytes, step.above.to_owned())).collect()
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("rendezvous reads by".to_owned(), self.world.get_report().to_owned())]
    }

    #[inline]
    fn rank(&self) -> usize {
        self.world.rank()
    }

    #[inline]
    fn size(&self) -> usize {
        self.world.size()
    }

    #[inline]
    fn barrier(&self) -> Result<(), Failure> {
        self.world.barrier().map_err(Failure::new)
    }

    #[inline]
    fn broadcast(&self, buffer: &mut [u8], root: usize) -> Result<(), Failure> {
        self.world.broadcast(buffer, root).map_err(Failure::new)
    }

    #[inline]
    fn allreduce(&self, values: &mut [f64]) -> Result<(), Failure> {
        self.world.all_reduce(values, Op::Sum).map_err(Failure::new)
    }

    #[inline]
    fn wtime(&self) -> f64 {
        mpj::wtime()
    }
}

impl Runtime for OverMpj<'_> {
    #[inline]
    fn send(&self, data: &[u8], to: usize, tag: i32) -> Result<(), Failure> {
        self.world.send(data, to, tag).map_err(Failure::new)
    }

    #[inline]
    fn recv(&self, buffer: &mut [u8], from: usize, tag: i32) -> Result<(), Failure> {
        self.world.recv(buffer, from, tag).map(drop).map_err(Failure::new)
    }

    #[inline]
    fn start_all<'buffer, R>(
        &self,
        posts: impl IntoIterator<Item = Post<'buffer>>,
        meanwhile: impl FnOnce() -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let outcome = self.world.scope(|scope| {
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
    fn reduce(&self, values: &[f64], sums: &mut [f64], root: usize) -> Result<(), Failure> {
        self.world.reduce(values, sums, Op::Sum, root).map_err(Failure::new)
    }

    #[inline]
    fn gather(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure> {
        self.world.gather(data, into, root).map_err(Failure::new)
    }

    #[inline]
    fn scatter(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure> {
        self.world.scatter(data, into, root).map_err(Failure::new)
    }

    #[inline]
    fn allgather(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure> {
        self.world.all_gather(data, into).map_err(Failure::new)
    }

    #[inline]
    fn alltoall(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure> {
        self.world.all_to_all(data, into).map_err(Failure::new)
    }
}

/// A failure within a scope, from mpj or from the code that runs in it.
struct Stopped(Failure);

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self(Failure::new(error))
    }
}
