//! Calls that synchronize (MPI-5.0 section 12.5).

use std::ffi::c_int;

use mpicore::LockKind;

use super::Win;
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};

/// Refuses assertions that a call does not know.
fn check(assert: c_int, known: c_int) -> Outcome {
    if assert & !known == 0 {
        return Ok(());
    }
    let text = format!("{assert} is no sum of assertions that this call knows");
    Err(Fault::argument(MPI_ERR_ASSERT, "assert", text))
}

/// Calls a function on a rank; does nothing for MPI_PROC_NULL.
fn at(
    win: MPI_Win,
    rank: c_int,
    call: impl FnOnce(&Win, u32) -> Result<(), mpicore::Error>,
) -> Outcome {
    let win = win.find()?;
    Ok(win.rank(rank)?.map_or(Ok(()), |rank| call(&win, rank))?)
}

mpi! {
    fn MPI_Win_fence(assert: c_int, win: MPI_Win) -> c_int {
        check(assert, MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED)?;
        Ok(win.find()?.core.fence(assert & MPI_MODE_NOPRECEDE == 0, assert & MPI_MODE_NOSUCCEED == 0)?)
    }

    fn MPI_Win_post(group: MPI_Group, assert: c_int, win: MPI_Win) -> c_int {
        check(assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT)?;
        Ok(win.find()?.core.post(&*group.find()?)?)
    }

    // With MPI_MODE_NOCHECK, the windows are exposed already, so that this does not wait.
    fn MPI_Win_start(group: MPI_Group, assert: c_int, win: MPI_Win) -> c_int {
        check(assert, MPI_MODE_NOCHECK)?;
        Ok(win.find()?.core.start(&*group.find()?)?)
    }

    fn MPI_Win_complete(win: MPI_Win) -> c_int {
        Ok(win.find()?.core.complete()?)
    }

    fn MPI_Win_wait(win: MPI_Win) -> c_int {
        Ok(win.find()?.core.wait()?)
    }

    fn MPI_Win_test(win: MPI_Win, flag: *mut c_int) -> c_int {
        let flag = out::place(flag, "flag")?;
        *flag = win.find()?.core.test()?.into();
        Ok(())
    }

    fn MPI_Win_lock(lock_type: c_int, rank: c_int, assert: c_int, win: MPI_Win) -> c_int {
        check(assert, MPI_MODE_NOCHECK)?;
        let kind = match lock_type {
            MPI_LOCK_SHARED => LockKind::Shared,
            MPI_LOCK_EXCLUSIVE => LockKind::Exclusive,
            other => {
                let text = format!("{other} is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE");
                return Err(Fault::argument(MPI_ERR_LOCKTYPE, "lock_type", text));
            }
        };
        at(win, rank, |win, rank| win.core.lock(kind, rank, assert & MPI_MODE_NOCHECK == 0))
    }

    fn MPI_Win_unlock(rank: c_int, win: MPI_Win) -> c_int {
        at(win, rank, |win, rank| win.core.unlock(rank))
    }

    fn MPI_Win_lock_all(assert: c_int, win: MPI_Win) -> c_int {
        check(assert, MPI_MODE_NOCHECK)?;
        Ok(win.find()?.core.lock_all(assert & MPI_MODE_NOCHECK == 0)?)
    }

    fn MPI_Win_unlock_all(win: MPI_Win) -> c_int {
        Ok(win.find()?.core.unlock_all()?)
    }

    fn MPI_Win_flush(rank: c_int, win: MPI_Win) -> c_int {
        at(win, rank, |win, rank| win.core.flush(Some(rank)))
    }

    fn MPI_Win_flush_all(win: MPI_Win) -> c_int {
        Ok(win.find()?.core.flush(None)?)
    }

    fn MPI_Win_flush_local(rank: c_int, win: MPI_Win) -> c_int {
        at(win, rank, |win, rank| win.core.flush_local(Some(rank)))
    }

    fn MPI_Win_flush_local_all(win: MPI_Win) -> c_int {
        Ok(win.find()?.core.flush_local(None)?)
    }

    fn MPI_Win_sync(win: MPI_Win) -> c_int {
        Ok(win.find()?.core.sync()?)
    }
}
