//! Testing, and waiting for one or several requests (MPI-4 sections 3.7.3 and 3.7.5).

use mpjdev::Error;

use super::job::Setup;
use super::rank::{Pending, check};
use crate::conformance::payload;

/// Waits until the other rank asks for it, then sends message `tag` of `len` bytes.
fn on_demand(rank: &super::rank::Rank, tag: i32, len: usize) {
    rank.recv(&mut [], 1, 1000).unwrap();
    rank.send(&payload(tag as u64, len), 1, tag).unwrap();
}

/// Asks rank 0 for the next message.
fn demand(rank: &super::rank::Rank) {
    rank.send(&[], 0, 1000).unwrap();
}

/// A test returns nothing until the message is there, and then returns the status once.
pub fn testing(setup: &Setup) {
    setup.run(2, |rank| {
        for (tag, len) in (0..).zip([0, 100, 10_000, 1_200_000]) {
            if rank.me() == 0 {
                on_demand(rank, tag, len);
                continue;
            }
            let mut receive = rank.irecv(len, 0, tag).unwrap();
            for _ in 0..100 {
                assert_eq!(rank.test(&mut receive).unwrap(), None);
            }
            demand(rank);
            let status = loop {
                match rank.test(&mut receive).unwrap() {
                    Some(status) => break status,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!((status.source, status.tag, status.bytes), (0, tag, len));
            check(receive.bytes(), tag as u64);
            assert_eq!(rank.test(&mut receive).unwrap(), None, "the place is empty");
        }
    });
}

/// Tests of lists take only what is complete; the test of all takes everything or nothing.
pub fn testing_lists(setup: &Setup) {
    const LENGTHS: [usize; 4] = [10, 20_000, 0, 300_000];
    setup.run(2, |rank| {
        if rank.me() == 0 {
            for tag in [2, 0, 3, 1, 0, 1, 2, 3] {
                on_demand(rank, tag, LENGTHS[tag as usize]);
            }
            return;
        }
        let receives = || {
            let receive = |tag: i32| rank.irecv(LENGTHS[tag as usize], 0, tag).unwrap();
            [receive(0), Pending::empty(), receive(1), receive(2), receive(3)]
        };
        let mut list = receives();
        assert_eq!(rank.test_any(&mut list).unwrap().map(|(place, _)| place), None);
        assert!(rank.test_some(&mut list).unwrap().is_empty());
        for expected in [3, 0] {
            demand(rank);
            let (place, outcome) = until(|| rank.test_any(&mut list).unwrap());
            assert_eq!((place, outcome.unwrap().bytes), (expected, list[place].bytes().len()));
        }
        let mut places = Vec::new();
        demand(rank);
        demand(rank);
        while places.len() < 2 {
            places.extend(rank.test_some(&mut list).unwrap().into_iter().map(|(place, _)| place));
            std::thread::yield_now();
        }
        assert_eq!(places.iter().sum::<usize>(), 2 + 4);
        assert!(list.iter().all(Pending::has_ended));

        let mut list = receives();
        for _ in 0..3 {
            demand(rank);
        }
        until(|| rank.status(&list[3]).unwrap()).unwrap();
        assert!(rank.test_all(&mut list).unwrap().is_none(), "one is open");
        demand(rank);
        let outcomes = until(|| rank.test_all(&mut list).unwrap());
        let lengths: Vec<_> = outcomes.into_iter().map(|outcome| outcome.unwrap().bytes).collect();
        assert_eq!(lengths, LENGTHS);
        (0..4).zip([0, 2, 3, 4]).for_each(|(seed, place)| check(list[place].bytes(), seed));
    });
}

/// Calls until there is a result.
fn until<R>(mut call: impl FnMut() -> Option<R>) -> R {
    loop {
        match call() {
            Some(answer) => return answer,
            None => std::thread::yield_now(),
        }
    }
}

/// The outcome of a request can be seen any number of times before it is taken, also if it is an error, and also of a
/// send.
pub fn looking_without_taking(setup: &Setup) {
    setup.run(2, |rank| {
        if rank.me() == 0 {
            on_demand(rank, 5, 4_000);
            on_demand(rank, 6, 4_000);
            let send = rank.isend(payload(7, 9), 1, 7).unwrap();
            for _ in 0..2 {
                let status = until(|| rank.status(&send).unwrap()).unwrap();
                assert_eq!((status.source, status.tag, status.bytes), (1, 7, 9));
            }
            rank.wait(send).0.unwrap();
            return;
        }
        let (whole, short) = (rank.irecv(4_000, 0, 5).unwrap(), rank.irecv(10, 0, 6).unwrap());
        assert!(rank.status(&whole).unwrap().is_none());
        demand(rank);
        demand(rank);
        for _ in 0..3 {
            assert_eq!(until(|| rank.status(&whole).unwrap()).unwrap().bytes, 4_000);
            let error = until(|| rank.status(&short).unwrap()).unwrap_err();
            assert!(matches!(error, Error::Truncate { capacity: 10, .. }), "{error}");
        }
        let (outcome, bytes) = rank.wait(whole);
        assert_eq!(outcome.unwrap().tag, 5);
        check(&bytes, 5);
        assert!(matches!(rank.wait(short).0, Err(Error::Truncate { .. })));
        let cancelled = rank.irecv(8, 0, 8).unwrap();
        assert!(rank.cancel(&cancelled).unwrap());
        assert!(rank.status(&cancelled).unwrap().expect("it has ended").unwrap().cancelled);
        assert!(rank.wait(cancelled).0.unwrap().cancelled);
        let mut buffer = [0; 9];
        rank.recv(&mut buffer, 0, 7).unwrap();
        check(&buffer, 7);
    });
}

/// Messages in another order than their receives: each call takes the one that is there.
pub fn waiting_for_any(setup: &Setup) {
    const ORDER: [i32; 6] = [3, 0, 5, 1, 4, 2];
    let len = |tag: i32| [10, 20_000, 0, 400, 9_000, 300_000][tag as usize];
    setup.run(2, move |rank| {
        if rank.me() == 0 {
            ORDER.into_iter().for_each(|tag| on_demand(rank, tag, len(tag)));
            return;
        }
        let mut list: Vec<_> = (0..6).map(|tag| rank.irecv(len(tag), 0, tag).unwrap()).collect();
        list.insert(2, Pending::empty());
        for tag in ORDER {
            demand(rank);
            let (place, outcome) = rank.wait_any(&mut list).unwrap().expect("one is open");
            assert_eq!(place, tag as usize + usize::from(tag >= 2), "tag {tag}");
            assert_eq!(outcome.unwrap().tag, tag);
            check(list[place].bytes(), tag as u64);
        }
        assert_eq!(rank.wait_any(&mut list).unwrap().map(|(place, _)| place), None);
    });
}

/// Several that are complete are reported together, each once.
pub fn waiting_for_some(setup: &Setup) {
    const MESSAGES: i32 = 12;
    setup.run(2, |rank| {
        if rank.me() == 0 {
            let send = |tag: i32| rank.isend(payload(tag as u64, 700), 1, tag).unwrap();
            rank.recv(&mut [], 1, 1000).unwrap();
            rank.complete(&mut [2, 5, 7].map(send));
            rank.recv(&mut [], 1, 1000).unwrap();
            let mut rest: Vec<_> =
                (0..MESSAGES).filter(|tag| ![2, 5, 7].contains(tag)).map(send).collect();
            rank.complete(&mut rest);
            return;
        }
        let mut list: Vec<_> = (0..MESSAGES).map(|tag| rank.irecv(700, 0, tag).unwrap()).collect();
        let mut places = Vec::new();
        demand(rank);
        while !list.iter().all(Pending::has_ended) {
            let some = rank.wait_some(&mut list).unwrap();
            assert!(!some.is_empty(), "at least one");
            for (place, outcome) in some {
                assert_eq!(outcome.unwrap().tag as usize, place);
                check(list[place].bytes(), place as u64);
                places.push(place);
            }
            if places.len() == 3 {
                places.sort_unstable();
                assert_eq!(places, [2, 5, 7]);
                demand(rank);
            }
        }
        places.sort_unstable();
        assert!(places.into_iter().eq(0..MESSAGES as usize), "each once");
        assert!(rank.wait_some(&mut list).unwrap().is_empty());
    });
}

/// Sends and receives of both directions in one list; outcomes come in the order of the list.
pub fn waiting_for_all(setup: &Setup) {
    setup.run(2, |rank| {
        let other = 1 - rank.me();
        let mut list = Vec::new();
        for (tag, len) in (0..).zip([50_000, 0, 200, 8_193]) {
            list.push(rank.irecv(len, other, tag).unwrap());
            list.push(Pending::empty());
            list.push(rank.isend(payload(tag as u64, len), other, tag).unwrap());
        }
        let statuses = rank.complete(&mut list);
        let tags: Vec<_> = statuses.iter().map(|status| status.tag).collect();
        assert_eq!(tags, [0, 0, 1, 1, 2, 2, 3, 3]);
        assert!(statuses.iter().all(|status| status.source as usize == other));
        for (tag, triple) in list.chunks(3).enumerate() {
            check(triple[0].bytes(), tag as u64);
        }
    });
}

/// Nothing to wait for: the calls return at once.
pub fn lists_of_empty_places(setup: &Setup) {
    setup.run(1, |rank| {
        for places in [0, 1, 5] {
            let mut list: Vec<_> = (0..places).map(|_| Pending::empty()).collect();
            assert!(rank.wait_any(&mut list).unwrap().is_none());
            assert!(rank.wait_some(&mut list).unwrap().is_empty());
            assert!(rank.wait_all(&mut list).unwrap().is_empty());
            assert!(rank.test_any(&mut list).unwrap().is_none());
            assert!(rank.test_some(&mut list).unwrap().is_empty());
            assert!(rank.test_all(&mut list).unwrap().expect("nothing is open").is_empty());
        }
        assert_eq!(rank.test(&mut Pending::empty()).unwrap(), None);
    });
}

/// A request that fails does not keep the others from being waited for.
pub fn one_failure_in_a_list(setup: &Setup) {
    setup.run(2, |rank| {
        if rank.me() == 0 {
            let send = |tag: i32| rank.isend(payload(tag as u64, 20_000), 1, tag).unwrap();
            rank.complete(&mut [0, 1, 2].map(send));
            rank.complete(&mut [0, 1, 2].map(send));
            return;
        }
        let receives = || {
            let capacities = (0..).zip([20_000, 10, 20_000]);
            capacities.map(|(tag, len)| rank.irecv(len, 0, tag).unwrap()).collect::<Vec<_>>()
        };
        let mut list = receives();
        let outcomes = rank.wait_all(&mut list).unwrap();
        assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
        assert!(matches!(outcomes[1], Err(Error::Truncate { capacity: 10, .. })), "{outcomes:?}");
        let mut list = receives();
        let mut failed = Vec::new();
        while let Some((place, outcome)) = rank.wait_any(&mut list).unwrap() {
            failed.extend(outcome.is_err().then_some(place));
        }
        assert_eq!(failed, [1]);
        (0..3).for_each(|place| check(list[place].bytes(), place as u64));
    });
}

/// Sends are completed by the same calls.
pub fn sends_in_lists(setup: &Setup) {
    setup.run(2, |rank| {
        if rank.me() == 1 {
            for tag in (0..4).rev() {
                let mut buffer = vec![0; 30_000];
                rank.recv(&mut buffer, 0, tag).unwrap();
                check(&buffer, tag as u64);
            }
            return;
        }
        let send = |tag: i32| rank.issend(payload(tag as u64, 30_000), 1, tag).unwrap();
        let mut list: Vec<_> = (0..4).map(send).collect();
        let mut ended = 0;
        let (_, outcome) = rank.wait_any(&mut list).unwrap().expect("four are open");
        ended += usize::from(outcome.is_ok());
        ended += rank.wait_some(&mut list).unwrap().len();
        ended += rank.complete(&mut list).len();
        assert_eq!(ended, 4);
        assert!(list.iter().all(Pending::has_ended));
    });
}
