//! Puts and gets by vectors, and vectors as the data and the destination of active messages.

use transport_lapi::adapter::AdapterError;
use transport_lapi::{
    Amsend, Arrival, Context, CounterId, Dgsp, DgspOp, End, Getv, HeaderAction, LapiError, Next,
    Options, Outbox, Putv, RemoteRegion, Vector, Violation,
};

use crate::support::board::Board;
use crate::support::buffers::{Landing, null_landing, null_source, pattern, source};
use crate::support::job::{Kind, run};
use mpj_doubles::numbers::Numbers;

const REGION: usize = 2 << 20;

fn register<S>(context: &Context<S>, board: &Board) -> Landing {
    let landing = Landing::new(REGION);
    let region = context.session().unwrap().register_writable(landing.region(REGION)).unwrap();
    board.publish(context, region);
    landing
}

/// The blocks of a vector, as ranges.
fn ranges(vector: &Vector) -> Vec<std::ops::Range<usize>> {
    let range = |at: u64, len: u64| at as usize..(at + len) as usize;
    match vector {
        Vector::Blocks(blocks) | Vector::Generic(blocks) => {
            blocks.iter().map(|&(at, len)| range(at, len)).collect()
        }
        &Vector::Strided { base, block, stride, count } => {
            (0..count).map(|i| range(base + i * stride, block)).collect()
        }
    }
}

/// Packs by hand.
fn packed(vector: &Vector, memory: &[u8]) -> Vec<u8> {
    ranges(vector).into_iter().flat_map(|range| memory[range].to_vec()).collect()
}

/// Unpacks by hand into blank memory.
fn unpacked(vector: &Vector, mut bytes: &[u8]) -> Vec<u8> {
    let mut memory = vec![0xA5; REGION];
    for range in ranges(vector) {
        let (block, rest) = bytes.split_at(range.len());
        memory[range].copy_from_slice(block);
        bytes = rest;
    }
    memory
}

/// Pairs of vectors (origin, target) of every kind, short enough for a user header and longer.
fn pairs() -> Vec<(Vector, Vector)> {
    let blocks = |seed, lens: &[u64]| {
        let mut numbers = Numbers(seed);
        let mut at = 0;
        let mut block = |len: u64| {
            at += numbers.below(20) as u64;
            let start = at;
            at += len;
            (start, len)
        };
        lens.iter().map(|&len| block(len)).collect::<Vec<_>>()
    };
    let strided = |base, block, stride, count| Vector::Strided { base, block, stride, count };
    let mut numbers = Numbers(5);
    let mut pairs = vec![
        (strided(0, 8, 8, 100), strided(3, 8, 16, 100)),
        (strided(7, 1, 3, 50_000), strided(0, 1, 40, 50_000)),
        (strided(0, 5000, 5001, 200), strided(100, 5000, 10_000, 200)),
    ];
    for count in [1, 3, 6, 7, 100, 5000] {
        let lens: Vec<u64> = (0..count).map(|_| numbers.below(300) as u64 + 1).collect();
        pairs.push((Vector::Blocks(blocks(1, &lens)), Vector::Blocks(blocks(2, &lens))));
        let sum: u64 = lens.iter().sum();
        let parts = [sum / 3, sum - sum / 3];
        pairs.push((Vector::Generic(blocks(3, &lens)), Vector::Generic(blocks(4, &parts))));
    }
    pairs.push((Vector::Blocks(vec![(5, 0)]), Vector::Blocks(vec![(9, 0)])));
    pairs
}

#[test]
fn puts_by_vectors_store_their_blocks_and_nothing_else() {
    for kind in Kind::ALL {
        let board = Board::new(2);
        run(
            kind,
            2,
            |_| (),
            move |context| {
                let counters = [(); 3].map(|()| context.session().unwrap().counter());
                let landing = register(context, &board);
                for (round, (org_vec, tgt_vec)) in pairs().iter().enumerate() {
                    let memory = pattern(round as u64, REGION);
                    let [origin, target, completion] = counters;
                    if context.task() == 0 {
                        let call = Putv {
                            target: 1,
                            remote: board.of(1),
                            tgt_vec,
                            memory: source(memory),
                            org_vec,
                            on_origin: Next::Counter(origin),
                            tgt_cntr: Some(target),
                            cmpl_cntr: Some(completion),
                        };
                        let _ = context.session().unwrap().putv(call).unwrap();
                        assert_eq!(context.waitcntr(origin, 1).unwrap(), 0);
                        assert_eq!(context.waitcntr(completion, 1).unwrap(), 0);
                    } else {
                        assert_eq!(context.waitcntr(target, 1).unwrap(), 0);
                        let expected = unpacked(tgt_vec, &packed(org_vec, memory));
                        assert!(landing.holds(&expected), "{kind:?}: round {round}");
                        landing.wipe();
                    }
                    context.gfence().unwrap();
                }
            },
        );
    }
}

#[test]
fn gets_by_vectors_store_their_blocks_and_nothing_else() {
    for kind in Kind::ALL {
        let board = Board::new(2);
        run(
            kind,
            2,
            |_| (),
            move |context| {
                let counters = [(); 2].map(|()| context.session().unwrap().counter());
                let bytes = pattern(context.task().into(), REGION);
                let region = context.session().unwrap().register(source(bytes)).unwrap();
                board.publish(context, region);
                let landing = Landing::new(REGION);
                for (round, (org_vec, tgt_vec)) in pairs().iter().enumerate() {
                    let [origin, target] = counters;
                    let peer = 1 - context.task();
                    let call = Getv {
                        target: peer,
                        remote: board.of(peer),
                        tgt_vec,
                        memory: landing.region(REGION),
                        org_vec,
                        next: Next::Counter(origin),
                        tgt_cntr: Some(target),
                    };
                    context.session().unwrap().getv(call).unwrap();
                    assert_eq!(context.waitcntr(origin, 1).unwrap(), 0);
                    let memory = pattern(peer.into(), REGION);
                    let expected = unpacked(org_vec, &packed(tgt_vec, memory));
                    assert!(landing.holds(&expected), "{kind:?}: round {round}");
                    context.waitcntr(target, 1).unwrap();
                    landing.wipe();
                }
                context.gfence().unwrap();
                let left = counters.map(|it| context.session().unwrap().getcntr(it).unwrap());
                assert_eq!(left, [0; 2], "{kind:?}");
            },
        );
    }
}

/// LAPI_Amsendv: the data is gathered by one vector, and scattered by another that the header handler names.
#[test]
fn active_messages_gather_and_scatter() {
    struct State {
        landing: Landing,
        arrived: usize,
    }
    fn scatter(state: &mut State, message: Arrival<'_>) -> HeaderAction<State> {
        fn count(state: &mut State, _: &mut Outbox<State>, _: u64) {
            state.arrived += 1;
        }
        let round = u64::from_le_bytes(message.uhdr.try_into().expect("one word"));
        let (_, tgt_vec) = &pairs()[round as usize];
        let into = tgt_vec.scatter(state.landing.region(REGION)).unwrap();
        HeaderAction::Deliver { into, next: Next::Inline(count, 0) }
    }
    for kind in Kind::ALL {
        run(
            kind,
            2,
            |_| State { landing: Landing::new(REGION), arrived: 0 },
            move |context| {
                context.session().unwrap().addr_set(1, scatter).unwrap();
                context.gfence().unwrap();
                for (round, (org_vec, tgt_vec)) in pairs().iter().enumerate() {
                    let memory = pattern(round as u64, REGION);
                    if context.task() == 0 {
                        let data = org_vec.gather(source(memory)).unwrap();
                        let uhdr = (round as u64).to_le_bytes();
                        let mut session = context.session().unwrap();
                        let _ = session.amsend(Amsend::new(1, 1, &uhdr, data)).unwrap();
                    } else {
                        let all = round + 1;
                        context.wait(|s| (s.state.arrived == all).then_some(())).unwrap();
                        let expected = unpacked(tgt_vec, &packed(org_vec, memory));
                        let landing = context.session().unwrap().state.landing;
                        assert!(landing.holds(&expected), "{kind:?}: round {round}");
                        landing.wipe();
                    }
                    context.gfence().unwrap();
                }
            },
        );
    }
}

/// LAPI_DGSP_XFER: the data is gathered by one program, and scattered by another that the header handler names.
#[test]
fn active_messages_carry_what_programs_describe() {
    /// Repetitions of `count` blocks of `len` bytes, one every `stride` bytes.
    fn program(count: i64, len: usize, stride: isize) -> Dgsp {
        let code = [
            DgspOp::Gosub { to: 2, ret: 1, reps: count, offset: 1, stride },
            DgspOp::Iterate { to: 0 },
            DgspOp::Copy { bytes: len, offset: 0 },
            DgspOp::Iterate { to: 2 },
        ];
        Dgsp::register(&code, 2, count as isize * stride).unwrap()
    }
    fn scatter(
        landing: &mut Option<Landing>,
        message: Arrival<'_>,
    ) -> HeaderAction<Option<Landing>> {
        fn done(landing: &mut Option<Landing>, _: &mut Outbox<Option<Landing>>, _: u64) {
            *landing = None;
        }
        let memory = landing.expect("the message before it is complete").region(REGION);
        let into = program(3, 5, 9).to_receive(memory, message.len as usize).unwrap();
        HeaderAction::Deliver { into, next: Next::Inline(done, 0) }
    }
    for kind in Kind::ALL {
        let landing = Landing::new(REGION);
        run(
            kind,
            2,
            move |_| Some(landing),
            move |context| {
                context.session().unwrap().addr_set(1, scatter).unwrap();
                context.gfence().unwrap();
                for bytes in [14, 15, 700, 140_000] {
                    let gather = program(2, 7, 20);
                    let whole = bytes_of(&gather, bytes);
                    if context.task() == 0 {
                        let data = gather.to_send(source(pattern(8, REGION)), bytes).unwrap();
                        assert_eq!(data.len(), whole);
                        let mut session = context.session().unwrap();
                        let _ = session.amsend(Amsend::new(1, 1, &[], data)).unwrap();
                    } else {
                        context.wait(|session| session.state.is_none().then_some(())).unwrap();
                        let (mut sent, mut arrived) = (vec![0; whole], vec![0; whole]);
                        let memory = pattern(8, REGION);
                        gather.pack(memory, whole, &mut sent, &mut 0).unwrap();
                        let (memory, _) = landing.contents(REGION);
                        program(3, 5, 9).pack(&memory, whole, &mut arrived, &mut 0).unwrap();
                        assert!(sent == arrived, "{kind:?}: {bytes} bytes");
                        let blank = memory.iter().filter(|&&byte| byte == 0xA5).count();
                        assert!(blank >= REGION - whole, "nothing else was written");
                        landing.wipe();
                        context.session().unwrap().state = Some(landing);
                    }
                    context.gfence().unwrap();
                }
            },
        );
    }
}

/// The bytes of the whole repetitions that `bytes` bytes take.
fn bytes_of(program: &Dgsp, bytes: usize) -> usize {
    bytes.next_multiple_of(program.size())
}

/// Starts a put and a get with these vectors, and returns their errors, which must be the same.
fn refusal(
    context: &Context<()>,
    remote: RemoteRegion,
    org_vec: &Vector,
    tgt_vec: &Vector,
) -> String {
    let (on_origin, tgt_cntr, cmpl_cntr) = (Next::Nothing, None, None);
    let memory = source(pattern(1, 1000));
    let call = Putv { target: 0, remote, tgt_vec, memory, org_vec, on_origin, tgt_cntr, cmpl_cntr };
    let put = context.session().unwrap().putv(call).unwrap_err();
    let memory = Landing::new(1000).region(1000);
    let next = Next::Nothing;
    let call = Getv { target: 0, remote, tgt_vec, memory, org_vec, next, tgt_cntr };
    let get = context.session().unwrap().getv(call).unwrap_err();
    assert_eq!(put.to_string(), get.to_string());
    format!("{put:?}")
}

#[test]
fn every_mismatch_has_its_error() {
    let board = Board::new(1);
    run(
        Kind::Shm,
        1,
        |_| (),
        move |context| {
            let landing = register(context, &board);
            let remote = board.of(0);
            let blocks = |blocks: &[(u64, u64)]| Vector::Blocks(blocks.to_vec());
            let generic = |blocks: &[(u64, u64)]| Vector::Generic(blocks.to_vec());
            let strided =
                |base, block, stride, count| Vector::Strided { base, block, stride, count };
            let two = blocks(&[(0, 4), (8, 4)]);
            let rows = strided(0, 4, 8, 3);
            let cases = [
                (two.clone(), generic(&[(0, 8)]), "VecTypeDiff"),
                (two.clone(), rows.clone(), "VecTypeDiff"),
                (two.clone(), blocks(&[(0, 8)]), "VecNumDiff { origin: 2, target: 1 }"),
                (two.clone(), blocks(&[(0, 4), (8, 5)]), "VecLenDiff { origin: 4, target: 5 }"),
                (rows.clone(), strided(0, 4, 8, 2), "VecNumDiff { origin: 3, target: 2 }"),
                (rows.clone(), strided(0, 5, 8, 3), "VecLenDiff { origin: 4, target: 5 }"),
                (generic(&[(0, 7)]), generic(&[(0, 8)]), "VecLenDiff { origin: 7, target: 8 }"),
                (
                    strided(0, 4, 3, 2),
                    strided(0, 4, 4, 2),
                    "Stride { end: Origin, stride: 3, block: 4 }",
                ),
                (
                    strided(0, 4, 4, 2),
                    strided(0, 4, 3, 2),
                    "Stride { end: Target, stride: 3, block: 4 }",
                ),
                (
                    strided(0, 4, 4, 2),
                    strided(u64::MAX, 4, 4, 2),
                    "Extent { end: Target, stride: 4, count: 2 }",
                ),
                (
                    strided(0, 0, u64::MAX, 2),
                    strided(0, 0, 4, 2),
                    "Extent { end: Origin, stride: 18446744073709551615, count: 2 }",
                ),
                (blocks(&[(0, u64::MAX)]), blocks(&[(0, u64::MAX)]), "VecLen { end: Origin }"),
                (generic(&[(0, 4)]), generic(&[(u64::MAX, 4)]), "VecLen { end: Target }"),
                (
                    blocks(&[(999, 2)]),
                    blocks(&[(0, 2)]),
                    "VecOutside { end: Origin, error: Outside { low: 999, high: 1001, len: 1000 } }",
                ),
                (
                    blocks(&[(0, 2)]),
                    blocks(&[(REGION as u64 - 1, 2)]),
                    "VecOutside { end: Target, error: Outside { low: 2097151, high: 2097153, len: 2097152 } }",
                ),
            ];
            for (org_vec, tgt_vec, expected) in cases {
                assert_eq!(refusal(context, remote, &org_vec, &tgt_vec), expected);
            }
            let nowhere = RemoteRegion { addr: 0, ..remote };
            let error = refusal(context, nowhere, &rows, &rows);
            assert_eq!(error, "VecAddr { end: Target, is_strided: true }");
            let error = two.gather(null_source(1000)).unwrap_err();
            assert!(matches!(error, LapiError::VecAddr { end: End::Origin, is_strided: false }));
            let error = rows.scatter(null_landing(1000)).unwrap_err();
            assert!(matches!(error, LapiError::VecAddr { end: End::Target, is_strided: true }));
            context.fence().unwrap();
            assert!(landing.holds(&[]), "nothing was stored");
        },
    );
}

/// The blocks of a long vector, which is sent ahead of the data.
fn many_blocks(count: u64) -> Vector {
    Vector::Blocks((0..count).map(|nth| (nth * 10, 5)).collect())
}

/// A put of these blocks from a pattern to the memory of task 1.
fn putv(remote: RemoteRegion, blocks: &Vector, on_origin: Next<()>) -> Putv<'_, ()> {
    let (memory, tgt_vec, org_vec) = (source(pattern(1, REGION)), blocks, blocks);
    let (tgt_cntr, cmpl_cntr) = (None, None);
    Putv { target: 1, remote, tgt_vec, memory, org_vec, on_origin, tgt_cntr, cmpl_cntr }
}

/// A call that is refused leaves no words of its vector at the target, where they would spoil the next call.
#[test]
fn a_refused_call_sends_no_vector_ahead() {
    for kind in Kind::SEGMENTS {
        let mut adapters = kind.adapters(2);
        let owner = Context::init(adapters.remove(1), (), Options::default());
        let origin = Context::init(adapters.remove(0), (), Options::default());
        let landing = Landing::new(REGION);
        let region = landing.region(REGION);
        let remote = owner.session().unwrap().register_writable(region).unwrap();
        let blocks = many_blocks(20);
        let unknown = Next::Counter(CounterId(99));
        let refusal = origin.session().unwrap().putv(putv(remote, &blocks, unknown)).unwrap_err();
        assert!(matches!(refusal, LapiError::CntrNull { index: 99, .. }), "{refusal}");
        let _ = origin.session().unwrap().putv(putv(remote, &blocks, Next::Nothing)).unwrap();
        while owner.session().unwrap().progress().unwrap() > 0 {}
        let expected = unpacked(&blocks, &packed(&blocks, pattern(1, REGION)));
        assert!(landing.holds(&expected), "{kind:?}");
    }
}

/// The words of a vector travel in whole packets, however short these are.
#[test]
fn long_vectors_pass_with_short_packets() {
    let options = Options { max_body: 4096, ..Options::default() };
    for kind in Kind::SEGMENTS {
        let mut adapters = kind.adapters(2);
        let owner = Context::init(adapters.remove(1), (), options.clone());
        let origin = Context::init(adapters.remove(0), (), options.clone());
        let landing = Landing::new(REGION);
        let region = landing.region(REGION);
        let remote = owner.session().unwrap().register_writable(region).unwrap();
        let blocks = many_blocks(3000);
        let _ = origin.session().unwrap().putv(putv(remote, &blocks, Next::Nothing)).unwrap();
        while origin.session().unwrap().progress().unwrap()
            + owner.session().unwrap().progress().unwrap()
            > 0
        {}
        let expected = unpacked(&blocks, &packed(&blocks, pattern(1, REGION)));
        assert!(landing.holds(&expected), "{kind:?}");
    }
}

/// A get whose request cannot be sent ends with the call's error, and once.
#[test]
fn a_get_that_fails_at_once_has_no_second_end() {
    fn ended(ends: &mut u64, _: &mut Outbox<u64>, _: u64, _: Result<(), LapiError>) {
        *ends += 1;
    }
    let mut adapters = Kind::ShmAm.adapters(2);
    let bell = adapters[1].parts().losses;
    let context = Context::init(adapters.remove(0), 0, Options::default());
    // The send queue is busy when the target is lost.
    let long = Amsend::new(1, 1, &[], source(pattern(1, 6 << 20)));
    let _ = context.session().unwrap().amsend(long).unwrap();
    bell.declare();
    let landing = Landing::new(REGION);
    let remote = RemoteRegion::over_frames(u64::MAX, REGION as u64, 0);
    let (blocks, memory) = (&many_blocks(2), landing.region(REGION));
    let next = Next::Outcome(ended, 0);
    let (tgt_vec, org_vec, tgt_cntr) = (blocks, blocks, None);
    let call = Getv { target: 1, remote, tgt_vec, memory, org_vec, next, tgt_cntr };
    let refusal = context.session().unwrap().getv(call).unwrap_err();
    assert!(matches!(refusal, LapiError::Adapter(AdapterError::PeerLost { task: 1 })), "{refusal}");
    for _ in 0..5 {
        let _ = context.session().unwrap().notice_losses();
        let _ = context.session().unwrap().progress();
    }
    assert_eq!(context.session().unwrap().state, 0);
}

/// A get whose answer does not fit into the ring is refused when the registration ends meanwhile.
#[test]
fn a_get_ends_with_the_registration() {
    const LEN: usize = 8 << 20;
    let contexts = Kind::Threads.adapters(2).into_iter();
    let contexts: Vec<_> =
        contexts.map(|adapter| Context::init(adapter, (), Options::default())).collect();
    let (memory, landing) = (Landing::new(LEN), Landing::new(LEN));
    let mut target = contexts[1].session().unwrap();
    let remote = target.register_writable(memory.region(LEN)).unwrap();
    let half = LEN as u64 / 2;
    let blocks = &Vector::Blocks(vec![(0, half - 8), (half, half)]);
    let (tgt_vec, org_vec, memory) = (blocks, blocks, landing.region(LEN));
    let (next, tgt_cntr) = (Next::Nothing, None);
    let call = Getv { target: 1, remote, tgt_vec, memory, org_vec, next, tgt_cntr };
    contexts[0].session().unwrap().getv(call).unwrap();
    target.progress().unwrap();
    let released = target.counter();
    target.deregister(remote, Next::Counter(released));
    let error = loop {
        target.progress().unwrap();
        if let Err(error) = contexts[0].session().unwrap().progress() {
            break error;
        }
    };
    let LapiError::Peer { origin: 1, violation: Violation::GetRefused { .. } } = error else {
        panic!("{error:?}");
    };
    assert_eq!(target.getcntr(released).unwrap(), 1);
}
