//! Partitioned sends and receives: any numbers of partitions, and what is refused. `borrows.rs` has their buffers.
//!
//! Every job runs under a watchdog.

use std::thread;

use job::job;
use mpj::{Error, ErrorClass, UnreadyPartition};

mod job;

#[test]
fn partitions_of_any_number_meet() {
    // Lengths that 1 to 6 partitions divide.
    for (sent, received) in [(1, 6), (6, 1), (2, 3), (4, 6), (5, 2)] {
        job(2, move |world| {
            let (other, len) = (1 - world.rank(), 60 * 20);
            let mut send = world.psend_init(vec![0; len], sent, other, 3).unwrap();
            let mut receive = world.precv_init(vec![0; len], received, other, 3).unwrap();
            for step in 0..20 {
                receive
                    .scope(|arrivals| {
                        let fill = |partitions: Vec<UnreadyPartition<'_, usize>>| {
                            thread::scope(|scope| {
                                for mut partition in partitions.into_iter().rev() {
                                    scope.spawn(move || {
                                        let start = partition.index() * len / sent;
                                        let numbers = partition.iter_mut().zip(start..);
                                        numbers.for_each(|(number, at)| *number = at + step);
                                        partition.ready().unwrap();
                                    });
                                }
                            });
                        };
                        send.scope(fill).unwrap();
                        for index in 0..received {
                            let part = arrivals.arrived(index).unwrap();
                            let start = index * len / received + step;
                            assert!(part.is_none_or(|part| {
                                part.iter().copied().eq(start..start + part.len())
                            }));
                        }
                    })
                    .unwrap();
                assert!(receive.buffer().unwrap().iter().copied().eq(step..step + len));
            }
        });
    }
}

#[test]
fn partitions_that_do_not_fit_are_refused() {
    job(2, |world| {
        for partitions in [0, 2] {
            let error = world.psend_init(vec![0; 3], partitions, 1, 3).err().expect("3 is odd");
            assert!(matches!(error, Error::Partitions { elements: 3, .. }), "{error}");
        }
        assert!(world.precv_init(vec![0; 3], 3, 2, 3).is_err(), "there is no rank 2");
        // The lengths of both ends differ.
        for (sent, received, class) in [(4, 2, ErrorClass::Truncate), (2, 4, ErrorClass::Count)] {
            if world.rank() == 0 {
                world.psend_init(vec![0; sent], 2, 1, 3).unwrap().scope(|_| {}).unwrap();
            } else {
                let mut receive = world.precv_init(vec![7; received], 2, 0, 3).unwrap();
                let error = receive.scope(|_| {}).unwrap_err();
                assert_eq!(error.class(), class, "{error}");
                assert_eq!(receive.buffer().unwrap(), vec![7; received]);
            }
        }
    });
}
