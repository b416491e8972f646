//! The choice of a protocol for a message: by the table, and by circumstances that are known when it is sent.

use transport_lapi::adapter::Adapter;
use transport_lapi::config::{Circumstance, Protocol};
use transport_lapi::{Session, Step};

use crate::backend::Outbound;
use crate::device::Device;
use crate::envelope;
use crate::error::Error;
use crate::huge;
use crate::select::Table;
use crate::state::State;

impl<A: Adapter> Device<A> {
    /// The protocol that carries a message, under the circumstances of this moment.
    pub(crate) fn protocol_of(
        &self,
        session: &mut Session<A, State>,
        message: &Outbound,
    ) -> Protocol {
        let Outbound { data, dest, .. } = message;
        let (dest, span) = (*dest, data.span());
        // Where Get is made of active messages it copies as often as they do; and a rank that sends to
        // itself has no other end.
        let reads = session.get_kind().is_some() && span.is_some() && dest != self.rank();
        let mut holds = |circumstance| match circumstance {
            Circumstance::HugePages => {
                span.is_some_and(|span| huge::holds(span.addr(), span.len()))
            }
            Circumstance::Alone => {
                session.is_clear(dest)
                    && session.state.exposed[dest as usize] == 0
                    && !session.stores_past_caches(dest)
            }
        };
        self.table().choose(data.len(), |circumstance| reads && holds(circumstance))
    }

    /// Returns the protocol table.
    pub fn table(&self) -> &Table {
        &self.options.table
    }

    /// Returns the message sizes, ascending, above which a message travels in another way: the bounds of the table,
    /// and within the eager range those of the transport. The exceptions of the table are not among them.
    ///
    /// # Errors
    /// [`Error::Finished`], what made the device unusable.
    pub fn thresholds(&self) -> Result<Vec<Step>, Error> {
        let mut steps = self.session()?.steps(size_of_val(&envelope::eager(0, 0)));
        steps.retain(|step| self.table().protocol(step.bytes + 1) == Protocol::Eager);
        let bounds = self.table().ranges().filter_map(|(bound, _)| bound);
        steps.extend(bounds.map(|bytes| {
            let above = match self.table().protocol(bytes + 1) {
                Protocol::Eager => "eager",
                Protocol::Rendezvous => "rendezvous",
            };
            Step { bytes, above }
        }));
        steps.sort_by_key(|step| step.bytes);
        Ok(steps)
    }
}
