//! Non-blocking calls that borrow their buffer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use mpj::{Error, ErrorClass, World};

use crate::job::job;

#[test]
fn everything_is_complete_when_the_scope_ends() {
    job(2, |world| {
        let other = 1 - world.rank();
        for len in [0, 8, 9_000, 400_000] {
            let data = vec![world.rank() as i32; len];
            let (mut first, mut second) = (vec![-1; len], vec![-1; len]);
            world
                .scope(|scope| {
                    scope.irecv(&mut first, other, 0).unwrap();
                    scope.irecv(&mut second, other, 0).unwrap();
                    scope.isend(&data, other, 0).unwrap();
                    scope.issend(&data, other, 0).unwrap();
                    Ok(())
                })
                .unwrap();
            assert_eq!((first, second), (vec![other as i32; len], vec![other as i32; len]));
        }
    });
}

/// Parts of one vector, as halos are exchanged.
#[test]
fn parts_of_one_buffer() {
    job(2, |world| {
        let other = 1 - world.rank();
        let mut row = vec![world.rank() as f64; 1_002];
        let (inner, halo) = row.split_at_mut(1_000);
        world
            .scope(|scope| {
                scope.irecv(&mut halo[1..], other, 0).unwrap();
                scope.isend(&inner[..1], other, 0).unwrap();
                Ok(())
            })
            .unwrap();
        assert_eq!(row[1_001], other as f64);
        assert_eq!(row[1_000], world.rank() as f64);
    });
}

#[test]
fn waiting_inside_gives_the_borrow_back() {
    job(2, |world| {
        let other = 1 - world.rank();
        let (data, mut got) = ([world.rank() as u8 + 10; 3], [0; 3]);
        let sum = world.scope(|scope| {
            let receive = scope.irecv(&mut got, other, 0).unwrap();
            let send = scope.isend(&data, other, 0).unwrap();
            let (got, status) = receive.wait().unwrap();
            assert_eq!((status.source, status.count::<u8>().unwrap()), (other, 3));
            got[0] += 100;
            let (sent, _) = send.wait().unwrap();
            Ok(u32::from(got[0]) + u32::from(sent[0]))
        });
        assert_eq!(got[0], other as u8 + 110, "written through the borrow that came back");
        assert_eq!(sum.unwrap(), [10 + 111, 11 + 110][world.rank()]);
    });
}

#[test]
fn a_failure_that_nobody_waited_for_is_the_answer() {
    job(2, |world| {
        if world.rank() == 0 {
            world.send(&[1u8; 9], 1, 0).unwrap();
            world.send(&[2u8; 4], 1, 1).unwrap();
            return world.barrier().unwrap();
        }
        let (mut short, mut right) = ([0u8; 4], [0u8; 4]);
        let outcome = world.scope(|scope| {
            scope.irecv(&mut short, 0, 0).unwrap();
            scope.irecv(&mut right, 0, 1).unwrap();
            Ok(())
        });
        assert_eq!(outcome.unwrap_err().class(), ErrorClass::Truncate);
        assert_eq!((short, right), ([1; 4], [2; 4]), "both are complete");
        // A rank whose last call has failed would leave at once, also while the other one still sends.
        world.barrier().unwrap();
    });
}

/// A body without an outcome of its own; a message that is too long is the scope's error all the same.
#[test]
fn a_body_that_returns_nothing() {
    job(1, |world| {
        for (sent, is_right) in [(&[1u8; 4][..], true), (&[1u8; 5], false)] {
            let mut got = [0u8; 4];
            let outcome = world.scope(|scope| {
                scope.irecv(&mut got, 0, 0).unwrap();
                scope.isend(sent, 0, 0).unwrap();
            });
            assert_eq!((outcome.is_ok(), got), (is_right, [1; 4]));
        }
    });
}

#[test]
fn scopes_inside_scopes() {
    job(1, |world| {
        let (data, mut outer, mut inner) = ([5u8; 10], [0u8; 10], [0u8; 10]);
        world
            .scope(|one| {
                one.irecv(&mut outer, 0, 1).unwrap();
                world
                    .scope(|two| {
                        two.irecv(&mut inner, 0, 2).unwrap();
                        two.isend(&data, 0, 2).unwrap();
                        Ok(())
                    })
                    .unwrap();
                one.isend(&data, 0, 1).unwrap();
                Ok(())
            })
            .unwrap();
        assert_eq!((outer, inner), (data, data));
    });
}

/// Panics in a scope after `start` has started something; the panic is caught.
fn panic_in_scope(world: &World, start: impl FnOnce(&World)) {
    let caught = catch_unwind(AssertUnwindSafe(|| start(world)));
    assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "in the scope");
}

/// Posted receives are cancelled, so the panic ends only the scope.
#[test]
fn a_panic_with_nothing_but_posted_receives() {
    job(2, |world| {
        let (other, mut buffer) = (1 - world.rank(), [0u8; 64]);
        panic_in_scope(world, |world| {
            world
                .scope(|scope| -> Result<(), Error> {
                    scope.irecv(&mut buffer, other, 0).unwrap();
                    panic!("in the scope");
                })
                .unwrap();
        });
        world.barrier().unwrap();
        world.send(&[9u8; 64], other, 0).unwrap();
        let (data, _) = world.recv_vec::<u8>(other, 0).unwrap();
        assert_eq!(data, [9; 64]);
        assert_eq!(buffer, [0; 64], "the cancelled receive took nothing");
    });
}

/// A send that nobody receives cannot be taken back: the rank's device fails, and the others learn
/// that it is gone instead of waiting for it.
#[test]
fn a_panic_with_an_open_send() {
    job(3, |world| {
        if world.rank() == 0 {
            let data = vec![1u8; 5_000];
            panic_in_scope(world, |world| {
                world
                    .scope(|scope| -> Result<(), Error> {
                        scope.issend(&data, 1, 0).unwrap();
                        panic!("in the scope");
                    })
                    .unwrap();
            });
            drop(data);
            let error = world.send(&[1u8], 1, 0).unwrap_err();
            assert!(matches!(error, Error::Device(mpjdev::Error::Finished)), "{error}");
            return;
        }
        // One rank waits for a message of the failed one, the other for the end of all.
        let outcome = match world.rank() {
            1 => world.recv(&mut [0u8; 8], 0, 5).map(drop),
            _ => world.barrier(),
        };
        assert_eq!(outcome.unwrap_err().class(), ErrorClass::ProcFailed);
    });
}
