//! A task of a job over PAMI: its client, its contexts, and the calls that every measurement needs.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use mpj_bench::transfers::memory::Memory;
use mpj_bench::transfers::{By, Transfers, WINDOW};
use mpj_bench_programs::{Failure, Job};
use pami::{
    Client, Context, Endpoint, GetCall, Guard, Memregion, Modify, PutCall, RemoteMemory, RmwCall,
    SendCall, Value,
};

use crate::dispatches::{self, COUNT, ENDED, MESSAGE, SHORT, Shared, WORD};

/// The bytes of each of the two memories of a task.
const MEMORY: usize = 8 << 20;
/// The contexts of a task.
const CONTEXTS: usize = 3;
/// Iterations of an advance of a task that waits.
const POLLS: usize = 64;

/// One task of the job.
pub struct PamiJob {
    client: Client,
    /// The contexts, each with what its dispatches share. Streams use all of them, everything else the first one.
    contexts: Vec<(Context, Arc<Shared>)>,
    begin: Instant,
    out: Memory,
    into: Memory,
    /// The other one of tasks 0 and 1, its first endpoint, and its memory.
    peer: u32,
    dest: Endpoint,
    remote: RemoteMemory,
}

/// What stands for no result of an addition.
const NONE: i64 = -1;
/// The result of the last addition.
static BEFORE: AtomicI64 = AtomicI64::new(NONE);

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(error)
}

impl PamiJob {
    /// Joins the job that the environment describes. Collective.
    ///
    /// # Errors
    /// An error of PAMI.
    pub fn join() -> Result<Self, Failure> {
        let mut client = Client::create("bench", CONTEXTS).map_err(failed)?;
        let contexts = client.create_contexts(CONTEXTS).map_err(failed)?;
        let mut guard = contexts[0].lock().map_err(failed)?;
        // They are never freed, as `Memory` demands.
        let mut create = || guard.memregion_create(MEMORY).map(ManuallyDrop::new).map_err(failed);
        let (out, own): (ManuallyDrop<Memregion>, ManuallyDrop<Memregion>) = (create()?, create()?);
        drop(guard);
        let (out, into, region) = (Memory::of_region(&out), Memory::of_region(&own), own.remote());
        let shared = |context: Context| -> Result<_, pami::Error> {
            let shared = Arc::new(Shared::default());
            let mut guard = context.lock()?;
            dispatches::set(&mut guard, &shared, into)?;
            drop(guard);
            Ok((context, shared))
        };
        let contexts =
            contexts.into_iter().map(shared).collect::<Result<_, _>>().map_err(failed)?;
        let (begin, peer) = (Instant::now(), u32::from(client.task() == 0));
        // A task alone has nobody to measure with.
        let dest = client.endpoint(peer.min(client.num_tasks() as u32 - 1), 0).map_err(failed)?;
        let remote = region;
        let mut job = Self { client, contexts, begin, out, into, peer, dest, remote };
        job.remote = job.memory_of_peer(region)?;
        Ok(job)
    }

    /// Returns the memory of the other task. Collective.
    fn memory_of_peer(&self, own: RemoteMemory) -> Result<RemoteMemory, Failure> {
        let mut bytes = own.to_bytes();
        for chunk in bytes.chunks_exact_mut(size_of::<u64>()) {
            let word = u64::from_le_bytes((&*chunk).try_into().expect("eight bytes"));
            let words = self.exchange(word)?;
            chunk.copy_from_slice(&words.get(self.peer as usize).unwrap_or(&word).to_le_bytes());
        }
        Ok(RemoteMemory::from_bytes(&bytes))
    }

    /// Starts operations in the first context: `start` gets its guard, the endpoint of the other task, and what the
    /// dispatches share.
    #[inline(always)]
    fn start<R>(
        &self,
        start: impl FnOnce(&mut Guard<'_>, Endpoint, &Arc<Shared>) -> Result<R, pami::Error>,
    ) -> Result<R, Failure> {
        let (context, shared) = &self.contexts[0];
        let mut guard = context.lock().map_err(failed)?;
        start(&mut guard, self.dest, shared).map_err(failed)
    }
}

/// Advances until `is_there` holds.
#[inline(always)]
fn until(guard: &mut Guard<'_>, mut is_there: impl FnMut() -> bool) -> Result<(), pami::Error> {
    while !is_there() {
        let _ = guard.advance(POLLS)?;
    }
    Ok(())
}

impl Transfers for PamiJob {
    fn memories(&self) -> [Memory; 2] {
        [self.out, self.into]
    }

    #[inline]
    fn send(&self, by: By, place: usize, size: usize) -> Result<(), Failure> {
        let mut out = self.out;
        self.start(|guard, dest, _| match by {
            By::Message { .. } => {
                let (header, data) = (&place.to_le_bytes(), out.source(place, size).into());
                guard.send(SendCall { header, data, ..SendCall::new(dest, MESSAGE) })
            }
            By::Short | By::Look => {
                guard.send_immediate(dest, SHORT, &[], out.bytes(place, size)).map(|_| ())
            }
        })
    }

    #[inline]
    fn take(&self, messages: u64) -> Result<(), Failure> {
        self.start(|guard, _, shared| until(guard, || shared.take(messages)))
    }

    fn seen(&self) -> Result<u8, Failure> {
        Err(Failure::new("PAMI has no message that is not stored"))
    }

    #[inline]
    fn put(&self, place: usize, size: usize, is_last: bool) -> Result<(), Failure> {
        self.start(|guard, dest, _| {
            let data = self.out.source(place, size);
            let call = || PutCall::new(dest, self.remote, place as u64, data);
            if !is_last {
                return guard.put(call());
            }
            // No counter of the target tells it.
            guard.put(PutCall { on_remote: dispatches::ends(), ..call() })?;
            until(guard, || dispatches::take(&ENDED, 1))?;
            guard.send_immediate(dest, COUNT, &[], &[]).map(|_| ())
        })
    }

    fn take_puts(&self) -> Result<(), Failure> {
        self.take(1)
    }

    fn progress(&self) -> Result<(), Failure> {
        self.start(|guard, _, _| guard.advance(1)).map(drop)
    }

    #[inline]
    fn get(&self, size: usize) -> Result<(), Failure> {
        let into = self.out.landing(0, size).expect("it is inside");
        self.start(|guard, dest, _| {
            let call = GetCall::new(dest, self.remote, 0, into);
            guard.get(GetCall { on_done: dispatches::ends(), ..call })?;
            until(guard, || dispatches::take(&ENDED, 1))
        })
    }

    #[inline]
    fn add(&self) -> Result<i64, Failure> {
        BEFORE.store(NONE, Ordering::Relaxed);
        let on_done = |_: &mut pami::Section<'_>, value| {
            if let Ok(Value::I64(value)) = value {
                BEFORE.store(value, Ordering::Relaxed);
            }
        };
        self.start(|guard, dest, _| {
            let call = RmwCall::new(dest, self.remote, 0, Modify::Add, Value::I64(1));
            guard.rmw(RmwCall { on_done: Some(Box::new(on_done)), ..call })?;
            until(guard, || BEFORE.load(Ordering::Relaxed) != NONE)
        })?;
        Ok(BEFORE.load(Ordering::Relaxed))
    }

    fn contexts(&self) -> usize {
        self.contexts.len()
    }

    fn stream(&self, context: usize, windows: u64) -> Result<(), Failure> {
        let dest = self.client.endpoint(self.peer, context).map_err(failed)?;
        let (context, shared) = &self.contexts[context];
        let mut guard = context.lock().map_err(failed)?;
        let send = |guard: &mut Guard<'_>| {
            guard.send_immediate(dest, COUNT, &[0; 8], &[]).map(|_| ()).map_err(failed)
        };
        for _ in 0..windows {
            match self.client.task() {
                0 => {
                    (0..WINDOW).try_for_each(|_| send(&mut guard))?;
                    until(&mut guard, || shared.take(1)).map_err(failed)?;
                }
                _ => {
                    until(&mut guard, || shared.take(WINDOW as u64)).map_err(failed)?;
                    send(&mut guard)?;
                }
            }
        }
        Ok(())
    }
}

impl Job for PamiJob {
    fn rank(&self) -> usize {
        self.client.task() as usize
    }

    fn size(&self) -> usize {
        self.client.num_tasks()
    }

    fn barrier(&self) -> Result<(), Failure> {
        self.exchange(0).map(drop)
    }

    fn exchange(&self, word: u64) -> Result<Vec<u64>, Failure> {
        self.start(|guard, _, shared| {
            let tasks = 0..self.size();
            for task in tasks.clone() {
                let dest = self.client.endpoint(task as u32, 0)?;
                let _ = guard.send_immediate(dest, WORD, &word.to_le_bytes(), &[])?;
            }
            let next = |origin| {
                let mut word = None;
                until(guard, || {
                    word = shared.next_word(origin);
                    word.is_some()
                })?;
                Ok(word.expect("it was waited for"))
            };
            tasks.map(next).collect()
        })
    }

    fn wtime(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn leave(mut self) -> Result<(), Failure> {
        self.contexts.clear();
        self.client.destroy().map_err(failed)
    }
}
