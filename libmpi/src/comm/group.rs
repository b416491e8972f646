//! Groups (MPI-5.0 section 7.3).

use std::ffi::c_int;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use mpicore::SessionBuffer;
use mpicore::group::{Comparison, Group, GroupError, RankRange};

use crate::abi::*;
use crate::call::{Outcome, mpi, negative, out};
use crate::handles::{Held, OBJECTS};
use crate::process;

/// A group, with the session that it comes from, by the place of the session's buffer.
pub(crate) struct Members {
    group: Group,
    /// That place; `None` if it does not come from a session.
    pub session: Option<Arc<SessionBuffer>>,
}

impl Deref for Members {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.group
    }
}

/// MPI_GROUP_EMPTY.
static EMPTY: LazyLock<Members> =
    LazyLock::new(|| Members { group: Group::empty(), session: None });

impl MPI_Group {
    /// Holds the group.
    ///
    /// # Errors
    /// MPI_ERR_GROUP.
    pub fn find(self) -> Outcome<Held<'static, Members>> {
        match self {
            MPI_GROUP_EMPTY => Ok(Held::forever(&*EMPTY)),
            MPI_Group(handle) => OBJECTS.hold(handle).map_err(|fault| fault.about("group")),
        }
    }
}

/// Returns the handle of a new group, which comes from the same session as what it was made of. One without members is
/// MPI_GROUP_EMPTY, which programs may free.
pub(crate) fn keep(group: Group, session: Option<&Arc<SessionBuffer>>) -> Outcome<MPI_Group> {
    if group.is_empty() {
        return Ok(MPI_GROUP_EMPTY);
    }
    let members = Members { group, session: session.cloned() };
    Ok(MPI_Group(OBJECTS.insert(members)?))
}

/// Makes a group of two others.
unsafe fn combine(
    group1: MPI_Group,
    group2: MPI_Group,
    newgroup: *mut MPI_Group,
    by: impl FnOnce(&Group, &Group) -> Group,
) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::place(newgroup, "newgroup") }?;
    let (one, other) = (group1.find()?, group2.find()?);
    *place = keep(by(&one, &other), one.session.as_ref().or(other.session.as_ref()))?;
    Ok(())
}

/// Makes a group of one and a list.
unsafe fn select<T>(
    group: MPI_Group,
    (n, list, name): (c_int, *const T, &'static str),
    newgroup: *mut MPI_Group,
    by: impl FnOnce(&Group, &[T]) -> Outcome<Group>,
) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::place(newgroup, "newgroup") }?;
    let group = group.find()?;
    // SAFETY: FC1.
    let list = unsafe { numbered(list, n, name) }?;
    let made = by(&group, list).map_err(|fault| fault.about(name))?;
    *place = keep(made, group.session.as_ref())?;
    Ok(())
}

/// Returns a list whose length is the argument `n`.
unsafe fn numbered<'a, T>(list: *const T, n: c_int, name: &'static str) -> Outcome<&'a [T]> {
    if n < 0 {
        return Err(negative(MPI_ERR_ARG, "n", n));
    }
    // SAFETY: FC1.
    unsafe { out::list(list, n.into(), name) }
}

/// Returns ranks of a group as numbers that are not negative.
fn ranks(group: &Group, ranks: &[c_int]) -> Outcome<Vec<u32>> {
    let size = group.size();
    let rank = |rank: &c_int| {
        u32::try_from(*rank).map_err(|_| GroupError::Rank { rank: i64::from(*rank), size })
    };
    Ok(ranks.iter().map(rank).collect::<Result<_, _>>()?)
}

fn ranges(given: &[[c_int; 3]]) -> Vec<RankRange> {
    given.iter().map(|range| RankRange::from(*range)).collect()
}

mpi! {
    fn MPI_Group_size(group: MPI_Group, size: *mut c_int) -> c_int {
        out::write(size, "size", group.find()?.size() as c_int)
    }

    fn MPI_Group_rank(group: MPI_Group, rank: *mut c_int) -> c_int {
        let own = group.find()?.rank_of(process::needed()?.device.rank());
        out::write(rank, "rank", own.map_or(MPI_UNDEFINED, |rank| rank as c_int))
    }

    fn MPI_Group_translate_ranks(
        group1: MPI_Group, n: c_int, ranks1: *const c_int, group2: MPI_Group, ranks2: *mut c_int
    ) -> c_int {
        let (from, to) = (group1.find()?, group2.find()?);
        let given = numbered(ranks1, n, "ranks1")?;
        for (place, &rank) in out::list_mut(ranks2, n.into(), "ranks2")?.iter_mut().zip(given) {
            *place = match rank {
                MPI_PROC_NULL => MPI_PROC_NULL,
                _ => {
                    let rank = ranks(&from, &[rank]).map_err(|fault| fault.about("ranks1"))?;
                    let rank = from.translate_ranks(&rank, &to)?[0];
                    rank.map_or(MPI_UNDEFINED, |rank| rank as c_int)
                }
            };
        }
        Ok(())
    }

    fn MPI_Group_compare(group1: MPI_Group, group2: MPI_Group, result: *mut c_int) -> c_int {
        let (one, other) = (group1.find()?, group2.find()?);
        out::write(result, "result", match one.compare(&other) {
            Comparison::Identical => MPI_IDENT,
            Comparison::Similar => MPI_SIMILAR,
            Comparison::Unequal => MPI_UNEQUAL,
        })
    }

    fn MPI_Group_union(group1: MPI_Group, group2: MPI_Group, newgroup: *mut MPI_Group) -> c_int {
        combine(group1, group2, newgroup, Group::union)
    }

    fn MPI_Group_intersection(group1: MPI_Group, group2: MPI_Group, newgroup: *mut MPI_Group) -> c_int {
        combine(group1, group2, newgroup, Group::intersection)
    }

    fn MPI_Group_difference(group1: MPI_Group, group2: MPI_Group, newgroup: *mut MPI_Group) -> c_int {
        combine(group1, group2, newgroup, Group::difference)
    }

    fn MPI_Group_incl(group: MPI_Group, n: c_int, ranks: *const c_int, newgroup: *mut MPI_Group) -> c_int {
        select(group, (n, ranks, "ranks"), newgroup, |group, list| Ok(group.incl(&self::ranks(group, list)?)?))
    }

    fn MPI_Group_excl(group: MPI_Group, n: c_int, ranks: *const c_int, newgroup: *mut MPI_Group) -> c_int {
        select(group, (n, ranks, "ranks"), newgroup, |group, list| Ok(group.excl(&self::ranks(group, list)?)?))
    }

    fn MPI_Group_range_incl(group: MPI_Group, n: c_int, ranges: *mut [c_int; 3], newgroup: *mut MPI_Group) -> c_int {
        let list = (n, ranges.cast_const(), "ranges");
        select(group, list, newgroup, |group, list| Ok(group.range_incl(&self::ranges(list))?))
    }

    fn MPI_Group_range_excl(group: MPI_Group, n: c_int, ranges: *mut [c_int; 3], newgroup: *mut MPI_Group) -> c_int {
        let list = (n, ranges.cast_const(), "ranges");
        select(group, list, newgroup, |group, list| Ok(group.range_excl(&self::ranges(list))?))
    }

    fn MPI_Group_free(group: *mut MPI_Group) -> c_int {
        let place = out::place(group, "group")?;
        if *place != MPI_GROUP_EMPTY {
            OBJECTS.free::<Members>(place.0).map_err(|fault| fault.about("group"))?;
        }
        *place = MPI_GROUP_NULL;
        Ok(())
    }
}
