//! Writes the queues and open requests as text, for people who look for the cause of a hang.

use std::fmt::Write;

use crate::device::Device;
use crate::error::Error;
use crate::matching::Pattern;
use crate::request::{self, Matched, Operation, Receiving, Sending};
use crate::state::State;
use crate::state::unexpected::{Unexpected, UnexpectedBody};

impl Device {
    /// Returns both queues and the open requests as text, one line each. Queue entries come in the order in which they
    /// would match.
    ///
    /// # Errors
    /// [`Error::Finished`], what made the device unusable.
    pub fn dump(&self) -> Result<String, Error> {
        let session = self.session()?;
        let (rank, all) = (self.rank(), self.world().end);
        let title = match self.options.contexts {
            1 => format!("rank {rank} of {all}\n"),
            _ => format!("rank {rank} of {all}, context {}\n", self.context.number()),
        };
        Ok(describe(&session.state, title))
    }
}

/// Appends the queues and requests to the title.
fn describe(state: &State, mut text: String) -> String {
    let posted: Vec<_> = state.matcher.posted().collect();
    let _ = writeln!(text, "posted receives without a message: {}", posted.len());
    for (pattern, _) in posted {
        let _ = writeln!(text, "  {}", wanted(&pattern));
    }
    let unexpected: Vec<_> = state.matcher.unexpected().collect();
    let _ = writeln!(text, "unexpected messages without a receive: {}", unexpected.len());
    for (_, &key) in unexpected {
        let Some(message) = state.unexpected.get(key) else {
            continue;
        };
        let _ = writeln!(text, "  {}", arrived(message));
    }
    let open: Vec<_> =
        state.requests.iter().filter_map(|(key, entry)| operation(state, key, entry)).collect();
    let _ = writeln!(text, "open requests: {}", open.len());
    for line in open {
        let _ = writeln!(text, "  {line}");
    }
    text
}

fn wanted(pattern: &Pattern) -> String {
    let any = |value: Option<i64>| value.map_or("any".to_owned(), |value| value.to_string());
    let (source, tag) = (any(pattern.source.map(i64::from)), any(pattern.tag.map(i64::from)));
    format!("from rank {source}, tag {tag}, context {}", pattern.context)
}

fn arrived(unexpected: &Unexpected) -> String {
    let Unexpected { source, tag, context, len, body, .. } = unexpected;
    let how = match body {
        UnexpectedBody::Eager { arrived: true, .. } => "eager, all here",
        UnexpectedBody::Eager { .. } => "eager, arriving",
        UnexpectedBody::Rendezvous { .. } => "rendezvous, with its sender",
        UnexpectedBody::Failure(_) => "its sender failed",
    };
    format!("from rank {source}, tag {tag}, {len} bytes ({how}), context {context}")
}

fn operation(state: &State, key: u64, operation: &Operation) -> Option<String> {
    match operation {
        Operation::Send(Sending { dest, tag, context, len, in_flight, registered, .. }) => {
            let phase = match (in_flight, registered) {
                (true, _) => "waiting for room",
                (false, Some(_)) => "waiting to be fetched",
                (false, None) => "waiting to be matched",
            };
            let what = format!("send to rank {dest}, tag {tag}, context {context}, {len} bytes");
            Some(format!("{what} ({phase})"))
        }
        Operation::Posted(posted) => {
            let (pattern, len) =
                (state.matcher.pattern_of(request::number(key))?, posted.into.len());
            let wanted = wanted(&pattern);
            Some(format!("receive {wanted}, {len} bytes (waiting for a message)"))
        }
        Operation::Receiving(Receiving { capacity, matched, .. }) => {
            let phase = if matched.data.is_some() { "fetching" } else { "taking in" };
            let Matched { source, tag, len, .. } = matched;
            let what = format!("receive from rank {source}, tag {tag}, {capacity} bytes");
            Some(format!("{what} ({phase} a message of {len} bytes)"))
        }
        Operation::Client { call, context, tag, peer } => {
            let call = format!("{call:?}").to_lowercase();
            let with = peer.map_or(String::new(), |peer| format!(" with rank {peer}"));
            Some(format!("begun: {call}{with} in context {context}, tag {tag}"))
        }
        Operation::Done { .. } | Operation::Cancelled | Operation::Failed(_) => None,
    }
}
