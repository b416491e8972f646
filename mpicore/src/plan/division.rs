//! How long reductions are divided into pieces.

use crate::collective::{Collective, Division, Operands, Packing};
use crate::communicator::{Communicator, InUse};
use crate::error::Error;
use crate::memory::{Elements, Input, Output, Plain, Reduction};

/// How many bytes a reduction combines at a time, for each rank of the communicator, up to [`PIECE_RANKS`] of them. It
/// needs a scratch area for them, or for up to three times as many. Two ranks fill their second-level caches; where
/// more of them exchange smaller and smaller parts of a piece, more rounds would take longer.
const PIECE_PER_RANK: u64 = 256 << 10;

/// See [`PIECE_PER_RANK`].
const PIECE_RANKS: [u32; 2] = [2, 4];

/// Returns how a reduction of elements with `data` bytes each among `ranks` ranks is divided: in the same places on all
/// ranks, like the choice of what an allreduce exchanges. `count` is the number of elements of a rank, or of the
/// longest block. An exchange of halves divides them, too.
pub(crate) fn division_of(
    reduction: &Reduction,
    ranks: u32,
    (count, data): (u64, usize),
    by_halves: bool,
) -> Division {
    let [fewest, most] = PIECE_RANKS;
    let piece = PIECE_PER_RANK * u64::from(ranks.clamp(fewest, most));
    let is_long = count.saturating_mul(data as u64) > piece;
    if !is_long && !by_halves {
        return Division::NONE;
    }
    let Some(size) = reduction.divisible(data) else { return Division::NONE };
    let operands = (data / size) as u64;
    Division {
        most: if is_long { (piece / size as u64).max(1) } else { u64::MAX },
        packing: (operands != 1).then_some(Packing { operands, size }),
    }
}

/// Describes contiguous elements that are several operands each as elements of one operand, so that they need not be
/// copied. Returns how many of these each element is.
pub(crate) fn split_elements(
    division: &mut Division,
    (input, output): (Input, Output),
) -> (u64, (Input, Output)) {
    let Some(Packing { operands, size }) = division.packing else { return (1, (input, output)) };
    let data = operands.saturating_mul(size as u64);
    let is_contiguous = |elements: Option<Plain>| {
        elements.is_some_and(|elements| [0, data].contains(&(elements.size() as u64)))
    };
    if !is_contiguous(input.plain()) || !is_contiguous(output.plain()) {
        return (1, (input, output));
    }
    division.packing = None;
    let elements = || Elements::Plain { size };
    (operands, (input.with(elements()), output.with(elements())))
}

/// Begins a call of a collective with these buffers: finds its schedule, or builds it.
pub(super) fn begin<'c>(
    communicator: &'c Communicator,
    mut collective: Collective,
    buffers: (Input, Output),
    reduction: Option<Reduction>,
) -> Result<InUse<'c>, Error> {
    let member = communicator.member()?;
    let mut division = match reduction.as_ref().zip(collective.operands()) {
        Some((reduction, (count, operands))) => {
            let (input, output) = &buffers;
            let data = match operands {
                Operands::Input => input.data_size(),
                Operands::InPlace => output.data_size(),
            };
            division_of(reduction, member.size(), (count, data), collective.is_by_halves())
        }
        None => Division::NONE,
    };
    let (each, buffers) = split_elements(&mut division, buffers);
    if each > 1 {
        collective = collective.with_count(|count| count.saturating_mul(each));
    }
    let build = || Ok(collective.schedule(member, division)?);
    let mut work = communicator.workspace().with_kept((collective, division), build)?;
    work.fill(buffers, reduction)?;
    Ok(work)
}
