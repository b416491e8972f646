//! The access of a process to a network: which ones libfabric offers, and the one that is opened.
//!
//! It keeps OE1 of [`super::endpoint`].

#![expect(unsafe_code, reason = "a library of C is called")]

use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::sync::Arc;

use super::accesses::PIECE;
use super::bindings::*;
use super::choice::{self, FabricChoice, Offer};
use super::endpoint::OfiEndpoint;
use super::library::Library;
use super::object::close;
use super::{MAX_BODY, MAX_HEAD, THIRD};
use crate::adapter::{AdapterError, Caps, Pieces};
use crate::adapters::hosts::network::network;

/// Version of the interface that the structures are of.
const VERSION: u32 = 1 << 16 | 17;

// Of rdma/fabric.h.
const SOCKADDR_IN: u32 = 2;
const SOCKADDR_IN6: u32 = 3;

/// A copy of a description of libfabric.
struct Info(*mut fi_info);

impl Drop for Info {
    fn drop(&mut self) {
        if let Ok(library) = Library::get() {
            // SAFETY: OE1; the description was made by the library.
            unsafe { (library.freeinfo)(self.0) };
        }
    }
}

/// The access of a process to a network (fi_fabric).
pub struct Fabric {
    library: &'static Library,
    info: Info,
    pub(super) fabric: *mut fid_fabric,
    caps: Caps,
    explanation: String,
}

// SAFETY: OE1; opening domains is safe from any thread, and the description is only read.
unsafe impl Send for Fabric {}
// SAFETY: as above.
unsafe impl Sync for Fabric {}

impl Fabric {
    /// Loads libfabric, chooses a provider and a domain, and opens the fabric.
    ///
    /// # Errors
    /// [`AdapterError::NoFabric`] with the cause and what to change.
    pub fn open(choice: &FabricChoice) -> Result<Arc<Self>, AdapterError> {
        Self::open_for(choice, Offer::writes_by_hardware)
    }

    /// [`Fabric::open`], with writes of other tasks' memory also where software of the network carries them out. It may go on
    /// with one that it has begun when the registration of the memory ends (A11), so the tasks of a test that use this meet
    /// before.
    ///
    /// # Errors
    /// As there.
    pub fn open_with_writes_by_software(choice: &FabricChoice) -> Result<Arc<Self>, AdapterError> {
        Self::open_for(choice, |offer| offer.has_writes)
    }

    fn open_for(
        choice: &FabricChoice,
        has_puts: impl FnOnce(&Offer) -> bool,
    ) -> Result<Arc<Self>, AdapterError> {
        let no_fabric = |reason| AdapterError::NoFabric { reason };
        let library = Library::get().map_err(no_fabric)?;
        let reads = FI_MSG | FI_RMA | FI_READ | FI_REMOTE_READ;
        let writes = reads | FI_WRITE | FI_REMOTE_WRITE;
        let lists = [(writes, FI_DELIVERY_COMPLETE), (reads, 0), (FI_MSG, 0)]
            .map(|(caps, flags)| offers(library, caps | FI_SEND | FI_RECV, flags));
        let [with_writes, with_reads, without] = lists.map(|list| list.map_err(no_fabric));
        let lists = [with_writes?, with_reads?, without?];
        // SAFETY: OE1: the lists live until the end of this function.
        let list: Vec<*mut fi_info> =
            lists.iter().flat_map(|list| unsafe { chain(list) }).collect();
        // SAFETY: OE1.
        let offers: Vec<Offer> = list.iter().map(|info| unsafe { describe(*info) }).collect();
        let (index, why) = choice::choose(&offers, choice).map_err(no_fabric)?;
        // SAFETY: OE1; a copy is independent of the list.
        let info = Info(unsafe { (library.dupinfo)(list[index]) });
        // SAFETY: OE1: nobody else has the description. Messages need not be in place when they have left.
        unsafe { (*(*info.0).tx_attr).op_flags &= !u64::from(FI_DELIVERY_COMPLETE) };
        let mut fabric = ptr::null_mut();
        // SAFETY: OE1; the attributes belong to `info`.
        let opened =
            unsafe { (library.fabric)((*info.0).fabric_attr, &mut fabric, ptr::null_mut()) };
        let (major, minor) = library.version();
        let explanation = format!("libfabric {major}.{minor}, {why}");
        if opened != 0 {
            let words = library.words(opened as isize);
            return Err(no_fabric(format!("{explanation}: it cannot be opened: {words}")));
        }
        // One for each process, and it is used as a constant.
        let provider = Box::leak(offers[index].provider.clone().into_boxed_str());
        let caps = Caps {
            name: provider,
            max_head: MAX_HEAD,
            max_inline: 1024,
            max_body: MAX_BODY,
            pieces: Pieces::new(MAX_BODY as u32, [THIRD; 3]),
            copies_bodies: true,
            gets: offers[index].has_rma.then_some(offers[index].reads()),
            puts: has_puts(&offers[index]),
            atomics: false,
        };
        Ok(Arc::new(Self { library, info, fabric, caps, explanation }))
    }

    /// Returns what adapters can do over this network.
    pub fn caps(&self) -> Caps {
        self.caps
    }

    /// Returns which library, provider and domain are used, and why.
    pub fn explanation(&self) -> &str {
        &self.explanation
    }

    /// Returns provider and domain, as `MPJ_FABRIC` names them.
    pub fn way(&self) -> String {
        // SAFETY: OE1.
        let Offer { provider, domain, .. } = unsafe { describe(self.info.0) };
        format!("{provider}:{domain}")
    }

    /// Returns what the provider is called, and of which library it is, for hosts that compare it with theirs.
    pub fn network(&self) -> String {
        // SAFETY: OE1.
        let Offer { provider, is_ipv6, .. } = unsafe { describe(self.info.0) };
        network(&provider, self.library.version(), is_ipv6)
    }

    /// Opens the endpoint of one context.
    ///
    /// # Errors
    /// [`AdapterError::NoFabric`].
    pub fn endpoint(self: &Arc<Self>) -> Result<OfiEndpoint, AdapterError> {
        OfiEndpoint::open(self)
    }

    /// Whether the network wants this of registered memory (FI_MR_LOCAL and others).
    pub(super) fn has_mode(&self, mode: u32) -> bool {
        // SAFETY: OE1.
        unsafe { (*(*self.info.0).domain_attr).mr_mode & mode as c_int != 0 }
    }

    /// The greatest key of registered memory.
    pub(super) fn most_key(&self) -> u64 {
        // SAFETY: OE1.
        let bytes = unsafe { (*(*self.info.0).domain_attr).mr_key_size };
        if bytes < 8 { (1 << (8 * bytes)) - 1 } else { u64::MAX }
    }

    /// Whether it is the system's TCP that reaches the addresses of this network.
    pub(super) fn is_tcp(&self) -> bool {
        choice::is_over_tcp(self.caps.name)
    }

    /// The description of the network.
    pub(super) fn info(&self) -> *mut fi_info {
        self.info.0
    }

    /// The error for an answer of the library.
    pub(super) fn failed(&self, action: &str, error: isize) -> AdapterError {
        let words = self.library.words(error);
        AdapterError::NoFabric { reason: format!("{}: cannot {action}: {words}", self.explanation) }
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        // SAFETY: OE1.
        unsafe { close(&raw mut (*self.fabric).fid) };
    }
}

/// What the library offers, with these capabilities and flags of operations, for reliable messages that arrive in the order of sending.
fn offers(library: &Library, caps: u32, flags: u32) -> Result<Info, String> {
    // SAFETY: OE1; the library makes the description, and its parts with it.
    let hints = Info(unsafe { (library.dupinfo)(ptr::null()) });
    if hints.0.is_null() {
        return Err("libfabric has no memory".to_owned());
    }
    let mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    // SAFETY: OE1: nobody else has the description.
    unsafe {
        let hints = &mut *hints.0;
        hints.caps = u64::from(caps);
        hints.mode = FI_CONTEXT | FI_CONTEXT2;
        (*hints.ep_attr).type_ = FI_EP_RDM;
        (*hints.domain_attr).mr_mode = mr_mode as c_int;
        (*hints.domain_attr).threading = FI_THREAD_DOMAIN;
        (*hints.tx_attr).op_flags = u64::from(flags);
        (*hints.tx_attr).msg_order = u64::from(FI_ORDER_SAS);
        (*hints.rx_attr).msg_order = u64::from(FI_ORDER_SAS);
    }
    let mut found = ptr::null_mut();
    // SAFETY: OE1.
    let answer =
        unsafe { (library.getinfo)(VERSION, ptr::null(), ptr::null(), 0, hints.0, &mut found) };
    match answer {
        0 => Ok(Info(found)),
        // Nothing is offered: the list is empty.
        error if error == -libc::ENODATA => Ok(Info(ptr::null_mut())),
        error => {
            let words = library.words(error as isize);
            Err(format!("libfabric cannot list its networks: {words}"))
        }
    }
}

/// The descriptions of a list.
///
/// # Safety
/// OE1 for the list, as long as the answer is used.
unsafe fn chain(list: &Info) -> impl Iterator<Item = *mut fi_info> {
    let some = |info: *mut fi_info| (!info.is_null()).then_some(info);
    // SAFETY: as the caller promises.
    std::iter::successors(some(list.0), move |info| some(unsafe { (**info).next }))
}

/// # Safety
/// OE1 for the description.
unsafe fn describe(info: *const fi_info) -> Offer {
    let text = |text: *const c_char| match text.is_null() {
        true => String::new(),
        // SAFETY: as the caller promises; it ends with a zero byte.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    };
    // SAFETY: as the caller promises.
    let (info, provider, domain) = unsafe {
        let info = &*info;
        (info, text((*info.fabric_attr).prov_name), text((*info.domain_attr).name))
    };
    let byte = |at: usize| {
        let is_there = !info.src_addr.is_null() && at < info.src_addrlen;
        // SAFETY: inside of the address.
        is_there.then(|| unsafe { *info.src_addr.cast::<u8>().add(at) })
    };
    let is_loopback = match info.addr_format {
        // 127.0.0.0/8 at the place of the address in sockaddr_in.
        SOCKADDR_IN => byte(4) == Some(127),
        // ::1 in sockaddr_in6.
        SOCKADDR_IN6 => (8..23).all(|at| byte(at) == Some(0)) && byte(23) == Some(1),
        _ => false,
    };
    let is_ipv6 = info.addr_format == SOCKADDR_IN6;
    // SAFETY: as the caller promises.
    let max_msg_size = unsafe { (*info.ep_attr).max_msg_size };
    let has_rma = info.caps & u64::from(FI_RMA) != 0 && max_msg_size >= PIECE;
    // SAFETY: as the caller promises.
    let flags = unsafe { (*info.tx_attr).op_flags };
    let are_in_place = flags & u64::from(FI_DELIVERY_COMPLETE) != 0;
    let writes = u64::from(FI_WRITE | FI_REMOTE_WRITE);
    let has_writes = has_rma && are_in_place && info.caps & writes == writes;
    Offer { provider, domain, is_loopback, is_ipv6, has_rma, has_writes }
}
