//! Reports stay short, whatever ranks send.

use proptest::prelude::*;

use super::*;

fn any_wait() -> impl Strategy<Value = Wait> {
    let phases =
        vec![Phase::Unknown, Phase::Unmatched, Phase::Sought, Phase::Offered, Phase::Others];
    let few = prop_oneof![0..4_u32, Just(u32::MAX)];
    let numbers = (any::<u32>(), prop::option::of(few), prop::option::of(any::<i32>()));
    let flags = (any::<bool>(), any::<bool>());
    let spaces = prop_oneof![0..8_u32, any::<u32>()];
    let others = (spaces, any::<u64>(), any::<u64>(), flags);
    let call = || prop_oneof![0..40_u16, any::<u16>()].prop_map(CallCode);
    (call(), call(), prop::sample::select(phases), numbers, others).prop_map(
        |(call, operation, phase, (open, peer, tag), (context, bytes, since, (sends, at_end)))| {
            Wait {
                at_end,
                alone: false,
                unwinding: false,
                call,
                operation,
                open,
                sends,
                peer,
                tag,
                space: Space { context: context >> 16, ..on(context) },
                bytes,
                phase,
                since,
                thread: 0,
            }
        },
    )
}

fn any_state() -> impl Strategy<Value = TaskState> {
    let waits = prop::collection::vec(any_wait(), 0..12);
    (waits, any::<u32>(), any::<u32>()).prop_map(|(waits, pid, unlisted)| TaskState {
        pid,
        unlisted,
        ..state(&waits)
    })
}

proptest! {
    #[test]
    fn nothing_that_is_claimed_breaks_a_report(
        states in prop::collection::vec(any_state(), 0..6),
        at: u64,
    ) {
        let snapshot = Snapshot { at, ..snapshot(states) };
        for job in [exit_log(4), joined(4)] {
            let report = of_verdict(&job, Verdict::Deadlock, at, &snapshot);
            prop_assert!(report.lines().all(|line| line.starts_with("mpjrun:")), "{}", report);
        }
    }
}

/// The most that every rank of the largest job can claim.
#[test]
fn the_largest_report_is_readable() {
    let mut job = joined(256);
    let wait = |rank: u32, thread: u32| Wait {
        operation: CallCode(rank as u16 % 40),
        open: rank,
        bytes: u64::from(rank),
        space: on(thread * 2),
        ..recv((rank * 37 + thread) % 256, (rank + thread) as i32)
    };
    let states = (0..256).map(|rank| TaskState {
        unlisted: rank % 50,
        ..state(&[0, 1, 2, 3, 4, 5, 6].map(|thread| wait(rank, thread)))
    });
    for rank in 0..256 {
        let posted = |tag| PostedReceive { source: None, tag: Some(tag), space: on(0), bytes: 9 };
        let unexpected =
            |tag| UnexpectedMessage { source: rank, tag, space: on(0), bytes: 9, eager: true };
        let queues = Queues {
            posted: (0..2_000).map(posted).collect(),
            all_posted: u64::MAX,
            unexpected: (5_000..7_000).map(unexpected).collect(),
            all_unexpected: 0,
            spaces: vec![
                SpaceMembers {
                    space: on(rank % 7 * 2),
                    name: "\u{1b}x".repeat(300),
                    members: (0..500).map(|first| RankRange { first, last: u32::MAX }).collect(),
                };
                50
            ],
        };
        job.note(rank as usize, ControlMessage::Queues { context: 0, queues }, ms(1));
    }
    let report = of_verdict(&job, Verdict::Deadlock, ms(1_000), &snapshot(states));
    assert!(report.lines().count() < 200, "{report}");
    assert!(report.lines().all(|line| line.len() < 1_200), "{report}");
}

/// Ranks that differ in their neighbour only share a row where there are many of them.
#[test]
fn a_ring_of_all_ranks_is_one_row() {
    let ring = (0..256).map(|rank| recv((rank + 1) % 256, (rank % 3) as i32));
    let job = joined(256);
    let report = of_verdict(&job, Verdict::Deadlock, ms(1_000), &waiting(ring));
    let rows: Vec<&str> = report.lines().filter(|line| line.contains("no message has")).collect();
    let row = "mpjrun:   0-255  recv        ranks 0-255  several  world             8  \
               no message has come  0.50";
    assert_eq!(rows, [row], "{report}");
}
