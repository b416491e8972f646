//! What is recorded of a call. Called by the functions of this library.

use std::ffi::c_int;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use transport_lapi::bootstrap::trace::{self, Entry, Kind, Outer, Recorder};

use crate::abi::*;
use crate::communicator::{self, Awaited, Communicator};
use crate::site::Site;

/// A call that is recorded.
#[derive(Clone, Copy)]
pub struct Call {
    entry: Entry,
    recorder: &'static Recorder,
    /// The call in which the program makes this one: an operation of its own runs in a call, for example.
    outer: Outer,
}

impl Call {
    /// Begins a call with this name.
    #[inline]
    pub fn begin(recorder: &'static Recorder, name: u32, kind: Kind) -> Option<Self> {
        let (entry, outer) = recorder.enter(name, kind)?;
        Some(Self { entry, recorder, outer })
    }

    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// Ends the call.
    #[inline]
    pub fn end(&self) {
        self.entry.end();
        self.recorder.leave(self.outer);
    }

    /// Forgets a call that has found nothing: a program that polls would fill the memory.
    pub fn forget(&self) {
        self.recorder.forget(self.entry);
        self.recorder.leave(self.outer);
    }

    /// A send that has begun. libmpi says of each by which protocol it goes, except of short ones that leave at once, which
    /// go eagerly.
    #[inline]
    pub fn sent(&self) {
        if trace::has_lent() && self.entry.has_peer() && !self.entry.has_protocol() {
            self.entry.protocol(false);
        }
    }

    /// A call in a communicator.
    pub fn within(&self, comm: MPI_Comm) {
        if let Some(comm) = communicator::find(comm) {
            self.entry.communicator(comm.number);
        }
    }

    /// A call in a communicator that may be known.
    pub fn within_known(&self, comm: Option<&Communicator>) {
        if let Some(comm) = comm {
            self.entry.communicator(comm.number);
        }
    }

    /// A send to a rank of a communicator.
    #[inline]
    pub fn to(&self, comm: MPI_Comm, dest: c_int, tag: c_int) {
        let Some(comm) = communicator::find(comm) else { return };
        self.entry.communicator(comm.number);
        self.entry.peer(comm.world_rank(dest), Some(tag));
    }

    /// A receive, or a look for a message.
    #[inline]
    pub fn from(&self, comm: MPI_Comm, source: c_int, tag: c_int) {
        let Some(comm) = communicator::find(comm) else { return };
        self.entry.communicator(comm.number);
        self.entry.peer(comm.world_rank(source), (tag != MPI_ANY_TAG).then_some(tag));
    }

    /// Returns whether no rank of the world was named.
    pub fn has_no_peer(&self) -> bool {
        !self.entry.has_peer()
    }

    /// A collective call, with its root if it has one.
    pub fn collective(&self, comm: MPI_Comm, root: Option<c_int>) {
        let Some(comm) = communicator::find(comm) else { return };
        self.entry.communicator(comm.number);
        self.entry.sequence(comm.next_collective());
        if let Some(root) = root {
            self.entry.peer(comm.world_rank(root), None);
        }
    }

    /// An access to the memory of another rank.
    pub fn at_window(&self, win: MPI_Win, target: Option<c_int>) {
        let Some(comm) = communicator::of_window(win) else { return };
        self.entry.communicator(comm.number);
        if let Some(target) = target {
            self.entry.peer(comm.world_rank(target), None);
        }
    }

    /// How many bytes so many elements are.
    #[inline]
    pub fn bytes(&self, count: i64, datatype: MPI_Datatype) {
        self.entry.bytes(count.max(0) as u64 * size_of_type(datatype));
    }

    /// What has come.
    #[inline]
    pub fn came(&self, comm: MPI_Comm, status: MPI_Status) {
        self.came_in(communicator::find(comm), status);
    }

    /// What has come in a communicator that may be known.
    #[inline]
    pub fn came_in(&self, comm: Option<&Communicator>, status: MPI_Status) {
        let peer = comm.and_then(|comm| comm.world_rank(status.MPI_SOURCE));
        self.entry.peer(peer, Some(status.MPI_TAG));
        self.entry.bytes(status.bytes());
    }

    /// What has come in a call that also sends.
    #[inline]
    pub fn also_came(&self, comm: MPI_Comm, status: MPI_Status) {
        let source = communicator::find(comm).and_then(|comm| comm.world_rank(status.MPI_SOURCE));
        if let Some(source) = source {
            self.entry.received(source, status.MPI_TAG, status.bytes());
        }
    }

    /// Which request the call has made. A receive from any rank names its communicator, since the end of its request says
    /// only which rank of that has sent. If `is_kept`, the request is persistent, and ends any number of times.
    #[inline]
    pub fn request(
        &self,
        request: MPI_Request,
        any_in: Option<&'static Communicator>,
        is_kept: bool,
    ) {
        self.entry.request(request as u64);
        if let Some(comm) = any_in {
            communicator::awaits_any(request, Awaited { comm, is_kept });
        }
    }

    /// That the operation of a request has ended in this call. The first one needs no record of its own.
    #[inline]
    pub fn ended(&self, request: MPI_Request, status: MPI_Status) {
        if request == MPI_REQUEST_NULL {
            return;
        }
        let first = Some(self.entry).filter(|entry| !entry.has_request());
        let part = first.or_else(|| self.recorder.part(Kind::Ended, self.entry));
        let Some(part) = part else { return };
        let source = communicator::source_of(request, status.MPI_SOURCE);
        part.peer(source, (status.MPI_TAG >= 0).then_some(status.MPI_TAG));
        part.bytes(status.bytes());
        part.request(request as u64);
        if status.is_cancelled() {
            part.cancelled();
        }
    }

    /// That a persistent request was started in this call.
    pub fn started(&self, request: MPI_Request) {
        if let Some(part) = self.recorder.part(Kind::Started, self.entry) {
            part.request(request as u64);
        }
    }
}

/// Handles below this number are those that the standard defines.
const PREDEFINED: usize = 1 << 12;

/// The sizes of the types that the standard defines, plus 1; 0 if a size is not known yet.
static SIZES: [AtomicU32; PREDEFINED] = [const { AtomicU32::new(0) }; PREDEFINED];

/// The size of a type that a call has just used successfully.
#[inline]
fn size_of_type(datatype: MPI_Datatype) -> u64 {
    match SIZES.get(datatype).map(|size| size.load(Relaxed)) {
        Some(known @ 1..) => u64::from(known) - 1,
        _ => asked_size(datatype),
    }
}

#[cold]
#[inline(never)]
fn asked_size(datatype: MPI_Datatype) -> u64 {
    static SITE: Site = Site::new(c"PMPI_Type_size_c", Kind::Other);
    type Next = unsafe extern "C-unwind" fn(MPI_Datatype, *mut i64) -> c_int;
    let mut size = 0;
    // SAFETY: TP1; a type of the program, and a place for its size.
    let code = unsafe { SITE.next::<Next>().map(|next| next(datatype, &mut size)) };
    let size = if code == Some(MPI_SUCCESS) { size.max(0) as u64 } else { 0 };
    if let (Some(known), Ok(size)) = (SIZES.get(datatype), u32::try_from(size + 1)) {
        known.store(size, Relaxed);
    }
    size
}
