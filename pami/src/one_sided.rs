//! One-sided communication: puts and gets here, read-modify-writes in `rmw.rs`, fences in `fence.rs`.
//!
//! Memory of other tasks is always named by a [`RemoteMemory`], so PAMI_Put and PAMI_Rput are one call, as are PAMI_Get
//! and PAMI_Rget. What is typed at the other side is transferred block by block.

use transport_lapi::{CounterId, LapiError, Next, Put, RemoteRegion, Sink, Source, TaskId};

use crate::RemoteMemory;
use crate::context::{Callback, Section, both};
use crate::error::Error;
use crate::state::{State, at_end};
use crate::types::{Access, Association, Endpoint, Protocol, Type};

mod fence;
pub(crate) mod rmw;

/// The parameters of a put or a get, with what is at this side.
pub struct Transfer<L> {
    /// The endpoint that has created the memory; may be the caller's.
    pub dest: Endpoint,
    /// The bytes of a put, which stay unchanged until `on_done`: see [`crate::SendCall::data`]. Where those of a get go: see
    /// [`crate::Asynchronous::receive`].
    pub local: L,
    /// The memory.
    pub remote: RemoteMemory,
    /// Where the bytes are there, in bytes of that memory.
    pub offset: u64,
    /// How they lie there, if they are not contiguous.
    pub remote_type: Option<Type>,
    /// Called when the bytes of a put may change, or those of a get are here (done_fn).
    pub on_done: Option<Callback>,
    /// Called when the bytes of a put are stored (rdone_fn). A get, which has no other end than that, calls it too.
    pub on_remote: Option<Callback>,
}

/// The parameters of PAMI_Put, PAMI_Rput and their typed forms.
pub type PutCall = Transfer<Source>;
/// The parameters of PAMI_Get, PAMI_Rget and their typed forms.
pub type GetCall = Transfer<Sink>;

impl<L> Transfer<L> {
    /// A transfer without callbacks.
    pub fn new(dest: Endpoint, remote: RemoteMemory, offset: u64, local: impl Into<L>) -> Self {
        let (local, remote_type, on_done, on_remote) = (local.into(), None, None, None);
        Self { dest, local, remote, offset, remote_type, on_done, on_remote }
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
            let is_short = remote.is_in_area() && !from.is_empty() && self.is_here(*dest);
            let put = || Put::new(dest.task(), *remote, *offset, *from);
            if is_short && self.session.put(put()).is_ok() {
                let PutCall { local, on_done, on_remote, .. } = call;
                // A span owns nothing.
                std::mem::forget(local);
                self.session.state.puts.take(Access::Direct);
                return self.end_at_once([on_done, on_remote], Ok(()));
            }
        }
        let len = call.local.len();
        self.transfer(call, len, |section, call| section.put_here(call))
    }

    /// Fetches bytes of another task's memory (PAMI_Get, PAMI_Rget, PAMI_Get_typed, PAMI_Rget_typed). Never blocks.
    ///
    /// # Errors
    /// Those of [`Section::put`]. If the memory was destroyed, the callback is told.
    #[inline]
    pub fn get(&mut self, call: GetCall) -> Result<(), Error> {
        let len = call.local.len();
        self.transfer(call, len, |section, call| section.get_here(call))
    }

    /// Checks a transfer of so many bytes, and begins it in the context of this task that reaches the other side.
    #[inline(never)]
    fn transfer<L: Send + 'static>(
        &mut self,
        call: Transfer<L>,
        len: usize,
        begin: fn(&mut Section<'_>, Transfer<L>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let dest = call.dest;
        if len == 0 {
            return Err(Error::NoBytes { dest });
        }
        let remote = call.remote_type.as_ref().map_or(len, Type::size);
        if remote != len {
            return Err(Error::Sizes { dest, local: len, remote });
        }
        self.core.check_endpoint(dest)?;
        if self.is_here(dest) {
            return begin(self, call);
        }
        let home = |callback: Option<Callback>| callback.map(|one| self.at_home(one));
        let [on_done, on_remote] = [call.on_done, call.on_remote].map(home);
        let call = Transfer { on_done, on_remote, ..call };
        self.post_toward(dest, move |section| begin(section, call))
    }

    fn put_here(&mut self, call: PutCall) -> Result<(), Error> {
        let remote = self.access(&call, call.local.len(), true)?;
        let PutCall { dest, local, offset, remote_type, on_done, on_remote, .. } = call;
        let target = dest.task();
        // What lies in an area is stored when the call returns.
        let (on_done, on_remote) = match remote.is_in_area() {
            true => (both(on_done, on_remote), None),
            false => (on_done, on_remote),
        };
        let counted = self.begin_counted(target, on_remote);
        let local_end = self.begin(target, false, on_done);
        let on_origin = at_end(local_end);
        let cmpl_cntr = counted.map(|(counter, _)| counter);
        let put = Put { on_origin, cmpl_cntr, ..Put::new(target, remote, offset, local) };
        let begun = match remote_type {
            None => self.session.put(put),
            Some(there) => self.session.put_blocks(put, &there.vector(offset)),
        };
        begun.map(drop).or_else(|cause| {
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
        let number = self.begin(target, true, callback)?;
        let counter = self.session.state.free_counters.pop();
        let counter = counter.unwrap_or_else(|| self.session.counter());
        self.session.state.counted.push((counter, number));
        Some((counter, number))
    }

    fn get_here(&mut self, call: GetCall) -> Result<(), Error> {
        let remote = self.access(&call, call.local.len(), false)?;
        let GetCall { dest, local, offset, remote_type, on_done, on_remote, .. } = call;
        let target = dest.task();
        if remote.is_in_area() && remote_type.is_none() {
            // The bytes are here when the call returns.
            let outcome = self.session.get(target, remote, offset, local, Next::Nothing);
            return self.end_at_once([on_done, on_remote], outcome);
        }
        let number = self.begin(target, false, both(on_done, on_remote));
        let next = at_end(number);
        let begun = match remote_type {
            None => self.session.get(target, remote, offset, local, next),
            Some(there) => {
                let blocks = there.vector(offset);
                self.session.get_blocks((target, remote), &blocks, local, next, None)
            }
        };
        begun.or_else(|cause| self.fail([number], cause))
    }

    /// Ends an operation that is over when its call returns. A failure is told to its callbacks; if there are none, the
    /// call fails.
    #[inline]
    fn end_at_once(
        &mut self,
        callbacks: [Option<Callback>; 2],
        outcome: Result<(), LapiError>,
    ) -> Result<(), Error> {
        let result = outcome.map_err(|cause| self.failed(cause));
        let is_told = callbacks.iter().any(Option::is_some);
        for callback in callbacks.into_iter().flatten() {
            self.session.state.tell(callback, result.clone());
        }
        if is_told { Ok(()) } else { result }
    }

    /// Chooses how a put or a get accesses memory, and returns the description of the memory for that. Only the target stores
    /// and packs blocks of memory of its own.
    fn access<L>(
        &mut self,
        call: &Transfer<L>,
        len: usize,
        is_put: bool,
    ) -> Result<RemoteRegion, Error> {
        let region = call.remote;
        let [can_get, can_put] = self.session.accesses(call.dest.task(), &region);
        let State { puts, gets, .. } = &mut self.session.state;
        let (association, is_possible) = if is_put { (puts, can_put) } else { (gets, can_get) };
        let is_direct = region.is_in_area()
            || association.choose(len as u64)? == Access::Direct
                && is_possible
                && call.remote_type.is_none();
        association.take(if is_direct { Access::Direct } else { Access::Messages });
        Ok(if is_direct { region } else { region.over_messages() })
    }

    /// Returns the association of ways to send with lengths of messages.
    pub fn send_association(&mut self) -> &mut Association<Protocol> {
        &mut self.session.state.sends
    }

    /// Returns the association of accesses with lengths of puts.
    pub fn put_association(&mut self) -> &mut Association<Access> {
        &mut self.session.state.puts
    }

    /// Returns the association of accesses with lengths of gets.
    pub fn get_association(&mut self) -> &mut Association<Access> {
        &mut self.session.state.gets
    }
}
