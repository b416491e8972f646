//! Tests of communicators over ranks that are threads of this process.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mpjdev::{Options, Sink, Status};
use transport_lapi::{ForeignBytes, Unpack};

use super::*;
use crate::memory::Operand;
use crate::op::{ElementKind, Predefined, UserOp};
use crate::{ErrorClass, Input, Output, Plan, Reduction, RemoteLeader, SplitKey};

mod attached;
mod between;
mod buffered;
mod creation;
mod exchange;
mod generalized;
mod long;
mod losses;
mod neighbours;
mod partitioned;
mod running;
mod transfer;

/// Runs `body` on ranks that can have `most` communicators each, and fails if it does not end in time.
fn run_with_ids(ranks: usize, most: u32, body: impl Fn(&Communicator) + Send + Sync + 'static) {
    run_with(ranks, most, Options::default(), body);
}

/// Like [`run`], but a message of 64 KiB or more leaves only when its receive has been posted.
fn run_with_short_unexpected_messages(
    ranks: usize,
    body: impl Fn(&Communicator) + Send + Sync + 'static,
) {
    let options = Options { early_limit: 32 << 10, ..Options::default() };
    run_with(ranks, 1 << 30, options, body);
}

/// Runs `body` on ranks with these options.
pub(crate) fn run_with(
    ranks: usize,
    most: u32,
    options: Options,
    body: impl Fn(&Communicator) + Send + Sync + 'static,
) {
    let process = move |device| Process::with_ids(device, (), most);
    ranks::run(ranks, options, process, move |world| {
        body(world);
        world.device().finish().unwrap();
    });
}

/// The bytes of a message, which a test can read when it has been received.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<u8>>>);

impl Received {
    /// Makes room for a message of `len` bytes.
    fn sink(&self, len: usize) -> Sink {
        *self.0.lock().unwrap() = vec![0; len];
        Sink::layout(self.clone())
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Unpack for Received {
    fn size(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        from.copy_to(&mut self.0.lock().unwrap()[offset..]);
    }
}

fn run(ranks: usize, body: impl Fn(&Communicator) + Send + Sync + 'static) {
    run_with_ids(ranks, 1 << 30, body);
}

/// Plans a sum of the words that each rank gives, over a communicator.
fn sum_plan(over: &Communicator, words: Vec<u64>) -> Plan<'_> {
    let reduction =
        Reduction { op: Predefined::Sum.into(), operand: Operand::Kind(ElementKind::U64) };
    let len = words.len() as u64;
    over.allreduce(None, Output::keeping(words), len, reduction).unwrap()
}

fn sum(over: &Communicator, word: u64) -> u64 {
    sum_plan(over, vec![word]).run_and_keep().unwrap()[0]
}
