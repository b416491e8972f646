//! `--watch`: the blocks about a job, on a terminal, elsewhere and in another process. The ranks are scripts, which never
//! join.

use std::io::Read;

use mpj_harness::{eventually, mpjrun};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::terminal::{start_on_terminal, terminal};
use crate::{Mark, script};

/// Waits for the mark.
const WAITS: &str = "until [ -e \"$0\" ]; do sleep 0.01; done; echo done";
const OFTEN: [&str; 3] = ["--watch", "--watch-every", "0.05"];

#[test]
fn blocks_are_lines_of_the_launcher_where_there_is_no_terminal() {
    let mark = Mark::new();
    let job = script(2, WAITS).args([mark.path()]).options(OFTEN).start();
    let row = "mpjrun: 1          -        -";
    eventually("two blocks are shown", || job.stderr().matches(row).count() > 1);
    mark.set();
    let done = job.expect(0);
    assert_eq!(done.stdout, "done\ndone\n");
    let block: Vec<&str> = done.stderr.lines().take(4).collect();
    let is_head = block[0].starts_with("mpjrun: 2 ranks, ");
    assert!(is_head && block[0].contains(" s: - messages/s, -B/s, "), "{block:?}");
    assert_eq!(block[1], "mpjrun: rank  sent/s  bytes/s  memory  does");
    assert!(block[2].ends_with("M  not joined"), "{block:?}");
}

/// Each block takes the place of the one before, output appears above it, and it is gone at the end.
#[test]
fn a_terminal_shows_one_block_below_the_output() {
    let (mut keyboard, screen) = terminal();
    let size = Winsize { ws_row: 24, ws_col: 30, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&screen, size).expect("a terminal has a size");
    let mark = Mark::new();
    let words = [&OFTEN[..], &["-n", "2", "sh", "-c", WAITS, mark.path().to_str().expect("text")]];
    let running = start_on_terminal(&words.concat(), screen);
    let (mut seen, mut buffer) = (String::new(), [0; 1024]);
    // The end of a terminal is an error.
    while let Ok(len @ 1..) = keyboard.read(&mut buffer) {
        seen += &String::from_utf8_lossy(&buffer[..len]);
        if seen.contains("\u{1b}[4A\u{1b}[J2 ranks, ") {
            mark.set();
        }
    }
    running.expect(0);
    assert!(seen.contains("\u{1b}[4A\u{1b}[Jdone\r\n"), "{seen:?}");
    assert!(!seen.contains("not joined") && seen.contains("memory\r\n"), "cut: {seen:?}");
    let rest = seen.rsplit("\u{1b}[J").next().expect("a last part");
    assert!(!rest.contains("rank"), "{seen:?}");
}

#[test]
fn another_process_watches_a_job_until_it_ends() {
    let mark = Mark::new();
    let job = script(1, WAITS).args([mark.path()]).start();
    eventually("the job can be watched", || {
        let once = mpjrun(["--watch", "--watch-every", "0.01", &job.pid().to_string()]);
        let watcher = once.start();
        eventually("it shows something or ends", || {
            !(watcher.stdout() + &watcher.stderr()).is_empty()
        });
        watcher.stdout().starts_with("1 rank, ")
    });
    let watcher = mpjrun(["--watch", &job.pid().to_string()]).start();
    eventually("a block is shown", || watcher.stdout().contains("not joined"));
    mark.set();
    let pid = job.pid();
    assert_eq!(job.expect(0).stderr, "");
    let seen = watcher.expect(0);
    assert!(seen.stdout.ends_with(&format!("the job of mpjrun {pid} has ended\n")), "{seen:?}");
}

#[test]
fn what_is_no_job_is_refused() {
    let own = std::process::id();
    let refused = mpjrun(["--watch", &own.to_string()]).expect(2);
    refused.says(&format!("mpjrun: --watch {own}: it runs no job; give the number of the mpjrun"));
    mpjrun(["--watch", "4000000000"])
        .expect(2)
        .says("--watch 4000000000: there is no such process");
}
