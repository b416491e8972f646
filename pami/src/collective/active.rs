//! Active-message collectives: one member begins them, and functions run on all.
//!
//! Each message is one for a dispatch of the program, whose header begins with what the collective is. What functions
//! answer goes to the initiator like the messages of other collectives.

use std::sync::Arc;

use mpicore::collective::{Message as Step, bcast};
use parking_lot::Mutex;
use transport_lapi::Source;

use crate::algorithm::Xfer;
use crate::context::Section;
use crate::dispatch::{Arriving, Message, check_id};
use crate::error::Error;
use crate::geometry::Geometry;
use crate::geometry::call::Collective;
use crate::geometry::engine::Head;
use crate::send::SendCall;
use crate::types::{Endpoint, Hints};
use crate::{COLLECTIVES, MAX_HEADER};

/// A message of an active-message collective.
pub struct AmMessage<'a> {
    /// The geometry.
    pub geometry: Geometry,
    /// The member that has begun the collective.
    pub root: Endpoint,
    /// Its type.
    pub xfer: Xfer,
    /// The header.
    pub header: &'a [u8],
    /// The data of a broadcast or a scatter.
    pub data: &'a [u8],
}

impl Section<'_> {
    /// Sets a dispatch of this context for active-message collectives (PAMI_AMCollective_dispatch_set). Dispatches of
    /// messages have the same numbers. The function gets the data in one piece, and returns what a gather or a reduction
    /// collects of this member; what it returns to others is ignored.
    ///
    /// # Errors
    /// Those of [`Section::dispatch_set`].
    pub fn amcollective_dispatch_set(
        &mut self,
        id: usize,
        function: impl FnMut(&mut Section<'_>, AmMessage<'_>) -> Vec<u8> + Send + 'static,
        hints: Hints,
    ) -> Result<(), Error> {
        let function = Arc::new(Mutex::new(function));
        let dispatch = move |section: &mut Section<'_>, message: Message<'_>| {
            let Message { origin, header, data } = message;
            let Some((head, geometry)) = section.part_of(origin, header) else {
                return section.blame_collective(origin, header.len());
            };
            let run = {
                let (function, header) = (Arc::clone(&function), header.to_vec());
                move |section: &mut Section<'_>, data: &[u8]| {
                    section.take_part((id, head), geometry, &header, data, &mut *function.lock());
                }
            };
            match data {
                Arriving::Immediate(data) => run(section, data),
                Arriving::Asynchronous(data) => data.receive_vec(move |section, data| match data {
                    Ok(data) => run(section, &data),
                    Err(error) => section.session.state.note(error),
                }),
            }
        };
        self.dispatch_set(id, dispatch, hints)
    }

    /// Checks what can be wrong with an active-message collective, if it is one.
    pub(super) fn check_active(&self, collective: &Collective) -> Result<(), Error> {
        let Some((dispatch, headers)) = collective.arguments().1.active else { return Ok(()) };
        check_id(dispatch)?;
        self.hints_of(dispatch)?;
        let len = Head::BYTES + headers.iter().map(Vec::len).max().unwrap_or(0);
        if len > MAX_HEADER { Err(Error::HeaderLen { len }) } else { Ok(()) }
    }

    /// Sends the messages of an active-message collective, if it is one.
    pub(super) fn initiate(
        &mut self,
        geometry: &Geometry,
        collective: &Collective,
        head: Head,
        input: &[u8],
    ) -> Result<(), Error> {
        let Some((dispatch, headers)) = collective.arguments().1.active else { return Ok(()) };
        // What is passed on begins with this member's part.
        let own = head.root as usize;
        let is_passed_on = is_passed_on(head);
        let targets = 0..geometry.members().len();
        for rank in targets.filter(|rank| !is_passed_on || *rank == own) {
            let data = match *collective {
                Collective::Amscatter { block, .. } => &input[rank * block..][..block],
                _ => input,
            };
            // One for each, or one for all.
            let header = headers.get(rank).unwrap_or(&headers[0]);
            let header = [&head.to_bytes()[..], header].concat();
            self.send_part(geometry.members()[rank], dispatch, &header, data)?;
        }
        Ok(())
    }

    fn send_part(
        &mut self,
        to: Endpoint,
        dispatch: usize,
        header: &[u8],
        data: &[u8],
    ) -> Result<(), Error> {
        let data = Source::from(data.to_vec());
        self.send_internal(SendCall { header, data, ..SendCall::new(to, dispatch) })
    }

    /// Checks the claims of a message of an active-message collective. Returns what it says, and its geometry.
    fn part_of(&self, origin: Endpoint, header: &[u8]) -> Option<(Head, Geometry)> {
        let head = Head::decode(header.get(..Head::BYTES)?)?;
        let geometry = self.core.geometries.get(head.key.geometry)?;
        let root = *geometry.members().get(head.root as usize)?;
        let are_members = [origin, self.endpoint()].iter().all(|one| geometry.rank(*one).is_some());
        let is_sent_by_root = origin == root || is_passed_on(head);
        let is_active = head.algorithm.xfer() >= Xfer::Ambroadcast;
        (is_active && are_members && is_sent_by_root).then_some((head, geometry))
    }

    /// Passes a message on, runs the function, and answers.
    fn take_part(
        &mut self,
        (dispatch, head): (usize, Head),
        geometry: Geometry,
        header: &[u8],
        data: &[u8],
        function: &mut impl FnMut(&mut Section<'_>, AmMessage<'_>) -> Vec<u8>,
    ) {
        let (root, xfer) = (geometry.members()[head.root as usize], head.algorithm.xfer());
        let mut sent = Ok(());
        if is_passed_on(head) {
            for child in children(&geometry, head, self.endpoint()) {
                sent = sent.and(self.send_part(child, dispatch, header, data));
            }
        }
        let message = AmMessage { geometry, root, xfer, header: &header[Head::BYTES..], data };
        let answer = function(self, message);
        if matches!(xfer, Xfer::Amgather | Xfer::Amreduce) {
            sent = sent.and(self.send_part(root, COLLECTIVES, &head.to_bytes(), &answer));
        }
        self.note_failure(sent);
    }
}

/// Whether members pass the message on.
fn is_passed_on(head: Head) -> bool {
    head.algorithm.metadata().name == "binomial"
}

/// The members to which one passes a message on: those of a broadcast.
fn children(geometry: &Geometry, head: Head, own: Endpoint) -> Vec<Endpoint> {
    let rank = geometry.rank(own).expect("it was checked that it is a member");
    let schedule = geometry.with_member(rank, head.algorithm, |member| bcast(member, head.root, 0));
    let schedule = schedule.expect("the root is a member");
    let messages = schedule.rounds().flat_map(|round| round.messages);
    let sends = messages.filter_map(|message| match message {
        Step::Send { peer, .. } => Some(geometry.members()[*peer as usize]),
        Step::Receive { .. } => None,
    });
    sends.collect()
}
