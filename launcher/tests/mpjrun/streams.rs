//! `--output` and `--stdin`: prefixes, files, and who gets the input.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use mpj_harness::{Launch, Outcome, mpjrun, shell};

use crate::{Mark, script};

/// Runs `script` as two ranks, with its output in `folder`.
#[track_caller]
fn into_folder(folder: &Path, more: &str, run: &str) -> Launch {
    script(2, run).options(["--output", &format!("dir={}{more}", folder.display())])
}

#[track_caller]
fn file(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).expect(name)
}

#[test]
fn a_timestamp_begins_every_line() {
    let job = script(2, "echo a; echo b").options(["--output", "tag,timestamp"]);
    let text = job.expect(0).stdout;
    assert_eq!(text.lines().count(), 4);
    for line in text.lines() {
        let (time, rest) = line.split_once(' ').expect("a time");
        let shape: String =
            time.chars().map(|char| if char.is_ascii_digit() { '0' } else { char }).collect();
        assert_eq!(shape, "0000-00-00T00:00:00.000Z", "{line}");
        assert!(["[0] a", "[0] b", "[1] a", "[1] b"].contains(&rest), "{line}");
    }
}

#[test]
fn a_folder_gets_the_bytes_of_every_rank_and_stream() {
    let folder = tempfile::tempdir().expect("a folder");
    let deep = folder.path().join("made/on demand");
    let script = "printf \"$MPJ_RANK\\0\\377 no newline\"; printf \"oops $MPJ_RANK\\r\" >&2";
    let done = into_folder(&deep, ",tag", script).expect(0);
    for rank in 0..2 {
        let said = [rank.to_string().as_bytes(), b"\0\xff no newline"].concat();
        assert_eq!(file(&deep, &format!("rank.{rank}.stdout")), said);
        let oops = format!("oops {rank}\r").into_bytes();
        assert_eq!(file(&deep, &format!("rank.{rank}.stderr")), oops);
        let line = format!("[{rank}] {}", String::from_utf8_lossy(&said));
        assert!(done.stdout.contains(&line), "{done:?}");
    }
}

#[test]
fn a_folder_may_be_instead_of_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("rank.0.stdout"), "what an earlier job said\n").expect("a file");
    let script = format!(
        "echo a; echo b >&2; [ $MPJ_RANK = 0 ] && exit; \
         until [ -s {}/rank.0.stderr ]; do sleep 0.01; done; exit 1",
        folder.path().display()
    );
    let done = into_folder(folder.path(), ",nocopy", &script);
    let done = done.expect(1);
    assert_eq!(done.stdout, "");
    assert!(done.stderr.starts_with("mpjrun: rank 1 (pid "), "{done:?}");
    assert_eq!(file(folder.path(), "rank.0.stdout"), b"a\n");
    assert_eq!(file(folder.path(), "rank.1.stderr"), b"b\n");
}

#[test]
fn much_output_is_whole_in_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "head -c 5000000 /dev/zero; [ $MPJ_RANK = 1 ] && kill -9 $$; sleep 60";
    into_folder(folder.path(), ",nocopy", script).expect(137);
    assert_eq!(file(folder.path(), "rank.1.stdout").len(), 5_000_000);
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error_before_any_rank_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = folder.path().join("taken");
    fs::write(&taken, "").expect("a file");
    let done = into_folder(&taken, "", "echo started").expect(2);
    assert_eq!(done.stdout, "");
    done.says(&format!("mpjrun: --output dir: cannot make {}: ", taken.display()));
    fs::create_dir(folder.path().join("rank.1.stderr")).expect("a folder");
    into_folder(folder.path(), "", "echo started")
        .expect(2)
        .says("rank.1.stderr: not a regular file");
}

#[test]
fn a_file_that_cannot_be_written_ends_the_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = "ulimit -f 120000; exec \"$0\" -n 2 --output \"dir=$1,nocopy\" \
               sh -c 'head -c 80000000 /dev/zero; exec sleep 600'";
    shell(run)
        .args([folder.path()])
        .expect(125)
        .says("mpjrun: cannot write a file of --output dir: File too large");
}

#[test]
fn what_is_no_regular_file_is_no_file_for_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("rank.0.stdout");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a named pipe");
    let refusal = "rank.0.stdout: not a regular file";
    into_folder(folder.path(), "", "echo started").expect(2).says(refusal);
    let reader = fs::OpenOptions::new().read(true).write(true).open(&pipe).expect("a named pipe");
    into_folder(folder.path(), "", "echo started").expect(2).says(refusal);
    drop(reader);
}

#[test]
fn long_lines_and_lines_without_end_lose_nothing() {
    let prints = "head -c 300000 /dev/zero | tr '\\0' \"$MPJ_RANK\"; \
                  [ $MPJ_RANK = 0 ] && { touch \"$0\"; exec sleep 600; }; \
                  until [ -e \"$0\" ]; do sleep 0.01; done; exit 4";
    let done = script(2, prints).args([Mark::new().path()]).expect(4);
    let count = |digit| done.stdout.matches(digit).count();
    assert_eq!((count('0'), count('1')), (300_000, 300_000));
}

/// Runs `mpjrun` with `input` on its standard input.
#[track_caller]
fn with_input(words: &[&str], input: &[u8]) -> Outcome {
    let mut running = mpjrun(words).stdin(Stdio::piped()).start();
    let mut pipe = running.stdin();
    // A job that does not read all of it closes the pipe.
    let _ = pipe.write_all(input);
    drop(pipe);
    running.finish()
}

#[test]
fn the_input_goes_to_whom_it_is_for() {
    let count = ["-l", "sh", "-c", "wc -c | tr -d ' '"];
    for (target, counts) in
        [("2", ["[0] 0", "[1] 0", "[2] 300000"]), ("none", ["[0] 0", "[1] 0", "[2] 0"])]
    {
        let words = [&["-n", "3", "--stdin", target][..], &count].concat();
        let done = with_input(&words, &vec![b'x'; 300_000]).expect(0);
        assert_eq!(done.sorted_lines(), counts, "--stdin {target}");
    }
    mpjrun(["-n", "3", "--stdin", "3", "true"])
        .expect(2)
        .says("mpjrun: --stdin 3: this job has ranks 0 to 2; or ask for none");
}
