//! What `mpjrun` does with the ranks' output, input, environment and folder.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Finished, MPJRUN, Running, command, mpjrun, script, start, start_unread};

/// Each rank prints 300 lines, every line in two writes, so that whole lines are the launcher's work.
const CHATTER: &str = "i=0; while [ $i -lt 300 ]; do printf \"rank $MPJ_RANK \"; \
                       printf 'line %d end\\n' $i; i=$((i+1)); done";

#[track_caller]
fn assert_intact(done: &Finished, ranks: usize) {
    let mut next = vec![0; ranks];
    for line in done.text().lines() {
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
    assert_intact(&script(4, CHATTER).assert_code(0), 4);
}

#[test]
fn both_streams_into_one_pipe_stay_whole() {
    let halves = format!("[ $MPJ_RANK = 1 ] && exec 1>&2; {CHATTER}");
    let run = "exec \"$0\" -n 3 sh -c \"$1\" 2>&1";
    let done = start(Command::new("sh").args(["-c", run, MPJRUN, &halves])).finish();
    assert_intact(&done.assert_code(0), 3);
}

#[test]
fn labels_begin_every_line_of_both_streams() {
    let done = mpjrun(["-n", "2", "-l", "sh", "-c", "printf 'a\\n\\nb'; echo oops >&2"]);
    let done = done.assert_code(0);
    assert_eq!(done.sorted_lines(), ["[0] ", "[0] a", "[0] b", "[1] ", "[1] a", "[1] b"]);
    assert!(done.err == "[0] oops\n[1] oops\n" || done.err == "[1] oops\n[0] oops\n");
}

#[test]
fn bytes_pass_unchanged() {
    let done = script(1, "printf 'no newline \\000\\377\\r'; printf x >&2").assert_code(0);
    assert_eq!(done.out, b"no newline \0\xff\r");
    assert_eq!(done.err, "x");
}

#[test]
fn much_output_into_a_slow_reader_is_neither_lost_nor_kept_in_memory() {
    let print = "head -c 20000000 /dev/zero";
    // Where the ranks take turns, the lines without end are ended.
    let run = "\"$0\" -n 2 sh -c \"$1\" | { sleep 0.3; tr -d '\\n' | wc -c; }";
    let done = start(Command::new("sh").args(["-c", run, MPJRUN, print])).finish();
    assert_eq!(done.assert_code(0).text().trim(), "40000000");
}

#[test]
fn a_reader_that_leaves_ends_the_job_quietly() {
    let run = "{ \"$0\" -n 2 yes; echo $? >&2; } | head -n 1";
    let done = start(Command::new("sh").args(["-c", run, MPJRUN])).finish();
    assert_eq!((done.text().as_str(), done.err.as_str()), ("y\n", "141\n"));
}

#[test]
fn a_reader_that_pauses_after_a_failure_gets_everything() {
    let run = "{ \"$0\" -n 1 sh -c 'seq 1 100000; exit 3'; echo $? >&2; } | { sleep 1; wc -l; }";
    let done = start(Command::new("sh").args(["-c", run, MPJRUN])).finish();
    assert_eq!(done.text().trim(), "100000");
    assert!(done.err.starts_with("mpjrun: rank 0 ") && done.err.ends_with("\n3\n"), "{done:?}");
}

#[test]
fn a_reader_that_is_slow_after_the_timeout_gets_everything() {
    let run = "{ \"$0\" -n 1 --timeout 0.3 sh -c 'seq 1 100000; exec sleep 60'; echo $? >&2; } | \
               { for i in 1 2 3 4 5 6 7 8; do sleep 0.2; head -c 65536; done; cat; } | wc -l";
    let done = start(Command::new("sh").args(["-c", run, MPJRUN])).finish();
    assert_eq!(done.text().trim(), "100000", "{done:?}");
    assert!(done.err.ends_with("\n124\n") && !done.err.contains("dropped"), "{done:?}");
}

#[test]
fn a_file_that_may_not_grow_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = "ulimit -f 8000; exec \"$0\" -n 1 seq 1 3000000 > \"$1\"";
    start(Command::new("sh").args(["-c", run, MPJRUN]).arg(folder.path().join("output")))
        .finish()
        .assert_code(125)
        .assert_says("mpjrun: cannot write standard output: File too large");
}

/// Runs `mpjrun` with `words`, with this as its standard output.
fn start_on(out: impl Into<Stdio>, words: &str) -> Running {
    let run = format!("exec \"$0\" {words} >&0 < /dev/null");
    start(Command::new("sh").args(["-c", &run, MPJRUN]).stdin(out))
}

#[test]
fn a_socket_gets_everything_and_holds_no_launcher() {
    let (mut reader, writer) = UnixStream::pair().expect("sockets");
    let running = start_on(OwnedFd::from(writer), "-n 1 seq 1 100000");
    let mut seen = String::new();
    reader.read_to_string(&mut seen).expect("text");
    running.finish().assert_code(0);
    assert_eq!(seen.lines().count(), 100_000);
    let (_unread, writer) = UnixStream::pair().expect("sockets");
    let done = start_on(OwnedFd::from(writer), "-n 1 --timeout 0.3 yes").finish();
    done.assert_code(124).assert_says(" bytes of output that nobody read\n");
}

#[test]
fn a_full_disk_is_reported() {
    let run = "exec \"$0\" -n 2 yes > /dev/full";
    start(Command::new("sh").args(["-c", run, MPJRUN]))
        .finish()
        .assert_code(125)
        .assert_says("mpjrun: cannot write standard output: ");
}

#[test]
fn a_launcher_whose_reader_sleeps_still_ends_on_a_signal() {
    let run = "\"$0\" -n 2 yes & pid=$!; sleep 0.3; kill -TERM $pid; sleep 0.3; \
               kill -TERM $pid; wait $pid; echo $? >&2";
    let mut reader_that_sleeps = Command::new("sh");
    let pipe = format!("{{ {run}; }} | {{ sleep 3; cat > /dev/null; }}");
    let done = start(reader_that_sleeps.args(["-c", &pipe, MPJRUN])).finish();
    assert!(done.err.ends_with("143\n"), "{done:?}");
}

#[test]
fn standard_input_goes_to_rank_0_whole_and_the_others_see_its_end() {
    let mut command = command(["-n", "3", "-l", "sh", "-c", "wc -c | tr -d ' '"]);
    let mut running = start(command.stdin(Stdio::piped()));
    running.stdin().write_all(&vec![b'x'; 5_000_000]).expect("rank 0 reads");
    let done = running.finish().assert_code(0);
    assert_eq!(done.sorted_lines(), ["[0] 5000000", "[1] 0", "[2] 0"]);
}

#[test]
fn input_that_nobody_reads_holds_nobody() {
    let mut command = command(["-n", "2", "true"]);
    let mut running = start(command.stdin(Stdio::piped()));
    let mut input = running.stdin();
    let done = running.finish().assert_code(0);
    assert!(done.took < Duration::from_secs(10));
    let error = input.write_all(&vec![b'x'; 5_000_000]).expect_err("the reader is gone");
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

#[test]
fn what_rank_0_leaves_of_a_file_is_there_for_the_next_program() {
    let run = "printf '1\\n2\\n3\\n' > \"$1\"; \
               { \"$0\" -n 1 sh -c 'read line; echo first $line'; cat; } < \"$1\"";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("input");
    let mut shell = Command::new("sh");
    shell.args(["-c", run, MPJRUN]).arg(&file);
    assert_eq!(start(&mut shell).finish().assert_code(0).text(), "first 1\n2\n3\n");
}

#[test]
fn ranks_know_their_place() {
    let print = "echo $MPJ_RANK $MPJ_SIZE $MPJ_LOCAL_RANK ${MPJ_JOB:+job}";
    let done = script(3, print).assert_code(0);
    assert_eq!(done.sorted_lines(), ["0 3 0 job", "1 3 1 job", "2 3 2 job"]);
}

#[test]
fn a_launcher_inside_a_rank_starts_a_job_of_its_own() {
    let inner = "exec \"$0\" -n 2 sh -c 'echo $MPJ_RANK $MPJ_SIZE'";
    let done = mpjrun(["-n", "1", "sh", "-c", inner, MPJRUN]).assert_code(0);
    assert_eq!(done.sorted_lines(), ["0 2", "1 2"]);
}

#[test]
fn variables_are_exported() {
    let words = [
        "-n",
        "2",
        "-x",
        "A=b=c d",
        "-x",
        "GIVEN",
        "-x",
        "EMPTY",
        "--backend",
        "eager",
        "sh",
        "-c",
    ];
    let mut command = command(words);
    command.arg("echo \"$A|$GIVEN|${EMPTY-unset}|$MPJ_BACKEND\"");
    command.env("GIVEN", "from here").env("EMPTY", "");
    let done = start(&mut command).finish().assert_code(0);
    assert_eq!(done.text(), "b=c d|from here||eager\n".repeat(2));
    mpjrun(["-x", "MPJ_TEST_UNSET", "true"])
        .assert_code(2)
        .assert_says("mpjrun: -x MPJ_TEST_UNSET: not set in the environment of mpjrun");
}

#[test]
fn ranks_start_in_the_folder_and_the_program_is_looked_up_here() {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink("/bin/pwd", folder.path().join("where")).expect("a link");
    let mut command = command(["-n", "2", "--wdir", "/", "./where"]);
    let done = start(command.current_dir(folder.path())).finish().assert_code(0);
    assert_eq!(done.text(), "/\n/\n");
}

#[test]
fn arguments_arrive_as_they_are() {
    let words =
        ["-n", "1", "sh", "-c", "for a; do echo \"<$a>\"; done", "-", "-n", "", "a b", "--", "-l"];
    assert_eq!(mpjrun(words).assert_code(0).text(), "<-n>\n<>\n<a b>\n<-->\n<-l>\n");
}

#[test]
fn the_only_rank_is_seen_to_ask_before_it_is_answered() {
    let ask = "printf 'name? '; read name; echo \"hello $name\"";
    // Who answers waits until the question is on the screen, or gives up after five seconds.
    let answer = "until grep -q 'name? ' \"$1\" || [ $i = 500 ]; do i=$((i+1)); sleep 0.01; done; \
                  echo Bob";
    let run = format!("i=0; {{ {answer}; }} | \"$0\" -n 1 sh -c \"$2\" | tee \"$1\"");
    let folder = tempfile::tempdir().expect("a folder");
    let screen = folder.path().join("screen");
    std::fs::write(&screen, "").expect("a file");
    let mut shell = Command::new("sh");
    let done = start(shell.args(["-c", &run, MPJRUN]).arg(screen).arg(ask)).finish();
    assert_eq!(done.text(), "name? hello Bob\n");
    assert!(done.took < Duration::from_secs(4), "{done:?}");
}

#[test]
fn a_slow_line_stays_whole_where_nobody_looks() {
    let slow = "printf \"rank $MPJ_RANK computing ... \"; sleep 0.$((6-MPJ_RANK)); echo done";
    let done = script(3, slow).assert_code(0);
    let line = |rank| format!("rank {rank} computing ... done");
    assert_eq!(done.sorted_lines(), [0, 1, 2].map(line));
}

#[test]
fn a_last_line_without_end_takes_no_other_rank_in() {
    let run = "[ $MPJ_RANK = 0 ] && { printf done; exit; }; sleep 0.5; echo hello";
    assert_eq!(script(2, run).assert_code(0).sorted_lines(), ["done", "hello"]);
}

#[test]
fn a_file_gets_whole_lines_however_slowly_they_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("output");
    let slow = "[ $MPJ_RANK = 1 ] && { sleep 0.4; echo other; exit; }; \
                printf 'one '; sleep 0.8; echo line";
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", "exec \"$0\" -n 2 sh -c \"$2\" > \"$1\"", MPJRUN]);
    start(shell.arg(&file).arg(slow)).finish().assert_code(0);
    assert_eq!(std::fs::read_to_string(file).expect("a file"), "other\none line\n");
}

#[test]
fn a_launcher_that_nobody_reads_ends_by_its_timeout() {
    let fails = "[ $MPJ_RANK = 1 ] && { sleep 0.3; exit 9; }; exec yes";
    let ends = "head -c 500000 /dev/zero";
    let jobs = [("exec yes", 124), (fails, 9), (ends, 124)].map(|(script, code)| {
        let mut command = command(["-n", "2", "--timeout", "1", "sh", "-c", script]);
        (start_unread(&mut command), code)
    });
    for (running, code) in jobs {
        let done = running.finish().assert_code(code);
        assert!(done.took < Duration::from_secs(5), "{done:?}");
        assert!(done.err.starts_with("mpjrun: "), "{done:?}");
        assert!(done.err.ends_with(" bytes of output that nobody read\n"), "{done:?}");
    }
}

#[test]
fn what_a_rank_leaves_running_may_print_to_its_end_while_the_reader_pauses() {
    let folder = tempfile::tempdir().expect("a folder");
    let mark = folder.path().join("mark");
    let script = "yes | head -c 1300000 | cat & until [ -e \"$0\" ]; do sleep 0.01; done";
    let words = ["-n", "1", "sh", "-c", script, mark.to_str().expect("text")];
    let mut running = start_unread(&mut command(words));
    // Time to print all that there is room for.
    std::thread::sleep(Duration::from_secs(1));
    std::fs::write(mark, "").expect("a file");
    // Longer than anybody lingers who is read.
    std::thread::sleep(Duration::from_millis(300));
    running.read();
    let done = running.finish().assert_code(0);
    assert_eq!(done.out.len(), 1_300_000);
}

#[test]
fn a_time_limit_ends_the_wait_for_a_reader_of_what_is_left_running() {
    let script = "yes | head -c 1300000 | cat & sleep 0.3";
    let words = ["-n", "1", "--timeout", "1", "sh", "-c", script];
    let running = start_unread(&mut command(words));
    let done = running.finish().assert_code(124);
    assert!(done.took < Duration::from_secs(5), "{done:?}");
    assert!(done.err.ends_with(" bytes of output that nobody read\n"), "{done:?}");
}

#[test]
fn options_of_other_launchers_are_noted_and_done_without() {
    let words = ["--allow-run-as-root", "-np2", "--oversubscribe", "echo", "--oversubscribe"];
    let done = mpjrun(words).assert_code(0);
    assert_eq!(done.text(), "--oversubscribe\n--oversubscribe\n");
    let notes =
        "mpjrun: --oversubscribe, --allow-run-as-root, --genvall and --mca change nothing here\n";
    assert_eq!(done.err, notes);
}
