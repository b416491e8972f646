//! Descriptions for the launcher's reports: what threads wait for, the contents of both queues, and the members of the
//! contexts in use.
//!
//! Made when a wait has lasted so long that its thread goes to sleep, and when the launcher asks.

use std::collections::BTreeSet;

use transport_lapi::Session;
use transport_lapi::bootstrap::Control;
use transport_lapi::bootstrap::control::{PostedReceive, Queues, SpaceMembers, UnexpectedMessage};
use transport_lapi::bootstrap::waits::{Phase, Wait};

use crate::call_names::{Call, space};
use crate::device::{Device, quiescence};
use crate::matching::Pattern;
use crate::request::{self, Matched, Operation, Receiving, Request, Sending};
use crate::state::State;
use crate::state::unexpected::{Unexpected, UnexpectedBody};

/// The most requests of a list that are examined.
const LOOKED_AT: usize = 1024;

impl Device {
    /// Connects the device with the launcher at the other end of `control`. When the launcher asks, it gets both queues
    /// of this rank as soon as a thread waits or polls. If this rank gives up, the launcher learns it instead of the
    /// other ranks.
    pub fn report_to(&self, control: Control) {
        let launcher = self.launcher.get_or_init(|| control).clone();
        let of_task = self.context.number();
        self.context.on_inquiry(move |session| {
            let (launcher, queues) = (launcher.clone(), queues(&session.state, of_task));
            move || launcher.queues(of_task, queues)
        });
    }

    /// Describes a wait in `call` for operations of a list, by the first operation that is open. Only the beginning of
    /// a long list is examined, since this happens before every sleep.
    pub(crate) fn describe_list(
        &self,
        session: &Session<State>,
        call: Call,
        requests: &[Option<Request>],
    ) -> Wait {
        let looked_at = requests.iter().take(LOOKED_AT).flatten();
        let keys = looked_at.filter_map(|request| request.pending_on(self.number()));
        let mut open = keys.filter(|key| session.state.requests.is_open(*key));
        let first = open.next().map(|key| of_operation(session, Call::Wait, key));
        let first = first.unwrap_or_default();
        Wait { call: call.into(), open: first.open + open.count() as u32, ..first }
    }
}

/// Describes a wait in `call` for the operation `key`.
pub(crate) fn of_operation(session: &Session<State>, call: Call, key: u64) -> Wait {
    let state = &session.state;
    let wait = match state.requests.get(key) {
        Some(Operation::Send(sending)) => of_send(sending),
        Some(Operation::Posted(posted)) => {
            let bytes = posted.into.len() as u64;
            let pattern = state.matcher.pattern_of(request::number(key));
            Wait { bytes, ..pattern.map(|pattern| of_pattern(&pattern)).unwrap_or_default() }
        }
        Some(Operation::Receiving(receiving)) => of_receiving(receiving),
        Some(&Operation::Client { call, context, tag, peer }) => {
            match state.requests.awaited_by(key) {
                Some(awaited) => of_operation(session, call, awaited),
                None => {
                    let (space, operation) = (space(0, context), call.into());
                    Wait { space, tag: Some(tag), operation, peer, ..Wait::default() }
                }
            }
        }
        _ => Wait::default(),
    };
    Wait { call: call.into(), open: (call == Call::Wait).into(), ..wait }
}

/// Describes a wait for a message that fits `pattern`.
pub(crate) fn of_pattern(pattern: &Pattern) -> Wait {
    let Pattern { context, source, tag } = *pattern;
    let (space, phase) = (space(0, context), Phase::Unmatched);
    Wait { peer: source, tag, space, phase, ..Wait::default() }
}

fn of_send(sending: &Sending) -> Wait {
    let phase = match (sending.in_flight, sending.registered) {
        (true, _) => Phase::Leaving,
        (false, Some(_)) => Phase::Offered,
        (false, None) => Phase::Unanswered,
    };
    Wait {
        sends: true,
        peer: Some(sending.dest),
        tag: Some(sending.tag),
        space: space(0, sending.context),
        bytes: sending.len as u64,
        phase,
        ..Wait::default()
    }
}

fn of_receiving(receiving: &Receiving) -> Wait {
    let Matched { source, tag, context, data, .. } = receiving.matched;
    let phase = if data.is_some() { Phase::Fetching } else { Phase::Arriving };
    let (bytes, space) = (receiving.capacity as u64, space(0, context));
    Wait { peer: Some(source), tag: Some(tag), space, bytes, phase, ..Wait::default() }
}

/// Describes both queues of context `of_task` of the rank.
fn queues(state: &State, of_task: usize) -> Queues {
    let posted = state.matcher.posted().take(Queues::LISTED).map(|(pattern, number)| {
        let Pattern { context, source, tag } = pattern;
        let bytes = state.requests.capacity(number).unwrap_or(0) as u64;
        PostedReceive { source, tag, space: space(of_task, context), bytes }
    });
    let unexpected = state.matcher.unexpected().take(Queues::LISTED).filter_map(|(_, &key)| {
        let Unexpected { source, tag, context, len, body, .. } = state.unexpected.get(key)?;
        let eager = !matches!(body, UnexpectedBody::Rendezvous { .. });
        let (source, tag, space) = (*source, *tag, space(of_task, *context));
        Some(UnexpectedMessage { source, tag, space, bytes: *len as u64, eager })
    });
    Queues {
        posted: posted.collect(),
        all_posted: state.matcher.posted().count() as u64,
        unexpected: unexpected.collect(),
        all_unexpected: state.matcher.unexpected().count() as u64,
        spaces: spaces(state, of_task),
    }
}

/// Describes the contexts that have members and in which something is under way. Contexts of operations come first,
/// since threads may wait for them.
fn spaces(state: &State, of_task: usize) -> Vec<SpaceMembers> {
    let operations = state.requests.iter();
    let operations =
        operations.filter_map(|(key, operation)| quiescence::context_of(state, key, operation));
    let unexpected = state.matcher.unexpected().map(|(envelope, _)| envelope.context);
    let mut seen = BTreeSet::new();
    let contexts = operations.chain(unexpected).filter(|context| seen.insert(*context));
    let with_members = contexts.filter_map(|context| {
        let members = state.losses.members.of(context)?;
        Some(SpaceMembers::new(space(of_task, context), &members.name(), members.ranks()))
    });
    with_members.take(Queues::SPACES).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use transport_lapi::bootstrap::control::RankRange;
    use transport_lapi::{Sink, Tasks};

    use super::*;
    use crate::request::Posted;
    use crate::state::Members;

    /// Three ranks at this distance from each other.
    struct Apart(u32);

    impl Members for Apart {
        fn contains(&self, rank: u32) -> bool {
            rank % self.0 == 0
        }

        fn ranks(&self) -> Vec<u32> {
            (0..3).map(|place| place * self.0).collect()
        }

        fn name(&self) -> String {
            format!("every {}", self.0)
        }
    }

    fn post(state: &mut State, context: u32) {
        let key = state.requests.insert(|| Operation::Posted(Posted { into: Sink::EMPTY }));
        let pattern = Pattern { context, source: None, tag: Some(3) };
        state.matcher.push_posted(pattern, request::number(key));
    }

    #[test]
    fn who_belongs_to_the_contexts_in_use_is_told() {
        let mut state = State::new(0, &Tasks::all_near(8), 1 << 16);
        for (context, apart) in [(5, 1), (7, 3), (9, 2)] {
            state.losses.members.set(context, Some(Arc::new(Apart(apart))));
        }
        // Context 4 has no members, context 7 occurs twice, and in context 9 nothing is under way.
        [4, 7, 5, 7].into_iter().for_each(|context| post(&mut state, context));
        let mut told = queues(&state, 1).spaces;
        told.sort_by_key(|members| members.space);
        let alone = |rank| RankRange { first: rank, last: rank };
        let [one, three] = &told[..] else { panic!("two have members: {told:?}") };
        assert_eq!((one.space, one.name.as_str()), (space(1, 5), "every 1"));
        assert_eq!(one.members, [RankRange { first: 0, last: 2 }]);
        assert_eq!((three.space, three.name.as_str()), (space(1, 7), "every 3"));
        assert_eq!(three.members, [alone(0), alone(3), alone(6)]);
        state.losses.members.set(7, None);
        assert_eq!(queues(&state, 1).spaces.len(), 1);
    }

    #[test]
    fn of_many_contexts_some_are_told() {
        let mut state = State::new(0, &Tasks::all_near(8), 1 << 16);
        for context in 0..2 * Queues::SPACES as u32 {
            state.losses.members.set(context, Some(Arc::new(Apart(1))));
            post(&mut state, context);
        }
        assert_eq!(queues(&state, 0).spaces.len(), Queues::SPACES);
    }
}
