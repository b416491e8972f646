//! Header handlers of messages from one origin to one target run in the order of sending.

use transport_lapi::config::WaitMode;
use transport_lapi::{Amsend, Arrival, HeaderAction, Next, Outbox, TaskId};

use crate::support::buffers::{Landing, pattern, source};
use crate::support::job::{Kind, run_with, waiting};
use mpj_doubles::numbers::Numbers;

const MESSAGES: usize = 200;
const LONGEST: usize = 100_000;

struct Log {
    /// By origin: numbers of the messages, in the order of their header handlers.
    begun: Vec<Vec<u64>>,
    /// Where each message landed, with its seed and length.
    landed: Vec<(Landing, u64, usize)>,
    complete: usize,
}

fn arrive(log: &mut Log, message: Arrival<'_>) -> HeaderAction<Log> {
    let number = u64::from_le_bytes(message.uhdr.try_into().expect("eight bytes"));
    log.begun[message.origin as usize].push(number);
    let len = message.len as usize;
    let landing = Landing::new(len);
    log.landed.push((landing, seed(message.origin, number), len));
    HeaderAction::Deliver { into: landing.region(len).into(), next: Next::Inline(complete, 0) }
}

fn complete(log: &mut Log, _: &mut Outbox<Log>, _: u64) {
    log.complete += 1;
}

fn seed(origin: TaskId, number: u64) -> u64 {
    number * 1_000 + u64::from(origin)
}

/// Every task sends to every task, including itself. Short messages do not overtake earlier long ones, even if send
/// queues and rings are full.
fn all_to_all(kind: Kind, num_tasks: usize) {
    let log = move |_| Log { begun: vec![Vec::new(); num_tasks], landed: Vec::new(), complete: 0 };
    run_with(kind.adapters(num_tasks), waiting(WaitMode::Spin), log, move |context| {
        context.session().unwrap().addr_set(1, arrive).unwrap();
        context.gfence().unwrap();
        let mut numbers = Numbers(context.task().into());
        let mut next = vec![0_u64; num_tasks];
        for _ in 0..MESSAGES {
            let target = numbers.below(num_tasks);
            let len = numbers.pick(&[0, 8, 8, 300, 4_000, 8_192, 8_193, 40_000, LONGEST]);
            let number = next[target];
            next[target] += 1;
            let udata = source(pattern(seed(context.task(), number), len));
            let uhdr = number.to_le_bytes();
            let call = Amsend::new(target as TaskId, 1, &uhdr, udata);
            let _ = context.session().unwrap().amsend(call).unwrap();
            if numbers.below(4) == 0 {
                context.session().unwrap().progress().unwrap();
            }
        }
        context.gfence().unwrap();
        let session = context.session().unwrap();
        let Log { begun, landed, complete } = &session.state;
        for (origin, begun) in begun.iter().enumerate() {
            assert!(begun.iter().copied().eq(0..begun.len() as u64), "from task {origin}");
        }
        assert_eq!(*complete, landed.len());
        for (landing, seed, len) in landed {
            assert!(landing.holds(pattern(*seed, *len)), "{len} bytes arrived damaged");
        }
        (next, begun.iter().map(Vec::len).collect::<Vec<_>>())
    })
    .iter()
    .enumerate()
    .fold(vec![vec![0; num_tasks]; num_tasks], |mut balance, (task, (sent, begun))| {
        for peer in 0..num_tasks {
            balance[task][peer] += sent[peer] as i64;
            balance[peer][task] -= begun[peer] as i64;
        }
        balance
    })
    .concat()
    .into_iter()
    .for_each(|missing| assert_eq!(missing, 0, "messages were lost or doubled"));
}

#[test]
fn one_task_with_itself() {
    all_to_all(Kind::Threads, 1);
}

#[test]
fn two_tasks() {
    all_to_all(Kind::Threads, 2);
    all_to_all(Kind::Shm, 2);
}

#[test]
fn more_tasks_than_processors() {
    all_to_all(Kind::Threads, 5);
    all_to_all(Kind::Shm, 5);
}
