//! The codes of returned messages: why a message came back, and what kind of message it was. The packet codec writes
//! them, and handler 0 of an endpoint gets them.

/// Why a message was returned to its sender. The discriminants are AM-2's codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// EBADARGS: the arguments do not match the number that the message announces.
    BadArgs = 1,
    /// EBADENTRY: the translation index is not bound. This library reports that by [`Unmapped`](crate::Error::Unmapped), so it sends
    /// this status never; another implementation may.
    BadEntry = 2,
    /// EBADTAG: the endpoint's tag is [`crate::Tag::NONE`], or another one than that of the message.
    BadTag = 3,
    /// EBADHANDLER: the handler that the message names is not registered at the endpoint.
    BadHandler = 4,
    /// EBADSEGOFF: a long message, but the endpoint has no segment.
    BadSegmentOffset = 5,
    /// EBADLENGTH: the payload is longer than the limit or ends behind the segment, or a short message carries one.
    BadLength = 6,
    /// EBADENDPOINT: the sender is not in the endpoint's translation table.
    BadEndpoint = 7,
    /// ECONGESTION: [`crate::MAX_OUTSTANDING`] requests of the sender wait at the endpoint already.
    Congestion = 8,
    /// EUNREACHABLE: the endpoint does not exist, was freed, or its task is lost.
    Unreachable = 9,
    /// EREPLYREJECTED: the endpoint that made the request refused this reply.
    ReplyRejected = 10,
}

impl Status {
    /// Every status, in the order of the codes.
    pub const ALL: [Self; 10] = [
        Self::BadArgs,
        Self::BadEntry,
        Self::BadTag,
        Self::BadHandler,
        Self::BadSegmentOffset,
        Self::BadLength,
        Self::BadEndpoint,
        Self::Congestion,
        Self::Unreachable,
        Self::ReplyRejected,
    ];

    /// Returns the status with an AM-2 code, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code.wrapping_sub(1))).copied()
    }

    /// Returns AM-2's name of the status.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadArgs => "EBADARGS",
            Self::BadEntry => "EBADENTRY",
            Self::BadTag => "EBADTAG",
            Self::BadHandler => "EBADHANDLER",
            Self::BadSegmentOffset => "EBADSEGOFF",
            Self::BadLength => "EBADLENGTH",
            Self::BadEndpoint => "EBADENDPOINT",
            Self::Congestion => "ECONGESTION",
            Self::Unreachable => "EUNREACHABLE",
            Self::ReplyRejected => "EREPLYREJECTED",
        }
    }

    /// Returns what the sender can do about it.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::BadArgs => "the message was damaged on its way or made by another program",
            Self::BadEntry => "map the index before the first request",
            Self::BadTag => {
                "give the receiver the tag of the translation, with set_tag before a barrier"
            }
            Self::BadHandler => "set the handler at the receiver before a barrier",
            Self::BadSegmentOffset => "set a segment at the receiver before a barrier",
            Self::BadLength => "send fewer bytes, or make the receiver's segment larger",
            Self::BadEndpoint => "map the sender at the receiver",
            Self::Congestion => "the receiver does not poll; let it poll",
            Self::Unreachable => "check that the receiver exists until all messages were handled",
            Self::ReplyRejected => {
                "check handler, tag and segment at the endpoint that made the request"
            }
        }
    }
}

/// What kind of message was returned. The discriminants are AM-2's codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// REQUEST_M: a short request.
    RequestShort = 1,
    /// REQUEST_IM: a medium request.
    RequestMedium = 2,
    /// REQUEST_XFER_M: a long request.
    RequestLong = 3,
    /// REPLY_M: a short reply.
    ReplyShort = 4,
    /// REPLY_IM: a medium reply.
    ReplyMedium = 5,
    /// REPLY_XFER_M: a long reply.
    ReplyLong = 6,
}

/// The three shapes of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Short,
    Medium,
    Long,
}

impl Opcode {
    /// Every opcode, in the order of the codes.
    pub const ALL: [Self; 6] = [
        Self::RequestShort,
        Self::RequestMedium,
        Self::RequestLong,
        Self::ReplyShort,
        Self::ReplyMedium,
        Self::ReplyLong,
    ];

    /// Returns the opcode with an AM-2 code, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code.wrapping_sub(1))).copied()
    }

    /// Returns whether this is a request.
    pub fn is_request(self) -> bool {
        matches!(self, Self::RequestShort | Self::RequestMedium | Self::RequestLong)
    }

    /// Returns AM-2's name of the opcode.
    pub fn name(self) -> &'static str {
        match self {
            Self::RequestShort => "REQUEST_M",
            Self::RequestMedium => "REQUEST_IM",
            Self::RequestLong => "REQUEST_XFER_M",
            Self::ReplyShort => "REPLY_M",
            Self::ReplyMedium => "REPLY_IM",
            Self::ReplyLong => "REPLY_XFER_M",
        }
    }

    pub(crate) fn request(shape: Shape) -> Self {
        match shape {
            Shape::Short => Self::RequestShort,
            Shape::Medium => Self::RequestMedium,
            Shape::Long => Self::RequestLong,
        }
    }

    pub(crate) fn reply(shape: Shape) -> Self {
        match shape {
            Shape::Short => Self::ReplyShort,
            Shape::Medium => Self::ReplyMedium,
            Shape::Long => Self::ReplyLong,
        }
    }

    pub(crate) fn shape(self) -> Shape {
        match self {
            Self::RequestShort | Self::ReplyShort => Shape::Short,
            Self::RequestMedium | Self::ReplyMedium => Shape::Medium,
            Self::RequestLong | Self::ReplyLong => Shape::Long,
        }
    }
}
