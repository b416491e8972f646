//! What `mpjrun` and its agents on other hosts tell each other. The lines are those of [`super::line`].
//!
//! An agent does on its host what `mpjrun` does on its own: it starts ranks, reads their pipes and control lines,
//! notices their ends, and ends them. It tells all that as [`News`]. `mpjrun` prints, judges, and sends [`Order`]s.

use bincode::{Decode, Encode};

use super::{ControlMessage, Observed};
use crate::adapter::TaskId;

/// One of a rank's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// How a rank's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Ending {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// With its host, which is out of reach.
    Lost,
}

/// A program of a job, as its command line states it. Texts are bytes, since they need not be Unicode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct HostProgram {
    /// Number of its ranks, on all hosts.
    pub ranks: u64,
    /// The program.
    pub program: Vec<u8>,
    /// Its arguments.
    pub args: Vec<Vec<u8>>,
    /// Variables for its ranks, with their values.
    pub exports: Vec<(Vec<u8>, Vec<u8>)>,
    /// Working folder of its ranks.
    pub wdir: Option<Vec<u8>>,
    /// Folders, separated by colons, where the program is looked up first.
    pub path: Vec<u8>,
}

/// A job, as the agent of one host needs to know it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct HostJob {
    /// The name of the job.
    pub job: String,
    /// The folder that the agent works in.
    pub folder: Vec<u8>,
    /// The programs.
    pub programs: Vec<HostProgram>,
    /// Variables for all ranks, with their values.
    pub exports: Vec<(Vec<u8>, Vec<u8>)>,
    /// Number of contexts of each rank.
    pub contexts: u64,
    /// The word for the protocol of messages, if one was asked for.
    pub backend: Option<String>,
    /// The words for what ranks are bound to, and in which order.
    pub bind_to: Option<String>,
    /// See `bind_to`.
    pub map_by: String,
    /// Whether the agent tells where each rank runs.
    pub reports_bindings: bool,
    /// Whether the job goes on when a rank has failed.
    pub goes_on: bool,
    /// The rank that gets the standard input.
    pub reader: Option<TaskId>,
    /// The names of all hosts.
    pub hosts: Vec<String>,
    /// The host of each rank.
    pub host_of: Vec<u32>,
    /// This host.
    pub host: u32,
    /// After how many milliseconds without a sign of life `mpjrun` counts as lost.
    pub silence: u64,
    /// Microseconds between two looks at the ranks for deadlocks; `None` if nobody looks for them.
    pub looks: Option<u64>,
}

/// What `mpjrun` tells an agent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Order {
    /// Check this job, and answer [`News::Ready`] or [`News::Refused`].
    Prepare(Box<HostJob>),
    /// Start the ranks.
    Start,
    /// Send a signal to these ranks, or to all, and to what they have started outside of their groups.
    Signal {
        /// The kernel's number of the signal.
        signal: i32,
        /// The ranks; `None` for all.
        tasks: Option<Vec<TaskId>>,
    },
    /// Let a rank go that waits at its end for others.
    Dismiss {
        /// The rank.
        task: TaskId,
    },
    /// A rank of some host is gone.
    DeclareLost {
        /// The rank.
        task: TaskId,
    },
    /// Where ranks are found, from `first` on: the addresses of their contexts.
    Addresses {
        /// The first rank.
        first: TaskId,
        /// One entry for each rank.
        addresses: Vec<Vec<Vec<u8>>>,
    },
    /// All addresses have been told.
    AddressesComplete,
    /// Input for the rank that gets the standard input. Without bytes, its end.
    Input {
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Whether the reader of the output pauses: then ranks' pipes are not read.
    Congested {
        /// The stream.
        stream: Stream,
        /// Whether it does.
        pauses: bool,
    },
    /// `mpjrun` is about to be suspended, or goes on: meanwhile it gives no sign of life.
    Suspended {
        /// Whether it is.
        suspended: bool,
    },
    /// A sign of life.
    Alive,
    /// Say whether the ranks have been still since [`News::Still`].
    Confirm {
        /// The number of the round.
        round: u64,
    },
    /// Look at the ranks, and tell what was [`News::Seen`].
    Look {
        /// The number of the look.
        number: u64,
        /// Whether the ranks are asked for their queues after that.
        asks: bool,
    },
}

/// What an agent tells `mpjrun`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum News {
    /// The agent is there, on a host that calls itself so.
    Hello {
        /// The name.
        host: String,
    },
    /// The job can start here.
    Ready,
    /// The job cannot start, or not go on, here.
    Refused {
        /// Why not.
        reason: String,
        /// The exit code that follows.
        code: u8,
    },
    /// The ranks of this host have been started; only the first ones, if one has failed meanwhile.
    Started {
        /// Their processes.
        pids: Vec<u32>,
        /// Notes for the user.
        notes: Vec<String>,
    },
    /// A rank has printed something.
    Output {
        /// The rank.
        task: TaskId,
        /// Where.
        stream: Stream,
        /// What.
        bytes: Vec<u8>,
    },
    /// A rank prints no more.
    OutputEnded {
        /// The rank.
        task: TaskId,
        /// The stream that has ended.
        stream: Stream,
    },
    /// A rank has sent a control message.
    Message {
        /// The rank.
        task: TaskId,
        /// The message.
        message: ControlMessage,
    },
    /// A rank has sent a damaged control message, the first one.
    Damaged {
        /// The rank.
        task: TaskId,
        /// What is wrong with it.
        damage: String,
    },
    /// A rank's control line has ended.
    LineClosed {
        /// The rank.
        task: TaskId,
    },
    /// The program has ended that a rank's script started.
    ProgramEnded {
        /// The rank.
        task: TaskId,
        /// When, by the clock of its host.
        at_nanos: u64,
    },
    /// A rank's process has ended. What it printed on standard error before has been told.
    Ended {
        /// The rank.
        task: TaskId,
        /// How.
        ending: Ending,
        /// When, by the clock of its host.
        at_nanos: u64,
    },
    /// Nothing more will come from a rank.
    Gone {
        /// The rank.
        task: TaskId,
    },
    /// The input that was sent last has been passed on, and more may come; or no more will be taken.
    InputTaken {
        /// Whether the rank still reads.
        takes_more: bool,
    },
    /// The host is out of reach. No agent tells this: `mpjrun` notices it.
    Lost {
        /// The place of the host.
        host: u32,
        /// Why.
        reason: String,
    },
    /// All ranks are gone.
    Over {
        /// Daemons of ranks that were ended.
        daemons: Vec<String>,
    },
    /// A sign of life.
    Alive,
    /// The ranks of this host wait, and none of them can go on unless something comes from another host.
    Still {
        /// The place of the host. `mpjrun` knows it by the line.
        host: u32,
        /// Frames that they have sent to other hosts, wrapping.
        sent: u64,
        /// Frames that they have received from other hosts, wrapping.
        received: u64,
    },
    /// The answer to [`Order::Confirm`].
    HasBeenStill {
        /// The place of the host. `mpjrun` knows it by the line.
        host: u32,
        /// The number of the round.
        round: u64,
        /// Whether the ranks have been still since the agent said so last.
        still: bool,
    },
    /// What a rank did at a look.
    Seen {
        /// The rank.
        task: TaskId,
        /// The number of the look.
        number: u64,
        /// When, by the clock of its host.
        at_nanos: u64,
        /// What was seen.
        seen: Box<Observed>,
    },
}
