//! Descriptors from one rank of a host to the others, without a launcher that could pass them on: the first rank of a host
//! makes a memfd, and puts its offer ([`crate::platform::offer`]) into the key-value space. Hosts that trust a process
//! manager to start their programs trust it to keep the offer secret.
//!
//! The first rank keeps its descriptor open under the same number until the others have it; they meet in the segment
//! afterwards, which shows that.

use std::os::fd::{AsFd, OwnedFd};

use super::{Exchange, ExchangeError};
use crate::adapter::TaskId;
use crate::platform::offer::Offer;

impl Exchange {
    /// Returns the rank of this host that offers descriptors to the others.
    pub fn first_of_host(&self) -> TaskId {
        self.ranks_of(self.host()).next().expect("this rank is one of its host")
    }

    /// Offers a memfd to the other ranks of this host, which can open it after a fence. It must be open, under this
    /// number, until they have, and its name must be a random one (HV2).
    ///
    /// # Errors
    /// [`ExchangeError::Handover`] if `/proc` does not show the descriptor; those of [`Exchange::put`].
    pub fn offer(&self, name: &'static str, descriptor: impl AsFd) -> Result<(), ExchangeError> {
        let offer = Offer::of(descriptor).map_err(|source| ExchangeError::Handover {
            owner: self.rank(),
            name,
            source,
        })?;
        self.put(name, &offer.encode())
    }

    /// Opens the memfd that the first rank of this host has offered before a fence. It is close-on-exec.
    ///
    /// # Errors
    /// [`ExchangeError::Handover`] if it cannot be opened; those of [`Exchange::get`].
    pub fn take(&self, name: &'static str) -> Result<OwnedFd, ExchangeError> {
        let owner = self.first_of_host();
        let missing = ExchangeError::Missing { manager: self.manager(), owner, name: name.into() };
        let offer = Offer::decode(&self.get(owner, name)?).ok_or(missing)?;
        offer.open().map_err(|source| ExchangeError::Handover { owner, name, source })
    }
}
