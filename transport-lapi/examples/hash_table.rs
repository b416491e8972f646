//! A hash table whose slots are spread over all tasks. Inserts reserve a slot by compare-and-swap and put the value
//! there; look-ups get the slot. No task runs any code for the others, except its dispatcher.
//!
//! `cargo run --release -p transport-lapi --example hash_table` plays with four threads,
//! `mpjrun -n 4 target/release/examples/hash_table` with four processes, whose slots lie in their shared areas. An
//! argument sets how many keys each task inserts.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]
#![expect(unsafe_code, reason = "describes buffers as regions")]

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use transport_lapi::{
    Context, CounterId, LapiError, Next, Put, RecvRegion, RemoteRegion, Rmw, RmwOp, SendRegion,
    SharedMemory,
};

mod support;
use support::{Contexts, Outcome};

/// Words of a slot: the key, 0 if the slot is free, and the value.
const SLOT: u64 = 16;

/// The memory of this task's slots.
enum Slots {
    Area(SharedMemory),
    Own(Box<[i64]>, RemoteRegion),
}

impl Slots {
    /// In the shared area if there is one; otherwise memory of the program, which the dispatcher serves.
    fn new(context: &Context<()>, slots: usize) -> Outcome<Self> {
        // Not inside the match, which would hold the session during its arms.
        let allocated = context.session()?.alloc_shared(slots * SLOT as usize);
        match allocated {
            Ok(memory) => Ok(Self::Area(memory)),
            Err(LapiError::NoSharedArea) => {
                let mut words = vec![0_i64; 2 * slots].into_boxed_slice();
                // SAFETY: the words live until the registration has ended, and nobody else uses them until then.
                let region =
                    unsafe { RecvRegion::new(words.as_mut_ptr().cast(), size_of_val(&*words)) };
                let region = context.session()?.register_writable(region)?;
                Ok(Self::Own(words, region))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn region(&self) -> RemoteRegion {
        match self {
            Self::Area(memory) => memory.region(),
            Self::Own(_, region) => *region,
        }
    }

    /// Frees the memory, once no task uses it any more.
    fn free(self, context: &Context<()>) -> Outcome<()> {
        if let Self::Own(_words, region) = self {
            let over = context.session()?.counter();
            context.session()?.deregister(region, Next::Counter(over));
            context.waitcntr(over, 1)?;
        }
        Ok(())
    }
}

/// The table as one task uses it.
struct Table<'a> {
    context: &'a Context<()>,
    /// The slots of all tasks.
    regions: Vec<RemoteRegion>,
    slots: u64,
    done: CounterId,
    prev: Arc<AtomicI64>,
}

impl Table<'_> {
    /// Owner and slot of a key at the `probe`-th attempt.
    fn place(&self, key: i64, probe: u64) -> (u32, u64) {
        let hash = (key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let owner = hash % self.regions.len() as u64;
        (owner as u32, (hash / self.regions.len() as u64 + probe) % self.slots * SLOT)
    }

    fn insert(&self, key: i64, value: &i64) -> Outcome<()> {
        for probe in 0..self.slots {
            let (owner, slot) = self.place(key, probe);
            let region = self.regions[owner as usize];
            let reserve = RmwOp::CompareAndSwap { expected: 0, new: key };
            let call = Rmw::new(owner, region, slot, reserve);
            let (prev, next) = (Some(Arc::clone(&self.prev)), Next::Counter(self.done));
            self.context.session()?.rmw(Rmw { prev, next, ..call })?;
            self.context.waitcntr(self.done, 1)?;
            if self.prev.load(Ordering::Relaxed) == 1 {
                // SAFETY: `value` is borrowed until the counter has told that it was read.
                let bytes = unsafe { SendRegion::new((&raw const *value).cast(), 8) };
                let call = Put::new(owner, region, slot + 8, bytes);
                let on_origin = Next::Counter(self.done);
                let _ = self.context.session()?.put(Put { on_origin, ..call })?;
                self.context.waitcntr(self.done, 1)?;
                return Ok(());
            }
        }
        Err("the table is full".into())
    }

    fn look_up(&self, key: i64) -> Outcome<Option<i64>> {
        for probe in 0..self.slots {
            let (owner, slot) = self.place(key, probe);
            let mut found = [0_i64; 2];
            // SAFETY: the array is not used until the counter has told that it is filled.
            let into = unsafe { RecvRegion::new(found.as_mut_ptr().cast(), SLOT as usize) };
            let region = self.regions[owner as usize];
            self.context.session()?.get(owner, region, slot, into, Next::Counter(self.done))?;
            self.context.waitcntr(self.done, 1)?;
            match found {
                [0, _] => return Ok(None),
                [other, value] if other == key => return Ok(Some(value)),
                _ => {}
            }
        }
        Ok(None)
    }
}

fn main() -> ExitCode {
    support::play("hash_table", 4, 1, play)
}

fn play(contexts: &Contexts<()>) -> Outcome<()> {
    let context = &*contexts[0];
    let keys = std::env::args().nth(1).map_or(Ok(10_000), |keys| keys.parse::<i64>())?;
    let (me, tasks) = (i64::from(context.task()), context.num_tasks() as i64);
    let slots = Slots::new(context, 2 * keys.max(1) as usize)?;
    let table = Table {
        context,
        regions: support::exchange(context, slots.region())?,
        slots: 2 * keys.max(1) as u64,
        done: context.session()?.counter(),
        prev: Arc::new(AtomicI64::new(0)),
    };
    let start = Instant::now();
    for nth in 0..keys {
        let key = 1 + nth * tasks + me;
        table.insert(key, &(key * 3))?;
    }
    let inserting = start.elapsed();
    context.gfence()?;
    let start = Instant::now();
    let mut wrong = 0;
    for nth in 0..keys {
        let key = 1 + nth * tasks + (me + 1) % tasks;
        wrong += usize::from(table.look_up(key)? != Some(key * 3));
    }
    let looking = start.elapsed();
    let absent = table.look_up(1 + keys * tasks)?;
    context.gfence()?;
    slots.free(context)?;
    if wrong > 0 || absent.is_some() {
        return Err(format!("task {me}: {wrong} of {keys} values are wrong").into());
    }
    if me == 0 {
        let each = |time: std::time::Duration| time.as_secs_f64() * 1e6 / keys.max(1) as f64;
        println!("{tasks} tasks, {keys} keys each: all values found");
        println!("insert {:.2} us, look up {:.2} us", each(inserting), each(looking));
    }
    Ok(())
}
