//! `mpjrun` on a terminal: rank 0, though in a process group of its own, can read what is typed.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use mpj_harness::{Running, command, launch, mpjrun_path, shell};

/// A terminal: the end that is typed on, and the end that programs run on.
pub(crate) fn terminal() -> (File, File) {
    let typed = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .expect("a pseudo-terminal");
    grantpt(&typed).expect("its other end");
    unlockpt(&typed).expect("its other end");
    let name = ptsname(&typed, Vec::new()).expect("its name");
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOCTTY);
    let screen = options.open(OsStr::from_bytes(name.to_bytes()));
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

/// Starts `mpjrun` in a session of its own, which this terminal controls.
pub(crate) fn start_on_terminal(words: &[&str], screen: File) -> Running {
    let on_it = "exec \"$0\" \"$@\" > /dev/tty 2>&1";
    let shell = command("setsid").args(["--ctty", "--wait", "sh", "-c", on_it]);
    let job = shell.args([mpjrun_path()]).args(words);
    job.stdin(screen).start()
}

/// Runs `mpjrun` on a terminal, types `typed`, and returns the text on the screen.
#[track_caller]
fn run_on_terminal(words: &[&str], typed: &[u8]) -> String {
    let (mut keyboard, screen) = terminal();
    let running = start_on_terminal(words, screen);
    let seen = watch(keyboard.try_clone().expect("a second handle"));
    keyboard.write_all(typed).expect("the terminal takes it");
    running.expect(0);
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
fn a_terminal_shows_the_bar_of_rank_0_and_the_lines_of_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("mark");
    // Rank 1, which would end the open bar of rank 0, waits for its end.
    let bar = "[ $MPJ_RANK = 0 ] || until [ -e \"$0\" ]; do sleep 0.01; done; \
               printf '10%%\\r'; printf '20%%\\r'; echo done; touch \"$0\"";
    let words = ["-n", "2", "-l", "sh", "-c", bar, mark.to_str().expect("text")];
    let seen = run_on_terminal(&words, b"");
    assert_eq!(seen, "[0] 10%\r20%\rdone\r\n[1] 10%\r20%\rdone\r\n");
}

/// Rank 1 writes when the question of rank 0 is on the screen, and it is answered after that.
#[test]
fn a_prompt_is_seen_before_it_is_answered_and_its_line_is_its_own() {
    let (mut keyboard, screen) = terminal();
    let folder = tempfile::tempdir().expect("a folder");
    let asked = folder.path().join("asked");
    let script = "if [ $MPJ_RANK = 1 ]; then until [ -e \"$0\" ]; do sleep 0.01; done; echo other; \
                  else printf 'name? '; read name; echo hello $name; fi";
    let file = asked.to_str().expect("text");
    let running = start_on_terminal(&["-n", "2", "-l", "sh", "-c", script, file], screen);
    let mut seen = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(len @ 1..) = keyboard.read(&mut buffer) {
        let before = String::from_utf8_lossy(&seen).into_owned();
        seen.extend_from_slice(&buffer[..len]);
        let now = String::from_utf8_lossy(&seen);
        let is_new = |words| now.contains(words) && !before.contains(words);
        if is_new("[0] name? ") {
            std::fs::write(&asked, "").expect("a file");
        }
        if is_new("[1] other\r\n") {
            keyboard.write_all(b"Bob\n").expect("the terminal takes it");
        }
    }
    running.expect(0);
    let seen = String::from_utf8_lossy(&seen);
    let expected = "[0] name? \r\n[1] other\r\nBob\r\n[0] hello Bob\r\n";
    assert_eq!(seen, expected);
}

#[test]
fn a_terminal_that_nobody_reads_holds_no_launcher() {
    let (_unread, screen) = terminal();
    let run = "exec \"$0\" -n 1 --timeout 2 yes >&0 < /dev/null";
    shell(run).stdin(screen).expect(124).says(" bytes of output that nobody read\n");
}

#[test]
fn input_comes_from_a_terminal_that_does_not_control_the_launcher() {
    let (mut keyboard, screen) = terminal();
    keyboard.write_all(b"one\n").expect("the terminal takes it");
    let job = launch("sh").ranks(1).args(["-c", "read a; echo got $a"]);
    let done = job.stdin(screen).expect(0);
    assert_eq!(done.stdout, "got one\n");
}
