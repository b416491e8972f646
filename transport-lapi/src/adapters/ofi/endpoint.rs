//! What a context has of libfabric: a domain with an endpoint, its addresses, its queue of completions and its packet
//! buffers. A second endpoint, which is opened when another task's memory is to be accessed, does that alone.
//!
//! - OE1: an object is closed once, after all that were made from it, and its pointers are used only before that. The
//!   tables behind an object are valid as long as it is. Entries that the provider lacks answer -FI_ENOSYS themselves.
//! - OE2: one thread at a time uses a domain and what belongs to it: an [`OfiEndpoint`] is used through `&mut`.
//! - OE3: a buffer belongs to the provider from the call that posts it until its completion is read, or the endpoint is
//!   closed; meanwhile nobody else touches it. The buffers and their contexts stay where they are, and are freed after
//!   the endpoint was closed.
//! - OE4: memory of the program that is registered is read, and written if it is registered for that, until the
//!   registration is closed. The destination of a read is written, and the source of a write is read, until its completion
//!   is read or the second endpoint is closed, which ends all accesses, also those to peers that are gone.

#![expect(unsafe_code, reason = "a library of C is called")]

use std::ffi::c_int;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::Arc;

use super::MAX_BODY;
use super::bindings::*;
use super::contacts::socket_address;
use super::fabric::Fabric;
use super::memory::{Buffers, Exposed, Spans};
use super::object::{Object, call};
use crate::adapter::{AdapterError, Caps, GetKind};
use crate::adapters::hosts::table::MAX_ADDRESS;
use crate::memory::region::SendRegion;

/// Length of a packet buffer, in bytes: a frame with the largest head and body fits.
pub(super) const PACKET: usize = MAX_BODY + 1024;
/// Length up to which packets are filled with several frames. The kernel takes no more at once from TCP.
pub(super) const FULL: usize = 64 << 10;
/// Receives that are posted.
const RECEIVES: usize = 32;
/// Buffers for packets to all peers.
pub(super) const SENDS: usize = 32;
/// Pieces of accesses to other tasks' memory that the provider has at a time.
pub(super) const PIECES: usize = 64;
/// Completions that are read at once.
pub(super) const BATCH: usize = 16;

// Of rdma/fabric.h and rdma/fi_errno.h.
const GETWAIT: c_int = 5;
const ENABLE: c_int = 6;
const EAGAIN: isize = -(libc::EAGAIN as isize);
const EAVAIL: isize = -259;
/// No such address: what is unspecified, and from where a receive takes messages.
const ADDR_UNSPEC: fi_addr_t = u64::MAX;

/// What a completion tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completion {
    /// The packet in this buffer has left.
    Sent(usize),
    /// A packet of this length has come into this buffer.
    Received(usize, usize),
    /// The packet in this buffer was not sent.
    NotSent(usize),
    /// Nothing has come into this buffer.
    NotReceived(usize),
    /// The piece of an access with this number has ended.
    Accessed(usize),
    /// It has failed.
    NotAccessed(usize),
}

/// Result of [`OfiEndpoint::send`], [`OfiEndpoint::inject`] and [`OfiEndpoint::access`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offered {
    /// The provider has taken it.
    Taken,
    /// No room, or no connection yet.
    Again,
    /// The provider refuses this peer.
    Refused,
}

/// Memory of this task in a piece of an access.
#[derive(Clone, Copy)]
pub(super) enum Span {
    /// So many bytes from here on are filled.
    Into(*mut u8, usize),
    /// So many bytes from here on are stored.
    From(*const u8, usize),
}

impl Span {
    pub(super) fn len(&self) -> usize {
        match *self {
            Self::Into(_, len) | Self::From(_, len) => len,
        }
    }
}

/// One context's endpoint of a network (fi_endpoint), with all that belongs to it.
pub struct OfiEndpoint {
    // In the order of their ends (OE1, OE3).
    /// `None` once it was closed.
    endpoint: Option<Object<fid_ep>>,
    accessor: Option<Object<fid_ep>>,
    /// Whether that was closed.
    accesses_no_more: bool,
    addresses: Object<fid_av>,
    completions: Object<fid_cq>,
    received: Buffers,
    sent: Buffers,
    exposed: Exposed,
    spans: Spans,
    domain: Object<fid_domain>,
    fabric: Arc<Fabric>,
    own: Vec<u8>,
    inject_size: usize,
    /// Readable when a completion may have come; `None` if the provider has no such descriptor.
    descriptor: Option<RawFd>,
    /// Send buffers that nobody uses.
    free: Vec<usize>,
}

// SAFETY: OE2: the objects are not tied to a thread.
unsafe impl Send for OfiEndpoint {}

impl OfiEndpoint {
    pub(super) fn open(fabric: &Arc<Fabric>) -> Result<Self, AdapterError> {
        let done = |action: &'static str, answer: isize| match answer {
            0 => Ok(()),
            error => Err(fabric.failed(action, error)),
        };
        let (info, none) = (fabric.info(), ptr::null_mut());
        // SAFETY: OE1 and OE2: the objects are new, and this is the only thread that knows them.
        unsafe {
            let mut domain = ptr::null_mut();
            let answer = call!(fabric.fabric, ops.domain(fabric.fabric, info, &mut domain, none));
            done("open its domain", answer)?;
            let domain = Object(domain);
            let (completions, descriptor) = queue(fabric, &domain)?;
            let mut attributes: fi_av_attr = std::mem::zeroed();
            attributes.type_ = FI_AV_UNSPEC;
            let mut addresses = ptr::null_mut();
            let answer =
                call!(domain.0, ops.av_open(domain.0, &mut attributes, &mut addresses, none));
            done("make a table of addresses", answer)?;
            let addresses = Object(addresses);
            let endpoint = connected(fabric, &domain, &completions, &addresses)?;
            let ep = endpoint.fid();
            let mut own = vec![0; MAX_ADDRESS];
            let mut len = own.len();
            let answer = call!(endpoint.0, cm.getname(ep, own.as_mut_ptr().cast(), &mut len));
            done("tell its address", answer)?;
            own.truncate(len);
            let received = Buffers::registered(RECEIVES, fabric, &domain, FI_RECV, 1)?;
            let sent = Buffers::registered(SENDS, fabric, &domain, FI_SEND, 2)?;
            let mut made = Self {
                endpoint: Some(endpoint),
                accessor: None,
                accesses_no_more: false,
                addresses,
                completions,
                received,
                sent,
                exposed: Exposed::new(),
                spans: Spans::new(PIECES),
                domain,
                fabric: Arc::clone(fabric),
                own,
                inject_size: (*(*info).tx_attr).inject_size,
                descriptor,
                free: (0..SENDS).collect(),
            };
            for index in 0..RECEIVES {
                let posted = made.post(index);
                if posted != 0 {
                    return Err(made.fabric.failed("post its receives", posted));
                }
            }
            Ok(made)
        }
    }

    /// Returns the address by which other endpoints find this one.
    pub fn address(&self) -> &[u8] {
        &self.own
    }

    /// The same, if it is one of TCP.
    pub(super) fn tcp_address(&self) -> Option<SocketAddr> {
        socket_address(&self.own).filter(|_| self.fabric.is_tcp())
    }

    /// What the adapter can do.
    pub(super) fn caps(&self) -> Caps {
        self.fabric.caps()
    }

    /// Length up to which packets need no buffer.
    pub(super) fn inject_size(&self) -> usize {
        self.inject_size
    }

    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.descriptor
    }

    /// The number by which the provider knows a peer's address; `None` if the address is none of this network.
    pub(super) fn insert(&mut self, address: &[u8]) -> Option<u64> {
        let mut number = ADDR_UNSPEC;
        // Addresses of one network have one length.
        if address.len() != self.own.len() {
            return None;
        }
        // SAFETY: OE1, OE2; the address has the length that the provider expects.
        let inserted = unsafe {
            let (av, address, none) = (self.addresses.0, address.as_ptr().cast(), ptr::null_mut());
            call!(av, ops.insert(av, address, 1, &mut number, 0, none))
        };
        (inserted == 1).then_some(number)
    }

    /// Takes a free send buffer.
    pub(super) fn take_buffer(&mut self) -> Option<usize> {
        self.free.pop()
    }

    /// Gives back a send buffer that is not the provider's.
    pub(super) fn give_back(&mut self, buffer: usize) {
        self.free.push(buffer);
    }

    /// Number of free send buffers.
    pub(super) fn free_buffers(&self) -> usize {
        self.free.len()
    }

    /// The bytes of a send buffer that was taken, and is not the provider's.
    pub(super) fn buffer(&mut self, index: usize) -> &mut [u8] {
        // SAFETY: OE3.
        unsafe { &mut *self.sent.memory[index].get() }
    }

    /// The packet that has come into a buffer.
    pub(super) fn packet(&self, index: usize, len: usize) -> &[u8] {
        // SAFETY: OE3: its completion was read, and it was not posted again.
        let packet: &[u8; PACKET] = unsafe { &*self.received.memory[index].get() };
        &packet[..len.min(PACKET)]
    }

    /// Offers bytes that are copied (fi_inject).
    pub(super) fn inject(&mut self, to: u64, bytes: &[u8]) -> Offered {
        let Some(Object(ep)) = self.endpoint else { return Offered::Refused };
        // SAFETY: OE1, OE2; the provider reads the bytes inside the call.
        let answer = unsafe { call!(ep, msg.inject(ep, bytes.as_ptr().cast(), bytes.len(), to)) };
        offered(answer)
    }

    /// [`OfiEndpoint::inject`] of the first `len` bytes of a send buffer.
    pub(super) fn inject_buffer(&mut self, to: u64, buffer: usize, len: usize) -> Offered {
        // SAFETY: OE3; the bytes are only read.
        let packet: &[u8; PACKET] = unsafe { &*self.sent.memory[buffer].get() };
        let packet: *const [u8] = &packet[..len];
        // SAFETY: as above: `inject` touches no buffer.
        self.inject(to, unsafe { &*packet })
    }

    /// Offers the first `len` bytes of a send buffer (fi_send), which is the provider's if it was taken (OE3).
    pub(super) fn send(&mut self, to: u64, buffer: usize, len: usize) -> Offered {
        let Some(Object(ep)) = self.endpoint else { return Offered::Refused };
        let start: *const u8 = self.sent.memory[buffer].get().cast();
        // SAFETY: OE1 to OE3.
        let answer = unsafe {
            let context = self.sent.contexts.of(buffer);
            call!(ep, msg.send(ep, start.cast(), len, self.sent.descriptor(), to, context))
        };
        offered(answer)
    }

    /// Posts a receive buffer again, after its packet was used. Returns whether the provider has taken it; otherwise it is
    /// asked again later.
    pub(super) fn release(&mut self, buffer: usize) -> bool {
        self.post(buffer) == 0
    }

    fn post(&mut self, buffer: usize) -> isize {
        let Some(Object(ep)) = self.endpoint else { return 0 };
        let start: *mut u8 = self.received.memory[buffer].get().cast();
        // SAFETY: OE1 to OE3.
        unsafe {
            let context = self.received.contexts.of(buffer);
            let descriptor = self.received.descriptor();
            call!(ep, msg.recv(ep, start.cast(), PACKET, descriptor, ADDR_UNSPEC, context))
        }
    }

    /// Lets the provider make progress, and passes on some completions. Returns how many, or [`BATCH`] if there may be
    /// more.
    pub(super) fn complete(&mut self, mut done: impl FnMut(&mut Self, Completion)) -> usize {
        let none = fi_cq_msg_entry { op_context: ptr::null_mut(), flags: 0, len: 0 };
        let mut entries = [none; BATCH];
        // SAFETY: OE1, OE2; there is room for so many entries of the format that the queue has.
        let answer = unsafe {
            let cq = self.completions.0;
            call!(cq, ops.read(cq, entries.as_mut_ptr().cast(), BATCH))
        };
        if answer == EAVAIL {
            let failed = self.failure();
            if let Some(failed) = failed {
                done(self, failed);
            }
            return BATCH;
        }
        let count = usize::try_from(answer).unwrap_or(0).min(BATCH);
        for entry in &entries[..count] {
            let context = entry.op_context;
            if let Some(buffer) = self.sent.contexts.number(context) {
                done(self, Completion::Sent(buffer));
            } else if let Some(buffer) = self.received.contexts.number(context) {
                done(self, Completion::Received(buffer, entry.len));
            } else if let Some(number) = self.spans.contexts.number(context) {
                done(self, Completion::Accessed(number));
            }
        }
        count
    }

    /// The operation that has failed.
    #[cold]
    fn failure(&mut self) -> Option<Completion> {
        // SAFETY: zeros are a valid entry; OE1, OE2.
        let failed = unsafe {
            let mut failed: fi_cq_err_entry = std::mem::zeroed();
            let cq = self.completions.0;
            let read = call!(cq, ops.readerr(cq, &mut failed, 0));
            (read > 0).then_some(failed)
        }?;
        let context = failed.op_context;
        if let Some(buffer) = self.sent.contexts.number(context) {
            return Some(Completion::NotSent(buffer));
        }
        if let Some(number) = self.spans.contexts.number(context) {
            return Some(Completion::NotAccessed(number));
        }
        let buffer = self.received.contexts.number(context)?;
        // Too long a message, of a stranger, or one whose connection broke.
        Some(Completion::NotReceived(buffer))
    }

    /// Lets other tasks read memory of the program, and write it if that is asked for, until [`OfiEndpoint::hide`]: see
    /// [`Exposed::add`].
    pub(super) fn expose(
        &mut self,
        (memory, is_writable): (SendRegion, bool),
        wanted: u64,
    ) -> Option<(u64, u64)> {
        // SAFETY: OE1, OE2; OE4: the owner of the memory keeps it until then.
        unsafe { self.exposed.add(&self.fabric, &self.domain, (memory, is_writable), wanted) }
    }

    pub(super) fn hide(&mut self, key: u64) {
        self.exposed.remove(key);
    }

    /// Whether other tasks may access memory of the program.
    pub(super) fn exposes(&self) -> bool {
        !self.exposed.is_empty()
    }

    /// Whether such accesses need this task's calls: those of software do, and providers of hardware may finish a read of a
    /// message by them. Memory that stays exposed for long, as windows do, is left to hardware.
    pub(super) fn serves(&self) -> bool {
        match self.fabric.caps().gets {
            Some(GetKind::RemoteSoftware) => self.exposes(),
            _ => self.exposed.has_constant(),
        }
    }

    /// Offers to read memory of a task, `place` of its provider's key (fi_read), or to write it (fi_writemsg), so that
    /// the bytes are in place when that completes. The completion has this number, which no other access has meanwhile; the caller keeps `span` until [`OfiEndpoint::has_accessed`].
    pub(super) fn access(
        &mut self,
        number: usize,
        to: u64,
        (key, place): (u64, u64),
        span: Span,
    ) -> Offered {
        if self.accesses_no_more {
            return Offered::Refused;
        }
        let Self { fabric, domain, completions, addresses, accessor, spans, .. } = self;
        if accessor.is_none() {
            // SAFETY: OE1, OE2.
            *accessor = unsafe { connected(fabric, domain, completions, addresses) }.ok();
        }
        let &mut Some(Object(ep)) = accessor else { return Offered::Refused };
        // SAFETY: OE1, OE2; OE4: the caller keeps the memory.
        let answer = unsafe {
            let Some(descriptor) = spans.open(number, fabric, domain, span) else {
                return Offered::Refused;
            };
            let context = spans.contexts.of(number);
            match span {
                Span::Into(start, len) => {
                    call!(ep, rma.read(ep, start.cast(), len, descriptor, to, place, key, context))
                }
                Span::From(start, len) => {
                    let mut descriptor = descriptor;
                    let from = iovec { iov_base: start.cast_mut().cast(), iov_len: len };
                    let into = fi_rma_iov { addr: place, len, key };
                    let write = fi_msg_rma {
                        msg_iov: &from,
                        desc: &mut descriptor,
                        iov_count: 1,
                        addr: to,
                        rma_iov: &into,
                        rma_iov_count: 1,
                        context,
                        data: 0,
                    };
                    // Some providers forget the flags that an endpoint was opened with.
                    call!(ep, rma.writemsg(ep, &write, u64::from(FI_DELIVERY_COMPLETE)))
                }
            }
        };
        let offered = offered(answer);
        if offered != Offered::Taken {
            spans.close(number);
        }
        offered
    }

    /// Its memory of this task is accessed no more.
    pub(super) fn has_accessed(&mut self, number: usize) {
        self.spans.close(number);
    }

    /// Ends all accesses to other tasks' memory (OE4), and refuses later ones. Completions of theirs may still be read.
    pub(super) fn end_accesses(&mut self) {
        self.accessor = None;
        self.accesses_no_more = true;
    }

    /// Ends all that other tasks do with memory of the program (OE4). Nothing is sent or received any more.
    pub(super) fn close(&mut self) {
        self.endpoint = None;
        self.accessor = None;
    }

    /// Whether it was not closed.
    pub(super) fn is_open(&self) -> bool {
        self.endpoint.is_some()
    }

    /// Whether a thread may sleep until the descriptor is readable (fi_trywait): otherwise there is something to do.
    pub(super) fn may_sleep(&mut self) -> bool {
        let mut objects = [self.completions.fid()];
        // SAFETY: OE1, OE2.
        let answer = unsafe {
            let fabric = self.fabric.fabric;
            call!(fabric, ops.trywait(fabric, objects.as_mut_ptr(), 1))
        };
        answer == 0
    }
}

fn offered(answer: isize) -> Offered {
    match answer {
        0 => Offered::Taken,
        EAGAIN => Offered::Again,
        _ => Offered::Refused,
    }
}

/// Opens an endpoint of a domain.
///
/// # Safety
/// OE1 and OE2 for all of them.
unsafe fn connected(
    fabric: &Fabric,
    domain: &Object<fid_domain>,
    completions: &Object<fid_cq>,
    addresses: &Object<fid_av>,
) -> Result<Object<fid_ep>, AdapterError> {
    let done = |action: &'static str, answer: isize| match answer {
        0 => Ok(()),
        error => Err(fabric.failed(action, error)),
    };
    let (mut endpoint, none) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: as the caller promises.
    unsafe {
        let answer = call!(domain.0, ops.endpoint(domain.0, fabric.info(), &mut endpoint, none));
        done("make an endpoint", answer)?;
        let endpoint = Object(endpoint);
        let (ep, both) = (endpoint.fid(), u64::from(FI_SEND | FI_RECV));
        done("join its parts", call!(ep, ops.bind(ep, completions.fid(), both)))?;
        done("join its parts", call!(ep, ops.bind(ep, addresses.fid(), 0)))?;
        done("start its endpoint", call!(ep, ops.control(ep, ENABLE, none)))?;
        Ok(endpoint)
    }
}

/// Opens a queue of completions, with a descriptor if the provider has one.
///
/// # Safety
/// OE1 and OE2 for the domain.
unsafe fn queue(
    fabric: &Fabric,
    domain: &Object<fid_domain>,
) -> Result<(Object<fid_cq>, Option<RawFd>), AdapterError> {
    let mut refused = 0;
    for wait_obj in [FI_WAIT_FD, FI_WAIT_NONE] {
        // SAFETY: zeros are valid attributes; as the caller promises.
        unsafe {
            let mut attributes: fi_cq_attr = std::mem::zeroed();
            attributes.size = 4 * (RECEIVES + SENDS);
            attributes.format = FI_CQ_FORMAT_MSG;
            attributes.wait_obj = wait_obj;
            let (mut completions, none) = (ptr::null_mut(), ptr::null_mut());
            refused =
                call!(domain.0, ops.cq_open(domain.0, &mut attributes, &mut completions, none));
            if refused != 0 {
                continue;
            }
            let completions = Object(completions);
            let mut descriptor: RawFd = -1;
            let found = match wait_obj {
                FI_WAIT_FD => {
                    let cq = completions.fid();
                    call!(cq, ops.control(cq, GETWAIT, (&raw mut descriptor).cast()))
                }
                _ => refused,
            };
            let descriptor = (found == 0 && descriptor >= 0).then_some(descriptor);
            return Ok((completions, descriptor));
        }
    }
    Err(fabric.failed("make a queue of completions", refused))
}
