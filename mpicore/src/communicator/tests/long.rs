//! Reductions that are longer than a piece: their results, also where elements differ from rank to rank, and the memory
//! that they take.

use super::*;
use crate::Elements;
use crate::datatype::Datatype;

/// Number of words of a rank: more than one piece.
const LEN: u64 = 99_000;
/// Words in an element on ranks with odd numbers.
const WIDTH: u64 = 3;

/// The word with this index on a rank.
fn word(rank: u32, index: u64) -> u64 {
    (u64::from(rank) << 40) + index * 7 + 1
}

/// Makes a reduction that keeps the operands of the lowest rank.
fn lowest(operand: Operand) -> Reduction {
    let apply = |left: &[u8], right: &mut [u8], _: usize, _: &dyn Any| right.copy_from_slice(left);
    Reduction { op: UserOp::new(false, apply).into(), operand }
}

fn total() -> Reduction {
    Reduction { op: Predefined::Sum.into(), operand: Operand::Kind(ElementKind::U64) }
}

/// Returns how many words of the results of a reduce_scatter each rank gets.
fn counts(over: &Communicator) -> Vec<u64> {
    (0..over.size()).map(|rank| LEN + u64::from(rank % 2) * LEN).collect()
}

/// Plans a call.
type Planner = fn(&Communicator, Option<Input>, Output, u64, Reduction) -> Result<Plan<'_>, Error>;

/// A call: how many words a rank gives and gets, and whose operands are combined.
struct Call {
    name: &'static str,
    plan: Planner,
    given: fn(&Communicator) -> u64,
    /// The index of the first word that the rank gets, and how many there are.
    got: fn(&Communicator) -> [u64; 2],
    /// The number of ranks whose operands are in the results, from rank 0 on.
    ranks: fn(&Communicator) -> u32,
}

const CALLS: [Call; 6] = [
    Call {
        name: "allreduce",
        plan: |over, input, output, count, with| over.allreduce(input, output, count, with),
        given: |_| LEN,
        got: |_| [0, LEN],
        ranks: Communicator::size,
    },
    Call {
        name: "reduce",
        plan: |over, input, output, count, with| over.reduce(input, output, count, with, 1),
        given: |_| LEN,
        got: |over| [0, if over.rank() == 1 { LEN } else { 0 }],
        ranks: Communicator::size,
    },
    Call {
        name: "scan",
        plan: |over, input, output, count, with| over.scan(input, output, count, with),
        given: |_| LEN,
        got: |_| [0, LEN],
        ranks: |over| over.rank() + 1,
    },
    Call {
        name: "exscan",
        plan: |over, input, output, count, with| over.exscan(input, output, count, with),
        given: |_| LEN,
        got: |over| [0, if over.rank() == 0 { 0 } else { LEN }],
        ranks: Communicator::rank,
    },
    Call {
        name: "reduce_scatter_block",
        plan: |over, input, output, count, with| {
            let count = count / u64::from(over.size());
            over.reduce_scatter_block(input, output, count, with)
        },
        given: |over| u64::from(over.size()) * LEN,
        got: |over| [u64::from(over.rank()) * LEN, LEN],
        ranks: Communicator::size,
    },
    Call {
        name: "reduce_scatter",
        plan: |over, input, output, count, with| {
            let (counts, words) = (counts(over), counts(over).iter().sum::<u64>());
            let counts: Vec<_> = counts.iter().map(|words_of| words_of * count / words).collect();
            over.reduce_scatter(input, output, &counts, with)
        },
        given: |over| counts(over).iter().sum(),
        got: |over| {
            let (counts, rank) = (counts(over), over.rank() as usize);
            [counts[..rank].iter().sum(), counts[rank]]
        },
        ranks: Communicator::size,
    },
];

impl Call {
    /// Makes the call with elements of `width` words, and checks the results.
    fn check(&self, over: &Communicator, with: Reduction, width: u64, in_place: bool) {
        let (given, [first, got]) = ((self.given)(over), (self.got)(over));
        let own: Vec<_> = (0..given).map(|index| word(over.rank(), index)).collect();
        let elements = || Elements::Plain { size: 8 * width as usize };
        // Rank 0 of an exscan has an output, which stays as it is. Only the root of a reduction may work in place.
        let in_place = in_place && (got > 0 || self.name == "exscan");
        let room = if self.name == "exscan" { LEN } else { got };
        let (input, output) = match in_place {
            true => (None, own),
            false => (Some(Input::keeping(own).with(elements())), vec![7; room as usize]),
        };
        let is_sum = with.op.commutes();
        let output = Output::keeping(output).with(elements());
        let plan = (self.plan)(over, input, output, given / width, with).unwrap();
        let results = plan.run_and_keep().unwrap();
        let ranks = (self.ranks)(over);
        for (index, result) in (first..first + got).zip(&results) {
            let all = (0..ranks).map(|rank| word(rank, index)).sum();
            let expected = if is_sum { all } else { word(0, index) };
            let Self { name, .. } = self;
            assert_eq!(*result, expected, "{name}, word {index} on rank {}", over.rank());
        }
        let untouched = results.iter().enumerate().skip(got as usize);
        for (index, word_behind) in untouched {
            let before = if in_place { word(over.rank(), index as u64) } else { 7 };
            assert_eq!(*word_behind, before, "{}, word {index} behind the results", self.name);
        }
    }
}

#[test]
fn long_reductions_combine_all_words_in_their_order() {
    for ranks in [2, 3] {
        run(ranks, move |world| {
            for (call, in_place) in CALLS.iter().flat_map(|call| [(call, false), (call, true)]) {
                let described = || Operand::Described(Arc::new(()));
                call.check(world, total(), 1, in_place);
                call.check(world, lowest(Operand::Kind(ElementKind::U64)), 1, in_place);
                call.check(world, lowest(described()), WIDTH, in_place);
            }
        });
    }
}

/// Ranks may describe the same operands as elements of different sizes.
#[test]
fn long_reductions_combine_elements_of_different_sizes() {
    run(3, |world| {
        let width = if world.rank() % 2 == 1 { WIDTH } else { 1 };
        for (call, in_place) in CALLS.iter().flat_map(|call| [(call, false), (call, true)]) {
            let word = || Operand::Elements(|| Some(Datatype::predefined(ElementKind::U64)));
            call.check(world, total(), width, in_place);
            call.check(world, lowest(word()), width, in_place);
        }
    });
}

/// Returns how often the kernel has given this thread a page of memory.
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // The fields behind the name, which may contain spaces; the first one has number 3.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(10 - 3).unwrap().parse().unwrap()
}

/// A rank that starts a long reduction takes no memory of that length.
#[test]
fn the_start_of_a_long_reduction_takes_little_memory() {
    const WORDS: u64 = 3 << 20;
    run(2, |world| {
        for call in &CALLS[..4] {
            let own = vec![1; WORDS as usize];
            let (input, output) = (Input::keeping(own), Output::keeping(vec![1; WORDS as usize]));
            let with = lowest(Operand::Kind(ElementKind::U64));
            let before = page_faults();
            let plan = (call.plan)(world, Some(input), output, WORDS, with).unwrap();
            let request = plan.start().unwrap();
            let taken = page_faults() - before;
            world.device().iwait(request).unwrap();
            // The data have 6144 pages of 4 KiB.
            assert!(taken < 2000, "the start of {} took {taken} pages", call.name);
        }
    });
}
