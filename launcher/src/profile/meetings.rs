//! Which calls of different ranks belong together: the ends of messages, and the members of collective calls.

use std::collections::HashMap;

use super::timeline::{At, Timelines};
use crate::trace::{Flow, Kind};

/// A message between two ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    pub(super) send: At,
    /// The call that began to receive it.
    pub(super) receive: At,
    /// The call at whose end it was received; often the same.
    pub(super) end: At,
}

/// A collective call, or the end of the job: the steps of its ranks, in the order in which they began.
#[derive(Debug)]
pub(super) struct Gathering {
    /// That of a collective call.
    pub(super) communicator: Option<u32>,
    pub(super) steps: Vec<At>,
}

/// All messages and collective calls.
#[derive(Debug)]
pub(super) struct Meetings {
    pub(super) messages: Vec<Message>,
    pub(super) gatherings: Vec<Gathering>,
}

/// The calls with which a rank leaves the job, where it waits until all do, in C and in Rust.
const ENDS: [&str; 2] = ["MPI_Finalize", "finish"];

impl Meetings {
    pub(super) fn of(timelines: &Timelines<'_>, flows: &[Flow]) -> Self {
        let begun: HashMap<u64, At> = timelines
            .steps()
            .filter(|(_, step)| step.call.kind == Kind::Receive)
            .filter_map(|(at, step)| Some((step.call.message?, at)))
            .collect();
        let message = |flow: &Flow| {
            let (send, end) = (timelines.find(flow.from)?, timelines.find(flow.to)?);
            let rank = timelines.rank(end);
            let begun = begun.get(&flow.number).copied();
            let receive = begun.filter(|at| timelines.rank(*at) == rank).unwrap_or(end);
            (timelines.rank(send) != rank).then_some(Message { send, receive, end })
        };
        let messages = flows.iter().filter_map(message).collect();
        Self { messages, gatherings: gatherings(timelines) }
    }
}

fn gatherings(timelines: &Timelines<'_>) -> Vec<Gathering> {
    let mut gatherings: Vec<Gathering> = Vec::new();
    let mut places: HashMap<Option<(u32, u64)>, usize> = HashMap::new();
    for (at, step) in timelines.steps() {
        let key = step.call.communicator.zip(step.call.sequence);
        if key.is_none() && !ENDS.contains(&&*step.call.name) {
            continue;
        }
        let place = *places.entry(key).or_insert_with(|| {
            let communicator = key.map(|(communicator, _)| communicator);
            gatherings.push(Gathering { communicator, steps: Vec::new() });
            gatherings.len() - 1
        });
        gatherings[place].steps.push(at);
    }
    for gathering in &mut gatherings {
        gathering.steps.sort_by_key(|at| timelines.step(*at).start);
    }
    gatherings
}
