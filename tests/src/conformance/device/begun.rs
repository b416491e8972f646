//! Generalized requests: operations that a client of the device ends (MPI-4 section 13.2).

use std::sync::mpsc;
use std::thread;

use mpj_harness::Sleepers;
use mpjdev::{Call, Ending, Error, Status};

use super::job::Setup;
use super::rank::{Pending, Rank, check};
use crate::conformance::payload;

/// Begins an operation and returns it for a list.
fn begin(rank: &Rank, tag: i32) -> (Pending, Ending) {
    let (request, ending) = rank.begin(Call::Barrier, 5, tag).unwrap();
    (Pending::bare(request), ending)
}

/// Waits and tests see nothing before the end, and then what the client has said.
pub fn their_client_ends_them(setup: &Setup) {
    setup.run(1, |rank| {
        let (mut request, ending) = begin(rank, 17);
        assert_eq!(rank.test(&mut request).unwrap(), None);
        assert!(rank.status(&request).unwrap().is_none());
        let dump = rank.dump().unwrap();
        assert!(
            dump.contains("open requests: 1\n  begun: barrier in context 5, tag 17\n"),
            "{dump}"
        );
        rank.end(ending, Ok(Status::new(3, 17, 40)));
        assert_eq!(rank.status(&request).unwrap().unwrap().unwrap(), Status::new(3, 17, 40));
        assert_eq!(rank.test(&mut request).unwrap(), Some(Status::new(3, 17, 40)));

        let (request, ending) = begin(rank, 0);
        rank.end(ending, Err(Error::Tag { tag: -7 }));
        let (outcome, _) = rank.wait(request);
        assert!(matches!(outcome, Err(Error::Tag { tag: -7 })), "{outcome:?}");

        let (request, ending) = begin(rank, 0);
        rank.end(ending, Ok(Status { cancelled: true, ..Status::new(0, 0, 0) }));
        assert!(rank.wait(request).0.unwrap().cancelled);
        assert!(rank.dump().unwrap().ends_with("open requests: 0\n"));
    });
}

/// Lists may have them beside receives and sends.
pub fn in_lists_with_messages(setup: &Setup) {
    setup.run(2, |rank| {
        let other = 1 - rank.me();
        for len in [8, 30_000] {
            let (first, first_end) = begin(rank, 1);
            let (second, second_end) = begin(rank, 2);
            let receive = rank.irecv(len, other, 3).unwrap();
            let mut list = vec![first, receive, second];
            assert_eq!(rank.test_any(&mut list[..1]).unwrap().map(|(place, _)| place), None);
            list.push(rank.issend(payload(9, len), other, 3).unwrap());
            let mut places = vec![rank.wait_any(&mut list).unwrap().expect("four are open").0];
            places.push(rank.wait_any(&mut list).unwrap().expect("three are open").0);
            places.sort_unstable();
            assert_eq!(places, [1, 3], "the messages");
            check(list[1].bytes(), 9);
            assert!(rank.test_all(&mut list).unwrap().is_none());
            rank.end(second_end, Ok(Status::new(0, 2, 0)));
            let some = rank.wait_some(&mut list).unwrap();
            assert!(matches!(some[..], [(2, Ok(Status { tag: 2, .. }))]), "{some:?}");
            rank.end(first_end, Ok(Status::new(0, 1, 0)));
            assert_eq!(rank.complete(&mut list), [Status::new(0, 1, 0)]);
        }
    });
}

/// Another thread ends the operation for which the first one sleeps, in every kind of wait.
pub fn a_sleeping_wait_is_woken(setup: &Setup) {
    setup.run(1, |rank| {
        let (give, take) = mpsc::channel::<Ending>();
        let sleepers = Sleepers::default();
        sleepers.join();
        thread::scope(|scope| {
            let sleepers = &sleepers;
            scope.spawn(move || {
                for ending in take {
                    sleepers.wait_until_asleep(1);
                    rank.end(ending, Ok(Status::new(0, 4, 0)));
                }
            });
            let begin = || {
                let (request, ending) = begin(rank, 4);
                give.send(ending).unwrap();
                request
            };
            assert_eq!(rank.wait(begin()).0.unwrap().tag, 4);
            assert_eq!(rank.wait_any(&mut [begin()]).unwrap().unwrap().1.unwrap().tag, 4);
            assert_eq!(rank.complete(&mut [begin(), begin()]).len(), 2);
            drop(give);
        });
    });
}

/// A function that follows one operation ends another one, in whatever call its thread is.
pub fn continuations_follow_them_and_end_them(setup: &Setup) {
    const LINKS: i32 = 50;
    setup.run(2, |rank| {
        let ((last, last_end), (first, first_end)) = (begin(rank, 0), begin(rank, 0));
        let mut before = first.into_request();
        for tag in 1..=LINKS {
            let (device, (request, ending)) = (rank.clone(), begin(rank, tag));
            let follow = move |outcome: Result<Status, Error>| {
                device.end(ending, Ok(Status::new(0, outcome.unwrap().tag + 1, 0)));
            };
            rank.then(before, follow).unwrap();
            before = request.into_request();
        }
        let device = rank.clone();
        rank.then(before, move |outcome| device.end(last_end, outcome)).unwrap();
        rank.end(first_end, Ok(Status::new(0, 0, 0)));
        assert_eq!(rank.wait(last).0.unwrap().tag, LINKS);
    });
}

/// One that joins others ends when the last of them has ended, also by an error, and leaves them where they are.
pub fn joint_ones_end_with_the_last(setup: &Setup) {
    setup.run(1, |rank| {
        let (first, first_end) = rank.begin(Call::Barrier, 5, 1).unwrap();
        let (second, second_end) = rank.begin(Call::Barrier, 5, 2).unwrap();
        let joint = rank.join([&first, &second]).unwrap();
        let again = rank.join([&joint, &second]).unwrap();
        rank.end(second_end, Err(Error::Tag { tag: -7 }));
        assert!(rank.istatus(&joint).unwrap().is_none());
        rank.end(first_end, Ok(Status::new(0, 1, 0)));
        rank.iwait(again).unwrap();
        rank.iwait(joint).unwrap();
        rank.iwait(rank.join([&first, &second]).unwrap()).unwrap();
        let mut places = [Some(first), Some(second)];
        rank.drop_ended(&mut places[..1]).unwrap();
        assert!(places[0].is_none() && places[1].is_some());
        assert!(matches!(rank.iwait(places[1].take().unwrap()), Err(Error::Tag { tag: -7 })));
        rank.iwait(rank.join([]).unwrap()).unwrap();
    });
}

/// Neither a cancellation nor a withdrawal ends them, nor does the loss of a rank. One that was detached ends later.
pub fn they_are_left_alone(setup: &Setup) {
    setup.run_open(2, |rank| {
        let (request, ending) = begin(rank, 0);
        if rank.me() == 1 {
            return rank.abort();
        }
        assert!(!rank.cancel(&request).unwrap());
        rank.withdraw(&request, Error::Finished).unwrap();
        rank.recv(&mut [0], 1, 0).unwrap_err();
        assert!(rank.status(&request).unwrap().is_none());
        rank.end(ending, Ok(Status::new(0, 0, 0)));
        rank.wait(request).0.unwrap();

        let (request, ending) = begin(rank, 0);
        rank.detach(request);
        assert!(!rank.is_idle(5).unwrap());
        rank.end(ending, Ok(Status::new(0, 0, 0)));
        assert!(rank.is_idle(5).unwrap());
    });
}

/// To end an operation does nothing on a device that has ended, or on another device.
pub fn on_a_device_that_has_ended(setup: &Setup) {
    let devices = setup.devices(2);
    let (request, ending) = devices[0].begin(Call::Other, 0, 0).unwrap();
    devices[1].end(ending, Ok(Status::new(0, 0, 0)));
    assert!(devices[0].istatus(&request).unwrap().is_none());
    assert!(matches!(devices[1].istatus(&request), Err(Error::Request)));
    let (request, ending) = devices[0].begin(Call::Other, 0, 0).unwrap();
    devices[0].give_up();
    devices[0].end(ending, Ok(Status::new(0, 0, 0)));
    assert!(matches!(devices[0].iwait(request), Err(Error::Finished)));
    assert!(matches!(devices[0].begin(Call::Other, 0, 0), Err(Error::Finished)));
}
