//! The target's part of one-sided operations: the requests of other tasks. All of them are claims: a request for memory
//! that is not registered for it is refused, and nothing is written.

pub(crate) mod request;
pub(crate) mod vector;

use request::Request;
use vector::Vector;

use crate::adapter::TaskId;
use crate::error::{End, LapiError, Violation};
use crate::memory::body::Sink;
use crate::memory::region::ForeignBytes;
use crate::progress::amsend::Outgoing;
use crate::progress::engine::Engine;
use crate::wire::Packet;

/// Where the data of a request goes.
pub(crate) struct Destination {
    pub into: Sink,
    /// The registration whose memory this is.
    pub key: u64,
}

/// The words of the vectors that origins have sent ahead, by origin.
#[derive(Default)]
pub(crate) struct Ahead {
    words: Vec<Vec<u64>>,
}

impl Ahead {
    /// Appends what has arrived. Returns whether it can be a part of a vector.
    fn add(&mut self, origin: TaskId, is_first: bool, data: ForeignBytes<'_>) -> bool {
        let origin = origin as usize;
        if self.words.len() <= origin {
            self.words.resize_with(origin + 1, Vec::new);
        }
        let words = &mut self.words[origin];
        if is_first {
            words.clear();
        }
        let fits = data.len() % 8 == 0 && words.len() + data.len() / 8 <= Vector::MAX_WORDS;
        if fits {
            let bytes = data.to_vec();
            let word = |chunk: &[u8]| u64::from_le_bytes(chunk.try_into().unwrap_or_default());
            words.extend(bytes.chunks_exact(8).map(word));
        } else {
            words.clear();
        }
        fits
    }

    /// Forgets what a lost task has sent ahead.
    pub fn forget(&mut self, lost: TaskId) {
        if let Some(words) = self.words.get_mut(lost as usize) {
            *words = Vec::new();
        }
    }

    /// Takes the vector that the origin has sent ahead.
    fn take(&mut self, origin: TaskId) -> Option<Vector> {
        let words = self.words.get_mut(origin as usize).map(std::mem::take)?;
        Vector::from_words(&words)
    }
}

impl<S> Engine<S> {
    /// Handles the user header of a request, whose data has `len` bytes. `data` is all of it, if it came in one packet.
    /// Returns where the data goes; `None` if it is not stored.
    pub(crate) fn request(
        &mut self,
        origin: TaskId,
        uhdr: &[u8],
        len: u64,
        data: Option<ForeignBytes<'_>>,
    ) -> Result<Option<Destination>, LapiError> {
        let peer = |violation| LapiError::Peer { origin, violation };
        let request = Request::decode(uhdr).ok_or(peer(Violation::UnknownRequest))?;
        match request {
            Request::Put { .. } if len == 0 => Ok(None),
            Request::Put { key, offset } => {
                let held = self.outbox.regions.hold(key, offset, len);
                let into = held.map(|region| Sink::Span(region).truncated(len as usize));
                self.put_into(origin, key, into).map_err(peer)
            }
            Request::Putv { key, vector } => {
                let vector = vector.or_else(|| self.ahead.take(origin));
                if len == 0 {
                    return Ok(None);
                }
                let into = vector.filter(|vector| vector.size() == Some(len)).and_then(|vector| {
                    vector.scatter_at(End::Target, self.outbox.regions.hold(key, 0, 0)?).ok()
                });
                self.put_into(origin, key, into).map_err(peer)
            }
            Request::Getv { key, ticket, vector } => {
                let vector = vector.or_else(|| self.ahead.take(origin));
                let source = vector.and_then(|vector| {
                    vector.gather_at(End::Target, self.outbox.regions.span(key)?).ok()
                });
                let Some(source) = source.filter(|source| !source.is_empty()) else {
                    let refusal = Packet::GetRefused { ticket };
                    self.outbox.push(origin, Outgoing::Control(refusal));
                    return Err(peer(Violation::UnregisteredGetv));
                };
                let len = source.len() as u64;
                let blocks = Some(Box::new(source));
                let reply = Outgoing::GetReply { ticket, key, offset: 0, len, sent: 0, blocks };
                self.outbox.push(origin, reply);
                Ok(None)
            }
            Request::Vector { is_first } => {
                match data.is_some_and(|data| self.ahead.add(origin, is_first, data)) {
                    true => Ok(None),
                    false => Err(peer(Violation::UnknownRequest)),
                }
            }
        }
    }

    fn put_into(
        &mut self,
        origin: TaskId,
        key: u64,
        into: Option<Sink>,
    ) -> Result<Option<Destination>, Violation> {
        match into {
            Some(into) => Ok(Some(Destination { into, key })),
            None => {
                self.outbox.push(origin, Outgoing::Control(Packet::PutRefused));
                Err(Violation::UnregisteredPut)
            }
        }
    }
}
