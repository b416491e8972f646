//! Sending active messages.
//!
//! A message is sent in one of two ways. *Eager*: one packet carries the header and the data. *Rendezvous*: a packet
//! carries the header and says where the data lie; the receiver fetches them to where its dispatch function wants them,
//! and answers. A context reaches the contexts of its own offset, so a message to another offset is posted to that
//! context of this task, which sends it in the name of the sender.

use transport_lapi::{Amsend, LapiError, MAX_UHDR, Next, RecvPart, SendRegion, Source, TaskId};

use crate::association::PROTOCOLS;
use crate::context::{Callback, Outcome, Section};
use crate::dispatch::check_id;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::hints::{Hint, Hints, Setting};
use crate::packet::{Head, Protocol, place_bytes};
use crate::state::{Due, Operation, State, ended};
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
        self.send_by(call, |_, len| Ok(*PROTOCOLS.choose(len).expect("there is no longer one")))
    }

    /// Sends a message by the protocol that is chosen for its length.
    fn send_by(
        &mut self,
        call: SendCall<'_>,
        choose: impl FnOnce(&State, u64) -> Result<Protocol, Error>,
    ) -> Result<(), Error> {
        let SendCall { dest, dispatch, header, .. } = call;
        let head = self.head_of(dest, dispatch, header.len(), call.data.len())?;
        let protocol = match head.hints().get(Hint::RecvImmediate) {
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
        self.send_at_once(dest, dispatch, header, data)
    }

    /// [`Section::send_immediate`] for any dispatch.
    #[inline]
    pub(crate) fn send_at_once(
        &mut self,
        dest: Endpoint,
        dispatch: usize,
        header: &[u8],
        data: &[u8],
    ) -> Result<Outcome, Error> {
        let len = header.len() + data.len();
        if len > SEND_IMMEDIATE_MAX {
            return Err(Error::ImmediateLen { len });
        }
        let head = self.head_of(dest, dispatch, header.len(), data.len())?;
        let word = head.word();
        if !self.is_here(dest) {
            let bytes = [header, data].concat();
            let send = move |section: &mut Section<'_>| {
                let sent = section.send_word(dest.task(), word, &bytes);
                sent.map_err(|cause| section.failed(cause))
            };
            return self.post_toward(dest, send).map(|()| Outcome::Done);
        }
        let queues = head.hints().get(Hint::QueueImmediate) != Setting::Disable;
        let to = dest.task();
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
        [header, data]: [&[u8]; 2],
        queues: bool,
    ) -> Result<Outcome, Error> {
        let (mut joined, len) = ([0; MOST], header.len() + data.len());
        joined[..header.len()].copy_from_slice(header);
        joined[header.len()..len].copy_from_slice(data);
        self.send_now(to, word, &joined[..len], queues)
    }

    /// Sends a packet, and queues it if that is allowed and necessary.
    #[inline]
    fn send_now(
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

    /// Checks what can be wrong with a message, and returns its head.
    #[inline]
    fn head_of(
        &self,
        dest: Endpoint,
        id: usize,
        header_len: usize,
        len: usize,
    ) -> Result<Head, Error> {
        self.core.check_endpoint(dest)?;
        let hints = self.hints_of(id)?;
        if header_len > MAX_HEADER {
            return Err(Error::HeaderLen { len: header_len });
        }
        if hints != Hints::default() {
            self.check_hints(dest, hints, header_len, len)?;
        }
        Ok(Head::new(self.core.offset, id as u8, hints).with_header(header_len))
    }

    fn check_hints(
        &self,
        dest: Endpoint,
        hints: Hints,
        header_len: usize,
        len: usize,
    ) -> Result<(), Error> {
        use Setting::{Disable, Enable};
        let is_here =
            self.core.context.host_of(dest.task()) == self.core.context.host_of(self.task());
        let broken = [
            (
                Hint::Multicontext,
                Disable,
                dest.offset() != self.core.offset,
                "it has another offset",
            ),
            (Hint::LongHeader, Disable, header_len > RECV_IMMEDIATE_MAX, "its header is longer"),
            (
                Hint::RecvImmediate,
                Enable,
                header_len + len > RECV_IMMEDIATE_MAX,
                "header and data are longer than RECV_IMMEDIATE_MAX",
            ),
            (Hint::UseShmem, Enable, !is_here, "it is on another host"),
            (Hint::UseShmem, Disable, is_here, "it is on the same host"),
        ];
        let is_broken = |&(hint, setting, is, _): &(Hint, Setting, bool, &str)| {
            is && hints.get(hint) == setting
        };
        match broken.into_iter().find(is_broken) {
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
        let remote = self.begin(to, on_remote);
        remote.iter().for_each(|&number| self.session.state.operations.wait_for_target(number));
        let word = if remote.is_some() { head.wanting_answer() } else { head }.word();
        let before = [&remote.map(u64::to_le_bytes).unwrap_or_default()[..], header];
        let before = if remote.is_some() { &before[..] } else { &before[1..] };
        if len <= SHORT && !data.is_null() && self.send_copied(to, word, before, &data) {
            let due = on_local.map(|callback| Due::Event(callback, Ok(())));
            self.session.state.due.extend(due);
            return Ok(());
        }
        let local = self.begin(to, on_local);
        let next = local.map_or(Next::Nothing, |number| Next::Outcome(ended, number));
        let sent = self.put_on_wire(to, word, before, data, next);
        sent.or_else(|cause| self.fail([local, remote], cause))
    }

    /// Sends a packet of at most [`SHORT`] bytes at once, if that is possible, and returns whether it was.
    fn send_copied(&mut self, to: TaskId, word: u64, before: &[&[u8]], data: &Source) -> bool {
        let (mut bytes, mut at) = ([0; SHORT], 0);
        for part in before {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        let end = at + data.len();
        if !data.is_empty() {
            data.piece(0, data.len()).copy_to(RecvPart::of_slice(&mut bytes[at..end]));
        }
        self.session.try_amsend_bytes(to, PACKETS, word, &bytes[..end])
    }

    /// Sends the header of a message, and where its data are.
    fn announce(&mut self, call: SendCall<'_>, head: Head) -> Result<(), Error> {
        let SendCall { dest, header, data, on_local, on_remote, .. } = call;
        let to = dest.task();
        let region = self.session.register_for(to, data).map_err(|cause| self.failed(cause))?;
        let number = self.session.state.operations.insert(Operation {
            awaits_target: true,
            region: Some(region),
            callbacks: [on_local, on_remote],
            ..Operation::new(to, None)
        });
        let bytes = [&number.to_le_bytes()[..], header, &place_bytes(region)].concat();
        let sent = self.send_word(to, head.long().word(), &bytes);
        // The registration ends with the operation.
        sent.or_else(|cause| self.fail([Some(number)], cause))
    }

    /// Sends one packet: what is before the data goes into the user header if it fits, and is copied in front of the data
    /// otherwise.
    fn put_on_wire(
        &mut self,
        to: TaskId,
        word: u64,
        before: &[&[u8]],
        data: Source,
        next: Next<State>,
    ) -> Result<(), LapiError> {
        let mut uhdr = [0; MAX_UHDR];
        uhdr[..8].copy_from_slice(&word.to_le_bytes());
        let len: usize = before.iter().map(|part| part.len()).sum();
        let (uhdr_len, data) = if len <= MAX_UHDR - 8 {
            let mut at = 8;
            for part in before {
                uhdr[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
            (at.next_multiple_of(8), data)
        } else {
            let data = data.piece(0, data.len()).to_vec();
            (8, Source::from([&before.concat()[..], &data].concat()))
        };
        // A short message needs a pointer that is not null.
        let data = if data.is_empty() { Source::Span(SendRegion::EMPTY) } else { data };
        let call = Amsend { on_origin: next, ..Amsend::new(to, PACKETS, &uhdr[..uhdr_len], data) };
        self.session.amsend(call).map(drop)
    }
}
