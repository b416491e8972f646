//! Programs in C, compiled against the generated `mpi.h` and run as jobs on the built library.
//!
//! Each file `tests/c/NAME.c` is a test. Its first line says how it is run, and lines that follow what must be printed:
//!
//! ```c
//! // ranks 2, universe 8, exit 5
//! // stdout: words of a line of standard output
//! // stderr: words of standard error
//! ```
//!
//! `universe` is the number of ranks that the job can have with those that it spawns. `exit` is 0 if it is missing;
//! then standard error must be empty. Each program is run again with `MPJ_CHECK=1`, and does the same, unless `checked`
//! states another exit code for this.

#![expect(clippy::print_stderr, reason = "tests say why they are skipped")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use mpj_harness::{Outcome, command, launch, libmpi, mpjrun, process};
use rustix::process::Signal;
use tempfile::TempDir;

/// Whether there is a program.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    let has = found.is_ok_and(|output| output.status.success());
    if !has {
        eprintln!("skipped: there is no {program}");
    }
    has
}

/// Whether there is a compiler.
fn has_compiler() -> bool {
    has("cc")
}

/// A folder with `mpi.h` and the library under the names that programs look for.
fn installed() -> TempDir {
    let folder = TempDir::new().expect("a folder for temporary files");
    fs::write(folder.path().join("mpi.h"), mpj_abi::header(&mpj_abi::table()))
        .expect("it is writable");
    for name in ["libmpi_abi.so", "libmpi_abi.so.1"] {
        std::os::unix::fs::symlink(libmpi(), folder.path().join(name)).expect("it is writable");
    }
    folder
}

/// Compiles a program and returns its path.
fn compile(source: &Path, folder: &Path, options: &[&str]) -> PathBuf {
    let out = folder.join(source.file_stem().expect("a source has a name"));
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-g"])
        .args(options);
    compiler.arg("-I").arg(folder).arg(source).arg("-o").arg(&out).arg("-L").arg(folder);
    compiler.args(["-lmpi_abi", "-Wl,-z,now", "-pthread"]);
    compiler.arg(format!("-Wl,-rpath,{}", folder.display()));
    let output = compiler.output().expect("cc runs");
    assert!(output.status.success(), "{compiler:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    out
}

/// How a program is run.
#[derive(Debug, PartialEq, Eq)]
struct Plan<'a> {
    ranks: usize,
    universe: Option<usize>,
    code: i32,
    checked: Option<i32>,
    stdout: Vec<&'a str>,
    stderr: Vec<&'a str>,
}

impl<'a> Plan<'a> {
    fn of(source: &'a str) -> Self {
        let first = source.lines().next().and_then(|line| line.strip_prefix("// "));
        let mut words = first.unwrap_or("").split([' ', ',']).filter(|word| !word.is_empty());
        let (stdout, stderr) = (Vec::new(), Vec::new());
        let mut plan = Self { ranks: 0, universe: None, code: 0, checked: None, stdout, stderr };
        while let (Some(word), Some(number)) = (words.next(), words.next()) {
            match (word, number.parse::<i32>()) {
                ("ranks", Ok(number)) => plan.ranks = number as usize,
                ("universe", Ok(number)) => plan.universe = Some(number as usize),
                ("exit", Ok(number)) => plan.code = number,
                ("checked", Ok(number)) => plan.checked = Some(number),
                other => panic!("no part of a plan: {other:?}"),
            }
        }
        assert!(plan.ranks > 0, "the first line states the number of ranks");
        let mut heads = source.lines().map_while(|line| line.strip_prefix("// "));
        heads.next();
        for line in heads {
            let (where_to, text) = line.split_once(": ").unwrap_or((line, ""));
            match where_to {
                "stdout" => plan.stdout.push(text),
                "stderr" => plan.stderr.push(text),
                _ => {}
            }
        }
        plan
    }

    fn check(&self, name: &str, outcome: &Outcome) {
        assert_eq!(outcome.code, self.code, "{name}: {outcome:?}");
        for text in &self.stdout {
            assert!(
                outcome.stdout.lines().any(|line| line == *text),
                "{name}: no {text:?} in {outcome:?}"
            );
        }
        for text in &self.stderr {
            assert!(outcome.stderr.contains(text), "{name}: no {text:?} in {outcome:?}");
        }
        if self.code == 0 && self.stderr.is_empty() {
            assert_eq!(outcome.stderr, "", "{name}");
        }
    }
}

#[test]
fn programs_in_c_run_as_they_say() {
    if !has_compiler() {
        return;
    }
    let installed = installed();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let entries = fs::read_dir(&folder).expect("the folder of the programs");
    let mut sources: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    sources.retain(|path| path.extension() == Some(OsStr::new("c")));
    sources.sort();
    assert!(!sources.is_empty(), "there are no programs");
    // Many wait for something, so two run beside each other.
    let halves = sources.split_at(sources.len() / 2);
    thread::scope(|scope| {
        for half in [halves.0, halves.1] {
            scope.spawn(|| half.iter().for_each(|source| run_as_it_says(source, installed.path())));
        }
    });
}

/// Compiles a program, and runs it without and with checks.
fn run_as_it_says(source: &Path, installed: &Path) {
    let text = fs::read_to_string(source).expect("sources are text");
    let (plan, name) = (Plan::of(&text), source.display().to_string());
    let program = compile(source, installed, &[]);
    let universe = plan.universe.map(|universe| ["--universe".to_owned(), universe.to_string()]);
    let job = || {
        let job = launch(&program).ranks(plan.ranks);
        universe.iter().fold(job, |job, words| job.options(words))
    };
    plan.check(&name, &job().run());
    let checked = job().env("MPJ_CHECK", "1").run();
    match plan.checked {
        Some(code) => assert_eq!(checked.code, code, "{name}, checked: {checked:?}"),
        None => plan.check(&format!("{name}, checked"), &checked),
    }
}

#[test]
fn a_program_runs_alone_without_a_launcher() {
    if !has_compiler() {
        return;
    }
    let installed = installed();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/hello.c");
    let program = compile(&source, installed.path(), &[]);
    let outcome = command(&program).expect_quiet();
    assert_eq!(outcome.stdout, "rank 0 of 1\n");
}

/// Programs that look for their own leaks find none of the library's, where the compiler can build such programs.
#[test]
fn a_program_that_looks_for_leaks_finds_none() {
    if !has_compiler() {
        return;
    }
    let installed = installed();
    let empty = installed.path().join("empty.c");
    fs::write(&empty, "int main(void) { return 0; }\n").expect("it is writable");
    let sanitizer = "-fsanitize=address";
    let tried = Command::new("cc")
        .arg(sanitizer)
        .arg(&empty)
        .arg("-o")
        .arg(installed.path().join("empty"))
        .output();
    if !tried.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: cc has no {sanitizer}");
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/allreduce.c");
    let program = compile(&source, installed.path(), &[sanitizer]);
    for ranks in [1, 2] {
        // Where the tool is not allowed to look, it says so, and that is no leak.
        let outcome = launch(&program).ranks(ranks).run();
        assert!(!outcome.stderr.contains("detected memory leaks"), "{ranks} ranks: {outcome:?}");
    }
}

/// A program runs under Valgrind, which finds nothing wrong in the library, and does not search room that nobody uses.
#[test]
fn a_program_runs_under_valgrind() {
    if !has("valgrind") || !has_compiler() {
        return;
    }
    let installed = installed();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/allreduce.c");
    let program = compile(&source, installed.path(), &[]);
    let program = program.to_str().expect("a path in UTF-8");
    launch("valgrind").ranks(2).args(["-q", "--error-exitcode=9", program]).expect_quiet();
}

/// The programs of a job have numbers.
#[test]
fn programs_of_a_job_have_numbers() {
    if !has_compiler() {
        return;
    }
    let installed = installed();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/programs/appnum.c");
    let program = compile(&source, installed.path(), &[]);
    let name = program.to_str().expect("a path in UTF-8");
    let job = ["-n", "2", name, ":", "-n", "1", name];
    assert_eq!(mpjrun(job).expect(0).sorted_lines(), ["0: 0", "1: 0", "2: 1"]);
    assert_eq!(command(name).expect(0).sorted_lines(), ["0: none"]);
}

/// What ranks spawn ends with a launcher that is killed, and what that has started, too.
#[test]
fn spawned_processes_end_with_the_launcher() {
    if !has_compiler() {
        return;
    }
    let installed = installed();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/programs/spawn_shells.c");
    let program = compile(&source, installed.path(), &[]);
    let job = launch(&program).ranks(1).options(["--universe", "3"]).start();
    let pids = job.numbers(4);
    job.signal(Signal::KILL);
    process::await_end(&pids);
    job.expect(137);
}

/// With `--check`, receives of other types fail, collective calls that do not fit together, buffers that overlap, and the end
/// of a rank that has not received a message.
#[test]
fn mistakes_between_ranks_are_found() {
    if !has_compiler() {
        return;
    }
    let installed = installed();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/programs");
    let program = compile(&folder.join("mistakes.c"), installed.path(), &[]);
    let all = compile(&folder.join("mistakes_all.c"), installed.path(), &[]);
    launch(&all).ranks(2).options(["--check"]).expect_quiet();
    for backend in ["eager", "rendezvous"] {
        let job = || launch(&program).ranks(2).options(["--check", "--backend", backend]);
        assert_eq!(job().expect(0).stdout, "1 1 1\n", "{backend}");
    }
    let left = launch(&program).ranks(2).options(["--check"]).args(["left"]).run();
    assert_ne!(left.code, 0, "{left:?}");
    let said = "a message was never received: 16 bytes from rank 0 of the job with tag 5 in communicator MPI_COMM_WORLD";
    assert!(left.stderr.contains(said), "{left:?}");
}

/// A tool between program and library sees each call once, in both ways in which tools are put there.
#[test]
fn tools_see_each_call_once() {
    if !has_compiler() {
        return;
    }
    let installed = installed();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c");
    let (source, tool) = (folder.join("allreduce.c"), folder.join("tool/count.c"));
    let program = compile(&source, installed.path(), &[]);
    let preloaded = compile(&tool, installed.path(), &["-shared", "-fPIC"]);
    let counted = "allreduce 2, barrier 1\n";
    let by_preload = launch(&program).ranks(1).env("LD_PRELOAD", &preloaded).expect(0);
    assert!(by_preload.stdout.contains(counted), "{by_preload:?}");
    let linked = compile(&source, installed.path(), &[tool.to_str().expect("a path in UTF-8")]);
    let by_link = launch(&linked).ranks(1).expect(0);
    assert!(by_link.stdout.contains(counted), "{by_link:?}");
}

/// Random programs of four threads, on two to five ranks. `MPJ_TEST_SECONDS` is the time of all together, for long runs;
/// with `MPJ_TEST_SEED` a program is repeated. A program that fails prints its seed.
#[test]
#[expect(clippy::disallowed_methods, reason = "a long run is asked for by a variable")]
fn random_programs_of_threads_agree() {
    if !has_compiler() {
        return;
    }
    let asked = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<f64>().ok());
    let seconds = asked("MPJ_TEST_SECONDS").unwrap_or(3.0) / 4.0;
    let seed = asked("MPJ_TEST_SEED").unwrap_or(1.0);
    let installed = installed();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/random/threads.c");
    let program = compile(&source, installed.path(), &["-O1"]);
    for ranks in 2..=5 {
        let job = launch(&program).ranks(ranks).args([seconds.to_string(), seed.to_string()]);
        let outcome = job.limit(Duration::from_secs_f64(seconds * 2.0 + 60.0)).run();
        assert_eq!(outcome.code, 0, "{ranks} ranks: {outcome:?}");
    }
}

/// The library exports every function of the tables under both names, and no other name.
#[test]
fn the_library_exports_the_table() {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(libmpi()).output();
    let Ok(output) = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    else {
        eprintln!("skipped: there is no nm");
        return;
    };
    let mut exported: Vec<_> = output.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    let (table, removed) = (mpj_abi::table(), mpj_abi::removed());
    let functions = table.functions.iter().chain(&removed.functions);
    let mut expected: Vec<_> = functions
        .flat_map(|function| [function.name.clone(), format!("P{}", function.name)])
        .collect();
    exported.sort_unstable();
    expected.sort_unstable();
    assert_eq!(exported, expected);
}
