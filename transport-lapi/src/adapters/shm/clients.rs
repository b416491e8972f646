//! How the clients of a process join its job one after the other: each takes the contexts behind those of the clients
//! before it, and waits until all tasks of the host have joined with the same client. Called by [`super::Member`].
//!
//! - JC1: all tasks join with the same clients in the same order, with as many contexts each. So a client's first context
//!   has the same number on all tasks. After a client that could not join, no other one does.
//! - JC2: what a task publishes of a client is read by others after the meeting of that client, and copied before it is
//!   used. It is only compared and shown.
//! - JC3: a task that waits for others publishes that wait in the wait table of the client's first context, which nobody
//!   else uses yet. It counts a look whenever it has found that not all have come. So the launcher may judge it as it
//!   judges a thread that waits for messages. A task that then waits for those of other hosts publishes nothing, so its
//!   job is not judged meanwhile.

use std::ops::Range;
use std::sync::atomic::Ordering;

use rustix::thread::gettid;

use crate::adapter::waits::{CallCode, Phase, Space, Wait};
use crate::adapter::{AdapterError, TaskId, ThreadState};
use crate::adapters::local::port::{is_lost, losses};
use crate::adapters::local::segment::{CLIENT_WORDS, Segment, WireupLine};
use crate::adapters::local::wait_table::Entry;
use crate::adapters::shm::wireup::LOOK_AGAIN;
use crate::adapters::shm::world::World;
use crate::platform::sys::monotonic_nanos;

/// The longest name of a client, in bytes.
pub const MAX_CLIENT_NAME: usize = 8 * CLIENT_WORDS;

/// A client of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client<'a> {
    /// Its name, of which [`MAX_CLIENT_NAME`] bytes count.
    pub name: &'a str,
    /// The number of contexts, at least 1.
    pub contexts: usize,
    /// Whether it asks for checks of mistakes between tasks.
    pub asks: bool,
    /// Whether it communicates with tasks of other worlds, too.
    pub spans_worlds: bool,
}

impl Client<'_> {
    /// How it is called where clients are compared.
    fn words(self) -> String {
        match self.contexts {
            1 => self.name.to_owned(),
            contexts => format!("{} with {contexts} contexts", self.name),
        }
    }
}

/// Whether a client finds the contexts from `first` on that it asks for; `spare` contexts are for further clients.
pub(super) fn check_room(
    segment: &Segment,
    first: usize,
    client: Client<'_>,
    spare: usize,
) -> Result<(), AdapterError> {
    let left = segment.layout().contexts().saturating_sub(first);
    if (1..=left).contains(&client.contexts) {
        return Ok(());
    }
    Err(AdapterError::ContextsTaken {
        client: client.name.to_owned(),
        asked: client.contexts,
        left,
        spare,
    })
}

/// Publishes with which client this task joins, and prepares its contexts. The next meeting makes it visible.
pub(super) fn publish(segment: &Segment, world: &World, first: usize, client: Client<'_>) {
    let task = world.task as usize;
    world.publish(segment);
    // WO2.
    let asks = world.of_parent(segment).map_or(client.asks, |tasks| all_ask(segment, tasks, first));
    segment.set_up(task, &world.places(), first..first + client.contexts);
    let context = segment.of_context(first);
    let line = &context.task(task).wireup;
    let bytes = client.name.bytes().chain(std::iter::repeat(0)).take(MAX_CLIENT_NAME);
    let bytes: Vec<u8> = bytes.collect();
    for (word, bytes) in line.client.iter().zip(bytes.chunks_exact(8)) {
        let bytes = bytes.try_into().expect("chunks are 8 bytes long");
        word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
    }
    line.asks_for_checks.store(asks.into(), Ordering::Relaxed);
    line.client_contexts.store(client.contexts as u32, Ordering::Relaxed);
    let in_use = (first + client.contexts) as u32;
    // Released for the launcher, which looks into the contexts then.
    segment.wireup(task).in_use.store(in_use, Ordering::Release); // SYNC: contexts in use
}

/// Compares what the tasks of a world, and its parent, have published of the client whose first context is `first` (JC2,
/// WO2).
pub(super) fn compare(segment: &Segment, world: &World, first: usize) -> Result<(), AdapterError> {
    let context = segment.of_context(first);
    let joined = |task: TaskId| read(&context.task(task as usize).wireup);
    let mut tasks = world.parent.into_iter().chain(world.tasks.clone());
    let first = tasks.next().unwrap_or_default();
    let expected = joined(first);
    match tasks.find(|task| joined(*task) != expected) {
        None => Ok(()),
        Some(task) => {
            Err(AdapterError::OtherClient { task, client: joined(task), first, expected })
        }
    }
}

/// Whether the clients of these tasks whose first context is `first` ask for checks (JC2).
pub(super) fn all_ask(segment: &Segment, mut tasks: Range<usize>, first: usize) -> bool {
    let context = segment.of_context(first);
    tasks.all(|task| context.task(task).wireup.asks_for_checks.load(Ordering::Relaxed) == 1)
}

/// What a task has published of a client.
fn read(line: &WireupLine) -> String {
    let words = line.client.iter().map(|word| word.load(Ordering::Relaxed));
    let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).take_while(|byte| *byte != 0).collect();
    let name: String = String::from_utf8_lossy(&bytes).escape_debug().collect();
    let contexts = line.client_contexts.load(Ordering::Relaxed) as usize;
    Client { name: &name, contexts, asks: false, spans_worlds: false }.words()
}

/// Counts this task and waits until all tasks are counted (JC3), as the first client does in `wireup.rs`. `context` is
/// the segment of the client's first context.
pub(super) fn meet(context: &Segment, world: &World) -> Result<(), AdapterError> {
    let (task, tasks) = (world.task, world.tasks.len() as u32);
    let word = &context.task(world.tasks.start as usize).wireup.attached;
    let before = word.value().fetch_add(1, Ordering::AcqRel); // SYNC: meeting
    if before.wrapping_add(1) == tasks {
        word.wake_all();
    }
    let table = context.wait_table(task as usize);
    let mut is_published = false;
    let met = loop {
        let arrived = word.value().load(Ordering::Acquire); // SYNC: meeting
        if arrived >= tasks {
            break Ok(());
        }
        if let Some(task) = lost_of(context, world) {
            break Err(AdapterError::PeerLost { task });
        }
        if is_published {
            table.looked_again(0);
        } else {
            let ticket = context.task(task as usize).bell.0.rung();
            table.put(
                0,
                &Entry { wait: joining(), state: ThreadState::Asleep { ticket }, looks: 0 },
            );
            is_published = true;
        }
        word.wait(arrived, Some(LOOK_AGAIN));
    };
    if is_published {
        table.clear(0);
    }
    met
}

/// A task of the world that was declared lost, if there is one.
pub(super) fn lost_of(segment: &Segment, world: &World) -> Option<TaskId> {
    world.tasks.clone().filter(|_| losses(segment) > 0).find(|task| is_lost(segment, *task))
}

/// The wait for others that have not joined with this client.
fn joining() -> Wait {
    Wait {
        call: CallCode::JOIN,
        operation: CallCode::JOIN,
        space: Space { label: Some(0), is_collective: true, ..Space::default() },
        phase: Phase::Others,
        since: monotonic_nanos(),
        thread: gettid().as_raw_nonzero().get().unsigned_abs(),
        ..Wait::default()
    }
}
