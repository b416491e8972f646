//! Chooses the protocol of a message, by the table and by the circumstances at the time of sending.

use std::time::{Duration, Instant, SystemTime};

use transport_lapi::adapter::Adapter;
use transport_lapi::config::{Circumstance, Protocol};
use transport_lapi::{Session, Step};

use crate::backend::Outbound;
use crate::cost::Choice;
use crate::device::Device;
use crate::envelope;
use crate::error::Error;
use crate::huge;
use crate::select::Table;
use crate::state::State;

impl<A: Adapter> Device<A> {
    /// Returns the protocol for a message under the present circumstances, and notes in the message whether it is timed.
    pub(crate) fn protocol_of(
        &self,
        session: &mut Session<A, State>,
        message: &mut Outbound,
    ) -> Protocol {
        let (dest, span) = (message.dest, message.data.span());
        // Without a Get of its own the adapter builds it from active messages, which copies as often as eager does. A
        // rank that sends to itself has no second end that could share the work.
        let reads = session.get_kind().is_some() && span.is_some() && dest != self.rank();
        let len = message.data.len();
        self.table().choose(len, |circumstance| {
            reads
                && match circumstance {
                    Circumstance::HugePages => {
                        span.is_some_and(|span| huge::holds(span.addr(), span.len()))
                    }
                    Circumstance::Cheaper => self.is_cheaper(session, message),
                }
        })
    }

    /// Returns whether rendezvous is the cheaper protocol for a message.
    fn is_cheaper(&self, session: &mut Session<A, State>, message: &mut Outbound) -> bool {
        // Where ranks take turns on a processor, times depend mostly on which rank had it.
        if self.shares_processors() {
            return false;
        }
        let (dest, len) = (message.dest, message.data.len());
        let is_alone = session.is_clear(dest) && session.state.exposed[dest as usize] == 0;
        let state = &mut session.state;
        // What is timed would have to share the way with this message.
        state.stop_timing(dest);
        let arrived = state.arrived();
        let Choice { protocol, timed } = match is_alone {
            true => state.costs.choose(dest, len, arrived, Instant::now, shared_now),
            false => {
                let protocol = state.costs.in_a_row(dest, len, shared_now);
                Choice { protocol, timed: None }
            }
        };
        if !message.synchronous {
            message.timed = timed;
        }
        protocol == Protocol::Rendezvous
    }

    /// Returns the protocol table.
    pub fn table(&self) -> &Table {
        &self.options.table
    }

    /// Returns the message sizes, ascending, above which messages travel in another way: the bounds of the table and,
    /// within the eager range, those of the transport. Exceptions in the table are not included.
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

/// The time of a clock that all ranks of a host share.
fn shared_now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}
