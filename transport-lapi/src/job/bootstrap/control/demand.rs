//! What a rank asks the launcher for: to start further ranks, and to keep names for all ranks of the job.

use std::sync::PoisonError;

use bincode::{Decode, Encode};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::agents::HostProgram;
use super::{Control, ControlMessage, ControlReceiver, ENCODING, Line, MAX_MESSAGE};
use crate::adapter::TaskId;

/// Something that a rank wants from the launcher.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Demand {
    /// Start a world of further ranks.
    Spawn {
        /// Their programs, in the order of their ranks.
        programs: Vec<SpawnProgram>,
    },
    /// Keep a value under a name that has none.
    Publish {
        /// The name.
        name: Name,
        /// The value.
        value: Vec<u8>,
    },
    /// Forget a name.
    Unpublish {
        /// The name.
        name: Name,
    },
    /// Tell the value of a name.
    Lookup {
        /// The name.
        name: Name,
    },
    /// Let the rank send a message to an open port.
    Connect {
        /// The name of the port.
        port: Vec<u8>,
    },
}

/// A program of a spawned world.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct SpawnProgram {
    /// The program with its number of ranks.
    pub program: HostProgram,
    /// Smaller numbers of ranks that will do, in falling order.
    pub or_fewer: Vec<u64>,
}

/// The kinds of names, which do not meet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Name {
    /// A port that a rank has opened, by its name.
    Port(Vec<u8>),
    /// A service that a rank has published.
    Service(Vec<u8>),
}

/// The launcher's answer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Answer {
    /// The ranks have been started.
    Spawned {
        /// The task of the first one. The others follow.
        first: TaskId,
        /// The number of ranks of each program.
        counts: Vec<u64>,
    },
    /// The name is kept, or the port is open.
    Done,
    /// The name is forgotten.
    Forgotten {
        /// If it was that of a port: the ranks that were allowed to connect to it, and how often each was.
        callers: Vec<(TaskId, u64)>,
    },
    /// The value of the name.
    Value(Vec<u8>),
    /// It cannot be done.
    Refused {
        /// Why not, and what to change.
        why: String,
    },
}

/// Why a demand got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DemandError {
    /// A process manager has started the rank, or the process is a fork of a rank.
    #[error("it needs mpjrun, which has not started this process; start the program with mpjrun")]
    NoLauncher,
    /// The words of a command do not fit into a message.
    #[error("its arguments have {len} bytes together; {MAX_MESSAGE} is the limit")]
    TooLong {
        /// Their length.
        len: usize,
    },
    /// The launcher is gone, or did not answer in its own language.
    #[error("mpjrun has not answered")]
    NoAnswer,
}

impl Control {
    /// Asks the launcher for something, and waits for its answer (L10).
    ///
    /// # Errors
    /// [`DemandError`].
    pub fn demand(&self, demand: Demand) -> Result<Answer, DemandError> {
        let Line::Launcher(line) = &self.line else { return Err(DemandError::NoLauncher) };
        if line.process.is_fork() {
            return Err(DemandError::NoLauncher);
        }
        let message = ControlMessage::Demanded { demand };
        let len =
            bincode::encode_to_vec(&message, bincode::config::standard().with_fixed_int_encoding());
        let len = len.map_or(usize::MAX, |bytes| bytes.len());
        if len > MAX_MESSAGE {
            return Err(DemandError::TooLong { len });
        }
        let _asking = line.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.send(&message) {
            return Err(DemandError::NoAnswer);
        }
        let mut packet = vec![0; MAX_MESSAGE];
        let len = loop {
            match recv(&line.socket, packet.as_mut_slice(), RecvFlags::empty()) {
                Ok((len, _)) => break len,
                Err(Errno::INTR) => {}
                Err(_) => return Err(DemandError::NoAnswer),
            }
        };
        let answer = bincode::decode_from_slice(&packet[..len], ENCODING);
        answer.map(|(answer, _)| answer).map_err(|_| DemandError::NoAnswer)
    }
}

impl ControlReceiver {
    /// Answers the demand of the rank, without waiting. A rank that reads no answers gets none.
    pub fn answer(&self, answer: &Answer) {
        let Ok(packet) = bincode::encode_to_vec(answer, ENCODING) else { return };
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = send(&self.socket, &packet, flags);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::{Incoming, control_pair};
    use super::*;

    #[test]
    fn each_demand_gets_its_answer() {
        let (receiver, rank) = control_pair().expect("a socket pair");
        let control = Control::new(3, rank);
        let asked = ["one", "two"].map(|name| Demand::Lookup { name: Name::Service(name.into()) });
        thread::scope(|scope| {
            let asks = scope.spawn(|| asked.clone().map(|demand| control.demand(demand)));
            for demand in &asked {
                let message = loop {
                    match receiver.try_recv().expect("sound messages") {
                        Incoming::Message(message) => break message,
                        Incoming::Nothing => thread::yield_now(),
                        Incoming::End => panic!("the rank lives"),
                    }
                };
                assert_eq!(message, ControlMessage::Demanded { demand: demand.clone() });
                let Demand::Lookup { name: Name::Service(name) } = demand else { panic!() };
                receiver.answer(&Answer::Value(name.clone()));
            }
            let answers = asks.join().expect("no panic");
            assert_eq!(answers, ["one", "two"].map(|name| Ok(Answer::Value(name.into()))));
        });
        drop(receiver);
        let gone = control.demand(Demand::Spawn { programs: Vec::new() });
        assert_eq!(gone, Err(DemandError::NoAnswer));
    }

    #[test]
    fn arguments_that_are_too_long_are_not_sent() {
        let (receiver, rank) = control_pair().expect("a socket pair");
        let program = HostProgram { args: vec![vec![b'x'; MAX_MESSAGE]], ..HostProgram::default() };
        let programs = vec![SpawnProgram { program, or_fewer: Vec::new() }];
        let refused = Control::new(0, rank).demand(Demand::Spawn { programs });
        assert!(matches!(refused, Err(DemandError::TooLong { len }) if len > MAX_MESSAGE));
        assert_eq!(receiver.try_recv().expect("no damage"), Incoming::End);
    }
}
