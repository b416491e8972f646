//! Origin, target and completion counters, and the calls on them.

use transport_lapi::{Amsend, Arrival, Context, CounterId, HeaderAction, Next, Outbox, SendRegion};

use crate::support::buffers::{Landing, pattern, source};
use crate::support::job::{Kind, run};

/// Number of handlers that have completed.
type Completed = u64;

fn consume(_: &mut Completed, _: Arrival<'_>) -> HeaderAction<Completed> {
    HeaderAction::Consumed
}

fn complete(_: &mut Completed, message: Arrival<'_>) -> HeaderAction<Completed> {
    fn count(completed: &mut Completed, _: &mut Outbox<Completed>, _: u64) {
        *completed += 1;
    }
    let into = Landing::new(message.len as usize).region(message.len as usize);
    HeaderAction::Deliver { into: into.into(), next: Next::Inline(count, 0) }
}

/// Three counters, with the same names on every task.
fn set_up(context: &Context<Completed>) -> [CounterId; 3] {
    let mut session = context.session().unwrap();
    session.addr_set(1, consume).unwrap();
    session.addr_set(2, complete).unwrap();
    let counters = [session.counter(), session.counter(), session.counter()];
    drop(session);
    context.gfence().unwrap();
    counters
}

#[test]
fn a_wait_subtracts_and_keeps_the_surplus() {
    run(
        Kind::Threads,
        1,
        |_| 0,
        |context| {
            let [counter, other, _] = set_up(context);
            context.session().unwrap().setcntr(counter, 10).unwrap();
            context.session().unwrap().setcntr(other, -2).unwrap();
            assert_eq!(context.waitcntr(counter, 3).unwrap(), 7);
            assert_eq!(context.waitcntr(counter, 7).unwrap(), 0);
            let mut session = context.session().unwrap();
            assert_eq!(session.getcntr(counter).unwrap(), 0);
            assert_eq!(session.getcntr(other).unwrap(), -2);
        },
    );
}

/// A counter below zero needs correspondingly more events.
#[test]
fn events_add_to_what_was_set() {
    run(
        Kind::Threads,
        2,
        |_| 0,
        |context| {
            let [target, _, _] = set_up(context);
            context.session().unwrap().setcntr(target, -3).unwrap();
            context.gfence().unwrap();
            if context.task() == 0 {
                for _ in 0..5 {
                    let mut call = Amsend::new(1, 1, &[], SendRegion::EMPTY);
                    call.tgt_cntr = Some(target);
                    let _ = context.session().unwrap().amsend(call).unwrap();
                }
            } else {
                assert_eq!(context.waitcntr(target, 2).unwrap(), 0);
            }
            context.gfence().unwrap();
        },
    );
}

/// For every length, even zero, and every handler result, each counter is incremented once, at the right task.
#[test]
fn all_three_counters_count_once_for_every_message() {
    for kind in [Kind::Threads, Kind::Shm] {
        run(
            kind,
            2,
            |_| 0,
            |context| {
                let [origin, target, completion] = set_up(context);
                let lengths = [0, 8, 400, 8192, 8193, 70_000, 1 << 20];
                for (round, len) in lengths.into_iter().enumerate() {
                    for handler in [1, 2] {
                        if context.task() == 0 {
                            let mut call = Amsend::new(1, handler, &[], source(pattern(1, len)));
                            call.on_origin = Next::Counter(origin);
                            call.tgt_cntr = Some(target);
                            call.cmpl_cntr = Some(completion);
                            let _ = context.session().unwrap().amsend(call).unwrap();
                            assert_eq!(context.waitcntr(completion, 1).unwrap(), 0);
                            let mut session = context.session().unwrap();
                            assert_eq!(
                                session.getcntr(origin).unwrap(),
                                1,
                                "complete after reusable"
                            );
                            session.setcntr(origin, 0).unwrap();
                            assert_eq!(session.getcntr(target).unwrap(), 0, "counts at the target");
                        } else {
                            assert_eq!(context.waitcntr(target, 1).unwrap(), 0);
                            let mut session = context.session().unwrap();
                            let due = round as u64 + u64::from(handler == 2);
                            assert_eq!(session.state, due, "counts after the completion handler");
                            assert_eq!(session.getcntr(completion).unwrap(), 0);
                        }
                        context.gfence().unwrap();
                    }
                }
            },
        );
    }
}

/// Reading a counter neither changes it nor makes progress.
#[test]
fn reading_a_counter_makes_no_progress() {
    run(
        Kind::Threads,
        1,
        |_| 0,
        |context| {
            let [_, target, _] = set_up(context);
            let mut call = Amsend::new(0, 1, &[], SendRegion::EMPTY);
            call.tgt_cntr = Some(target);
            let mut session = context.session().unwrap();
            let _ = session.amsend(call).unwrap();
            assert_eq!(session.getcntr(target).unwrap(), 0);
            assert_eq!(session.progress().unwrap(), 1);
            assert_eq!(session.getcntr(target).unwrap(), 1);
            assert_eq!(session.getcntr(target).unwrap(), 1);
        },
    );
}

/// Messages without counters leave all counters alone.
#[test]
fn unnamed_counters_are_not_counted() {
    run(
        Kind::Threads,
        1,
        |_| 0,
        |context| {
            let counters = set_up(context);
            for handler in [1, 2] {
                let call = Amsend::new(0, handler, &[], source(pattern(1, 20_000)));
                let _ = context.session().unwrap().amsend(call).unwrap();
            }
            context.fence().unwrap();
            context.wait(|session| (session.state == 1).then_some(())).unwrap();
            let mut session = context.session().unwrap();
            for counter in counters {
                assert_eq!(session.getcntr(counter).unwrap(), 0);
            }
        },
    );
}
