//! What a task has under way: a lane of outgoing operations per target, gets, registered regions
//! and counters. Completion handlers get it to start communication; the session sends from it.

use std::collections::VecDeque;

use crate::adapter::{Adapter, Caps, TaskId};
use crate::amsend::{
    Message, Offer, OnOrigin, Outgoing, Payload, check_handler, check_target, check_uhdr,
};
use crate::config::Pieces;
use crate::counter::Counters;
use crate::error::LapiError;
use crate::get::{Gets, Offered, Regions, Way};
use crate::region::{RecvRegion, RemoteRegion, SendRegion};
use crate::wire::Packet;

/// Communication that has been accepted and not yet carried out. Its calls never block: they queue,
/// and the dispatcher sends.
pub struct Outbox<S> {
    pub(crate) caps: Caps,
    /// How long messages are cut, within what the adapter's frames take.
    pub(crate) pieces: Pieces,
    pub(crate) lanes: Vec<Lane<S>>,
    /// Operations in all lanes together.
    pub(crate) queued: usize,
    pub(crate) counters: Counters,
    pub(crate) gets: Gets<S>,
    pub(crate) regions: Regions,
    /// Keys whose end the adapter has still to be told.
    pub(crate) concealed: Vec<u64>,
}

/// What is on its way to one target.
pub(crate) struct Lane<S> {
    pub queue: VecDeque<Outgoing<S>>,
    /// Operations that have gone.
    pub gone: u64,
    /// Number of the next message that takes several packets.
    pub next_msg: u32,
    /// Whether anything was sent since the last fence.
    pub dirty: bool,
    /// Fence answers that are due.
    pub fences: u32,
    /// Whether a get from this target is under way in which it may help.
    pub shares_get: bool,
    /// A get by this target with which this task may help.
    pub offer: Option<Offered>,
}

impl<S> Outbox<S> {
    pub(crate) fn new(num_tasks: usize, caps: Caps, pieces: &Pieces) -> Self {
        let lane = || Lane {
            queue: VecDeque::new(),
            gone: 0,
            next_msg: 0,
            dirty: false,
            fences: 0,
            shares_get: false,
            offer: None,
        };
        Self {
            caps,
            pieces: pieces.within(caps.max_body),
            lanes: std::iter::repeat_with(lane).take(num_tasks).collect(),
            queued: 0,
            counters: Counters::default(),
            gets: Gets::default(),
            regions: Regions::default(),
            concealed: Vec::new(),
        }
    }

    /// Queues an active message that owns its data, for example a reply from a completion handler.
    ///
    /// # Errors
    /// As [`crate::Session::amsend`].
    pub fn amsend(
        &mut self,
        target: TaskId,
        handler: u8,
        uhdr: &[u8],
        udata: Vec<u8>,
    ) -> Result<(), LapiError> {
        check_target(target, self.lanes.len())?;
        check_handler(handler)?;
        check_uhdr(uhdr)?;
        let message = Message::new(handler, uhdr, Payload::Owned(udata));
        self.push(target, Outgoing::Message(message));
        Ok(())
    }

    /// Starts a one-sided read of `into.len()` bytes at `offset` of another task's region
    /// (LAPI_Get). `on_origin` tells when the bytes are there; for no bytes, that is at once.
    ///
    /// # Errors
    /// [`LapiError::Tgt`]; [`LapiError::TgtAddrNull`] and [`LapiError::OrgAddrNull`] for a null
    /// address with a length; [`LapiError::DataLen`] when the range is not inside the region;
    /// [`LapiError::CntrNull`] for an origin counter that does not exist.
    pub fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
        on_origin: OnOrigin<S>,
    ) -> Result<(), LapiError> {
        check_target(target, self.lanes.len())?;
        on_origin.check(&mut self.counters)?;
        let len = into.len() as u64;
        if into.is_null() {
            return Err(LapiError::OrgAddrNull { len: into.len() });
        }
        if remote.addr == 0 && remote.len > 0 {
            return Err(LapiError::TgtAddrNull { len: remote.len });
        }
        if offset.checked_add(len).is_none_or(|end| end > remote.len) {
            return Err(LapiError::DataLen { offset, len, limit: remote.len });
        }
        let direct = self.caps.get.is_some() || len == 0;
        let way = if direct { Way::Direct } else { Way::Messages };
        let ticket = self.gets.add(target, remote, offset, into, on_origin, way);
        if !direct {
            let request = Packet::GetRequest { ticket, key: remote.key, offset, len };
            self.push(target, Outgoing::Control(request));
        }
        Ok(())
    }

    /// Makes memory readable for the other tasks' gets, until [`crate::Session::deregister`].
    pub(crate) fn register<A: Adapter>(
        &mut self,
        adapter: &mut A,
        region: SendRegion,
    ) -> RemoteRegion {
        let key = self.regions.add(region);
        adapter.expose(key, region);
        RemoteRegion { addr: region.addr(), len: region.len() as u64, key }
    }

    /// Ends a registration: [`crate::Session::deregister`] for handlers. It takes effect before the
    /// dispatcher's round ends, so nobody outside it sees the region's owner go on earlier.
    pub fn deregister(&mut self, region: RemoteRegion) {
        self.regions.remove(region.key);
        self.concealed.push(region.key);
    }

    /// Tells the adapter which regions have ended.
    pub(crate) fn conceal<A: Adapter>(&mut self, adapter: &mut A) {
        for key in self.concealed.drain(..) {
            adapter.conceal(key);
        }
    }

    /// Gives up everything that is under way. No peer begins to use a region of this task afterwards; when
    /// none is used any more, [`Outbox::end_shared`] answers.
    pub(crate) fn abandon<A: Adapter>(&mut self, adapter: &mut A) {
        // Before anything that peers may be reading is let go.
        adapter.withdraw();
        self.lanes.iter_mut().for_each(|lane| lane.queue.clear());
        self.queued = 0;
        // What a peer writes already is waited for elsewhere.
        let _ = self.end_shared(adapter);
        self.gets = Gets::default();
        self.concealed.extend(self.regions.clear());
        self.conceal(adapter);
    }

    /// Appends an operation to the lane of its target. Returns its number there, which is its own until an
    /// operation before it is taken back.
    pub(crate) fn push(&mut self, target: TaskId, operation: Outgoing<S>) -> u64 {
        let lane = &mut self.lanes[target as usize];
        let number = lane.gone + lane.queue.len() as u64;
        lane.dirty = true;
        lane.queue.push_back(operation);
        self.queued += 1;
        number
    }

    /// Offers frames of one lane until the adapter is full or the lane is empty. Returns how many
    /// frames went.
    pub(crate) fn flush_lane<A: Adapter>(
        &mut self,
        adapter: &mut A,
        state: &mut S,
        target: TaskId,
    ) -> Result<usize, LapiError> {
        let mut frames = 0;
        loop {
            let Lane { queue, gone, next_msg, .. } = &mut self.lanes[target as usize];
            let Some(front) = queue.front_mut() else {
                return Ok(frames);
            };
            match front.offer(adapter, target, next_msg, &self.regions, &self.pieces)? {
                Offer::Full => return Ok(frames),
                Offer::Part => frames += 1,
                Offer::Last => {
                    frames += 1;
                    *gone += 1;
                    self.queued -= 1;
                    if let Some(Outgoing::Message(message)) = queue.pop_front() {
                        message.on_origin.fire(state, self);
                    }
                }
            }
        }
    }

    /// Takes the operation with this number back. Answers whether it was still there; else it has gone.
    pub(crate) fn take_back(&mut self, target: TaskId, number: u64) -> bool {
        let Lane { queue, gone, .. } = &mut self.lanes[target as usize];
        let place = number.checked_sub(*gone).map(|place| place as usize);
        let is_back = place.and_then(|place| queue.remove(place)).is_some();
        self.queued -= usize::from(is_back);
        is_back
    }

    /// [`Self::flush_lane`] for every lane that has something. A lane that fails does not hold up
    /// the others; the first error is given.
    pub(crate) fn flush<A: Adapter>(
        &mut self,
        adapter: &mut A,
        state: &mut S,
    ) -> Result<usize, LapiError> {
        let (mut frames, mut trouble) = (0, None);
        for target in 0..self.lanes.len() {
            if self.queued == 0 {
                break;
            }
            match self.flush_lane(adapter, state, target as TaskId) {
                Ok(went) => frames += went,
                Err(error) => {
                    trouble.get_or_insert(error);
                }
            }
        }
        trouble.map_or(Ok(frames), Err)
    }
}
