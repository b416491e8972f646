//! `mpj-tune`: measures which values suit this machine, and writes the table that `mpjrun` reads.
//! `cargo mpj tune` builds and starts it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use mpj_bench::campaign::Conduct;
use mpj_bench::contender::Programs;
use mpj_bench::tune::plan::{self, Plan};
use mpj_bench::tune::trial::Bench;
use mpj_bench::tune::verdict::{Verdict, judge, sights};
use mpj_bench::tune::{choice, verdict};
use mpj_bench::{launch, machine, stats};
use mpj_launcher::machine::Machine;
use mpj_launcher::tuning_file;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use transport_lapi::config::{Tuning, user_tuning_file};

/// Exit code when the user stops the run: 128 + SIGINT.
const INTERRUPTED: u8 = 130;

/// Measures which values suit this machine, and writes the table that mpjrun reads
///
/// Compares eager and rendezvous messages from 256 B to 64 MiB, pieces of half and twice the size,
/// and the spin of a waiting rank, in short launches of 2 ranks. A built-in value stays unless an
/// alternative is better by 8 % in the mean of single messages and streams, at every distance of the
/// processors that was seen, and worse nowhere. Takes one or two minutes on a quiet machine.
#[derive(Debug, Parser)]
#[command(name = "cargo mpj tune", bin_name = "cargo mpj tune", version, max_term_width = 100)]
struct Options {
    /// Where to write the table [default: mpj/tuning.toml in the user's configuration folder]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write nothing
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,
    /// Launches of each alternative
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = rounds)]
    rounds: usize,
    /// End a launch that gives no figure for S seconds
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    patience: u64,
}

fn rounds(text: &str) -> Result<usize, String> {
    let rounds = text.parse().ok().filter(|rounds| (6..=1000).contains(rounds));
    rounds.ok_or_else(|| "6 to 1000 launches: fewer have no interval".to_owned())
}

fn main() -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    match run(&Options::parse(), &stop) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) if stop.load(Ordering::Relaxed) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            eprintln!("mpj-tune: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options, stop: &Arc<AtomicBool>) -> Result<(), String> {
    let output = match (&options.output, options.dry_run) {
        (_, true) => None,
        (Some(path), false) => Some(path.clone()),
        (None, false) => Some(user_tuning_file().ok_or(
            "neither XDG_CONFIG_HOME nor HOME is set to an absolute path; name a file with --output",
        )?),
    };
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| format!("cannot watch for signals: {error}"))?;
    }
    launch::adopt_orphans().map_err(|error| error.to_string())?;
    let bench = bench(options, stop)?;
    let machine = Machine::here();
    println!("machine: {machine}");
    println!(
        "ratios: time of the alternative by that of the built-in value, mean of single messages and\n  \
           streams, upper end of the interval, worst of all; up to {} is better\n",
        verdict::MARGIN,
    );
    let tuning = measure(&bench, &Tuning::default())?;
    println!("\nchosen: {tuning}");
    if tuning == Tuning::default() {
        println!("these are the built-in values");
    }
    if let Some(path) = output {
        tuning_file::write(&path, &tuning, &machine).map_err(|error| error.to_string())?;
        println!("written to {}; mpjrun --info shows what it comes to", path.display());
    }
    Ok(())
}

/// The programs built together with this one, and how to launch them.
fn bench(options: &Options, stop: &Arc<AtomicBool>) -> Result<Bench, String> {
    let processors = machine::processors();
    if processors.len() < 2 {
        return Err("one usable processor: nothing that is tuned matters there".to_owned());
    }
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let beside = |name: &str| {
        let path = this.with_file_name(name);
        let hint = format!("{name} is not beside mpj-tune: start it by `cargo mpj tune`");
        if path.is_file() { Ok(path) } else { Err(hint) }
    };
    let programs = Programs { launcher: beside("mpjrun")?, worker: beside("mpj-bench-rank")? };
    let patience = Duration::from_secs(options.patience);
    let conduct = Conduct { processors, patience, stop: stop.clone() };
    Ok(Bench { programs, conduct, rounds: options.rounds })
}

/// Measures pieces first, since the comparison of protocols uses them for eager messages.
fn measure(bench: &Bench, built_in: &Tuning) -> Result<Tuning, String> {
    let better = answered(bench, "pieces", &plan::pieces(built_in))?;
    let factors: Vec<f64> = better.chunks(2).map(|pair| choice::factor(pair[0], pair[1])).collect();
    let pieces = choice::pieces(built_in, factors[0], &factors[1..]);
    let rebuilt = |protocols, spin| Tuning::new(protocols, pieces.clone(), spin);
    let tuning = rebuilt(built_in.protocols().clone(), built_in.spin());
    let tuning = tuning.map_err(|error| error.to_string())?;

    let better = answered(bench, "protocols", &plan::protocols(&tuning))?;
    let better: Vec<bool> = better.iter().map(Option::is_some).collect();
    let protocols = choice::protocols(&tuning, &choice::sizes(), &better);

    let bar = progress("spin", 2 * bench.rounds);
    let waiting = bench.waiting(&tuning, || bar.inc(1));
    bar.finish_and_clear();
    let waiting = waiting?;
    let (turns, wake_ups): (Vec<f64>, Vec<f64>) = waiting.iter().copied().unzip();
    let median = |values: &[f64]| stats::median(values).unwrap_or_default();
    let (turn, wake_up) = (median(&turns), median(&wake_ups));
    let spin = choice::spin(&tuning, &waiting);
    println!(
        "spin: a turn takes {:.0} ns, a wake-up {wake_up:.0} us; {spin} turns last {:.0} us: {}",
        turn * 1e3,
        f64::from(spin) * turn,
        if spin == built_in.spin() { "kept" } else { "changed" },
    );
    rebuilt(protocols, spin).map_err(|error| error.to_string())
}

/// Runs a plan and prints the results. Returns for each question the mean of its alternative, if
/// that is better.
fn answered(bench: &Bench, name: &str, plan: &Plan) -> Result<Vec<Option<f64>>, String> {
    let bar = progress(name, bench.launches(plan));
    let pairs = bench.answer(plan, || bar.inc(1));
    bar.finish_and_clear();
    let mut means = Vec::new();
    for (question, pairs) in plan.questions.iter().zip(pairs?) {
        let sights = sights(&pairs, &question.aspects);
        let verdict = judge(&sights);
        println!("{}: {}", question.name, verdict.text());
        for sight in &sights {
            let (distance, pairs) = (sight.distance.name(), sight.pairs);
            let (mean, upper, worst) = (sight.mean, sight.upper, sight.worst);
            println!(
                "    {distance:<4} {mean:.2}, at most {upper:.2}, worst {worst:.2}, {pairs} pairs"
            );
        }
        let mean = sights.iter().map(|sight| sight.mean).fold(0.0, f64::max);
        means.push((verdict == Verdict::Better).then_some(mean));
    }
    Ok(means)
}

fn progress(name: &str, launches: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:<9} {bar:30} {pos}/{len} (about {eta} left)");
    let bar = ProgressBar::new(launches as u64);
    bar.set_style(style.expect("the template is right"));
    bar.set_message(name.to_owned());
    bar
}
