//! What MPI allows: the history of a run is held against the rules, knowing nothing of queues.
//!
//! Which of several messages a wildcard gets is decided by the order of arrival, which a history
//! does not show. So the rules are checked pair by pair:
//!
//! - OR1: every message is received once, by a receive of its destination and context that asks for
//!   its source and tag, and with its length.
//! - OR2: of two messages of one source to one destination and context that both fit a receive, it
//!   does not get the later one unless the earlier one has gone to a receive posted before.
//! - OR3: of two receives that a message fits, the later one does not get it unless the earlier one
//!   has got another message before, or was cancelled before.
//! - OR4: a send in synchronous mode does not end before its receive was posted.

use mpjdev::Status;

/// What was called and what it said. Messages and receives are in the order of their calls.
#[derive(Debug, Default)]
pub struct History {
    /// The step that is under way.
    pub step: usize,
    /// The messages.
    pub sent: Vec<Sent>,
    /// The receives.
    pub receives: Vec<Receive>,
}

/// A message.
#[derive(Debug, Clone)]
pub struct Sent {
    /// Who sent it.
    pub source: usize,
    /// To whom.
    pub dest: usize,
    /// In which context.
    pub context: u32,
    /// With which tag.
    pub tag: i32,
    /// How long it is.
    pub len: usize,
    /// Whether the send ends only with the match.
    pub synchronous: bool,
    /// The step in which the send was reported to have ended.
    pub ended: Option<usize>,
}

/// A receive, or a matched probe and the receive of what it took.
#[derive(Debug, Clone)]
pub struct Receive {
    /// Who receives.
    pub rank: usize,
    /// In which context.
    pub context: u32,
    /// From whom, if not from any.
    pub source: Option<usize>,
    /// With which tag, if not any.
    pub tag: Option<i32>,
    /// The step of the call.
    pub posted: usize,
    /// The step in which it was cancelled.
    pub cancelled: Option<usize>,
    /// Its end.
    pub ended: Option<Ended>,
}

/// The end of a receive.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The step in which it was reported.
    pub step: usize,
    /// What was reported.
    pub status: Status,
    /// The message that the bytes say it is; messages without bytes say nothing.
    pub number: Option<usize>,
}

impl Receive {
    /// A receive that has not begun.
    pub fn new(rank: usize, context: u32, source: Option<usize>, tag: Option<i32>) -> Self {
        Self { rank, context, source, tag, posted: 0, cancelled: None, ended: None }
    }

    fn fits(&self, message: &Sent) -> bool {
        self.rank == message.dest
            && self.context == message.context
            && self.source.unwrap_or(message.source) == message.source
            && self.tag.unwrap_or(message.tag) == message.tag
    }

    fn has_received(&self) -> bool {
        self.ended.as_ref().is_some_and(|ended| !ended.status.cancelled)
    }
}

impl Sent {
    fn is(&self, status: Status) -> bool {
        (self.source, self.tag, self.len) == (status.source as usize, status.tag, status.bytes)
    }
}

impl History {
    /// Whether there may be a message that a probe says there is.
    pub fn may_be_probed(&self, asked: &Receive, status: Status) -> bool {
        let alike = |message: &&Sent| asked.fits(message) && message.is(status);
        let taken = |receive: &&Receive| {
            let same = (receive.rank, receive.context) == (asked.rank, asked.context);
            same && receive.ended.as_ref().is_some_and(|ended| ended.status == status)
        };
        self.sent.iter().filter(alike).count() > self.receives.iter().filter(taken).count()
    }

    /// Whether every send was reported to have ended.
    pub fn all_sends_ended(&self) -> bool {
        self.sent.iter().all(|message| message.ended.is_some())
    }

    /// Whether as many messages were received as sent.
    pub fn all_messages_received(&self) -> bool {
        self.receives.iter().filter(|receive| receive.has_received()).count() == self.sent.len()
    }
}

/// The receive of every message, as far as it is known.
type Pairing = Vec<Option<usize>>;

/// Holds a history of a job that has come to rest against the rules.
///
/// # Errors
/// The first rule that was broken, and by what.
pub fn verify(history: &History) -> Result<(), String> {
    let pairing = pair(history)?;
    for (number, receive) in pairing.iter().enumerate() {
        let Some(receive) = *receive else {
            return Err(format!("message {number} was lost: {:?}", history.sent[number]));
        };
        message_order(history, &pairing, number, receive)?;
        receive_order(history, number, receive)?;
        synchronous_end(history, number, receive)?;
    }
    Ok(())
}

/// Finds the message of every receive that has one, and no message twice (OR1).
fn pair(history: &History) -> Result<Pairing, String> {
    let mut pairing = vec![None; history.sent.len()];
    for (place, receive) in history.receives.iter().enumerate() {
        let Some(ended) = &receive.ended else {
            return Err(format!("receive {place} has not ended: {receive:?}"));
        };
        if ended.status.cancelled != receive.cancelled.is_some() {
            return Err(format!("receive {place} was cancelled or not: {receive:?}"));
        }
        if ended.status.cancelled {
            continue;
        }
        let number = ended.number.or_else(|| without_bytes(history, &pairing, receive, ended));
        let message = number.and_then(|number| Some((number, history.sent.get(number)?)));
        let Some((number, message)) = message else {
            return Err(format!("receive {place} has a message that nobody sent: {receive:?}"));
        };
        if !receive.fits(message) || !message.is(ended.status) {
            return Err(format!("message {number}, {message:?}, went to {receive:?}"));
        }
        if let Some(other) = pairing[number].replace(place) {
            return Err(format!("message {number} went to receives {other} and {place}"));
        }
    }
    Ok(pairing)
}

/// The message of a receive whose message has no bytes to tell: the earliest that it may be. Among
/// messages that are alike, the order of the receives is that of the messages, unless a rule is
/// broken in a way that only bytes would show.
fn without_bytes(
    history: &History,
    pairing: &[Option<usize>],
    receive: &Receive,
    ended: &Ended,
) -> Option<usize> {
    history.sent.iter().zip(pairing).position(|(message, taken)| {
        taken.is_none() && receive.fits(message) && message.is(ended.status)
    })
}

/// OR2.
fn message_order(
    history: &History,
    pairing: &[Option<usize>],
    number: usize,
    receive: usize,
) -> Result<(), String> {
    for (earlier, before) in history.sent.iter().enumerate().take(number) {
        let same_way = before.source == history.sent[number].source;
        let later_receive = pairing[earlier] > Some(receive);
        if same_way && later_receive && history.receives[receive].fits(before) {
            return Err(format!("message {number} overtook message {earlier} into {receive}"));
        }
    }
    Ok(())
}

/// OR3, as far as it does not follow from OR2: receives that got another message are OR2's.
fn receive_order(history: &History, number: usize, receive: usize) -> Result<(), String> {
    let message = &history.sent[number];
    let seen = history.receives[receive].ended.as_ref().map(|ended| ended.step);
    for (earlier, before) in history.receives.iter().enumerate().take(receive) {
        // Cancelled later than the message was seen elsewhere: it was there when the message came.
        if before.cancelled > seen && before.fits(message) {
            return Err(format!("message {number} passed receive {earlier} into {receive}"));
        }
    }
    Ok(())
}

/// OR4.
fn synchronous_end(history: &History, number: usize, receive: usize) -> Result<(), String> {
    let (message, posted) = (&history.sent[number], history.receives[receive].posted);
    match message.ended {
        Some(ended) if message.synchronous && ended < posted => {
            Err(format!("message {number} is synchronous and ended before receive {receive}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
