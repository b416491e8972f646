//! The benchmark worker for libfabric without an MPI. `mpj-bench` starts it through `mpjrun`; mpj tells the two ranks
//! each other's addresses, and is otherwise used only between measurements.

use std::cell::RefCell;
use std::process::ExitCode;

use mpj_bench::over_mpj::OverMpj;
use mpj_bench_programs::{Failure, Job, Order, Post, Program, Runtime, worker};
use transport_lapi::adapters::ofi::{Bare, Fabric};
use transport_lapi::config::Settings;

/// Two ranks, each with an endpoint of its own beside that of mpj.
struct OverFabric {
    mpj: OverMpj,
    bare: RefCell<Bare>,
    explanation: String,
}

fn main() -> ExitCode {
    worker::main(OverFabric::init, |fabric, orders| {
        let orders: Vec<Order> = orders.iter().map(measurable).collect();
        worker::run(fabric, &orders, &mut worker::print)
    })
}

/// The part of an order that can be measured: messages, up to the length of a packet.
fn measurable(order: &Order) -> Order {
    use Program::{Bandwidth, Bibw, Empty, Latency, Rate};
    let mut order = order.clone();
    order.programs.retain(|it| matches!(it, Bandwidth | Bibw | Empty | Latency | Rate));
    order.sizes.retain(|size| *size <= Bare::LONGEST);
    order
}

impl OverFabric {
    fn init() -> Result<Self, Failure> {
        let mpj = OverMpj::init()?;
        let settings = Settings::from_env().map_err(Failure::new)?;
        let fabric = Fabric::open(&settings.fabric).map_err(Failure::new)?;
        let endpoint = fabric.endpoint().map_err(Failure::new)?;
        let addresses = mpj.exchange_bytes(endpoint.address())?;
        let peer = addresses.get(1 - mpj.rank().min(1));
        let bare = peer.and_then(|address| Bare::new(endpoint, address));
        let bare = bare.ok_or_else(|| Failure::new("the other rank has no address here"))?;
        let explanation = fabric.explanation().to_owned();
        Ok(Self { mpj, bare: RefCell::new(bare), explanation })
    }

    /// Lets everything go that was sent: the other rank may wait for it while this one does something else.
    fn flush(&self) -> Result<(), Failure> {
        taken(self.bare.borrow_mut().flush())
    }
}

fn taken(is_taken: bool) -> Result<(), Failure> {
    is_taken.then_some(()).ok_or_else(|| Failure::new("libfabric reports an error"))
}

fn none<T>() -> Result<T, Failure> {
    Err(Failure::new("libfabric has no collective calls over TCP"))
}

impl Job for OverFabric {
    fn facts(&self) -> Vec<(String, String)> {
        vec![("network".to_owned(), self.explanation.clone())]
    }

    fn rank(&self) -> usize {
        self.mpj.rank()
    }

    fn size(&self) -> usize {
        self.mpj.size()
    }

    fn barrier(&self) -> Result<(), Failure> {
        self.flush()?;
        self.mpj.barrier()
    }

    fn exchange(&self, word: u64) -> Result<Vec<u64>, Failure> {
        self.flush()?;
        self.mpj.exchange(word)
    }

    fn wtime(&self) -> f64 {
        self.mpj.wtime()
    }
}

impl Runtime for OverFabric {
    #[inline]
    fn send(&self, data: &[u8], _: usize, _: i32) -> Result<(), Failure> {
        taken(self.bare.borrow_mut().send(data))
    }

    #[inline]
    fn recv(&self, buffer: &mut [u8], _: usize, _: i32) -> Result<(), Failure> {
        let mut bare = self.bare.borrow_mut();
        let fits = bare.receive(|message| {
            let fits = message.len() == buffer.len();
            if fits {
                buffer.copy_from_slice(message);
            }
            fits
        });
        taken(fits == Some(true))
    }

    /// One after the other: messages that come meanwhile wait in the provider's buffers.
    fn start_all<'buffer, R>(
        &self,
        posts: impl IntoIterator<Item = Post<'buffer>>,
        meanwhile: impl FnOnce() -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let mut receives = Vec::new();
        for post in posts {
            match post {
                Post::Send { data, to, tag } => self.send(data, to, tag)?,
                Post::Receive { buffer, from, tag } => receives.push((buffer, from, tag)),
            }
        }
        let outcome = meanwhile()?;
        receives.into_iter().try_for_each(|(buffer, from, tag)| self.recv(buffer, from, tag))?;
        self.flush()?;
        Ok(outcome)
    }

    fn broadcast(&self, _: &mut [u8], _: usize) -> Result<(), Failure> {
        none()
    }

    fn allreduce(&self, _: &mut [f64]) -> Result<(), Failure> {
        none()
    }

    fn reduce(&self, _: &[f64], _: &mut [f64], _: usize) -> Result<(), Failure> {
        none()
    }

    fn gather(&self, _: &[u8], _: &mut [u8], _: usize) -> Result<(), Failure> {
        none()
    }

    fn scatter(&self, _: &[u8], _: &mut [u8], _: usize) -> Result<(), Failure> {
        none()
    }

    fn allgather(&self, _: &[u8], _: &mut [u8]) -> Result<(), Failure> {
        none()
    }

    fn alltoall(&self, _: &[u8], _: &mut [u8]) -> Result<(), Failure> {
        none()
    }
}
