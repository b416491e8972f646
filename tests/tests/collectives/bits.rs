//! Sums whose rounding depends on the order of the operands: all ranks get the same bits.

use mpicore::op::{ElementKind, Predefined};
use mpicore::{Communicator, Operand, Reduction};
use mpj_tests::conformance::Numbers;
use mpj_tests::conformance::collective::area::Area;
use mpj_tests::conformance::collective::element::Kind;
use mpj_tests::conformance::collective::job;
use mpj_tests::conformance::collective::shape::{Form, Shape, Side};
use mpj_tests::conformance::network::Network;

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

/// The sums of the numbers of all ranks.
fn sums(world: &Communicator, numbers: &[u8], in_place: bool) -> Result<Vec<u8>, String> {
    let len = numbers.len() / size_of::<f64>();
    let area = || {
        let mut area = Area::new(Side::consecutive(&Form::new(Shape::Plain, Kind::F64), &[len]));
        area.fill(&[Some(numbers.to_vec())]);
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
    Ok(output.memory()[from..from + numbers.len()].to_vec())
}

/// What rank 0 has for these bits of numbers.
fn of_first(world: &Communicator, bits: &[u8]) -> Result<Vec<u8>, String> {
    let len = bits.len() / size_of::<f64>();
    let mut area = Area::new(Side::consecutive(&Form::new(Shape::Plain, Kind::F64), &[len]));
    area.fill(&[Some(bits.to_vec())]);
    let plan = world.bcast(area.lend_output(), len as u64, 0);
    plan.and_then(|plan| plan.run()).map_err(|error| error.to_string())?;
    area.set_lent(false);
    let from = area.side().start();
    Ok(area.memory()[from..from + bits.len()].to_vec())
}

#[test]
fn all_ranks_get_the_same_bits() {
    same_bits(Network::Segment, &[2, 3, 5, 6, 8, 9, 17]);
}

#[test]
fn all_ranks_of_several_hosts_get_the_same_bits() {
    same_bits(Network::Hosts, &[4, 5, 6]);
    same_bits(Network::UnevenHosts, &[4, 7]);
    same_bits(Network::DealtHosts, &[4, 6]);
}

fn same_bits(network: Network, ranks: &[usize]) {
    for (number, &ranks) in ranks.iter().enumerate() {
        let backend = BACKENDS[number % BACKENDS.len()];
        job::run_over(network, ranks, backend, |world| {
            let in_place = [false, world.rank() % 2 == 0];
            let sum = |len, in_place| sums(world, &numbers(world.rank(), len), in_place);
            let all = LENS.map(|len| in_place.map(|in_place| sum(len, in_place)));
            let all = all.into_iter().flatten().collect::<Result<Vec<_>, _>>()?;
            // All ways associate the numbers alike: the long sums begin with the short ones.
            let longest = of_first(world, all.last().expect("there are sums"))?;
            match all.iter().position(|bits| !longest.starts_with(bits)) {
                Some(sum) => Err(format!("sum {sum} is not that of rank 0")),
                None => Ok(()),
            }
        });
    }
}

/// The second number is lost beside the first one, and the last one beside the third, unless the first and the third
/// come together before the last.
#[test]
fn a_host_combines_its_own_operands_first() {
    for (network, expected) in [(Network::Segment, 0.0), (Network::UnevenHosts, 1.0)] {
        let all = job::run_over(network, 4, BACKENDS[0], |world| {
            let number: f64 = [1e16, 1.0, -1e16, 1.0][world.rank() as usize];
            sums(world, &number.to_le_bytes(), false)
        });
        assert!(all.iter().all(|sum| *sum == f64::to_le_bytes(expected)), "{network:?}: {all:?}");
    }
}
