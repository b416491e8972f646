//! One-sided operations: put, put and get by vectors, read-modify-write; and all transfers as values of one type.
//!
//! The caller names memory that the target has registered ([`Session::register_writable`]) and an offset in it. If the
//! adapter can do without the target, it carries puts and read-modify-writes out (`progress/access.rs`). Otherwise the
//! target's dispatcher does, without any handler of the client. A put is then an active message for handler 0, which
//! belongs to the transport: `progress/serve/request.rs` has its user header, `progress/serve.rs` the target's part. So
//! puts use the same packets, counters and buffers as other messages, and a fence waits for them too. A
//! read-modify-write (`progress/rmw.rs`) has packets of its own.
//!
//! If the adapter has shared areas, memory can be allocated there (`shared.rs`); then the origin carries operations out
//! by itself.
//!
//! Which counter is incremented when, for every operation (LAPI's rules):
//!
//! | operation | origin counter | target counter | completion counter |
//! |---|---|---|---|
//! | put, putv | the origin's buffer is reusable | all data is stored | the origin knows that |
//! | get, getv | all data is stored at the origin | the target's memory has been read | none |
//! | amsend | the origin's buffer is reusable | the completion handler has returned | the origin knows that |
//! | rmw | the result has arrived | none | none |

mod fence;
mod shared;

pub use shared::SharedMemory;

use crate::adapter::{OneSided, TaskId};
use crate::error::{End, LapiError};
use crate::memory::body::{Sink, Source};
use crate::memory::layout::LayoutError;
use crate::memory::region::{RecvRegion, RemoteRegion, SendRegion};
use crate::progress::access::{Placed, PutAccess};
use crate::progress::amsend::{Amsend, Sent, check_target};
use crate::progress::counter::CounterId;
use crate::progress::direct::Direct;
use crate::progress::handler::Next;
use crate::progress::outbox::Outbox;
use crate::progress::rmw::Rmw;
use crate::progress::round::keep_first;
use crate::progress::serve::request::{OWN, Request};
use crate::progress::serve::vector::Vector;
use crate::progress::session::Session;

/// The parameters of LAPI_Put.
pub struct Put<S> {
    /// The task that owns the memory; may be the caller.
    pub target: TaskId,
    /// The target's memory.
    pub remote: RemoteRegion,
    /// Offset in that memory, in bytes.
    pub offset: u64,
    /// The data; not copied, see [`Sent`].
    pub from: Source,
    /// The action when the origin's buffer is reusable: LAPI's `org_cntr` or send completion handler.
    pub on_origin: Next<S>,
    /// Counter *of the target* that is incremented when all data is stored there.
    pub tgt_cntr: Option<CounterId>,
    /// Counter of the origin that is incremented when all data is stored at the target.
    pub cmpl_cntr: Option<CounterId>,
}

impl<S> Put<S> {
    /// Makes the parameters of a put without counters.
    #[inline]
    pub fn new(target: TaskId, remote: RemoteRegion, offset: u64, from: impl Into<Source>) -> Self {
        let (from, on_origin) = (from.into(), Next::Nothing);
        Self { target, remote, offset, from, on_origin, tgt_cntr: None, cmpl_cntr: None }
    }
}

/// The parameters of LAPI_Putv: blocks of the origin's memory are stored to blocks of the target's.
pub struct Putv<'a, S> {
    /// The task that owns the memory; may be the caller.
    pub target: TaskId,
    /// The target's memory.
    pub remote: RemoteRegion,
    /// The blocks in the target's memory. They do not overlap.
    pub tgt_vec: &'a Vector,
    /// The origin's memory; not copied, see [`Sent`].
    pub memory: SendRegion,
    /// The blocks in the origin's memory.
    pub org_vec: &'a Vector,
    /// As in [`Put`].
    pub on_origin: Next<S>,
    /// As in [`Put`].
    pub tgt_cntr: Option<CounterId>,
    /// As in [`Put`].
    pub cmpl_cntr: Option<CounterId>,
}

/// The parameters of LAPI_Getv: blocks of the target's memory are stored to blocks of the origin's.
pub struct Getv<'a, S> {
    /// The task that owns the memory; may be the caller.
    pub target: TaskId,
    /// The target's memory.
    pub remote: RemoteRegion,
    /// The blocks in the target's memory.
    pub tgt_vec: &'a Vector,
    /// The origin's memory.
    pub memory: RecvRegion,
    /// The blocks in the origin's memory. They do not overlap.
    pub org_vec: &'a Vector,
    /// The action when all data is stored at the origin: LAPI's `org_cntr` or get completion handler.
    pub next: Next<S>,
    /// Counter *of the target* that is incremented when its memory has been read.
    pub tgt_cntr: Option<CounterId>,
}

/// Words of a vector in one message that is sent ahead.
const WORDS_AHEAD: usize = 1024;

impl<S> Session<S> {
    /// Stores data in memory that the target has registered for writing or allocated in its shared area (LAPI_Put).
    /// Never blocks. In a shared area the data is stored when the call returns. Otherwise it is not copied; it must
    /// stay unchanged until the call returns [`Sent::Now`], or the counter or handler reports that it may change. A put
    /// of no bytes only increments the counters.
    ///
    /// ```
    /// # use transport_lapi::{Context, Put, RecvRegion, SendRegion, adapters};
    /// # let adapter = adapters::threads::job(1)?.remove(0);
    /// let context = Context::init(adapter, (), Default::default());
    /// let mut memory = [0_u8; 16];
    /// // SAFETY: nobody else uses the array until the registration has ended.
    /// let region = unsafe { RecvRegion::new(memory.as_mut_ptr(), 16) };
    /// let region = context.session()?.register_writable(region)?;
    ///
    /// // SAFETY: a static is never written.
    /// let bytes = unsafe { SendRegion::new(b"put".as_ptr(), 3) };
    /// context.session()?.put(Put::new(0, region, 4, bytes))?;
    /// context.fence()?;
    /// context.session()?.deregister(region, transport_lapi::Next::Nothing);
    /// assert_eq!(&memory[..8], b"\0\0\0\0put\0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LapiError::DataLen`] if the range is not inside the region; [`LapiError::OrgAddrNull`] and
    /// [`LapiError::TgtAddrNull`] for a null address with a length; [`LapiError::Tgt`]; [`LapiError::CntrNull`] for an
    /// origin counter that does not exist; the adapter's error if the target is lost. After an error the buffer belongs
    /// to the caller again. If the target has not registered the memory for writing, nothing is stored; the target and
    /// the origin get an asynchronous error ([`crate::Violation::PutRefused`]), and no counter is incremented.
    #[inline]
    pub fn put(&mut self, call: Put<S>) -> Result<Sent, LapiError> {
        let Put { target, remote, offset, .. } = call;
        if let Put {
            from: Source::Span(from), on_origin: Next::Nothing, tgt_cntr, cmpl_cntr, ..
        } = &call
        {
            let is_silent = tgt_cntr.is_none() && cmpl_cntr.is_none();
            let direct = self.direct(target).filter(|_| is_silent);
            if direct.is_some_and(|direct| direct.store(target, remote, offset, *from)) {
                return Ok(Sent::Now);
            }
        }
        self.put_any(call)
    }

    /// The short path to the area of `target`, unless that task is lost.
    #[inline(always)]
    pub(crate) fn direct(&self, target: TaskId) -> Option<&Direct> {
        let Outbox { send_queues, shared, .. } = &self.engine.outbox;
        let is_there =
            send_queues.get(target as usize).is_some_and(|send_queue| send_queue.is_open());
        shared.as_ref().filter(|_| is_there).map(|shared| &shared.direct)
    }

    /// [`Session::put`] of whatever the short path does not do.
    #[inline(never)]
    fn put_any(&mut self, call: Put<S>) -> Result<Sent, LapiError> {
        let Put { target, remote, offset, from, on_origin, tgt_cntr, cmpl_cntr } = call;
        self.engine.outbox.check_operation(target, &on_origin)?;
        let len = from.len() as u64;
        remote.check(offset, len)?;
        if let Some(place) = remote.area_place(offset) {
            let counters = [tgt_cntr, cmpl_cntr];
            return self.put_shared(target, [(place, len)], &from, on_origin, counters);
        }
        let header = Request::Put { key: remote.key, offset }.encode();
        let call = Amsend::new(target, OWN, header.bytes(), from);
        let call = Amsend { on_origin, tgt_cntr, cmpl_cntr, ..call };
        if len == 0 || remote.direct.is_none() || !self.engine.outbox.send_queues[target].puts {
            return self.send(call);
        }
        call.check(self.engine.outbox.send_queues.num_tasks())?;
        let counters = call.counters();
        let Amsend { udata: from, on_origin: next, .. } = call;
        let placed = Placed::Count(counters);
        let put = PutAccess { remote, offset, from, next, placed };
        self.engine.outbox.queue_put(target, put);
        self.start_queued(target);
        Ok(Sent::Later)
    }

    /// Stores data as [`Session::put`] does, but by the adapter alone: the target's help is not asked for. `next` is
    /// performed when all data is in place, or with the error if it will not be, as far as it concerns an outcome
    /// ([`Next::Outcome`]). The source must stay unchanged until then.
    ///
    /// # Errors
    /// As [`Session::put`]; [`AdapterError::AccessFailed`](crate::adapter::AdapterError::AccessFailed) if the adapter does
    /// not write the target's memory.
    pub fn put_directly(
        &mut self,
        (target, remote): (TaskId, RemoteRegion),
        offset: u64,
        from: Source,
        next: Next<S>,
    ) -> Result<(), LapiError> {
        let outbox = &mut self.engine.outbox;
        outbox.check_operation(target, &next)?;
        remote.check(offset, from.len() as u64)?;
        if from.is_null() {
            return Err(LapiError::OrgAddrNull { len: from.len() });
        }
        if remote.direct.is_none() || !outbox.send_queues[target].puts {
            return Err(OneSided::Flush.unsupported(target).into());
        }
        let placed = Placed::Then(next);
        outbox.queue_put(target, PutAccess { remote, offset, from, next: Next::Nothing, placed });
        self.start_queued(target);
        Ok(())
    }

    /// Stores blocks of the origin's memory to blocks of memory that the target has registered for writing (LAPI_Putv).
    /// Otherwise as [`Session::put`].
    ///
    /// # Errors
    /// Those of [`Session::put`]; [`LapiError::VecAddr`], [`LapiError::VecLen`], [`LapiError::Stride`],
    /// [`LapiError::Extent`], [`LapiError::VecOutside`]; [`LapiError::VecTypeDiff`], [`LapiError::VecNumDiff`],
    /// [`LapiError::VecLenDiff`].
    pub fn putv(&mut self, call: Putv<'_, S>) -> Result<Sent, LapiError> {
        let Putv { target, remote, tgt_vec, memory, org_vec, on_origin, tgt_cntr, cmpl_cntr } =
            call;
        // Before a vector is sent, which the target would keep.
        self.engine.outbox.check_operation(target, &on_origin)?;
        let from = org_vec.gather_at(End::Origin, memory)?;
        org_vec.check_pair(tgt_vec)?;
        let put = Put { on_origin, tgt_cntr, cmpl_cntr, ..Put::new(target, remote, 0, from) };
        self.put_blocks(put, tgt_vec)
    }

    /// [`Session::put`] to blocks of the target's memory, whose offsets count from its start; `call.offset` is not used.
    /// The data may lie in any way.
    ///
    /// # Errors
    /// Those of [`Session::putv`].
    pub fn put_blocks(&mut self, call: Put<S>, blocks: &Vector) -> Result<Sent, LapiError> {
        let Put { target, remote, from, on_origin, tgt_cntr, cmpl_cntr, .. } = call;
        self.engine.outbox.check_operation(target, &on_origin)?;
        check_blocks(from.len(), blocks, remote)?;
        if let Some(place) = remote.area_place(0) {
            let blocks = blocks.blocks().map(|(at, len)| (place + at, len));
            return self.put_shared(target, blocks, &from, on_origin, [tgt_cntr, cmpl_cntr]);
        }
        let vector = self.send_vector(target, blocks)?;
        let header = Request::Putv { key: remote.key, vector }.encode();
        let call = Amsend::new(target, OWN, header.bytes(), from);
        self.send(Amsend { on_origin, tgt_cntr, cmpl_cntr, ..call })
    }

    /// Stores blocks of the target's registered memory to blocks of the origin's (LAPI_Getv). Never blocks. The target
    /// packs the blocks, so it must make progress, unless the memory is in its shared area.
    ///
    /// # Errors
    /// Those of [`Session::putv`]. If the target has not registered the memory, the get ends with an error.
    pub fn getv(&mut self, call: Getv<'_, S>) -> Result<(), LapiError> {
        let Getv { target, remote, tgt_vec, memory, org_vec, next, tgt_cntr } = call;
        check_target(target, self.engine.outbox.send_queues.num_tasks())?;
        let into = org_vec.scatter_at(End::Origin, memory)?;
        org_vec.check_pair(tgt_vec)?;
        self.get_blocks((target, remote), tgt_vec, into, next, tgt_cntr)
    }

    /// [`Session::get`] of blocks of the target's memory, whose offsets count from its start. They may go anywhere.
    ///
    /// # Errors
    /// Those of [`Session::getv`].
    pub fn get_blocks(
        &mut self,
        (target, remote): (TaskId, RemoteRegion),
        blocks: &Vector,
        mut into: Sink,
        next: Next<S>,
        tgt_cntr: Option<CounterId>,
    ) -> Result<(), LapiError> {
        check_target(target, self.engine.outbox.send_queues.num_tasks())?;
        check_blocks(into.len(), blocks, remote)?;
        let outbox = &mut self.engine.outbox;
        if let Some(place) = remote.area_place(0) {
            outbox.check_get(target, &into, &next)?;
            let blocks = blocks.blocks().map(|(at, len)| (place + at, len));
            outbox.get_shared(target, blocks, &mut into)?;
            outbox.has_got(target, next, tgt_cntr);
        } else if into.is_empty() {
            outbox.get_counted(target, remote, 0, into, next, tgt_cntr)?;
        } else {
            let ticket = outbox.get_by_request(target, remote, into, next, tgt_cntr)?;
            let requested = self.send_vector(target, blocks).and_then(|vector| {
                let header = Request::Getv { key: remote.key, ticket, vector }.encode();
                self.send(Amsend::new(target, OWN, header.bytes(), SendRegion::EMPTY))
            });
            if let Err(error) = requested {
                self.engine.outbox.take_back_get(ticket);
                return Err(error);
            }
        }
        // The target's counter may wait in the send queue.
        self.end_call(Next::Nothing);
        Ok(())
    }

    /// Sends a vector ahead if it does not fit into a user header; otherwise returns it.
    fn send_vector(
        &mut self,
        target: TaskId,
        vector: &Vector,
    ) -> Result<Option<Vector>, LapiError> {
        if Request::takes(vector.words_len()) {
            return Ok(Some(vector.clone()));
        }
        // Each part is one packet.
        let at_once =
            WORDS_AHEAD.min(self.engine.outbox.send_queues[target].pieces.whole() / 8).max(1);
        for (nth, part) in vector.words().chunks(at_once).enumerate() {
            let header = Request::Vector { is_first: nth == 0 }.encode();
            let bytes: Vec<u8> = part.iter().flat_map(|word| word.to_le_bytes()).collect();
            let _ = self.send(Amsend::new(target, OWN, header.bytes(), bytes))?;
        }
        Ok(None)
    }

    /// Starts a read-modify-write of a variable in memory that the target has registered for writing or allocated in
    /// its shared area (LAPI_Rmw, LAPI_Rmw64). Never blocks. In a shared area it is done when the call returns, and the
    /// call returns the result; otherwise it returns `None`. It is atomic with respect to other read-modify-writes of
    /// that variable, not to puts or to ordinary stores of the target.
    ///
    /// # Errors
    /// [`LapiError::Tgt`], [`LapiError::TgtVarNull`], [`LapiError::DataLen`] if the variable is not inside the region,
    /// [`LapiError::Unaligned`], [`LapiError::CntrNull`] for an origin counter that does not exist; the adapter's error
    /// if the target is lost. If the target has not registered the memory for writing, the operation ends with an error:
    /// [`crate::Violation::RmwRefused`], or [`AdapterError::AccessFailed`](crate::adapter::AdapterError::AccessFailed)
    /// where the adapter carries it out.
    #[inline]
    pub fn rmw(&mut self, call: Rmw<S>) -> Result<Option<i64>, LapiError> {
        let Rmw { target, remote, offset, operation, .. } = call;
        if let Rmw { prev: None, next: Next::Nothing, .. } = &call {
            let direct = self.direct(target);
            let result = direct.and_then(|direct| direct.rmw(target, remote, offset, operation));
            if result.is_some() {
                return Ok(result);
            }
        }
        self.rmw_any(call)
    }

    /// [`Session::rmw`] of whatever the short path does not do.
    #[inline(never)]
    fn rmw_any(&mut self, call: Rmw<S>) -> Result<Option<i64>, LapiError> {
        let target = call.target;
        match self.engine.outbox.begin_rmw(call)? {
            Some((result, Next::Nothing)) => Ok(Some(result)),
            Some((result, next)) => {
                self.engine.outbox.follow_from(target, next);
                self.end_call(Next::Nothing);
                Ok(Some(result))
            }
            None => {
                self.start_queued(target);
                Ok(None)
            }
        }
    }

    /// Starts what is queued for `target`, as far as the adapter has room.
    fn start_queued(&mut self, target: TaskId) {
        if let Err(error) = self.engine.outbox.flush_send_queue(&mut self.adapter, target) {
            keep_first(&mut self.first_error, error);
        }
        self.end_call(Next::Nothing);
    }
}

/// Checks blocks of the target's memory against that memory, and against the bytes of the origin.
fn check_blocks(origin: usize, target: &Vector, remote: RemoteRegion) -> Result<(), LapiError> {
    let layout = target.layout(End::Target)?;
    if layout.size() != origin {
        return Err(LapiError::VecLenDiff { origin: origin as u64, target: layout.size() as u64 });
    }
    let (low, high) = layout.bounds();
    if remote.addr == 0 && remote.len > 0 && layout.size() > 0 {
        let is_strided = matches!(target, Vector::Strided { .. });
        return Err(LapiError::VecAddr { end: End::Target, is_strided });
    }
    if layout.size() > 0 && high.unsigned_abs() as u64 > remote.len {
        let len = usize::try_from(remote.len).unwrap_or(usize::MAX);
        let error = LayoutError::Outside { low, high, len };
        return Err(LapiError::VecOutside { end: End::Target, error });
    }
    match target.words_len() > Vector::MAX_WORDS {
        true => Err(LapiError::VecLen { end: End::Target }),
        false => Ok(()),
    }
}
