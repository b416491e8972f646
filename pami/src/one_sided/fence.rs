//! Fences, and connections that are closed and opened again.

use transport_lapi::TaskId;

use crate::context::{Callback, Section};
use crate::error::Error;
use crate::state::Fence;
use crate::types::Endpoint;

impl Section<'_> {
    /// Opens a fence region (PAMI_Fence_begin). Fences are possible inside of one only.
    ///
    /// # Errors
    /// [`Error::FenceRegion`] if one is open.
    pub fn fence_begin(&mut self) -> Result<(), Error> {
        self.check_region(false)?;
        self.session.state.in_region = true;
        Ok(())
    }

    /// Closes the fence region (PAMI_Fence_end). Fences that have begun go on.
    ///
    /// # Errors
    /// [`Error::FenceRegion`] if none is open.
    pub fn fence_end(&mut self) -> Result<(), Error> {
        self.check_region(true)?;
        self.session.state.in_region = false;
        Ok(())
    }

    /// Calls `on_done` when all transfers that this context has begun are complete at their targets (PAMI_Fence_all).
    /// Those to endpoints of other offsets are transfers of the contexts with these offsets.
    ///
    /// # Errors
    /// [`Error::FenceRegion`] outside of a region.
    pub fn fence_all(&mut self, on_done: Callback) -> Result<(), Error> {
        self.fence(None, on_done)
    }

    /// [`Section::fence_all`] for the transfers to one endpoint, and all gets (PAMI_Fence_endpoint).
    ///
    /// # Errors
    /// [`Error::FenceRegion`] outside of a region; [`Error::NoEndpoint`].
    pub fn fence_endpoint(&mut self, endpoint: Endpoint, on_done: Callback) -> Result<(), Error> {
        self.core.check_endpoint(endpoint)?;
        self.fence(Some(endpoint.task()), on_done)
    }

    fn fence(&mut self, target: Option<TaskId>, on_done: Callback) -> Result<(), Error> {
        self.check_region(true)?;
        self.session.begin_fence(target).map_err(|cause| self.failed(cause))?;
        let awaited = self.session.state.awaiting(target);
        self.session.state.fences.push(Fence { target, awaited, on_done });
        Ok(())
    }

    fn check_region(&self, is_open: bool) -> Result<(), Error> {
        match self.session.state.in_region == is_open {
            true => Ok(()),
            false => Err(Error::FenceRegion { task: self.task(), is_open: !is_open }),
        }
    }

    /// Closes the connections to tasks (PAMI_Purge): what goes on with them ends with [`Error::Lost`], later calls that
    /// name them fail, and what they send is discarded. They are to do the same.
    ///
    /// # Errors
    /// [`Error::NoEndpoint`]; [`Error::Purge`] for this task itself, and for contexts of another offset.
    pub fn purge(&mut self, endpoints: &[Endpoint]) -> Result<(), Error> {
        self.check_others(endpoints)?;
        for endpoint in endpoints {
            let task = endpoint.task();
            self.session.purge_totask(task).map_err(|cause| self.failed(cause))?;
            // The program has asked for it.
            let is_news =
                |error: &mut Error| matches!(error, Error::Lost { task: lost } if *lost == task);
            self.session.state.first_error.take_if(is_news);
        }
        Ok(())
    }

    /// Opens closed connections again (PAMI_Resume). Never blocks; communication is possible when the others have done
    /// so too.
    ///
    /// # Errors
    /// Those of [`Section::purge`].
    pub fn resume(&mut self, endpoints: &[Endpoint]) -> Result<(), Error> {
        self.check_others(endpoints)?;
        for endpoint in endpoints {
            let resumed = self.session.resume_totask(endpoint.task());
            resumed.map_err(|cause| self.failed(cause))?;
            self.session.state.collectives.lost.remove(&endpoint.task());
        }
        Ok(())
    }

    fn check_others(&self, endpoints: &[Endpoint]) -> Result<(), Error> {
        for &endpoint in endpoints {
            self.core.check_endpoint(endpoint)?;
            if endpoint.task() == self.task() || endpoint.offset() != self.core.offset {
                return Err(Error::Purge { endpoint });
            }
        }
        Ok(())
    }
}
