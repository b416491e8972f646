//! Dispatches: the functions that messages name, and what those get.

use std::panic::resume_unwind;
use std::sync::Arc;

use parking_lot::Mutex;
use transport_lapi::{ForeignBytes, Sink, TaskId};

use crate::context::{Callback, Section, both};
use crate::error::{Error, Violation};
use crate::packet::{Data, Head, Packet, Parts};
use crate::state::{Arrived, Packets, at_end};
use crate::types::{Endpoint, Hint, Hints, Setting, data_sink};
use crate::{MAX_DISPATCH, RECV_IMMEDIATE_MAX};

/// Messages of a context that may wait for dispatches that are not set.
const MOST_EARLY: usize = 4096;

/// Bytes that are reserved for data before they come, at most.
const MOST_AT_ONCE: usize = 1 << 20;

/// A dispatch function (pami_dispatch_p2p_function).
type Function = Box<dyn FnMut(&mut Section<'_>, Message<'_>) + Send>;

/// A dispatch.
pub(crate) struct Dispatch {
    pub hints: Hints,
    /// Absent while it runs.
    pub function: Option<Function>,
}

/// A message that has arrived.
pub struct Message<'a> {
    /// The sender.
    pub origin: Endpoint,
    /// Its header.
    pub header: &'a [u8],
    /// Its data.
    pub data: Arriving<'a>,
}

/// The data of a message: PAMI's two shapes of a dispatch.
pub enum Arriving<'a> {
    /// The data are here, and the function takes what it needs of them now.
    Immediate(&'a [u8]),
    /// The data come when the function has said where they go.
    Asynchronous(Asynchronous<'a>),
}

/// Data that have not come yet. Without [`Asynchronous::receive`] they are discarded.
pub struct Asynchronous<'a> {
    len: usize,
    receive: &'a mut Option<(Sink, Option<Callback>)>,
}

impl Asynchronous<'_> {
    /// Returns their length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Says where the data go, and what is called when they are there (pami_recv_t). What does not fit is discarded.
    /// Sinks are made by [`crate::Memregion::sink`], [`crate::Type`] and [`crate::data_sink`].
    pub fn receive(self, into: impl Into<Sink>, on_end: Option<Callback>) {
        *self.receive = Some((into.into(), on_end));
    }

    /// Receives the data in memory of their own, which grows as they come: what the peer says of their length is a claim.
    pub fn receive_vec(
        self,
        on_end: impl FnOnce(&mut Section<'_>, Result<Vec<u8>, Error>) + Send + 'static,
    ) {
        let bytes = Arc::new(Mutex::new(Vec::with_capacity(self.len.min(MOST_AT_ONCE))));
        let landing = Arc::clone(&bytes);
        let into = data_sink(self.len, move |offset, piece| {
            let (mut bytes, end) = (landing.lock(), offset + piece.len());
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[offset..end].copy_from_slice(piece);
        });
        let take = move |section: &mut Section<'_>, result: Result<(), Error>| {
            on_end(section, result.map(|()| std::mem::take(&mut *bytes.lock())));
        };
        self.receive(into, Some(Box::new(take)));
    }
}

impl Section<'_> {
    /// Sets a dispatch of this context (PAMI_Dispatch_set). Messages that name it before are kept. Setting it again
    /// replaces it.
    ///
    /// # Errors
    /// [`Error::DispatchRange`]; [`Error::Unsupported`] for hints that cannot be honoured.
    pub fn dispatch_set(
        &mut self,
        id: usize,
        function: impl FnMut(&mut Section<'_>, Message<'_>) + Send + 'static,
        hints: Hints,
    ) -> Result<(), Error> {
        check_id(id)?;
        if let Some((hint, setting)) = hints.unsupported() {
            return Err(Error::Unsupported { hint, setting });
        }
        let state = &mut self.session.state;
        state.dispatches[id] = Some(Dispatch { hints, function: Some(Box::new(function)) });
        state.release();
        Ok(())
    }

    /// Returns whether a dispatch is set.
    pub fn is_dispatch_set(&self, id: usize) -> bool {
        check_id(id).and_then(|()| self.hints_of(id)).is_ok()
    }

    /// Deals with the packets that have arrived: calls the dispatch functions of messages, and ends what was answered.
    #[inline]
    pub(crate) fn take_packets(&mut self) {
        let mut packets = std::mem::take(&mut self.session.state.arrived);
        if !self.session.state.released.is_empty() {
            self.go_before(&mut packets);
        }
        while let Some(packet) = packets.next() {
            let taken = self.take_packet(packet);
            if taken.is_err() || !self.session.state.released.is_empty() {
                self.go_before(&mut packets);
            }
            if let Err(panic) = taken {
                self.session.state.released = packets;
                resume_unwind(panic);
            }
        }
        self.session.state.arrived.recycle(packets);
    }

    /// Puts the packets that are released before these.
    #[cold]
    fn go_before(&mut self, packets: &mut Packets) {
        let mut all = std::mem::take(&mut self.session.state.released);
        all.append(packets);
        *packets = all;
    }

    /// Deals with a packet. Fails if a dispatch function has panicked.
    #[inline]
    fn take_packet(&mut self, packet: Arrived<'_>) -> std::thread::Result<()> {
        let Arrived { origin, word, bytes } = packet;
        match Packet::decode(word) {
            Ok(Packet::Message(head)) => match head.split(bytes) {
                Ok(parts) => return self.deliver(packet, head, parts),
                Err(violation) => self.session.state.blame(origin, violation),
            },
            Ok(Packet::Answer { number, is_good }) => {
                self.session.state.answered(origin, number, is_good);
            }
            Err(violation) => self.session.state.blame(origin, violation),
        }
        Ok(())
    }

    /// Calls the dispatch function of a message. One whose dispatch is not set is kept, one that breaks the protocol is
    /// dropped.
    #[inline]
    fn deliver(
        &mut self,
        packet: Arrived<'_>,
        head: Head,
        parts: Parts<'_>,
    ) -> std::thread::Result<()> {
        let id = head.dispatch;
        let Some(dispatch) = &mut self.session.state.dispatches[usize::from(id)] else {
            return self.keep(packet, id, parts.answer);
        };
        if dispatch.hints != head.hints {
            return self.refuse(packet.origin, parts.answer, Violation::Hints { id });
        }
        let mut is_immediate = matches!(parts.data, Data::Here(_));
        if dispatch.hints != Hints::default() {
            let setting = dispatch.hints.get(Hint::RecvImmediate);
            let len = parts.len().saturating_add(parts.header.len());
            if setting == Setting::Enable && !(is_immediate && len <= RECV_IMMEDIATE_MAX) {
                return self.refuse(packet.origin, parts.answer, Violation::TooLong { id, len });
            }
            is_immediate &= setting != Setting::Disable;
        }
        let mut function = dispatch.function.take().expect("no advance begins inside of one");
        let mut receive = None;
        let data = match parts.data {
            Data::Here(bytes) if is_immediate => Arriving::Immediate(bytes),
            _ => Arriving::Asynchronous(Asynchronous { len: parts.len(), receive: &mut receive }),
        };
        let origin = Endpoint::new(packet.origin, head.offset.into());
        let message = Message { origin, header: parts.header, data };
        let called = self.calling(|section| function(section, message));
        if let Some(dispatch) = &mut self.session.state.dispatches[usize::from(id)] {
            // Unless it has set another one.
            dispatch.function.get_or_insert(function);
        }
        match (receive, parts.answer) {
            (None, None) => {}
            (receive, _) => self.receive(packet.origin, receive, parts),
        }
        called
    }

    /// Keeps a message whose dispatch is not set.
    #[cold]
    fn keep(
        &mut self,
        packet: Arrived<'_>,
        id: u8,
        answer: Option<u64>,
    ) -> std::thread::Result<()> {
        let state = &mut self.session.state;
        if state.num_early == MOST_EARLY {
            return self.refuse(packet.origin, answer, Violation::Early { id });
        }
        state.num_early += 1;
        state.early.append_one(packet);
        Ok(())
    }

    /// Drops a message that breaks the protocol.
    #[cold]
    fn refuse(
        &mut self,
        origin: TaskId,
        answer: Option<u64>,
        violation: Violation,
    ) -> std::thread::Result<()> {
        self.session.state.blame(origin, violation);
        answer.into_iter().for_each(|number| self.answer(origin, number, false));
        Ok(())
    }

    /// Stores the data of a message where its dispatch function wants them, or fetches them.
    #[inline(never)]
    fn receive(
        &mut self,
        target: TaskId,
        receive: Option<(Sink, Option<Callback>)>,
        parts: Parts<'_>,
    ) {
        let Some((mut into, callback)) = receive else {
            return parts.answer.into_iter().for_each(|number| self.answer(target, number, true));
        };
        let tell = parts.answer.map(|number| -> Callback {
            Box::new(move |section, result| section.answer(target, number, result.is_ok()))
        });
        let number = self.begin(target, false, both(tell, callback));
        let result = match parts.data {
            Data::Here(bytes) => {
                into.store(0, ForeignBytes::from_slice(bytes));
                Ok(())
            }
            Data::There(region) => {
                let into = into.truncated(parts.len());
                let next = at_end(number);
                match self.session.get(target, region, 0, into, next) {
                    Ok(()) => return,
                    Err(cause) => Err(self.failed(cause)),
                }
            }
        };
        number.into_iter().for_each(|number| self.session.state.end(number, result.clone()));
    }

    /// Returns the hints of a dispatch that is set.
    pub(crate) fn hints_of(&self, id: usize) -> Result<Hints, Error> {
        match self.session.state.dispatches.get(id) {
            None => Err(Error::DispatchRange { id }),
            Some(Some(dispatch)) => Ok(dispatch.hints),
            Some(None) => {
                let (task, offset) = (self.task(), self.core.offset);
                Err(Error::NoDispatch { task, offset, id })
            }
        }
    }
}

/// Refuses a dispatch that is none of the program.
#[inline]
pub(crate) fn check_id(id: usize) -> Result<(), Error> {
    if id > MAX_DISPATCH { Err(Error::DispatchRange { id }) } else { Ok(()) }
}
