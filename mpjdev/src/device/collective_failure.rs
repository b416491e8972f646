//! Sending failures of collective operations ([`Failure`]).

use crate::device::{Device, check_tag};
use crate::envelope::{self, FAILED, Failure};
use crate::error::Error;
use transport_lapi::Amsend;

impl Device {
    /// Sends a failure to `dest` instead of a message of `context` with `tag`: the receive that would have got the
    /// message fails with [`Error::Failed`], or with the loss of a rank if that is the reason. There is nothing to wait
    /// for.
    ///
    /// # Errors
    /// As [`Device::isend`].
    pub fn send_failure(
        &self,
        failure: &Failure,
        dest: usize,
        tag: i32,
        context: u32,
    ) -> Result<(), Error> {
        let (dest, tag) = (self.check_rank(dest)?, check_tag(tag)?);
        let mut session = self.session()?;
        session.state.losses.check_send(dest, context, tag).map_err(|error| *error)?;
        let uhdr = envelope::eager(context, tag).to_le_bytes();
        let sent = session.amsend(Amsend::new(dest, FAILED, &uhdr, failure.pack()));
        drop(session);
        sent.map(drop).map_err(|error| self.refused(error))
    }
}
