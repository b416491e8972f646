//! What blocked ranks wait for: the types in which ranks describe it to the launcher.
//!
//! A thread that goes to sleep in a call publishes a [`Wait`] in the job segment. A rank that is asked for its queues
//! sends them over the control line. Calls and spaces are numbers that only the client of the transport understands; it
//! tells the launcher their names. Everything read from the segment is untrusted.

use std::cell::Cell;
use std::ffi::CString;

use rustix::thread::{gettid, set_name};

/// Returns the name that marks thread `thread` as one that never communicates: a rank may be in deadlock although such
/// a thread runs. It must not start threads that communicate either. The name contains the thread's number because new
/// threads inherit the name of the thread that starts them, and may be older than the mark. The runtime's own thread
/// has such a name.
pub fn bystander_name(thread: i32) -> String {
    format!("mpj-by-{thread}")
}

/// Names this thread so ([`bystander_name`]). If the system refuses the name, the thread counts as one that may
/// communicate.
pub(crate) fn become_bystander() {
    let name = bystander_name(gettid().as_raw_nonzero().get());
    let name = CString::new(name).expect("a number has no zero bytes");
    let _ = set_name(&name);
}

/// The call in which a thread is blocked, as a number that the client of the transport chooses. What the numbers mean,
/// a rank tells the launcher by its [`Vocabulary`](crate::bootstrap::control::Vocabulary).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct CallCode(pub u16);

impl CallCode {
    /// No call that has a name.
    pub const NONE: Self = Self(0);
    /// The call in which a client joins the job, beside others of its process. Clients give no such code.
    pub const JOIN: Self = Self(u16::MAX - 1);
}

/// A space in which messages match: no message of one space matches a receive of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Space {
    /// The number of the task's context. The launcher's view of the job fills it in.
    pub context: u32,
    /// The number by which the client tells its spaces apart.
    pub id: u32,
    /// The number by which reports name it. All tasks belong to the space with the number 0.
    pub label: Option<u32>,
    /// Whether its messages belong to collective operations, whose tags the program does not know.
    pub is_collective: bool,
}

/// The progress of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum Phase {
    /// Unknown.
    #[default]
    Unknown,
    /// A receive for which no message has arrived.
    Unmatched,
    /// A probe for which no message has arrived.
    Sought,
    /// A receive that has matched an eager message whose data are arriving.
    Arriving,
    /// A receive that has matched a rendezvous message and fetches its data.
    Fetching,
    /// A send whose data wait for room at the receiver.
    Leaving,
    /// A send by rendezvous whose data the receiver has not fetched yet; its envelope may still wait for room.
    Offered,
    /// A synchronous send whose message has not been matched by a receive.
    Unanswered,
    /// A rank at its end, which other ranks have not reached yet.
    Others,
}

/// The call in which one thread of a rank is blocked, and what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wait {
    /// The call.
    pub call: CallCode,
    /// The collective operation that the thread waits for. For a blocking one this equals `call`. In a space that is
    /// not for collective operations, what the peer is to do, and the tag is its number there. [`CallCode::NONE`] for
    /// messages between two ranks.
    pub operation: CallCode,
    /// For a call that waits for operations that were started before, how many of them are incomplete; the fields below
    /// describe the first of them.
    pub open: u32,
    /// Whether that operation sends.
    pub sends: bool,
    /// The other end; `None` stands for any rank, or all of them.
    pub peer: Option<u32>,
    /// The tag; `None` stands for any. In a collective operation, its number in the space: see [`goes_before`].
    pub tag: Option<i32>,
    /// Where its messages match.
    pub space: Space,
    /// Length of the buffer in bytes.
    pub bytes: u64,
    /// The progress of the operation.
    pub phase: Phase,
    /// Whether this is the end of the rank's part in the job, where it waits for all others to get there.
    pub at_end: bool,
    /// Whether, at that end, no other thread of the rank has access to the library any more.
    pub alone: bool,
    /// Whether the thread is unwinding from a panic.
    pub unwinding: bool,
    /// When the thread blocked, by [`crate::bootstrap::monotonic_nanos`].
    pub since: u64,
    /// The number of the thread in its PID namespace; 0 if unknown.
    pub thread: u32,
}

/// The published state of one rank. All of it is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    /// The rank's process; 0 before it has attached to the segment.
    pub pid: u32,
    /// Whether that number denotes the same process here, that is, in the same PID namespace.
    pub is_here: bool,
    /// Grows whenever a thread of the rank starts or stops sleeping, offers something to another host, or takes in an
    /// event from there, and whenever a client of the rank joins. It is the sum of counts, each of which only grows: equal
    /// sums at two times mean that nothing has changed.
    pub epoch: u64,
    /// Usually changes when the rank receives messages. Also a sum over the contexts.
    pub moves: u64,
    /// The blocked threads, context by context, at most [`TaskState::LISTED`] for each.
    pub blocked: Vec<Blocked>,
    /// Number of further blocked threads.
    pub unlisted: u32,
    /// Frames for other hosts and operations there that the network has taken from the rank, wrapping.
    pub sent: u64,
    /// Frames from other hosts, and ends of such operations, that the rank has taken in, wrapping.
    pub received: u64,
    /// Number of contexts that clients of the rank use, or have used.
    pub contexts: usize,
}

/// How many numbers the collective calls in a space have before they start again at 0.
pub const CALL_NUMBERS: u32 = 1 << 30;

/// Returns whether collective call `one` of a space precedes call `other`. Numbers start at 0 and are counted modulo
/// [`CALL_NUMBERS`]; the current numbers of the ranks are close to each other.
pub fn goes_before(one: i32, other: i32) -> bool {
    let distance = other.wrapping_sub(one) as u32 % CALL_NUMBERS;
    (1..CALL_NUMBERS / 2).contains(&distance)
}

impl Phase {
    /// All phases, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Unknown,
        Self::Unmatched,
        Self::Sought,
        Self::Arriving,
        Self::Fetching,
        Self::Leaving,
        Self::Offered,
        Self::Unanswered,
        Self::Others,
    ];
}

impl TaskState {
    /// Most blocked threads that are published for each context of a rank.
    pub const LISTED: usize = 7;

    /// Returns whether the rank has attached to the segment.
    pub fn is_there(&self) -> bool {
        self.pid != 0
    }
}

/// A blocked thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// What the thread waits for.
    pub wait: Wait,
    /// Whether nobody has rung the bell since the thread last polled for messages.
    pub undisturbed: bool,
    /// Whether the wait has ended with an error; it stays published.
    pub failed: bool,
    /// How many times the thread has polled for messages in vain while asleep.
    pub looks: u32,
}

/// A call that consists of other calls: its code, and what kind of call it is in the upper half. A collective call
/// stores two of these, so each is one word, which is loaded as it was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Outer(u32);

impl Outer {
    /// There is no such call.
    const NONE: Self = Self(0);
    const PLAIN: u32 = 1 << 16;
    const COLLECTIVE: u32 = 2 << 16;
    /// The end of the rank's part in the job (see [`Within::end`]).
    const END: u32 = 3 << 16;
    /// The same, without other threads.
    const END_ALONE: u32 = 4 << 16;

    #[inline]
    fn new(call: CallCode, kind: u32) -> Self {
        Self(kind | u32::from(call.0))
    }
}

/// The call that a thread is in, if it differs from the call that waits.
struct Calling {
    call: Cell<Outer>,
    /// For a collective call: the id of the space of its messages, and its number there in the lower half.
    collective: Cell<u64>,
}

thread_local! {
    static CALLING: Calling =
        const { Calling { call: Cell::new(Outer::NONE), collective: Cell::new(0) } };
}

/// Marks this thread as being in a call that consists of other calls. Until this value is dropped, waits of the thread
/// are published under the name of that call.
#[must_use = "the call ends when this is dropped"]
pub struct Within {
    before: (Outer, u64),
}

impl Within {
    /// Begins a call.
    pub fn call(call: impl Into<CallCode>) -> Self {
        Self::begin(call.into(), Outer::PLAIN, 0)
    }

    /// Begins a collective call with this number in its space (see [`goes_before`]). The number is published instead of
    /// the tags of its messages, which are in the space with this id.
    #[inline]
    pub fn collective(call: impl Into<CallCode>, space: u32, number: i32) -> Self {
        let collective = u64::from(space) << 32 | u64::from(number as u32);
        Self::begin(call.into(), Outer::COLLECTIVE, collective)
    }

    /// Begins the call in which this rank leaves the job. `alone` means that no other thread has access to the library
    /// any more. Such threads then do not prevent the job from being in deadlock, whatever they do.
    pub fn end(call: impl Into<CallCode>, alone: bool) -> Self {
        let kind = if alone { Outer::END_ALONE } else { Outer::END };
        Self::begin(call.into(), kind, 0)
    }

    /// Begins a function of the program that runs inside of a call: its waits are its own, and not those of the call.
    pub fn function() -> Self {
        Self::begin(CallCode::NONE, 0, 0)
    }

    #[inline]
    fn begin(call: CallCode, kind: u32, collective: u64) -> Self {
        let outer = Outer::new(call, kind);
        CALLING.with(|calling| Self {
            before: (calling.call.replace(outer), calling.collective.replace(collective)),
        })
    }

    /// Describes `wait` as one of the call that this thread is in, if any.
    pub(crate) fn describe(wait: &mut Wait) {
        let (outer, word) = CALLING.with(|calling| (calling.call.get(), calling.collective.get()));
        if outer == Outer::NONE {
            return;
        }
        let (call, kind) = (CallCode(outer.0 as u16), outer.0 & !0xFFFF);
        (wait.call, wait.open) = (call, 0);
        match kind {
            // The call may run a function of the program, which waits for something else.
            Outer::COLLECTIVE if wait.space.id == (word >> 32) as u32 => {
                (wait.operation, wait.tag) = (call, Some(word as i32));
            }
            Outer::END | Outer::END_ALONE => {
                (wait.at_end, wait.alone) = (true, kind == Outer::END_ALONE);
            }
            _ => {}
        }
    }
}

impl Drop for Within {
    #[inline]
    fn drop(&mut self) {
        CALLING.with(|calling| {
            calling.call.set(self.before.0);
            calling.collective.set(self.before.1);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_described_as_one_of_the_call_that_the_thread_is_in() {
        let describe = |id, open| {
            let space = Space { id, ..Space::default() };
            let mut wait =
                Wait { call: CallCode(9), open, space, tag: Some(-1), ..Wait::default() };
            Within::describe(&mut wait);
            wait
        };
        assert_eq!((describe(4, 2).call, describe(4, 2).open), (CallCode(9), 2));
        let end = Within::end(CallCode(1), true);
        assert!(describe(4, 2).at_end && describe(4, 2).alone);
        {
            let _collective = Within::collective(CallCode(2), 4, 7);
            let (own, other) = (describe(4, 2), describe(5, 2));
            assert_eq!((own.call, own.operation, own.tag), (CallCode(2), CallCode(2), Some(7)));
            assert_eq!((other.operation, other.tag), (CallCode::NONE, Some(-1)));
            assert_eq!((other.call, other.open, other.at_end), (CallCode(2), 0, false));
            let _plain = Within::call(CallCode(3));
            assert_eq!((describe(4, 2).call, describe(4, 2).tag), (CallCode(3), Some(-1)));
        }
        assert_eq!((describe(4, 2).call, describe(4, 2).at_end), (CallCode(1), true));
        {
            let _function = Within::function();
            assert_eq!((describe(4, 2).call, describe(4, 2).at_end), (CallCode(9), false));
        }
        assert!(describe(4, 2).at_end);
        drop(end);
        assert_eq!(describe(4, 2).call, CallCode(9));
    }

    #[test]
    fn numbers_of_calls_begin_again_at_0() {
        let last = (CALL_NUMBERS - 1) as i32;
        for (one, other) in [(0, 1), (16, 40), (last, 0), (last - 3, 5)] {
            assert!(goes_before(one, other) && !goes_before(other, one), "{one} {other}");
        }
        assert!(!goes_before(7, 7));
        // Untrusted values.
        assert!(!goes_before(i32::MIN, i32::MIN) && !goes_before(-1, -1));
    }
}
