//! Ranks that use the transport in interrupt mode: their threads make no call, or sleep without polling, while the
//! notification threads pass messages on. Started by `tests/deadlocks.rs`; the first argument says how it ends:
//!
//! - `relay`: a message goes round until it has made its hops, again and again, and the job ends.
//! - `starved`: then every rank waits for a message that nobody sends.
//! - `orphaned`: then every rank waits outside of all calls for its handler, which never runs.

use std::error::Error;
use std::sync::{Arc, mpsc};

use transport_lapi::adapter::Endpoint;
use transport_lapi::config::Settings;
use transport_lapi::wireup::{Client, connect};
use transport_lapi::{
    Amsend, Arrival, Context, HeaderAction, Next, Options, Outbox, Query, SendRegion,
};

const ROUNDS: usize = 200;
/// Hops of the message in each round, for each rank.
const HOPS: u64 = 10;

/// The rank that follows in the ring, the number of ranks, and who is told when a round is over.
struct Relay {
    next: u32,
    ranks: u64,
    told: mpsc::Sender<()>,
}

/// Passes a message on that has hops left. Its last hops, one to each rank, end the round.
fn pass(relay: &mut Relay, message: Arrival<'_>) -> HeaderAction<Relay> {
    fn send(relay: &mut Relay, outbox: &mut Outbox<Relay>, left: u64) {
        let uhdr = left.to_le_bytes();
        outbox.amsend(relay.next, 1, &uhdr, Vec::new()).expect("the next rank is there");
    }
    let left = u64::from_le_bytes(message.uhdr.try_into().expect("a word"));
    if left < relay.ranks {
        relay.told.send(()).expect("the rank listens");
    }
    match left {
        0 => HeaderAction::Consumed,
        left => HeaderAction::Then(Next::Inline(send, left - 1)),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let how = std::env::args().nth(1).unwrap_or_default();
    let joined = connect(&Settings::from_env()?, Client::new("notified"))?;
    let adapter = joined.contexts.into_iter().next().expect("one context at least");
    let (told, news) = mpsc::channel();
    let Endpoint { task: me, num_tasks, .. } = adapter.endpoint();
    let ranks = num_tasks as u32;
    let next = (me + 1) % ranks;
    let relay = Relay { next, ranks: ranks.into(), told };
    let context = Arc::new(Context::init(adapter, relay, Options::default()));
    let mut session = context.session()?;
    session.addr_set(1, pass)?;
    session.addr_set(2, |_, _: Arrival<'_>| HeaderAction::Consumed)?;
    let counter = session.counter();
    drop(session);
    context.gfence()?;
    context.senv(Query::InterruptSet, 1)?;
    for _ in 0..ROUNDS {
        if me == 0 {
            let uhdr = (HOPS * u64::from(ranks)).to_le_bytes();
            let _ = context.session()?.amsend(Amsend::new(next, 1, &uhdr, SendRegion::EMPTY))?;
        }
        news.recv()?;
        let mut call = Amsend::new(next, 2, &[], SendRegion::EMPTY);
        call.tgt_cntr = Some(counter);
        let _ = context.session()?.amsend(call)?;
        context.nopoll_wait(counter, 1)?;
    }
    match how.as_str() {
        "starved" => drop(context.nopoll_wait(counter, 1 << 40)?),
        "orphaned" => loop {
            news.recv()?;
        },
        _ => {}
    }
    context.gfence()?;
    context.term()?;
    if let Some(control) = joined.control {
        control.finished();
    }
    Ok(())
}
