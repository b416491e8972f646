//! A7 and A8: shared gets are complete and correct whether the target helps or not, and nobody writes after their end.
//! An adapter without shared gets says so at the start, and passes.
//!
//! - TS3: each region of these checks covers a buffer that is never freed, and the check touches the buffer only while
//!   no get writes to it.

#![expect(unsafe_code, reason = "makes the regions that gets read and write")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use transport_lapi::adapter::{
    Adapter, AdapterError, Advance, Begun, CooperativeCopy, Events, Frame, OneSided, Registered,
    TaskId, Ticket, Transfer,
};
use transport_lapi::{RecvRegion, RemoteKey, RemoteRegion, SendRegion};

use super::Maker;
use crate::bytes::are_all;
use crate::numbers::Numbers;

/// What a buffer holds before anything arrives.
const BLANK: u8 = 0xA5;
/// How long a sleeper sleeps that nobody wakes.
const ASLEEP: Duration = Duration::from_secs(60);

/// Task 0 reads memory of task 1.
struct Scene<A> {
    origin: A,
    target: A,
    source: &'static [u8],
    /// The target's memory.
    remote: RemoteRegion,
    start: *mut u8,
}

impl<A: Adapter> Scene<A> {
    fn new(make: Maker<A>, len: usize) -> Self {
        let mut job = make(2);
        let source: &'static [u8] = Box::leak(Numbers(len as u64).bytes(len).into_boxed_slice());
        let start = Box::leak(vec![BLANK; len].into_boxed_slice()).as_mut_ptr();
        let mut target = job.remove(1);
        let registered = target.register(Registered::Constant(send_region(source)), None);
        let direct = registered.expect("memory can be registered").unwrap_or(RemoteKey::NONE);
        let (addr, len) = (send_region(source).addr(), len as u64);
        let remote = RemoteRegion { addr, len, key: 9, direct };
        Self { remote, origin: job.remove(0), target, source, start }
    }

    fn share(&mut self) -> Option<u32> {
        let remote = self.remote;
        let landing = self.landing();
        match self.origin.cooperative_copy()?.begin(1, remote, 0, landing) {
            Begun::Shared(number) => Some(number),
            Begun::Busy(_) | Begun::Alone(_) => None,
        }
    }

    /// The landing as a region, for the next get.
    fn landing(&self) -> RecvRegion {
        // SAFETY: TS3, which keeps G2: a scene has one get at a time.
        unsafe { RecvRegion::new(self.start, self.source.len()) }
    }

    fn advance(&mut self) -> Advance {
        shares(&mut self.origin).advance(1).expect("the memory can be read")
    }

    fn help(&mut self, number: u32) -> bool {
        let source = send_region(self.source);
        self.target.cooperative_copy().is_some_and(|shared| shared.assist(0, number, source))
    }

    /// What has arrived, once nobody writes any more.
    fn landed(&self) -> &[u8] {
        // SAFETY: TS3.
        unsafe { std::slice::from_raw_parts(self.start, self.source.len()) }
    }
}

/// For checks that have begun a shared get.
fn shares<A: Adapter>(task: &mut A) -> &mut dyn CooperativeCopy {
    task.cooperative_copy().expect("an adapter keeps its capabilities")
}

/// How the only open get ends.
fn end_of_get<A: Adapter>(task: &mut A) -> Result<(), AdapterError> {
    struct Got(Option<Result<(), AdapterError>>);
    impl Events for Got {
        fn frame(&mut self, _: Frame<'_>) {}

        fn got(&mut self, _: Ticket, outcome: Result<(), AdapterError>) {
            self.0 = Some(outcome);
        }
    }
    loop {
        let mut got = Got(None);
        task.poll(None, usize::MAX, &mut got).expect("the ring is sound");
        if let Some(outcome) = got.0 {
            return outcome;
        }
    }
}

fn send_region(bytes: &'static [u8]) -> SendRegion {
    // SAFETY: TS3, which keeps G1.
    unsafe { SendRegion::new(bytes.as_ptr(), bytes.len()) }
}

/// The origin alone copies everything; help that comes later finds nothing.
pub fn a_target_that_does_nothing_costs_nothing<A: Adapter>(make: Maker<A>) {
    for len in [65_537, 200_000, 3_000_001] {
        let mut scene = Scene::new(make, len);
        let Some(number) = scene.share() else { return };
        assert_eq!(scene.share(), None, "one at a time");
        while scene.advance() != Advance::Complete {}
        assert!(scene.landed() == scene.source, "{len} bytes");
        assert!(!scene.help(number), "nothing is left");
        assert!(scene.share().is_some(), "the next one can begin");
        assert!(shares(&mut scene.origin).end(1), "nobody helps");
    }
}

/// The ends take turns, in many orders.
pub fn both_ends_of_a_shared_get_copy<A: Adapter>(make: Maker<A>) {
    let mut numbers = Numbers(5);
    for round in 0..20 {
        let mut scene = Scene::new(make, 70_000 + numbers.below(2_000_000));
        let Some(number) = scene.share() else { return };
        assert!(scene.help(number), "round {round}: something is left");
        loop {
            if numbers.below(2) == 0 {
                scene.help(number);
            } else if scene.advance() == Advance::Complete {
                break;
            }
        }
        assert!(scene.landed() == scene.source, "round {round}");
    }
}

/// Two threads copy at once, and the origin sleeps whenever the target has the rest.
pub fn a_task_that_waits_for_help_is_woken<A: Adapter>(make: Maker<A>) {
    let mut scene = Scene::new(make, 300_000);
    let bell = scene.origin.parts().bell;
    for _ in 0..200 {
        let Some(number) = scene.share() else { return };
        let Scene { origin, target, source, .. } = &mut scene;
        thread::scope(|scope| {
            scope.spawn(|| while shares(target).assist(0, number, send_region(source)) {});
            loop {
                let ticket = bell.announce();
                match shares(origin).advance(1).expect("the memory can be read") {
                    Advance::Waiting => {
                        let start = std::time::Instant::now();
                        bell.sleep(ticket, Some(ASLEEP));
                        assert!(start.elapsed() < ASLEEP, "slept through the end of the get");
                        continue;
                    }
                    Advance::Copied => bell.retract(),
                    Advance::Complete => break bell.retract(),
                    Advance::Refused(_) => panic!("the memory can be read"),
                }
            }
        });
        assert!(scene.landed() == scene.source);
    }
}

/// The origin gives up while the target copies. What is written after that would be seen.
pub fn a_shared_get_that_was_ended_is_written_by_nobody<A: Adapter>(make: Maker<A>) {
    let mut scene = Scene::new(make, 2_000_000);
    for _ in 0..50 {
        let Some(number) = scene.share() else { return };
        let Scene { origin, target, source, start, .. } = &mut scene;
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    shares(target).assist(0, number, send_region(source));
                }
            });
            let _ = shares(origin).advance(1).expect("the memory can be read");
            while !shares(origin).end(1) {
                thread::yield_now();
            }
            // SAFETY: TS3: the get has ended.
            unsafe { start.write_bytes(BLANK, source.len()) };
            thread::yield_now();
            // SAFETY: as above.
            let landed = unsafe { std::slice::from_raw_parts(*start, source.len()) };
            let is_blank = are_all(landed, BLANK);
            ended.store(true, Ordering::Relaxed);
            assert!(is_blank, "somebody wrote after the end");
        });
    }
}

/// Wrong numbers of gets, lengths that do not fit, gets that do not exist.
pub fn help_that_fits_no_get_is_none<A: Adapter>(make: Maker<A>) {
    let mut scene = Scene::new(make, 100_000);
    assert!(!scene.help(0) && !scene.help(1), "before any get");
    let Some(number) = scene.share() else { return };
    assert!(!scene.help(number.wrapping_add(1)) && !scene.help(number.wrapping_sub(1)));
    assert!(!shares(&mut scene.target).assist(0, number, send_region(&scene.source[1..])));
    assert!(
        !shares(&mut scene.target).assist(1 as TaskId, number, send_region(scene.source)),
        "of one's own"
    );
    assert!(
        shares(&mut scene.origin).end(1) && shares(&mut scene.origin).end(1),
        "also without a get"
    );
    assert!(are_all(scene.landed(), BLANK), "nothing was copied");
    let landing = scene.landing();
    let own = scene.remote;
    let own = shares(&mut scene.origin).begin(0, own, 0, landing);
    assert!(matches!(own, Begun::Alone(_)), "a task does not help itself");
}

/// A8: the target detaches in the middle of a get, and uses the memory for something else.
pub fn a_get_is_refused_if_its_target_detaches_meanwhile<A: Adapter>(make: Maker<A>) {
    let mut scene = Scene::new(make, 2_000_000);
    let Some(_) = scene.share() else { return };
    assert_eq!(scene.advance(), Advance::Copied);
    let _ = scene.target.detach();
    let refused = loop {
        match shares(&mut scene.origin).advance(1) {
            Ok(Advance::Complete) => panic!("the get is complete"),
            Ok(_) => {}
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, AdapterError::PeerLost { task: 1 }), "{refused}");
    let remote = scene.remote;
    let mut landing = scene.landing();
    let refused = loop {
        let get = OneSided::Get { remote: &remote, offset: 0, into: landing.part(0, 100) };
        match scene.origin.start(1, get, Ticket(0)) {
            Ok(Transfer::Full) => {}
            Ok(Transfer::Started) => break end_of_get(&mut scene.origin).unwrap_err(),
            Ok(Transfer::Done(_)) => panic!("the get is complete"),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, AdapterError::PeerLost { task: 1 }), "{refused}");
}
