//! What threads wait for, and what both queues hold, in the words that the launcher reports.
//!
//! Called when a wait has lasted so long that its thread goes to sleep, and when the launcher asks.

use transport_lapi::Session;
use transport_lapi::adapter::Adapter;
use transport_lapi::bootstrap::Control;
use transport_lapi::bootstrap::board::{Call, Phase, Wait, context_of};
use transport_lapi::bootstrap::control::{EarlyMessage, PostedReceive, Queues};

use crate::device::Device;
use crate::early::{Early, EarlyBody};
use crate::matching::Pattern;
use crate::request::{self, Matched, Operation, Request, Sending, Taking};
use crate::state::State;

/// Requests of a list that are looked at.
const LOOKED_AT: usize = 1024;

impl<A: Adapter> Device<A> {
    /// From now on tells the launcher at the other end of `control` both queues of this rank whenever it
    /// asks, as soon as a thread waits or polls; and tells it, in place of the other ranks, if this rank
    /// does not go on.
    pub fn report_to(&self, control: Control) {
        let launcher = self.launcher.get_or_init(|| control).clone();
        let of_task = self.context.number();
        self.context.on_inquiry(move |session| {
            let (launcher, queues) = (launcher.clone(), queues(&session.state, of_task));
            move || launcher.queues(of_task, queues)
        });
    }

    /// The wait for operations of a list, in `call`: the first one that is open speaks for all. Of a long
    /// list only the beginning is looked at, since this is done before every sleep.
    pub(crate) fn note_of_list(
        &self,
        session: &Session<A, State>,
        call: Call,
        requests: &[Option<Request>],
    ) -> Wait {
        let looked_at = requests.iter().take(LOOKED_AT).flatten();
        let keys = looked_at.filter_map(|request| request.pending_on(self.number()));
        let mut open = keys.filter(|key| session.state.requests.is_open(*key));
        let first = open.next().map(|key| of_operation(session, call, key)).unwrap_or_default();
        Wait { call, open: first.open + open.count() as u32, ..first }
    }
}

/// The wait for the operation of `key`, in `call`.
pub(crate) fn of_operation<A: Adapter>(session: &Session<A, State>, call: Call, key: u64) -> Wait {
    let state = &session.state;
    let wait = match state.requests.get(key) {
        Some(Operation::Send(sending)) => of_send(sending),
        Some(Operation::Posted(posted)) => {
            let bytes = posted.into.len() as u64;
            let pattern = state.matcher.pattern_of(request::number(key));
            Wait { bytes, ..pattern.map(|pattern| of_pattern(&pattern)).unwrap_or_default() }
        }
        Some(Operation::Taking(taking)) => of_taking(taking),
        Some(&Operation::Begun { context, tag, .. }) => {
            Wait { context: context.into(), tag: Some(tag), ..Wait::default() }
        }
        _ => Wait::default(),
    };
    Wait { call, open: 1, ..wait }
}

/// The wait for a message that fits `pattern`.
pub(crate) fn of_pattern(pattern: &Pattern) -> Wait {
    let Pattern { context, source, tag } = *pattern;
    let context = context.into();
    Wait { open: 1, peer: source, tag, context, phase: Phase::Unmatched, ..Wait::default() }
}

fn of_send(sending: &Sending) -> Wait {
    let phase = match (sending.leaving, sending.exposed) {
        (true, _) => Phase::Leaving,
        (false, Some(_)) => Phase::Offered,
        (false, None) => Phase::Unanswered,
    };
    Wait {
        sends: true,
        peer: Some(sending.dest),
        tag: Some(sending.tag),
        context: sending.context.into(),
        bytes: sending.len as u64,
        phase,
        ..Wait::default()
    }
}

fn of_taking(taking: &Taking) -> Wait {
    let Matched { source, tag, context, data, .. } = taking.matched;
    let phase = if data.is_some() { Phase::Fetching } else { Phase::Arriving };
    let (bytes, context) = (taking.capacity as u64, context.into());
    Wait { peer: Some(source), tag: Some(tag), context, bytes, phase, ..Wait::default() }
}

/// Both queues of context `of_task` of the rank.
fn queues(state: &State, of_task: usize) -> Queues {
    let posted = state.matcher.posted().take(Queues::LISTED).map(|(pattern, number)| {
        let Pattern { context, source, tag } = pattern;
        let bytes = state.requests.capacity(number).unwrap_or(0) as u64;
        PostedReceive { source, tag, context: context_of(of_task, context.into()), bytes }
    });
    let early = state.matcher.early().take(Queues::LISTED).filter_map(|(_, &key)| {
        let Early { source, tag, context, len, body } = state.early.get(key)?;
        let eager = matches!(body, EarlyBody::Eager { .. });
        let (source, tag, context) = (*source, *tag, context_of(of_task, u64::from(*context)));
        Some(EarlyMessage { source, tag, context, bytes: *len as u64, eager })
    });
    Queues {
        posted: posted.collect(),
        all_posted: state.matcher.posted().count() as u64,
        early: early.collect(),
        all_early: state.matcher.early().count() as u64,
    }
}
