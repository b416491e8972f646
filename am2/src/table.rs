//! The translation table of an endpoint, with the credits for requests, and what is known of each peer.
//!
//! A translation has as many credits as requests may be outstanding there. A request takes one. The one answer that
//! every request gets (a reply, an acknowledgement, or the request itself, returned) gives it back when it was handled.
//! An answer is believed only if its ticket names an outstanding request to the endpoint that it comes from, so a peer
//! can neither answer twice nor for somebody else.

use rustc_hash::FxHashMap;
use transport_lapi::TaskId;

use crate::error::Error;
use crate::name::{EndpointName, Tag};
use crate::packet::Ticket;
use crate::status::Opcode;
use crate::{MAX_OUTSTANDING, MAX_TRANSLATIONS};

/// Translations of a new endpoint.
const INITIAL: usize = 256;

/// The translations of an endpoint.
#[derive(Debug)]
pub(crate) struct Table {
    owner: EndpointName,
    entries: Vec<Option<Translation>>,
    peers: FxHashMap<EndpointName, Peer>,
    /// Requests that may be outstanding at each translation. `Some` freezes the table.
    depth: Option<usize>,
}

/// What a peer's endpoint may do here, and what it has done. A peer is an endpoint that is mapped.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// The indices that are mapped to it, ascending.
    indices: Vec<u32>,
    /// Its requests that were accepted and not handled yet.
    pub waiting: usize,
    /// Replies that were sent to it and have not come back.
    pub owed: u64,
}

#[derive(Debug)]
struct Translation {
    name: EndpointName,
    tag: Tag,
    requests: Vec<Request>,
    /// Requests that are over, by instance.
    free: Vec<u16>,
}

/// A request, or room for one.
#[derive(Debug)]
struct Request {
    sequence: u16,
    state: Progress,
    opcode: Opcode,
    handler: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// There is no request.
    Free,
    /// It was sent.
    Outstanding,
    /// Its answer has arrived and was not handled yet.
    Answered,
}

impl Table {
    pub fn new(owner: EndpointName) -> Self {
        let entries = std::iter::repeat_with(|| None).take(INITIAL).collect();
        Self { owner, entries, peers: FxHashMap::default(), depth: None }
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.depth.is_some() { Err(Error::Frozen { name: self.owner }) } else { Ok(()) }
    }

    fn check_index(&self, index: usize) -> Result<(), Error> {
        let (name, len) = (self.owner, self.entries.len());
        if index < len { Ok(()) } else { Err(Error::IndexRange { name, index, len }) }
    }

    /// AM_Map.
    pub fn map(&mut self, index: usize, name: EndpointName, tag: Tag) -> Result<(), Error> {
        self.check_index(index)?;
        self.check_open()?;
        if self.entries[index].is_some() {
            return Err(Error::Mapped { name: self.owner, index });
        }
        let indices = &mut self.peers.entry(name).or_default().indices;
        let place = indices.partition_point(|&other| (other as usize) < index);
        indices.insert(place, index as u32);
        let (requests, free) = (Vec::new(), Vec::new());
        self.entries[index] = Some(Translation { name, tag, requests, free });
        Ok(())
    }

    /// AM_MapAny.
    pub fn map_any(&mut self, name: EndpointName, tag: Tag) -> Result<usize, Error> {
        self.check_open()?;
        let index = self.entries.iter().position(Option::is_none);
        let full = Error::TableFull { name: self.owner, len: self.entries.len() };
        let index = index.ok_or(full)?;
        self.map(index, name, tag)?;
        Ok(index)
    }

    /// AM_UnMap.
    pub fn unmap(&mut self, index: usize) -> Result<(), Error> {
        self.check_index(index)?;
        self.check_open()?;
        let unmapped = Error::Unmapped { name: self.owner, index, in_request: false };
        let gone = self.entries[index].take().ok_or(unmapped)?;
        if let Some(peer) = self.peers.get_mut(&gone.name) {
            peer.indices.retain(|&other| other as usize != index);
            if peer.indices.is_empty() {
                self.peers.remove(&gone.name);
            }
        }
        Ok(())
    }

    /// AM_SetNumTranslations.
    pub fn set_len(&mut self, len: usize) -> Result<(), Error> {
        self.check_open()?;
        let last_used = self.entries.iter().rposition(Option::is_some);
        if len > MAX_TRANSLATIONS || last_used.is_some_and(|last| last >= len) {
            return Err(Error::TableLen { name: self.owner, len, last_used });
        }
        self.entries.resize_with(len, || None);
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// AM_GetTranslationName and AM_GetTranslationTag.
    pub fn get(&self, index: usize) -> Result<(EndpointName, Tag), Error> {
        self.check_index(index)?;
        let unmapped = Error::Unmapped { name: self.owner, index, in_request: false };
        self.entries[index].as_ref().map(|entry| (entry.name, entry.tag)).ok_or(unmapped)
    }

    /// AMX_SetTranslationTag.
    pub fn set_tag(&mut self, index: usize, tag: Tag) -> Result<(), Error> {
        self.check_index(index)?;
        let unmapped = Error::Unmapped { name: self.owner, index, in_request: false };
        self.entries[index].as_mut().ok_or(unmapped)?.tag = tag;
        Ok(())
    }

    /// AM_SetExpectedResources.
    pub fn freeze(&mut self, depth: usize) -> Result<(), Error> {
        self.check_open()?;
        if !(1..=MAX_OUTSTANDING).contains(&depth) {
            return Err(Error::Depth { name: self.owner, depth });
        }
        self.depth = Some(depth);
        Ok(())
    }

    /// What is known of the endpoint with this name, if it is mapped.
    pub fn peer(&mut self, name: EndpointName) -> Option<&mut Peer> {
        self.peers.get_mut(&name)
    }

    /// What is known of a peer, and the tag for answers to it: that of its first translation.
    pub fn answered(&mut self, name: EndpointName) -> Option<(&mut Peer, Tag)> {
        let peer = self.peers.get_mut(&name)?;
        let index = *peer.indices.first()?;
        let tag = self.entries[index as usize].as_ref()?.tag;
        Some((peer, tag))
    }

    /// Checks a request to the peer at `index`. Returns its name and the tag for it.
    pub fn check_request(&self, index: usize) -> Result<(EndpointName, Tag), Error> {
        if self.depth.is_none() {
            return Err(Error::NoResources { name: self.owner });
        }
        self.get(index).map_err(|error| match error {
            Error::Unmapped { name, index, .. } => {
                Error::Unmapped { name, index, in_request: true }
            }
            other => other,
        })
    }

    /// Whether [`Table::begin`] would return a ticket.
    pub fn has_credit(&self, index: usize) -> bool {
        let Some(Some(entry)) = self.entries.get(index) else { return false };
        !entry.free.is_empty() || entry.requests.len() < self.depth.unwrap_or(0)
    }

    /// Takes a credit for a request to the peer at `index`.
    pub fn begin(&mut self, index: usize, opcode: Opcode, handler: u8) -> Option<Ticket> {
        if !self.has_credit(index) {
            return None;
        }
        let entry = self.entries[index].as_mut()?;
        let instance = entry.free.pop().unwrap_or(entry.requests.len() as u16);
        let place = usize::from(instance);
        if place == entry.requests.len() {
            entry.requests.push(Request { sequence: 0, state: Progress::Free, opcode, handler });
        }
        let request = &mut entry.requests[place];
        let sequence = request.sequence.wrapping_add(1);
        *request = Request { sequence, state: Progress::Outstanding, opcode, handler };
        Some(Ticket { index: index as u32, instance, sequence })
    }

    /// The request that a ticket names, and where its instance goes when it is over.
    fn request(&mut self, ticket: Ticket) -> Option<(EndpointName, &mut Request, &mut Vec<u16>)> {
        let entry = self.entries.get_mut(ticket.index as usize)?.as_mut()?;
        let request = entry.requests.get_mut(usize::from(ticket.instance))?;
        let is_it = request.sequence == ticket.sequence;
        is_it.then_some((entry.name, request, &mut entry.free))
    }

    /// Notes that an answer from this endpoint has arrived, which says that it is for a request with this opcode if it
    /// says so at all. Returns whether such a request is outstanding there.
    pub fn answer(&mut self, from: EndpointName, ticket: Ticket, opcode: Option<Opcode>) -> bool {
        let Some((name, request, _)) = self.request(ticket) else { return false };
        let is_right = name == from
            && request.state == Progress::Outstanding
            && opcode.is_none_or(|opcode| opcode == request.opcode);
        if is_right {
            request.state = Progress::Answered;
        }
        is_right
    }

    /// The opcode and the handler of the request that a ticket names.
    pub fn named(&mut self, ticket: Ticket) -> Option<(Opcode, u8)> {
        self.request(ticket).map(|(_, request, _)| (request.opcode, request.handler))
    }

    /// Gives the credit of a request back, whose answer was handled or which could not be sent.
    pub fn end(&mut self, ticket: Ticket) {
        if let Some((_, request, free)) = self.request(ticket) {
            if request.state != Progress::Free {
                request.state = Progress::Free;
                free.push(ticket.instance);
            }
        }
    }

    /// Marks the outstanding requests to a lost task as answered, and returns them.
    pub fn lose(&mut self, lost: TaskId) -> Vec<(EndpointName, Ticket, Opcode, u8)> {
        let mut gone = Vec::new();
        for (index, entry) in self.entries.iter_mut().enumerate() {
            let Some(entry) = entry.as_mut().filter(|entry| entry.name.task == lost) else {
                continue;
            };
            for (instance, request) in entry.requests.iter_mut().enumerate() {
                if request.state == Progress::Outstanding {
                    request.state = Progress::Answered;
                    let (index, instance) = (index as u32, instance as u16);
                    let ticket = Ticket { index, instance, sequence: request.sequence };
                    gone.push((entry.name, ticket, request.opcode, request.handler));
                }
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: EndpointName = EndpointName { task: 0, number: 0 };
    const PEER: EndpointName = EndpointName { task: 1, number: 0 };

    fn table(depth: usize) -> Table {
        let mut table = Table::new(OWNER);
        table.map(3, PEER, Tag(7)).unwrap();
        table.freeze(depth).unwrap();
        table
    }

    #[test]
    fn credits_bound_the_requests_and_come_back_once() {
        let mut table = table(2);
        let first = table.begin(3, Opcode::RequestShort, 1).unwrap();
        let second = table.begin(3, Opcode::RequestLong, 1).unwrap();
        assert_ne!(first, second);
        assert!(table.begin(3, Opcode::RequestShort, 1).is_none() && !table.has_credit(3));
        assert!(table.answer(PEER, first, None));
        assert!(!table.has_credit(3), "the answer was not handled yet");
        table.end(first);
        table.end(first);
        let third = table.begin(3, Opcode::RequestShort, 1).unwrap();
        assert!(table.begin(3, Opcode::RequestShort, 1).is_none(), "one came back, not two");
        assert_eq!(third.instance, first.instance);
        assert!(!table.answer(PEER, first, None), "a late answer to the earlier request");
    }

    #[test]
    fn only_the_right_answer_counts() {
        let mut table = table(4);
        let ticket = table.begin(3, Opcode::RequestMedium, 1).unwrap();
        let wrong = [
            (OWNER, ticket, None),
            (PEER, Ticket { index: 2, ..ticket }, None),
            (PEER, Ticket { index: u32::MAX, ..ticket }, None),
            (PEER, Ticket { instance: 9, ..ticket }, None),
            (PEER, Ticket { sequence: 9, ..ticket }, None),
            (PEER, ticket, Some(Opcode::RequestLong)),
        ];
        for (from, ticket, opcode) in wrong {
            assert!(!table.answer(from, ticket, opcode), "{from} {ticket:?} {opcode:?}");
        }
        assert!(table.answer(PEER, ticket, Some(Opcode::RequestMedium)));
        assert!(!table.answer(PEER, ticket, None), "answered already");
    }

    #[test]
    fn a_lost_task_answers_everything_once() {
        let mut table = table(4);
        let ticket = table.begin(3, Opcode::RequestMedium, 9).unwrap();
        assert!(table.lose(2).is_empty());
        assert_eq!(table.lose(1), [(PEER, ticket, Opcode::RequestMedium, 9)]);
        assert!(table.lose(1).is_empty());
    }

    #[test]
    fn a_peer_has_the_tag_of_its_first_translation() {
        let mut table = Table::new(OWNER);
        table.map(5, PEER, Tag(5)).unwrap();
        table.map(2, PEER, Tag(2)).unwrap();
        let tag = |table: &mut Table| table.answered(PEER).map(|(_, tag)| tag);
        assert_eq!(tag(&mut table), Some(Tag(2)));
        table.unmap(2).unwrap();
        assert_eq!(tag(&mut table), Some(Tag(5)));
        table.unmap(5).unwrap();
        assert!(tag(&mut table).is_none() && table.peer(PEER).is_none());
    }
}
