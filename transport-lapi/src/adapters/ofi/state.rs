//! What an endpoint does under its lock: sends frames in packets, takes packets that have come, and delivers their
//! frames. It keeps OA2 to OA5 of [`super`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::Peers;
use super::accesses::{Access, Accesses, Kind, Place};
use super::contacts::{Contacts, socket_address};
use super::endpoint::{BATCH, Completion, FULL, Offered, OfiEndpoint};
use super::losses::OfiLosses;
use super::packet::{self, HEADER, Header, frame_at, frame_bytes, frame_header};
use super::peer::{Judgement, Peer, Waiting};
use super::service::{Signals, Work};
use crate::adapter::{
    AdapterError, Doorbell, Endpoint, Events, Frame, Losses, Post, SHORT_HEAD, Stats, TaskId,
    Ticket,
};
use crate::adapters::hosts::table::SECRET_BYTES;
use crate::memory::body::Piece;
use crate::memory::region::{ForeignBytes, RecvPart, SendRegion};

/// Most packets that wait for one peer.
const MOST_WAITING: usize = 4;
/// Most packets to one peer that the provider has, so that others find buffers.
const MOST_UNDER_WAY: usize = 8;
/// Room for a packet that is injected.
const INJECTED: usize = 512;
/// Rings for the descriptor after which nothing had come, so that the descriptor is not trusted (SV3 of [`super::service`]).
const MOST_VAIN: u32 = 3;

/// See the head of this file.
pub(super) struct State {
    endpoint: OfiEndpoint,
    me: Endpoint,
    directory: Arc<dyn Peers>,
    secret: [u8; SECRET_BYTES],
    peers: FxHashMap<TaskId, Peer>,
    /// Polls of the owner.
    polls: u64,
    /// Peers for whom packets wait.
    listed: Vec<TaskId>,
    /// For each send buffer that the provider has, the peer.
    targets: FxHashMap<usize, TaskId>,
    /// Packets that have come, and were not delivered whole.
    inbox: VecDeque<Arrived>,
    /// Receive buffers that the provider had no room for.
    unposted: Vec<usize>,
    /// Whether packets were injected since the last poll: the provider may not have written them yet.
    is_unsure: bool,
    /// Peers to whom a frame was refused for lack of room.
    refused: Vec<TaskId>,
    losses: Arc<OfiLosses>,
    losses_seen: usize,
    /// Rings for the descriptor, since something was completed, after which nothing had come.
    vain: u32,
    stats: Stats,
    accesses: Accesses,
    contacts: Contacts,
    /// Number of memory that was registered.
    exposed: u64,
    /// Polls of the owner when a registration ended last.
    hidden: Option<u64>,
}

/// A packet in a receive buffer.
struct Arrived {
    buffer: usize,
    len: usize,
    origin: TaskId,
    /// Where the next frame begins.
    at: usize,
}

impl State {
    pub(super) fn new(
        endpoint: OfiEndpoint,
        me: Endpoint,
        directory: Arc<dyn Peers>,
        losses: Arc<OfiLosses>,
        limit: Duration,
    ) -> Self {
        Self {
            contacts: Contacts::new(endpoint.tcp_address(), limit, me.num_tasks),
            endpoint,
            me,
            secret: directory.secret(),
            directory,
            peers: FxHashMap::default(),
            polls: 0,
            listed: Vec::new(),
            targets: FxHashMap::default(),
            inbox: VecDeque::new(),
            unposted: Vec::new(),
            is_unsure: false,
            refused: Vec::new(),
            losses,
            losses_seen: 0,
            vain: 0,
            stats: Stats::default(),
            accesses: Accesses::default(),
            exposed: 0,
            hidden: None,
        }
    }

    /// Begins a poll of the owner, and returns its number.
    pub(super) fn begin_poll(&mut self) -> u64 {
        self.polls = self.polls.wrapping_add(1);
        self.polls
    }

    /// What the service thread does for an owner that does not poll. Returns whether sleepers have to be woken.
    pub(super) fn serve(&mut self) -> bool {
        let losses = self.losses.count();
        self.progress();
        self.send_waiting();
        let has_come = !self.inbox.is_empty() || self.accesses.has_ended();
        self.forgets_refusals() || has_come || self.losses.count() != losses
    }

    /// What was sent, received and dropped.
    pub(super) fn stats(&self) -> Stats {
        self.stats
    }

    fn peer(&mut self, task: TaskId) -> &mut Peer {
        let Endpoint { task: own, context, .. } = self.me;
        let secret = &self.secret;
        self.peers.entry(task).or_insert_with(|| Peer::new(secret, own, task, context))
    }

    /// The provider's number of the address of `target`.
    fn address(&mut self, target: TaskId) -> Result<u64, AdapterError> {
        if let Some(address) = self.peer(target).address {
            return Ok(address);
        }
        let context = self.me.context;
        let told = self.directory.address(target, context).unwrap_or_default();
        let bad = AdapterError::BadAddress { task: target, context, len: told.len() };
        let address = self.endpoint.insert(&told).ok_or(bad)?;
        self.peer(target).address = Some(address);
        Ok(address)
    }

    pub(super) fn send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: &Piece<'_>,
    ) -> Result<Post, AdapterError> {
        let (to, len) = (self.address(target)?, frame_bytes(head.len(), body.len()));
        let peer = self.peers.get_mut(&target).expect("it was made");
        let at_once = peer.is_idle(self.polls);
        if at_once && HEADER + len <= self.endpoint.inject_size().min(INJECTED) {
            let mut bytes = [0; INJECTED];
            let packet = &mut bytes[..HEADER + len];
            packet[..HEADER].copy_from_slice(&peer.next_header(self.me.task).encode());
            put_frame(&mut packet[HEADER..], head, body);
            let offered = self.endpoint.inject(to, packet);
            let offered = self.contacts.weigh(offered, peer.sent_at.is_some());
            if offered == Offered::Taken {
                (peer.sent_at, peer.injected) = (Some(self.polls), true);
                self.is_unsure = true;
                self.stats.frames_sent += 1;
                return Ok(Post::Taken);
            }
            peer.take_back_header();
            if offered == Offered::Refused {
                self.losses.fail(target);
                return Ok(Post::Full);
            }
        }
        let fits = |waiting: &Waiting| waiting.len + len <= FULL;
        if !self.peer(target).waiting.back().is_some_and(fits) {
            self.send_to(target);
            if !self.begin_packet(target) {
                self.progress();
                if !self.begin_packet(target) {
                    if !self.refused.contains(&target) {
                        self.refused.push(target);
                    }
                    return Ok(Post::Full);
                }
            }
        }
        let peer = self.peers.get_mut(&target).expect("it was made");
        let packet = peer.waiting.back_mut().expect("a packet was begun");
        let place = packet.len..packet.len + len;
        packet.len = place.end;
        put_frame(&mut self.endpoint.buffer(packet.buffer)[place], head, body);
        self.stats.frames_sent += 1;
        if at_once {
            self.send_to(target);
        }
        self.list(target);
        Ok(Post::Taken)
    }

    /// Begins a packet for `target`, if there is room.
    fn begin_packet(&mut self, target: TaskId) -> bool {
        if self.peer(target).waiting.len() >= MOST_WAITING {
            return false;
        }
        let Some(buffer) = self.empty_packet(target) else { return false };
        self.peer(target).waiting.push_back(Waiting { buffer, len: HEADER });
        true
    }

    /// A buffer with the next packet for `target`, which has no frames yet.
    fn empty_packet(&mut self, target: TaskId) -> Option<usize> {
        let buffer = self.endpoint.take_buffer()?;
        let own = self.me.task;
        let header = self.peer(target).next_header(own);
        self.endpoint.buffer(buffer)[..HEADER].copy_from_slice(&header.encode());
        Some(buffer)
    }

    /// Offers the provider the packets that wait for `target`, in order, as long as it takes them.
    fn send_to(&mut self, target: TaskId) {
        let Self { endpoint, peers, polls, targets, is_unsure, losses, contacts, .. } = self;
        let Some(peer) = peers.get_mut(&target) else { return };
        let Some(to) = peer.address else { return };
        while let Some(&Waiting { buffer, len }) = peer.waiting.front() {
            if peer.under_way >= MOST_UNDER_WAY {
                return;
            }
            let is_short = len <= endpoint.inject_size();
            let offered = match is_short {
                true => endpoint.inject_buffer(to, buffer, len),
                false => endpoint.send(to, buffer, len),
            };
            match contacts.weigh(offered, peer.sent_at.is_some() || !endpoint.is_open()) {
                Offered::Taken => {}
                Offered::Again => return,
                // OA5.
                Offered::Refused => return losses.fail(target),
            }
            peer.waiting.pop_front();
            peer.sent_at = Some(*polls);
            if is_short {
                endpoint.give_back(buffer);
                peer.injected = true;
                *is_unsure = true;
            } else {
                targets.insert(buffer, target);
                peer.under_way += 1;
                peer.injected = false;
            }
        }
    }

    /// Notes that packets wait for `target`, if they do.
    fn list(&mut self, target: TaskId) {
        let peer = self.peer(target);
        if !peer.waiting.is_empty() && !peer.is_listed {
            peer.is_listed = true;
            self.listed.push(target);
        }
    }

    /// Offers the provider all packets that wait, and drops those for lost tasks (A10).
    pub(super) fn send_waiting(&mut self) {
        let losses = self.losses.count();
        if losses != self.losses_seen {
            self.losses_seen = losses;
            self.drop_for_lost();
        }
        let mut listed = std::mem::take(&mut self.listed);
        listed.retain(|&target| {
            self.send_to(target);
            let peer = self.peer(target);
            peer.is_listed = !peer.waiting.is_empty();
            peer.is_listed
        });
        self.listed = listed;
        if self.contacts.is_due(!self.listed.is_empty()) {
            self.look_after_contacts();
        }
    }

    /// Tells of peers that cannot be reached.
    #[cold]
    fn look_after_contacts(&mut self) {
        let Self { peers, listed, contacts, directory, me, .. } = self;
        let is_awaited = |task| {
            let peer: Option<&Peer> = peers.get(&task);
            peer.is_some_and(|peer| peer.is_listed && peer.sent_at.is_none())
        };
        contacts.keep(is_awaited);
        for task in listed.iter().copied().filter(|task| is_awaited(*task)) {
            let address = || socket_address(&directory.address(task, me.context)?);
            if let Some(why) = contacts.look(task, address) {
                directory.unreachable(task, &why.to_string());
            }
        }
    }

    #[cold]
    fn drop_for_lost(&mut self) {
        let Self { peers, endpoint, losses, accesses, .. } = self;
        for (_, peer) in peers.iter_mut().filter(|(task, _)| losses.is_lost(**task)) {
            for Waiting { buffer, .. } in peer.waiting.drain(..) {
                endpoint.give_back(buffer);
            }
            peer.injected = false;
        }
        accesses.lose(endpoint, |task| losses.is_lost(task));
    }

    /// Takes what the provider has completed, and goes on with accesses.
    pub(super) fn progress(&mut self) {
        self.is_unsure = false;
        let mut count = BATCH;
        // A look that finds nothing costs a system call, so there is none after one that has found some.
        while count == BATCH {
            let Self {
                endpoint,
                me,
                secret,
                peers,
                targets,
                inbox,
                unposted,
                losses,
                stats,
                accesses,
                ..
            } = self;
            count = endpoint.complete(|endpoint, completion| match completion {
                Completion::Sent(buffer) | Completion::NotSent(buffer) => {
                    endpoint.give_back(buffer);
                    let target = targets.remove(&buffer);
                    if let Some(peer) = target.and_then(|target| peers.get_mut(&target)) {
                        peer.under_way -= 1;
                    }
                    if let (Completion::NotSent(_), Some(target)) = (completion, target) {
                        losses.fail(target);
                    }
                }
                Completion::Received(buffer, len) => {
                    let header = Header::decode(endpoint.packet(buffer, len));
                    let judged = header.map(|header| (judge(*me, secret, peers, header), header));
                    if let Some((Judgement::Next, Header { origin, .. })) = judged {
                        inbox.push_back(Arrived { buffer, len, origin, at: HEADER });
                        return;
                    }
                    if let Some((Judgement::Gap, Header { origin, .. })) = judged {
                        losses.fail(origin);
                    }
                    // OA2.
                    stats.dropped += 1;
                    unposted.push(buffer);
                }
                Completion::NotReceived(buffer) => unposted.push(buffer),
                Completion::Accessed(number) => accesses.end(endpoint, number, true),
                Completion::NotAccessed(number) => accesses.end(endpoint, number, false),
            });
            if count > 0 {
                self.vain = 0;
            }
        }
        let Self { endpoint, unposted, .. } = self;
        unposted.retain(|&buffer| !endpoint.release(buffer));
        self.accesses.offer(&mut self.endpoint);
    }

    /// Starts an access to memory of a task, or a flush.
    pub(super) fn access(
        &mut self,
        target: TaskId,
        place: Place,
        kind: Kind,
        ticket: Ticket,
    ) -> Result<(), AdapterError> {
        let to = self.address(target)?;
        self.accesses.add(Access::new((target, to), ticket, place, kind));
        self.accesses.offer(&mut self.endpoint);
        Ok(())
    }

    /// Lets other tasks read memory of the program, and write it if `is_writable`. Nobody guesses its key, unless the provider chooses it.
    pub(super) fn expose(&mut self, memory: SendRegion, is_writable: bool) -> Option<Place> {
        let Endpoint { task, context, .. } = self.me;
        self.exposed += 1;
        let what = [u64::from(task), context as u64, self.exposed].map(u64::to_le_bytes);
        let hash = blake3::keyed_hash(&self.secret, what.as_flattened());
        let wanted = hash.as_bytes().first_chunk().expect("a hash is longer");
        let (key, start) =
            self.endpoint.expose((memory, is_writable), u64::from_le_bytes(*wanted))?;
        Some(Place { key, start })
    }

    pub(super) fn hide(&mut self, place: Place) {
        self.endpoint.hide(place.key);
        self.hidden = Some(self.polls);
    }

    /// Ends accesses in both directions, and sends what was taken: the process may end afterwards. Returns whether that is
    /// done, or the time for it `is_over`; see [`State::finish`] for `is_late`. Peers may be accessing memory that was
    /// registered until just now: then the endpoint is closed.
    pub(super) fn detach(&mut self, is_late: bool, is_over: bool) -> bool {
        self.accesses.forget(&mut self.endpoint);
        let is_read = self.endpoint.exposes() || self.hidden == Some(self.polls);
        // The second look finds the end of what the first one has sent.
        let is_left = self.finish(is_late) && self.finish(is_late);
        if is_left && !is_over {
            return false;
        }
        if is_read {
            self.endpoint.close();
        }
        true
    }

    /// Delivers frames of packets that have come, and reports accesses that have ended.
    pub(super) fn deliver(
        &mut self,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError> {
        let mut delivered = 0;
        let ended = if self.accesses.has_ended() { self.accesses.report(events) } else { 0 };
        while delivered < budget {
            let Some(arrived) = self.inbox.front_mut() else { break };
            let packet = self.endpoint.packet(arrived.buffer, arrived.len);
            if let Some((head, body, next)) = frame_at(packet, arrived.at) {
                let body = ForeignBytes::from_slice(body);
                match <[u8; SHORT_HEAD]>::try_from(head) {
                    Ok(short) => events.short(arrived.origin, short, body),
                    Err(_) => events.frame(Frame { origin: arrived.origin, head, body }),
                }
                arrived.at = next;
                delivered += 1;
                if next < arrived.len {
                    continue;
                }
            }
            let Arrived { buffer, len, origin, at } = *arrived;
            self.inbox.pop_front();
            self.unposted.push(buffer);
            if at != len {
                let what = "a packet holds something that is no frame";
                return Err(AdapterError::Corrupt { origin, what });
            }
        }
        self.stats.frames_received += delivered as u64;
        Ok(delivered + ended)
    }

    /// What the service thread has to do if the owner does not poll.
    pub(super) fn work(&self) -> Work {
        let has_sent = !self.listed.is_empty() || !self.targets.is_empty() || self.is_unsure;
        let is_full = !self.refused.is_empty() || !self.unposted.is_empty();
        match has_sent || is_full || !self.accesses.is_idle() {
            true => Work::Own,
            false if self.endpoint.serves() => Work::Others,
            false => Work::None,
        }
    }

    /// Forgets the refusals of frames that would find room now. Returns whether there were any.
    pub(super) fn forgets_refusals(&mut self) -> bool {
        let before = self.refused.len();
        let Self { refused, peers, endpoint, .. } = self;
        let has_buffers = endpoint.free_buffers() > 0;
        let is_full = |task: &TaskId| peers[task].waiting.len() >= MOST_WAITING;
        refused.retain(|task| !has_buffers || is_full(task));
        refused.len() < before
    }

    /// Prepares the sleep of a thread that has announced it and found nothing (SV2 of [`super::service`]).
    #[cold]
    pub(super) fn prepare_sleep(&mut self, signals: &Signals, bell: &Arc<dyn Doorbell>) {
        if signals.takes_ring() {
            self.vain = self.vain.saturating_add(1);
        }
        for _ in 0..3 {
            if self.endpoint.may_sleep() {
                return signals.watch(self.vain <= MOST_VAIN);
            }
            self.progress();
            if !self.inbox.is_empty() || self.accesses.has_ended() {
                break;
            }
        }
        // There is something to do: the sleep ends at once.
        bell.ring();
    }

    /// Goes on with what is left when the adapter is dropped. Returns whether something is. Once it `is_late`, packets
    /// that were injected count as gone if the peer takes no more: its connection has ended, or never was.
    pub(super) fn finish(&mut self, is_late: bool) -> bool {
        self.progress();
        while let Some(Arrived { buffer, .. }) = self.inbox.pop_front() {
            self.unposted.push(buffer);
        }
        self.send_waiting();
        // Behind injected packets goes one whose completion tells that they have left.
        let unsure: Vec<TaskId> = (self.peers.iter())
            .filter(|(_, peer)| peer.injected && peer.waiting.is_empty())
            .map(|(task, _)| *task)
            .collect();
        for target in unsure {
            self.send_last(target);
            self.peer(target).injected &= !is_late;
        }
        self.peers.iter().any(|(task, peer)| {
            let left = peer.under_way > 0 || peer.injected || !peer.waiting.is_empty();
            left && !self.losses.is_lost(*task)
        })
    }

    /// Sends an empty packet that is not injected.
    fn send_last(&mut self, target: TaskId) {
        let Some(buffer) = self.empty_packet(target) else { return };
        let to = self.peer(target).address;
        let offered = to.map(|to| self.endpoint.send(to, buffer, HEADER));
        if offered == Some(Offered::Taken) {
            self.targets.insert(buffer, target);
            let peer = self.peer(target);
            (peer.under_way, peer.injected) = (peer.under_way + 1, false);
        } else {
            self.peer(target).take_back_header();
            self.endpoint.give_back(buffer);
        }
    }
}

/// Judges a packet by its header (OA2). A peer is remembered only once it has proved itself.
fn judge(
    me: Endpoint,
    secret: &[u8; SECRET_BYTES],
    peers: &mut FxHashMap<TaskId, Peer>,
    header: Header,
) -> Judgement {
    let Endpoint { task: own, num_tasks, context } = me;
    let origin = header.origin;
    if let Some(peer) = peers.get_mut(&origin) {
        return peer.judge(header);
    }
    if origin == own || origin as usize >= num_tasks {
        return Judgement::Foreign;
    }
    let mut peer = Peer::new(secret, own, origin, context);
    let judged = peer.judge(header);
    if judged == Judgement::Next {
        peers.insert(origin, peer);
    }
    judged
}

/// Writes a frame, which fills `place`.
fn put_frame(place: &mut [u8], head: &[u8], body: &Piece<'_>) {
    let (header, rest) = place.split_at_mut(packet::FRAME_HEADER);
    header.copy_from_slice(&frame_header(head.len(), body.len()));
    let (start, rest) = rest.split_at_mut(head.len());
    start.copy_from_slice(head);
    body.copy_to(RecvPart::of_slice(rest));
}
