//! The adapter for processes. Its tasks are threads of this process, each with its own mapping.

use std::thread;
use std::time::{Duration, Instant};

use mpj_harness::Sleepers;

use super::*;
use crate::adapter::{
    Adapter, Advance, Begun, CooperativeCopy, Frame, OneSided, Post, Ticket, Transfer,
};
use crate::adapters::shm::peer::ProbeCell;
use crate::memory::body::Piece;
use crate::memory::region::{RecvRegion, RemoteRegion};

/// Starts a get from task 0.
fn get(
    adapter: &mut ShmAdapter,
    remote: &RemoteRegion,
    offset: u64,
    into: RecvPart<'_>,
) -> Result<Transfer, AdapterError> {
    adapter.start(0, OneSided::Get { remote, offset, into }, Ticket(0))
}

/// Memory at an address of another task.
fn at(addr: u64, len: u64) -> RemoteRegion {
    RemoteRegion { addr, len, key: 0, direct: addr.into() }
}

/// Attaches one task per mode, each from its own thread.
fn attach_all(modes: &[GetMode]) -> Vec<Result<ShmAdapter, AdapterError>> {
    attach_to(&create_segment("test", modes.len(), 1).unwrap(), modes)
}

fn attach_to(fd: &OwnedFd, modes: &[GetMode]) -> Vec<Result<ShmAdapter, AdapterError>> {
    let tasks = modes.len();
    thread::scope(|scope| {
        let attach = |(task, &mode): (usize, &GetMode)| {
            let fd = fd.try_clone().unwrap();
            scope.spawn(move || ShmAdapter::attach(fd, task as TaskId, tasks, mode))
        };
        let threads: Vec<_> = modes.iter().enumerate().map(attach).collect();
        threads.into_iter().map(|thread| thread.join().expect("attach never panics")).collect()
    })
}

fn make(tasks: usize) -> Vec<ShmAdapter> {
    attach_all(&vec![GetMode::Auto; tasks]).into_iter().map(Result::unwrap).collect()
}

fn what(refused: Result<ShmAdapter, AdapterError>) -> String {
    match refused {
        Err(AdapterError::BadSegment { what }) => what,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("accepted"),
    }
}

#[test]
fn all_tasks_come_to_the_same_conclusion() {
    let job = make(4);
    for adapter in &job {
        assert_eq!(adapter.one_sided_path(), job[0].one_sided_path());
        assert_eq!(adapter.reach.kind().is_some(), adapter.one_sided_path() == "process_vm_readv");
        assert!(adapter.reach.peers.all().all(|peer| peer.pid == std::process::id() as i32));
    }
}

#[test]
fn active_messages_are_used_when_one_task_wants_them() {
    for adapter in attach_all(&[GetMode::Auto, GetMode::Am, GetMode::Auto]) {
        let adapter = adapter.unwrap();
        assert_eq!(adapter.reach.kind(), None);
        assert_eq!(
            adapter.one_sided_path(),
            "active messages (rank 1 was started with MPJ_GET=am)"
        );
    }
}

#[test]
fn demanding_what_others_decline_is_refused() {
    let mut attached = attach_all(&[GetMode::Cma, GetMode::Am]).into_iter();
    let refused = attached.next().unwrap().err().expect("task 0 demanded it");
    assert!(matches!(&refused, AdapterError::GetRefused { reason } if reason.contains("rank 1")));
    assert!(refused.to_string().contains("MPJ_GET=auto"), "{refused}");
    let other = attached.next().unwrap().unwrap();
    assert_eq!(other.reach.kind(), None);
    // The refusal may come a moment after the other task has attached.
    let start = Instant::now();
    while !other.parts().losses.is_lost(0) {
        assert!(start.elapsed() < Duration::from_secs(20), "task 0 is lost");
        thread::yield_now();
    }
}

#[test]
fn reads_memory_one_sidedly_where_it_says_so() {
    let mut job = make(2);
    if job[1].caps(0).gets.is_none() {
        assert!(job[1].one_sided_path().contains("cannot read"), "{}", job[1].one_sided_path());
        return;
    }
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let remote = at(bytes.as_ptr() as u64, bytes.len() as u64);
    let mut copy = vec![0; bytes.len() - 5];
    // SAFETY: G2 of `crate::memory::region`: the copy is local and outlives the calls.
    let mut into = unsafe { RecvRegion::new(copy.as_mut_ptr(), copy.len()) };
    let len = copy.len();
    assert_eq!(get(&mut job[1], &remote, 5, into.part(0, len)).unwrap(), Transfer::Done(0));
    assert_eq!(copy, bytes[5..]);

    let nowhere = at(64, 1 << 40);
    let refused = get(&mut job[1], &nowhere, 0, into.part(0, len)).unwrap_err();
    let AdapterError::AccessFailed { target: 0, len, reason } = refused else {
        panic!("another error: {refused}");
    };
    assert_eq!((len, reason.raw_os_error()), (bytes.len() - 5, Some(libc::EFAULT)));
    assert_eq!(get(&mut job[1], &nowhere, 0, into.part(0, 0)).unwrap(), Transfer::Done(0));
}

/// U6: a get that fails or is ended while the target writes a slice is not over before the target is gone; calls return
/// at once.
#[test]
fn a_shared_get_ends_with_a_target_that_is_gone() {
    let mut job = make(2);
    let mut target = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    job[0].peer_mut(1).pid = target.id() as i32;
    let mut landing = vec![0; 1 << 20];
    // SAFETY: G2 of `crate::memory::region`: the landing is local, and the get ends before it does.
    let into = unsafe { RecvRegion::new(landing.as_mut_ptr(), landing.len()) };
    let remote = at(1 << 20, 1 << 20);
    let Begun::Shared(number) = job[0].begin(1, remote, 0, into) else {
        target.kill().unwrap();
        target.wait().unwrap();
        return;
    };
    job[0].shares.claim_in_the_name_of_target(1, number);
    assert!(!job[0].reach.is_gone(1));
    // The source is not in the target's memory, so the origin's first read fails.
    assert_eq!(job[0].advance(1).unwrap(), Advance::Waiting, "the error comes when nobody writes");
    assert!(!job[0].end(1), "not yet");
    assert_eq!(job[0].advance(1).unwrap(), Advance::Waiting);
    target.kill().unwrap();
    target.wait().unwrap();
    let failed = job[0].advance(1).unwrap_err();
    assert!(matches!(failed, AdapterError::AccessFailed { target: 1, .. }), "{failed}");
    assert!(job[0].end(1), "nothing is left to end");
}

/// PE2, by what the launcher has published. None of these tasks is a child of the launcher.
#[test]
fn tasks_behind_scripts_are_known_by_their_cells_in_a_job_that_goes_on() {
    for goes_on in [false, true] {
        let fd = create_segment("test", 2, 1).unwrap();
        if goes_on {
            crate::adapters::local::job_view::JobView::open(&fd).unwrap().goes_on();
        }
        for task in attach_to(&fd, &[GetMode::Auto; 2]).into_iter().map(Result::unwrap) {
            assert!(task.reach.peers.all().all(|peer| peer.may_be_reaped == goes_on));
            assert_eq!(task.reach.may_be_reaped, goes_on);
        }
    }
}

/// PE2: if a task's process number may be reused, a read counts only if the process has the task's cell, and nobody may
/// write into this process.
#[test]
fn a_stranger_with_the_number_of_a_task_is_told_from_it() {
    let mut job = make(2);
    let [bytes, mut copy] = [vec![7; 1 << 20], vec![0; 1 << 20]];
    // SAFETY: G2 of `crate::memory::region`: the copy is local and outlives the calls.
    let mut into = unsafe { RecvRegion::new(copy.as_mut_ptr(), copy.len()) };
    let remote = at(bytes.as_ptr() as u64, bytes.len() as u64);
    if job[1].caps(0).gets.is_none() {
        return;
    }
    let ProbeCell { addr, value } = job[1].peer_mut(0).cell;
    job[1].peer_mut(0).may_be_reaped = true;
    assert_eq!(get(&mut job[1], &remote, 0, into.part(0, 100)).unwrap(), Transfer::Done(0));
    assert!(!job[1].reach.is_gone(0));
    for stranger in [ProbeCell { addr, value: value ^ 1 }, ProbeCell { addr: 64, value }] {
        job[1].peer_mut(0).cell = stranger;
        let refused = get(&mut job[1], &remote, 0, into.part(0, 100)).unwrap_err();
        assert!(matches!(refused, AdapterError::PeerLost { task: 0 }), "{refused}");
        assert!(job[1].reach.is_gone(0));
    }
    job[1].reach.may_be_reaped = true;
    let begun = job[1].begin(0, remote, 0, into);
    assert!(matches!(begun, Begun::Alone(_)), "the origin alone writes");
}

/// If the system refuses writes into the origin's memory, the origin copies everything.
#[test]
fn a_refused_write_leaves_the_slice_to_the_origin() {
    let mut job = make(2);
    let bytes = vec![7; 1 << 20];
    let mut landing = vec![0; 1 << 20];
    // SAFETY: G1 and G2 of `crate::memory::region`: both are local, and the get ends before they do.
    let (from, into) = unsafe {
        let from = SendRegion::new(bytes.as_ptr(), bytes.len());
        (from, RecvRegion::new(landing.as_mut_ptr(), landing.len()))
    };
    let remote = at(from.addr(), bytes.len() as u64);
    let Begun::Shared(number) = job[0].begin(1, remote, 0, into) else { return };
    let origin = std::mem::replace(&mut job[1].peer_mut(0).pid, i32::MAX);
    assert!(!job[1].assist(0, number, from), "there is no such process");
    job[1].peer_mut(0).pid = origin;
    assert!(!job[1].assist(0, number, from), "a task that was refused once helps no more");
    while job[0].advance(1).unwrap() != Advance::Complete {}
    assert_eq!(landing, bytes);
}

#[test]
fn refuses_a_task_number_outside_of_the_job() {
    let fd = create_segment("test", 2, 1).unwrap();
    let refused = what(ShmAdapter::attach(fd, 2, 2, GetMode::Auto));
    assert_eq!(refused, "rank 2 does not exist in a job of 2 ranks");
}

#[test]
fn refuses_a_task_number_that_is_taken() {
    let fd = create_segment("test", 1, 1).unwrap();
    let again = fd.try_clone().unwrap();
    let first = ShmAdapter::attach(fd, 0, 1, GetMode::Auto).unwrap();
    let refused = ShmAdapter::attach(again, 0, 1, GetMode::Auto).err().expect("it is taken");
    let (task, pid) = (0, std::process::id());
    assert_eq!(refused.to_string(), AdapterError::AlreadyAttached { task, pid }.to_string());
    assert_eq!(first.parts().losses.count(), 0, "the intruder does not end the job");
}

#[test]
fn refuses_the_segment_of_a_job_of_another_size() {
    let fd = create_segment("test", 2, 1).unwrap();
    let refused = what(ShmAdapter::attach(fd, 0, 3, GetMode::Auto));
    assert_eq!(refused, "its number of ranks is 0x2 and should be 0x3");
    let fd = create_segment("test", 2, 1).unwrap();
    let refused = ShmAdapter::attach(fd, 0, 0, GetMode::Auto).err().expect("no such job");
    assert!(matches!(refused, AdapterError::HostTaskCount { asked: 0, max: 1024 }));
}

#[test]
fn a_task_that_gives_up_ends_the_waiting_of_the_others() {
    let (fd, sleepers) = (create_segment("test", 2, 1).unwrap(), Sleepers::default());
    thread::scope(|scope| {
        let waiting = fd.try_clone().unwrap();
        let waiting = scope.spawn(|| {
            sleepers.join();
            ShmAdapter::attach(waiting, 0, 2, GetMode::Auto)
        });
        let segment = mapping::open_segment(&fd).unwrap();
        sleepers.wait_until_asleep(1);
        declare_lost(&segment, 1);
        let refused = waiting.join().expect("attach never panics").err().expect("task 1 is lost");
        assert!(matches!(refused, AdapterError::PeerLost { task: 1 }));
    });
}

#[test]
fn the_segment_lives_as_long_as_somebody_maps_it() {
    let fd = create_segment("test", 1, 1).unwrap();
    let adapter = ShmAdapter::attach(fd.try_clone().unwrap(), 0, 1, GetMode::Am);
    drop(fd);
    let adapter = adapter.unwrap();
    let bell = adapter.parts().bell;
    drop(adapter);
    bell.ring();
}

/// In a job of many tasks, only rings that have been written to occupy memory.
#[test]
fn a_ring_that_nobody_wrote_to_takes_no_memory() {
    const TASKS: usize = 64;
    let fd = create_segment("test", TASKS, 1).unwrap();
    let attached = attach_to(&fd, &[GetMode::Auto; TASKS]);
    let mut job: Vec<_> = attached.into_iter().map(Result::unwrap).collect();
    let taken = || rustix::fs::fstat(&fd).unwrap().st_blocks as usize * 512;
    let poll_all = |job: &mut [ShmAdapter]| {
        job.iter_mut()
            .map(|task| task.poll(None, 64, &mut |_: Frame<'_>| {}).unwrap())
            .sum::<usize>()
    };
    assert_eq!(poll_all(&mut job), 0);
    let start = taken();
    let blocks = Layout::new(TASKS, 1).unwrap().indices_at(0, 0);
    assert!(start <= blocks.next_multiple_of(rustix::param::page_size()), "{start} bytes");
    assert_eq!(job[3].try_send(5, b"head", Piece::of(b"body"), Ticket(0)).unwrap(), Post::Taken);
    assert_eq!(poll_all(&mut job), 1);
    assert!(taken() <= start + 2 * rustix::param::page_size(), "{} bytes", taken());
}

/// Both contexts of each of `tasks` tasks.
fn two_contexts(tasks: usize) -> Vec<Vec<ShmAdapter>> {
    let fd = create_segment("test", tasks, 2).unwrap();
    thread::scope(|scope| {
        let attach = |task| {
            let fd = fd.try_clone().unwrap();
            scope.spawn(move || {
                ShmAdapter::attach_contexts(fd, task as TaskId, tasks, 2, GetMode::Auto).unwrap()
            })
        };
        let threads: Vec<_> = (0..tasks).map(attach).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn mistakes_are_looked_for_if_all_tasks_ask_for_it() {
    for asked in [[true, true], [true, false], [false, true], [false, false]] {
        let fd = create_segment("test", 2, 1).unwrap();
        let all = thread::scope(|scope| {
            let attach = |(task, asks): (usize, bool)| {
                let (fd, task) = (fd.try_clone().unwrap(), task as TaskId);
                scope.spawn(move || {
                    let client = Client { name: "test", contexts: 1, asks, spans_worlds: false };
                    let world = World::whole(task, 2);
                    let (member, _) = Member::attach(fd, world, 1, GetMode::Auto, client).unwrap();
                    member.all_check(0)
                })
            };
            let threads: Vec<_> = asked.into_iter().enumerate().map(attach).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(all, [asked == [true, true]; 2], "{asked:?}");
    }
}

#[test]
fn what_is_sent_in_a_context_arrives_there_alone() {
    for tasks in [2, 20] {
        let mut job = two_contexts(tasks);
        let contexts = job[1].iter().map(|one| one.endpoint().context);
        assert_eq!(contexts.collect::<Vec<_>>(), [0, 1]);
        for (context, adapter) in job[0].iter_mut().enumerate() {
            let sent = adapter.try_send(1, &[context as u8], Piece::of(b""), Ticket(0)).unwrap();
            assert_eq!(sent, Post::Taken);
        }
        for (context, adapter) in job[1].iter_mut().enumerate().rev() {
            let mut come = Vec::new();
            let mut keep = |frame: Frame<'_>| come.push((frame.origin, frame.head.to_vec()));
            while adapter.poll(None, 1, &mut keep).unwrap() > 0 {}
            assert_eq!(come, [(0, vec![context as u8])]);
        }
    }
}

#[test]
fn a_lost_task_is_known_and_wakes_sleepers_in_every_context() {
    let job = two_contexts(2);
    let tickets: Vec<_> = job[1].iter().map(|one| one.parts().bell.announce()).collect();
    job[0][1].parts().losses.declare();
    for (adapter, ticket) in job[1].iter().zip(tickets) {
        assert!(adapter.parts().bell.sleep(ticket, Some(Duration::from_secs(20))), "it has rung");
        assert!(adapter.parts().losses.is_lost(0));
    }
}

#[test]
fn a_job_with_other_contexts_is_refused() {
    let fd = create_segment("test", 1, 2).unwrap();
    let refused = what(ShmAdapter::attach(fd, 0, 1, GetMode::Auto));
    assert_eq!(refused, "its number of contexts beyond the first is 0x4 and should be 0x0");
}

/// WO2: a further world does as that of its parent, and its tasks exchange frames with those of the other.
#[test]
fn a_further_world_keeps_to_what_its_parents_agreed_on() {
    let fd = create_segment_with_room("test", 2, 5, 1).unwrap();
    let attach = |world: World, get, asks| {
        let fd = fd.try_clone().unwrap();
        thread::spawn(move || {
            let client = Client { name: "test", contexts: 1, asks, spans_worlds: true };
            Member::attach(fd, world, 1, get, client)
        })
    };
    let first = |task| World { universe: 5, ..World::whole(task, 2) };
    let parents = [0, 1].map(|task| attach(first(task), GetMode::Am, false));
    let mut parents = parents.map(|parent| parent.join().unwrap().unwrap());
    let none = Piece::of(b"");
    // The parent may send at once.
    let early = parents[1].1[0].try_send(2, b"early", none, Ticket(0)).unwrap();
    assert_eq!(early, Post::Taken);
    let second = |task| World { task, tasks: 2..4, universe: 5, parent: Some(1) };
    let children = [2, 3].map(|task| attach(second(task), GetMode::Auto, true));
    let children = children.map(|child| child.join().unwrap().unwrap());
    for (member, adapters) in &children {
        assert!(!member.all_check(0));
        assert!(member.one_sided_path().contains("rank 0 was started with MPJ_GET=am"));
        assert_eq!(adapters[0].endpoint().num_tasks, 5);
        assert_eq!(adapters[0].parts().neighbours, 4);
    }
    let [mut parents, mut children] =
        [parents, children].map(|world| world.map(|(_, mut it)| it.remove(0)));
    assert_eq!(children[1].try_send(0, b"up", none, Ticket(0)).unwrap(), Post::Taken);
    assert_eq!(parents[0].try_send(3, b"down", none, Ticket(0)).unwrap(), Post::Taken);
    let mut heard = Vec::new();
    let mut note = |frame: Frame<'_>| heard.push((frame.origin, frame.head.to_vec()));
    parents[0].poll(None, 1, &mut note).unwrap();
    children[1].poll(None, 1, &mut note).unwrap();
    children[0].poll(None, 1, &mut note).unwrap();
    let expected = [(3, b"up".to_vec()), (0, b"down".to_vec()), (1, b"early".to_vec())];
    assert_eq!(heard, expected);
    let cma =
        attach(World { task: 4, tasks: 4..5, universe: 5, parent: Some(3) }, GetMode::Cma, true);
    let refused = cma.join().unwrap().err().expect("the job reads no memory");
    assert!(matches!(refused, AdapterError::GetRefused { .. }), "{refused}");
}

/// Blocks of another task are read and written one after the other, more of them than one system call takes.
#[test]
fn blocks_of_another_task_are_copied_alone() {
    let job = make(2);
    let Some(memory) = job[0].parts().peer_memory else {
        assert_eq!(job[0].reach.kind(), None);
        return;
    };
    assert!(memory.reaches(0) && memory.reaches(1));
    let mut there: Vec<u64> = (0..2000).collect();
    let start = there.as_mut_ptr().expose_provenance() as u64;
    let every_second = |word: u64| PeerBytes { addr: start + 16 * word, len: 8 };
    let blocks: Vec<_> = (0..1000).map(every_second).collect();
    // SAFETY: the words are used by this test alone, and afterwards.
    let write = |to: &[PeerBytes], from: &[u8]| unsafe {
        memory.write(1, to, ForeignBytes::from_slice(from))
    };
    let mut bytes = vec![0; 8000];
    memory.read(1, &blocks, RecvPart::of_slice(&mut bytes)).unwrap();
    let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    assert!(words.eq((0..1000).map(|word| 2 * word)));
    bytes.fill(0xff);
    write(&blocks, &bytes[..7992]).unwrap();
    write(&[PeerBytes { addr: start + 8, len: 8 }], &[0; 8]).unwrap();
    let there = std::hint::black_box(there);
    let expected = (0..2000).map(|word| match word {
        1 => 0,
        1998 => 1998,
        word if word % 2 == 0 => u64::MAX,
        word => word,
    });
    assert!(there.iter().copied().eq(expected));
    let nowhere = PeerBytes { addr: 8, len: 8 };
    for outcome in [
        memory.read(1, &[nowhere], RecvPart::of_slice(&mut bytes[..8])),
        write(&[blocks[0], nowhere], &bytes[..16]),
    ] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, AdapterError::AccessFailed { target: 1, .. }), "{error}");
    }
}

/// Nobody else gets a process's place while its memory is written.
#[test]
fn processes_that_may_be_replaced_are_not_reached() {
    let mut job = make(2);
    if job[0].reach.kind().is_some() {
        job[0].peer_mut(1).may_be_reaped = true;
        let memory = job[0].parts().peer_memory.expect("there is a way");
        assert!(!memory.reaches(1) && memory.reaches(0));
    }
    assert!(
        attach_all(&[GetMode::Am; 2]).into_iter().all(|task| task
            .unwrap()
            .parts()
            .peer_memory
            .is_none())
    );
}
