//! Ranks for tests: threads of this process.

use std::sync::{Arc, mpsc};
use std::thread;

use mpj_harness::watch;
use mpjdev::{Device, Error, Options, PeerError, wireup};

use crate::communicator::Communicator;
use crate::process::Process;

/// Calls `body` with the communicator of all ranks, on each of so many ranks, and fails if it does not end in time. `process`
/// makes the state of a rank.
pub(crate) fn run(
    ranks: usize,
    options: Options,
    process: impl Fn(Device) -> Process + Send + Sync + 'static,
    body: impl Fn(&Communicator) + Send + Sync + 'static,
) {
    watch(move || {
        let devices = wireup::in_process(ranks, &options).unwrap();
        thread::scope(|scope| {
            for mut of_rank in devices {
                let (process, body) = (&process, &body);
                scope.spawn(move || {
                    let process = Arc::new(process(of_rank.remove(0)));
                    body(&Communicator::world(process).unwrap());
                });
            }
        });
    });
}

/// [`run`] with usual settings. Ranks do not leave the job together.
pub(crate) fn run_apart(ranks: usize, body: impl Fn(&Communicator) + Send + Sync + 'static) {
    run(ranks, Options::default(), |device| Process::new(device, ()), body);
}

/// [`run_apart`] in a job that looks for mistakes between its ranks.
pub(crate) fn run_checked(ranks: usize, body: impl Fn(&Communicator) + Send + Sync + 'static) {
    let options = Options { checks: Some(true), ..Options::default() };
    run(ranks, options, |device| Process::new(device, ()), body);
}

/// Has rank 0 send a message to rank 1 in a context that `begin` returns on both, and returns how rank 1 finds that it
/// breaks the rules. What `begin` returns beside the context is kept meanwhile.
pub(crate) fn violation<K>(
    message: Vec<u8>,
    begin: impl Fn(&Communicator) -> (K, u32) + Send + Sync + 'static,
) -> PeerError {
    let (told, heard) = mpsc::channel();
    run_apart(2, move |world| {
        let ((_kept, context), device) = (begin(world), world.device());
        if world.rank() == 0 {
            device.send_bytes(message.clone(), 1, 0, context).unwrap();
            // It learns that the other rank has given up.
            device.probe(Some(1), Some(0), world.context()).unwrap_err();
        } else {
            match device.probe(Some(0), Some(0), world.context()) {
                Err(Error::Peer { rank: 0, violation }) => told.send(violation).unwrap(),
                other => panic!("{other:?}"),
            }
        }
    });
    heard.recv().unwrap()
}
