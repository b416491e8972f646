//! A guard of a long-running process.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};

use super::*;

fn sleeper() -> (Child, Pid) {
    let child = Command::new("sleep").arg("600").process_group(0).spawn().expect("it starts");
    let group = Pid::from_child(&child);
    (child, group)
}

#[test]
fn the_end_of_the_line_ends_the_groups() {
    let ((mut first, one), (mut second, other)) = (sleeper(), sleeper());
    let mut guard = Guard::over(&[one, other]).expect("a process");
    let (_, unrelated) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    // Closed as the kernel would when the launcher dies.
    drop(std::mem::replace(&mut guard._line, unrelated));
    for child in [&mut first, &mut second] {
        assert_eq!(child.wait().expect("our child").signal(), Some(libc::SIGKILL));
    }
}

#[test]
fn a_guard_that_is_dropped_touches_nobody() {
    let (mut child, group) = sleeper();
    let guard = Guard::over(&[group]).expect("a process");
    let process = guard.process;
    drop(guard);
    let status = waitpid(Some(process), WaitOptions::NOHANG);
    assert!(matches!(status, Err(Errno::CHILD)), "it was reaped: {status:?}");
    assert!(child.try_wait().expect("our child").is_none());
    child.kill().expect("our child");
    child.wait().expect("our child");
}
