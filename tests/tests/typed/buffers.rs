//! Memory from `alloc_buffer`: its properties, and messages in it by either protocol.

use std::fs;

use mpj::tuning::{Options, Pages};
use mpj::{Buffer, Datatype, Error, ErrorClass, World, alloc_buffer};
use mpjdev::{BackendChoice, When};

use crate::job::{job, job_with};

const HUGE_PAGE: usize = 2 << 20;

/// An element that begins on a page.
#[derive(Clone, Copy, mpj::Pod, mpj::Zeroable)]
#[bytemuck(crate = "mpj::bytemuck")]
#[repr(C, align(8192))]
struct Wide([u8; 8192]);

fn buffer<T: Datatype>(len: usize) -> Buffer<T> {
    alloc_buffer(len).expect("there is so much memory")
}

fn is_send_and_sync<T: Send + Sync>(_: &T) {}

#[test]
fn elements_are_zero_aligned_and_all_there() {
    for len in [1, 4096, 4097, (128 << 10) - 1, 128 << 10, HUGE_PAGE, HUGE_PAGE + 1] {
        let mut bytes = buffer::<u8>(len);
        is_send_and_sync(&bytes);
        assert!(bytes.iter().all(|byte| *byte == 0));
        bytes.fill(7);
        assert_eq!(bytes.iter().map(|byte| usize::from(*byte)).sum::<usize>(), 7 * len);
        let align = if len < 128 << 10 { 4096 } else { HUGE_PAGE };
        assert_eq!(bytes.as_ptr().addr() % align, 0, "{len} bytes");
    }
    let wide = buffer::<Wide>(3);
    assert_eq!((wide.len(), wide.as_ptr().addr() % 8192), (3, 0));
    assert!(wide.iter().flat_map(|wide| wide.0).all(|byte| byte == 0));
}

#[test]
fn nothing_takes_no_memory() {
    let (none, no_size) = (buffer::<u64>(0), buffer::<()>(usize::MAX));
    assert_eq!((none.len(), no_size.len()), (0, usize::MAX));
    assert_eq!((none.pages(), no_size.pages()), (Pages::Ordinary, Pages::Ordinary));
}

#[test]
fn more_than_there_is_is_an_error() {
    let total = fs::read_to_string("/proc/meminfo").expect("the kernel tells of its memory");
    let total = total.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok());
    let total = total.expect("the first line is MemTotal") << 10;
    for len in [usize::MAX, isize::MAX as usize / 8, 1 << 44, total] {
        let error = alloc_buffer::<u64>(len).expect_err("nobody has so much");
        assert!(matches!(error, Error::Buffer { size: 8, .. }), "{error}");
        assert_eq!(error.class(), ErrorClass::NoMem);
        let text = error.to_string();
        assert!(text.contains(&format!("{len} elements of 8 bytes")), "{text}");
    }
}

#[test]
fn dropping_gives_the_memory_back() {
    let mappings = || fs::read_to_string("/proc/self/maps").expect("it is there").lines().count();
    let before = mappings();
    let mut buffers: Vec<_> = (0..200).map(|_| buffer::<u8>(1)).collect();
    buffers.extend((0..10).map(|_| buffer::<u8>(HUGE_PAGE)));
    // Other tests of this process have mappings too, but fewer.
    assert!(mappings() > before + 150);
    drop(buffers);
    assert!(mappings() < before + 100);
}

#[test]
fn messages_go_through_buffers_by_either_protocol() {
    for backend in [BackendChoice::Eager, BackendChoice::Rendezvous, BackendChoice::Auto] {
        job_with(&Options::with_backend(backend), 2, |world| {
            for len in [1, 1000, 300_000, HUGE_PAGE / 4 + 1] {
                ping_pong(world, len);
            }
        });
    }
}

/// A message of `u32`s from rank 0 to rank 1 and back, from buffer to buffer, in a scope there and by
/// blocking calls back.
fn ping_pong(world: &World, len: usize) {
    let (mut out, mut back) = (buffer::<u32>(len), buffer::<u32>(len));
    let other = 1 - world.rank();
    out.iter_mut().enumerate().for_each(|(place, it)| *it = (place + len + world.rank()) as u32);
    world
        .scope(|scope| {
            scope.irecv(&mut back, other, 0).expect("posted");
            scope.isend(&out, other, 0).expect("started");
            Ok(())
        })
        .expect("complete");
    assert!(back.iter().enumerate().all(|(place, it)| *it == (place + len + other) as u32));
    back.fill(0);
    if world.rank() == 0 {
        world.send(&out, 1, 1).expect("sent");
        world.recv(&mut back, 1, 1).expect("received");
    } else {
        world.recv(&mut back, 0, 1).expect("received");
        world.send(&out, 0, 1).expect("sent");
    }
    assert!(back.iter().enumerate().all(|(place, it)| *it == (place + len + other) as u32));
}

#[test]
fn long_data_in_huge_pages_are_fetched() {
    job(2, |world| {
        let mut rows = world.table().rows().iter();
        let huge_from =
            rows.find(|row| row.when == When::HugePages).expect("`auto` has a row").from;
        let mut allocated = buffer::<u8>(2 * huge_from);
        let mut ordinary = vec![0_u8; 2 * huge_from];
        let is_huge = allocated.pages() == Pages::Huge;
        let mut counts = Vec::new();
        for part in [0..huge_from - 1, 0..huge_from, huge_from - 1..2 * huge_from - 1] {
            for memory in [&mut ordinary[..], &mut allocated[..]] {
                if world.rank() == 0 {
                    world.send(&memory[part.clone()], 1, 0).expect("sent");
                } else {
                    world.recv(&mut memory[part.clone()], 0, 0).expect("received");
                }
                let stats = world.stats().expect("the device works");
                counts.push((stats.eager.messages, stats.rendezvous.messages));
            }
        }
        if world.rank() == 0 {
            let fetched = [(1, 0), (2, 0), (3, 0), (3, 1), (4, 1), (4, 2)];
            let copied = [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (6, 0)];
            // Where memory is not read, its pages do not matter.
            let is_read = world.one_sided_path() == "memory copy";
            assert_eq!(counts, if is_huge && is_read { fetched } else { copied });
        }
    });
}
