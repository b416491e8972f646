//! Data that do not lie together: columns and blocks of matrices, steps of either sign, single numbers.

use mpj::tuning::{BackendChoice, Options};
use mpj::{Error, ErrorClass, Strided, StridedMut, World, block, block_mut, column, column_mut};

use crate::job::{job, job_with};

/// Runs `body` on two ranks with either protocol.
fn either_protocol(body: impl Fn(&World) + Clone + Send + Sync + 'static) {
    for backend in [BackendChoice::Eager, BackendChoice::Rendezvous] {
        job_with(&Options::with_backend(backend), 2, body.clone());
    }
}

/// A matrix of this many columns whose elements are numbered.
fn counting(rows: usize, columns: usize) -> Vec<u32> {
    (0..).take(rows * columns).collect()
}

#[test]
fn a_column_arrives_as_a_row_and_a_row_as_a_column() {
    const ROWS: usize = 5_000;
    either_protocol(|world| {
        let mut matrix = counting(ROWS, 3);
        if world.rank() == 0 {
            world.send(&column(&matrix, 3, 1).unwrap(), 1, 0).unwrap();
            world.ssend(&matrix[..ROWS], 1, 0).unwrap();
            return;
        }
        let mut row = vec![0_u32; ROWS];
        let status = world.recv(&mut row, 0, 0).unwrap();
        assert_eq!(status.count::<u32>().unwrap(), ROWS);
        assert!(row.iter().zip(0..).all(|(got, row)| *got == 3 * row + 1));
        world.recv(&mut column_mut(&mut matrix, 3, 2).unwrap(), 0, 0).unwrap();
        let mut expected = counting(ROWS, 3);
        expected.chunks_mut(3).zip(0..).for_each(|(row, number)| row[2] = number);
        assert_eq!(matrix, expected);
    });
}

#[test]
fn a_block_arrives_as_a_block_and_nothing_else_changes() {
    either_protocol(|world| {
        let mut matrix = if world.rank() == 0 { counting(4, 5) } else { vec![99; 12] };
        if world.rank() == 0 {
            world.send(&block(&matrix, 5, 1..3, 2..=4).unwrap(), 1, 0).unwrap();
            return;
        }
        world.recv(&mut block_mut(&mut matrix, 4, ..2, 1..).unwrap(), 0, 0).unwrap();
        assert_eq!(matrix, [99, 7, 8, 9, 99, 12, 13, 14, 99, 99, 99, 99]);
    });
}

#[test]
fn steps_of_either_sign_meet() {
    either_protocol(|world| {
        let mut numbers = [1, 2, 3, 4, 5, 6, 7].map(|n: i64| n * (1 - world.rank() as i64));
        if world.rank() == 0 {
            world.send(&Strided::new(&numbers, 6, -2, 4).unwrap(), 1, 0).unwrap();
            world.send(&Strided::blocks(&numbers, 4, 2, -4, 2).unwrap(), 1, 0).unwrap();
            world.send(&Strided::new(&numbers, 3, 0, 3).unwrap(), 1, 0).unwrap();
            return;
        }
        world.recv(&mut StridedMut::new(&mut numbers, 3, -1, 4).unwrap(), 0, 0).unwrap();
        assert_eq!(numbers, [1, 3, 5, 7, 0, 0, 0]);
        world.recv(&mut StridedMut::new(&mut numbers, 0, 2, 4).unwrap(), 0, 0).unwrap();
        assert_eq!(numbers, [5, 3, 6, 7, 1, 0, 2]);
        world.recv(&mut numbers, 0, 0).unwrap();
        assert_eq!(numbers, [4, 4, 4, 7, 1, 0, 2], "one element, three times");
    });
}

#[test]
fn a_shorter_message_fills_the_beginning_and_a_longer_one_is_an_error() {
    either_protocol(|world| {
        if world.rank() == 0 {
            world.send(&[1, 2], 1, 0).unwrap();
            world.send(&[1, 2, 3, 4], 1, 0).unwrap();
            world.send(&[5], 1, 0).unwrap();
            return;
        }
        let mut matrix = [0; 6];
        let mut three = column_mut(&mut matrix, 2, 1).unwrap();
        assert_eq!(world.recv(&mut three, 0, 0).unwrap().count::<i32>().unwrap(), 2);
        let error = world.recv(&mut three, 0, 0).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Truncate);
        // A world that is dropped after an error waits for nobody, not even for the sender, whose send may fail.
        world.recv(&mut three, 0, 0).unwrap();
        assert_eq!(matrix, [0, 5, 0, 2, 0, 3]);
    });
}

#[test]
fn every_call_takes_every_buffer() {
    either_protocol(|world| {
        let other = 1 - world.rank();
        let data = counting(3, 2);
        let mut matrix = [0_u32; 6];
        let sent = column(&data, 2, 1).unwrap();
        let mut place = column_mut(&mut matrix, 2, 0).unwrap();
        world.sendrecv(&sent, other, 0, &mut place, other, 0).unwrap();
        assert_eq!(matrix, [1, 0, 3, 0, 5, 0]);
        let mut place = column_mut(&mut matrix, 2, 1).unwrap();
        world
            .scope(|scope| {
                let receive = scope.irecv(&mut place, other, 0).unwrap();
                let send = scope.isend(&sent, other, 0).unwrap();
                scope.irecv(receive.wait().unwrap().0, other, 1).unwrap();
                scope.issend(send.wait().unwrap().0, other, 1).unwrap();
                Ok(())
            })
            .unwrap();
        assert_eq!(matrix, [1, 1, 3, 3, 5, 5]);
    });
}

#[test]
fn an_element_that_is_named_twice_is_not_received_into() {
    either_protocol(|world| {
        if world.rank() == 0 {
            return world.send(&[7, 8], 1, 0).unwrap();
        }
        let mut numbers = [0; 4];
        for (block, step) in [(1, 0), (2, 1), (2, -1)] {
            let mut twice = StridedMut::blocks(&mut numbers, 1, block, step, 2).unwrap();
            let blocking = world.recv(&mut twice, 0, 0).unwrap_err();
            let scoped = world.scope(|scope| scope.irecv(&mut twice, 0, 0).map(drop)).unwrap_err();
            assert!(matches!((blocking, scoped), (Error::Overlap, Error::Overlap)));
        }
        world.recv(&mut numbers, 0, 0).unwrap();
        assert_eq!(numbers, [7, 8, 0, 0], "the message is still there");
    });
}

#[test]
fn what_is_not_inside_is_refused() {
    let numbers = [0u8; 10];
    for (start, block, step, count) in
        [(8, 1, 1, 3), (1, 1, -1, 3), (9, 2, 1, 1), (0, 1, isize::MAX, 3), (usize::MAX, 1, 1, 1)]
    {
        let error = Strided::blocks(&numbers, start, block, step, count).unwrap_err();
        assert!(matches!(error, Error::Outside { len: 10, .. }), "{error}");
    }
    for (columns, wanted) in [(3, 0), (0, 0), (5, 5), (5, usize::MAX)] {
        let error = column(&numbers, columns, wanted).unwrap_err();
        assert!(matches!(error, Error::Matrix { len: 10, .. }), "{error}");
    }
    assert!(block(&numbers, 5, 1..3, ..).is_err() && block(&numbers, 5, .., 3..6).is_err());
    assert!(block(&numbers, 5, 2.., 5..).unwrap().is_empty());
}

#[test]
fn nothing_at_all_and_one_element() {
    either_protocol(|world| {
        let mut numbers = [3, 4];
        let other = 1 - world.rank();
        let none = Strided::new(&[1, 2], 9, 5, 0).unwrap();
        let mut nowhere = StridedMut::blocks(&mut numbers, 0, 0, 3, 7).unwrap();
        let status = world.sendrecv(&none, other, 0, &mut nowhere, other, 0).unwrap();
        assert_eq!(status.bytes, 0);
        let one = Strided::new(&[1, 2], 1, isize::MAX, 1).unwrap();
        let mut last = StridedMut::new(&mut numbers, 1, isize::MIN, 1).unwrap();
        world.sendrecv(&one, other, 0, &mut last, other, 0).unwrap();
        assert_eq!(numbers, [3, 2]);
    });
}

#[test]
fn single_numbers_and_what_points_to_buffers() {
    job(2, |world| {
        let other = 1 - world.rank();
        let (mut float, mut wide) = (0.0, 0u128);
        world.sendrecv(&(1.5 + world.rank() as f64), other, 0, &mut float, other, 0).unwrap();
        world.sendrecv(&u128::MAX, other, 0, &mut wide, other, 0).unwrap();
        assert_eq!((float, wide), (1.5 + other as f64, u128::MAX));
        let boxed: Box<[u16]> = vec![1, 2, 3].into();
        let mut into = [0u16; 3];
        let mut slice = &mut into[..];
        world.sendrecv(&boxed, other, 0, &mut slice, other, 0).unwrap();
        assert_eq!(into, [1, 2, 3]);
        let (rank, mut number) = (world.rank(), 0);
        let scoped = world.scope(|scope| {
            scope.isend(&rank, other, 0).unwrap().wait().unwrap();
            let receive = scope.irecv(&mut number, other, 0).unwrap();
            *receive.wait().unwrap().0 += 10;
            Ok(())
        });
        scoped.unwrap();
        assert_eq!(number, other + 10);
    });
}
