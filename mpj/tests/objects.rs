//! Messages that are one object of serde: all calls over one to four ranks, and what goes wrong with them.
//!
//! Every job runs under a watchdog.

#![cfg(feature = "serde")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use job::{job, job_with};
use mpj::tuning::Options;
use mpj::{Communicator, Error, ErrorClass, ObjectError};
use serde::{Deserialize, Serialize, Serializer};

mod job;

/// What ranks send to each other in a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Report {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    note: Option<String>,
    values: BTreeMap<u32, Vec<f64>>,
}

/// Makes the report of a rank, longer on higher ones: from a few bytes to many packets.
fn report(rank: usize) -> Report {
    let values = (0..rank as u32).map(|key| (key, vec![f64::from(key) + 0.5; 10_000])).collect();
    Report { name: format!("Größe {rank}"), note: (rank == 1).then(|| "odd".to_owned()), values }
}

/// A value that cannot be serialized where it says so.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Stubborn(bool);

impl Serialize for Stubborn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 {
            return Err(serde::ser::Error::custom("it does not want to"));
        }
        serializer.serialize_newtype_struct("Stubborn", &false)
    }
}

fn object_error<T: std::fmt::Debug>(outcome: Result<T, Error>) -> ObjectError {
    match outcome {
        Err(Error::Object(error)) => error,
        other => panic!("no error about objects: {other:?}"),
    }
}

#[test]
fn objects_travel_from_rank_to_rank() {
    job(3, |world| {
        let (right, left) = ((world.rank() + 1) % 3, (world.rank() + 2) % 3);
        let sent = report(world.rank() + 5);
        if world.rank() == 0 {
            world.send_object(&sent, right, 3).unwrap();
        }
        let (got, status) = world.recv_object::<Report>(mpj::ANY_SOURCE, mpj::ANY_TAG).unwrap();
        assert_eq!((got, status.source, status.tag), (report(left + 5), left, 3));
        if world.rank() > 0 {
            world.send_object(&sent, right, 3).unwrap();
        }
    });
}

/// All collective calls on a communicator, with every root.
fn all_calls(on: &Communicator) {
    let (me, size) = (on.rank(), on.size());
    let all: Vec<_> = (0..size).map(report).collect();
    assert_eq!(on.all_gather_objects(report(me)).unwrap(), all);
    for root in 0..size {
        let is_root = me == root;
        let given = is_root.then(|| report(root + 1));
        assert_eq!(on.broadcast_object(given, root).unwrap(), report(root + 1));
        let gathered = on.gather_objects(report(me), root).unwrap();
        assert_eq!(gathered, is_root.then(|| all.clone()));
        assert_eq!(on.scatter_objects(is_root.then(|| all.clone()), root).unwrap(), report(me));
        let joined = on.reduce_objects(me.to_string(), |a, b| a + &b, root).unwrap();
        assert_eq!(joined.as_deref(), is_root.then_some(&"0123"[..size]));
    }
}

#[test]
fn collective_calls_move_objects_of_different_lengths() {
    for ranks in 1..=4 {
        let options = Options { checks: Some(ranks % 2 == 0), ..Options::default() };
        job_with(&options, ranks, |world| {
            all_calls(world);
            // In the reverse order of ranks.
            all_calls(&world.split(0, -(world.rank() as i32)).unwrap());
        });
    }
}

#[test]
fn bytes_of_another_type_are_refused_with_rank_type_and_cause() {
    job(2, |world| {
        if world.rank() == 0 {
            world.send_object(&report(1), 1, 4).unwrap();
            world.send(&[1_u8, 2, 3], 1, 4).unwrap();
            world.send(&[0_u8; 0], 1, 4).unwrap();
            world.send_object(&5, 1, 4).unwrap();
        } else {
            let error = world.recv_object::<Vec<u8>>(0, 4).unwrap_err();
            let text = error.to_string();
            for part in ["from rank 0 with tag 4", "Vec<u8>", "a map or structure"] {
                assert!(text.contains(part), "{text}");
            }
            assert_eq!(error.class(), ErrorClass::Type);
            let text = world.recv_object::<u8>(0, 4).unwrap_err().to_string();
            assert!(text.contains("2 bytes follow the value"), "{text}");
            let text = world.recv_object::<Report>(0, 4).unwrap_err().to_string();
            assert!(text.contains("object of 0 bytes") && text.contains("Report"), "{text}");
            assert_eq!(world.recv_object::<i64>(0, 4).unwrap().0, 5, "the next one is whole");
        }
        world.barrier().unwrap();
        // In a collective call only the rank that reads them finds out.
        let gathered = match world.rank() {
            0 => world.gather_objects("text".to_owned(), 0).map(drop),
            _ => world.gather_objects(7, 0).map(drop),
        };
        match world.rank() {
            0 => assert!(matches!(
                object_error(gathered),
                ObjectError::Decode { source_rank: 1, tag: None, .. }
            )),
            _ => gathered.unwrap(),
        }
        world.barrier().unwrap();
    });
}

#[test]
fn an_object_that_cannot_be_encoded_leaves_no_rank_waiting() {
    job(3, |world| {
        let told = Arc::new(AtomicUsize::new(0));
        let counted = told.clone();
        world.set_error_handler(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let (me, bad) = (world.rank(), Stubborn(world.rank() == 1));
        let error = world.send_object(&Stubborn(true), 0, 0).unwrap_err().to_string();
        assert!(error.contains("Stubborn") && error.contains("it does not want to"), "{error}");

        let check = |outcome: Result<(), Error>, fails: [bool; 3]| match (fails[me], me) {
            (false, _) => outcome.unwrap(),
            (true, 1) => assert!(matches!(object_error(outcome), ObjectError::Encode { .. })),
            (true, _) => assert_eq!(object_error(outcome), ObjectError::Absent { rank: 1 }),
        };
        check(world.gather_objects(bad.clone(), 2).map(drop), [false, true, true]);
        check(world.all_gather_objects(bad.clone()).map(drop), [true; 3]);
        check(world.reduce_objects(bad.clone(), |a, _| a, 0).map(drop), [true, true, false]);
        check(world.broadcast_object(bad.0.then_some(Stubborn(true)), 1).map(drop), [true; 3]);
        let parts = bad.0.then(|| vec![Stubborn(false), Stubborn(false), Stubborn(true)]);
        check(world.scatter_objects(parts, 1).map(drop), [true; 3]);
        assert_eq!(told.load(Ordering::Relaxed), [5, 6, 5][me]);
        world.barrier().unwrap();
    });
}

#[test]
fn a_root_without_objects_is_told_so_and_the_others_too() {
    job(3, |world| {
        let none = object_error(world.broadcast_object(None::<u8>, 0));
        let scattered = object_error(world.scatter_objects(None::<Vec<u8>>, 0));
        let few =
            object_error(world.scatter_objects((world.rank() == 0).then(|| vec![1_u8; 2]), 0));
        let absent = || ObjectError::Absent { rank: 0 };
        match world.rank() {
            0 => {
                assert_eq!((none, scattered), (ObjectError::None, ObjectError::None));
                assert_eq!(few, ObjectError::Count { objects: 2, ranks: 3 });
            }
            _ => assert_eq!((none, scattered, few), (absent(), absent(), absent())),
        }
        world.barrier().unwrap();
    });
}

#[test]
fn no_object_is_longer_than_the_limit() {
    job(2, |world| {
        let (me, long) = (world.rank(), "x".repeat(1_000_000));
        if me == 0 {
            world.set_object_limit(1_000);
            assert!(matches!(
                object_error(world.send_object(&long, 1, 0)),
                ObjectError::TooLong { limit: 1_000, .. }
            ));
            world.send_object("short", 1, 0).unwrap();
            let refused = object_error(world.recv_object::<String>(1, 0));
            let expected = ObjectError::Refused { source_rank: 1, bytes: 1_000_005, limit: 1_000 };
            assert_eq!(refused, expected);
        } else {
            assert_eq!(world.recv_object::<String>(0, 0).unwrap().0, "short");
            // The sender does not wait for a message that was refused.
            world
                .ssend(
                    &[0x7a_u8, 0, 0x0f, 0x42, 0x40]
                        .into_iter()
                        .chain(long.bytes())
                        .collect::<Vec<_>>(),
                    0,
                    0,
                )
                .unwrap();
        }
        world.barrier().unwrap();
        world.set_object_limit(1_000);
        let outcome = world.broadcast_object((me == 1).then_some(long), 1);
        match me {
            0 => assert_eq!(object_error(outcome), ObjectError::Absent { rank: 1 }),
            _ => assert!(matches!(object_error(outcome), ObjectError::TooLong { .. })),
        }
        world.barrier().unwrap();
    });
}
