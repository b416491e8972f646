//! The example programs: their parts in this process, and whole jobs through `mpjrun`.

use mpj_harness::{Outcome, example, launch};

#[path = "programs/algorithms.rs"]
mod algorithms;
#[path = "programs/company.rs"]
mod company;
#[path = "programs/market_format.rs"]
mod market_format;
#[path = "programs/matmul.rs"]
mod matmul;
#[path = "programs/npy_format.rs"]
mod npy_format;
#[path = "programs/solvers.rs"]
mod solvers;

const RANKS: [usize; 6] = [1, 2, 3, 4, 7, 9];
const BACKENDS: [&str; 3] = ["auto", "eager", "rendezvous"];

/// Runs an example program on some ranks.
fn job(ranks: usize, backend: &str, program: &str, args: &[&str]) -> Outcome {
    launch(example(program)).ranks(ranks).options(["--backend", backend]).args(args).run()
}

/// Runs a job that has to succeed, and returns what it printed.
fn output(ranks: usize, backend: &str, example: &str, args: &[&str]) -> String {
    let outcome = job(ranks, backend, example, args);
    assert_eq!(outcome.code, 0, "{example} {args:?}, {ranks} ranks, {backend}: {outcome:?}");
    assert_eq!(outcome.stderr, "", "{example} {args:?}, {ranks} ranks, {backend}");
    outcome.stdout
}

/// Runs a job that has to refuse its input with exit code 2, and to print `message` exactly once.
fn refusal(ranks: usize, example: &str, args: &[&str], message: &str) {
    let outcome = job(ranks, "auto", example, args);
    assert_eq!(outcome.code, 2, "{example} {args:?}, {ranks} ranks: {outcome:?}");
    // The report repeats it.
    let printed = outcome.stderr.split("mpjrun:").next().unwrap_or_default();
    let said = printed.matches(message).count();
    assert_eq!(said, 1, "{example} {args:?}, {ranks} ranks: {message:?} in {outcome:?}");
    assert_eq!(outcome.stdout, "", "{example} {args:?}, {ranks} ranks");
}

/// The rest of the line that starts with `label`.
fn value<'a>(output: &'a str, label: &str) -> &'a str {
    let line = output.lines().find_map(|line| line.trim_start().strip_prefix(label));
    line.unwrap_or_else(|| panic!("no line {label:?} in {output}")).trim()
}

#[test]
fn hello_hears_every_rank() {
    for ranks in RANKS {
        let output = output(ranks, "auto", "hello", &[]);
        for rank in 0..ranks {
            let greeting = format!("hello from rank {rank} of {ranks}, process ");
            assert_eq!(output.matches(&greeting).count(), 1, "{output}");
        }
        assert!(output.contains(&format!("rank 0 has heard {ranks} of {ranks} ranks")), "{output}");
    }
}

#[test]
fn spawning_adds_up_what_its_workers_answer() {
    let job = |ranks| launch(example("spawning")).ranks(ranks);
    for (ranks, workers) in [(1, 4), (3, 2)] {
        let universe = (ranks + workers).to_string();
        let exactly = job(ranks).options(["--universe", &universe]);
        for job in [exactly, job(ranks)] {
            let outcome = job.args([workers.to_string()]).expect_quiet();
            let said = format!("{workers} workers have added up 1000000 numbers: 499999500000\n");
            assert_eq!(outcome.stdout, said);
        }
    }
    let outcome = job(2).options(["--universe", "2"]).args(["1"]).run();
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("give mpjrun more with --universe N"), "{outcome:?}");
}

#[test]
fn ring_counts_every_hop() {
    for ranks in RANKS {
        let output = output(ranks, "auto", "ring", &["--laps", "25"]);
        let start = format!("ring of {ranks} ranks: {} hops, ", 25 * ranks);
        assert!(output.starts_with(&start) && output.ends_with(" us per hop\n"), "{output}");
    }
}

#[test]
fn hash_map_counts_words_on_all_ranks() {
    for (ranks, backend) in RANKS.into_iter().zip(BACKENDS.into_iter().cycle()) {
        let words = ["to", "be", "or", "not", "to", "be", "to"];
        let output = output(ranks, backend, "hash_map", &words);
        assert_eq!(output, "be: 2\nnot: 1\nor: 1\nto: 3\n");
    }
}

#[test]
fn task_farm_finds_its_end() {
    for (ranks, backend) in RANKS.into_iter().zip(BACKENDS.into_iter().cycle()) {
        let output = output(ranks, backend, "task_farm", &[]);
        let done = output.lines().map(|line| {
            let (_, done) = line.split_once(" did ").expect("a rank says what it did");
            done.trim_end_matches(" tasks").parse::<u32>().expect("a number")
        });
        // The tasks are a binary tree.
        let (lines, total) = done.fold((0, 0), |(lines, total), done| (lines + 1, total + done));
        assert!(lines == ranks && total % 2 == 1 && total > 200, "{output}");
    }
}

#[test]
fn work_counter_takes_each_row_once() {
    for (ranks, backend) in RANKS.into_iter().zip(BACKENDS.into_iter().cycle()) {
        let output = output(ranks, backend, "work_counter", &[]);
        let taken = output.lines().filter_map(|line| {
            let taken = line.split_once(" took ")?.1.trim_end_matches(" rows");
            Some(taken.parse::<u32>().expect("a number"))
        });
        assert_eq!(taken.sum::<u32>(), 100, "{output}");
        assert_eq!(output.matches(": verified").count(), 1, "{output}");
    }
}

#[test]
fn windows_and_partitions_pass_the_checks_of_examples() {
    for (ranks, backend) in RANKS.into_iter().zip(BACKENDS.into_iter().cycle()) {
        let runs: [(&str, &[&str], &str); 6] = [
            ("dht", &["--numbers", "500"], "counts"),
            ("dht", &["--numbers", "300", "--distinct", "7"], "counts"),
            ("halo", &["--size", "20", "--sweeps", "20"], "numbers"),
            ("halo", &["--size", "1", "--sweeps", "5"], "numbers"),
            ("pipeline", &["--numbers", "100"], "numbers"),
            ("pipeline", &["--numbers", "5000", "--partitions", "3", "--blocks", "4"], "numbers"),
        ];
        for (example, args, label) in runs {
            assert_eq!(value(&output(ranks, backend, example, args), label), "verified");
        }
    }
}

#[test]
fn npy_writes_a_file_of_all_ranks() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("matrix.npy");
    let file = path.to_str().expect("it is a text");
    for (ranks, backend) in RANKS.into_iter().zip(BACKENDS.into_iter().cycle()) {
        let output =
            output(ranks, backend, "npy", &["--rows", "70", "--columns", "9", "--out", file]);
        assert!(output.ends_with(", verified\n"), "{output}");
        let bytes = std::fs::read(&path).expect("the program has written it");
        let elements = bytes[128..].chunks_exact(8);
        assert_eq!(elements.len(), 630);
        assert_eq!(elements.clone().nth(69 * 9 + 4), Some(&69.000004_f64.to_le_bytes()[..]));
    }
}

#[test]
fn a_wrong_option_is_reported_once() {
    refusal(4, "ring", &["--laps", "many"], "invalid value 'many' for '--laps <LAPS>'");
    refusal(3, "laplace", &["--tolerance", "-1"], "error: ");
}

#[test]
fn pingpong_measures_and_checks_every_size() {
    for (ranks, backend) in [(2, "auto"), (2, "eager"), (2, "rendezvous"), (3, "auto")] {
        let args = ["--max", "262144", "--iterations", "20"];
        let output = output(ranks, backend, "pingpong", &args);
        assert!(output.starts_with("# MPJ Latency Test\n# Size"), "{output}");
        let rows = output.lines().filter(|line| !line.starts_with('#'));
        for (row, exponent) in rows.clone().zip(0..) {
            let (size, latency) = row.split_at(10);
            assert_eq!(size.trim().parse(), Ok(1_u32 << exponent), "{output}");
            assert_eq!(latency.len(), 20, "{output}");
            assert!(latency.trim().parse::<f64>().is_ok_and(|latency| latency > 0.0), "{output}");
        }
        assert_eq!(rows.count(), 19, "{output}");
        let raw: Vec<f64> = value(&output, "# Raw cache line (ns, one way):")
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        assert!(raw.len() == 2 && raw.iter().all(|raw| *raw > 0.0), "{output}");
        assert!(value(&output, "# 8-byte latency / raw:").parse::<f64>().is_ok(), "{output}");
    }
}

#[test]
fn pingpong_refuses_what_it_cannot_measure() {
    refusal(1, "pingpong", &[], "pingpong: needs at least 2 ranks, this job has 1");
    refusal(2, "pingpong", &["--min", "9", "--max", "8"], "--min 9 is larger than --max 8");
}
