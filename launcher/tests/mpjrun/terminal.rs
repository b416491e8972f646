//! `mpjrun` on a terminal: rank 0, though in a process group of its own, can read what is typed.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::{MPJRUN, start};

/// A terminal: the end that is typed on, and the end that programs run on.
fn terminal() -> (File, File) {
    let typed = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .expect("a pseudo-terminal");
    grantpt(&typed).expect("its other end");
    unlockpt(&typed).expect("its other end");
    let name = ptsname(&typed, Vec::new()).expect("its name");
    let screen = OpenOptions::new().read(true).write(true).open(OsStr::from_bytes(name.to_bytes()));
    (File::from(typed), screen.expect("it opens"))
}

/// Reads everything from the screen until its last program has gone.
fn watch(mut typed: File) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut seen = Vec::new();
        let mut buffer = [0; 1024];
        // The end of a terminal is an error.
        while let Ok(len @ 1..) = typed.read(&mut buffer) {
            seen.extend_from_slice(&buffer[..len]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    })
}

/// Runs `mpjrun` in a session of its own that this terminal controls, types `typed`, and returns
/// what was to be seen on the screen.
#[track_caller]
fn run_on_terminal(words: &[&str], typed: &[u8]) -> String {
    let (mut keyboard, screen) = terminal();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", "sh", "-c", "exec \"$0\" \"$@\" > /dev/tty 2>&1", MPJRUN]);
    command.args(words).stdin(Stdio::from(screen));
    let running = start(&mut command);
    drop(command);
    let seen = watch(keyboard.try_clone().expect("a second handle"));
    keyboard.write_all(typed).expect("the terminal takes it");
    running.finish().assert_code(0);
    seen.join().expect("the watcher does not panic")
}

#[test]
fn what_is_typed_reaches_rank_0() {
    let script = "if [ $MPJ_RANK = 0 ]; then read a; read b; echo got $b then $a; else cat; fi";
    let seen = run_on_terminal(&["-n", "2", "-l", "sh", "-c", script], b"one\ntwo\n");
    assert!(seen.contains("[0] got two then one\r\n"), "{seen:?}");
}

#[test]
fn the_end_that_is_typed_reaches_rank_0() {
    let seen = run_on_terminal(&["-n", "2", "-l", "wc", "-l"], b"one\ntwo\n\x04");
    assert!(seen.contains("[0] 2\r\n") && seen.contains("[1] 0\r\n"), "{seen:?}");
}

#[test]
fn what_is_typed_reaches_the_rank_that_it_is_for() {
    let words = ["-n", "2", "--stdin", "1", "-l", "cat"];
    let seen = run_on_terminal(&words, b"one\ntwo\n\x04");
    assert!(seen.contains("[1] one\r\n") && seen.contains("[1] two\r\n"), "{seen:?}");
    assert!(!seen.contains("[0]"), "{seen:?}");
}

#[test]
fn a_terminal_shows_the_bar_of_rank_0_and_the_last_state_of_others() {
    let bar = "printf '10%%\\r'; printf '20%%\\r'; echo done";
    let seen = run_on_terminal(&["-n", "2", "-l", "sh", "-c", bar], b"");
    assert!(seen.contains("[0] 10%\r[0] 20%\r"), "{seen:?}");
    assert!(seen.contains("[0] done\r\n") && seen.contains("[1] done\r\n"), "{seen:?}");
    assert!(!seen.contains("[1] 10%") && !seen.contains("[1] 20%"), "{seen:?}");
}
