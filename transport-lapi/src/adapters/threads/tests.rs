//! The adapter for threads: which regions its table lets others read, and what Miri can see of frames.

use super::*;
use crate::adapter::{Adapter, Frame, OneSided, Post, Ticket, Transfer};
use crate::memory::body::Piece;
use crate::memory::region::RemoteRegion;

fn make(tasks: usize) -> Vec<ThreadsAdapter> {
    job(tasks).unwrap()
}

fn region(bytes: &[u8]) -> SendRegion {
    // SAFETY: G1 of `crate::memory::region`: the tests keep the bytes until they deregister them.
    unsafe { SendRegion::new(bytes.as_ptr(), bytes.len()) }
}

fn register(adapter: &mut ThreadsAdapter, bytes: &[u8]) -> RemoteKey {
    adapter
        .register(Registered::Constant(region(bytes)), None)
        .unwrap()
        .expect("threads have tables")
}

fn get(
    adapter: &mut ThreadsAdapter,
    direct: RemoteKey,
    offset: u64,
    len: usize,
) -> Result<Vec<u8>, AdapterError> {
    let mut copy = vec![0; len];
    // SAFETY: G2 of `crate::memory::region`: the copy is local and outlives the call.
    let mut into = unsafe { RecvRegion::new(copy.as_mut_ptr(), len) };
    let remote = RemoteRegion { addr: 0, len: u64::MAX, key: 0, direct };
    let get = OneSided::Get { remote: &remote, offset, into: into.part(0, len) };
    assert_eq!(adapter.start(0, get, Ticket(0))?, Transfer::Done(0));
    Ok(copy)
}

/// The pages of an area take no memory before somebody writes to them.
#[test]
fn an_unused_area_takes_no_memory() {
    for adapter in job_with_contexts(1, 2).unwrap().remove(0) {
        let area = adapter.parts().area.expect("the task is alone");
        let page = rustix::param::page_size();
        let resident = || {
            let mut pages = vec![0_u8; area.bytes(0) / page];
            let start = area.start(0).cast();
            // SAFETY: the call reads no memory of the area, and writes a byte for each of its pages.
            assert_eq!(unsafe { libc::mincore(start, area.bytes(0), pages.as_mut_ptr()) }, 0);
            pages.iter().filter(|&page| page & 1 == 1).count()
        };
        assert_eq!(resident(), 0);
        // SAFETY: the byte lies in the area, which nobody else uses.
        unsafe { area.start(0).add(area.bytes(0) / 2).write(1) };
        assert_eq!(resident(), 1);
    }
}

/// P1 of `crate::adapters::local::port`: this can fail only under Miri.
#[test]
fn a_task_may_be_dropped_by_a_function_that_it_was_passed_to() {
    fn end(adapter: ThreadsAdapter) {
        drop(adapter);
    }
    end(make(1).remove(0));
}

/// Frames of one slot and of several outlive their sender.
#[test]
fn frames_outlive_their_sender() {
    let mut job = make(2);
    let bodies = [vec![], vec![3; 300], vec![5; job[0].caps(1).max_body]];
    for body in &bodies {
        let post = job[0].try_send(1, b"head", Piece::of(body), Ticket(0)).unwrap();
        assert_eq!(post, Post::Taken);
    }
    drop(job.remove(0));
    let mut come = Vec::new();
    let mut keep = |frame: Frame<'_>| {
        assert_eq!((frame.origin, frame.head), (0, &b"head"[..]));
        come.push(frame.body.to_vec());
    };
    while job[0].poll(None, 1, &mut keep).unwrap() > 0 {}
    assert!(come == bodies);
}

#[test]
fn reads_what_is_registered_and_nothing_else() {
    let mut job = make(2);
    let bytes: Vec<u8> = (0..100).collect();
    let key = register(&mut job[0], &bytes);
    assert_eq!(get(&mut job[1], key, 0, 100).unwrap(), bytes);
    assert_eq!(get(&mut job[1], key, 40, 60).unwrap(), bytes[40..]);
    assert_eq!(get(&mut job[0], key, 99, 1).unwrap(), [99], "a task reads its own regions too");
    assert_eq!(get(&mut job[1], key, 100, 0).unwrap(), []);
    for (key, offset, len) in [
        (RemoteKey::from(77), 0, 1),
        (RemoteKey::new(&[1]), 0, 1),
        (key, 0, 101),
        (key, 100, 1),
        (key, u64::MAX, 1),
    ] {
        let refused = get(&mut job[1], key, offset, len).unwrap_err();
        assert!(
            matches!(refused, AdapterError::AccessFailed { target: 0, len: l, .. } if l == len)
        );
    }
    job[0].deregister(key);
    let refused = get(&mut job[1], key, 0, 1).unwrap_err().to_string();
    assert!(refused.contains("no region under this key"), "{refused}");
}

#[test]
fn keys_of_different_tasks_are_different() {
    let mut job = make(2);
    let (mine, other) = ([1; 4], [2; 4]);
    let key = register(&mut job[0], &mine);
    assert_eq!(register(&mut job[1], &other), key, "they are numbers");
    assert_eq!(get(&mut job[1], key, 0, 4).unwrap(), mine);
}

#[test]
fn what_a_task_registered_ends_with_it() {
    let mut job = make(2);
    let bytes = [1; 4];
    let key = register(&mut job[0], &bytes);
    drop(job.remove(0));
    get(&mut job[0], key, 0, 4).unwrap_err();
}

#[test]
fn refuses_impossible_task_counts() {
    assert!(matches!(job(0), Err(AdapterError::HostTaskCount { asked: 0, .. })));
    assert!(matches!(job(257), Err(AdapterError::HostTaskCount { asked: 257, max: 256 })));
}

#[test]
fn caps_are_what_the_layout_gives() {
    let caps = make(2)[1].caps(0);
    assert_eq!((caps.name, caps.max_head, caps.max_body), ("threads", 256, 64 << 10));
    assert_eq!(caps.max_inline, 304);
    assert_eq!(make(2)[0].caps(1).gets, Some(GetKind::Memcpy));
    assert_eq!(make(64)[0].caps(1).max_body, 8 << 10);
}
