//! Tests of communicators over ranks that are threads of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use mpj_harness::watch;
use mpjdev::{Options, Status, wireup};

use super::*;
use crate::ErrorClass;
use crate::memory::Operand;
use crate::op::{ElementKind, Predefined, UserOp};

mod attached;
mod creation;
mod running;

/// Runs `body` on ranks that can have `most` communicators each, and fails if it does not end in time.
fn run_with_ids(ranks: usize, most: u32, body: impl Fn(&Communicator) + Send + Sync + 'static) {
    watch(move || {
        let devices = wireup::in_process(ranks, &Options::default()).unwrap();
        thread::scope(|scope| {
            for mut of_rank in devices {
                let body = &body;
                scope.spawn(move || {
                    let host: Host = Arc::new(Process::with_ids(of_rank.remove(0), most));
                    let world = Communicator::world(host).unwrap();
                    body(&world);
                    world.device().finish().unwrap();
                });
            }
        });
    });
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
