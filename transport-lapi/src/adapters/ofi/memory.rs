//! Memory that libfabric reads and writes: packet buffers, and memory of the program in accesses of one task to another's.
//!
//! Registrations are not kept here for later use: the providers whose registrations cost time keep those themselves
//! (`FI_MR_CACHE_MAX_COUNT` and `FI_MR_CACHE_MAX_SIZE` limit them), and watch the program's memory
//! (`FI_MR_CACHE_MONITOR`), so that they notice when it goes away.
//!
//! It keeps OE1 to OE4 of [`super::endpoint`].

#![expect(unsafe_code, reason = "a library of C is called")]

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr;

use rustc_hash::FxHashMap;

use super::bindings::*;
use super::endpoint::{PACKET, Span};
use super::fabric::Fabric;
use super::object::{Object, call};
use crate::adapter::AdapterError;
use crate::memory::region::SendRegion;

/// Keys of memory in accesses to other tasks' memory; lower ones are of packet buffers. Keys of exposed memory are above 2^32 nearly always,
/// and whichever collides is refused.
const SPAN_KEYS: u64 = 16;

/// Registers memory (fi_mr_reg).
///
/// # Safety
/// OE1 and OE2 for the domain. The memory is there until the registration is closed, or the kernel alone accesses it.
unsafe fn register(
    fabric: &Fabric,
    domain: &Object<fid_domain>,
    memory: (*const c_void, usize),
    access: u32,
    key: u64,
) -> Result<Object<fid_mr>, isize> {
    let (owner, (start, len), mut mr) = (domain.fid(), memory, ptr::null_mut());
    let key = key & fabric.most_key();
    // SAFETY: as the caller promises.
    unsafe {
        let (access, none) = (u64::from(access), ptr::null_mut());
        match call!(domain.0, mr.reg(owner, start, len, access, 0, key, 0, &mut mr, none)) {
            0 => Ok(Object(mr)),
            error => Err(error),
        }
    }
}

/// Of a registration, what the calls want that use it; nothing if there is none.
fn descriptor(registration: Option<&Object<fid_mr>>) -> *mut c_void {
    // SAFETY: OE1.
    registration.map_or(ptr::null_mut(), |mr| unsafe { (*mr.0).mem_desc })
}

/// By which completions name what they complete: numbers from 0 on.
pub(super) struct Contexts(Box<[UnsafeCell<fi_context2>]>);

impl Contexts {
    pub(super) fn new(count: usize) -> Self {
        let empty = || UnsafeCell::new(fi_context2 { internal: [ptr::null_mut(); 8] });
        Self(std::iter::repeat_with(empty).take(count).collect())
    }

    pub(super) fn of(&self, number: usize) -> *mut c_void {
        self.0[number].get().cast()
    }

    /// The number that a completion names.
    pub(super) fn number(&self, context: *mut c_void) -> Option<usize> {
        let offset = context.addr().checked_sub(self.0.as_ptr().addr())?;
        let number = offset / size_of::<fi_context2>();
        (number < self.0.len()).then_some(number)
    }
}

/// Packet buffers (OE3).
pub(super) struct Buffers {
    // Ends before the memory does.
    registration: Option<Object<fid_mr>>,
    pub(super) memory: Box<[UnsafeCell<[u8; PACKET]>]>,
    pub(super) contexts: Contexts,
}

impl Buffers {
    /// So many buffers, known to the provider under `key` if it wants to know them.
    ///
    /// # Safety
    /// OE1 and OE2 for the domain.
    pub(super) unsafe fn registered(
        count: usize,
        fabric: &Fabric,
        domain: &Object<fid_domain>,
        access: u32,
        key: u64,
    ) -> Result<Self, AdapterError> {
        let memory = (0..count).map(|_| UnsafeCell::new([0; PACKET])).collect();
        let mut buffers = Self { registration: None, memory, contexts: Contexts::new(count) };
        if fabric.has_mode(FI_MR_LOCAL) {
            let memory = (buffers.memory.as_ptr().cast(), count * PACKET);
            // SAFETY: as the caller promises; the memory stays where it is (OE3).
            let registered = unsafe { register(fabric, domain, memory, access, key) };
            let registered =
                registered.map_err(|error| fabric.failed("register its buffers", error))?;
            buffers.registration = Some(registered);
        }
        Ok(buffers)
    }

    pub(super) fn descriptor(&self) -> *mut c_void {
        descriptor(self.registration.as_ref())
    }
}

/// Memory of the program that other tasks read or write (OE4).
pub(super) struct Exposed(FxHashMap<u64, (Object<fid_mr>, bool)>);

impl Exposed {
    pub(super) fn new() -> Self {
        Self(FxHashMap::default())
    }

    /// Lets other tasks read memory, and write it if that is asked for, under the wanted key unless the provider chooses one.
    /// Returns the key and the address from which the provider counts; `None` if it refuses.
    ///
    /// # Safety
    /// OE1, OE2 and OE4.
    pub(super) unsafe fn add(
        &mut self,
        fabric: &Fabric,
        domain: &Object<fid_domain>,
        (memory, is_writable): (SendRegion, bool),
        wanted: u64,
    ) -> Option<(u64, u64)> {
        let span = (memory.as_ptr().cast(), memory.len());
        let access = FI_REMOTE_READ | if is_writable { FI_REMOTE_WRITE } else { 0 };
        // SAFETY: as the caller promises.
        let (registration, key) = unsafe {
            let registration = register(fabric, domain, span, access, wanted).ok()?;
            let key = (*registration.0).key;
            (registration, key)
        };
        self.0.insert(key, (registration, is_writable));
        Some((key, if fabric.has_mode(FI_MR_VIRT_ADDR) { memory.addr() } else { 0 }))
    }

    pub(super) fn remove(&mut self, key: u64) {
        self.0.remove(&key);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether memory is exposed that is only read: to messages that are sent just now.
    pub(super) fn has_constant(&self) -> bool {
        self.0.values().any(|(_, is_writable)| !is_writable)
    }
}

/// Memory of this task in accesses to that of others, which the provider has to know in some networks.
pub(super) struct Spans {
    pub(super) contexts: Contexts,
    registrations: Box<[Option<Object<fid_mr>>]>,
}

impl Spans {
    pub(super) fn new(count: usize) -> Self {
        let registrations = std::iter::repeat_with(|| None).take(count).collect();
        Self { contexts: Contexts::new(count), registrations }
    }

    /// Tells the provider of the memory of a piece, if it wants to know, and returns what the access names it by.
    ///
    /// # Safety
    /// OE1, OE2 and OE4.
    pub(super) unsafe fn open(
        &mut self,
        number: usize,
        fabric: &Fabric,
        domain: &Object<fid_domain>,
        span: Span,
    ) -> Option<*mut c_void> {
        if fabric.has_mode(FI_MR_LOCAL) {
            let (start, access) = match span {
                Span::Into(start, _) => (start.cast_const(), FI_READ),
                Span::From(start, _) => (start, FI_WRITE),
            };
            let (memory, key) = ((start.cast(), span.len()), SPAN_KEYS + number as u64);
            // SAFETY: as the caller promises.
            let registered = unsafe { register(fabric, domain, memory, access, key) };
            self.registrations[number] = Some(registered.ok()?);
        }
        Some(descriptor(self.registrations[number].as_ref()))
    }

    /// The access has ended.
    pub(super) fn close(&mut self, number: usize) {
        self.registrations[number] = None;
    }
}
