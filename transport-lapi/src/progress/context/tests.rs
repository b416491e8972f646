//! What abandoning a context waits for, and what it does not wait for.

use std::process::Command;
use std::thread;

use super::*;
use crate::adapter::Adapter;
use crate::adapters::shm::GetMode;
use crate::adapters::shm::{ShmAdapter, create_segment};
use crate::memory::region::{RecvRegion, RemoteKey, RemoteRegion};
use crate::progress::handler::Next;

/// Two tasks that are threads of this process.
fn pair() -> Vec<ShmAdapter> {
    let segment = create_segment("test", 2, 1).unwrap();
    thread::scope(|scope| {
        let tasks = [0, 1].map(|task| {
            let segment = segment.try_clone().unwrap();
            scope.spawn(move || ShmAdapter::attach(segment, task, 2, GetMode::Auto).unwrap())
        });
        tasks.into_iter().map(|task| task.join().expect("attaching does not panic")).collect()
    })
}

/// C5: abandoning a context does not wait for a target that is writing a slice, so that the failure can be reported
/// meanwhile; the report may be what ends the target. Settling does wait, without the lock.
#[test]
fn a_context_is_abandoned_at_once_and_settles_when_its_target_is_gone() {
    let mut adapter = pair().remove(0);
    let mut target = Command::new("sleep").arg("60").spawn().unwrap();
    adapter.set_process(1, target.id() as i32);
    let can_get = adapter.caps(1).gets.is_some();
    let context = Context::init(adapter, (), Options::default());
    let mut landing = vec![0; 1 << 20];
    // SAFETY: G2 of `crate::memory::region`: the landing is local, and the context settles before it goes.
    let into = unsafe { RecvRegion::new(landing.as_mut_ptr(), landing.len()) };
    let (addr, len, direct) = (1 << 20, 1 << 20, RemoteKey::from(1 << 20));
    let remote = RemoteRegion { addr, len, key: 0, direct };
    let mut session = context.session().unwrap();
    session.get(1, remote, 0, into, Next::Nothing).unwrap();
    session.progress().unwrap();
    if can_get {
        let AnyAdapter::Local(adapter) = &session.adapter else { unreachable!("it is local") };
        adapter.shares.claim_in_the_name_of_target(1, 1);
    }
    session.abandon();
    assert!(matches!(context.session().err(), Some(LapiError::HndlInvalid)));
    thread::scope(|scope| {
        let settling = scope.spawn(|| context.settle());
        // Time in which it could end, and must not.
        thread::sleep(Duration::from_millis(20));
        assert!(!can_get || !settling.is_finished(), "what the target writes is waited for");
        assert!(context.session().is_err(), "without the lock");
        target.kill().unwrap();
        target.wait().unwrap();
        settling.join().expect("settling does not panic");
    });
}
