//! A rank whose process has several clients: `clients SCENE`.
//!
//! - `exchange ORDER`: three clients exchange messages, in turn and in threads, and leave in this order, for example
//!   `mpj,am2,own`; `drop` ends AM-2 without leaving.
//! - `order`: rank 1 joins with its second and third client in another order.
//! - `many`: further clients join until there is no room.
//! - `twice`: a client joins once more.
//! - `late`: a client joins when the others have left.
//! - `absent`: the others join with a second client, and rank 0 waits for a message.
//! - `stuck`: each rank has a thread in each of two clients, and all wait.
//! - `busy`: the threads of one client work for a while, and then send what those of the other one wait for.
//! - `fails CLIENT`: rank 0 panics, while the others wait in this client.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use am2::Am;
use mpj_tests::clients::{Asking, Done, Own, at_once, in_turn};
use transport_lapi::bootstrap::control::{Control, MessageCounts};
use transport_lapi::config::Settings;
use transport_lapi::wireup::{Client, Joined, WireupError, connect};

/// Rounds of messages.
const ROUNDS: u64 = 50;
/// For longer than a deadlock needs to be found.
const LONG: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let scene = arguments.next().unwrap_or_default();
    let how = arguments.next().unwrap_or_default();
    let done = match &*scene {
        "exchange" => exchange(&how),
        "order" => order(),
        "many" => many(),
        "twice" => twice(),
        "late" => late(),
        "absent" => absent(),
        "stuck" => wait(false),
        "busy" => wait(true),
        "fails" => fails(&how),
        other => panic!("what is {other:?}?"),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}

/// Joins with a client of one context that uses the transport itself.
fn join(name: &str) -> Result<Joined, WireupError> {
    connect(&Settings::from_env()?, Client::new(name))
}

/// Leaves with such a client.
fn leave(own: &Own, control: Option<&Control>) -> Done {
    if let Some(control) = control {
        control.leaving(MessageCounts::default());
    }
    own.context().gfence()?;
    control.into_iter().for_each(Control::finished);
    Ok(())
}

fn exchange(order: &str) -> Done {
    let mut world = Some(mpj::init()?);
    let mut am = Some(Am::join()?);
    let mut joined = join("own")?;
    let own = Own::new(joined.contexts.remove(0))?;
    let mut asking = Asking::new(am.as_ref().expect("it has joined"))?;
    if let (Some(world), Some(am)) = (&world, &am) {
        let places = [am.task(), own.context().task()].map(|task| task as usize);
        let sizes = [am.num_tasks(), own.context().num_tasks()];
        assert_eq!((places, sizes), ([world.rank(); 2], [world.size(); 2]));
        in_turn(world, &mut asking, &own, 0..ROUNDS)?;
        at_once(world, &mut asking, &own, ROUNDS..2 * ROUNDS)?;
        println!("rank {} of {}", world.rank(), world.size());
    }
    for client in order.split(',') {
        match client {
            "mpj" => world.take().expect("it leaves once").finish()?,
            "am2" => asking.leave()?,
            "drop" => drop(am.take()),
            _ => leave(&own, joined.control.as_ref())?,
        }
    }
    Ok(())
}

fn order() -> Done {
    let world = mpj::init()?;
    let names = if world.rank() == 1 { ["other", "own"] } else { ["own", "other"] };
    match join(names[0]) {
        Ok(_) => Err("it has joined".into()),
        Err(error) => {
            println!("rank {}: {error}", world.rank());
            let after = Am::join().err().ok_or("it has joined")?;
            assert_eq!(after.to_string(), format!("am2 cannot join, since {} could not", names[0]));
            // The other clients go on.
            world.barrier()?;
            Ok(world.finish()?)
        }
    }
}

fn many() -> Done {
    let world = mpj::init()?;
    for name in ["first", "second", "third"] {
        let joined = join(name)?;
        let control = joined.control.expect("mpjrun has started it");
        control.leaving(MessageCounts::default());
        control.finished();
    }
    let refused = join("fourth").err().expect("there is no room");
    println!("rank {}: {refused}", world.rank());
    Ok(world.finish()?)
}

fn twice() -> Done {
    let world = mpj::init()?;
    let am = Am::join()?;
    let refused = Am::join().err().expect("it has joined");
    println!("rank {}: {refused}", world.rank());
    Asking::new(&am)?.leave()?;
    Ok(world.finish()?)
}

fn late() -> Done {
    let world = mpj::init()?;
    let rank = world.rank();
    world.finish()?;
    let refused = Am::join().err().expect("it has left");
    println!("rank {rank}: {refused}");
    Ok(())
}

fn absent() -> Done {
    let world = mpj::init()?;
    if world.rank() == 0 {
        world.recv(&mut [0_u8], 1, 7)?;
    }
    Am::join().map(drop)?;
    Ok(world.send(&[0_u8], 0, 7)?)
}

/// Each rank has a thread in each of two clients. Those of `mpj` wait for the next rank; those of AM-2 wait for ever, or,
/// if `ends`, work for a while and then send what the others wait for.
fn wait(ends: bool) -> Done {
    let world = mpj::init()?;
    let am = Am::join()?;
    let mut asking = Asking::new(&am)?;
    let (rank, size) = (world.rank(), world.size());
    thread::scope(|scope| -> Done {
        let world = &world;
        let messages = scope.spawn(move || -> Done {
            world.recv(&mut [0_u8], (rank + 1) % size, 7)?;
            Ok(())
        });
        if ends {
            let begun = Instant::now();
            let mut round = 0;
            // All ranks end with the same round, since rank 0 says when.
            loop {
                asking.round(round)?;
                let is_over = asking.agree(u64::from(rank == 0 && begun.elapsed() > LONG))?;
                if is_over {
                    break;
                }
                round += 1;
                thread::sleep(Duration::from_millis(20));
            }
            world.send(&[0_u8], (rank + size - 1) % size, 7)?;
        } else {
            asking.wait_for_nothing()?;
        }
        messages.join().expect("no thread panics")
    })?;
    asking.leave()?;
    Ok(world.finish()?)
}

fn fails(client: &str) -> Done {
    let world = mpj::init()?;
    let am = Am::join()?;
    let mut asking = Asking::new(&am)?;
    match (world.rank(), client) {
        (0, _) => panic!("the end of rank 0"),
        (_, "am2") => asking.wait_for_nothing(),
        _ => Ok(world.barrier()?),
    }
}
