//! Reductions in pieces, and of elements that are several operands each, against the same ones at once.

use super::{Actor, elements, member, outputs, unset};
use crate::collective::reduce_scatter::divided_reduce_scatter;
use crate::collective::{
    Buffer, Collective, CollectiveError, Division, Exchange, Member, Operands, Order, Packing,
    Schedule, Scratch,
};

/// Operands in an element on ranks that pack them.
const WIDTH: u64 = 3;
/// Numbers of elements of that many operands.
const COUNTS: [u64; 2] = [1, 4];
/// Numbers of ranks.
const SIZES: [u32; 5] = [1, 2, 3, 4, 7];

/// Records how operands were associated.
fn tree(left: &str, right: &str) -> String {
    format!("({left} {right})")
}

/// Builds the schedule of a member.
type Build = dyn Fn(Member, u64, Operands, Division) -> Result<Schedule, CollectiveError>;

/// A reduction: its schedule, and how many operands a rank has, and how many results.
struct Case {
    schedule: Box<Build>,
    lens: fn(Member, u64) -> [u64; 2],
}

/// Returns how many elements each rank of a reduce_scatter gets, of `unit` operands each.
fn counts(size: u32, unit: u64) -> Vec<u64> {
    (0..u64::from(size)).map(|rank| (rank * 5 + 2) % 4 * unit).collect()
}

/// All reductions in an intracommunicator. `count` is in operands, of which an element has 1 or [`WIDTH`].
fn cases() -> Vec<Case> {
    let equal = |collective: fn(u64, Operands) -> Collective, lens| Case {
        schedule: Box::new(move |member, count, operands, division: Division| {
            let width = division.packing.map_or(1, |packing| packing.operands);
            collective(count / width, operands).schedule(member, division)
        }),
        lens,
    };
    let same = |_: Member, count| [count, count];
    let to_root = |member: Member, count| [count, if member.rank() == 0 { count } else { 0 }];
    let blocks = |member: Member, count| [u64::from(member.size()) * count, count];
    vec![
        equal(
            |count, operands| Collective::Allreduce {
                count,
                operands,
                order: Order::Ranks,
                exchange: Exchange::Whole,
            },
            same,
        ),
        equal(
            |count, operands| Collective::Allreduce {
                count,
                operands,
                order: Order::Ranks,
                exchange: Exchange::Halves,
            },
            same,
        ),
        equal(|count, operands| Collective::Scan { count, operands }, same),
        equal(|count, operands| Collective::Exscan { count, operands }, same),
        equal(
            |count, operands| Collective::Reduce { root: 0, count, operands, order: Order::Free },
            to_root,
        ),
        equal(|count, operands| Collective::ReduceScatterBlock { count, operands }, blocks),
        Case {
            schedule: Box::new(|member, count, operands, division: Division| {
                let width = division.packing.map_or(1, |packing| packing.operands);
                let counts = counts(member.size(), count / width);
                divided_reduce_scatter(member, &counts, operands, division)
            }),
            lens: |member, count| {
                let counts = counts(member.size(), count);
                [counts.iter().sum(), counts[member.rank() as usize]]
            },
        },
    ]
}

/// Returns the outputs of all ranks. `is_packed` says which ranks have elements of several operands.
fn outputs_of(
    case: &Case,
    (size, count, place): (u32, u64, Operands),
    most: u64,
    is_packed: impl Fn(u32) -> bool,
) -> Vec<Vec<String>> {
    let actor = |rank| {
        let member = member(rank, size);
        let [operands, results] = (case.lens)(member, count);
        // Only the root of a reduce, which is rank 0, may work in place.
        let place = if results < count && rank > 0 { Operands::Input } else { place };
        let packing = is_packed(rank).then_some(Packing { operands: WIDTH, size: 8 });
        let schedule = (case.schedule)(member, count, place, Division { most, packing }).unwrap();
        let data = elements(rank, 0, operands);
        let width = packing.map_or(1, |packing| packing.operands) as usize;
        let actor = match place {
            Operands::Input => Actor::new(schedule, data, unset(results)),
            Operands::InPlace => Actor::new(schedule, vec![], data),
        };
        actor.widths(width, width)
    };
    outputs(&(0..size).map(actor).collect::<Vec<_>>(), 0, tree)
}

#[test]
fn pieces_and_packed_elements_give_the_same_results() {
    for (size, count) in SIZES.into_iter().flat_map(|size| COUNTS.map(|count| (size, count))) {
        for place in [Operands::Input, Operands::InPlace] {
            for (number, case) in cases().iter().enumerate() {
                let arguments = (size, count * WIDTH, place);
                let at_once = outputs_of(case, arguments, u64::MAX, |_| false);
                for most in [2, 5] {
                    let divided = outputs_of(case, arguments, most, |_| false);
                    assert_eq!(divided, at_once, "case {number}, {arguments:?}, {most}");
                    let packed = outputs_of(case, arguments, most, |rank| rank % 2 == 0);
                    assert_eq!(packed, at_once, "case {number}, {arguments:?}, {most}, packed");
                }
            }
        }
    }
}

#[test]
fn pieces_need_little_memory() {
    let (most, division) = (1000, Division { most: 1000, packing: None });
    for rank in 0..5 {
        for operands in [Operands::Input, Operands::InPlace] {
            for case in cases() {
                let count = 1_000_003;
                let schedule = (case.schedule)(member(rank, 5), count, operands, division);
                let needed = match schedule.map(|schedule| schedule.scratch()) {
                    Ok(Scratch::Elements { count, .. }) => count,
                    Ok(other) => panic!("{other}"),
                    Err(CollectiveError::InPlace { .. }) => continue,
                    Err(error) => panic!("{error}"),
                };
                assert!(needed <= 3 * most, "{needed} elements");
            }
        }
    }
}

/// A rank that leaves its output alone copies nothing to it.
#[test]
fn packed_elements_of_an_unused_output_stay() {
    let packing = Some(Packing { operands: 2, size: 8 });
    let collective = Collective::Exscan { count: 3, operands: Operands::Input };
    let schedule =
        collective.schedule(member(0, 2), Division { packing, ..Division::NONE }).unwrap();
    assert_eq!(schedule.scratch(), Scratch::Operands { count: 18 });
    let text = schedule.to_string();
    assert!(!text.contains(&Buffer::Output.to_string()), "{text}");
}
