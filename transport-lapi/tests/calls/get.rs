//! One-sided reads: by copying, by the kernel, and built from active messages.

use std::sync::Mutex;

use transport_lapi::{
    Amsend, Arrival, Context, HeaderAction, Next, Options, Outbox, RecvRegion, RemoteRegion,
    SendRegion,
};

use crate::support::board::Board;
use crate::support::buffers::{Landing, pattern, source};
use crate::support::job::{Kind, run};
use mpj_doubles::numbers::Numbers;

const REGION: usize = 3 << 20;

/// Registers a pattern of this task, and waits until every task has done so.
fn register<S>(context: &Context<S>, board: &Board) {
    let bytes = source(pattern(context.task().into(), REGION));
    let region = context.session().unwrap().register(bytes).unwrap();
    board.publish(context, region);
}

/// Ends the registration once no task reads any more.
fn end<S>(context: &Context<S>, board: &Board) {
    context.gfence().unwrap();
    context.session().unwrap().deregister(board.of(context.task()), Next::Nothing);
}

#[test]
fn every_length_and_offset_is_read() {
    for kind in Kind::ALL {
        let board = Board::new(2);
        run(
            kind,
            2,
            |_| (),
            move |context| {
                register(context, &board);
                let counter = context.session().unwrap().counter();
                let peer = 1 - context.task();
                let landing = Landing::new(REGION);
                let lengths =
                    [1, 7, 8, 64, 304, 4096, 8192, 8193, 65_536, 262_143, 262_144, 600_001, REGION];
                for len in lengths {
                    for offset in [0, 1, 63, 4095, REGION - len] {
                        if offset + len > REGION {
                            continue;
                        }
                        let told = Next::Counter(counter);
                        let into = landing.region(len);
                        let remote = board.of(peer);
                        let mut session = context.session().unwrap();
                        session.get(peer, remote, offset as u64, into, told).unwrap();
                        drop(session);
                        assert_eq!(context.waitcntr(counter, 1).unwrap(), 0);
                        let expected = &pattern(peer.into(), REGION)[offset..offset + len];
                        assert!(landing.holds(expected), "{kind:?}: {len} bytes at {offset}");
                        landing.wipe_first(len);
                    }
                }
                end(context, &board);
            },
        );
    }
}

/// A get of no bytes moves nothing, but increments the counter; even from an empty region.
#[test]
fn a_get_of_nothing_counts() {
    for kind in Kind::ALL {
        let board = Board::new(2);
        run(
            kind,
            2,
            |_| (),
            move |context| {
                register(context, &board);
                let counter = context.session().unwrap().counter();
                let peer = 1 - context.task();
                let empty = RemoteRegion::over_frames(0, 0, 0);
                for (remote, offset) in [(board.of(peer), REGION as u64), (empty, 0)] {
                    let told = Next::Counter(counter);
                    let mut session = context.session().unwrap();
                    session.get(peer, remote, offset, RecvRegion::EMPTY, told).unwrap();
                    drop(session);
                    assert_eq!(context.waitcntr(counter, 1).unwrap(), 0, "{kind:?}");
                }
                end(context, &board);
            },
        );
    }
}

#[test]
fn a_task_reads_itself() {
    for kind in Kind::ALL {
        let board = Board::new(1);
        run(
            kind,
            1,
            |_| (),
            move |context| {
                register(context, &board);
                let counter = context.session().unwrap().counter();
                let landing = Landing::new(REGION);
                let told = Next::Counter(counter);
                let into = landing.region(REGION);
                context.session().unwrap().get(0, board.of(0), 0, into, told).unwrap();
                context.waitcntr(counter, 1).unwrap();
                assert!(landing.holds(pattern(0, REGION)), "{kind:?}");
                end(context, &board);
            },
        );
    }
}

/// A reader and an owner in one thread; the owner's memory is registered.
fn pair(kind: Kind) -> (Context<()>, Context<()>, RemoteRegion) {
    let mut adapters = kind.adapters(2).into_iter();
    let mut member = || Context::init(adapters.next().expect("two tasks"), (), Options::default());
    let (reader, owner) = (member(), member());
    let region = owner.session().unwrap().register(source(pattern(3, REGION))).unwrap();
    (reader, owner, region)
}

/// The owner copies its half if it makes progress, and is not waited for if it does not.
#[test]
fn an_owner_helps_if_it_makes_progress() {
    for kind in [Kind::Threads, Kind::Shm] {
        for helps in [true, false] {
            let (reader, owner, region) = pair(kind);
            let landing = Landing::new(REGION);
            let counter = reader.session().unwrap().counter();
            let (told, into) = (Next::Counter(counter), landing.region(REGION));
            reader.session().unwrap().get(1, region, 0, into, told).unwrap();
            assert_eq!(reader.session().unwrap().progress().unwrap(), 2, "begins, and tells");
            let mut slices = 0;
            while helps && owner.session().unwrap().progress().unwrap() > 0 {
                slices += 1;
            }
            assert_eq!(slices > 2, helps && owner.session().unwrap().get_kind().is_some());
            assert_eq!(landing.holds(pattern(3, REGION)), helps, "{kind:?}: the owner does all");
            reader.waitcntr(counter, 1).unwrap();
            assert!(landing.holds(pattern(3, REGION)), "{kind:?}");
            while owner.session().unwrap().progress().unwrap() > 0 {}
        }
    }
}

/// A task that copies for itself would not help, so a get from it is not shared: no offer is sent.
#[test]
fn a_get_from_a_task_that_reads_from_here_is_not_shared() {
    for kind in [Kind::Threads, Kind::Shm] {
        let (reader, owner, region) = pair(kind);
        if owner.session().unwrap().get_kind().is_none() {
            continue;
        }
        let back = reader.session().unwrap().register(source(pattern(4, REGION))).unwrap();
        let landings = [Landing::new(REGION), Landing::new(REGION)];
        let start = |context: &Context<()>, target, region, landing: &Landing| {
            let mut session = context.session().unwrap();
            let counter = session.counter();
            session.get(target, region, 0, landing.region(REGION), Next::Counter(counter)).unwrap();
            counter
        };
        let read = start(&reader, 1, region, &landings[0]);
        assert_eq!(reader.session().unwrap().progress().unwrap(), 2, "begins, and tells");
        let read_back = start(&owner, 0, back, &landings[1]);
        owner.waitcntr(read_back, 1).unwrap();
        assert!(landings[1].holds(pattern(4, REGION)), "{kind:?}");
        assert_eq!(reader.session().unwrap().progress().unwrap(), 1, "{kind:?}: a slice, no offer");
        reader.waitcntr(read, 1).unwrap();
        assert!(landings[0].holds(pattern(3, REGION)), "{kind:?}");
    }
}

/// After a registration has ended, or a reader has given up, nothing is written.
#[test]
fn help_ends_with_the_registration_and_with_the_reader() {
    for kind in [Kind::Threads, Kind::Shm] {
        for owner_ends in [true, false] {
            let (reader, owner, region) = pair(kind);
            let landing = Landing::new(REGION);
            let into = landing.region(REGION);
            reader.session().unwrap().get(1, region, 0, into, Next::Nothing).unwrap();
            reader.session().unwrap().progress().unwrap();
            assert_eq!(owner.session().unwrap().progress().unwrap(), 2, "the packet and a slice");
            if owner_ends {
                owner.session().unwrap().deregister(region, Next::Nothing);
            } else {
                reader.session().unwrap().abandon();
            }
            landing.wipe();
            while owner.session().unwrap().progress().unwrap() > 0 {}
            assert!(landing.holds(&[]), "{kind:?}: nothing is written");
        }
    }
}

/// Long gets from one owner end in the order in which they were started; a short get does not wait for them.
#[test]
fn long_gets_wait_for_each_other_and_short_ones_for_none() {
    fn told(told: &mut Vec<u64>, _: &mut Outbox<Vec<u64>>, info: u64) {
        told.push(info);
    }
    for kind in [Kind::Threads, Kind::Shm] {
        let mut adapters = kind.adapters(2);
        let owner = Context::init(adapters.remove(1), (), Options::default());
        let reader = Context::init(adapters.remove(0), Vec::new(), Options::default());
        let region = owner.session().unwrap().register(source(pattern(4, REGION))).unwrap();
        let landings = [REGION, REGION / 2, REGION, 8].map(Landing::new);
        for (info, (landing, len)) in
            landings.iter().zip([REGION, REGION / 2, REGION, 8]).enumerate()
        {
            let told = Next::Inline(told, info as u64);
            reader.session().unwrap().get(1, region, 0, landing.region(len), told).unwrap();
        }
        reader.wait(|session| (session.state.len() == 4).then_some(())).unwrap();
        assert_eq!(reader.session().unwrap().state, [3, 0, 1, 2], "{kind:?}");
        assert!(landings[2].holds(pattern(4, REGION)));
    }
}

/// Three tasks read from each other, many gets at once; each handler runs once.
#[test]
fn many_gets_are_under_way_at_once() {
    type Told = Vec<u64>;
    fn told(told: &mut Told, _: &mut Outbox<Told>, info: u64) {
        told.push(info);
    }
    const GETS: usize = 60;
    for kind in Kind::ALL {
        let board = Board::new(3);
        run(
            kind,
            3,
            |_| Told::new(),
            move |context| {
                register(context, &board);
                let mut numbers = Numbers(context.task().into());
                let mut due = Vec::new();
                for info in 0..GETS as u64 {
                    let peer = numbers.below(3) as u32;
                    let len = numbers.pick(&[1, 100, 5_000, 70_000, 600_000]);
                    let offset = numbers.below(REGION - len);
                    let landing = Landing::new(len);
                    let on_origin = Next::Inline(told, info);
                    let (remote, into) = (board.of(peer), landing.region(len));
                    let mut session = context.session().unwrap();
                    session.get(peer, remote, offset as u64, into, on_origin).unwrap();
                    due.push((landing, &pattern(peer.into(), REGION)[offset..offset + len]));
                }
                context.wait(|session| (session.state.len() >= GETS).then_some(())).unwrap();
                for (landing, expected) in due {
                    assert!(landing.holds(expected), "{kind:?}");
                }
                end(context, &board);
                let mut told = context.session().unwrap().state.clone();
                told.sort_unstable();
                assert!(told.into_iter().eq(0..GETS as u64), "{kind:?}: each is told once");
            },
        );
    }
}

/// Rendezvous: a message names the region, the handler starts a get, and a message from the get's handler lets the
/// owner end the registration.
#[test]
fn handlers_start_gets_and_end_registrations() {
    #[derive(Default)]
    struct Rendezvous {
        landing: Option<Landing>,
        region: Option<RemoteRegion>,
        done: bool,
    }
    fn offered(_: &mut Rendezvous, message: Arrival<'_>) -> HeaderAction<Rendezvous> {
        let word = |at: usize| message.uhdr[at..at + 8].try_into().map(u64::from_le_bytes);
        let word = |at| word(at).expect("three words");
        let region = RemoteRegion::over_frames(word(0), word(8), word(16));
        let fetch = Next::Inline(fetch, message.origin.into());
        let into = Landing::new(0).region(0);
        FETCHES.lock().unwrap().push(region);
        HeaderAction::Deliver { into: into.into(), next: fetch }
    }
    /// The regions that the header handler of the offer passes to the completion handler.
    static FETCHES: Mutex<Vec<RemoteRegion>> = Mutex::new(Vec::new());
    fn fetch(state: &mut Rendezvous, outbox: &mut Outbox<Rendezvous>, owner: u64) {
        let region = FETCHES.lock().unwrap().pop().expect("the header handler has noted it");
        let landing = Landing::new(region.len as usize);
        state.landing = Some(landing);
        let into = landing.region(region.len as usize);
        outbox.get(owner as u32, region, 0, into, Next::Inline(fetched, owner)).unwrap();
    }
    fn fetched(state: &mut Rendezvous, outbox: &mut Outbox<Rendezvous>, owner: u64) {
        state.done = true;
        outbox.amsend(owner as u32, 2, &[], Vec::new()).unwrap();
    }
    fn done(state: &mut Rendezvous, _: Arrival<'_>) -> HeaderAction<Rendezvous> {
        let into = Landing::new(0).region(0);
        state.done = true;
        HeaderAction::Deliver { into: into.into(), next: Next::Inline(forget, 0) }
    }
    fn forget(state: &mut Rendezvous, outbox: &mut Outbox<Rendezvous>, _: u64) {
        let region = state.region.take().expect("the owner has registered it");
        let _ = outbox.deregister(region, Next::Nothing);
    }
    for kind in Kind::ALL {
        run(
            kind,
            2,
            |_| Rendezvous::default(),
            move |context| {
                context.session().unwrap().addr_set(1, offered).unwrap();
                context.session().unwrap().addr_set(2, done).unwrap();
                context.gfence().unwrap();
                if context.task() == 0 {
                    let mut session = context.session().unwrap();
                    let region = session.register(source(pattern(9, REGION))).unwrap();
                    session.state.region = Some(region);
                    let uhdr = [region.addr, region.len, region.key].map(u64::to_le_bytes).concat();
                    let _ = session.amsend(Amsend::new(1, 1, &uhdr, SendRegion::EMPTY)).unwrap();
                }
                context.wait(|session| session.state.done.then_some(())).unwrap();
                context.gfence().unwrap();
                let session = context.session().unwrap();
                if context.task() == 1 {
                    let landing = session.state.landing.expect("the get has brought it");
                    assert!(landing.holds(pattern(9, REGION)), "{kind:?}");
                } else {
                    assert!(session.state.region.is_none());
                }
            },
        );
    }
}
