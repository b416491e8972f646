//! Sums whose rounding depends on the order of the operands: all ranks get the same bits.

use mpicore::op::{ElementKind, Predefined};
use mpicore::{Communicator, Operand, Reduction};
use mpj_tests::conformance::Numbers;
use mpj_tests::conformance::collective::area::Area;
use mpj_tests::conformance::collective::element::Kind;
use mpj_tests::conformance::collective::job;
use mpj_tests::conformance::collective::shape::{Form, Shape, Side};

use super::BACKENDS;

/// Numbers per rank in a short sum, whose operands ranks exchange whole, in a longer one, whose operands they exchange by
/// halves, and in one of several pieces.
const LENS: [usize; 3] = [3_001, 8_211, 140_001];

/// Numbers of very different sizes, of both signs.
fn numbers(rank: u32, len: usize) -> Vec<u8> {
    let mut numbers = Numbers(rank.into());
    let number = || {
        let (mantissa, power) = (numbers.next_number() as i64, numbers.below(60) as i32);
        (mantissa as f64) * 2_f64.powi(power - 90)
    };
    std::iter::repeat_with(number).take(len).flat_map(f64::to_le_bytes).collect()
}

fn sums(world: &Communicator, len: usize, in_place: bool) -> Result<Vec<u8>, String> {
    let area = || {
        let mut area = Area::new(Side::consecutive(&Form::new(Shape::Plain, Kind::F64), &[len]));
        area.fill(&[Some(numbers(world.rank(), len))]);
        area
    };
    let (mut input, mut output) = (area(), area());
    let kind = Operand::Kind(ElementKind::F64);
    let with = Reduction { op: Predefined::Sum.into(), operand: kind };
    let lent = (!in_place).then(|| input.lend_input());
    let plan = world.allreduce(lent, output.lend_output(), len as u64, with);
    plan.and_then(|plan| plan.run()).map_err(|error| error.to_string())?;
    for area in [&mut input, &mut output] {
        area.set_lent(false);
    }
    let from = output.side().start();
    Ok(output.memory()[from..from + len * size_of::<f64>()].to_vec())
}

#[test]
fn all_ranks_get_the_same_bits() {
    for (number, ranks) in [2, 3, 5, 6, 8, 9, 17].into_iter().enumerate() {
        let backend = BACKENDS[number % BACKENDS.len()];
        let all = job::run(ranks, backend, |world| {
            let in_place = [false, world.rank() % 2 == 0];
            let of_all = LENS.map(|len| in_place.map(|in_place| sums(world, len, in_place)));
            of_all.into_iter().flatten().collect::<Result<Vec<_>, _>>()
        });
        // All ways associate the numbers alike: the long sums begin with the short ones.
        let longest = all[0].last().expect("there are sums");
        for (rank, sums) in all.iter().enumerate() {
            for (sum, bits) in sums.iter().enumerate() {
                assert!(longest.starts_with(bits), "sum {sum} of rank {rank} of {ranks}");
            }
        }
    }
}
