//! The head of a message of services: what kind it is, and to which call it belongs.
//!
//! Eight bytes: the number of the call, or of units in [`Kind::Credit`], in four bytes, little endian; the kind; the
//! depth of the call; two zeros. The tag of the message is the number of the service.

/// Length of a head in bytes.
pub(super) const HEAD: usize = 8;

/// How deep a chain of calls may be. A call from outside of handlers has the depth 0.
pub(super) const DEPTHS: u8 = 16;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A call, which is answered.
    Call,
    /// A call that is not answered.
    Notice,
    /// An answer: what the handler returned.
    Value,
    /// An answer: why the handler refused the call.
    Failed,
    /// An answer: the message of the handler's panic.
    Panicked,
    /// An answer: why the request cannot be read.
    Unreadable,
    /// An answer: there is no such service.
    Unknown,
    /// Credit for notices comes back.
    Credit,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Call,
        Self::Notice,
        Self::Value,
        Self::Failed,
        Self::Panicked,
        Self::Unreadable,
        Self::Unknown,
        Self::Credit,
    ];
}

/// See the head of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub number: u32,
    pub kind: Kind,
    pub depth: u8,
}

impl Head {
    /// Writes the head into the first bytes of a message.
    pub fn write(self, message: &mut [u8]) {
        let (number, rest) = message[..HEAD].split_at_mut(4);
        number.copy_from_slice(&self.number.to_le_bytes());
        rest.copy_from_slice(&[self.kind as u8, self.depth, 0, 0]);
    }

    /// Reads the head of a message from a peer; `None` if it has none.
    pub fn read(message: &[u8]) -> Option<Self> {
        let &[a, b, c, d, kind, depth, 0, 0] = message.first_chunk::<HEAD>()? else { return None };
        let kind = *Kind::ALL.get(usize::from(kind))?;
        let number = u32::from_le_bytes([a, b, c, d]);
        (depth < DEPTHS).then_some(Self { number, kind, depth })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_they_were_written_and_others_are_refused() {
        for (kind, code) in Kind::ALL.into_iter().zip(0..) {
            let head = Head { number: 0x0102_0304, kind, depth: DEPTHS - 1 };
            let mut message = vec![0; HEAD + 1];
            head.write(&mut message);
            assert_eq!((message[4], Head::read(&message)), (code, Some(head)));
            assert_eq!(Head::read(&message[..HEAD - 1]), None);
            for (place, byte) in [(4, Kind::ALL.len() as u8), (5, DEPTHS), (6, 1), (7, 1)] {
                let mut wrong = message.clone();
                wrong[place] = byte;
                assert_eq!(Head::read(&wrong), None);
            }
        }
    }
}
