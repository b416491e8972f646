//! Memory that other ranks read and write without this rank's help, for one-sided communication.
//!
//! - DR1: an access of this device ends when nobody reads its source, or writes its destination, any more. A put that
//!   succeeds ends when its bytes are in place at the target, so that whatever this rank sends afterwards comes behind
//!   them. The loss of the target ends accesses to it; the loss of other ranks ends none.

use transport_lapi::adapter::AdapterError;
use transport_lapi::{LapiError, Next, Outbox, RecvRegion, RemoteRegion, Sink, Source};

use crate::call_names::Call;
use crate::device::Device;
use crate::error::Error;
use crate::protocol::by_hardware;
use crate::request::{Operation, Request, SourceTag};
use crate::state::State;

impl Device {
    /// Returns whether hardware of a network reads and writes memory of a rank, and none of its processors. Software of a
    /// network does not count: what it does, messages do as well.
    ///
    /// # Errors
    /// [`Error::Rank`]; [`Error::Finished`], what made the device unusable.
    pub fn reaches_memory(&self, rank: usize) -> Result<bool, Error> {
        let rank = self.check_rank(rank)?;
        Ok(self.session()?.caps(rank).is_some_and(|caps| by_hardware(&caps)))
    }

    /// Lets other ranks read and write memory of this rank, until [`Device::end_exposure`]. They have to be told of the region.
    /// If the network does not take the memory, the region has no [key](RemoteRegion::direct) for it.
    ///
    /// # Errors
    /// [`Error::Transport`] for a null address with a length; [`Error::Finished`], what made the device unusable.
    pub fn expose(&self, memory: RecvRegion) -> Result<RemoteRegion, Error> {
        Ok(self.session()?.register_writable(memory)?)
    }

    /// Ends [`Device::expose`]. When it returns, the network accesses the memory no more. A device that has failed has done
    /// the same before.
    pub fn end_exposure(&self, region: RemoteRegion) {
        if let Ok(mut session) = self.session() {
            session.deregister(region, Next::Nothing);
        }
    }

    /// Writes bytes to memory that a rank has exposed (DR1).
    ///
    /// # Errors
    /// [`Error::Rank`]; the loss of the rank; [`Error::Transport`] if the bytes do not lie inside the region;
    /// [`Error::Finished`], what made the device unusable. The request also fails if the network refuses the access.
    pub fn put_to(
        &self,
        rank: usize,
        (region, offset): (RemoteRegion, u64),
        from: Source,
    ) -> Result<Request, Error> {
        self.access(rank, from.len(), |session, next, target| {
            session.put_directly((target, region), offset, from, next)
        })
    }

    /// Reads bytes of memory that a rank has exposed (DR1).
    ///
    /// # Errors
    /// As [`Device::put_to`].
    pub fn get_from(
        &self,
        rank: usize,
        (region, offset): (RemoteRegion, u64),
        into: Sink,
    ) -> Result<Request, Error> {
        self.access(rank, into.len(), |session, next, target| {
            session.get(target, region, offset, into, next)
        })
    }

    /// Starts an access of so many bytes.
    fn access(
        &self,
        rank: usize,
        bytes: usize,
        start: impl FnOnce(
            &mut transport_lapi::Session<State>,
            Next<State>,
            u32,
        ) -> Result<(), LapiError>,
    ) -> Result<Request, Error> {
        let target = self.check_rank(rank)?;
        let mut session = self.session()?;
        let operation =
            || Operation::Client { call: Call::WinFlush, context: 0, tag: 0, peer: None };
        let key = session.state.requests.insert(operation);
        session.state.stats.accesses += 1;
        session.state.stats.access_bytes += bytes as u64;
        if let Err(error) = start(&mut session, Next::Outcome(ended, key), target) {
            session.state.requests.forget(key);
            return Err(error.into());
        }
        session.wake();
        Ok(Request::pending(key, self.number()))
    }
}

/// An access has ended.
fn ended(state: &mut State, _: &mut Outbox<State>, key: u64, outcome: Result<(), LapiError>) {
    let ended = match outcome {
        Ok(()) => Operation::Done { from: SourceTag::new(0, 0), bytes: 0 },
        Err(error) => {
            if let LapiError::Adapter(AdapterError::PeerLost { task }) = error {
                state.losses.first_loss.get_or_insert(task);
            }
            Operation::Failed(Box::new(error.into()))
        }
    };
    state.requests.end(key, ended);
}
