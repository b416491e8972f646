//! Measures packing and unpacking of layouts, compared with loops written by hand for each layout.
//!
//! The loops know the length of a block at compile time and copy the whole message at once. The layout packs and
//! unpacks pieces of 64 KiB, as in a transport. Both take turns. The table lists the median time by layout, and the
//! median ratio to the time by hand. Run it with `cargo run --release -p transport-lapi --example layout_speed`.

#![expect(unsafe_code, reason = "describes buffers of its own as regions")]
#![allow(clippy::print_stdout, reason = "a program")]

use std::hint::black_box;
use std::time::Instant;

use transport_lapi::{ForeignBytes, Layout, LayoutError, RecvRegion, SendRegion, Source};

/// Length of a message in bytes.
const MESSAGE: usize = 16 << 20;
/// Length of a piece in bytes.
const PIECE: usize = 64 << 10;
/// Messages of each kind, after a warm-up message.
const ROUNDS: usize = 15;

/// A loop written by hand: copies out of the memory if `PACK`, else into it.
trait ByHand {
    fn copy<const PACK: bool>(&self, memory: &mut [u8], message: &mut [u8]);
}

#[inline(always)]
fn block<const PACK: bool, const LEN: usize>(memory: &mut [u8], message: &mut [u8]) {
    let (memory, message) = (&mut memory[..LEN], &mut message[..LEN]);
    if PACK { message.copy_from_slice(memory) } else { memory.copy_from_slice(message) }
}

/// Blocks separated by gaps of their own length.
struct Strided<const LEN: usize>;

impl<const LEN: usize> ByHand for Strided<LEN> {
    fn copy<const PACK: bool>(&self, memory: &mut [u8], message: &mut [u8]) {
        for (at, to) in memory.chunks_exact_mut(2 * LEN).zip(message.chunks_exact_mut(LEN)) {
            block::<PACK, LEN>(at, to);
        }
    }
}

/// Blocks at the given places.
struct Places<const LEN: usize>(Vec<usize>);

impl<const LEN: usize> ByHand for Places<LEN> {
    fn copy<const PACK: bool>(&self, memory: &mut [u8], message: &mut [u8]) {
        for (&at, to) in self.0.iter().zip(message.chunks_exact_mut(LEN)) {
            block::<PACK, LEN>(&mut memory[at..], to);
        }
    }
}

/// Every second number in the first half of each row. A row has four times as many numbers as are taken from it.
struct Submatrix(usize);

impl ByHand for Submatrix {
    fn copy<const PACK: bool>(&self, memory: &mut [u8], message: &mut [u8]) {
        let rows = memory.chunks_exact_mut(32 * self.0);
        for (row, to) in rows.zip(message.chunks_exact_mut(8 * self.0)) {
            Strided::<8>.copy::<PACK>(&mut row[..16 * self.0], to);
        }
    }
}

/// A byte and a number, aligned as in C.
struct Records;

impl ByHand for Records {
    fn copy<const PACK: bool>(&self, memory: &mut [u8], message: &mut [u8]) {
        for (at, to) in memory.chunks_exact_mut(16).zip(message.chunks_exact_mut(9)) {
            block::<PACK, 1>(at, to);
            block::<PACK, 8>(&mut at[8..], &mut to[1..]);
        }
    }
}

fn main() -> Result<(), LayoutError> {
    println!("layout                      pack              unpack");
    strided::<1>()?;
    strided::<4>()?;
    strided::<8>()?;
    strided::<24>()?;
    strided::<64>()?;
    strided::<4096>()?;
    random::<4>()?;
    random::<8>()?;
    random::<24>()?;
    random::<64>()?;
    random::<4096>()?;
    for columns in [512, 3] {
        let row = Layout::strided(8, 16, columns)?;
        let rows = row.repeat(MESSAGE / 8 / columns, 32 * columns as isize)?;
        compare(&format!("submatrix of {columns}"), &rows, &Submatrix(columns));
    }
    let record = Layout::indexed([(0, 1), (8, 8)])?;
    compare("records of 1 + 8", &record.repeat(MESSAGE / 9, 16)?, &Records);
    Ok(())
}

fn strided<const LEN: usize>() -> Result<(), LayoutError> {
    let layout = Layout::strided(LEN, 2 * LEN as isize, MESSAGE / LEN)?;
    compare(&format!("strided {LEN}"), &layout, &Strided::<LEN>);
    Ok(())
}

fn random<const LEN: usize>() -> Result<(), LayoutError> {
    let mut places: Vec<usize> = (0..MESSAGE / LEN).map(|index| index * 2 * LEN).collect();
    let mut random = 1u64;
    for index in (1..places.len()).rev() {
        // The constants are Knuth's.
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        places.swap(index, (random >> 33) as usize % (index + 1));
    }
    let layout = Layout::indexed_block(LEN, places.iter().map(|&at| at as isize))?;
    compare(&format!("random {LEN}"), &layout, &Places::<LEN>(places));
    Ok(())
}

/// Prints a line of the table.
fn compare(name: &str, layout: &Layout, by_hand: &impl ByHand) {
    let mut memory = vec![1; layout.bounds().1 as usize + PIECE];
    let mut message = vec![2; layout.size()];
    let packed = median(|is_layout| {
        let start = Instant::now();
        if is_layout {
            pack(layout, &memory, &mut message)
        } else {
            by_hand.copy::<true>(&mut memory, &mut message)
        }
        start.elapsed().as_secs_f64()
    });
    let unpacked = median(|is_layout| {
        let start = Instant::now();
        if is_layout {
            unpack(layout, &mut memory, &message)
        } else {
            by_hand.copy::<false>(&mut memory, &mut message)
        }
        start.elapsed().as_secs_f64()
    });
    let column = |(time, ratio): (f64, f64)| format!("{:7.2} ms {ratio:6.2}", time * 1e3);
    println!("{name:20} {}   {}", column(packed), column(unpacked));
}

/// The median time by layout, in seconds, and the median of its ratio to the time by hand.
fn median(mut run: impl FnMut(bool) -> f64) -> (f64, f64) {
    let mut rounds: Vec<_> = (0..=ROUNDS).map(|_| (run(true), run(false))).skip(1).collect();
    rounds.sort_by(|one, two| one.0.total_cmp(&two.0));
    let time = rounds[ROUNDS / 2].0;
    rounds.sort_by(|one, two| (one.0 / one.1).total_cmp(&(two.0 / two.1)));
    let (by_layout, by_hand) = rounds[ROUNDS / 2];
    (time, by_layout / by_hand)
}

fn pack(layout: &Layout, memory: &[u8], message: &mut [u8]) {
    // SAFETY: the bytes are not accessed until the source is gone.
    let memory = unsafe { SendRegion::new(memory.as_ptr(), memory.len()) };
    let source = layout.to_send(memory, 0).expect("the memory is long enough");
    let Source::Layout(source) = source else { unreachable!("the blocks lie apart") };
    // SAFETY: the bytes are not accessed until the region is gone.
    let mut message = unsafe { RecvRegion::new(message.as_mut_ptr(), message.len()) };
    for offset in (0..layout.size()).step_by(PIECE) {
        source.pack(offset, message.part(offset, PIECE));
    }
    black_box(message);
}

fn unpack(layout: &Layout, memory: &mut [u8], message: &[u8]) {
    // SAFETY: the bytes are not accessed until the sink is gone.
    let memory = unsafe { RecvRegion::new(memory.as_mut_ptr(), memory.len()) };
    let mut sink = layout.to_receive(memory, 0).expect("the memory is long enough");
    for (index, piece) in message.chunks(PIECE).enumerate() {
        sink.store(index * PIECE, ForeignBytes::from_slice(piece));
    }
    black_box(sink);
}
