//! Attributes, error handlers and grids of communicators.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::attribute::{Key, Value};
use crate::topology::{Cartesian, TopologyError};

/// Notes of callbacks, in their order.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: impl Into<String>) {
        self.0.lock().unwrap().push(note.into());
    }

    /// Takes the notes since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Makes a key whose values are texts, which are copied with a mark.
    fn key(&self) -> Key<Communicator> {
        let (copied, deleted) = (self.clone(), self.clone());
        Key::new(
            move |_, value| {
                copied.add(format!("copy {}", text(value)));
                Ok(Some(Arc::new(format!("{}'", text(value)))))
            },
            move |_, value| {
                deleted.add(format!("delete {}", text(value)));
                Ok(())
            },
        )
    }
}

fn text(value: &Value) -> &str {
    value.downcast_ref::<String>().unwrap()
}

fn value(text: &str) -> Value {
    Arc::new(text.to_owned())
}

#[test]
fn attributes_are_copied_in_order_and_deleted_in_the_opposite_one() {
    run(2, |world| {
        let notes = Notes::default();
        let (one, two) = (notes.key(), notes.key());
        let alone = Key::new(|_, _| Ok(None), |_, _| Ok(()));
        let parent = world.dup().unwrap();
        parent.set_attribute(&one, value("old")).unwrap();
        parent.set_attribute(&two, value("b")).unwrap();
        parent.set_attribute(&one, value("a")).unwrap();
        parent.set_attribute(&alone, value("c")).unwrap();
        assert_eq!(notes.take(), ["delete old"]);
        let twin = parent.dup().unwrap();
        assert_eq!(notes.take(), ["copy b", "copy a"]);
        assert_eq!(twin.attribute(&two).as_ref().map(text), Some("b'"));
        assert!(twin.attribute(&alone).is_none());
        // Changes after the call are not copied.
        let open = twin.idup().unwrap();
        assert_eq!(notes.take(), ["copy b'", "copy a'"]);
        assert!(twin.delete_attribute(&one).unwrap());
        assert!(!twin.delete_attribute(&one).unwrap());
        let third = open.wait().unwrap();
        assert_eq!(third.attribute(&one).as_ref().map(text), Some("a''"));
        assert_eq!(notes.take(), ["delete a'"]);
        // Dropped keys stay alive with their attributes.
        drop((one, two, alone));
        drop(third);
        assert_eq!(notes.take(), ["delete a''", "delete b''"]);
        let copy = twin.clone();
        drop(twin);
        assert!(notes.take().is_empty(), "a handle is left");
        drop(copy);
        drop(parent);
        assert_eq!(notes.take(), ["delete b'", "delete a", "delete b"]);
    });
}

#[test]
fn callbacks_may_call_mpi_and_keep_the_communicator() {
    run_with_ids(2, 4, |world| {
        let kept = Arc::new(Mutex::new(None));
        let place = kept.clone();
        let other = Key::new(|_, value| Ok(Some(value.clone())), |_, _| Ok(()));
        let (on_copy, on_delete) = (other.clone(), other.clone());
        let key = Key::new(
            move |old, value| {
                assert_eq!(sum(old, 1), 2);
                old.set_attribute(&on_copy, value.clone())?;
                Ok(Some(value.clone()))
            },
            move |old, value| {
                assert_eq!(sum(old, 1), 2);
                old.set_attribute(&on_delete, value.clone())?;
                *place.lock().unwrap() = Some(old.clone());
                Ok(())
            },
        );
        let one = world.dup().unwrap();
        one.set_attribute(&key, value("v")).unwrap();
        let twin = one.dup().unwrap();
        assert!(one.attribute(&other).is_some());
        assert!(twin.attribute(&other).is_none(), "what a callback attaches comes too late");
        let context = twin.context();
        drop(twin);
        let again: Communicator = kept.lock().unwrap().take().unwrap();
        assert_eq!((again.context(), sum(&again, 3)), (context, 6));
        drop(again);
        // Both ids are in use, and become free once the communicators are gone.
        assert_eq!(world.dup().unwrap().context(), context);
        drop(one);
        kept.lock().unwrap().take();
    });
}

#[test]
fn a_copy_that_fails_is_an_error_and_deletes_what_was_copied() {
    run_with_ids(2, 4, |world| {
        let notes = Notes::default();
        let failing = world.rank() == 1;
        let refusing = Key::new(
            move |_, value| if failing { Err("no copy".into()) } else { Ok(Some(value.clone())) },
            |_, _| Ok(()),
        );
        let one = world.dup().unwrap();
        one.set_attribute(&notes.key(), value("a")).unwrap();
        one.set_attribute(&refusing, value("b")).unwrap();
        let duplicate = |which| if which { one.dup() } else { one.idup()?.wait() };
        for which in [true, false] {
            match duplicate(which) {
                Ok(twin) => assert!(!failing && twin.attribute(&refusing).is_some()),
                Err(error) => {
                    assert!(failing && error.class() == ErrorClass::Other);
                    let said = "the copy callback of an attribute failed: no copy";
                    assert_eq!(error.to_string(), said);
                }
            }
            assert_eq!(notes.take(), ["copy a", "delete a'"]);
        }
        one.delete_attribute(&refusing).unwrap();
        assert_eq!(sum(&one.dup().unwrap(), 1), 2, "no id is lost");
    });
}

#[test]
fn values_copied_for_a_duplicate_that_there_never_is_are_deleted() {
    run_with_ids(2, 3, |world| {
        let notes = Notes::default();
        let one = world.dup().unwrap();
        one.set_attribute(&notes.key(), value("a")).unwrap();
        assert!(matches!(one.dup(), Err(Error::Contexts { .. })));
        assert_eq!(notes.take(), ["copy a", "delete a'"]);
    });
}

#[test]
fn a_value_whose_delete_callback_fails_stays() {
    run(1, |world| {
        let notes = Notes::default();
        let is_stuck = Arc::new(AtomicUsize::new(1));
        let stuck = is_stuck.clone();
        let key = Key::new(
            |_, _| Ok(None),
            move |_, _| match stuck.load(Ordering::Relaxed) {
                0 => Ok(()),
                _ => Err("in use".into()),
            },
        );
        let one = world.dup().unwrap();
        one.set_attribute(&notes.key(), value("first")).unwrap();
        one.set_attribute(&key, value("stuck")).unwrap();
        one.set_attribute(&notes.key(), value("last")).unwrap();
        let refused = one.set_attribute(&key, value("new")).unwrap_err();
        assert_eq!(refused.to_string(), "the delete callback of an attribute failed: in use");
        assert!(one.delete_attributes().is_err());
        assert_eq!(notes.take(), ["delete last"]);
        assert_eq!(one.attribute(&key).as_ref().map(text), Some("stuck"));
        is_stuck.store(0, Ordering::Relaxed);
        one.delete_attributes().unwrap();
        assert_eq!(notes.take(), ["delete first"]);
        // The handler gets errors that no call can return.
        is_stuck.store(1, Ordering::Relaxed);
        one.set_attribute(&key, value("stuck")).unwrap();
        let told = notes.clone();
        let tell = move |on: &Communicator, error: &Error| {
            told.add(format!("{} of {}: {error}", on.rank(), on.size()));
        };
        one.set_handler(ErrorHandler::User(Arc::new(tell)));
        drop(one);
        assert_eq!(notes.take(), ["0 of 1: the delete callback of an attribute failed: in use"]);
    });
}

#[test]
fn a_delete_callback_that_panics_keeps_no_other_from_being_deleted() {
    run(1, |world| {
        let notes = Notes::default();
        let panics = Key::new(|_, _| Ok(None), |_, _| panic!("on purpose"));
        let one = world.dup().unwrap();
        one.set_attribute(&notes.key(), value("a")).unwrap();
        one.set_attribute(&panics, value("b")).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(one))).is_err());
        assert_eq!(notes.take(), ["delete a"]);
        assert_eq!(sum(&world.dup().unwrap(), 1), 1);
    });
}

#[test]
fn threads_that_attach_at_the_same_time_delete_each_value_once() {
    run(1, |world| {
        let notes = Notes::default();
        let key = notes.key();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        world.set_attribute(&key, value("v")).unwrap();
                    }
                });
            }
        });
        assert_eq!(notes.take().len(), 199);
        world.delete_attributes().unwrap();
        assert_eq!(notes.take().len(), 1);
    });
}

#[test]
fn error_handlers_are_inherited_and_called() {
    run(2, |world| {
        assert!(matches!(world.handler(), ErrorHandler::Return));
        let one = world.dup().unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        // The function may call MPI, and may set another handler.
        let count = move |on: &Communicator, error: &Error| {
            assert_eq!(error.class(), ErrorClass::Group);
            assert_eq!(sum(on, 1), u64::from(on.size()));
            on.set_handler(ErrorHandler::Fatal);
            counted.fetch_add(1, Ordering::Relaxed);
        };
        one.set_handler(ErrorHandler::User(Arc::new(count)));
        let key = SplitKey { color: Some(world.rank()), key: 0 };
        let grid = Cartesian::new(&[2], &[false]).unwrap();
        let made = [
            one.dup().unwrap(),
            one.idup().unwrap().wait().unwrap(),
            one.split(key).unwrap().unwrap(),
            one.create(one.group()).unwrap().unwrap(),
            one.create_group(one.group(), 1).unwrap(),
            one.create_cartesian(grid, true).unwrap().unwrap(),
        ];
        for (number, child) in (1..).zip(&made) {
            let before = child.handle(&Error::Overlap { rank: 0 });
            assert!(matches!(before, ErrorHandler::User(_)), "{before:?}");
            assert_eq!(calls.load(Ordering::Relaxed), number);
            assert!(matches!(child.handler(), ErrorHandler::Fatal));
        }
        assert!(matches!(one.handler(), ErrorHandler::User(_)));
        assert!(matches!(world.handler(), ErrorHandler::Return));
    });
}

#[test]
fn ranks_are_arranged_in_grids() {
    run(5, |world| {
        let grid = Cartesian::new(&[2, 2], &[false, true]).unwrap();
        let placed = world.create_cartesian(grid.clone(), true).unwrap();
        assert_eq!(placed.is_some(), world.rank() < 4);
        if let Some(placed) = placed {
            assert_eq!(placed.dup().unwrap().grid(), Some(&grid));
            assert!(placed.split_by_host(0).unwrap().unwrap().grid().is_none());
            let row = placed.cartesian_sub(&[false, true]).unwrap();
            assert_eq!(row.grid().unwrap().periods(), [true]);
            assert_eq!(sum(&row, world.rank().into()), u64::from(world.rank() / 2) * 4 + 1);
        }
        let point = Cartesian::new(&[], &[]).unwrap();
        assert_eq!(world.create_cartesian(point, true).unwrap().is_some(), world.rank() == 0);
        let large = Cartesian::new(&[3, 2], &[false; 2]).unwrap();
        let refused = world.create_cartesian(large, true).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Dims);
        assert!(matches!(refused, Error::Topology(TopologyError::Ranks { nodes: 6, ranks: 5 })));
        assert_eq!(world.cartesian_sub(&[]).unwrap_err().class(), ErrorClass::Topology);
        assert_eq!(sum(world, 1), 5);
    });
}

#[test]
fn groups_that_overlap_are_refused_where_they_differ() {
    run(4, |world| {
        // Ranks 0 and 1 give the same group; 2 and 3 do not agree.
        let given: &[u32] = [&[0, 1][..], &[0, 1], &[2, 3], &[3]][world.rank() as usize];
        let outcome = world.create(&Group::of_ranks(given.iter().copied()).unwrap());
        if world.rank() == 2 {
            let refused = outcome.unwrap_err();
            assert!(matches!(refused, Error::GroupsDiffer { rank: 3 }), "{refused}");
            assert_eq!(refused.class(), ErrorClass::Group);
        } else {
            assert_eq!(sum(&outcome.unwrap().unwrap(), 1), given.len() as u64);
        }
        assert_eq!(sum(world, 1), 4);
    });
}
