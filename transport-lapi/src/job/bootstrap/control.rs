//! The control line of a job: messages from a rank to the launcher, one per packet.
//!
//! A rank has a [`Control`], the launcher a [`ControlReceiver`] per rank; [`control_pair`] makes both. It carries a handful
//! of messages during a rank's life, never data. The launcher sends nothing but answers to demands ([`mod@demand`]).
//! Only this file and that one know the encoding.
//! [`mod@line`] and [`agents`] are the other control line, between launchers of several hosts.
//!
//! - L1: a packet contains one message of at most [`MAX_MESSAGE`] bytes, and nothing else.
//! - L2: the receiver treats every packet as untrusted: a damaged one, whatever its bytes, is an error value, and
//!   causes no allocation above the limit. Names of calls are short and printable.
//! - L3: sending never waits longer than `PATIENCE` for room, never raises a signal, and ignores that the launcher is
//!   gone: the rank could not do anything about it.
//! - L4: only the launcher holds its ends, so that a rank sees end-of-file when the launcher is gone.
//! - L5: the process that joins is not taken from the packet but from the kernel, which names the sender in the
//!   receiver's PID namespace.
//! - L6: a fork of the rank sends nothing, since what it does is not done by the rank.
//! - L7: a rank reports only the first loss that it notices, once, so that failing calls do not fill the line.
//! - L8: if a process manager has started the rank, it takes the launcher's place. It can be told that the rank has left
//!   the job or ends it, and the addresses of its endpoints; nothing else.
//! - L9: the clients of a process share its line. The launcher is told that the rank leaves, and has left, when the last
//!   of them does so.
//! - L10: a rank makes one demand at a time, and gets one answer to each, at once: the launcher waits for no rank before
//!   it answers.

pub mod agents;
mod clients;
mod counters;
pub mod demand;
mod error;
pub mod line;
mod observed;
mod queues;
mod vocabulary;

use std::fmt;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use bincode::{Decode, Encode};
use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketFlags,
    SocketType, recvmsg, send, socketpair,
};
use rustix::process::{Signal, getpid, kill_process, parent_process_death_signal};
use rustix::thread::gettid;

use self::clients::Clients;
use self::demand::Demand;
use super::managed::ManagedJob;
use super::{BootstrapError, monotonic_nanos};
use crate::adapter::TaskId;
use crate::adapter::waits::become_bystander;
use crate::job::wireup;
use crate::platform::fork::ProcessMark;

pub use counters::{MessageCounts, MessageTotals, ProtocolCounts};
pub use error::ControlError;
pub use observed::{Activity, Doubt, Observed, Usage};
pub use queues::{PostedReceive, Queues, RankRange, SpaceMembers, UnexpectedMessage};
pub use vocabulary::Vocabulary;

/// Largest encoded message, in bytes.
pub const MAX_MESSAGE: usize = 65536;
/// Longest wait for room in the socket.
const PATIENCE: Duration = Duration::from_secs(1);
/// Longest text of a failure, in bytes; longer texts are cut, so that L1 holds.
const MAX_TEXT: usize = 32 * 1024;
/// Longest location of a failure, in bytes.
const MAX_LOCATION: usize = 4 * 1024;

/// A message of a rank to the launcher, which knows the rank by the line.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum ControlMessage {
    /// The rank has found its job, and is about to connect to the others.
    Joined {
        /// Its process, which a wrapper script may have started. The receiver gets it from the kernel (L5).
        pid: u32,
    },
    /// The rank has done its part of the job, and may exit with code 0.
    Finished,
    /// The rank panicked, or could not do its part. It may still recover, as its exit will show.
    Failed {
        /// When, by [`monotonic_nanos`].
        at_nanos: u64,
        /// The text of the panic or of the error.
        message: String,
        /// Source file, line and column of the panic; empty if it was an error.
        location: String,
        /// The kernel's number of the thread.
        thread: i32,
    },
    /// The rank has stopped communicating, and is about to wait until the others have finished too.
    Leaving {
        /// What it has sent and received.
        counters: MessageCounts,
    },
    /// The program asked for the end of the job. The rank ends at once.
    Aborted {
        /// When, by [`monotonic_nanos`].
        at_nanos: u64,
        /// The exit code that the program wants for the job.
        code: i32,
    },
    /// The answer to an inquiry.
    Queues {
        /// The number of its context.
        context: u32,
        /// The queues of that context.
        queues: Queues,
    },
    /// The rank has stopped communicating and will never finish, because of a panic, an error of the program, or a
    /// failure of the library. Usually it is about to end.
    GaveUp {
        /// When, by [`monotonic_nanos`].
        at_nanos: u64,
    },
    /// The rank has noticed that another one is gone, usually because a call failed. The launcher may not know of it
    /// yet; what the rank does next is not the cause of the failure.
    MetLoss {
        /// When, by [`monotonic_nanos`].
        at_nanos: u64,
        /// The task that is gone.
        lost: TaskId,
    },
    /// What the numbers mean that a client of the rank publishes of its waits. Sent once, after it has joined.
    Vocabulary {
        /// The first context of the client.
        first: u32,
        /// The number of its contexts.
        contexts: u32,
        /// The names.
        vocabulary: Vocabulary,
    },
    /// Where the other hosts find a client of the rank, in a job of several hosts. Sent once, when it joins.
    Endpoints {
        /// The place.
        endpoints: Endpoints,
    },
    /// The rank cannot communicate with another one, so the job has to end. The ranks go on.
    Unreachable {
        /// When, by [`monotonic_nanos`].
        at_nanos: u64,
        /// A clause whose subject is the rank: which other one it cannot reach, why, and what to change.
        why: String,
    },
    /// The rank has found a mistake of the program when all ranks had come to their end. It has done its part otherwise.
    Mistaken {
        /// When, by [`monotonic_nanos`].
        at_nanos: u64,
        /// The mistake.
        message: String,
    },
    /// How often the rank has chosen an algorithm. Sent before it leaves.
    Chosen {
        /// What was chosen, and for what.
        name: String,
        /// How often.
        times: u64,
    },
    /// The rank asks for something, and waits for the answer.
    Demanded {
        /// What for.
        demand: Demand,
    },
}

impl ControlMessage {
    /// Returns the message with the time `at` in place of its own, which is that of another host's clock.
    #[must_use]
    pub fn dated(mut self, at: u64) -> Self {
        match &mut self {
            Self::Failed { at_nanos, .. }
            | Self::Aborted { at_nanos, .. }
            | Self::GaveUp { at_nanos }
            | Self::Unreachable { at_nanos, .. }
            | Self::Mistaken { at_nanos, .. }
            | Self::MetLoss { at_nanos, .. } => *at_nanos = at,
            _ => {}
        }
        self
    }

    /// Checks what another host has passed on, as [`ControlReceiver::try_recv`] checks a packet (L2).
    ///
    /// # Errors
    /// [`ControlError`] for texts that are not fit to be shown.
    pub fn check(&self) -> Result<(), ControlError> {
        match self {
            Self::Vocabulary { vocabulary, .. } => vocabulary.check(),
            Self::Chosen { name, .. } => vocabulary::check_names([name]),
            _ => Ok(()),
        }
    }
}

/// Where the contexts of a client of a rank are found by those of other hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode)]
pub struct Endpoints {
    /// The provider of the network, and the version of its library.
    pub network: String,
    /// The client.
    pub client: String,
    /// Its first context.
    pub first: u32,
    /// The network address of each of its contexts, in order.
    pub addresses: Vec<Vec<u8>>,
}

const ENCODING: Configuration<LittleEndian, Fixint, Limit<MAX_MESSAGE>> =
    bincode::config::standard().with_fixed_int_encoding().with_limit::<MAX_MESSAGE>();

fn encode(message: &ControlMessage) -> Vec<u8> {
    bincode::encode_to_vec(message, ENCODING).expect("texts are cut so that L1 holds")
}

fn decode(packet: &[u8]) -> Result<ControlMessage, ControlError> {
    if packet.len() > MAX_MESSAGE {
        return Err(ControlError::TooLong { len: packet.len() });
    }
    let (message, used) =
        bincode::decode_from_slice(packet, ENCODING).map_err(ControlError::Undecodable)?;
    if let extra @ 1.. = packet.len() - used {
        return Err(ControlError::TrailingBytes { extra });
    }
    ControlMessage::check(&message)?;
    Ok(message)
}

/// Makes a control line: the launcher's end and the rank's, both closed on exec.
///
/// # Errors
/// The error of the system, usually that the limit of open descriptors is reached.
pub fn control_pair() -> io::Result<(ControlReceiver, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    let (launcher, rank) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    set_socket_passcred(&launcher, true)?;
    Ok((ControlReceiver { socket: launcher }, rank))
}

/// The end of the control line that one client of a rank has. Clones share the line, and so do the other clients.
#[derive(Clone)]
pub struct Control {
    task: TaskId,
    line: Line,
    clients: Arc<Clients>,
    /// The number of the client among those of the process.
    client: usize,
    /// The contexts of the client.
    contexts: Range<u32>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("task", &self.task).finish_non_exhaustive()
    }
}

/// What a rank's messages go through.
#[derive(Clone)]
enum Line {
    Launcher(Arc<ControlSocket>),
    /// L8.
    Manager(Arc<ManagedJob>),
}

#[derive(Debug)]
struct ControlSocket {
    socket: OwnedFd,
    /// The process of the rank (L6).
    process: ProcessMark,
    /// Used when a loss is reported (L7).
    first_loss: Once,
    /// Locked while a demand waits for its answer (L10).
    asking: Mutex<()>,
}

impl Control {
    pub(crate) fn new(task: TaskId, socket: OwnedFd) -> Self {
        let (process, first_loss, asking) = (ProcessMark::new(), Once::new(), Mutex::default());
        let line = ControlSocket { socket, process, first_loss, asking };
        Self::of_first_client(task, Line::Launcher(Arc::new(line)))
    }

    /// The line of a rank that a process manager has started (L8).
    pub(super) fn to_manager(task: TaskId, job: ManagedJob) -> Self {
        Self::of_first_client(task, Line::Manager(Arc::new(job)))
    }

    fn of_first_client(task: TaskId, line: Line) -> Self {
        Self { task, line, clients: Arc::default(), client: 0, contexts: 0..1 }
    }

    /// Returns the task of the rank.
    pub(crate) fn task(&self) -> TaskId {
        self.task
    }

    /// States which contexts the client has.
    pub(crate) fn with_contexts(self, contexts: Range<usize>) -> Self {
        Self { contexts: contexts.start as u32..contexts.end as u32, ..self }
    }

    /// The line for a further client of the process; `None` if all clients leave the job or have left it.
    pub(crate) fn next_client(&self) -> Option<Self> {
        let client = self.clients.enter()?;
        Some(Self { client, ..self.clone() })
    }

    /// Reports that this rank has joined. Call it before waiting for the other ranks, so that the launcher knows about
    /// the wait if one of them never joins.
    pub fn joined(&self) {
        self.send(&ControlMessage::Joined { pid: std::process::id() });
    }

    /// Tells the launcher where the other hosts find the client's contexts. Call it before the wait for the addresses of
    /// all ranks. Under a process manager it waits until all ranks have called it.
    ///
    /// # Errors
    /// [`BootstrapError::Exchange`] if the process manager failed; [`BootstrapError::Memory`] for an address that is
    /// too long; [`BootstrapError::Estranged`] if some ranks have other networks.
    pub fn endpoints(&self, endpoints: Endpoints) -> Result<(), BootstrapError> {
        match &self.line {
            Line::Manager(job) => job.endpoints(&endpoints),
            Line::Launcher(_) => {
                self.send(&ControlMessage::Endpoints { endpoints });
                Ok(())
            }
        }
    }

    /// Tells the launcher what the numbers mean that the client publishes of its waits. Call it once, before the first
    /// wait.
    pub fn vocabulary(&self, vocabulary: Vocabulary) {
        let (first, contexts) = (self.contexts.start, self.contexts.len() as u32);
        self.send(&ControlMessage::Vocabulary { first, contexts, vocabulary });
    }

    /// Reports that the client has stopped communicating and now waits for the other ranks. Call it when the program
    /// leaves the job, before it waits, so that the launcher knows about the wait if another rank never gets there.
    /// `counters` states what the client has sent and received. The launcher is told when all clients of the process have
    /// called it (L9). Returns whether they have; then no further client can join.
    pub fn leaving(&self, counters: MessageCounts) -> bool {
        let all = self.clients.leaves(self.client, counters);
        let all_leave = all.is_some();
        if let Some(counters) = all {
            wireup::all_leave();
            self.send(&ControlMessage::Leaving { counters });
        }
        all_leave
    }

    /// Reports that the client has done its part. Once all clients of the process have (L9), exit code 0 means success.
    pub fn finished(&self) {
        if self.clients.finishes(self.client) {
            self.send(&ControlMessage::Finished);
        }
    }

    /// Ends the client's part without leaving, unless it has left: whether the rank has left its job depends on the other
    /// clients of the process. If there are none, it has not.
    pub fn withdraw(&self) {
        if let Some((counters, have_finished)) = self.clients.withdraw(self.client) {
            self.send(&ControlMessage::Leaving { counters });
            if have_finished {
                self.send(&ControlMessage::Finished);
            }
        }
    }

    /// Reports that the program asks for the end of the job, with `code`.
    pub fn aborted(&self, code: i32) {
        self.send(&ControlMessage::Aborted { at_nanos: monotonic_nanos(), code });
    }

    /// Reports that this rank has stopped communicating and will never finish. Call it instead of letting the other
    /// ranks fail: the launcher then ends the job, and knows the cause. Returns whether the report was sent; it cannot
    /// be if the program has closed descriptors that it does not own.
    pub fn gave_up(&self) -> bool {
        self.send(&ControlMessage::GaveUp { at_nanos: monotonic_nanos() })
    }

    /// Reports that this rank has noticed the loss of `lost`, unless it has reported a loss before (L7). Call it before
    /// the program learns of the loss, so that the launcher does not take the program's reaction for the cause. When it
    /// returns, the loss has been reported, possibly by another thread. The loss of this rank itself is not reported.
    pub fn met_loss(&self, lost: TaskId) {
        let Line::Launcher(line) = &self.line else { return };
        if lost != self.task && !line.process.is_fork() {
            line.first_loss.call_once(|| {
                let at_nanos = monotonic_nanos();
                self.send(&ControlMessage::MetLoss { at_nanos, lost });
            });
        }
    }

    /// Asks for the end of the job, since this rank cannot communicate with another one. `why` is a clause whose subject
    /// is this rank; an overlong one is cut.
    pub(crate) fn unreachable(&self, why: &str) {
        let why = cut(why, MAX_TEXT).to_owned();
        self.send(&ControlMessage::Unreachable { at_nanos: monotonic_nanos(), why });
    }

    /// Answers an inquiry, for one of the rank's contexts.
    pub fn queues(&self, context: usize, queues: Queues) {
        let context = context as u32;
        self.send(&ControlMessage::Queues { context, queues });
    }

    /// Reports that this rank panicked in this thread with `message` at `location`. If `location` is empty, it reports
    /// the error `message`. Overlong texts are cut. Returns whether the report was sent.
    pub fn failed(&self, message: &str, location: &str) -> bool {
        self.send(&ControlMessage::Failed {
            at_nanos: monotonic_nanos(),
            message: cut(message, MAX_TEXT).to_owned(),
            location: cut(location, MAX_LOCATION).to_owned(),
            thread: gettid().as_raw_nonzero().get(),
        })
    }

    /// Reports a mistake of the program that this rank has found when all ranks had come to their end. An overlong text is
    /// cut.
    pub fn mistaken(&self, message: &str) {
        let message = cut(message, MAX_TEXT).to_owned();
        self.send(&ControlMessage::Mistaken { at_nanos: monotonic_nanos(), message });
    }

    /// Sends a message. Returns whether it was sent (L6).
    fn send(&self, message: &ControlMessage) -> bool {
        let line = match &self.line {
            Line::Launcher(line) => line,
            Line::Manager(job) => return job.tell(message),
        };
        let ControlSocket { socket, process, .. } = &**line;
        if process.is_fork() {
            return false;
        }
        let packet = encode(message);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            match send(socket, &packet, flags) {
                Err(Errno::AGAIN) if wait_for_room(socket.as_fd()) => {}
                Err(Errno::INTR) => {}
                outcome => return outcome.is_ok(),
            }
        }
    }

    /// Makes this process end with the launcher. A direct child of the launcher is set up for that when it is started
    /// (SP2 of [`super::spawn`]), and the kernel remembers that across exec. A process behind a wrapper script is not,
    /// so a thread waits for end-of-file (L4) and then kills the process as the kernel would.
    pub(super) fn end_with_launcher(&self) -> io::Result<()> {
        let Line::Launcher(line) = &self.line else { return Ok(()) };
        if parent_process_death_signal()?.is_some() {
            return Ok(());
        }
        let line = Arc::clone(line);
        std::thread::Builder::new().spawn(move || {
            become_bystander();
            wait_for_hangup(line.socket.as_fd());
            // If this call fails, there is nobody left to report that to.
            let _ = kill_process(getpid(), Signal::KILL);
        })?;
        Ok(())
    }
}

/// Waits for room in the socket, and returns whether another attempt makes sense.
fn wait_for_room(socket: BorrowedFd<'_>) -> bool {
    let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let mut waiting = [PollFd::from_borrowed_fd(socket, PollFlags::OUT)];
    matches!(poll(&mut waiting, Some(&patience)), Ok(1) | Err(Errno::INTR))
}

fn wait_for_hangup(socket: BorrowedFd<'_>) {
    loop {
        let mut waiting = [PollFd::from_borrowed_fd(socket, PollFlags::empty())];
        if poll(&mut waiting, None) != Err(Errno::INTR) {
            return;
        }
    }
}

/// Returns the longest prefix of `text` that has at most `limit` bytes and ends between two characters.
///
/// ```
/// assert_eq!(transport_lapi::bootstrap::control::cut("größer", 3), "gr");
/// ```
pub fn cut(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// The result of one attempt to receive from a rank's line.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A message.
    Message(ControlMessage),
    /// No message has arrived.
    Nothing,
    /// End-of-file: no process holds the rank's end any more.
    End,
}

/// The launcher's end of one rank's control line. Use it through [`AsFd`] in a poll set.
#[derive(Debug)]
pub struct ControlReceiver {
    socket: OwnedFd,
}

impl AsFd for ControlReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl ControlReceiver {
    /// Receives the next message without waiting.
    ///
    /// # Errors
    /// [`ControlError`] for a damaged packet. That packet is removed: the next call returns the one behind it.
    pub fn try_recv(&self) -> Result<Incoming, ControlError> {
        let mut packet = vec![0; MAX_MESSAGE];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmCredentials(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        let room = &mut [IoSliceMut::new(&mut packet)];
        let len = match recvmsg(&self.socket, room, &mut ancillary, flags) {
            Ok(received) => received.bytes,
            Err(Errno::CONNRESET) => 0,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Incoming::Nothing),
            Err(errno) => return Err(ControlError::Receive(errno.into())),
        };
        let sender = sender(&mut ancillary);
        if len == 0 && sender.is_none() {
            // An empty packet, which is damaged, has a sender.
            return Ok(Incoming::End);
        }
        if len > MAX_MESSAGE {
            return Err(ControlError::TooLong { len });
        }
        let mut message = decode(&packet[..len])?;
        if let ControlMessage::Joined { pid } = &mut message {
            *pid = sender.unwrap_or(0);
        }
        Ok(Incoming::Message(message))
    }
}

/// The process that sent what came with `ancillary`. It is in this PID namespace or in one below, so it has a number
/// here.
fn sender(ancillary: &mut RecvAncillaryBuffer<'_>) -> Option<u32> {
    let credentials = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials.pid),
        _ => None,
    });
    credentials.map(|pid| pid.as_raw_nonzero().get() as u32)
}

#[cfg(test)]
mod tests;
