//! Files: what ranks write through all kinds of views is what others read, and what must not be.

use std::fs;
use std::path::PathBuf;

use mpj::{Communicator, Error, ErrorClass, File, StridedMut};

use crate::job::job;

/// Returns a path that all ranks have, of no file, in a folder that ends with what rank 0 gets beside it. Ranks on several
/// hosts share the folder, which `/tmp` is not.
fn new_path(over: &Communicator) -> (PathBuf, Option<tempfile::TempDir>) {
    let folder =
        (over.rank() == 0).then(|| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let mut bytes: Vec<u8> = folder
        .as_ref()
        .map_or_else(Vec::new, |folder| folder.path().join("file").to_str().unwrap().into());
    let mut len = bytes.len();
    over.broadcast(&mut len, 0).unwrap();
    bytes.resize(len, 0);
    over.broadcast(&mut bytes, 0).unwrap();
    (PathBuf::from(String::from_utf8(bytes).unwrap()), folder)
}

/// Runs `body` with a new file, which is closed behind it.
fn with_file(ranks: usize, body: impl Fn(&Communicator, &mut File) + Send + Sync + 'static) {
    job(ranks, move |world| {
        let (path, folder) = new_path(world);
        let mut options = File::options();
        options.read(true).write(true).create_new(true).hint("cb_buffer_size", "4096");
        let mut file = options.open(world, &path).unwrap();
        body(world, &mut file);
        file.close().unwrap();
        drop(folder);
    });
}

/// A matrix of which each rank has a block of columns, then a block of all elements.
#[test]
fn divided_matrices_are_written_and_read() {
    for ranks in 1..=5 {
        with_file(ranks, move |world, file| {
            let (rank, [rows, columns]) = (world.rank(), [70, 13 * ranks]);
            let element = |row: usize, column: usize| (row * 1000 + column) as u32;
            let mine = 13 * rank..13 * (rank + 1);
            let of_row = |row| mine.clone().map(move |column| element(row, column));
            let columns_of_mine: Vec<u32> = (0..rows).flat_map(of_row).collect();
            let part = [0..rows, mine.clone()];
            let view = file.view_subarray::<u32>(100, &[rows, columns], &part).unwrap();
            assert_eq!(view.len(), Some(rows * 13));
            view.write_at_all(&columns_of_mine, 0).unwrap();
            let mut read = vec![0; rows * 13];
            assert_eq!(view.read_at(&mut read, 0).unwrap(), rows * 13);
            assert_eq!(read, columns_of_mine);
            let mut together = vec![0; rows * 13];
            assert_eq!(view.read_at_all(&mut together, 0).unwrap(), rows * 13);
            assert_eq!(together, columns_of_mine);
            file.sync_all().unwrap();
            assert_eq!(file.len().unwrap(), 100 + 4 * (rows * columns) as u64);

            let view = file.view_block::<u32>(100, rows * columns).unwrap();
            let mut block = vec![0; view.len().unwrap()];
            assert_eq!(view.read_at_all(&mut block, 0).unwrap(), block.len());
            let (each, longer) = (rows * columns / ranks, rows * columns % ranks);
            let first = rank * each + rank.min(longer);
            let wanted = (first..first + block.len()).map(|at| element(at / columns, at % columns));
            assert!(block.into_iter().eq(wanted));
        });
    }
}

/// Buffers that are not contiguous, and structures with padding.
#[test]
fn elements_of_any_buffer_and_type_are_written() {
    #[derive(Clone, Copy, Debug, PartialEq, mpj::Datatype)]
    #[repr(C)]
    struct Particle {
        charge: i8,
        mass: f64,
    }

    with_file(2, |world, file| {
        let rank = world.rank();
        let matrix: Vec<usize> = (0..12).map(|at| 100 * rank + at).collect();
        let view = file.view::<usize>(0).unwrap();
        view.write_at_all(&mpj::column(&matrix, 4, 1).unwrap(), 3 * rank).unwrap();
        world.barrier().unwrap();
        let mut back = [0; 12];
        view.read_at_all(&mut mpj::column_mut(&mut back, 4, 2).unwrap(), 3 * (1 - rank)).unwrap();
        assert_eq!([back[2], back[6], back[10]], [1, 5, 9].map(|at| 100 * (1 - rank) + at));

        let particle = |charge| Particle { charge, mass: 0.5 };
        let view = file.view::<Particle>(96).unwrap();
        view.write_at(&[particle(rank as i8); 3], 3 * rank).unwrap();
        world.barrier().unwrap();
        let mut read = [particle(9); 7];
        assert_eq!(view.read_at(&mut read, 0).unwrap(), 6, "the file ends");
        assert_eq!(read.map(|particle| particle.charge), [0, 0, 0, 1, 1, 1, 9]);
    });
}

#[test]
fn ranks_follow_each_other() {
    with_file(4, |world, file| {
        let (rank, view) = (world.rank(), file.view::<u16>(0).unwrap());
        view.write_ordered(&vec![rank as u16; rank]).unwrap();
        view.write_shared(&[7]).unwrap();
        world.barrier().unwrap();
        let mut read = [0; 10];
        view.read_at(&mut read, 0).unwrap();
        assert_eq!(read, [1, 2, 2, 3, 3, 3, 7, 7, 7, 7]);
        let mut none = [0; 1];
        assert_eq!(view.read_shared(&mut none).unwrap(), 0, "the pointer is at the end");
        assert_eq!(view.read_ordered(&mut none).unwrap(), 0);
    });
}

#[test]
fn what_is_outside_of_a_view_is_refused() {
    with_file(3, |world, file| {
        let rank = world.rank();
        let view = file.view_block::<u8>(0, 10).unwrap();
        let refused = |outcome: Result<(), Error>| {
            assert!(matches!(outcome, Err(Error::FilePart { .. })), "{outcome:?}");
        };
        refused(view.write_at(&[0; 5], 0));
        // The others do not wait for the rank that is refused.
        let wrong = view.write_at_all(&[rank as u8; 3], usize::from(rank == 1));
        if rank == 1 {
            refused(wrong)
        } else {
            wrong.unwrap()
        }
        let mut bytes = [0; 4];
        let step = if rank == 1 { 0 } else { 1 };
        let mut into = StridedMut::blocks(&mut bytes, 1, 1, step, 2).unwrap();
        let read = view.read_at_all(&mut into, 0);
        assert_eq!(matches!(read, Err(Error::Overlap)), rank == 1, "{read:?}");
        let read = view.read_ordered(&mut into);
        assert_eq!(matches!(read, Err(Error::Overlap)), rank == 1, "{read:?}");
        let view = file.view_subarray::<u8>(0, &[2, 2], &[0..2, 0..if rank == 0 { 3 } else { 2 }]);
        assert_eq!(view.is_err(), rank == 0);
        let view = file.view_subarray::<u8>(0, &[4, 4], &[1..1, 0..4]).unwrap();
        assert_eq!(view.len(), Some(0));
        view.write_at_all(&[0_u8; 0], 0).unwrap();
    });
}

#[test]
fn files_are_opened_as_their_options_say() {
    job(2, |world| {
        let (path, folder) = new_path(world);
        let class = |outcome: Result<File, Error>| outcome.err().unwrap().class();
        assert_eq!(class(File::open(world, &path)), ErrorClass::NoSuchFile);
        assert_eq!(class(File::options().open(world, &path)), ErrorClass::Amode);
        let mut file = File::create(world, &path).unwrap();
        file.view::<u8>(0).unwrap().write_at(&[1, 2, 3], 0).unwrap();
        // Nobody waits for a file that is dropped.
        drop(file);
        world.barrier().unwrap();
        let mut file = File::open(world, &path).unwrap();
        assert_eq!(file.len().unwrap(), 3);
        let refused = file.view::<u8>(0).unwrap().write_at(&[1], 0).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::ReadOnly);
        file.close().unwrap();
        let mut options = File::options();
        options.write(true).truncate(world.rank() == 1);
        assert_eq!(class(options.open(world, &path)), ErrorClass::NotSame);
        options.create_new(true).create(false).truncate(true);
        assert_eq!(class(options.open(world, &path)), ErrorClass::FileExists);
        assert_eq!(fs::read(&path).unwrap(), [1, 2, 3]);
        world.barrier().unwrap();
        options.create_new(false).delete_on_close(true);
        let file = options.open(world, &path).unwrap();
        assert_eq!(file.len().unwrap(), 0);
        file.close().unwrap();
        assert!(!fs::exists(&path).unwrap(), "it is deleted for all ranks");
        drop(folder);
    });
}
