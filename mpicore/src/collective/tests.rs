//! Tests of schedules: each collective against a plain reference, on a simulator; the shape of schedules;
//! what is refused.

mod hosts;
mod inter;
mod movement;
mod pieces;
mod reduction;
mod refusals;
mod simulator;
mod unequal;

use simulator::{Actor, Op, UNSET, run};

use super::steps::Steps;

use super::{
    Blocks, Buffer, Local, Member, Message, Operands, Place, alltoall, barrier, bcast, scan,
};

/// Numbers of ranks.
const SIZES: [u32; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17];
/// Numbers of elements.
const COUNTS: [u64; 4] = [0, 1, 2, 7];

fn member(rank: u32, size: u32) -> Member<'static> {
    Member::new(rank, size).unwrap()
}

/// Returns `count` elements of a rank, from number `first` on.
fn elements(rank: u32, first: u64, count: u64) -> Vec<String> {
    (first..first + count).map(|index| format!("<{rank}.{index}>")).collect()
}

/// Returns `count` elements that were never written.
fn unset(count: u64) -> Vec<String> {
    vec![UNSET.into(); count as usize]
}

/// The free operation: all operands in the order in which they were combined.
fn joined(left: &str, right: &str) -> String {
    format!("{left}{right}")
}

/// Runs schedules in several orders and returns the outputs, which must not depend on the order.
fn outputs(actors: &[Actor], first_group: usize, op: Op) -> Vec<Vec<String>> {
    let outputs_of = |seed| {
        let ended = run(actors.to_vec(), first_group, op, seed);
        let ended = ended.unwrap_or_else(|why| panic!("with seed {seed}: {why}"));
        ended.into_iter().map(|actor| actor.output).collect::<Vec<_>>()
    };
    let first = outputs_of(0);
    (1..3).for_each(|seed| assert_eq!(outputs_of(seed), first, "with seed {seed}"));
    first
}

/// Runs collectives that move data, in an intracommunicator.
fn moved(actors: Vec<Actor>) -> Vec<Vec<String>> {
    outputs(&actors, 0, |_, _| unreachable!("nothing is reduced"))
}

#[test]
fn a_barrier_ends_nowhere_before_it_has_begun_everywhere() {
    for size in SIZES {
        let schedules = |absent: Option<u32>| {
            let present = (0..size).filter(move |&rank| Some(rank) != absent);
            present.map(|rank| (rank, barrier(member(rank, size)))).collect::<Vec<_>>()
        };
        let actor = |schedule| Actor::new(schedule, vec![], vec![]);
        moved(schedules(None).into_iter().map(|(_, schedule)| actor(schedule)).collect());
        // If one rank never calls the barrier, no other rank leaves it.
        for absent in (0..size).filter(|_| size > 1) {
            let nothing = barrier(member(0, 1));
            let mut actors: Vec<_> =
                schedules(Some(absent)).into_iter().map(|(_, schedule)| actor(schedule)).collect();
            actors.insert(absent as usize, actor(nothing));
            let why = run(actors, 0, joined, 7).unwrap_err();
            for rank in (0..size).filter(|&rank| rank != absent) {
                assert!(why.contains(&format!("rank {rank} waits")), "{why}");
            }
        }
    }
}

#[test]
fn the_simulator_finds_deadlocks() {
    let schedules = [bcast(member(0, 2), 1, 1).unwrap(), bcast(member(1, 2), 0, 1).unwrap()];
    let actors = schedules.map(|schedule| Actor::new(schedule, vec![], unset(1)));
    let why = run(actors.to_vec(), 0, joined, 1).unwrap_err();
    assert!(why.contains("rank 0 waits in round 0: receive output[0..+1] from 1"), "{why}");
}

#[test]
fn the_simulator_finds_messages_that_nobody_wants() {
    let actors = [0, 1].map(|rank| {
        let schedule = bcast(member(rank, 2), rank, 1).unwrap();
        Actor::new(schedule, vec![], unset(1))
    });
    let why = run(actors.to_vec(), 0, joined, 1).unwrap_err();
    assert!(why.contains("1 messages from 1 to 0 were not received"), "{why}");
}

#[test]
fn the_simulator_finds_sizes_that_differ() {
    let actors = [0, 1].map(|rank| {
        let schedule = bcast(member(rank, 2), 0, u64::from(rank) + 1).unwrap();
        Actor::new(schedule, vec![], unset(2))
    });
    let why = run(actors.to_vec(), 0, joined, 1).unwrap_err();
    assert_eq!(why, "from 0 to 1: 1 strings for output[0..+2], 2");
}

#[test]
fn rounds_are_cut_where_the_builder_says_so() {
    let mut draft = super::schedule::Draft::new("an example");
    let (input, output) = (Place::first(Buffer::Input, 2), Place::first(Buffer::Output, 2));
    draft.end_round();
    draft.send(1, input);
    draft.receive(1, output);
    draft.end_round();
    draft.end_round();
    draft.reduce(input, output);
    let schedule = draft.finish();
    let rounds: Vec<_> = schedule.rounds().collect();
    assert_eq!((rounds.len(), schedule.messages()), (2, 2));
    assert_eq!(rounds[0].messages[1], Message::Receive { peer: 1, into: output });
    assert_eq!((rounds[0].local, rounds[1].messages), (&[][..], &[][..]));
    assert_eq!(rounds[1].local, [Local::Reduce { from: input, into: output }]);
    assert_eq!(schedule.round(2), None);
    let text = "an example, scratch for 0 elements\nround 0\n  send input[0..+2] to 1\n  \
        receive output[0..+2] from 1\nround 1\n  reduce input[0..+2] into output[0..+2]\n";
    assert_eq!(schedule.to_string(), text);
}

#[test]
fn schedules_say_what_lies_in_scratch() {
    let typed = alltoall(member(1, 2), None, Blocks::Typed { entries: 2 }).unwrap();
    let text = "alltoall by exchange in pairs, scratch for the largest entry of output\nround 0\n  \
        send output[entry 0] to 0\n  receive scratch[entry 0] from 0\n  \
        copy scratch[entry 0] into output[entry 0]\n";
    assert_eq!(typed.to_string(), text);
    let scan = scan(member(1, 2), 3, Operands::InPlace).unwrap();
    assert!(scan.to_string().contains("scratch for 3 elements as in output"), "{scan}");
}
