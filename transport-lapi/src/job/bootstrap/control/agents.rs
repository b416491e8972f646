//! What `mpjrun` and its agents on other hosts tell each other. The lines are those of [`super::line`].
//!
//! An agent does on its host what `mpjrun` does on its own: it starts ranks, reads their pipes and control lines,
//! notices their ends, and ends them. It tells all that as [`News`]. `mpjrun` prints, judges, and sends [`Order`]s.
//!
//! In a job of many hosts, agents start others. Such an agent passes orders on to all agents below it, and their news to
//! the one above. What concerns every host once it tells once for all hosts below it.

use std::rc::Rc;

use bincode::{Decode, Encode};

use super::demand::Answer;
use super::{ControlMessage, Endpoints, Observed};
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
    /// The copy to run, by its place among those of the job; `None` for the file on the host.
    pub copy: Option<u32>,
}

/// A file whose bytes agents get by [`Order::Copy`].
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HostCopy {
    /// Its name, for people.
    pub name: Vec<u8>,
    /// Number of bytes.
    pub len: u64,
    /// Their BLAKE3 hash.
    pub hash: [u8; 32],
}

/// The program that starts an agent on another host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub enum Starter {
    /// OpenSSH's client.
    #[default]
    Ssh,
    /// Slurm's `srun`, inside an allocation.
    Srun,
    /// These words, behind which follow the host, the program and its arguments.
    Command(Vec<String>),
}

/// A job, as all its agents need to know it.
#[derive(Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct HostJob {
    /// The name of the job.
    pub job: String,
    /// The folder that the agent works in.
    pub folder: Vec<u8>,
    /// The programs.
    pub programs: Vec<HostProgram>,
    /// The files that follow the job.
    pub copies: Vec<HostCopy>,
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
    /// The path of `mpjrun` on all hosts.
    pub mpjrun: Vec<u8>,
    /// The most agents that one process starts.
    pub fanout: u32,
    /// How agents are started.
    pub starter: Starter,
    /// The secret that ranks use among themselves.
    pub secret_of_ranks: [u8; 32],
    /// After how many milliseconds without a sign of life the other end of a line counts as lost.
    pub silence: u64,
    /// Microseconds between two looks at the ranks.
    pub looks: u64,
    /// Whether these are for deadlocks, and for jobs that stand still.
    pub finds_deadlocks: bool,
    /// Whether they are for stalls.
    pub finds_stalls: bool,
    /// The most bytes in which each rank records its calls; `None` if none does.
    pub records: Option<u64>,
    /// Whether they keep the newest calls if there are more.
    pub newest: bool,
    /// Whether they also record what calls consist of.
    pub details: bool,
}

impl std::fmt::Debug for HostJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the secret.
        f.debug_struct("HostJob").field("job", &self.job).finish_non_exhaustive()
    }
}

/// Which part of a job is an agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct HostPlace {
    /// Its host.
    pub host: u32,
    /// Number of hosts that follow this one and whose agents its agent starts, directly or by others.
    pub below: u32,
}

/// The ranks of a host that have been started.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct HostStart {
    /// The place of the host.
    pub host: u32,
    /// Their processes; only those of the first ranks, if one has failed meanwhile.
    pub pids: Vec<u32>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// For how long the ranks of a host have paused, until the answer was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Pause {
    /// Nanoseconds without progress of any rank; `None` if none of them has any to make.
    pub stalled: Option<u64>,
    /// Nanoseconds in which no rank has moved or computed; `None` if one could not be looked at.
    pub stood: Option<u64>,
    /// Whether a thread of a rank is asleep in a call.
    pub is_waited: bool,
}

impl Pause {
    /// That of a host whose ranks are all gone.
    pub const OVER: Self = Self { stalled: None, stood: Some(u64::MAX), is_waited: false };
}

/// What an agent is told, by `mpjrun` or by the agent that has started it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Order {
    /// The first order.
    Place {
        /// What is this agent's.
        place: HostPlace,
        /// After how many milliseconds without a sign of life the other end of the line counts as lost.
        silence: u64,
    },
    /// Check this job, and answer [`News::Ready`] or [`News::Refused`].
    Prepare(Rc<HostJob>),
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
    /// Where ranks are found, from `first` on: the addresses of the contexts of a client.
    Addresses {
        /// The first context.
        context: u32,
        /// The first rank.
        first: TaskId,
        /// One entry for each rank.
        addresses: Vec<Vec<Vec<u8>>>,
    },
    /// All addresses of so many contexts have been told.
    AddressesComplete {
        /// Their number.
        contexts: u32,
    },
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
    /// `mpjrun` is about to be suspended, or goes on: meanwhile it gives no sign of life. Not passed on.
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
    /// Say for how long the ranks have paused, by [`News::Paused`].
    AskPause {
        /// The number of the round.
        round: u64,
    },
    /// Look at the ranks, and tell what was [`News::Seen`].
    Look {
        /// The number of the look.
        number: u64,
        /// Whether the ranks are asked for their queues after that.
        asks: bool,
        /// Threads of ranks that have panicked.
        threads: Vec<(TaskId, i32)>,
    },
    /// The next bytes of a file that follows the job.
    Copy {
        /// Its place among those of the job.
        copy: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The answer to the demand of a rank.
    Answer {
        /// The rank.
        task: TaskId,
        /// The answer.
        answer: Answer,
    },
    /// Say at once what the clock of the records shows, by [`News::Clock`].
    AskClock {
        /// The place of the host that is asked.
        host: u32,
        /// The number of the question.
        round: u64,
    },
    /// Send what the ranks have recorded, by [`News::Records`].
    SendRecords,
}

/// What an agent tells.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum News {
    /// The agent is there, on a host that calls itself so.
    Hello {
        /// The name.
        host: String,
    },
    /// The job can start here, and on all hosts below.
    Ready,
    /// The job cannot start, or not go on, on a host.
    Refused {
        /// The place of the host.
        host: u32,
        /// Why not.
        reason: String,
        /// The exit code that follows.
        code: u8,
    },
    /// The ranks of this host and of all hosts below have been started.
    Started {
        /// Those of each host.
        hosts: Vec<HostStart>,
        /// Whether another message tells of more hosts.
        more: bool,
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
    /// A host is out of reach, with those below it. The agent above it notices that, or `mpjrun`.
    Lost {
        /// The place of the host.
        host: u32,
        /// Number of hosts below it, which follow it.
        below: u32,
        /// Why.
        reason: String,
    },
    /// All ranks of this host and of all hosts below are gone.
    Over {
        /// Daemons of ranks that were ended, with their hosts.
        daemons: Vec<String>,
    },
    /// A sign of life.
    Alive,
    /// The ranks of this host wait, and none of them can go on unless something comes from another host.
    Still {
        /// The place of the host.
        host: u32,
        /// Frames that they have sent to other hosts, wrapping.
        sent: u64,
        /// Frames that they have received from other hosts, wrapping.
        received: u64,
    },
    /// The answer to [`Order::Confirm`].
    HasBeenStill {
        /// The place of the host.
        host: u32,
        /// The number of the round.
        round: u64,
        /// Whether the ranks have been still since the agent said so last.
        still: bool,
    },
    /// The answer to [`Order::AskPause`].
    Paused {
        /// The place of the host.
        host: u32,
        /// The number of the round.
        round: u64,
        /// For how long.
        pause: Pause,
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
    /// Where a client of the ranks of this host and of hosts below is found. Told when all of them have said it.
    Addresses {
        /// Each rank, with its network and the addresses of the client's contexts.
        addresses: Vec<(TaskId, Endpoints)>,
    },
    /// The answer to [`Order::AskClock`].
    Clock {
        /// The place of the host.
        host: u32,
        /// The number of the question.
        round: u64,
        /// What the clock of the records shows.
        ticks: u64,
        /// Whether that is the counter of the processors; otherwise it is the clock of the system.
        is_counter: bool,
    },
    /// A part of the memory in which a rank has recorded its calls. Parts that nobody tells are 0.
    Records {
        /// The rank. All parts of one are told before those of another one of its host.
        task: TaskId,
        /// Where in the memory it begins.
        at: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// All that the ranks of this host have recorded was told.
    RecordsTold {
        /// The place of the host.
        host: u32,
    },
}
