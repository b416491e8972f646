//! Which calls of different ranks belong together: the ends of messages, and the members of collective calls.

use std::collections::HashMap;

use super::timeline::{At, Step, Timelines};
use crate::trace::{Call, Flow, Kind};

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
            .filter(|(_, step)| matches!(step.call.kind, Kind::Receive | Kind::Exchange))
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

/// A communicator may get the number of an earlier one, and numbers of calls begin anew at some time. So a rank's first call
/// of a number belongs to the first ones of other ranks, its second one to their second ones.
fn gatherings(timelines: &Timelines<'_>) -> Vec<Gathering> {
    let is_end = |call: &Call| ENDS.contains(&&*call.name);
    let key = |call: &Call| call.communicator.zip(call.sequence);
    let steps = timelines.steps().filter(|(_, step)| key(step.call).is_some() || is_end(step.call));
    let mut steps: Vec<(At, &Step<'_>)> = steps.collect();
    steps.sort_by_key(|(_, step)| step.start);
    let mut gatherings: Vec<Gathering> = Vec::new();
    let mut of_rank = HashMap::new();
    let mut places = HashMap::new();
    for (at, step) in steps {
        let key = key(step.call);
        let earlier = of_rank.entry((timelines.rank(at), key)).or_insert(0_usize);
        let place = *places.entry((key, *earlier)).or_insert_with(|| {
            let communicator = key.map(|(communicator, _)| communicator);
            gatherings.push(Gathering { communicator, steps: Vec::new() });
            gatherings.len() - 1
        });
        *earlier += 1;
        gatherings[place].steps.push(at);
    }
    gatherings
}
