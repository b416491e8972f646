//! The loops of `benches/calls` on the device, without a face: each sends messages of 8 bytes.
//! `benches/system-mpi/check/calls.c` has the same loops in C.
//!
//! `calls unexpected|exchange|start BATCHES COUNT` is for one rank, which sends to itself; `calls pingpong BATCHES
//! COUNT` is for two. It prints the tenth percentile over the batches of the nanoseconds that one of COUNT rounds
//! takes.

#![expect(unsafe_code, reason = "describes buffers of its own as regions")]
#![allow(clippy::print_stdout, reason = "a program")]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use mpjdev::wireup::{self};
use mpjdev::{Device, Error, Mode, RecvRegion, SendRegion};

/// One rank with the buffers of its messages, and with their tag and context, which the compiler does not know.
struct Rank<'a> {
    device: &'a Device,
    data: &'a [u8],
    place: *mut u8,
    tag: i32,
    context: u32,
}

impl Rank<'_> {
    fn source(&self) -> SendRegion {
        // SAFETY: the data live and do not change until the job has ended.
        unsafe { SendRegion::new(self.data.as_ptr(), self.data.len()) }
    }

    fn sink(&self) -> RecvRegion {
        // SAFETY: the place has as many bytes, lives until the job has ended, and one receive at a time uses it.
        unsafe { RecvRegion::new(self.place, self.data.len()) }
    }

    fn send(&self, to: usize) -> Result<(), Error> {
        self.device.send(self.source(), to, self.tag, self.context, Mode::Standard)
    }

    fn receive(&self, from: usize) -> Result<(), Error> {
        self.device.recv(self.sink(), Some(from), Some(self.tag), self.context).map(drop)
    }

    fn unexpected(&self) -> Result<(), Error> {
        self.send(0)?;
        self.receive(0)
    }

    fn exchange(&self) -> Result<(), Error> {
        let receive = self.device.irecv(self.sink(), Some(0), Some(self.tag), self.context)?;
        self.send(0)?;
        self.device.iwait(receive).map(drop)
    }

    fn start(&self) -> Result<(), Error> {
        let receive = self.device.irecv(self.sink(), Some(0), Some(self.tag), self.context)?;
        let send = self.device.isend(self.source(), 0, self.tag, self.context, Mode::Standard)?;
        self.device.iwait(receive)?;
        self.device.iwait(send).map(drop)
    }

    fn pingpong(&self) -> Result<(), Error> {
        let other = 1 - self.device.rank() as usize;
        if other == 1 {
            self.send(other)?;
            return self.receive(other);
        }
        self.receive(other)?;
        self.send(other)
    }
}

/// Returns the tenth percentile over `batches` of the nanoseconds of a round.
fn measure(
    batches: usize,
    count: usize,
    round: impl Fn() -> Result<(), Error>,
) -> Result<f64, Error> {
    let mut times = Vec::with_capacity(batches);
    for _ in 0..batches {
        let start = Instant::now();
        for _ in 0..count {
            round()?;
        }
        times.push(start.elapsed().as_secs_f64() * 1e9 / count as f64);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[batches / 10])
}

fn main() -> Result<ExitCode, Error> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [name, batches, count] = &words[..] else { return Ok(ExitCode::from(2)) };
    let (Ok(batches), Ok(count)) = (batches.parse(), count.parse()) else {
        return Ok(ExitCode::from(2));
    };
    let job = wireup::join(false)?;
    let device = &job.devices[0];
    let (data, mut into) = ([7; 8], [0; 8]);
    let place = into.as_mut_ptr();
    let rank = black_box(Rank { device, data: &data, place, tag: 1, context: 0 });
    let time = match name.as_str() {
        "unexpected" => measure(batches, count, || rank.unexpected()),
        "exchange" => measure(batches, count, || rank.exchange()),
        "start" => measure(batches, count, || rank.start()),
        "pingpong" => measure(batches, count, || rank.pingpong()),
        _ => return Ok(ExitCode::from(2)),
    }?;
    if device.rank() == 0 {
        println!("{time:.2}");
    }
    device.finish()?;
    if let Some(control) = &job.control {
        control.finished();
    }
    Ok(ExitCode::SUCCESS)
}
