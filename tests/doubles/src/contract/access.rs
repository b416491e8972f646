//! A8 to A13: memory of users is accessed only while an operation or a registration allows it, and one-sided operations
//! do what they say. A check of a capability that the adapter does not have passes.
//!
//! - TS4: each region of these checks covers a buffer that is never freed, and the check touches the buffer only while
//!   nothing that it has started uses it.

#![expect(unsafe_code, reason = "makes the regions that adapters access")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use transport_lapi::adapter::{
    Adapter, AdapterError, Events, Frame, GetKind, OneSided, Post, Registered, TaskId, Ticket,
    Transfer,
};
use transport_lapi::{
    Operation, Piece, RecvRegion, RemoteKey, RemoteRegion, RmwOp, SendRegion, TaskId as Task,
};

use super::{Maker, PATIENCE, comes_soon};
use crate::bytes::are_all;
use crate::numbers::{Numbers, payload};

/// What a buffer holds before anything arrives.
const BLANK: u8 = 0xA5;
/// How long a sleeper sleeps that nobody wakes: longer than the check may take.
const ASLEEP: Duration = Duration::from_secs(60);

/// A buffer of this process that is never freed (TS4).
#[derive(Clone, Copy)]
struct Buffer {
    start: *mut u8,
    len: usize,
}

// SAFETY: TS4: the checks order all uses.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Self { start: Box::leak(bytes.into_boxed_slice()).as_mut_ptr(), len }
    }

    fn to_send(self) -> SendRegion {
        // SAFETY: TS4, which keeps G1.
        unsafe { SendRegion::new(self.start, self.len) }
    }

    fn to_receive(self) -> RecvRegion {
        // SAFETY: TS4, which keeps G2.
        unsafe { RecvRegion::new(self.start, self.len) }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: TS4.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    fn fill(self, byte: u8) {
        // SAFETY: TS4.
        unsafe { self.start.write_bytes(byte, self.len) }
    }
}

/// What polls of a task have reported.
#[derive(Default)]
struct Ends {
    left: Vec<Ticket>,
    ended: BTreeMap<u32, Result<i64, AdapterError>>,
    /// The operations that have ended, in the order of their ends.
    order: Vec<u32>,
    frames: Vec<Vec<u8>>,
}

impl Events for Ends {
    fn frame(&mut self, frame: Frame<'_>) {
        self.frames.push(frame.body.to_vec());
    }

    fn send_complete(&mut self, ticket: Ticket) {
        self.left.push(ticket);
    }

    fn got(&mut self, ticket: Ticket, outcome: Result<(), AdapterError>) {
        self.ended(ticket, outcome.map(|()| 0));
    }

    fn ended(&mut self, Ticket(number): Ticket, outcome: Result<i64, AdapterError>) {
        self.order.push(number);
        let earlier = self.ended.insert(number, outcome);
        assert!(earlier.is_none(), "operation {number} has ended twice");
    }
}

impl Ends {
    fn poll<A: Adapter>(&mut self, task: &mut A) {
        task.poll(None, usize::MAX, self).expect("the rings are sound");
    }

    /// Starts an operation, as often as there is no room, and notes its end if it ends at once.
    fn start<'a, A: Adapter>(
        &mut self,
        task: &mut A,
        target: Task,
        ticket: u32,
        operation: impl Fn() -> OneSided<'a>,
    ) {
        let started = comes_soon(|| {
            let answer = task.start(target, operation(), Ticket(ticket));
            self.has_started(task, ticket, answer)
        });
        assert!(started, "there is never room");
    }

    /// Whether an operation was started, by the adapter's answer. Notes its end if it has ended at once.
    fn has_started<A: Adapter>(
        &mut self,
        task: &mut A,
        ticket: u32,
        answer: Result<Transfer, AdapterError>,
    ) -> bool {
        let is_full = matches!(answer, Ok(Transfer::Full));
        match answer {
            Ok(Transfer::Full) => self.poll(task),
            Ok(Transfer::Started) => {}
            Ok(Transfer::Done(result)) => self.ended(Ticket(ticket), Ok(result)),
            Err(error) => self.ended(Ticket(ticket), Err(error)),
        }
        !is_full
    }

    /// How an operation ends that was started.
    fn of<A: Adapter>(&mut self, task: &mut A, ticket: u32) -> Result<i64, AdapterError> {
        let has_ended = comes_soon(|| {
            self.poll(task);
            self.ended.contains_key(&ticket)
        });
        assert!(has_ended, "operation {ticket} does not end");
        self.ended.remove(&ticket).expect("it has ended")
    }
}

/// Starts an operation and waits for its end.
fn carry_out<'a, A: Adapter>(
    task: &mut A,
    target: TaskId,
    operation: impl Fn() -> OneSided<'a>,
) -> Result<i64, AdapterError> {
    let mut ends = Ends::default();
    ends.start(task, target, 5, operation);
    ends.of(task, 5)
}

fn register<A: Adapter>(task: &mut A, memory: Registered) -> RemoteRegion {
    let len = match &memory {
        Registered::Constant(region) => region.len(),
        Registered::Writable(region) => region.len(),
    };
    let direct =
        task.register(memory, None).expect("the system has memory").unwrap_or(RemoteKey::NONE);
    RemoteRegion { addr: RemoteRegion::NO_ADDRESS, len: len as u64, key: 9, direct }
}

fn put<'a>(remote: &'a RemoteRegion, offset: u64, from: SendRegion) -> OneSided<'a> {
    OneSided::Put { remote, offset, from: Piece::Span(from) }
}

fn get<A: Adapter>(
    task: &mut A,
    remote: &RemoteRegion,
    offset: u64,
    len: usize,
) -> Result<Vec<u8>, AdapterError> {
    let landing = Buffer::new(vec![BLANK; len]);
    let mut ends = Ends::default();
    let mut into = landing.to_receive();
    let started = comes_soon(|| {
        let get = OneSided::Get { remote, offset, into: into.part(0, len) };
        let answer = task.start(1, get, Ticket(3));
        ends.has_started(task, 3, answer)
    });
    assert!(started, "there is never room");
    ends.of(task, 3)?;
    Ok(landing.bytes().to_vec())
}

/// Runs `work` while another thread polls `task`.
fn while_polled<A: Adapter, T>(task: &mut A, work: impl FnOnce() -> T) -> T {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                Ends::default().poll(task);
                thread::yield_now();
            }
        });
        let outcome = work();
        ends.store(true, Ordering::Relaxed);
        outcome
    })
}

fn is_refused<T>(outcome: &Result<T, AdapterError>) -> bool {
    matches!(outcome, Err(AdapterError::AccessFailed { target: 1, .. }))
}

fn is_lost<T>(outcome: &Result<T, AdapterError>) -> bool {
    matches!(outcome, Err(AdapterError::PeerLost { task: 1 }))
}

/// A8: gets of every length, at every offset.
pub fn gets_deliver_what_is_registered<A: Adapter>(make: Maker<A>) {
    let mut job = make(2);
    if job[0].caps(1).gets.is_none() {
        return;
    }
    let source = payload(3, 100_001);
    let memory = Buffer::new(source.clone());
    let remote = register(&mut job[1], Registered::Constant(memory.to_send()));
    for (offset, len) in [(0, 1), (7, 64), (100, 4097), (50_000, 50_001), (0, 100_001)] {
        let got = get(&mut job[0], &remote, offset as u64, len).expect("it is registered");
        assert!(got == source[offset..offset + len], "{len} bytes at {offset}");
    }
}

/// A9, A12: the source of a put may change once the put has ended; a flush ends after the puts, and says that the bytes
/// are in place.
pub fn puts_are_in_place_after_a_flush<A: Adapter>(make: Maker<A>) {
    let mut job = make(2);
    if !job[0].caps(1).puts {
        return;
    }
    let memory = Buffer::new(vec![BLANK; 60_000]);
    let remote = register(&mut job[1], Registered::Writable(memory.to_receive()));
    let mut numbers = Numbers(11);
    for round in 0..6 {
        let mut ends = Ends::default();
        let mut expected = Vec::new();
        let mut sources = Vec::new();
        while expected.len() < 50_000 {
            let bytes = numbers.bytes(1 + expected.len() / 5);
            let (source, ticket) = (Buffer::new(bytes.clone()), 1 + sources.len() as u32);
            let offset = expected.len() as u64;
            expected.extend(bytes);
            ends.start(&mut job[0], 1, ticket, || put(&remote, offset, source.to_send()));
            sources.push((ticket, source));
        }
        let (flush, flushes_at_once) = (1 + sources.len() as u32, round % 2 == 0);
        if flushes_at_once {
            ends.start(&mut job[0], 1, flush, || OneSided::Flush);
            ends.of(&mut job[0], flush).expect("the target is there");
            let before = ends.order.iter().take_while(|ticket| **ticket != flush);
            assert_eq!(before.count(), sources.len(), "puts that ended before the flush");
        }
        for (ticket, source) in sources {
            ends.of(&mut job[0], ticket).expect("the memory is writable");
            source.fill(BLANK);
        }
        if !flushes_at_once {
            carry_out(&mut job[0], 1, || OneSided::Flush).expect("the target is there");
        }
        assert!(memory.bytes()[..expected.len()] == expected, "after the flush");
        memory.fill(BLANK);
    }
}

/// A13: tasks add to one variable at the same time, its owner too.
pub fn atomic_operations_take_place_one_after_another<A: Adapter>(make: Maker<A>) {
    const ROUNDS: i64 = 300;
    const AT_ONCE: i64 = 5;
    let mut job = make(3);
    if !job[0].caps(1).atomics {
        return;
    }
    let variable = Box::leak(Box::new(0_u64));
    let memory = Buffer { start: std::ptr::from_mut(variable).cast(), len: 8 };
    let remote = register(&mut job[1], Registered::Writable(memory.to_receive()));
    let add = |task: &mut A| {
        let operation = Operation::Bits64(RmwOp::FetchAndAdd(1));
        let add = || OneSided::Atomic { remote: &remote, offset: 0, operation };
        let (mut results, mut ends) = (Vec::<i64>::new(), Ends::default());
        for _ in 0..ROUNDS / AT_ONCE {
            (0..AT_ONCE as u32).for_each(|ticket| ends.start(task, 1, ticket, add));
            let result = |ticket| ends.of(task, ticket).expect("the memory is writable");
            results.extend((0..AT_ONCE as u32).map(result));
        }
        assert!(results.is_sorted(), "one task's own are in order");
        results
    };
    let mut results: Vec<i64> = thread::scope(|scope| {
        let add = &add;
        let adding: Vec<_> = job.iter_mut().map(|task| scope.spawn(move || add(task))).collect();
        adding.into_iter().flat_map(|task| task.join().expect("additions end")).collect()
    });
    results.sort_unstable();
    assert!(results.into_iter().eq(0..3 * ROUNDS), "each value was there once");
}

/// A11: wrong keys, wrong places, constant memory, ended registrations.
pub fn memory_is_accessed_only_as_it_is_registered<A: Adapter>(make: Maker<A>) {
    let mut job = make(2);
    let caps = job[0].caps(1);
    let memory = Buffer::new(vec![BLANK; 64]);
    let source = Buffer::new(vec![1; 64]);
    if caps.gets.is_some() {
        let remote = register(&mut job[1], Registered::Constant(memory.to_send()));
        let stranger = RemoteRegion { direct: RemoteKey::new(&[1]), ..remote };
        assert!(is_refused(&get(&mut job[0], &stranger, 0, 8)), "no such key");
        if caps.puts {
            let constant = carry_out(&mut job[0], 1, || put(&remote, 0, source.to_send()));
            assert!(is_refused(&constant), "it is constant");
        }
        job[1].deregister(remote.direct);
        if caps.gets != Some(GetKind::CrossMemoryAttach) {
            let [origin, target] = &mut job[..] else { unreachable!("there are two") };
            let outcome = while_polled(target, || get(origin, &remote, 0, 8));
            assert!(is_refused(&outcome), "the registration has ended");
        }
    }
    if caps.puts {
        let remote = register(&mut job[1], Registered::Writable(memory.to_receive()));
        let stranger = RemoteRegion { direct: RemoteKey::new(&[1]), ..remote };
        for (remote, offset) in [(stranger, 0), (remote, 1), (remote, u64::MAX)] {
            let refused = carry_out(&mut job[0], 1, || put(&remote, offset, source.to_send()));
            assert!(is_refused(&refused), "at {offset}");
        }
        job[1].deregister(remote.direct);
        let ended = carry_out(&mut job[0], 1, || put(&remote, 0, source.to_send()));
        assert!(is_refused(&ended), "the registration has ended");
        // Bytes that are on their way when the registration ends are dropped.
        let remote = register(&mut job[1], Registered::Writable(memory.to_receive()));
        let late = carry_out(&mut job[0], 1, || put(&remote, 0, source.to_send()));
        late.expect("it is registered again");
        job[1].deregister(remote.direct);
        memory.fill(BLANK);
        carry_out(&mut job[0], 1, || OneSided::Flush).expect("the target is there");
    }
    if caps.atomics {
        let operation = Operation::Bits32(RmwOp::Swap(1));
        let constant = register(&mut job[1], Registered::Constant(memory.to_send()));
        let writable = register(&mut job[1], Registered::Writable(memory.to_receive()));
        for (remote, offset) in [(constant, 0), (writable, 61), (writable, 62)] {
            let atomic = || OneSided::Atomic { remote: &remote, offset, operation };
            assert!(is_refused(&carry_out(&mut job[0], 1, atomic)), "at {offset}");
        }
    }
    assert!(are_all(memory.bytes(), BLANK), "nothing was stored");
}

/// A5: a task that sleeps until an operation has ended is woken.
pub fn the_end_of_an_operation_wakes_a_sleeper<A: Adapter>(make: Maker<A>) {
    let mut job = make(2);
    if !job[0].caps(1).puts {
        return;
    }
    let memory = Buffer::new(vec![BLANK; 4096]);
    let source = Buffer::new(vec![1; 4096]);
    let remote = register(&mut job[1], Registered::Writable(memory.to_receive()));
    let bell = job[0].parts().bell;
    for ticket in 0..200 {
        let mut ends = Ends::default();
        ends.start(&mut job[0], 1, ticket, || put(&remote, 0, source.to_send()));
        while !ends.ended.contains_key(&ticket) {
            let announced = bell.announce();
            ends.poll(&mut job[0]);
            if ends.ended.is_empty() {
                assert!(bell.sleep(announced, Some(ASLEEP)), "slept through the end");
            } else {
                bell.retract();
            }
        }
    }
}

/// A8: what is started after the target has detached.
pub fn memory_of_a_task_that_has_detached_is_not_accessed<A: Adapter>(make: Maker<A>) {
    let mut job = make(2);
    let caps = job[0].caps(1);
    let memory = Buffer::new(vec![BLANK; 64]);
    if caps.gets.is_none() {
        return;
    }
    let constant = register(&mut job[1], Registered::Constant(memory.to_send()));
    let writable = register(&mut job[1], Registered::Writable(memory.to_receive()));
    assert!(comes_soon(|| job[1].detach()), "nothing is under way");
    if matches!(caps.gets, Some(GetKind::RemoteDirect | GetKind::RemoteSoftware)) {
        job[1].parts().losses.declare();
    }
    assert!(is_lost(&get(&mut job[0], &constant, 0, 8)));
    if caps.puts {
        let source = Buffer::new(vec![1; 8]);
        assert!(is_lost(&carry_out(&mut job[0], 1, || put(&writable, 0, source.to_send()))));
    }
    if caps.atomics {
        let operation = Operation::Bits64(RmwOp::Swap(1));
        let atomic = || OneSided::Atomic { remote: &writable, offset: 0, operation };
        assert!(is_lost(&carry_out(&mut job[0], 1, atomic)));
    }
    assert!(are_all(memory.bytes(), BLANK), "nothing was stored");
}

/// A9: a body is not read any more once it was copied or has left.
pub fn a_body_that_has_left_may_change<A: Adapter>(make: Maker<A>) {
    let mut job = make(2);
    let largest = job[0].caps(1).max_body;
    let (mut sender, mut receiver) = (Ends::default(), Ends::default());
    for nth in 0..40_u64 {
        let bytes = payload(nth, 1 + (nth as usize * 997) % largest);
        let body = Buffer::new(bytes.clone());
        let mut post = Post::Full;
        for _ in 0..PATIENCE {
            let piece = Piece::Span(body.to_send());
            post = job[0].try_send(1, b"a frame of more than a word", piece, Ticket(8)).unwrap();
            if post != Post::Full {
                break;
            }
            sender.poll(&mut job[0]);
            receiver.poll(&mut job[1]);
            thread::yield_now();
        }
        assert_ne!(post, Post::Full, "frame {nth} is never taken");
        let has_left = comes_soon(|| {
            sender.poll(&mut job[0]);
            receiver.poll(&mut job[1]);
            post == Post::Taken || sender.left.contains(&Ticket(8))
        });
        assert!(has_left, "body {nth} does not leave");
        sender.left.clear();
        body.fill(BLANK);
        let has_come = comes_soon(|| {
            sender.poll(&mut job[0]);
            receiver.poll(&mut job[1]);
            !receiver.frames.is_empty()
        });
        assert!(has_come, "frame {nth} does not arrive");
        assert!(receiver.frames.remove(0) == bytes, "frame {nth}");
    }
}

/// A9: no buffer is used after a detachment, whatever was under way.
pub fn a_task_that_has_detached_gets_its_memory_back<A: Adapter>(make: Maker<A>) {
    for round in 0..10 {
        let mut job = make(2);
        let caps = job[0].caps(1);
        let memory = Buffer::new(payload(round, 4096));
        let landing = Buffer::new(vec![BLANK; 4096]);
        let remote = register(&mut job[1], Registered::Constant(memory.to_send()));
        let mut taken = 0;
        for ticket in 0..6 {
            if caps.gets.is_some() {
                let mut into = landing.to_receive();
                let into = into.part(ticket as usize * 600, 600);
                let get = OneSided::Get { remote: &remote, offset: 0, into };
                let _ = job[0].start(1, get, Ticket(ticket)).expect("the target is there");
            }
            let body = Piece::Span(memory.to_send());
            let post = job[0].try_send(1, b"head", body, Ticket(ticket)).expect("it is there");
            taken += usize::from(post != Post::Full);
        }
        assert!(comes_soon(|| job[0].detach()), "the detachment does not end");
        landing.fill(BLANK);
        let mut arrived = Ends::default();
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(5) {
            arrived.poll(&mut job[1]);
            thread::yield_now();
        }
        assert!(are_all(landing.bytes(), BLANK), "round {round}: written after the detachment");
        assert!(arrived.frames.len() <= taken, "round {round}: no frame that was not taken");
    }
}

/// A9 and A10: the loss of a task ends the gets of its memory, and those of other memory end too: with their bytes, or as if
/// the system had refused them, so that the transport reads over frames.
pub fn a_loss_leaves_no_get_unfinished<A: Adapter>(make: Maker<A>) {
    // A network takes longer for it than the loss does.
    const LEN: usize = 8 << 20;
    let mut job = make(3);
    if job[0].caps(1).gets.is_none() || job[0].caps(2).gets.is_none() {
        return;
    }
    let bytes = [1, 2].map(|seed| payload(seed, LEN));
    let remotes = [1, 2].map(|task| {
        let source = Buffer::new(bytes[task - 1].clone());
        register(&mut job[task], Registered::Constant(source.to_send()))
    });
    let [lost, kept] = [(); 2].map(|()| Buffer::new(vec![BLANK; LEN]));
    let mut ends = Ends::default();
    // The short ones make the connections.
    for len in [9, LEN] {
        for (task, landing) in [(1, lost), (2, kept)] {
            let mut into = landing.to_receive();
            let started = comes_soon(|| {
                let (remote, into) = (&remotes[task as usize - 1], into.part(0, len));
                let get = OneSided::Get { remote, offset: 0, into };
                let answer = job[0].start(task, get, Ticket(task));
                ends.has_started(&mut job[0], task, answer)
            });
            assert!(started, "there is never room");
        }
        if len == LEN {
            job[1].parts().losses.declare();
        }
        match ends.of(&mut job[0], 1) {
            Ok(_) => assert!(lost.bytes()[..len] == bytes[0][..len]),
            outcome => assert!(len == LEN && is_lost(&outcome), "{outcome:?}"),
        }
        lost.fill(BLANK);
        match ends.of(&mut job[0], 2) {
            Ok(_) => assert!(kept.bytes()[..len] == bytes[1][..len]),
            Err(error) => assert!(len == LEN && error.is_refusal(), "{error}"),
        }
        assert!(are_all(lost.bytes(), BLANK), "nothing is written after the end");
    }
}

/// A10: what a task sent before its loss arrives; what is started towards it ends.
pub fn a_loss_holds_up_no_operation<A: Adapter>(make: Maker<A>) {
    let mut job = make(2);
    let caps = job[0].caps(1);
    let memory = Buffer::new(vec![BLANK; 64]);
    let remote = register(&mut job[1], Registered::Writable(memory.to_receive()));
    let (mut ends, body) = (Ends::default(), Buffer::new(vec![7; 500]));
    let sent = comes_soon(|| {
        let piece = Piece::Span(body.to_send());
        job[1].try_send(0, b"head", piece, Ticket(1)).expect("the task is there") != Post::Full
    });
    assert!(sent, "there is never room");
    let has_come = comes_soon(|| {
        Ends::default().poll(&mut job[1]);
        job[1].parts().losses.declare();
        ends.poll(&mut job[0]);
        !ends.frames.is_empty()
    });
    assert!(has_come, "a frame that was sent before the loss");
    // However many are refused, those that are taken leave.
    let leaving = (0..50).filter(|ticket| {
        let piece = Piece::Span(body.to_send());
        let post = job[0].try_send(1, b"head", piece, Ticket(*ticket));
        post.is_ok_and(|post| post == Post::InFlight)
    });
    let leaving = leaving.count();
    let have_left = comes_soon(|| {
        ends.poll(&mut job[0]);
        ends.left.len() == leaving
    });
    assert!(have_left, "{} of {leaving} bodies have left", ends.left.len());
    if caps.gets.is_some() && !remote.direct.is_none() {
        // Its end is what counts: a process that was declared lost may still be readable.
        let _ = get(&mut job[0], &remote, 0, 8);
    }
    if caps.puts {
        let source = Buffer::new(vec![1; 8]);
        assert!(is_lost(&carry_out(&mut job[0], 1, || put(&remote, 0, source.to_send()))));
        assert!(is_lost(&carry_out(&mut job[0], 1, || OneSided::Flush)));
    }
}
