//! Compares the time of a predefined operation with that of a loop that one would write over slices.
//!
//! `reduce_local` gets bytes at any alignment; the plain loop knows the type and gets aligned slices. Both take turns
//! on buffers that stay in a cache. The table shows the median of their times for one call, and of their ratios. The
//! last column shows the same for a buffer that begins one byte after an aligned address. Run it with `cargo run
//! --release -p mpicore --example op_speed`.

#![allow(clippy::print_stdout, reason = "a program")]

use std::hint::black_box;
use std::time::Instant;

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use mpicore::op::{ElementKind, Op, Predefined, reduce_local};

/// Sizes of each buffer in bytes: buffers that stay in the first cache, and in the second.
const SIZES: [usize; 2] = [16 << 10, 512 << 10];
/// Number of bytes that one measurement processes.
const WORK: usize = 32 << 20;
/// Number of measurements of each way.
const ROUNDS: usize = 41;

fn main() {
    println!("kind     op          bytes    plain us    ours us    ratio    unaligned");
    for size in SIZES {
        floating::<f64>(ElementKind::F64, size, 1.5);
        floating::<f32>(ElementKind::F32, size, 1.5);
        let i32_by = |op, plain| compare(ElementKind::I32, op, size, 3_i32, plain);
        i32_by(Predefined::Sum, &|a, b| each(a, b, i32::wrapping_add));
        i32_by(Predefined::Min, &|a, b| each(a, b, |a, b| if a < b { a } else { b }));
        i32_by(Predefined::Max, &|a, b| each(a, b, |a, b| if a > b { a } else { b }));
    }
}

fn floating<T>(kind: ElementKind, size: usize, value: T)
where
    T: Pod + PartialOrd + std::ops::Add<Output = T>,
{
    compare(kind, Predefined::Sum, size, value, &|a, b| each(a, b, |a: T, b| a + b));
    compare(kind, Predefined::Min, size, value, &|a, b| {
        each(a, b, |a, b| if a < b { a } else { b })
    });
    compare(kind, Predefined::Max, size, value, &|a, b| {
        each(a, b, |a, b| if a > b { a } else { b })
    });
}

/// The plain loop.
#[inline]
fn each<T: Copy>(input: &[T], inout: &mut [T], combine: impl Fn(T, T) -> T) {
    for (input, inout) in input.iter().zip(inout) {
        *inout = combine(*input, *inout);
    }
}

/// Measures and prints one row.
fn compare<T: Pod>(
    kind: ElementKind,
    op: Predefined,
    size: usize,
    value: T,
    plain: &dyn Fn(&[T], &mut [T]),
) {
    let elements = size / size_of::<T>();
    let (input, mut inout) = (vec![value; elements + 1], vec![value; elements + 1]);
    let (bytes, by_op): (&[u8], Op) = (cast_slice(&input), op.into());
    let (mut plains, mut ours, mut ratios, mut shifted) = (vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let base =
            timed(size, || plain(black_box(&input[..elements]), black_box(&mut inout[..elements])));
        let mut reduce = |from: usize| {
            let (input, inout) =
                (&bytes[from..][..size], &mut cast_slice_mut(&mut inout)[from..][..size]);
            timed(size, || {
                reduce_local(&by_op, kind, black_box(input), black_box(inout)).expect("legal");
            })
        };
        let (aligned, odd) = (reduce(0), reduce(1));
        plains.push(base);
        ours.push(aligned);
        ratios.push(aligned / base);
        shifted.push(odd / base);
    }
    let [plain, ours, ratio, shifted] = [plains, ours, ratios, shifted].map(median);
    println!(
        "{:8} {:8} {size:8} {plain:11.3} {ours:10.3} {ratio:8.2} {shifted:12.2}",
        kind.name(),
        op.name()
    );
}

/// Returns the time in microseconds of a call that processes this many bytes.
fn timed(size: usize, mut call: impl FnMut()) -> f64 {
    let calls = WORK / size;
    let start = Instant::now();
    for _ in 0..calls {
        call();
    }
    start.elapsed().as_secs_f64() * 1e6 / calls as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
