//! Sending active messages.
//!
//! A message is sent in one of two ways. *Eager*: one packet carries the header and the data. *Rendezvous*: a packet
//! carries the header and says where the data lie; the receiver fetches them to where its dispatch function wants them,
//! and answers. A context reaches the contexts of its own offset, so a message to another offset is posted to that
//! context of this task, which sends it in the name of the sender.

use transport_lapi::{Amsend, LapiError, MAX_UHDR, Next, RecvPart, SendRegion, Source, TaskId};

use crate::context::{Callback, Outcome, Section, both};
use crate::dispatch::check_id;
use crate::error::Error;
use crate::packet::{Head, Packet};
use crate::state::{End, Operation, State, at_end};
use crate::types::{Endpoint, Hint, Hints, Protocol, Setting, Way, choose};
use crate::{MAX_HEADER, PACKETS, RECV_IMMEDIATE_MAX, SEND_IMMEDIATE_MAX};

/// The parameters of PAMI_Send and PAMI_Send_typed.
pub struct SendCall<'a> {
    /// The receiver; may be the sender.
    pub dest: Endpoint,
    /// The dispatch.
    pub dispatch: usize,
    /// The header, which is copied: at most [`MAX_HEADER`] bytes.
    pub header: &'a [u8],
    /// The data, which stay unchanged until `on_local`: a vector, a part of a [`crate::Memregion`], what a
    /// [`crate::Type`] describes, or what a data function makes ([`crate::data_source`]).
    pub data: Source,
    /// Called when header and data may change (local_fn).
    pub on_local: Option<Callback>,
    /// Called when the message has been received at the receiver (remote_fn).
    pub on_remote: Option<Callback>,
}

impl<'a> SendCall<'a> {
    /// A message without header, data and callbacks.
    pub fn new(dest: Endpoint, dispatch: usize) -> Self {
        let (on_local, on_remote) = (None, None);
        Self { dest, dispatch, header: &[], data: Source::EMPTY, on_local, on_remote }
    }
}

/// Header and data that are joined in a short buffer, in bytes.
const SHORT: usize = 64;

/// Copies parts one behind the other, at most so many bytes. Returns how many there are, too.
#[inline]
fn joined<const MOST: usize>(parts: &[&[u8]]) -> ([u8; MOST], usize) {
    let (mut bytes, mut len) = ([0; MOST], 0);
    for part in parts {
        bytes[len..len + part.len()].copy_from_slice(part);
        len += part.len();
    }
    (bytes, len)
}

impl Section<'_> {
    /// Sends a message (PAMI_Send, PAMI_Send_typed). Never blocks.
    ///
    /// # Errors
    /// [`Error::NoEndpoint`], [`Error::DispatchRange`], [`Error::NoDispatch`], [`Error::HeaderLen`], [`Error::Hinted`],
    /// [`Error::NoContext`], [`Error::NoRange`]. Nothing was sent then, and nothing is called. A failure of the transport,
    /// such as a lost task, is told to the callbacks, or by the call if there are none.
    pub fn send(&mut self, call: SendCall<'_>) -> Result<(), Error> {
        check_id(call.dispatch)?;
        self.send_by(call, |state, len| state.sends.choose(len))
    }

    /// Sends a message of a collective, whatever the program has associated with its own messages.
    pub(crate) fn send_internal(&mut self, call: SendCall<'_>) -> Result<(), Error> {
        self.send_by(call, |_, len| choose(&Protocol::INITIAL, len).copied())
    }

    /// Sends a message by the protocol that is chosen for its length.
    fn send_by(
        &mut self,
        call: SendCall<'_>,
        choose: impl FnOnce(&State, u64) -> Result<Protocol, Error>,
    ) -> Result<(), Error> {
        let SendCall { dest, dispatch, header, .. } = call;
        let head = self.head_of(dest, dispatch, [header.len(), call.data.len()])?;
        let protocol = match head.hints.get(Hint::RecvImmediate) {
            Setting::Enable => Protocol::Eager,
            _ => choose(&self.session.state, call.data.len() as u64)?,
        };
        if self.is_here(dest) {
            return self.transmit(call, head, protocol);
        }
        let SendCall { data, on_local, on_remote, .. } = call;
        let [on_local, on_remote] =
            [on_local, on_remote].map(|one| one.map(|one| self.at_home(one)));
        let header = header.to_vec();
        self.post_toward(dest, move |section| {
            let call = SendCall { dest, dispatch, header: &header, data, on_local, on_remote };
            section.transmit(call, head, protocol)
        })
    }

    /// Sends a message whose header and data may change when the call returns (PAMI_Send_immediate). Never blocks. If
    /// the hint [`Hint::QueueImmediate`] of the dispatch is disabled, it answers [`Outcome::Again`], and has sent
    /// nothing, when the message cannot be sent at once; otherwise the message is queued then.
    ///
    /// # Errors
    /// [`Error::ImmediateLen`]; those of [`Section::send`].
    #[inline]
    pub fn send_immediate(
        &mut self,
        dest: Endpoint,
        dispatch: usize,
        header: &[u8],
        data: &[u8],
    ) -> Result<Outcome, Error> {
        check_id(dispatch)?;
        let len = header.len() + data.len();
        if len > SEND_IMMEDIATE_MAX {
            return Err(Error::ImmediateLen { len });
        }
        let head = self.head_of(dest, dispatch, [header.len(), data.len()])?;
        let (to, word) = (dest.task(), head.word());
        if !self.is_here(dest) {
            let bytes = [header, data].concat();
            let send = move |section: &mut Section<'_>| {
                section.send_now(to, word, &bytes, true).map(|_| ())
            };
            return self.post_toward(dest, send).map(|()| Outcome::Done);
        }
        let queues = head.hints.get(Hint::QueueImmediate) != Setting::Disable;
        match (header.is_empty(), data.is_empty()) {
            (true, _) => self.send_now(to, word, data, queues),
            (_, true) => self.send_now(to, word, header, queues),
            // A short buffer is cleared faster.
            _ if len <= SHORT => self.send_joined::<SHORT>(to, word, [header, data], queues),
            _ => self.send_joined::<SEND_IMMEDIATE_MAX>(to, word, [header, data], queues),
        }
    }

    /// Sends a packet of both, of which the caller has checked that they fit.
    #[inline(never)]
    fn send_joined<const MOST: usize>(
        &mut self,
        to: TaskId,
        word: u64,
        parts: [&[u8]; 2],
        queues: bool,
    ) -> Result<Outcome, Error> {
        let (bytes, len) = joined::<MOST>(&parts);
        self.send_now(to, word, &bytes[..len], queues)
    }

    /// Sends a packet, and queues it if that is allowed and necessary.
    #[inline]
    pub(crate) fn send_now(
        &mut self,
        to: TaskId,
        word: u64,
        bytes: &[u8],
        queues: bool,
    ) -> Result<Outcome, Error> {
        if self.session.try_amsend_bytes(to, PACKETS, word, bytes) {
            return Ok(Outcome::Done);
        }
        if !queues {
            return Ok(Outcome::Again);
        }
        let sent = self.session.amsend_bytes(to, PACKETS, &word.to_le_bytes(), bytes);
        sent.map(|()| Outcome::Done).map_err(|cause| self.failed(cause))
    }

    /// Tells a task that its operation has ended here. Whoever is lost need not know.
    pub(crate) fn answer(&mut self, task: TaskId, number: u64, is_good: bool) {
        let _ = self.send_now(task, Packet::answer(number, is_good), &[], true);
    }

    /// Checks what can be wrong with a message whose header and data are so long, and returns its head.
    #[inline]
    fn head_of(&self, dest: Endpoint, id: usize, lens: [usize; 2]) -> Result<Head, Error> {
        self.core.check_endpoint(dest)?;
        let hints = self.hints_of(id)?;
        if lens[0] > MAX_HEADER {
            return Err(Error::HeaderLen { len: lens[0] });
        }
        if hints != Hints::default() {
            self.check_hints(dest, hints, lens)?;
        }
        let (offset, dispatch, header_len) = (self.core.offset as u8, id as u8, lens[0] as u16);
        Ok(Head { offset, dispatch, hints, header_len, wants_answer: false, is_long: false })
    }

    fn check_hints(&self, dest: Endpoint, hints: Hints, lens: [usize; 2]) -> Result<(), Error> {
        use Setting::{Disable, Enable};
        const TOO_LONG: &str = "header and data are longer than RECV_IMMEDIATE_MAX";
        let [own, host] = [self.task(), dest.task()].map(|task| self.core.context.host_of(task));
        let is_elsewhere = !self.is_here(dest);
        let [is_header_long, is_long] =
            [lens[0], lens[0] + lens[1]].map(|len| len > RECV_IMMEDIATE_MAX);
        let broken = [
            (Hint::Multicontext, Disable, is_elsewhere, "it has another offset"),
            (Hint::LongHeader, Disable, is_header_long, "its header is longer"),
            (Hint::RecvImmediate, Enable, is_long, TOO_LONG),
            (Hint::UseShmem, Enable, own != host, "it is on another host"),
            (Hint::UseShmem, Disable, own == host, "it is on the same host"),
        ];
        let mut broken = broken.into_iter().filter(|(.., is_broken, _)| *is_broken);
        match broken.find(|&(hint, setting, ..)| hints.get(hint) == setting) {
            None => Ok(()),
            Some((hint, setting, _, why)) => Err(Error::Hinted { dest, hint, setting, why }),
        }
    }

    /// Sends a message that was checked to a context of this offset, in the name of the context in `head`.
    fn transmit(
        &mut self,
        call: SendCall<'_>,
        head: Head,
        mut protocol: Protocol,
    ) -> Result<(), Error> {
        let to = call.dest.task();
        let len = call.header.len() + call.data.len() + size_of::<u64>();
        if len > self.session.longest_packet(to) {
            protocol = Protocol::Rendezvous;
        }
        self.session.state.sends.take(protocol);
        if protocol == Protocol::Rendezvous {
            return self.announce(call, head);
        }
        let SendCall { header, data, on_local, on_remote, .. } = call;
        let remote = self.begin(to, true, on_remote);
        let word = Head { wants_answer: remote.is_some(), ..head }.word();
        let number = remote.map(u64::to_le_bytes);
        let before = [number.as_ref().map_or(&[][..], |number| number), header];
        if len <= SHORT && !data.is_null() {
            let (mut bytes, at) = joined::<SHORT>(&before);
            let end = at + data.len();
            data.piece(0, data.len()).copy_to(RecvPart::of_slice(&mut bytes[at..end]));
            if self.session.try_amsend_bytes(to, PACKETS, word, &bytes[..end]) {
                on_local.into_iter().for_each(|told| self.session.state.tell(told, Ok(())));
                return Ok(());
            }
        }
        let local = self.begin(to, false, on_local);
        let next = at_end(local);
        let sent = self.put_on_wire(to, word, before, data, next);
        sent.or_else(|cause| self.fail([local, remote], cause))
    }

    /// Sends the header of a message, and where its data are.
    fn announce(&mut self, call: SendCall<'_>, head: Head) -> Result<(), Error> {
        let SendCall { dest, header, data, on_local, on_remote, .. } = call;
        let to = dest.task();
        let region = self.session.register_for(to, data).map_err(|cause| self.failed(cause))?;
        let told = both(on_local, on_remote);
        let is_told = told.is_some();
        let on_end: Callback = Box::new(move |section, result| {
            // The memory is free when nobody reads it any more, also if the task that did is lost.
            let tell =
                told.map(|told| -> Callback { Box::new(|section, _| told(section, result)) });
            let over = section.begin(to, false, tell);
            let next = at_end(over);
            section.session.deregister(region, next);
        });
        let on_end = End::Plain(on_end);
        let operation = Operation { target: to, awaits_target: true, on_end };
        let number = self.session.state.begin(operation);
        let bytes = [&number.to_le_bytes()[..], header, &region.to_bytes()].concat();
        let head = Head { wants_answer: true, is_long: true, ..head };
        let sent = self.send_now(to, head.word(), &bytes, true);
        sent.map(|_| ()).or_else(|error| {
            self.session.state.end(number, Err(error.clone()));
            if is_told { Ok(()) } else { Err(error) }
        })
    }

    /// Sends one packet: what is before the data goes into the user header if it fits, and is copied in front of the data
    /// otherwise.
    fn put_on_wire(
        &mut self,
        to: TaskId,
        word: u64,
        [number, header]: [&[u8]; 2],
        data: Source,
        next: Next<State>,
    ) -> Result<(), LapiError> {
        let word = &word.to_le_bytes()[..];
        let fits = word.len() + number.len() + header.len() <= MAX_UHDR;
        let ((uhdr, uhdr_len), data) = if fits {
            (joined::<MAX_UHDR>(&[word, number, header]), data)
        } else {
            let data = data.piece(0, data.len()).to_vec();
            (joined(&[word]), Source::from([number, header, &data].concat()))
        };
        // A short message needs a pointer that is not null.
        let data = if data.is_empty() { Source::Span(SendRegion::EMPTY) } else { data };
        let uhdr = &uhdr[..uhdr_len.next_multiple_of(8)];
        let call = Amsend { on_origin: next, ..Amsend::new(to, PACKETS, uhdr, data) };
        self.session.amsend(call).map(drop)
    }
}
