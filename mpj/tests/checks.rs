//! Mistakes between ranks (`MPJ_CHECK`): collective calls and messages that do not fit together, found by comparison before
//! any data are used, and messages that nobody receives. Every job runs under a watchdog.

use std::panic::Location;
use std::thread;
use std::time::Duration;

use job::job_with;
use mpj::tuning::Options;
use mpj::{Communicator, Error, ErrorClass, Op, World, collective};

mod job;

/// A job in which messages of other types than are received, or that nobody receives, are planted.
fn mistaken<R: Send>(ranks: usize, body: impl Fn(&World) -> R + Sync) -> Result<Vec<R>, String> {
    mpj::local::run_with(&checked(), ranks, |world| body(&world)).map_err(|error| error.to_string())
}

fn checked() -> Options {
    Options { checks: Some(true), ..Options::default() }
}

/// Runs `call` on three ranks, and returns what each says. Afterwards all make a call that fits.
fn refusals(call: impl Fn(&World) -> Result<(), Error> + Send + Sync + 'static) -> Vec<Error> {
    job_with(&checked(), 3, move |world| {
        let refused = call(world).expect_err("the calls do not fit");
        let mut sum = [world.rank()];
        world.all_reduce(&mut sum, Op::Sum).expect("these fit");
        assert_eq!(sum, [3]);
        refused
    })
}

/// All ranks say the same, in words that contain these.
fn all_say(refusals: &[Error], class: ErrorClass, words: &[&str]) {
    let first = refusals[0].to_string();
    for refusal in refusals {
        assert_eq!((refusal.class(), refusal.to_string()), (class, first.clone()));
    }
    for word in words {
        assert!(first.contains(word), "{word}: {first}");
    }
}

#[track_caller]
fn line() -> String {
    let place = Location::caller();
    format!("{}:{}", place.file(), place.line())
}

#[test]
fn different_calls_are_refused_with_both_places() {
    let refused = refusals(|world| match world.rank() {
        1 => world.reduce(&[1.5], &mut [0.0], Op::Sum, 0),
        _ => world.broadcast(&mut [1.5], 0),
    });
    let here = line();
    let line = here.rsplit_once(':').expect("it has a line").1.parse::<u32>().expect("a number");
    let (reduce, broadcast) = (line - 3, line - 2);
    let expected = format!(
        "rank 1 calls reduce(root 0, MPI_SUM, 1 double) at mpj/tests/checks.rs:{reduce} where rank 0 calls \
         bcast(root 0, 1 double) at mpj/tests/checks.rs:{broadcast}: "
    );
    all_say(&refused, ErrorClass::Other, &[&expected]);
}

#[test]
fn different_types_of_one_size_are_refused() {
    let refused = refusals(|world| match world.rank() {
        2 => world.all_reduce(&mut [1.0_f32], Op::Sum),
        _ => world.all_reduce(&mut [1_i32], Op::Sum),
    });
    all_say(&refused, ErrorClass::Type, &["rank 2 calls", "1 float", "1 int32"]);
    let refused = refusals(|world| match world.rank() {
        1 => world.broadcast(&mut [1.0; 4], 0),
        _ => world.broadcast(&mut [1; 8], 0),
    });
    all_say(&refused, ErrorClass::Type, &["rank 1 calls", "4 double", "8 int32"]);
}

#[test]
fn different_operations_roots_and_counts_are_refused() {
    let refused = refusals(|world| {
        let op = if world.rank() == 1 { Op::Product } else { Op::Sum };
        world.all_reduce(&mut [1.0], op)
    });
    all_say(&refused, ErrorClass::Op, &["rank 1 calls", "MPI_PROD", "MPI_SUM"]);
    let refused = refusals(|world| world.broadcast(&mut [0], usize::from(world.rank() == 2)));
    all_say(&refused, ErrorClass::Root, &["rank 2 calls", "root 1", "root 0"]);
    let refused = refusals(|world| world.all_reduce(&mut vec![0; 1 + world.rank() / 2], Op::Sum));
    all_say(&refused, ErrorClass::Count, &["rank 2 calls", "2 int32", "1 int32"]);
    let refused = refusals(|world| {
        world.gatherv(&[1], &mut [0; 3], &mpj::Partition::packed([1, 1, 1]), world.rank() / 2)
    });
    all_say(&refused, ErrorClass::Root, &["rank 2 calls gatherv(root 1)"]);
}

#[test]
fn calls_that_are_started_or_kept_are_compared_with_those_that_block() {
    let refused = refusals(|world| match world.rank() {
        0 => world.start(collective::all_reduce(vec![1], Op::Sum))?.wait().map(drop),
        1 => world.persistent(collective::all_reduce(vec![1], Op::Sum)).map(drop),
        _ => world.barrier(),
    });
    all_say(
        &refused,
        ErrorClass::Other,
        &["rank 1 calls allreduce_init(", "iallreduce(MPI_SUM, 1 int32"],
    );
    let refused = refusals(|world| match world.rank() {
        2 => world.start(collective::barrier())?.wait().map(drop),
        _ => world.barrier(),
    });
    all_say(&refused, ErrorClass::Other, &["rank 2 calls ibarrier()", "rank 0 calls barrier()"]);
    let refused = refusals(|world| match world.rank() {
        1 => world.dup().map(drop),
        _ => world.barrier(),
    });
    all_say(&refused, ErrorClass::Other, &["rank 1 calls dup()", "rank 0 calls barrier()"]);
    let refused = refusals(|world| {
        let root = usize::from(world.rank() == 1);
        let mut word = [1];
        world.scope(|scope| scope.start(collective::broadcast(&mut word, root))?.wait().map(drop))
    });
    all_say(&refused, ErrorClass::Root, &["rank 1 calls ibcast(root 1"]);
}

/// Several calls are under way at a time, and end in any order.
#[test]
fn calls_that_fit_are_made_as_ever() {
    job_with(&checked(), 4, |world| {
        let me = world.rank();
        let part: Communicator = world.split((me % 2) as u32, 0).unwrap();
        let sums: Vec<_> = (0..20)
            .map(|n| world.start(collective::all_reduce(vec![me + n; 5], Op::Sum)).unwrap())
            .collect();
        let mut half = [me];
        part.all_reduce(&mut half, Op::Max).unwrap();
        assert_eq!(half, [2 + me % 2]);
        let mut all = [0; 4];
        world.all_gather(&me, &mut all).unwrap();
        assert_eq!(all, [0, 1, 2, 3]);
        for (n, sum) in sums.into_iter().enumerate().rev() {
            assert_eq!(sum.wait().unwrap().0, [6 + 4 * n; 5]);
        }
        let mut kept = world.persistent(collective::all_reduce(vec![1], Op::Sum)).unwrap();
        for _ in 0..3 {
            kept.buffer_mut().unwrap().fill(me);
            kept.start().unwrap();
            kept.wait().unwrap();
            assert_eq!(kept.buffer().unwrap(), [6]);
        }
        // One element of four on one rank, four elements on the others: the same data.
        match me {
            0 => world.broadcast(&mut [[1.0; 4]], 0).unwrap(),
            _ => world.broadcast(&mut [0.0; 4], 0).unwrap(),
        }
    });
}

/// What rank 1 says of the message of rank 0, by each way to receive and to send.
#[test]
fn elements_of_other_types_are_refused_however_they_are_sent_and_received() {
    type Way = fn(&World) -> Result<(), Error>;
    let sends: [Way; 7] = [
        |world| world.send(&[1.5; 4], 1, 5),
        |world| world.ssend(&[1.5; 4], 1, 5),
        |world| world.isend(vec![1.5; 4], 1, 5)?.wait().map(drop),
        |world| world.bsend(&[1.5; 4], 1, 5),
        |world| world.scope(|scope| scope.isend(&[1.5; 4], 1, 5).map(drop)),
        |world| {
            let mut send = world.send_init(vec![1.5; 4], 1, 5)?;
            send.start()?;
            send.wait().map(drop)
        },
        |world| world.sendrecv(&[1.5; 4], 1, 5, &mut [0; 2], mpj::PROC_NULL, 0).map(drop),
    ];
    let receives: [Way; 9] = [
        |world| world.recv(&mut [0; 8], 0, 5).map(drop),
        |world| world.recv(&mut [0; 8], mpj::ANY_SOURCE, mpj::ANY_TAG).map(drop),
        |world| world.recv_vec::<i32>(0, mpj::ANY_TAG).map(drop),
        |world| world.irecv(vec![0; 8], 0, 5)?.wait().map(drop),
        |world| world.mprobe(0, 5)?.recv(&mut [0; 8]).map(drop),
        |world| world.mprobe(0, 5)?.irecv(vec![0; 8])?.wait().map(drop),
        |world| {
            let mut numbers = [0; 8];
            world.scope(|scope| scope.irecv(&mut numbers, 0, 5)?.wait().map(drop))
        },
        |world| {
            let mut receive = world.recv_init(vec![0; 8], 0, 5)?;
            receive.start()?;
            receive.wait().map(drop)
        },
        |world| world.sendrecv(&[0; 2], mpj::PROC_NULL, 0, &mut [0; 8], 0, 5).map(drop),
    ];
    for (number, send) in sends.into_iter().enumerate() {
        for (other, receive) in receives.into_iter().enumerate() {
            // The message comes before the receive, or mostly after it.
            for early in [true, false] {
                let said = job_with(&checked(), 2, move |world| {
                    world.attach_buffer(1000).unwrap();
                    world.barrier().unwrap();
                    if world.rank() == 0 {
                        thread::sleep(Duration::from_millis(u64::from(!early)));
                        send(world).unwrap();
                        world.send(&[7], 1, 6).unwrap();
                        return String::new();
                    }
                    if early {
                        world.probe(0, 5).unwrap();
                    }
                    let refused = receive(world).expect_err("the types differ");
                    assert_eq!(refused.class(), ErrorClass::Type);
                    let mut next = [0];
                    world.recv(&mut next, 0, 6).unwrap();
                    assert_eq!(next, [7], "the next message is another one");
                    refused.to_string()
                });
                let expected = [
                    "rank 1 receives 8 int32_t at mpj/tests/checks.rs:",
                    "where rank 0 sends 4 double at mpj/tests/checks.rs:",
                    "with tag 5: ",
                ];
                for part in expected {
                    assert!(said[1].contains(part), "{number} {other}: {part}: {}", said[1]);
                }
            }
        }
    }
}

/// Long messages go by rendezvous. Their senders end, too.
#[test]
fn long_elements_of_other_types_are_refused() {
    let said = job_with(&checked(), 2, |world| {
        if world.rank() == 0 {
            world.send(&vec![1.5; 1 << 20], 1, 0).unwrap();
            world.barrier().unwrap();
            return String::new();
        }
        let mut numbers = vec![3_u64; 1 << 20];
        let refused = world.recv(&mut numbers, 0, 0).expect_err("the types differ");
        world.barrier().unwrap();
        assert_eq!(numbers[0], 3, "nothing was stored");
        refused.to_string()
    });
    assert!(said[1].contains("rank 1 receives 1048576 uint64_t"), "{}", said[1]);
}

#[test]
fn elements_that_fit_are_received() {
    #[derive(Clone, Copy, mpj::Datatype)]
    #[repr(C)]
    struct Particle {
        kind: i32,
        place: [f64; 3],
    }
    #[derive(Clone, Copy, PartialEq, Default, mpj::bytemuck::Zeroable, mpj::bytemuck::Pod)]
    #[repr(transparent)]
    struct Place([f64; 2]);
    #[derive(Clone, Copy, mpj::Datatype)]
    #[repr(C)]
    struct Plain {
        place: Place,
        mass: f64,
    }
    job_with(&checked(), 2, |world| {
        let other = 1 - world.rank();
        let particles = [Particle { kind: 7, place: [1.0, 2.0, 3.0] }; 2];
        world.scope(|scope| scope.isend(&particles, other, 0).map(drop)).unwrap();
        let mut got = [Particle { kind: 0, place: [0.0; 3] }; 3];
        assert_eq!(world.recv(&mut got, other, 0).unwrap().bytes, 2 * 28);
        // One of many, one after another, as bytes, and of no elements.
        world.send(&[[1.0, 2.0], [3.0, 4.0]], other, 1).unwrap();
        assert_eq!(world.recv_vec::<f64>(other, 1).unwrap().0, [1.0, 2.0, 3.0, 4.0]);
        world.send(&mpj::column(&[1, 2, 3, 4], 2, 0).unwrap(), other, 2).unwrap();
        assert_eq!(world.recv_vec::<i32>(other, mpj::ANY_TAG).unwrap().0, [1, 3]);
        world.send(&1.5_f64.to_ne_bytes(), other, 3).unwrap();
        assert_eq!(world.recv_vec::<f64>(other, 3).unwrap().0, [1.5]);
        world.send(&[0.0_f32; 0], other, 4).unwrap();
        assert_eq!(world.recv_vec::<i64>(other, 4).unwrap().0, []);
        // What lies in bytes may be numbers.
        let flat = [Plain { place: Place([1.5, 2.5]), mass: 3.5 }; 2];
        world.send(&flat, other, 6).unwrap();
        assert_eq!(world.recv_vec::<f64>(other, 6).unwrap().0, [1.5, 2.5, 3.5, 1.5, 2.5, 3.5]);
        // A message that is too long says so.
        world.send(&[1.5; 3], other, 5).unwrap();
        let long = world.recv(&mut [0.0; 2], other, 5).expect_err("too long");
        assert_eq!(long.class(), ErrorClass::Truncate);
    });
}

/// Ranks and sources are those of the communicator.
#[test]
fn mistakes_name_the_ranks_of_the_communicator() {
    let said = job_with(&checked(), 3, |world| {
        let part = world.split((world.rank() / 2) as u32, 2 - world.rank() as i32).unwrap();
        if part.size() == 1 {
            return String::new();
        }
        // Its rank 0 is rank 1 of the world.
        match part.rank() {
            0 => part.recv(&mut [0_i64], 1, 0).expect_err("the types differ").to_string(),
            _ => part.send(&[0_u64], 0, 0).map(|()| String::new()).unwrap(),
        }
    });
    assert!(said[1].starts_with("rank 0 receives 1 int64_t at "), "{}", said[1]);
    assert!(said[1].contains("where rank 1 sends 1 uint64_t at "), "{}", said[1]);
}

#[test]
fn messages_that_nobody_receives_are_reported_at_the_end() {
    let left = |world: &World| {
        let half = world.dup().unwrap();
        half.set_name("half");
        if world.rank() == 0 {
            world.send(&[1, 2], 1, 5).unwrap();
            half.send(&[1.5; 10_000], 1, 6).unwrap();
            (0..5).for_each(|tag| world.send(&[0_u8], 1, 7 + tag).unwrap());
        }
        world.barrier().unwrap();
    };
    let said = mistaken(2, left).expect_err("nobody receives them");
    let expected = [
        "rank 1: 7 messages were never received: 8 bytes from rank 0 of the job with tag 5 in communicator world (2 int32_t at \
         mpj/tests/checks.rs:",
        "80000 bytes from rank 0 of the job with tag 6 in communicator half (10000 double at mpj/tests/checks.rs:",
        "1 bytes from rank 0 of the job with tag 8 in communicator world (1 bytes at mpj/tests/checks.rs:",
        ", and 3 more; receive every message that is sent",
    ];
    expected.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
    let taken = |world: &World| match world.rank() {
        0 => world.send(&[1, 2], 1, 5).unwrap(),
        _ => drop(world.mprobe(0, 5).unwrap()),
    };
    let said = mistaken(2, taken).expect_err("nobody receives it");
    assert!(
        said.contains("a message was never received: 8 bytes from rank 0 of the job with tag 5"),
        "{said}"
    );
    // In all contexts.
    let options = Options { contexts: 2, ..checked() };
    let in_both = mpj::local::run_with(&options, 2, |world| {
        for context in 0..2 * (1 - world.rank()) {
            world.on_endpoint(context).unwrap().send(&[1, 2], 1, context as i32).unwrap();
        }
    });
    let said = in_both.expect_err("nobody receives them").to_string();
    assert!(said.contains("2 messages were never received: 8 bytes"), "{said}");
    assert!(said.contains("with tag 0 ") && said.contains("with tag 1 "), "{said}");
    // A rank that deals with it gets the error.
    let ended = mpj::local::run_with(&checked(), 2, |world| {
        if world.rank() == 0 {
            world.send(&[1, 2], 1, 5).unwrap();
        }
        world.finish().map_err(|error| error.to_string())
    });
    let ended = ended.expect("no world was dropped");
    assert_eq!(ended[0], Ok(()));
    assert!(
        ended[1]
            .as_ref()
            .is_err_and(|said| said.starts_with("a message was never received: 8 bytes"))
    );
    // Unchecked, nobody minds.
    let options = Options { checks: Some(false), ..Options::default() };
    let sent = mpj::local::run_with(&options, 2, |world| world.send(&[1], 1 - world.rank(), 0));
    assert!(sent.is_ok());
}

/// Whether a program has seen that a receive is complete makes the difference.
#[test]
fn receives_that_are_dropped_lose_their_messages_unless_the_program_knows_them() {
    let dropped = |look: fn(&mpj::Request<i32>) -> bool, elements: usize| {
        mistaken(2, move |world| {
            if world.rank() == 0 {
                return (0..6).for_each(|tag| world.send(&vec![7; elements], 1, tag).unwrap());
            }
            for tag in 0..6 {
                world.probe(0, tag).unwrap();
                let receive = world.irecv(vec![0; elements], 0, tag).unwrap();
                while !look(&receive) {}
            }
        })
    };
    let said = dropped(|_| true, 2).expect_err("the program knows nothing of them");
    for part in ["6 messages were never", "request that received it was dropped", ", and 2 more;"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    dropped(|receive| receive.is_done().unwrap(), 2).expect("it asks whether they are done");
    dropped(|receive| receive.status().unwrap().is_some(), 2).expect("it asks for their status");
    dropped(|_| true, 0).expect("they have nothing to lose");
}
