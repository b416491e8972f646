//! The barrier of an intracommunicator. The faces' calls come here through `collective.rs`.

use super::schedule::Draft;
use super::{Member, Place, Schedule, doublings};

/// Ends on no rank before it has begun on all: MPI_Barrier (MPI-4.1 section 6.3), by dissemination. In
/// the round with distance 1, 2, 4 and so on, each rank tells the one so far ahead that it has heard of
/// all that are less far behind.
pub fn barrier(member: Member) -> Schedule {
    let mut draft = Draft::new("barrier by dissemination");
    for distance in doublings(member.size) {
        draft.send(member.ahead(distance), Place::NOTHING);
        draft.receive(member.behind(distance), Place::NOTHING);
        draft.end_round();
    }
    draft.finish()
}
