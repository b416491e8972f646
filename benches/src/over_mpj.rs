//! The benchmark programs' [`Runtime`] over mpj.
//!
//! Collective calls that mpj has not are made from messages here, in a communicator of their own, so
//! that the programs run; they are not measured as calls.

use mpj::{ANY_SOURCE, Communicator, Error};
use mpj_bench_programs::{Failure, Post, Runtime, Source};

/// Tag of the collective calls: messages between two ranks do not overtake each other.
const TAG: i32 = 0;

/// One rank of an mpj job.
pub struct OverMpj<'world> {
    world: &'world Communicator,
    collective: Communicator,
}

impl<'world> OverMpj<'world> {
    /// Measures in `world`. Collective.
    ///
    /// # Errors
    /// As [`Communicator::dup`].
    pub fn new(world: &'world Communicator) -> Result<Self, Error> {
        Ok(Self { world, collective: world.dup()? })
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.rank();
        (0..self.size()).filter(move |other| *other != rank)
    }
}

impl Runtime for OverMpj<'_> {
    type Allocated<'runtime>
        = mpj::Buffer<u8>
    where
        Self: 'runtime;

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

    fn allocate(&self, len: usize) -> Result<mpj::Buffer<u8>, Failure> {
        mpj::alloc_buffer(len).map_err(Failure::new)
    }

    #[inline]
    fn send(&self, data: &[u8], to: usize, tag: i32) -> Result<(), Failure> {
        self.world.send(data, to, tag).map_err(Failure::new)
    }

    #[inline]
    fn recv(&self, buffer: &mut [u8], from: Source, tag: i32) -> Result<(), Failure> {
        let status = match from {
            Source::Rank(rank) => self.world.recv(buffer, rank, tag),
            Source::Any => self.world.recv(buffer, ANY_SOURCE, tag),
        };
        status.map(drop).map_err(Failure::new)
    }

    #[inline]
    fn start_all<'buffer, R>(
        &self,
        posts: impl IntoIterator<Item = Post<'buffer>>,
        meanwhile: impl FnOnce() -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        start_all(self.world, posts, meanwhile)
    }

    #[inline]
    fn barrier(&self) -> Result<(), Failure> {
        self.world.barrier().map_err(Failure::new)
    }

    fn has_collectives(&self) -> bool {
        false
    }

    fn broadcast(&self, buffer: &mut [u8], root: usize) -> Result<(), Failure> {
        if self.rank() != root {
            return self.collective.recv(buffer, root, TAG).map(drop).map_err(Failure::new);
        }
        let mut others = self.others();
        others.try_for_each(|to| self.collective.send(buffer, to, TAG)).map_err(Failure::new)
    }

    fn allreduce(&self, values: &mut [f64]) -> Result<(), Failure> {
        if self.rank() != 0 {
            self.collective.send(values, 0, TAG).map_err(Failure::new)?;
            return self.collective.recv(values, 0, TAG).map(drop).map_err(Failure::new);
        }
        let mut summands = vec![0.0; values.len()];
        for from in self.others() {
            self.collective.recv(&mut summands, from, TAG).map_err(Failure::new)?;
            values.iter_mut().zip(&summands).for_each(|(sum, value)| *sum += value);
        }
        let mut others = self.others();
        others.try_for_each(|to| self.collective.send(values, to, TAG)).map_err(Failure::new)
    }

    fn alltoall(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure> {
        let (rank, block) = (self.rank(), data.len() / self.size());
        if block == 0 {
            return Ok(());
        }
        into[rank * block..][..block].copy_from_slice(&data[rank * block..][..block]);
        let places = into.chunks_mut(block).enumerate().filter(|(from, _)| *from != rank);
        let receives = places.map(|(from, buffer)| Post::Receive {
            buffer,
            from: Source::Rank(from),
            tag: TAG,
        });
        let sends =
            self.others().map(|to| Post::Send { data: &data[to * block..][..block], to, tag: TAG });
        start_all(&self.collective, receives.chain(sends), || Ok(()))
    }

    #[inline]
    fn wtime(&self) -> f64 {
        mpj::wtime()
    }
}

#[inline]
fn start_all<'buffer, R>(
    communicator: &Communicator,
    posts: impl IntoIterator<Item = Post<'buffer>>,
    meanwhile: impl FnOnce() -> Result<R, Failure>,
) -> Result<R, Failure> {
    let outcome = communicator.scope(|scope| {
        for post in posts {
            match post {
                Post::Send { data, to, tag } => scope.isend(data, to, tag).map(drop),
                Post::Receive { buffer, from: Source::Rank(rank), tag } => {
                    scope.irecv(buffer, rank, tag).map(drop)
                }
                Post::Receive { buffer, from: Source::Any, tag } => {
                    scope.irecv(buffer, ANY_SOURCE, tag).map(drop)
                }
            }?;
        }
        meanwhile().map_err(Stopped)
    });
    outcome.map_err(|Stopped(failure)| failure)
}

/// A failure in a scope, of a call of mpj or of what is done meanwhile.
struct Stopped(Failure);

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self(Failure::new(error))
    }
}
