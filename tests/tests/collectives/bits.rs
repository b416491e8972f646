//! Sums whose rounding depends on the order of the operands: all ranks get the same bits.

use mpicore::op::{ElementKind, Predefined};
use mpicore::{Communicator, Operand, Reduction};
use mpj_tests::conformance::Numbers;
use mpj_tests::conformance::collective::area::Area;
use mpj_tests::conformance::collective::element::Kind;
use mpj_tests::conformance::collective::job;
use mpj_tests::conformance::collective::shape::{Form, Shape, Side};

use super::{BACKENDS, LIMIT};

/// Numbers of each rank.
const LEN: usize = 3_001;

/// Numbers of very different sizes, of both signs.
fn numbers(rank: u32) -> Vec<u8> {
    let mut numbers = Numbers(rank.into());
    let number = || {
        let (mantissa, power) = (numbers.next_number() as i64, numbers.below(60) as i32);
        (mantissa as f64) * 2_f64.powi(power - 90)
    };
    std::iter::repeat_with(number).take(LEN).flat_map(f64::to_le_bytes).collect()
}

fn sums(world: &Communicator, in_place: bool) -> Result<Vec<u8>, String> {
    let area = || {
        let mut area = Area::new(Side::consecutive(&Form::new(Shape::Plain, Kind::F64), &[LEN]));
        area.fill(&[Some(numbers(world.rank()))]);
        area
    };
    let (mut input, mut output) = (area(), area());
    let kind = Operand::Kind(ElementKind::F64);
    let with = Reduction { op: Predefined::Sum.into(), operand: kind };
    let lent = (!in_place).then(|| input.lend_input());
    let plan = world.allreduce(lent, output.lend_output(), LEN as u64, with);
    plan.and_then(|plan| plan.run()).map_err(|error| error.to_string())?;
    for area in [&mut input, &mut output] {
        area.set_lent(false);
    }
    Ok(output.memory().to_vec())
}

#[test]
fn all_ranks_get_the_same_bits() {
    for (number, ranks) in [2, 3, 5, 6, 7, 8, 9, 16, 17].into_iter().enumerate() {
        let backend = BACKENDS[number % BACKENDS.len()];
        let all = job::run(ranks, backend, LIMIT, |world| {
            Ok([sums(world, false)?, sums(world, world.rank() % 2 == 0)?])
        });
        for (rank, [first, second]) in all.iter().enumerate() {
            assert_eq!(first, &all[0][0], "rank {rank} of {ranks} has other bits");
            assert_eq!(second, first, "rank {rank} of {ranks} has other bits the second time");
        }
    }
}
