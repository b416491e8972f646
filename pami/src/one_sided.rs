//! One-sided communication: puts and gets here, read-modify-writes in `rmw.rs`, fences in `fence.rs`.
//!
//! Memory of other tasks is always named by a [`RemoteMemory`], so PAMI_Put and PAMI_Rput are one call, as are PAMI_Get
//! and PAMI_Rget. What is typed at the other side is transferred block by block.

use transport_lapi::{CounterId, LapiError, Next, Put, Sink, Source, TaskId};

use crate::association::{Access, OneSided};
use crate::context::{Callback, Section};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::memory::RemoteMemory;
use crate::state::{Due, ended};
use crate::types::Type;

mod fence;
pub(crate) mod rmw;

/// The parameters of PAMI_Put, PAMI_Rput and their typed forms.
pub struct PutCall {
    /// The endpoint that has created the memory; may be the caller's.
    pub dest: Endpoint,
    /// The bytes, which stay unchanged until `on_done`. See [`crate::SendCall::data`].
    pub local: Source,
    /// The memory.
    pub remote: RemoteMemory,
    /// Where the bytes go, in bytes of that memory.
    pub offset: u64,
    /// How they lie there, if they are not contiguous.
    pub remote_type: Option<Type>,
    /// Called when the local bytes may change (done_fn).
    pub on_done: Option<Callback>,
    /// Called when the bytes are stored (rdone_fn).
    pub on_remote: Option<Callback>,
}

impl PutCall {
    /// A put without callbacks.
    pub fn new(
        dest: Endpoint,
        remote: RemoteMemory,
        offset: u64,
        local: impl Into<Source>,
    ) -> Self {
        let (local, remote_type, on_done, on_remote) = (local.into(), None, None, None);
        Self { dest, local, remote, offset, remote_type, on_done, on_remote }
    }
}

/// The parameters of PAMI_Get, PAMI_Rget and their typed forms.
pub struct GetCall {
    /// The endpoint that has created the memory; may be the caller's.
    pub dest: Endpoint,
    /// Where the bytes go. See [`crate::Asynchronous::receive`].
    pub local: Sink,
    /// The memory.
    pub remote: RemoteMemory,
    /// Where the bytes are, in bytes of that memory.
    pub offset: u64,
    /// How they lie there, if they are not contiguous.
    pub remote_type: Option<Type>,
    /// Called when the bytes are here (done_fn).
    pub on_done: Option<Callback>,
}

impl GetCall {
    /// A get without a callback.
    pub fn new(dest: Endpoint, remote: RemoteMemory, offset: u64, local: impl Into<Sink>) -> Self {
        let (local, remote_type, on_done) = (local.into(), None, None);
        Self { dest, local, remote, offset, remote_type, on_done }
    }
}

impl Section<'_> {
    /// Stores bytes in memory of another task (PAMI_Put, PAMI_Rput, PAMI_Put_typed, PAMI_Rput_typed). Never blocks. Puts
    /// are not ordered with anything.
    ///
    /// # Errors
    /// [`Error::NoBytes`], [`Error::NoEndpoint`], [`Error::NoContext`], [`Error::Sizes`], [`Error::NoRange`]. What the
    /// transport refuses, such as bytes that do not lie in the memory, and a lost task, are told to the callbacks, or
    /// by the call if there are none. If the memory was destroyed, both tasks get an asynchronous error.
    #[inline(always)]
    pub fn put(&mut self, call: PutCall) -> Result<(), Error> {
        // Here the compiler knows what the call consists of, and keeps that in registers.
        if let PutCall {
            dest, local: Source::Span(from), remote, offset, remote_type: None, ..
        } = &call
        {
            let is_short = remote.0.is_in_area() && !from.is_empty() && self.is_here(*dest);
            let put = || Put::new(dest.task(), remote.0, *offset, *from);
            if is_short && self.session.put(put()).is_ok() {
                let PutCall { local, on_done, on_remote, .. } = call;
                // A span owns nothing.
                std::mem::forget(local);
                self.session.state.puts.take(Access::Direct);
                for callback in [on_done, on_remote].into_iter().flatten() {
                    self.session.state.due.push_back(Due::Event(callback, Ok(())));
                }
                return Ok(());
            }
        }
        self.put_any(call)
    }

    /// [`Section::put`] of whatever the short path does not do.
    #[inline(never)]
    fn put_any(&mut self, call: PutCall) -> Result<(), Error> {
        self.check_transfer(call.dest, call.local.len(), call.remote_type.as_ref())?;
        if self.is_here(call.dest) {
            return self.put_here(call);
        }
        let [on_done, on_remote] =
            [call.on_done, call.on_remote].map(|one| one.map(|one| self.at_home(one)));
        let call = PutCall { on_done, on_remote, ..call };
        self.post_toward(call.dest, move |section| section.put_here(call))
    }

    /// Fetches bytes of another task's memory (PAMI_Get, PAMI_Rget, PAMI_Get_typed, PAMI_Rget_typed). Never blocks.
    ///
    /// # Errors
    /// Those of [`Section::put`]. If the memory was destroyed, the callback is told.
    #[inline]
    pub fn get(&mut self, call: GetCall) -> Result<(), Error> {
        self.check_transfer(call.dest, call.local.len(), call.remote_type.as_ref())?;
        if self.is_here(call.dest) {
            if call.remote_type.is_some() || !call.remote.0.is_in_area() {
                return self.get_here(call);
            }
            // The bytes are here when the call returns.
            let GetCall { dest, local, remote, offset, on_done, .. } = call;
            self.session.state.gets.take(Access::Direct);
            let outcome = self.session.get(dest.task(), remote.0, offset, local, Next::Nothing);
            return self.end_at_once([on_done], outcome);
        }
        let on_done = call.on_done.map(|one| self.at_home(one));
        let call = GetCall { on_done, ..call };
        self.post_toward(call.dest, move |section| section.get_here(call))
    }

    /// Whether an endpoint is one of those that this context reaches.
    #[inline]
    pub(crate) fn is_here(&self, endpoint: Endpoint) -> bool {
        endpoint.offset() == self.core.offset
    }

    #[inline]
    fn check_transfer(
        &self,
        dest: Endpoint,
        len: usize,
        there: Option<&Type>,
    ) -> Result<(), Error> {
        if len == 0 {
            return Err(Error::NoBytes { dest });
        }
        match there {
            Some(there) if there.size() != len => {
                Err(Error::Sizes { dest, local: len, remote: there.size() })
            }
            _ => self.core.check_endpoint(dest),
        }
    }

    fn put_here(&mut self, call: PutCall) -> Result<(), Error> {
        let PutCall { dest, local, remote, offset, remote_type, on_done, on_remote } = call;
        let (target, form) = (dest.task(), (local.len(), remote_type.is_some()));
        let remote = self.access(OneSided::Put, dest, remote.0, form)?;
        let put = Put::new(target, remote, offset, local);
        let start = |section: &mut Self, put| match &remote_type {
            None => section.session.put(put).map(drop),
            Some(there) => section.session.put_blocks(put, &there.vector(offset)).map(drop),
        };
        if remote.is_in_area() {
            // The bytes are stored when the call returns.
            let outcome = start(self, put);
            return self.end_at_once([on_done, on_remote], outcome);
        }
        let counted = self.begin_counted(target, on_remote);
        let local_end = self.begin(target, on_done);
        let on_origin = local_end.map_or(Next::Nothing, |number| Next::Outcome(ended, number));
        let cmpl_cntr = counted.map(|(counter, _)| counter);
        start(self, Put { on_origin, cmpl_cntr, ..put }).or_else(|cause| {
            // A counter that nothing counts any more is not used again.
            self.session.state.counted.retain(|counter| Some(*counter) != counted);
            self.fail([local_end, counted.map(|(_, number)| number)], cause)
        })
    }

    /// Notes a put whose end at the target is wanted: a counter of the transport counts it.
    fn begin_counted(
        &mut self,
        target: TaskId,
        callback: Option<Callback>,
    ) -> Option<(CounterId, u64)> {
        let number = self.begin(target, callback)?;
        let state = &mut self.session.state;
        state.operations.wait_for_target(number);
        let counter = state.free_counters.pop();
        let counter = counter.unwrap_or_else(|| self.session.counter());
        self.session.state.counted.push((counter, number));
        Some((counter, number))
    }

    #[inline(never)]
    fn get_here(&mut self, call: GetCall) -> Result<(), Error> {
        let GetCall { dest, local, remote, offset, remote_type, on_done } = call;
        let (target, form) = (dest.task(), (local.len(), remote_type.is_some()));
        let remote = self.access(OneSided::Get, dest, remote.0, form)?;
        let start = |section: &mut Self, next| match &remote_type {
            None => section.session.get(target, remote, offset, local, next),
            Some(there) => {
                let blocks = there.vector(offset);
                section.session.get_blocks((target, remote), &blocks, local, next, None)
            }
        };
        if remote.is_in_area() {
            // The bytes are here when the call returns.
            let outcome = start(self, Next::Nothing);
            return self.end_at_once([on_done], outcome);
        }
        let number = self.begin(target, on_done);
        let next = number.map_or(Next::Nothing, |number| Next::Outcome(ended, number));
        start(self, next).or_else(|cause| self.fail([number], cause))
    }

    /// Ends an operation that is over when its call returns. A failure is told to its callbacks; if there are none, the
    /// call fails.
    #[inline]
    fn end_at_once<const N: usize>(
        &mut self,
        callbacks: [Option<Callback>; N],
        outcome: Result<(), LapiError>,
    ) -> Result<(), Error> {
        let result = outcome.map_err(|cause| self.failed(cause));
        let mut callbacks = callbacks.into_iter().flatten().peekable();
        let returned = if callbacks.peek().is_some() { Ok(()) } else { result.clone() };
        let due = callbacks.map(|callback| Due::Event(callback, result.clone()));
        self.session.state.due.extend(due);
        returned
    }
}
