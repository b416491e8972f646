//! Tests of services over ranks that are threads of this process, with messages that break their rules.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, mpsc};

use super::*;
use crate::communicator::ranks;

/// Runs `body` on two ranks.
fn run(body: impl Fn(&Communicator) + Send + Sync + 'static) {
    ranks::run_apart(2, body);
}

/// Registers a service that counts its calls, and returns their number.
fn counting(services: &Services) -> Arc<AtomicU32> {
    let count = Arc::<AtomicU32>::default();
    let calls = count.clone();
    let handler = move |_, _: &[u8], _: &mut Vec<u8>| {
        calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    assert_eq!(services.register(|_| Arc::new(handler)).unwrap(), 0);
    count
}

/// Returns how many units of calls from outside of handlers this rank has for the other one.
fn free(services: &Services) -> u32 {
    let peer = 1 - services.communicator.rank();
    services.state().accounts.get(&(peer, 0)).map_or(WINDOW, |account| account.free)
}

#[test]
fn a_service_that_a_rank_does_not_have() {
    run(|world| {
        let services = Services::new(world.clone()).unwrap();
        counting(&services);
        if world.rank() == 0 {
            let (request, answer) = services.start(7, 1, Services::message()).unwrap();
            world.device().iwait(request).unwrap();
            let error = answer.take().err().map(|error| error.to_string());
            assert!(error.unwrap().starts_with("rank 1 has no service 7; register"));
            assert!(matches!(answer.take(), Err(Error::Device(mpjdev::Error::Request))));
            let error = services.start(0, 2, Services::message()).err();
            assert!(matches!(error, Some(Error::Group(_))));
        }
        services.quiesce().unwrap();
        world.device().finish().unwrap();
    });
}

#[test]
fn units_are_spent_and_come_back() {
    run(|world| {
        let services = Services::new(world.clone()).unwrap();
        let count = counting(&services);
        if world.rank() == 0 {
            (0..WINDOW).for_each(|_| services.notify(0, 1, Services::message()).unwrap());
            assert_eq!(free(&services), 0);
            world.device().send_bytes(vec![0], 1, 3, world.context()).unwrap();
            // This waits for room, and these for most of the window.
            services.notify(0, 1, Services::message()).unwrap();
            let long = || [Services::message(), vec![0; 200 * BYTES_OF_UNIT]].concat();
            let long = [long(), long()].map(|message| services.start(0, 1, message).unwrap());
            for (request, answer) in long {
                world.device().iwait(request).unwrap();
                assert!(answer.take().unwrap().bytes().is_empty());
            }
        } else {
            // No call that makes progress before the message is here.
            world.device().probe(Some(0), Some(3), world.context()).unwrap();
        }
        services.quiesce().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), [0, WINDOW + 3][world.rank() as usize]);
        // The last units may still be on their way.
        services.quiesce().unwrap();
        assert!(free(&services) > WINDOW - WINDOW / 4, "{} units", free(&services));
        world.device().finish().unwrap();
    });
}

/// What a handler has to tell stays on its rank until there is room.
#[test]
fn handlers_do_not_wait_to_notify() {
    const NOTICES: u32 = 10 * WINDOW;
    run(|world| {
        let services = Services::new(world.clone()).unwrap();
        let count = counting(&services);
        let (weak, (told, heard)) = (Arc::downgrade(&services), mpsc::channel());
        let flood = move |caller, _: &[u8], _: &mut Vec<u8>| {
            let services = weak.upgrade().unwrap();
            (0..NOTICES).for_each(|_| services.notify(0, caller, Services::message()).unwrap());
            told.send(free(&services)).unwrap();
            Ok(())
        };
        let flood = services.register(|_| Arc::new(flood)).unwrap();
        services.notify(flood, 1 - world.rank(), Services::message()).unwrap();
        services.quiesce().unwrap();
        assert_eq!(count.load(Ordering::Relaxed), NOTICES);
        assert!(heard.recv().unwrap() < WINDOW / 4, "all of the window was used");
        world.device().finish().unwrap();
    });
}

/// Notices to a lost rank are refused, and those that waited for room there are dropped.
#[test]
fn a_handler_learns_that_the_rank_it_notifies_is_lost() {
    let both = Arc::new(Barrier::new(2));
    run(move |world| {
        let services = Services::new(world.clone()).unwrap();
        counting(&services);
        let (weak, process) = (Arc::downgrade(&services), world.process().clone());
        let full = both.clone();
        let flood = move |_, _: &[u8], _: &mut Vec<u8>| {
            let services = weak.upgrade().unwrap();
            let notify = || services.notify(0, 1, Services::message());
            (0..2 * WINDOW).for_each(|_| notify().unwrap());
            full.wait();
            let failed = (0..1_000_000).find_map(|_| {
                process.device().progress().unwrap();
                notify().err()
            });
            assert_eq!(failed.and_then(|error| error.lost_rank()), Some(1));
            let state = services.state();
            assert!(state.accounts[&(1, 0)].queued.is_empty());
            assert_eq!(state.sent, u64::from(WINDOW) + 1);
            Ok(())
        };
        let flood = services.register(|_| Arc::new(flood)).unwrap();
        if world.rank() == 0 {
            let (request, answer) = services.start(flood, 0, Services::message()).unwrap();
            world.device().iwait(request).unwrap();
            answer.take().unwrap();
        } else {
            both.wait();
            world.device().abort();
        }
    });
}

/// Rank 0 sends a message of services that is none, and rank 1 says so.
fn violation(message: Vec<u8>) -> PeerError {
    ranks::violation(message, |world| {
        let services = Services::new(world.clone()).unwrap();
        counting(&services);
        (services, world.service_context())
    })
}

#[test]
fn messages_that_break_the_rules_are_refused() {
    let of = |number, kind, depth| {
        let mut message = Services::message();
        Head { number, kind, depth }.write(&mut message);
        message
    };
    assert_eq!(violation(vec![0; HEAD - 1]), PeerError::Service { len: HEAD - 1 });
    assert_eq!(violation(of(0, Kind::Call, DEPTHS)), PeerError::Service { len: HEAD });
    // Units that nobody has spent, and the answer to a call that nobody has made.
    assert_eq!(violation(of(1, Kind::Credit, 0)), PeerError::Service { len: HEAD });
    assert_eq!(violation(of(3, Kind::Value, 0)), PeerError::StrayAnswer);
}

#[test]
fn long_texts_are_cut_between_characters() {
    let mut text = "ü".repeat(MOST_TEXT);
    text.insert(0, 'a');
    text.truncate(cut(&text, MOST_TEXT).len());
    assert_eq!(text.len(), MOST_TEXT - 1);
    let mut text = "short".to_owned();
    text.truncate(cut(&text, MOST_TEXT).len());
    assert_eq!(text, "short");
}
