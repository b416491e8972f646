//! Buffers while an operation uses them, in small jobs that Miri can follow.
//!
//! In all tests the receive is posted, and its request moved, before the message is sent. So the buffer is written
//! while the program has the request. Every job runs under a watchdog.

use mpj::tuning::{BackendChoice, Options, WaitMode};
use mpj::{Error, Request, World, collective};

mod job;

/// Numbers of elements in a message: one packet, in registers or not, and without Miri also several packets.
const LENGTHS: &[usize] = if cfg!(miri) { &[3] } else { &[3, 700, 20_000] };

/// The tag of the messages under test, and that of messages which announce that a receive is posted.
const DATA: i32 = 1;
const POSTED: i32 = 2;

/// Runs `body` on two ranks with each protocol and each length.
fn jobs(body: fn(&World, usize)) {
    for backend in [BackendChoice::Eager, BackendChoice::Rendezvous] {
        for &len in LENGTHS {
            // Sleeping threads need system calls that Miri does not have.
            let options = Options { wait: WaitMode::Spin, ..Options::with_backend(backend) };
            let outcome = job::try_job(&options, 2, move |world| body(&world, len));
            outcome.unwrap_or_else(|error| panic!("{backend:?}, {len} elements: {error}"));
        }
    }
}

/// Returns the data that rank 0 sends.
fn data(len: usize) -> Vec<u32> {
    (1..).take(len).collect()
}

/// On rank 0: sends as soon as rank 1 has posted its receive.
fn send_when_posted(world: &World, len: usize) {
    world.recv(&mut [0u8], 1, POSTED).unwrap();
    world.send(&data(len), 1, DATA).unwrap();
}

/// On rank 1: announces that its receive is posted.
fn say_posted(world: &World) {
    world.send(&[1u8], 0, POSTED).unwrap();
}

/// Moves a value to another address, as any call may do.
#[inline(never)]
fn moved<T>(value: T) -> Box<T> {
    Box::new(value)
}

#[test]
fn a_scoped_receive_gives_its_borrow_back() {
    jobs(|world, len| {
        if world.rank() == 0 {
            return send_when_posted(world, len);
        }
        let mut buffer = vec![0; len];
        let lent = world.scope(|scope| {
            let request = moved(scope.irecv(&mut buffer, 0, DATA).unwrap());
            say_posted(world);
            let (lent, status) = request.wait().unwrap();
            assert_eq!(status.count::<u32>().unwrap(), len);
            assert_eq!(lent, data(len));
            lent[0] = 77;
            Ok::<_, Error>(lent)
        });
        lent.unwrap()[1] = 78;
        assert_eq!(buffer[..3], [77, 78, 3]);
    });
}

#[test]
fn a_scope_completes_what_nobody_waits_for() {
    jobs(|world, len| {
        if world.rank() == 0 {
            return send_when_posted(world, len);
        }
        let mut buffer = vec![0; len];
        world
            .scope(|scope| {
                let _request = moved(scope.irecv(&mut buffer, 0, DATA).unwrap());
                say_posted(world);
                Ok::<_, Error>(())
            })
            .unwrap();
        assert_eq!(buffer, data(len));
    });
}

#[test]
fn parts_of_one_buffer_are_sent_and_received_at_once() {
    jobs(|world, len| {
        let other = 1 - world.rank();
        let mut row = data(2 * len);
        let (mine, theirs) = row.split_at_mut(len);
        let swapped = world.scope(|scope| {
            let receive = moved(scope.irecv(theirs, other, DATA).unwrap());
            let send = moved(scope.isend(mine, other, DATA).unwrap());
            let again = scope.issend(mine, other, POSTED).unwrap();
            let extra = world.recv_vec::<u32>(other, POSTED).unwrap();
            again.wait().unwrap();
            Ok::<_, Error>((receive.wait().unwrap().0, send.wait().unwrap().0, extra.0))
        });
        let (received, sent, extra) = swapped.unwrap();
        assert_eq!((&*received, sent, &*extra), (&*data(len), &*data(len), &*data(len)));
    });
}

#[test]
fn an_owning_receive_gives_its_buffer_back() {
    jobs(|world, len| {
        if world.rank() == 0 {
            send_when_posted(world, len);
            return send_when_posted(world, len);
        }
        let request = moved(world.irecv(vec![0u32; len], 0, DATA).unwrap());
        say_posted(world);
        let (mut buffer, _) = request.wait().unwrap();
        assert_eq!(buffer, data(len));
        buffer.fill(0);

        let mut request = moved(world.irecv(buffer, 0, DATA).unwrap());
        say_posted(world);
        let buffer = loop {
            if let Some((buffer, _)) = request.test().unwrap() {
                break buffer;
            }
        };
        assert_eq!(buffer, data(len));
    });
}

#[test]
fn lists_of_owning_requests() {
    jobs(|world, len| {
        let other = 1 - world.rank();
        let mut requests: Vec<Request<u32>> = Vec::new();
        for _ in 0..2 {
            requests.push(world.irecv(vec![0; len], other, DATA).unwrap());
        }
        let mut sends = [(); 2].map(|()| world.isend(data(len), other, DATA).unwrap());
        while let Some(place) = mpj::wait_any(&mut requests).unwrap() {
            assert_eq!(requests.remove(place).wait().unwrap().0, data(len));
        }
        mpj::wait_all(&mut sends).unwrap();
        for send in sends {
            assert_eq!(send.wait().unwrap().0, data(len));
        }
    });
}

#[test]
fn lists_of_requests_of_a_scope() {
    jobs(|world, len| {
        let (other, sent) = (1 - world.rank(), data(len));
        let mut got = [vec![0; len], vec![0; len]];
        let [first, second] = &mut got;
        world
            .scope(|scope| {
                let mut receives = Vec::new();
                receives.push(moved(scope.irecv(first, other, DATA)?));
                receives.push(moved(scope.irecv(second, other, DATA)?));
                scope.isend(&sent, other, DATA)?;
                scope.isend(&sent, other, DATA)?;
                while let Some(place) = mpj::wait_any(receives.iter_mut().map(|one| &mut **one))? {
                    receives.remove(place).wait()?.0[0] += 70;
                }
                Ok(())
            })
            .unwrap();
        assert!(got.iter().all(|got| (got[0], &got[1..]) == (sent[0] + 70, &sent[1..])));
    });
}

#[test]
fn the_buffer_of_a_dropped_request_lasts_as_long_as_its_operation() {
    jobs(|world, len| {
        if world.rank() == 0 {
            drop(moved(world.isend(data(len), 1, DATA).unwrap()));
            world.send(&[1u8], 1, POSTED).unwrap();
            return;
        }
        drop(moved(world.irecv(vec![0u32; len], 0, DATA + 5).unwrap()));
        world.recv(&mut [0u8], 0, POSTED).unwrap();
        assert_eq!(world.recv_vec::<u32>(0, DATA).unwrap().0, data(len));
    });
}

#[test]
fn blocking_calls_borrow_for_their_own_length() {
    jobs(|world, len| {
        let other = 1 - world.rank();
        let mut buffer = vec![0; len];
        world.sendrecv(&data(len), other, DATA, &mut buffer, other, DATA).unwrap();
        assert_eq!(buffer, data(len));
        world.barrier().unwrap();
        if world.rank() == 0 {
            world.ssend(&buffer, 1, DATA).unwrap();
        } else {
            buffer.fill(0);
            world.recv(&mut buffer, 0, DATA).unwrap();
            assert_eq!(buffer, data(len));
        }
    });
}

#[test]
fn ghost_cells_are_received_while_the_cells_beside_them_are_sent() {
    jobs(|world, len| {
        let (me, other) = (world.rank() as u32, 1 - world.rank());
        // Three rows of cells in a ring of two ranks, without neighbours along the other axis.
        let (rows, columns) = (5, len + 2);
        let mut field = vec![me; rows * columns];
        let views = world.scope(|scope| {
            let parts = mpj::split_halo_mut(&mut field, [rows, columns], 1)?;
            let vertical = parts.into_iter().filter(|part| part.is_face() && part.offset[1] == 0);
            let mut receives = Vec::new();
            for part in vertical {
                let (sent, received) = (part.send_tag(), part.recv_tag());
                receives.push(moved(scope.irecv_view(part.ghost, other, received)?));
                scope.isend_view(part.border, other, sent)?;
            }
            receives.into_iter().map(|receive| receive.wait()).collect::<Result<Vec<_>, _>>()
        });
        assert_eq!(views.unwrap().len(), 2);
        let row = |kind: u32| [&[me], &vec![kind; len][..], &[me]].concat();
        let rows = [row(other as u32), row(me), row(me), row(me), row(other as u32)];
        assert_eq!(field, rows.concat());
    });
}

/// A structure whose padding is not initialised.
#[derive(Debug, Clone, Copy, PartialEq, mpj::Datatype)]
#[repr(C)]
struct Padded {
    kind: u8,
    number: u32,
}

#[test]
fn what_does_not_lie_together_is_borrowed_likewise() {
    jobs(|world, len| {
        let rows: Vec<_> =
            (0..len as u32).flat_map(|n| [Padded { kind: 1, number: n }; 2]).collect();
        if world.rank() == 0 {
            world.recv(&mut [0u8], 1, POSTED).unwrap();
            for _ in 0..2 {
                world.send(&mpj::column(&rows, 2, 0).unwrap(), 1, DATA).unwrap();
            }
            return world.isend(rows, 1, DATA).unwrap().wait().map(drop).unwrap();
        }
        let mut got = vec![Padded { kind: 0, number: 0 }; 2 * len];
        let mut column = mpj::column_mut(&mut got, 2, 1).unwrap();
        let scoped = world.scope(|scope| {
            let request = moved(scope.irecv(&mut column, 0, DATA).unwrap());
            say_posted(world);
            Ok::<_, Error>(request.wait().unwrap().0.len())
        });
        assert_eq!(scoped.unwrap(), len);
        world.recv(&mut mpj::column_mut(&mut got, 2, 0).unwrap(), 0, DATA).unwrap();
        assert_eq!(got, rows);
        assert_eq!(world.recv_vec::<Padded>(0, DATA).unwrap().0, rows);
    });
}

#[test]
fn ranges_of_a_slice_are_borrowed_while_others_are_used() {
    jobs(|world, len| {
        let numbers = data(2 * len);
        if world.rank() == 0 {
            world.recv(&mut [0u8], 1, POSTED).unwrap();
            let ranges = [len..2 * len, 0..len];
            return world.send(&mpj::Indexed::new(&numbers, ranges).unwrap(), 1, DATA).unwrap();
        }
        let mut got = vec![0; 2 * len + 1];
        let into = moved(mpj::IndexedMut::new(&mut got, [len + 1..2 * len + 1, 0..len]).unwrap());
        let lent = world.scope(|scope| {
            let request = moved(scope.irecv_view(*into, 0, DATA).unwrap());
            say_posted(world);
            Ok::<_, Error>(request.wait().unwrap().0.len())
        });
        assert_eq!(lent.unwrap(), 2 * len);
        assert_eq!((&got[..len], got[len], &got[len + 1..]), (&numbers[..len], 0, &numbers[len..]));
    });
}

#[test]
fn a_scoped_collective_gives_its_borrow_back() {
    jobs(|world, len| {
        let (mine, mut all) = (data(len), vec![0; 2 * len]);
        let mut sums = data(len);
        world
            .scope(|scope| {
                let gather = moved(scope.start(collective::all_gather(&mine, &mut all))?);
                let sum = moved(scope.start(collective::all_reduce(&mut sums, mpj::Op::Sum))?);
                scope.start(collective::barrier())?;
                gather.wait()?.0[0] = 77;
                sum.wait()?.0[0] += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!((all[0], &all[1..len], &all[len..]), (77, &mine[1..], &*mine));
        assert_eq!((sums[0], sums[2]), (3, 6));
    });
}

#[test]
fn a_kept_receive_lends_its_buffer_between_starts() {
    jobs(|world, len| {
        if world.rank() == 0 {
            let mut send = world.send_init(data(len), 1, DATA).unwrap();
            for _ in 0..2 {
                world.recv(&mut [0u8], 1, POSTED).unwrap();
                send.start().unwrap();
                send.wait().unwrap();
                send.buffer_mut().unwrap()[0] += 1;
            }
            return;
        }
        let mut receive = moved(world.recv_init(vec![0u32; len], 0, DATA).unwrap());
        for first in 1..3 {
            receive.start().unwrap();
            assert!(receive.buffer_mut().is_err());
            receive = moved(*receive);
            say_posted(world);
            assert_eq!(receive.wait().unwrap().unwrap().bytes, 4 * len);
            assert_eq!(receive.buffer().unwrap()[..2], [first, 2]);
            receive.buffer_mut().unwrap().fill(0);
        }
        receive.start().unwrap();
    });
}

#[test]
fn columns_of_one_matrix_are_received_into_at_once() {
    jobs(|world, len| {
        let other = 1 - world.rank();
        let mut matrix: Vec<_> = data(3 * len).iter().map(|n| n + 100 * other as u32).collect();
        let mut bands = mpj::split_columns_mut(&mut matrix, 3, [1, 1, 1]).unwrap();
        let [left, middle, right] = &mut bands[..] else { unreachable!("three bands") };
        world
            .scope(|scope| {
                let on_the_left = moved(scope.irecv(left, other, DATA)?);
                scope.irecv(right, other, POSTED)?;
                let sent = moved(scope.isend(middle, other, DATA)?);
                scope.isend(middle, other, POSTED)?;
                assert_eq!(on_the_left.wait()?.0.len(), len);
                sent.wait().map(drop)
            })
            .unwrap();
        for (row, old) in matrix.chunks_exact(3).zip(data(3 * len).chunks_exact(3)) {
            let (theirs, mine) = (old[1] + 100 * world.rank() as u32, old[1] + 100 * other as u32);
            assert_eq!(row, [theirs, mine, theirs]);
        }
    });
}

#[test]
fn an_exchange_of_columns_lends_all_of_them() {
    jobs(|world, len| {
        let (rank, rows) = (world.rank() as u32, [data(len), data(len)]);
        let (mut matrix, mut again) = (vec![0; 2 * len], vec![0; 2 * len]);
        let mut columns = mpj::split_columns_mut(&mut matrix, 2, [1, 1]).unwrap();
        world.all_to_allw(&rows, &mut columns).unwrap();
        let mut columns = mpj::split_columns_mut(&mut again, 2, [1, 1]).unwrap();
        world
            .scope(|scope| {
                let exchange = moved(scope.start(collective::all_to_allw(&rows, &mut columns))?);
                scope.start(collective::barrier())?;
                assert_eq!(exchange.wait()?.0.len(), 2);
                Ok(())
            })
            .unwrap();
        let both: Vec<_> = data(len).into_iter().flat_map(|n| [n; 2]).collect();
        assert_eq!((&matrix, &again), (&both, &both), "rank {rank}");
    });
}

#[test]
fn a_kept_exchange_lends_its_memory_between_starts() {
    jobs(|world, len| {
        let kept = world.persistent(collective::all_to_allw_owned(
            vec![0; 2 * len],
            |matrix| (0..2).map(|column| mpj::column(matrix, 2, column)).collect(),
            vec![0; 2 * len],
            |matrix| mpj::split_columns_mut(matrix, 2, [1, 1]),
        ));
        let mut kept = moved(kept.unwrap());
        let mine = data(2 * len);
        for step in 1..3 {
            kept.data_mut().unwrap().copy_from_slice(&mine);
            kept.data_mut().unwrap()[0] = step;
            kept.start().unwrap();
            assert!(kept.buffer_mut().is_err());
            kept = moved(*kept);
            kept.wait().unwrap();
            let first = [step, 2][world.rank()];
            assert_eq!(kept.buffer().unwrap()[..2], [first; 2]);
            kept.buffer_mut().unwrap().fill(0);
        }
        let owning = world.start(collective::all_to_allw_owned(
            mine,
            |matrix| (0..2).map(|column| mpj::column(matrix, 2, column)).collect(),
            vec![0; 2 * len],
            |matrix| mpj::split_columns_mut(matrix, 2, [1, 1]),
        ));
        let owning = moved(owning.unwrap());
        assert_eq!(owning.wait().unwrap().0[..2], [1 + world.rank() as u32; 2]);
        kept.start().unwrap();
    });
}

#[test]
fn a_scope_lends_to_calls_between_two_groups() {
    jobs(|world, len| {
        let (own, leader) = (world.self_comm().unwrap(), 1 - world.rank());
        let other = mpj::RemoteLeader { peers: world, leader, tag: 0 };
        let between = own.create_inter(0, Some(other)).unwrap();
        let mine: Vec<_> = data(len).iter().map(|n| n + world.rank() as u32).collect();
        let (mut theirs, mut sums) = (vec![0; len], vec![0; len]);
        world
            .scope(|scope| {
                let gather = moved(
                    scope.between(&between).start(collective::all_gather(&mine, &mut theirs))?,
                );
                scope.between(&between).start(collective::all_reduce_into(
                    &mine,
                    &mut sums,
                    mpj::Op::Sum,
                ))?;
                scope.between(&between).start(collective::barrier())?;
                gather.wait()?.0[0] += 70;
                Ok(())
            })
            .unwrap();
        let first = 1 + leader as u32;
        assert_eq!(
            (theirs[0], theirs[1], &sums[..2]),
            (first + 70, first + 1, &[first, first + 1][..])
        );
    });
}

#[test]
fn partitions_belong_to_the_program_until_they_are_ready() {
    jobs(|world, len| {
        if world.rank() == 0 {
            let mut send = world.psend_init(vec![0; 3 * len], 3, 1, DATA).unwrap();
            for step in 1..3 {
                let body = |mut partitions: Vec<mpj::UnreadyPartition<'_, u32>>| {
                    let mut last = moved(partitions.pop().unwrap());
                    last.fill(10 * step);
                    last.ready().unwrap();
                    // Of these, one is marked by the scope.
                    partitions.iter_mut().for_each(|partition| partition.fill(step));
                    partitions.pop().unwrap().ready().unwrap();
                };
                send.scope(body).unwrap();
            }
            assert_eq!(send.buffer().unwrap()[3 * len - 1], 20);
        } else {
            let mut receive = world.precv_init(vec![0; 3 * len], 3, 0, DATA).unwrap();
            for step in 1..3 {
                let whole = receive.scope(|arrivals| {
                    let last = std::iter::repeat_with(|| arrivals.arrived(2).unwrap());
                    let last = last.flatten().next().expect("it arrives");
                    last.iter().all(|number| *number == 10 * step)
                });
                assert!(whole.unwrap());
                assert_eq!(receive.buffer().unwrap()[..2 * len], vec![step; 2 * len]);
            }
        }
    });
}

#[test]
fn a_panic_leaves_partitions_to_the_next_scope() {
    jobs(|world, len| {
        let other = 1 - world.rank();
        if world.rank() == 0 {
            let mut send = world.psend_init(vec![7; 2 * len], 2, other, DATA).unwrap();
            let panic =
                || send.scope(|_| -> () { std::panic::resume_unwind(Box::new("on purpose")) });
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panic)).is_err());
            assert!(matches!(send.buffer(), Err(Error::UnderWay)));
            send.scope(|mut partitions| partitions[1].fill(8)).unwrap();
        } else {
            let mut receive = world.precv_init(vec![0; 2 * len], 1, other, DATA).unwrap();
            for last in [7, 8] {
                receive.scope(|_| {}).unwrap();
                assert_eq!(receive.buffer().unwrap()[2 * len - 1], last);
            }
            let abandoned =
                || receive.scope(|_| -> () { std::panic::resume_unwind(Box::new("on purpose")) });
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(abandoned)).is_err());
            // Nothing comes any more, so the buffer is left to the device until its end.
            drop(receive);
        }
    });
}

#[test]
fn elements_of_windows_are_borrowed_while_nobody_else_has_them() {
    jobs(|world, len| {
        let other = 1 - world.rank();
        let mut window = world.allocate_window::<u32>(2 * len).unwrap();
        let mut local = moved(window.local().unwrap());
        local[..len].copy_from_slice(&data(len));
        let (first, second) = local.split_at_mut(len);
        second.copy_from_slice(first);
        drop(local);
        let (zeros, mut got) = (vec![0; len], vec![9; 2 * len]);
        let (first, second) = got.split_at_mut(len);
        window
            .fence(|epoch| {
                epoch.put(&zeros, other, 0)?;
                epoch.scope(|scope| {
                    scope.get(first, other, 0)?;
                    scope.get(second, other, len)
                })
            })
            .unwrap();
        assert_eq!((first, second), (&mut zeros.clone()[..], &mut data(len)[..]));
        window
            .lock_exclusive(other, |epoch| {
                epoch.accumulate(&[5], other, 0, mpj::Op::Sum)?;
                epoch.swap(6, other, 2 * len - 1)
            })
            .unwrap();
        world.barrier().unwrap();
        let mut local = window.local().unwrap();
        local[1] = 7;
        assert_eq!((local[0], local[1], local[2 * len - 1]), (5, 7, 6));
        drop(local);
        drop(window);
        // A window that its last rank drops at the very end of a job keeps its memory until the process ends. For others, by
        // rendezvous, an envelope, a request and an answer go to and fro.
        (0..4).for_each(|_| world.barrier().unwrap());
    });
}
