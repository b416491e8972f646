//! Compares the cost of a message whose bytes are not contiguous with that of one that is packed by hand.
//!
//! One rank sends 64 MiB to another, in blocks of 8 bytes and of 4 KiB, with gaps of the same length between the
//! blocks. Both ranks are threads of this process. By hand, the sender packs the blocks into a buffer and sends that,
//! and the receiver unpacks. The two ways take turns. The table shows the median of their ratios and the most memory
//! that a message took in addition to the program's buffers. Run it with `cargo run --release -p mpjdev --example
//! layouts`.

#![expect(unsafe_code, reason = "describes buffers of its own as regions")]
#![allow(clippy::print_stdout, reason = "a program")]

use std::os::fd::OwnedFd;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use mpj_doubles::channels::{self, Cards};
use mpjdev::{
    BackendChoice, Device, GetMode, Layout, Mode, Options, RecvRegion, SendRegion, Sink, Source,
};
use transport_lapi::AnyAdapter;
use transport_lapi::adapters::shm::{ShmAdapter, create_segment};
use transport_lapi::adapters::threads;

/// Bytes of a message.
const MESSAGE: usize = 64 << 20;
/// Number of messages of each kind.
const ROUNDS: usize = 9;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A buffer of blocks, and a buffer for packing.
struct Buffers {
    blocks: Vec<u8>,
    packed: Vec<u8>,
}

fn main() -> Result<(), Failure> {
    println!("adapter   backend     block   by layout    by hand    ratio   extra memory");
    for block in [8, 4 << 10] {
        for backend in [BackendChoice::Eager, BackendChoice::Rendezvous] {
            measure("threads", threads::job(2)?, backend, block)?;
            measure("shm, am", attached()?, backend, block)?;
            measure("channels", channels::job(2, Cards::Frames)?, backend, block)?;
        }
    }
    Ok(())
}

/// Makes a job of two tasks, each with its own mapping, whose Gets are built from active messages.
fn attached() -> Result<Vec<ShmAdapter>, Failure> {
    let segment = create_segment("layouts", 2, 1)?;
    let attach = |(task, fd): (u32, OwnedFd)| {
        thread::spawn(move || ShmAdapter::attach(fd, task, 2, GetMode::Am))
    };
    let fds = [(0, segment.try_clone()?), (1, segment)];
    let attaching = fds.map(attach);
    attaching.into_iter().map(|task| Ok(task.join().expect("no panic")?)).collect()
}

fn measure(
    name: &str,
    adapters: Vec<impl Into<AnyAdapter>>,
    backend: BackendChoice,
    block: usize,
) -> Result<(), Failure> {
    let layout = Layout::strided(block, 2 * block as isize, MESSAGE / block)?;
    let options = Options { early_limit: 4 * MESSAGE, ..Options::with_backend(backend) };
    let together = Barrier::new(2);
    let mut times = [Vec::new(), Vec::new()];
    let mut extra = 0;
    thread::scope(|scope| {
        let adapters = adapters.into_iter().map(Into::<AnyAdapter>::into);
        let ranks = adapters.map(|adapter| {
            let (options, together) = (options.clone(), &together);
            let layout = layout.clone();
            scope.spawn(move || rank(adapter, options, &layout, block, together))
        });
        for rank in ranks.collect::<Vec<_>>() {
            let (took, grown) = rank.join().expect("no panic")?;
            extra = extra.max(grown);
            if !took[0].is_empty() {
                times = took;
            }
        }
        Ok::<(), Failure>(())
    })?;
    let mut ratios: Vec<f64> = times[0]
        .iter()
        .zip(&times[1])
        .map(|(one, two)| one.as_secs_f64() / two.as_secs_f64())
        .collect();
    ratios.sort_by(f64::total_cmp);
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    let [by_layout, by_hand] = times.each_mut().map(median);
    let backend = format!("{backend:?}").to_lowercase();
    println!(
        "{name:9} {backend:10} {block:6} {by_layout:8.1} ms {by_hand:7.1} ms {:8.2} {:10.2} MiB",
        ratios[ratios.len() / 2],
        extra as f64 / f64::from(1 << 20),
    );
    Ok(())
}

/// Runs one rank. Returns the times by layout and by hand at the receiver, and how much the memory grew.
fn rank(
    adapter: AnyAdapter,
    options: Options,
    layout: &Layout,
    block: usize,
    together: &Barrier,
) -> Result<([Vec<Duration>; 2], u64), Failure> {
    let device = Device::new(adapter, options)?;
    let extent = layout.bounds().1.unsigned_abs();
    let mut buffers = Buffers { blocks: vec![1; extent], packed: vec![1; MESSAGE] };
    let mut times = [Vec::new(), Vec::new()];
    let mut extra = 0;
    // The first round is not counted.
    for round in 0..=ROUNDS {
        for (by_hand, times) in times.iter_mut().enumerate() {
            together.wait();
            let before = if round > 0 { reset_peak()? } else { 0 };
            together.wait();
            let start = Instant::now();
            if device.rank() == 0 {
                send(&device, &mut buffers, layout, block, by_hand == 1)?;
            } else {
                receive(&device, &mut buffers, layout, block, by_hand == 1)?;
            }
            let took = start.elapsed();
            together.wait();
            if round > 0 && by_hand == 0 {
                extra = extra.max(peak()?.saturating_sub(before));
            }
            if round > 0 && device.rank() == 1 {
                times.push(took);
            }
        }
    }
    device.finish()?;
    Ok((times, extra))
}

fn send(
    device: &Device,
    buffers: &mut Buffers,
    layout: &Layout,
    block: usize,
    by_hand: bool,
) -> Result<(), Failure> {
    let Buffers { blocks, packed } = buffers;
    let region = |bytes: &[u8]| {
        // SAFETY: the call returns when the send is over, and the bytes are not touched until then.
        unsafe { SendRegion::new(bytes.as_ptr(), bytes.len()) }
    };
    let source: Source = if by_hand {
        for (to, from) in packed.chunks_exact_mut(block).zip(blocks.chunks(2 * block)) {
            to.copy_from_slice(&from[..block]);
        }
        region(packed).into()
    } else {
        layout.to_send(region(blocks), 0)?
    };
    Ok(device.send(source, 1, 0, 0, Mode::Standard)?)
}

fn receive(
    device: &Device,
    buffers: &mut Buffers,
    layout: &Layout,
    block: usize,
    by_hand: bool,
) -> Result<(), Failure> {
    let Buffers { blocks, packed } = buffers;
    let region = |bytes: &mut [u8]| {
        // SAFETY: the call returns when the receive is over, and the bytes are not touched until then.
        unsafe { RecvRegion::new(bytes.as_mut_ptr(), bytes.len()) }
    };
    let sink: Sink =
        if by_hand { region(packed).into() } else { layout.to_receive(region(blocks), 0)? };
    device.recv(sink, Some(0), Some(0), 0)?;
    if by_hand {
        for (from, to) in packed.chunks_exact(block).zip(blocks.chunks_mut(2 * block)) {
            to[..block].copy_from_slice(from);
        }
    }
    Ok(())
}

/// Returns the memory of this process in bytes, and restarts the measurement of its peak.
fn reset_peak() -> Result<u64, Failure> {
    std::fs::write("/proc/self/clear_refs", "5")?;
    peak()
}

/// Returns the peak of this process's memory.
fn peak() -> Result<u64, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib << 10)
}
