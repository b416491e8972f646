//! What `mpjrun` does with the ranks' output, input, environment and folder.

use std::fs::{File, read_to_string};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use mpj_harness::process::runs;
use mpj_harness::{Outcome, Running, eventually, launch, mpjrun, mpjrun_path, shell};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;

use crate::{Mark, script};

/// Each rank prints 300 lines, every line in two writes, so that whole lines are the launcher's work.
const CHATTER: &str = "i=0; while [ $i -lt 300 ]; do printf \"rank $MPJ_RANK \"; \
                       printf 'line %d end\\n' $i; i=$((i+1)); done";

#[track_caller]
fn assert_intact(done: &Outcome, ranks: usize) {
    let mut next = vec![0; ranks];
    for line in done.stdout.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let ["rank", rank, "line", number, "end"] = words[..] else { panic!("torn: {line:?}") };
        let rank: usize = rank.parse().expect("a rank");
        assert_eq!(number.parse(), Ok(next[rank]), "order of rank {rank}");
        next[rank] += 1;
    }
    assert_eq!(next, vec![300; ranks]);
}

#[test]
fn lines_of_four_ranks_stay_whole_and_in_order() {
    assert_intact(&script(4, CHATTER).expect(0), 4);
}

#[test]
fn both_streams_into_one_pipe_stay_whole() {
    let halves = format!("[ $MPJ_RANK = 1 ] && exec 1>&2; {CHATTER}");
    let run = "exec \"$0\" -n 3 sh -c \"$1\" 2>&1";
    let done = shell(run).args([halves]).run();
    assert_intact(&done.expect(0), 3);
}

#[test]
fn labels_begin_every_line_of_both_streams() {
    let done = mpjrun(["-n", "2", "-l", "sh", "-c", "printf 'a\\n\\nb'; echo oops >&2"]);
    let done = done.expect(0);
    assert_eq!(done.sorted_lines(), ["[0] ", "[0] a", "[0] b", "[1] ", "[1] a", "[1] b"]);
    assert!(done.stderr == "[0] oops\n[1] oops\n" || done.stderr == "[1] oops\n[0] oops\n");
}

#[test]
fn bytes_pass_unchanged() {
    let print = "printf 'no newline \\000\\377\\r'; printf x >&2";
    let done = shell("\"$0\" -n 1 sh -c \"$1\" | od -A n -c").args([print]).expect(0);
    assert_eq!(done.stdout.trim(), r"n   o       n   e   w   l   i   n   e      \0 377  \r");
    assert_eq!(done.stderr, "x");
}

#[test]
fn much_output_into_a_slow_reader_is_neither_lost_nor_kept_in_memory() {
    let print = "head -c 20000000 /dev/zero";
    // Where the ranks take turns, the lines without end are ended.
    let run = "\"$0\" -n 2 sh -c \"$1\" | { sleep 0.3; tr -d '\\n' | wc -c; }";
    let done = shell(run).args([print]).run();
    assert_eq!(done.expect(0).stdout.trim(), "40000000");
}

#[test]
fn a_reader_that_leaves_ends_the_job_quietly() {
    let run = "{ \"$0\" -n 2 yes; echo $? >&2; } | head -n 1";
    let done = shell(run).run();
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("y\n", "141\n"));
}

#[test]
fn a_reader_that_pauses_after_a_failure_gets_everything() {
    let run = "{ \"$0\" -n 1 sh -c 'seq 1 100000; exit 3'; echo $? >&2; } | { sleep 1; wc -l; }";
    let done = shell(run).run();
    assert_eq!(done.stdout.trim(), "100000");
    assert!(
        done.stderr.starts_with("mpjrun: rank 0 ") && done.stderr.ends_with("\n3\n"),
        "{done:?}"
    );
}

#[test]
fn a_reader_that_is_slow_after_the_timeout_gets_everything() {
    let (output, writer) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    let job = launch("seq").ranks(1).options(["--timeout", "1"]).args(["100000000"]);
    let running = job.into(writer).start();
    eventually("the time is over", || running.stderr().contains(", its time limit\n"));
    let (mut output, mut seen) = (File::from(output), Vec::new());
    let (mut room, mut longest) = ([0; 3 << 12], Duration::ZERO);
    // Longer in all than a reader may pause.
    for _ in 0..50 {
        let pause = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
        let len = output.read(&mut room).expect("a pipe");
        seen.extend_from_slice(&room[..len]);
        longest = longest.max(pause.elapsed());
    }
    output.read_to_end(&mut seen).expect("a pipe");
    let done = running.expect(124);
    // A machine may be so slow that this test pauses for nearly as long as it may.
    let is_slow = longest > Duration::from_millis(400);
    assert!(is_slow || !done.stderr.contains("dropped"), "{done:?}");
    let text = String::from_utf8(seen).expect("digits");
    let (whole, cut) = text.rsplit_once('\n').expect("lines");
    assert!(whole.lines().enumerate().all(|(at, line)| line.parse() == Ok(at + 1)), "lost: {cut}");
}

#[test]
fn a_file_that_may_not_grow_is_reported() {
    let file = Mark::new();
    shell("ulimit -f 40000; exec \"$0\" -n 1 seq 1 3000000 > \"$1\"")
        .args([file.path()])
        .expect(125)
        .says("mpjrun: cannot write standard output: File too large");
}

/// Runs `mpjrun` with `words`, with this as its standard output.
fn start_on(out: impl Into<Stdio>, words: &str) -> Running {
    let run = format!("exec \"$0\" {words} >&0 < /dev/null");
    shell(&run).stdin(out).start()
}

#[test]
fn a_socket_gets_everything_and_holds_no_launcher() {
    let (mut reader, writer) = UnixStream::pair().expect("sockets");
    let running = start_on(OwnedFd::from(writer), "-n 1 seq 1 100000");
    let mut seen = String::new();
    reader.read_to_string(&mut seen).expect("text");
    running.expect(0);
    assert_eq!(seen.lines().count(), 100_000);
    let (_unread, writer) = UnixStream::pair().expect("sockets");
    let done = start_on(OwnedFd::from(writer), "-n 1 --timeout 2 yes");
    done.expect(124).says(" bytes of output that nobody read\n");
}

#[test]
fn a_full_disk_is_reported() {
    let run = "exec \"$0\" -n 2 yes > /dev/full";
    shell(run).expect(125).says("mpjrun: cannot write standard output: ");
}

#[test]
fn a_launcher_whose_reader_sleeps_still_ends_on_a_signal() {
    let job = launch("yes").ranks(2).unread().start();
    eventually("nobody reads", || job.unread_bytes() >= 1 << 16);
    job.signal(Signal::TERM);
    job.expect(143);
}

#[test]
fn standard_input_goes_to_rank_0_whole_and_the_others_see_its_end() {
    let count = script(3, "wc -c | tr -d ' '").options(["-l"]);
    let mut running = count.stdin(Stdio::piped()).start();
    running.stdin().write_all(&vec![b'x'; 5_000_000]).expect("rank 0 reads");
    let done = running.expect(0);
    assert_eq!(done.sorted_lines(), ["[0] 5000000", "[1] 0", "[2] 0"]);
}

#[test]
fn input_that_nobody_reads_holds_nobody() {
    let job = launch("true").ranks(2).stdin(Stdio::piped());
    let mut running = job.start();
    let mut input = running.stdin();
    running.expect(0);
    let error = input.write_all(&vec![b'x'; 5_000_000]).expect_err("the reader is gone");
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn what_rank_0_leaves_of_a_file_is_there_for_the_next_program() {
    let run = "printf '1\\n2\\n3\\n' > \"$1\"; \
               { \"$0\" -n 1 sh -c 'read line; echo first $line'; cat; } < \"$1\"";
    let done = shell(run).args([Mark::new().path()]).expect(0);
    assert_eq!(done.stdout, "first 1\n2\n3\n");
}

#[test]
fn ranks_know_their_place() {
    let print = "echo $MPJ_RANK $MPJ_SIZE $MPJ_LOCAL_RANK ${MPJ_JOB:+job}";
    let done = script(3, print).expect(0);
    assert_eq!(done.sorted_lines(), ["0 3 0 job", "1 3 1 job", "2 3 2 job"]);
}

#[test]
fn a_launcher_inside_a_rank_starts_a_job_of_its_own() {
    let inner = "exec \"$0\" -n 2 sh -c 'echo $MPJ_RANK $MPJ_SIZE'";
    let done = script(1, inner).args([mpjrun_path()]).expect(0);
    assert_eq!(done.sorted_lines(), ["0 2", "1 2"]);
}

#[test]
fn variables_are_exported() {
    let words = ["-x", "A=b=c d", "-x", "GIVEN", "-x", "EMPTY", "--backend", "eager"];
    let done = script(2, "echo \"$A|$GIVEN|${EMPTY-unset}|$MPJ_BACKEND\"")
        .options(words)
        .env("GIVEN", "from here")
        .env("EMPTY", "")
        .expect(0);
    assert_eq!(done.stdout, "b=c d|from here||eager\n".repeat(2));
    mpjrun(["-x", "MPJ_TEST_UNSET", "true"])
        .expect(2)
        .says("mpjrun: -x MPJ_TEST_UNSET: not set in the environment of mpjrun");
}

#[test]
fn ranks_start_in_the_folder_and_the_program_is_looked_up_here() {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink("/bin/pwd", folder.path().join("where")).expect("a link");
    let job = launch("./where").ranks(2).options(["--wdir", "/"]);
    let done = job.set(|command| command.current_dir(folder.path())).expect(0);
    assert_eq!(done.stdout, "/\n/\n");
}

#[test]
fn arguments_arrive_as_they_are() {
    let words =
        ["-n", "1", "sh", "-c", "for a; do echo \"<$a>\"; done", "-", "-n", "", "a b", "--", "-l"];
    assert_eq!(mpjrun(words).expect(0).stdout, "<-n>\n<>\n<a b>\n<-->\n<-l>\n");
}

#[test]
fn the_only_rank_is_seen_to_ask_before_it_is_answered() {
    let ask = "printf 'name? '; read name; echo \"hello $name\"";
    // Who answers waits until the question is on the screen.
    let answer = "until grep -q 'name? ' \"$1\"; do sleep 0.01; done; echo Bob";
    let run = format!("{{ {answer}; }} | \"$0\" -n 1 sh -c \"$2\" | tee \"$1\"");
    let screen = Mark::new();
    screen.set();
    let done = shell(&run).args([screen.path()]).args([ask]).run();
    assert_eq!(done.stdout, "name? hello Bob\n");
}

#[test]
fn a_slow_line_stays_whole_where_nobody_looks() {
    let slow = "printf \"rank $MPJ_RANK computing ... \"; sleep 0.$((6-MPJ_RANK)); echo done";
    let done = script(3, slow).expect(0);
    let line = |rank| format!("rank {rank} computing ... done");
    assert_eq!(done.sorted_lines(), [0, 1, 2].map(line));
}

#[test]
fn a_last_line_without_end_takes_no_other_rank_in() {
    let run = "[ $MPJ_RANK = 0 ] && { printf done; exit; }; sleep 0.5; echo hello";
    assert_eq!(script(2, run).expect(0).sorted_lines(), ["done", "hello"]);
}

#[test]
fn a_file_gets_whole_lines_however_slowly_they_are_written() {
    let (file, told) = (Mark::new(), Mark::new());
    let slow = "[ $MPJ_RANK = 1 ] && { echo other; exit; }; \
                printf 'one '; until [ -e \"$0\" ]; do sleep 0.01; done; echo line";
    let run = "exec \"$0\" -n 2 sh -c \"$3\" \"$2\" > \"$1\"";
    let running = shell(run).args([file.path(), told.path()]).args([slow]).start();
    let text = || read_to_string(file.path()).unwrap_or_default();
    eventually("the line of another rank is there", || text() == "other\n");
    told.set();
    running.expect(0);
    assert_eq!(text(), "other\none line\n");
}

/// What a rank had written when it was killed is printed, whole, on this host and on others.
#[test]
fn what_a_killed_rank_had_written_is_all_there() {
    let run = "[ $MPJ_RANK = 0 ] && { until [ -e \"$0\" ]; do sleep 0.01; done; kill -9 $$; }
        trap '' TERM; head -c 60000 /dev/zero | tr '\\0' x; printf '\\nthe last ' >&2; printf line >&2
        : > \"$0\"; sleep 600";
    for hosts in
        [&["-n", "2"][..], &["--agent-launcher", "sh -c 'shift; exec \"$@\"' -", "--hosts", "a,b"]]
    {
        let mark = Mark::new();
        let job = launch("sh").options(hosts).args(["-c", run]).args([mark.path()]);
        let done = job.expect(137);
        assert_eq!(done.stdout, "x".repeat(60_000), "{hosts:?}");
        assert!(done.stderr.starts_with("\nthe last line\nmpjrun: rank 0 (pid "), "{done:?}");
    }
}

/// Ranks often fail together. One whose message comes in parts, as that of a Rust program does, is not ended amid them.
#[test]
fn messages_of_ranks_that_fail_together_are_whole() {
    // Rank 3 is the first to fail, or nearly. The others go on as soon as it is about to.
    let run = "printf \"rank $MPJ_RANK: \" >&2
        if [ $MPJ_RANK = 3 ]; then
            for rank in 0 1 2; do until [ -e \"$0.$rank\" ]; do sleep 0.01; done; done
            echo no input >&2; : > \"$0\"
        else
            : > \"$0.$MPJ_RANK\"; until [ -e \"$0\" ]; do :; done
            turn=0; while [ $turn -lt 5000 ]; do turn=$((turn+1)); done; echo no input >&2
        fi; exit 3";
    let mark = Mark::new();
    let done = script(4, run).args([mark.path()]).expect(3);
    let lines = |rank: usize| done.stderr.contains(&format!("rank {rank}: no input\n"));
    assert!((0..4).all(lines), "{done:?}");
    done.says(" exited with code 3, ").says("mpjrun:   it printed last: rank ");
}

/// Runs two ranks whose output nobody reads until a time limit ends the job.
#[track_caller]
fn unread(run: &str, limit: &str, code: i32) {
    let mark = Mark::new();
    let job = script(2, run).options(["--timeout", limit]).args([mark.path()]);
    let done = job.unread().expect(code);
    assert!(done.stderr.starts_with("mpjrun: "), "{done:?}");
    assert!(done.stderr.ends_with(" bytes of output that nobody read\n"), "{done:?}");
}

#[test]
fn a_launcher_that_nobody_reads_ends_by_its_timeout() {
    unread("exec yes", "1", 124);
    unread("head -c 500000 /dev/zero", "1", 124);
}

/// Rank 1 fails once rank 0 has printed more than the pipe holds.
#[test]
fn a_launcher_that_nobody_reads_after_a_failure_ends_by_its_timeout() {
    let fails = "if [ $MPJ_RANK = 1 ]; then until [ -e \"$0\" ]; do sleep 0.01; done; exit 9; fi
        head -c 500000 /dev/zero; : > \"$0\"; exec yes";
    unread(fails, "5", 9);
}

#[test]
fn what_a_rank_leaves_running_may_print_to_its_end_while_the_reader_pauses() {
    // The rank ends when more is printed than the launcher (1 MiB) and both pipes hold.
    let prints = "echo $$ >&2; { head -c 1180000 /dev/zero; : > \"$0\"; head -c 120000 /dev/zero; } & \
                  until [ -e \"$0\" ]; do sleep 0.01; done";
    let mark = Mark::new();
    let mut running = script(1, prints).args([mark.path()]).unread().start();
    mark.wait();
    eventually("the rank has told its number", || running.stderr().ends_with('\n'));
    let rank = running.stderr().trim().parse().expect("a number");
    eventually("the rank has ended", || !runs(rank));
    // The pause is longer than the time to print after the end of a rank.
    std::thread::sleep(Duration::from_millis(300));
    running.read();
    let done = running.expect(0);
    assert_eq!(done.stdout.len(), 1_300_000);
}

#[test]
fn a_time_limit_ends_the_wait_for_a_reader_of_what_is_left_running() {
    let prints = "head -c 1300000 /dev/zero & sleep 0.3";
    let done = script(1, prints).options(["--timeout", "2"]).unread().expect(124);
    assert!(done.stderr.ends_with(" bytes of output that nobody read\n"), "{done:?}");
}

#[test]
fn options_of_other_launchers_are_noted_and_done_without() {
    let words = ["--allow-run-as-root", "-np2", "--oversubscribe", "echo", "--oversubscribe"];
    let done = mpjrun(words).expect(0);
    assert_eq!(done.stdout, "--oversubscribe\n--oversubscribe\n");
    let notes = "mpjrun: --oversubscribe, --allow-run-as-root, --genvall, --genvlist and --mca change nothing here\n";
    assert_eq!(done.stderr, notes);
}
