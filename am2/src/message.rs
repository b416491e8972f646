//! What handlers get: the message, and the token that names it.

use transport_lapi::TaskId;

use crate::error::Error;
use crate::name::{Endpoint, EndpointName, Tag};
use crate::packet::Args;
use crate::status::{Opcode, Shape, Status};
use crate::{MAX_LONG, MAX_MEDIUM, MAX_SHORT};

/// The payload of a message.
#[derive(Debug)]
pub enum Payload<'a> {
    /// A short message has none.
    Short,
    /// The payload of a medium message, in a buffer of the library that is aligned to 8 bytes.
    Medium(&'a [u8]),
    /// The payload of a long message, in the endpoint's segment, where it stays.
    Long {
        /// Where in the segment it begins, in bytes.
        offset: usize,
        /// The bytes.
        bytes: &'a mut [u8],
    },
}

impl Payload<'_> {
    /// Returns the bytes; none for a short message.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Short => &[],
            Self::Medium(bytes) => bytes,
            Self::Long { bytes, .. } => bytes,
        }
    }
}

/// A request or a reply, borrowed for the call of its handler.
#[derive(Debug)]
pub struct Message<'a> {
    /// The arguments, 0 to [`MAX_SHORT`].
    pub args: &'a [u32],
    /// The payload.
    pub payload: Payload<'a>,
}

/// A message that its receiver has refused, for handler 0 of the endpoint that sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returned {
    /// Why it was refused.
    pub status: Status,
    /// What kind of message it was.
    pub opcode: Opcode,
    /// The handler that it named.
    pub handler: u8,
}

/// What a reply consists of, without its contents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplyHead {
    pub shape: Shape,
    pub handler: u8,
    pub offset: u64,
}

/// A reply that waits for the end of its handler, with contents of its own.
#[derive(Debug)]
pub(crate) struct Reply {
    pub head: ReplyHead,
    pub args: Args,
    pub payload: Vec<u8>,
}

/// What sends the reply to a request, or keeps it until the handler returns.
pub(crate) trait Replier {
    /// Whether there was a reply already.
    fn has_replied(&self) -> bool;

    /// Replies. The arguments and the handler were checked.
    fn reply(&mut self, head: ReplyHead, payload: &[u8], args: &[u32]);
}

impl std::fmt::Debug for dyn Replier + '_ {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(if self.has_replied() { "replied" } else { "not replied" })
    }
}

/// Names the message that is being handled (`token`). It lives as long as the call of the handler:
///
/// ```compile_fail,E0521
/// use std::sync::Mutex;
/// use am2::Token;
///
/// static KEPT: Mutex<Vec<&'static Token<'static>>> = Mutex::new(Vec::new());
/// let handler = |token: &mut Token<'_>, _: am2::Message<'_>| {
///     KEPT.lock().unwrap().push(token);
/// };
/// ```
///
/// The payload does not outlive the call either:
///
/// ```compile_fail,E0521
/// use std::sync::Mutex;
/// use am2::{Message, Token};
///
/// static KEPT: Mutex<Vec<&'static [u32]>> = Mutex::new(Vec::new());
/// let handler = |_: &mut Token<'_>, message: Message<'_>| {
///     KEPT.lock().unwrap().push(message.args);
/// };
/// ```
///
/// A reply is sent in the call, except those to long messages and to the endpoint itself, which are copied in the call
/// and sent when the handler returns. So the payload can be changed at once.
#[derive(Debug)]
pub struct Token<'a> {
    /// This task.
    pub(crate) task: TaskId,
    pub(crate) source: EndpointName,
    pub(crate) dest: Endpoint,
    pub(crate) tag: Tag,
    /// Where the reply goes; `None` for a message that is no request.
    pub(crate) reply: Option<&'a mut dyn Replier>,
}

impl Token<'_> {
    /// Returns the endpoint that sent the message (AM_GetSourceEndpoint).
    pub fn source(&self) -> EndpointName {
        self.source
    }

    /// Returns the endpoint that received it (AM_GetDestEndpoint).
    pub fn dest(&self) -> Endpoint {
        self.dest
    }

    /// Returns the tag that it carries (AM_GetMsgTag).
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Replies with a short message (AM_ReplyM).
    ///
    /// # Errors
    /// [`Error::TooManyArgs`], [`Error::HandlerZero`], [`Error::NotARequest`], [`Error::SecondReply`].
    pub fn reply_short(&mut self, handler: u8, args: &[u32]) -> Result<(), Error> {
        self.reply(Shape::Short, handler, 0, &[], args)
    }

    /// Replies with a medium message (AM_ReplyIM).
    ///
    /// # Errors
    /// [`Error::PayloadLen`] for more than [`MAX_MEDIUM`] bytes; those of [`Token::reply_short`].
    pub fn reply_medium(&mut self, handler: u8, payload: &[u8], args: &[u32]) -> Result<(), Error> {
        check_len(self.task, payload.len(), MAX_MEDIUM)?;
        self.reply(Shape::Medium, handler, 0, payload, args)
    }

    /// Replies with a long message, which is stored in the segment of the endpoint that made the request, from byte
    /// `offset` on (AM_ReplyXferM).
    ///
    /// # Errors
    /// [`Error::PayloadLen`] for more than [`MAX_LONG`] bytes; those of [`Token::reply_short`].
    pub fn reply_long(
        &mut self,
        handler: u8,
        offset: usize,
        payload: &[u8],
        args: &[u32],
    ) -> Result<(), Error> {
        check_len(self.task, payload.len(), MAX_LONG)?;
        self.reply(Shape::Long, handler, offset as u64, payload, args)
    }

    fn reply(
        &mut self,
        shape: Shape,
        handler: u8,
        offset: u64,
        payload: &[u8],
        args: &[u32],
    ) -> Result<(), Error> {
        let (task, source_name) = (self.task, self.source);
        let reply = self.reply.as_mut().ok_or(Error::NotARequest { task, source_name })?;
        if reply.has_replied() {
            return Err(Error::SecondReply { task, source_name });
        }
        check_args(task, args)?;
        check_handler(task, handler)?;
        reply.reply(ReplyHead { shape, handler, offset }, payload, args);
        Ok(())
    }
}

/// Checks the number of arguments of a call.
pub(crate) fn check_args(task: TaskId, args: &[u32]) -> Result<(), Error> {
    let count = args.len();
    if count > MAX_SHORT { Err(Error::TooManyArgs { task, count }) } else { Ok(()) }
}

/// Checks the length of a payload.
pub(crate) fn check_len(task: TaskId, len: usize, max: usize) -> Result<(), Error> {
    if len > max { Err(Error::PayloadLen { task, len, max }) } else { Ok(()) }
}

/// Checks that a message does not name handler 0.
pub(crate) fn check_handler(task: TaskId, handler: u8) -> Result<(), Error> {
    if handler == 0 { Err(Error::HandlerZero { task }) } else { Ok(()) }
}
