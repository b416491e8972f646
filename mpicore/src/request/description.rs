//! What programs say of the messages that they send and receive on a communicator, in jobs that find mistakes between
//! ranks ([`Description`]).

use std::panic::Location;
use std::sync::Arc;

use mpjdev::{Described, Description, Elements, Types};

use crate::communicator::Communicator;
use crate::datatype::{Datatype, Signature};

/// The types of any number of elements.
struct OfElements(Signature);

impl Types for OfElements {
    fn elements(&self, bytes: u64) -> Option<Elements> {
        let all = self.0.repeat(bytes.div_ceil(self.0.size().max(1)));
        let first = all.first(all.elements_in(bytes)?);
        Some(Elements { fingerprint: first.fingerprint(), text: first.to_string() })
    }
}

impl Communicator {
    /// Says of the next send or receive on this communicator that this thread starts, while the result lives, which
    /// elements it has, and where the program makes it. Without a type the elements fit all others, and so do bytes.
    pub fn describe(
        &self,
        element: Option<&Datatype>,
        place: Option<&'static Location<'static>>,
    ) -> Described {
        let signature = element.map(Datatype::signature).filter(|types| !types.has_bytes());
        let types = signature.map(|types| Arc::new(OfElements(types.clone())) as Arc<dyn Types>);
        Description { context: self.context(), types, place }.of_next_call()
    }
}
