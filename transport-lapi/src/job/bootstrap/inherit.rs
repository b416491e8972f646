//! Takes the descriptors that the launcher passed by number. Called only by [`super`].
//!
//! - I1: the caller takes a number once per process (BS2 of [`super`]), before the process opens descriptors of its own
//!   under it: an inherited number has been in use since exec.
//! - I2: a number is owned only after its descriptor has proved to be of the kind that the launcher passes. So a stale
//!   number of an earlier job never closes an unrelated file.

#![expect(unsafe_code, reason = "descriptors arrive as numbers")]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::fs::{SealFlags, fcntl_get_seals};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::net::{AddressFamily, SocketType, sockopt};

use super::{BootstrapError, Descriptors};
use crate::job::config;

/// What is expected of the memory of a job.
const MEMORY: &str = "the sealed memory of a job";

/// Takes the descriptors, and makes all close-on-exec.
pub(super) fn take(numbers: Descriptors<RawFd>) -> Result<Descriptors<OwnedFd>, BootstrapError> {
    let Descriptors { segment, control, table } = numbers;
    check(segment, is_segment, config::SHM_FD, MEMORY).map_err(|error| {
        match has_taken(control) {
            true => BootstrapError::AlreadyTaken,
            false => error,
        }
    })?;
    check(control, is_control_socket, config::CTRL_FD, "the control socket of mpjrun")?;
    if let Some(table) = table {
        check(
            table,
            |table| is_segment(table) && table.as_raw_fd() != segment,
            config::HOSTS_FD,
            MEMORY,
        )?;
    }
    let own = |number| {
        // SAFETY: I1 and I2. The numbers differ: the first two are of different kinds, and the third was compared.
        let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
        fcntl_setfd(&descriptor, FdFlags::CLOEXEC).expect("an open descriptor takes flags");
        descriptor
    };
    Ok(Descriptors { segment: own(segment), control: own(control), table: table.map(own) })
}

/// Takes the socket on which a process manager speaks, and makes it close-on-exec.
pub(super) fn take_manager(number: RawFd) -> Result<OwnedFd, BootstrapError> {
    let (variable, expected) = (config::PMI_FD, "the socket of a process manager");
    // SAFETY: `number` is not negative, since the caller parsed it so. If it is not open, the check of its kind gets
    // EBADF; nothing is closed.
    let is_socket = number > 2 && is_manager_socket(unsafe { BorrowedFd::borrow_raw(number) });
    if !is_socket {
        return Err(BootstrapError::NoManager { variable, number, expected });
    }
    // SAFETY: I1 and I2.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&socket, FdFlags::CLOEXEC).expect("an open descriptor takes flags");
    Ok(socket)
}

/// Makes the descriptors close-on-exec without taking them. A number of another kind of descriptor is left alone.
pub(super) fn withhold(Descriptors { segment, control, table }: Descriptors<RawFd>) {
    withhold_one(segment, is_segment);
    withhold_one(control, is_control_socket);
    table.into_iter().for_each(|table| withhold_one(table, is_segment));
}

fn withhold_one(number: RawFd, is_kind: fn(BorrowedFd<'_>) -> bool) {
    // SAFETY: `number` is not -1, since the caller parsed it as positive. If it is not open, the check of its kind gets
    // EBADF, and nothing else is done with it.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    if is_kind(descriptor) {
        // If this fails, a child inherits the descriptor, which does no harm.
        let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
    }
}

fn check(
    number: RawFd,
    is_kind: impl FnOnce(BorrowedFd<'_>) -> bool,
    variable: &'static str,
    expected: &'static str,
) -> Result<(), BootstrapError> {
    // SAFETY: `number` is not -1, since the caller parsed it as positive. If it is not open, the checks of its kind get
    // EBADF; nothing is closed.
    let passed = is_kind(unsafe { BorrowedFd::borrow_raw(number) });
    passed.then_some(()).ok_or(BootstrapError::NotInherited { variable, number, expected })
}

/// Whether this process has taken the control socket before, by another copy of this library: it is close-on-exec then.
fn has_taken(control: RawFd) -> bool {
    // SAFETY: as in `check`.
    let descriptor = unsafe { BorrowedFd::borrow_raw(control) };
    is_control_socket(descriptor) && fcntl_getfd(descriptor) == Ok(FdFlags::CLOEXEC)
}

fn is_segment(descriptor: BorrowedFd<'_>) -> bool {
    fcntl_get_seals(descriptor).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}

fn is_control_socket(descriptor: BorrowedFd<'_>) -> bool {
    let kind = (sockopt::socket_domain(descriptor), sockopt::socket_type(descriptor));
    kind == (Ok(AddressFamily::UNIX), Ok(SocketType::SEQPACKET))
}

fn is_manager_socket(descriptor: BorrowedFd<'_>) -> bool {
    sockopt::socket_type(descriptor) == Ok(SocketType::STREAM)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd, IntoRawFd};

    use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};

    use super::*;
    use crate::job::bootstrap::control::control_pair;

    fn pair([segment, control]: [RawFd; 2]) -> Descriptors<RawFd> {
        Descriptors { segment, control, table: None }
    }

    fn sealed() -> OwnedFd {
        let memory = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("memfd");
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW).expect("seal");
        memory
    }

    #[test]
    fn the_real_pair_is_taken_and_closed_on_exec() {
        let (_launcher, rank) = control_pair().expect("a socket pair");
        fcntl_setfd(&rank, FdFlags::empty()).expect("clear close-on-exec");
        let numbers = [sealed().into_raw_fd(), rank.into_raw_fd()];
        let Descriptors { segment, control, table } =
            take(Descriptors { table: Some(sealed().into_raw_fd()), ..pair(numbers) })
                .expect("all are of the right kind");
        for descriptor in [segment, control, table.expect("it was passed")] {
            assert_eq!(fcntl_getfd(&descriptor), Ok(FdFlags::CLOEXEC));
        }
    }

    /// As where a program has both `mpj` and `libmpi`, which have a copy of this library each.
    #[test]
    fn another_copy_of_the_library_may_have_taken_them() {
        let (_launcher, rank) = control_pair().expect("a socket pair");
        let null = std::fs::File::open("/dev/null").expect("it is there");
        let numbers = pair([null.as_raw_fd(), rank.as_raw_fd()]);
        assert!(matches!(take(numbers), Err(BootstrapError::AlreadyTaken)));
        fcntl_setfd(&rank, FdFlags::empty()).expect("clear close-on-exec");
        assert!(matches!(take(numbers), Err(BootstrapError::NotInherited { .. })));
    }

    #[test]
    fn other_descriptors_are_refused_and_stay_open() {
        let (_launcher, rank) = control_pair().expect("a socket pair");
        fcntl_setfd(&rank, FdFlags::empty()).expect("clear close-on-exec");
        let memory = sealed();
        let (segment, control) = (memory.as_raw_fd(), rank.as_raw_fd());
        let swapped = take(pair([control, segment])).expect_err("kinds are swapped");
        assert!(matches!(
            swapped,
            BootstrapError::NotInherited { variable: "MPJ_SHM_FD", number, .. }
                if number == rank.as_raw_fd()
        ));
        let twice = take(pair([segment, segment])).expect_err("one is no socket");
        assert!(matches!(twice, BootstrapError::NotInherited { variable: "MPJ_CTRL_FD", .. }));
        let table = Some(segment);
        let twice = take(Descriptors { segment, control, table }).expect_err("one is no table");
        assert!(matches!(twice, BootstrapError::NotInherited { variable: "MPJ_HOSTS_FD", .. }));
        assert!(fcntl_getfd(rank.as_fd()).is_ok() && fcntl_getfd(memory.as_fd()).is_ok());
    }

    #[test]
    fn descriptors_are_withheld_by_their_kind() {
        let (_launcher, rank) = control_pair().expect("a socket pair");
        let memory = sealed();
        let flags = || [fcntl_getfd(&memory), fcntl_getfd(&rank)];
        fcntl_setfd(&rank, FdFlags::empty()).expect("clear close-on-exec");
        withhold(pair([rank.as_raw_fd(), memory.as_raw_fd()]));
        withhold(pair([1_000_000, 1_000_001]));
        assert_eq!(flags(), [Ok(FdFlags::empty()); 2], "the kinds are swapped");
        withhold(pair([memory.as_raw_fd(), rank.as_raw_fd()]));
        assert_eq!(flags(), [Ok(FdFlags::CLOEXEC); 2]);
    }

    #[test]
    fn a_closed_number_is_refused() {
        let error = take(pair([1_000_000, 1_000_001])).expect_err("nothing is open there");
        assert!(matches!(error, BootstrapError::NotInherited { number: 1_000_000, .. }));
    }
}
