//! Windows with memory, and operations on one number of them, by the short path or not.

#![expect(unsafe_code, reason = "exposes memory of the tests")]

use std::ops::Deref;

use mpicore::datatype::Datatype;
use mpicore::op::{ElementKind, Predefined};
use mpicore::{Communicator, Error, Target, Window};
use mpjdev::{RecvRegion, SendRegion};

use super::{Combination, Fetched, at, number, source};

/// How a window gets its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It allocates it: ranks of one host have it mapped.
    Allocated,
    /// Likewise, one part behind the other. For ranks of one host.
    Shared,
    /// The test has it: operations are messages.
    Created,
    /// The test attaches it.
    Dynamic,
}

/// A window with its memory.
pub(super) struct Made {
    pub window: Window,
    _memory: Vec<u64>,
    /// Where the memory of each rank begins, in a dynamic window.
    addresses: Option<Vec<u64>>,
}

impl Deref for Made {
    type Target = Window;

    fn deref(&self) -> &Window {
        &self.window
    }
}

impl Made {
    pub fn new(world: &Communicator, bytes: usize, kind: Kind) -> Result<Self, Error> {
        let mut memory = vec![0_u64; bytes / 8];
        let start = memory.as_mut_ptr();
        // SAFETY: G2: the memory stays until the window has ended, or the test has failed.
        let region = unsafe { RecvRegion::new(start.cast(), bytes) };
        let (window, addresses) = match kind {
            Kind::Allocated => (Window::allocate(world, bytes, 8)?, None),
            Kind::Shared => (Window::allocate_shared(world, bytes, 8)?, None),
            Kind::Created => (Window::create(world, region, 8)?, None),
            Kind::Dynamic => {
                let window = Window::dynamic(world)?;
                window.attach(region)?;
                (window, Some(addresses(world, start.addr() as u64)?))
            }
        };
        Ok(Self { window, _memory: memory, addresses })
    }

    /// Makes an operation on a number of a rank.
    pub fn on_number(
        &self,
        rank: u32,
        place: usize,
        operation: impl FnOnce(Target<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        operation(self.at(rank, place as i64, 1, &number()))
    }

    /// Writes a number of a rank by the short path, if the window has one here.
    pub fn put_shortly(&self, rank: u32, place: usize, value: u64) -> bool {
        // SAFETY: G1: the number stays until the call has returned, and the short path keeps nothing but copies.
        let from = unsafe { SendRegion::new((&raw const value).cast(), 8) };
        self.put_plain(from, rank, self.displacement(rank, place as i64))
    }

    /// Reads numbers of a rank by the short path, if the window has one here.
    pub fn get_shortly(&self, rank: u32, places: &[usize]) -> Result<Option<Vec<u64>>, Error> {
        let mut values = vec![u64::MAX; places.len()];
        let mut get = |(place, value): (&usize, &mut u64)| {
            // SAFETY: G2: the number stays until it is there, and nobody else uses it.
            let into = unsafe { RecvRegion::new((&raw mut *value).cast(), 8) };
            self.get_plain(into, rank, self.displacement(rank, *place as i64))
        };
        let begun = places.iter().zip(&mut values).map(&mut get).filter(|begun| *begun).count();
        self.settle_local(Some(rank))?;
        Ok((begun == places.len()).then_some(values))
    }

    /// Adds to a number of a rank by the short path. Returns whether the window has one here.
    pub fn add_shortly(&self, rank: u32, place: usize, more: u64) -> Result<bool, Error> {
        // SAFETY: G1: as in `put_shortly`.
        let from = unsafe { SendRegion::new((&raw const more).cast(), 8) };
        let (how, here) =
            ((Predefined::Sum, ElementKind::U64), self.displacement(rank, place as i64));
        Ok(self.combine_plain((Some(from), None), how, rank, here).transpose()?.is_some())
    }

    /// Makes an operation of the accumulate family by the short path, if the window has one here. Returns what was there.
    pub fn combine_shortly(
        &self,
        rank: u32,
        place: usize,
        Combination { op, value, compare, is_narrow, .. }: Combination,
    ) -> Result<Option<u64>, Error> {
        let (len, kind) = if is_narrow { (4, ElementKind::U32) } else { (8, ElementKind::U64) };
        let mut was = 0_u64;
        // SAFETY: G1, G2: as in `put_shortly`.
        let [from, compared] = [&value, &compare]
            .map(|number| unsafe { SendRegion::new((&raw const *number).cast(), len) });
        // SAFETY: likewise.
        let into = unsafe { RecvRegion::new((&raw mut was).cast(), len) };
        let here = self.displacement(rank, place as i64);
        let done = match op {
            Some(op) => self.combine_plain((Some(from), Some(into)), (op, kind), rank, here),
            None => self.swap_plain((from, compared, into), kind, rank, here),
        };
        Ok(done.transpose()?.map(|()| was))
    }

    /// So many numbers of a rank from a number on.
    pub fn at<'a>(&self, rank: u32, first: i64, count: i64, datatype: &'a Datatype) -> Target<'a> {
        at(rank, self.displacement(rank, first), count, datatype)
    }

    /// The displacement of a number of a rank.
    fn displacement(&self, rank: u32, number: i64) -> i64 {
        let address = self.addresses.as_ref().map(|addresses| addresses[rank as usize] as i64);
        address.map_or(number, |address| address + 8 * number)
    }
}

/// Returns the addresses of all ranks.
fn addresses(world: &Communicator, own: u64) -> Result<Vec<u64>, Error> {
    let ranks = world.size();
    let window = Window::allocate(world, 8 * ranks as usize, 8)?;
    window.fence(false, true)?;
    for rank in 0..ranks {
        window.put(source(&[own]), at(rank, world.rank().into(), 1, &number()))?;
    }
    window.fence(true, true)?;
    let (fetched, sink) = Fetched::of(ranks as usize);
    window.get(sink, at(world.rank(), 0, ranks.into(), &number()))?;
    window.fence(true, false)?;
    window.free()?;
    Ok(fetched.numbers())
}
