//! The ranks of a job, as its poll loop sees them, wherever they run: on this host ([`LocalRanks`]), or on several
//! behind agents ([`super::agents`]).

use std::time::Instant;

use transport_lapi::bootstrap::control::agents::{News, Order};
use transport_lapi::bootstrap::signals::Signals;

use super::agents::Fetched;
use super::{Event, Interesting};
use crate::host::local::LocalRanks;
use crate::host::rank::{Pauses, Rank};

/// What a ready descriptor of a line means. The number is the place of the agent among those that this process has
/// started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentEvent {
    /// It has told something.
    Line(usize),
    /// Its line takes orders.
    Room(usize),
    /// The program that started it has printed something.
    Said(usize),
    /// In an agent: something has come from above.
    Above,
    /// In an agent: its own line takes news.
    RoomAbove,
}

/// See the module's head.
pub(crate) trait Ranks {
    /// Adds the descriptors to wait for, while the reader of the output pauses for some streams.
    fn interests<'a>(&'a self, pauses: Pauses, set: &mut Vec<Interesting<'a>>);

    /// Handles an event of one of these descriptors.
    fn handle(&mut self, event: Event, news: &mut Vec<News>);

    /// Takes what ranks have sent and nobody has read yet, without waiting.
    fn take_what_has_come(&mut self, news: &mut Vec<News>);

    /// Does what is due. Called in every turn of the loop. Ranks `may_linger` as long as the job has no verdict.
    fn turn(&mut self, now: Instant, may_linger: bool, pauses: Pauses, news: &mut Vec<News>);

    /// When [`Ranks::turn`] has something to do.
    fn next_deadline(&self) -> Option<Instant>;

    /// Carries out an order, or passes it on.
    fn order(&mut self, order: Order);

    /// Takes the ranks of a further world, which were started on this host, with which the job has so many `tasks`. Returns
    /// a note for the user, if there is one.
    fn admit(&mut self, ranks: Vec<Rank>, tasks: usize) -> Option<String> {
        // Behind agents nobody starts any: they would end here (K2 of `crate::host::rank`).
        let _ = (ranks, tasks);
        None
    }

    /// Notes that the launcher is about to be suspended, or goes on.
    fn suspended(&mut self, is_suspended: bool);

    /// Ends what is left when all ranks are gone. Returns the daemons among it.
    fn end(&mut self) -> Vec<String>;

    /// Fetches what ranks of other hosts have recorded of their calls, when all are gone, until that has come or `signals`
    /// ask to end. `None` if no ranks record behind agents.
    fn fetch_records(&mut self, signals: &Signals) -> Option<Fetched> {
        let _ = signals;
        None
    }

    /// Lets go of everything.
    fn leave(self: Box<Self>);
}

impl Ranks for LocalRanks {
    fn interests<'a>(&'a self, pauses: Pauses, set: &mut Vec<Interesting<'a>>) {
        let interests = LocalRanks::interests(self, pauses);
        set.extend(interests.map(|(event, fd, flags)| (Event::Rank(event), fd, flags)));
    }

    fn handle(&mut self, event: Event, news: &mut Vec<News>) {
        if let Event::Rank(event) = event {
            LocalRanks::handle(self, event, news);
        }
    }

    fn take_what_has_come(&mut self, news: &mut Vec<News>) {
        self.take_all_messages(news);
    }

    fn turn(&mut self, now: Instant, may_linger: bool, pauses: Pauses, news: &mut Vec<News>) {
        LocalRanks::turn(self, now, may_linger, pauses, news);
    }

    fn next_deadline(&self) -> Option<Instant> {
        LocalRanks::next_deadline(self)
    }

    fn order(&mut self, order: Order) {
        self.obey(&order);
    }

    fn admit(&mut self, ranks: Vec<Rank>, tasks: usize) -> Option<String> {
        LocalRanks::admit(self, ranks, tasks)
    }

    fn suspended(&mut self, _: bool) {}

    fn end(&mut self) -> Vec<String> {
        LocalRanks::end(self)
    }

    fn leave(self: Box<Self>) {
        LocalRanks::leave(*self);
    }
}
