//! Long messages under `auto`, which times them: a program neither waits for that, nor is changed by it.

use job::{job, job_with};
use mpj::{Options, World};

mod job;

const LONG: usize = 32 << 10;

/// A program that relies on the memory for early messages: both ranks send first. The other rank's message comes before
/// its answer, so no time counts, and no rendezvous is tried.
#[test]
fn ranks_that_first_send_to_each_other_never_wait() {
    job(2, |world| {
        let other = 1 - world.rank();
        let (data, mut got) = (vec![1_u8; LONG], vec![0_u8; LONG]);
        for _ in 0..20_000 {
            world.send(&data, other, 0).unwrap();
            world.recv(&mut got, other, 0).unwrap();
        }
        assert_eq!(world.stats().unwrap().rendezvous.messages, 0);
    });
}

/// One long message there and one back.
fn round_trip(world: &World, data: &mut [u8]) {
    if world.rank() == 0 {
        world.send(&data[..], 1, 0).unwrap();
        world.recv(data, 1, 0).unwrap();
    } else {
        world.recv(data, 0, 0).unwrap();
        world.send(&data[..], 0, 0).unwrap();
    }
}

/// Whether times count depends on who runs when, so both ranks go on until one has counted at each; the watchdog sees
/// whether that ever happens. Ranks that share a processor time nothing.
#[test]
fn single_messages_are_timed() {
    let shared = std::thread::available_parallelism().map_or(1, usize::from) < 2;
    job(2, move |world| {
        let (mut data, mut lacking) = (vec![1; LONG], [1]);
        while lacking != [0] {
            (0..100).for_each(|_| round_trip(world, &mut data));
            lacking = [u32::from(!shared && world.stats().unwrap().timed == 0)];
            world.all_reduce(&mut lacking, mpj::Op::Sum).unwrap();
        }
    });
}

#[test]
fn a_forced_protocol_times_nothing() {
    for (backend, eager) in
        [(mpj::BackendChoice::Eager, true), (mpj::BackendChoice::Rendezvous, false)]
    {
        let options = Options::with_backend(backend);
        job_with(&options, 2, move |world| {
            let mut data = vec![1; LONG];
            (0..100).for_each(|_| round_trip(world, &mut data));
            let stats = world.stats().unwrap();
            assert_eq!((stats.timed, stats.rendezvous.messages == 0), (0, eager));
        });
    }
}
