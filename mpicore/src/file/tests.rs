//! Tests of files over ranks that are threads of this process.

#![expect(unsafe_code, reason = "the tests describe buffers of their own as regions")]

use std::path::PathBuf;

use mpjdev::{RecvRegion, SendRegion};
use tempfile::TempDir;

use super::*;
use crate::ErrorClass;
use crate::communicator::ranks;
use crate::process::scrambled;

/// Runs `body` on so many ranks, with the path of a file in a new folder.
fn run(ranks: usize, body: impl Fn(&Communicator, &Path) + Send + Sync + 'static) {
    let folder = TempDir::new().unwrap();
    let path: PathBuf = folder.path().join("file");
    ranks::run_apart(ranks, move |world| {
        body(world, &path);
        world.device().finish().unwrap();
    });
    drop(folder);
}

fn byte() -> Datatype {
    Datatype::predefined(ElementKind::Byte)
}

fn info(hints: &[(&str, &str)]) -> Info {
    let mut info = Info::default();
    for (key, value) in hints {
        info.set(key.as_bytes(), value.as_bytes()).unwrap();
    }
    info
}

/// Opens a file that contains these bytes.
fn opened(world: &Communicator, path: &Path, amode: Amode, bytes: impl AsRef<[u8]>) -> File {
    if world.rank() == 0 {
        std::fs::write(path, bytes).unwrap();
    }
    world.run_barrier().unwrap();
    File::open(world, path, amode, &Info::default()).unwrap()
}

/// Random numbers that all ranks know.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 += 1;
        scrambled(self.0) % end
    }
}

/// A file of bytes that a program accesses, and what it contains.
struct Pattern {
    /// Bytes of a cell.
    cell: usize,
    /// The rank that accesses a cell of a tile, if one does.
    owners: Vec<Option<u32>>,
    tiles: usize,
}

impl Pattern {
    fn random(random: &mut Random, ranks: u32, has_gaps: bool) -> Self {
        let cells = 1 + random.below(12);
        let choices = u64::from(ranks) + u64::from(has_gaps);
        let mut owner = || Some(random.below(choices) as u32).filter(|rank| *rank < ranks);
        let owners = (0..cells).map(|_| owner()).collect();
        Self { cell: 1 + random.below(700) as usize, owners, tiles: 1 + random.below(9) as usize }
    }

    fn filetype(&self, rank: u32) -> Datatype {
        let own = (0..).zip(&self.owners).filter(|(_, owner)| **owner == Some(rank));
        let places: Vec<i64> = own.map(|(place, _)| place * self.cell as i64).collect();
        let cells = Datatype::indexed_block(self.cell as i64, &places, &byte()).unwrap();
        cells.resized(0, (self.cell * self.owners.len()) as isize).unwrap()
    }

    /// The bytes that a rank writes.
    fn bytes(&self, rank: u32) -> Vec<u8> {
        let len = self.tiles * self.filetype(rank).size();
        (0..len).map(|at| (at * 7 + at / 256 + 31 * rank as usize) as u8 | 1).collect()
    }

    /// The file after all ranks have written. Bytes that nobody writes are 0.
    fn file(&self, ranks: u32) -> Vec<u8> {
        let mut left: Vec<_> = (0..ranks).map(|rank| self.bytes(rank).into_iter()).collect();
        let mut file = Vec::new();
        for owner in (0..self.tiles).flat_map(|_| &self.owners) {
            let mut byte = || owner.map_or(Some(0), |rank| left[rank as usize].next());
            file.extend((0..self.cell).map(|_| byte().unwrap()));
        }
        while file.last() == Some(&0) {
            file.pop();
        }
        file
    }
}

/// Ways to access: whether all ranks together, and whether the memory is one span.
const WAYS: [(bool, bool); 4] = [(true, true), (true, false), (false, true), (false, false)];

fn source(bytes: &[u8], is_span: bool) -> Source {
    match is_span {
        // SAFETY: G1: the bytes last until the access has ended.
        true => Source::Span(unsafe { SendRegion::new(bytes.as_ptr(), bytes.len()) }),
        false => Source::from(bytes.to_vec()),
    }
}

fn sink(bytes: &mut [u8], is_span: bool) -> Sink {
    // SAFETY: G2: the bytes last until the access has ended, and are not used until then.
    let region = |at: usize, len: usize, bytes: &mut [u8]| unsafe {
        RecvRegion::new(bytes[at..].as_mut_ptr(), len)
    };
    let (len, half) = (bytes.len(), bytes.len() / 2);
    match is_span {
        true => Sink::Span(region(0, len, bytes)),
        false => {
            let halves = [region(0, half, bytes), region(half, len - half, bytes)];
            transport_lapi::Spans::to_receive(halves).unwrap()
        }
    }
}

fn whole<'a>(
    position: Position,
    is_collective: bool,
    len: usize,
    datatype: &'a Datatype,
) -> Part<'a> {
    Part { position, is_collective, count: len as i64, datatype }
}

#[test]
fn what_ranks_write_is_what_they_read() {
    for ranks in 1..=5 {
        run(ranks, move |world, path| {
            let mut random = Random((ranks as u64) << 32);
            let (byte, (rank, ranks)) = (byte(), (world.rank(), ranks as u32));
            for round in 0..24 {
                let pattern = Pattern::random(&mut random, ranks, round % 2 == 0);
                let sieve = ["disable", "enable"][round / 4 % 2];
                let buffer = ["4096", "5000", "1000000"][round % 3];
                let hints = [
                    ("cb_buffer_size", buffer),
                    ("ind_rd_buffer_size", buffer),
                    ("ind_wr_buffer_size", buffer),
                    ("romio_ds_write", sieve),
                    ("cb_nodes", ["0", "1", "2"][round % 3]),
                ];
                let amode = Amode::RDWR | Amode::CREATE | Amode::DELETE_ON_CLOSE;
                let file = File::open(world, path, amode, &info(&hints)).unwrap();
                let (filetype, bytes) = (pattern.filetype(rank), pattern.bytes(rank));
                let native = Representation::Native;
                file.set_view(Some(0), &byte, &filetype, native, &Info::default()).unwrap();
                let (is_collective, is_span) = WAYS[round % 4];
                let at = [Position::At(0), Position::Individual][round / 2 % 2];
                let part = whole(at, is_collective, bytes.len(), &byte);
                let written = file.write(part, source(&bytes, is_span)).unwrap();
                assert_eq!(written, bytes.len() as u64);
                file.sync().unwrap();
                assert_eq!(std::fs::read(path).unwrap(), pattern.file(ranks), "round {round}");
                for (is_collective, is_span) in WAYS {
                    let mut read = vec![0; bytes.len()];
                    let part = whole(Position::At(0), is_collective, read.len(), &byte);
                    let found = file.read(part, sink(&mut read, is_span)).unwrap();
                    assert_eq!((found, &read), (bytes.len() as u64, &bytes), "round {round}");
                }
                file.close().unwrap();
                assert!(!path.exists(), "it is deleted for all ranks");
                world.run_barrier().unwrap();
            }
        });
    }
}

/// Bytes that several ranks write alike, and gaps between them, of the same length in all.
#[test]
fn overlaps_leave_gaps_as_they_are() {
    run(3, |world, path| {
        let byte = byte();
        let file = opened(world, path, Amode::RDWR, [9; 40]);
        let filetype = Datatype::indexed_block(5, &[0, 10, 20], &byte).unwrap();
        let filetype = filetype.resized(0, 40).unwrap();
        let native = Representation::Native;
        file.set_view(Some(0), &byte, &filetype, native, &Info::default()).unwrap();
        let part = whole(Position::Individual, true, 15, &byte);
        file.write(part, source(&[1; 15], true)).unwrap();
        assert!(file.staging().is_some(), "it has two phases");
        file.sync().unwrap();
        let wanted: Vec<_> = (0..40).map(|at| if at < 25 && at % 10 < 5 { 1 } else { 9 }).collect();
        assert_eq!(std::fs::read(path).unwrap(), wanted);
        file.close().unwrap();
    });
}

#[test]
fn reads_end_with_the_file() {
    run(2, |world, path| {
        let byte = byte();
        let file = opened(world, path, Amode::RDONLY, (0..100).collect::<Vec<u8>>());
        let filetype = Datatype::contiguous(8, &byte).unwrap().resized(0, 16).unwrap();
        let (at, native) = (u64::from(world.rank()) * 8, Representation::Native);
        file.set_view(Some(at), &byte, &filetype, native, &Info::default()).unwrap();
        let wanted: Vec<u8> = (0..100).filter(|at| u32::from(at / 8 % 2) == world.rank()).collect();
        for (is_collective, is_span) in WAYS {
            let mut read = [0; 80];
            let part = whole(Position::At(0), is_collective, 80, &byte);
            let found = file.read(part, sink(&mut read, is_span)).unwrap() as usize;
            assert_eq!(read[..found], wanted);
            assert!(read[found..].iter().all(|byte| *byte == 0), "what is behind is as it was");
        }
        file.seek(-3, Whence::End).unwrap();
        assert_eq!(file.get_position().unwrap(), wanted.len() as i64 - 3);
        file.close().unwrap();
    });
}

/// Ranks may read by a view with filetypes that lie in each other.
#[test]
fn views_that_do_not_ascend_are_read() {
    run(2, |world, path| {
        let byte = byte();
        let file = opened(world, path, Amode::RDONLY, (0..100).collect::<Vec<u8>>());
        let filetype = Datatype::indexed_block(1, &[0, 10], &byte).unwrap().resized(0, 1).unwrap();
        let native = Representation::Native;
        file.set_view(Some(0), &byte, &filetype, native, &Info::default()).unwrap();
        for (is_collective, is_span) in WAYS {
            let mut read = [0; 4];
            let part = whole(Position::At(1), is_collective, 4, &byte);
            assert_eq!(file.read(part, sink(&mut read, is_span)).unwrap(), 4);
            assert_eq!(read, [10, 1, 11, 2]);
        }
        file.close().unwrap();
    });
}

#[test]
fn ranks_work_alone_where_gaps_are_long() {
    let shapes = |len| [0, 8].map(|first| [first, first + len, 16, 2, 0, 7]).concat();
    assert_eq!(together::worth(&shapes(24)), Some((0..32, 7)));
    assert_eq!(together::worth(&shapes(1 << 50)), None);
}

#[test]
fn ranks_share_a_pointer() {
    run(4, |world, path| {
        let (int, rank) = (Datatype::predefined(ElementKind::I32), world.rank());
        let amode = Amode::RDWR | Amode::CREATE;
        let file = File::open(world, path, amode, &Info::default()).unwrap();
        let native = Representation::Native;
        file.set_view(Some(0), &int, &int, native, &Info::default()).unwrap();
        for number in 0..10_u32 {
            let bytes = (100 * rank + number).to_ne_bytes();
            file.write(whole(Position::Shared, false, 1, &int), source(&bytes, true)).unwrap();
        }
        world.run_barrier().unwrap();
        assert_eq!(file.get_position_shared().unwrap(), 40);
        file.seek_shared(-40, Whence::Current).unwrap();
        let mut own = Vec::new();
        for _ in 0..10 {
            let mut bytes = [0; 4];
            let found =
                file.read(whole(Position::Shared, false, 1, &int), sink(&mut bytes, true)).unwrap();
            assert_eq!(found, 4);
            own.push(u64::from(u32::from_ne_bytes(bytes)));
        }
        let mut all = world.gather_words(Call::Allgather, own).unwrap();
        all.sort_unstable();
        let wanted: Vec<_> = (0..4).flat_map(|rank| 100 * rank..100 * rank + 10).collect();
        assert_eq!(all, wanted);
        let ordered = rank.to_ne_bytes().repeat(rank as usize + 1);
        let count = rank as usize + 1;
        file.write(whole(Position::Shared, true, count, &int), source(&ordered, true)).unwrap();
        file.seek_shared(40, Whence::Set).unwrap();
        let mut read = vec![0; ordered.len()];
        file.read(whole(Position::Shared, true, count, &int), sink(&mut read, true)).unwrap();
        assert_eq!(read, ordered);
        assert_eq!(file.size().unwrap(), 4 * 50);
        file.close().unwrap();
    });
}

#[test]
fn atomic_writes_are_not_mixed() {
    run(4, |world, path| {
        let (byte, rank) = (byte(), world.rank() as u8);
        let amode = Amode::RDWR | Amode::CREATE;
        let file = File::open(world, path, amode, &Info::default()).unwrap();
        let filetype = byte.resized(0, 2).unwrap();
        let native = Representation::Native;
        file.set_view(Some(0), &byte, &filetype, native, &Info::default()).unwrap();
        file.set_atomicity(true).unwrap();
        assert!(file.is_atomic());
        for is_collective in [false, true].repeat(5) {
            let part = whole(Position::At(0), is_collective, 500, &byte);
            file.write(part, source(&[rank + 1; 500], true)).unwrap();
            let mut read = [0; 500];
            file.read(part, sink(&mut read, true)).unwrap();
            assert!(read.iter().all(|byte| *byte == read[0] && read[0] > 0), "{read:?}");
        }
        file.close().unwrap();
    });
}

#[test]
fn elements_are_converted() {
    run(2, |world, path| {
        let long = Datatype::predefined(crate::datatype::Basic::Long);
        let amode = Amode::RDWR | Amode::CREATE;
        let file = File::open(world, path, amode, &Info::default()).unwrap();
        let filetype = Datatype::vector(1, 1, 1, &long).unwrap().resized(0, 8).unwrap();
        let external = Representation::External32;
        let at = 4 * u64::from(world.rank());
        file.set_view(Some(at), &long, &filetype, external, &Info::default()).unwrap();
        let values: Vec<i64> = (0..20).map(|value| value * 10 - i64::from(world.rank())).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        for (is_collective, is_span) in WAYS {
            let part = whole(Position::At(0), is_collective, 20, &long);
            assert_eq!(file.write(part, source(&bytes, is_span)).unwrap(), 160);
            file.sync().unwrap();
            let mut read = vec![0; 200];
            let part = whole(Position::At(0), is_collective, 25, &long);
            let found = file.read(part, sink(&mut read, is_span)).unwrap();
            assert_eq!((found, &read[..160]), (160, &bytes[..]));
            world.run_barrier().unwrap();
        }
        let first = &std::fs::read(path).unwrap()[8..16];
        assert_eq!(first, [0, 0, 0, 10, 0, 0, 0, 9]);
        let array = Datatype::contiguous(30, &long).unwrap();
        let mut read = vec![0; 240];
        let part = whole(Position::At(0), true, 1, &array);
        let found = file.read(part, sink(&mut read, true)).unwrap();
        assert_eq!((found, &read[..160]), (160, &bytes[..]), "a part of an element");
        assert_eq!(file.type_extent(&long).unwrap(), 4);
        file.close().unwrap();
    });
}

fn class_of<T>(outcome: Result<T, Error>) -> ErrorClass {
    outcome.map(drop).unwrap_err().class()
}

#[test]
fn what_cannot_be_opened_is_refused_on_all_ranks() {
    run(3, |world, path| {
        let open = |amode| File::open(world, path, amode, &Info::default());
        assert_eq!(class_of(open(Amode::RDONLY)), ErrorClass::NoSuchFile);
        assert_eq!(class_of(open(Amode::CREATE)), ErrorClass::Amode);
        assert_eq!(class_of(open(Amode::RDONLY | Amode::CREATE)), ErrorClass::Amode);
        assert_eq!(class_of(open(Amode::RDWR | Amode::SEQUENTIAL)), ErrorClass::Amode);
        let one = if world.rank() == 1 { Amode::WRONLY } else { Amode::RDWR };
        assert_eq!(class_of(open(one | Amode::CREATE)), ErrorClass::NotSame);
        assert!(!path.exists());
        let create = Amode::WRONLY | Amode::CREATE | Amode::EXCL;
        open(create).unwrap().close().unwrap();
        assert_eq!(class_of(open(create)), ErrorClass::FileExists);
        let below = path.join("file");
        let opened = File::open(world, &below, Amode::RDONLY, &Info::default());
        assert_eq!(class_of(opened), ErrorClass::BadFile);
        world.run_barrier().unwrap();
        if world.rank() == 0 {
            File::delete(path).unwrap();
            assert_eq!(class_of(File::delete(path)), ErrorClass::NoSuchFile);
        }
    });
}

#[test]
fn what_the_mode_does_not_allow_is_refused() {
    run(2, |world, path| {
        let byte = byte();
        let open = |amode| File::open(world, path, amode, &Info::default()).unwrap();
        let write = |file: &File, part| file.write(part, source(&[1, 2, 3], true));
        let alone = whole(Position::At(0), false, 3, &byte);
        let file = open(Amode::WRONLY | Amode::CREATE);
        let together = Part { is_collective: true, ..alone };
        assert_eq!(class_of(file.read(together, sink(&mut [0; 3], true))), ErrorClass::Access);
        assert_eq!(class_of(file.set_size(world.rank().into())), ErrorClass::NotSame);
        file.preallocate(100).unwrap();
        file.set_size(10).unwrap();
        assert_eq!(file.size().unwrap(), 10);
        let longer = Part { count: 4, ..together };
        assert_eq!(class_of(write(&file, longer)), ErrorClass::Buffer);
        let part = Part { position: Position::At(-1), ..together };
        assert_eq!(class_of(write(&file, part)), ErrorClass::Arg);
        let one = if world.rank() == 1 { part } else { together };
        assert_eq!(class_of(write(&file, one)), ErrorClass::Arg, "on the other rank, too");
        assert_eq!(class_of(file.set_size(u64::MAX)), ErrorClass::Arg);
        file.seek_shared(i64::MAX - 1, Whence::Set).unwrap();
        for is_collective in [false, true] {
            let part = Part { position: Position::Shared, is_collective, ..alone };
            assert_eq!(class_of(write(&file, part)), ErrorClass::Arg);
            world.run_barrier().unwrap();
            assert_eq!(file.get_position_shared().unwrap(), i64::MAX - 1);
            // A write that is refused moves the pointer, and moves it back.
            world.run_barrier().unwrap();
        }
        let pair = Datatype::contiguous(2, &byte).unwrap();
        let native = Representation::Native;
        file.set_view(Some(0), &pair, &pair, native, &Info::default()).unwrap();
        assert_eq!(class_of(write(&file, together)), ErrorClass::Io);
        let etype = if world.rank() == 0 { &pair } else { &byte };
        let view = file.set_view(Some(0), etype, &pair, native, &Info::default());
        assert_eq!(class_of(view), ErrorClass::NotSame);
        file.close().unwrap();
        let file = open(Amode::RDONLY);
        assert_eq!(class_of(write(&file, alone)), ErrorClass::ReadOnly);
        assert_eq!(class_of(file.seek(-1, Whence::Set)), ErrorClass::Arg);
        file.close().unwrap();
        let file = open(Amode::WRONLY | Amode::SEQUENTIAL | Amode::APPEND);
        assert_eq!(class_of(write(&file, alone)), ErrorClass::UnsupportedOperation);
        assert_eq!(class_of(file.seek(0, Whence::Set)), ErrorClass::UnsupportedOperation);
        assert_eq!(class_of(file.set_size(0)), ErrorClass::UnsupportedOperation);
        write(&file, Part { position: Position::Shared, ..alone }).unwrap();
        file.sync().unwrap();
        assert_eq!(file.size().unwrap(), 16);
        let view = file.set_view(Some(0), &byte, &byte, native, &Info::default());
        assert_eq!(class_of(view), ErrorClass::UnsupportedOperation);
        file.set_view(None, &byte, &byte, native, &Info::default()).unwrap();
        assert_eq!(file.view().displacement(), 16);
        file.close().unwrap();
    });
}
