//! Checks of accesses (`MPJ_CHECK`): conflicting ones in one epoch, of which at least one writes (MPI-4.1 section 12.7).
//!
//! - WN1: a rank notes its accesses. At a fence all ranks tell each other theirs, and all compare them; at the end of an
//!   epoch of start, they go to the targets, which compare those of all origins at the end of their exposure. So all that
//!   is compared was in one epoch, which nothing else orders.
//! - WN2: what may be legal is not reported. Accesses in locks are compared with those of the same rank only, up to a flush:
//!   other locks may order them. An access whose result the origin has waited for counts only if it has not communicated
//!   since, as nobody can know of the result otherwise. The end of an epoch of start brings all results, after which other
//!   ranks may begin theirs, so accesses with results are not told then. What is too much is not noted.
//! - WN3: MPI leaves undefined what this library defines: accesses of one rank that no flush separates, and different
//!   operations of the accumulate family. They conflict only in programs that are written for MPI.

use mpjdev::shortened;

use super::head::{Kind, Shape};
use crate::error::Conflict;
use crate::plan::claim;

/// Accesses to a block of a target's memory, by a call at one place of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Access {
    origin: u32,
    target: u32,
    /// The first byte and the one after the last, from the beginning of the window; in dynamic windows, addresses.
    low: i64,
    high: i64,
    does: Does,
    /// Whether it has a result.
    fetches: bool,
    /// The call and its place in the program.
    call: String,
    /// How much the origin had communicated when it had waited for the result.
    settled: Option<u64>,
}

/// What an access does, in the form in which ranks tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Does(u64);

impl Does {
    const PUT: Self = Self(0);
    const GET: Self = Self(1);
    /// MPI_NO_OP of the accumulate family.
    const LOAD: Self = Self(2);
    const SWAP: Self = Self(3);
    /// Updates are from here on, in the order of [`Predefined::ALL`](crate::op::Predefined::ALL).
    const UPDATES: u64 = 4;

    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Accumulate(update) | Kind::GetAccumulate(update) if update.needs_data() => {
                Self(Self::UPDATES + u64::from(update.bytes()[0]))
            }
            Kind::Accumulate(_) | Kind::GetAccumulate(_) => Self::LOAD,
            Kind::CompareAndSwap => Self::SWAP,
            Kind::Get | Kind::LongGet => Self::GET,
            _ => Self::PUT,
        }
    }

    fn is_atomic(self) -> bool {
        self.0 >= Self::LOAD.0
    }

    /// Whether the results are not defined if both access the same byte; `is_mpi` as WN3 says.
    fn conflicts(self, other: Self, is_mpi: bool) -> bool {
        let writes = |does: Self| does != Self::GET && does != Self::LOAD;
        match (self.is_atomic(), other.is_atomic()) {
            (true, true) => {
                let are_updates = self.0.min(other.0) >= Self::UPDATES;
                is_mpi && are_updates && self != other
            }
            _ => writes(self) || writes(other),
        }
    }
}

/// What a rank has accessed in the epochs that are open.
#[derive(Debug, Default)]
pub(super) struct Log {
    accesses: Vec<Access>,
    /// Accesses so far.
    count: u64,
    /// WN3.
    pub is_mpi: bool,
}

/// The most accesses that are noted at a time, and the most blocks of one call.
const NOTED: usize = 128;
const BLOCKS: usize = 32;

/// The words of a text, and the bytes at its beginning that are kept.
const TEXT: usize = 16;
const KEPT: usize = 30;
/// The words of an access, and of all that a rank tells at a time.
const WORDS: usize = 5 + TEXT;
pub(super) const MOST_WORDS: usize = NOTED * WORDS;

impl Log {
    /// Notes an access at a displacement of a target's memory; in locks, only if it may conflict with others of this rank.
    pub fn note(
        &mut self,
        (call, kind): (&str, Kind),
        (origin, target): (u32, u32),
        (displacement, shape): (i64, &Shape),
        is_passive: bool,
    ) -> Result<(), Conflict> {
        self.count += 1;
        if is_passive && !self.is_mpi {
            return Ok(());
        }
        let bytes = shape.size();
        let op = match kind {
            Kind::Accumulate(update) | Kind::GetAccumulate(update) => format!("{}, ", update.op()),
            _ => String::new(),
        };
        let call = format!("{call}({op}{bytes} bytes){}", claim::place());
        let call = shortened(&call, KEPT, 8 * TEXT);
        let fetches = !matches!(kind, Kind::Put | Kind::Accumulate(_));
        let (does, mut accesses) = (Does::of(kind), Vec::new());
        let mut note = |by: isize, len: usize| {
            let low = displacement.saturating_add(by as i64);
            let high = low.saturating_add(len as i64);
            let (call, settled) = (call.clone(), None);
            accesses.push(Access { origin, target, low, high, does, fetches, call, settled });
        };
        match shape {
            Shape::Block(len) => note(0, *len),
            Shape::Layout(layout) if layout.blocks() <= BLOCKS => layout.each_block(note),
            Shape::Layout(_) => {}
        }
        // What conflicts is refused as a whole, so nothing of it is noted.
        if let Some(conflict) = accesses.iter().find_map(|access| self.conflict_with(access)) {
            return Err(conflict);
        }
        accesses.into_iter().for_each(|access| self.add(access));
        Ok(())
    }

    /// Returns the conflict with an earlier access of this rank, if there is one (WN3).
    fn conflict_with(&self, access: &Access) -> Option<Conflict> {
        if !self.is_mpi {
            return None;
        }
        // The operations of the accumulate family of one rank are ordered.
        let is_ordered = |before: &Access| before.does.is_atomic() && access.does.is_atomic();
        let open = self.accesses.iter().filter(|before| before.settled.is_none());
        let mut others = open.filter(|before| !is_ordered(before));
        others.find_map(|before| before.conflict(access, true))
    }

    fn add(&mut self, access: Access) {
        // Many updates of the same elements are noted once.
        let is_same = |before: &Access| {
            (before.low, before.high) == (access.low, access.high)
                && before.settled.is_none()
                && before.is_alike(&access)
        };
        if self.accesses.iter().any(is_same) {
            return;
        }
        let continues = |before: &&mut Access| {
            before.high == access.low && before.settled.is_none() && before.is_alike(&access)
        };
        if let Some(before) = self.accesses.last_mut().filter(continues) {
            before.high = access.high;
        } else if self.accesses.len() < NOTED {
            self.accesses.push(access);
        }
    }

    /// Notes that the results of accesses to a target, or to all, are there. `sent` is how much this rank has sent.
    pub fn settle(&mut self, target: Option<u32>, sent: u64) {
        let now = sent + self.count;
        let those = self.accesses.iter_mut().filter(|access| access.fetches);
        let those = those.filter(|access| target.is_none_or(|target| access.target == target));
        those.for_each(|access| {
            access.settled.get_or_insert(now);
        });
    }

    /// Forgets the accesses to a target, or to all, which have been carried out.
    pub fn forget(&mut self, target: Option<u32>) {
        self.accesses.retain(|access| target.is_some_and(|target| access.target != target));
    }

    /// Takes the accesses to a target in an epoch of start, or to all since a fence, that count (WN2), as words. `sent` is as
    /// in [`Log::settle`].
    pub fn take(&mut self, target: Option<u32>, sent: u64) -> Vec<u64> {
        let now = sent + self.count;
        let counts = |access: &&Access| match target {
            Some(target) => access.target == target && !access.fetches,
            None => access.settled.is_none_or(|then| then == now),
        };
        let words = self.accesses.iter().filter(counts).flat_map(Access::words).collect();
        self.forget(target);
        words
    }

    /// Returns a conflict between accesses of different ranks, of which each tells its own by words; the same one on all
    /// ranks that compare the same words.
    pub fn compare<'w>(
        &self,
        of_ranks: impl IntoIterator<Item = (u32, &'w [u64])>,
    ) -> Option<Conflict> {
        let read = |(rank, words): (u32, &'w [u64])| {
            words.chunks_exact(WORDS).filter_map(move |words| Access::of_words(rank, words))
        };
        let mut all: Vec<_> = of_ranks.into_iter().flat_map(read).collect();
        all.sort_by_key(|access| (access.target, access.low, access.origin));
        all.iter().enumerate().find_map(|(at, one)| {
            let near = all[at + 1..].iter();
            let mut near =
                near.take_while(|other| other.target == one.target && other.low < one.high);
            near.find_map(|other| {
                one.conflict(other, self.is_mpi).filter(|_| one.origin != other.origin)
            })
        })
    }
}

impl Access {
    fn is_alike(&self, other: &Self) -> bool {
        self.target == other.target && self.does == other.does && self.call == other.call
    }

    fn conflict(&self, other: &Self, is_mpi: bool) -> Option<Conflict> {
        let (low, high) = (self.low.max(other.low), self.high.min(other.high));
        let do_meet = self.target == other.target && low < high;
        (do_meet && self.does.conflicts(other.does, is_mpi)).then(|| Conflict {
            target: self.target,
            bytes: (low, high),
            origins: [self.origin, other.origin],
            calls: [self.call.clone(), other.call.clone()],
        })
    }

    fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        let Self { target, low, high, does, call, .. } = self;
        let head = [u64::from(*target), *low as u64, *high as u64, does.0, call.len() as u64];
        words[..head.len()].copy_from_slice(&head);
        for (word, bytes) in words[head.len()..].iter_mut().zip(call.as_bytes().chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(padded);
        }
        words
    }

    /// Reads what a rank tells; `None` if it is padding.
    fn of_words(origin: u32, words: &[u64]) -> Option<Self> {
        let (&[target, low, high, does, len], text) = words.split_first_chunk()?;
        let text = text.iter().flat_map(|word| word.to_le_bytes());
        let text: Vec<u8> = text.take(len as usize).collect();
        let (target, call) = (target as u32, String::from_utf8_lossy(&text).into_owned());
        let (low, high, does) = (low as i64, high as i64, Does(does));
        let (fetches, settled) = (false, None);
        (low < high).then_some(Self { origin, target, low, high, does, fetches, call, settled })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Datatype;
    use crate::op::{ElementKind, Predefined};
    use crate::window::update::Update;

    fn combine(op: Predefined) -> Kind {
        let number = Datatype::predefined(ElementKind::U64);
        Kind::Accumulate(Update::new(op, number.signature()).unwrap())
    }

    /// Notes blocks of a rank at rank 9: what it does, and where.
    fn log(origin: u32, is_mpi: bool, accesses: &[(Kind, i64, usize)]) -> (Log, Option<Conflict>) {
        let mut log = Log { is_mpi, ..Log::default() };
        let noted = accesses.iter().try_for_each(|(kind, at, len)| {
            log.note(("call", *kind), (origin, 9), (*at, &Shape::Block(*len)), false)
        });
        (log, noted.err())
    }

    /// Compares two accesses of 8 bytes, the second one at a distance, of different ranks and then of one.
    fn compared(one: Kind, other: Kind, distance: i64, is_mpi: bool) -> [bool; 2] {
        let (mut first, _) = log(0, is_mpi, &[(one, 0, 8)]);
        let (mut second, _) = log(1, is_mpi, &[(other, distance, 8)]);
        let told = [first.take(None, 0), second.take(None, 0)];
        let found = first.compare((0..).zip(told.iter().map(|words| &**words)));
        if let Some(found) = &found {
            let due = (distance.max(0), distance.min(0) + 8);
            assert_eq!((found.target, found.bytes), (9, due));
            assert!(found.calls.iter().all(|call| call.ends_with("8 bytes)")), "{found}");
        }
        let of_one = log(0, is_mpi, &[(one, 0, 8), (other, distance, 8)]).1;
        [found.is_some(), of_one.is_some()]
    }

    #[test]
    fn accesses_conflict_where_they_meet_and_one_writes() {
        let (sum, max) = (combine(Predefined::Sum), combine(Predefined::Max));
        let (load, swap) = (combine(Predefined::NoOp), Kind::CompareAndSwap);
        let pairs = [
            (Kind::Put, Kind::Put, true),
            (Kind::Put, Kind::Get, true),
            (Kind::Get, Kind::Put, true),
            (Kind::Put, sum, true),
            (load, Kind::Put, true),
            (sum, Kind::Get, true),
            (swap, Kind::Get, true),
            (Kind::Get, Kind::Get, false),
            (Kind::Get, load, false),
            (sum, sum, false),
            (load, max, false),
            (swap, sum, false),
        ];
        for (one, other, is_conflict) in pairs {
            for distance in [0, 4, -7] {
                assert_eq!(compared(one, other, distance, false), [is_conflict, false]);
                assert_eq!(compared(one, other, distance, true), [is_conflict; 2]);
            }
            for distance in [8, -8] {
                assert_eq!(compared(one, other, distance, true), [false; 2]);
            }
        }
        // Those of one rank are ordered.
        assert_eq!(compared(sum, max, 0, true), [true, false]);
        assert_eq!(compared(sum, max, 0, false), [false, false]);
    }

    #[test]
    fn blocks_of_a_layout_are_apart() {
        let layout = mpjdev::Layout::strided(8, 16, 4).unwrap();
        let put = |log: &mut Log, at| {
            log.note(("put", Kind::Put), (0, 1), (at, &Shape::Layout(layout.clone())), false)
        };
        let mut log = Log { is_mpi: true, ..Log::default() };
        put(&mut log, 0).unwrap();
        put(&mut log, 8).unwrap();
        let found = put(&mut log, 23).unwrap_err();
        assert_eq!((found.bytes, found.origins), ((23, 24), [0, 0]));
    }

    /// Until the rank sends something, nobody can know that it has the result.
    #[test]
    fn results_count_until_the_rank_communicates() {
        let get = || log(0, true, &[(Kind::Get, 0, 8)]).0;
        for (settled, taken, counts) in [(None, 7, true), (Some(5), 5, true), (Some(5), 6, false)] {
            let mut log = get();
            if let Some(sent) = settled {
                log.settle(Some(9), sent);
            }
            assert_eq!(log.take(None, taken).is_empty(), !counts);
            assert!(log.accesses.is_empty());
        }
        assert!(get().take(Some(9), 7).is_empty(), "the end of an epoch of start brings it");
        let mut log = get();
        log.settle(None, 5);
        log.note(("put", Kind::Put), (0, 9), (0, &Shape::Block(8)), false).unwrap();
        assert_eq!(log.take(None, 5).len(), WORDS, "the put alone");
    }

    #[test]
    fn what_is_carried_out_or_locked_is_no_conflict() {
        let (mut log, _) = log(0, true, &[(Kind::Put, 0, 8)]);
        log.forget(Some(8));
        let again = |log: &mut Log| {
            log.note(("put", Kind::Put), (0, 9), (0, &Shape::Block(8)), true).is_err()
        };
        assert!(again(&mut log));
        log.forget(Some(9));
        assert!(!again(&mut log));
        log.forget(None);
        log.is_mpi = false;
        assert!(!again(&mut log) && log.accesses.is_empty());
    }

    /// A loop over adjacent elements is one access, and what is too much is left out.
    #[test]
    fn accesses_side_by_side_are_one() {
        let puts: Vec<_> = (0..1000).map(|at| (Kind::Put, 8 * at, 8)).collect();
        assert_eq!(log(0, true, &puts).0.accesses.len(), 1);
        let puts: Vec<_> = (0..1000).map(|at| (Kind::Put, 9 * at, 8)).collect();
        assert_eq!(log(0, true, &puts).0.accesses.len(), NOTED);
    }

    #[test]
    fn accesses_are_told_as_they_are() {
        let access = |low, call: &str| Access {
            origin: 3,
            target: 5,
            low,
            high: low + 9,
            does: Does(7),
            fetches: false,
            call: call.to_owned(),
            settled: None,
        };
        for call in ["", "put(8 bytes) at src/lib.rs:7", &"x".repeat(8 * TEXT)] {
            let access = access(-4, call);
            assert_eq!(Access::of_words(3, &access.words()), Some(access));
        }
        assert_eq!(Access::of_words(3, &[0; WORDS]), None);
        assert_eq!(Access::of_words(3, &[0; 2]), None);
    }
}
