//! One call of the program: prepares what takes part, measures it, shows and writes the figures.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use mpj_bench::campaign::{self, Conduct};
use mpj_bench::catalogue::{Configuration, Extent};
use mpj_bench::cli::Options;
use mpj_bench::contender::{Contender, Programs};
use mpj_bench::model::{FORMAT, Header, Run, Threshold};
use mpj_bench::peers::{self, Peer};
use mpj_bench::store::Writer;
use mpj_bench::{analysis, baseline, launch, machine, page, results, store, text, views};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::progress::Progress;

/// Exit code when something could not be measured, or written.
const INCOMPLETE: u8 = 1;
/// Exit code when the user has stopped it: 128 + SIGINT.
const INTERRUPTED: u8 = 130;

/// Does what `options` ask for.
///
/// # Errors
/// What makes the whole call useless: one line.
pub fn run(options: &Options) -> Result<ExitCode, String> {
    let then = options.baseline.as_deref().map(store::read).transpose();
    let then = then.map_err(|error| error.to_string())?;
    let outputs = [&options.html, &options.markdown];
    outputs.into_iter().flatten().try_for_each(|path| writable(path))?;
    if let Some(path) = &options.from {
        let run = store::read(path).map_err(|error| error.to_string())?;
        show(options, &run, then.as_ref())?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)?;
    launch::adopt_orphans().map_err(|error| error.to_string())?;
    let (run, complaints) = measure(options, &stop)?;
    show(options, &run, then.as_ref())?;
    Ok(match (stop.load(Ordering::Relaxed), complaints) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::from(INCOMPLETE),
    })
}

/// The first signal ends the measurement, the second one the program.
fn stop_on_signals(stop: &Arc<AtomicBool>) -> Result<(), String> {
    for signal in [SIGINT, SIGTERM] {
        let code = INTERRUPTED.into();
        signal_hook::flag::register_conditional_shutdown(signal, code, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .map_err(|error| format!("cannot watch for signals: {error}"))?;
    }
    Ok(())
}

/// Measures; also returns how many things went wrong, each of which has been told.
fn measure(options: &Options, stop: &Arc<AtomicBool>) -> Result<(Run, usize), String> {
    let processors = machine::processors();
    let conduct = Conduct { processors, patience: options.patience, stop: stop.clone() };
    let mut troubles = 0;
    let mut tell = |line: String| {
        troubles += 1;
        eprintln!("mpj-bench: {line}");
    };
    let (contenders, header) = introduce(options, &conduct, &mut tell)?;
    let thresholds = header.thresholds.iter().map(|threshold| threshold.bytes).collect();
    let configurations = configurations(options, thresholds, &mut tell);
    if contenders.is_empty() || configurations.is_empty() {
        return Err("nothing is left to measure".to_owned());
    }
    let writer = options.json.as_deref().map(|path| Writer::create(path, &header)).transpose();
    let writer = writer.map_err(|error| error.to_string())?;
    let launches = header.rounds * configurations.len() * contenders.len();
    let mut progress = Progress::new(launches, writer);
    let seed = options.seed;
    let launches =
        campaign::run(&conduct, &header, &configurations, &contenders, seed, &mut progress);
    progress.finish();
    Ok((Run { header, launches }, troubles + progress.complaints.len()))
}

/// Finds and starts everything that takes part once. What does not run is told, and left out.
fn introduce(
    options: &Options,
    conduct: &Conduct,
    tell: &mut impl FnMut(String),
) -> Result<(Vec<Contender>, Header), String> {
    let ranks = options.np.iter().copied().max().unwrap_or(2).min(2);
    let (mut contenders, mut thresholds, mut facts) = (Vec::new(), Vec::new(), machine::facts());
    for mut contender in candidates(options, tell)? {
        let id = &contender.info.id;
        match conduct.introduce(&contender, ranks) {
            Ok(library) => {
                for (bytes, above) in library.thresholds {
                    add(&mut thresholds, bytes, id, &above);
                }
                facts.extend(library.facts);
                if !contender.info.ours && id != "self" {
                    contender.info.label = library.name;
                }
                contenders.push(contender);
            }
            Err(_) if conduct.stop.load(Ordering::Relaxed) => return Err("interrupted".to_owned()),
            Err(reason) => tell(format!("{id} does not start: {reason}")),
        }
    }
    let mut seen = std::collections::HashSet::new();
    facts.retain(|fact| seen.insert(fact.clone()));
    facts.extend(method(options));
    thresholds.sort_by_key(|threshold| threshold.bytes);
    let header = Header {
        format: FORMAT,
        command: command_line(),
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        machine: facts,
        runtimes: contenders.iter().map(|contender| contender.info.clone()).collect(),
        thresholds,
        rounds: options.rounds(),
    };
    Ok((contenders, header))
}

/// Notes that messages of `id` travel `above` this many bytes in another way.
fn add(thresholds: &mut Vec<Threshold>, bytes: usize, id: &str, above: &str) {
    let same = |known: &&mut Threshold| {
        known.bytes == bytes && known.what.rsplit(": ").next() == Some(above)
    };
    match thresholds.iter_mut().find(same) {
        Some(known) => known.what = format!("{id}, {}", known.what),
        None => thresholds.push(Threshold { bytes, what: format!("{id}: {above}") }),
    }
}

/// How it is measured, for the header.
fn method(options: &Options) -> Vec<(String, String)> {
    let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    vec![
        fact("mpj", concat!(env!("CARGO_PKG_VERSION"), ", every call may come from any thread")),
        fact("peers", "as installed, MPI_Init (one thread)"),
        fact("pinning", "rank r on usable processor r; none if there are more ranks than those"),
        fact("order of launches", &format!("random, seed {}", options.seed)),
    ]
}

/// The command line as the user gave it, folders left out.
fn command_line() -> String {
    let mut words = vec!["cargo mpj bench".to_owned()];
    words.extend(std::env::args().skip(1).map(|word| {
        let path = Path::new(&word);
        let name = path.file_name().filter(|_| path.is_absolute());
        name.map_or(word.clone(), |name| format!(".../{}", name.to_string_lossy()))
    }));
    words.join(" ")
}

/// What is asked for and can be built.
fn candidates(options: &Options, tell: &mut impl FnMut(String)) -> Result<Vec<Contender>, String> {
    let programs = programs()?;
    let mut candidates = Vec::new();
    for &backend in &options.backend {
        candidates.push(Contender::mpj(&programs, backend.into()));
    }
    for name in &options.peer {
        if name == "self" {
            let first = options.backend.last().copied().expect("clap has a default");
            candidates.push(Contender::mpj_again(&programs, first.into()));
            continue;
        }
        match built(name, &programs) {
            Ok((peer, worker)) => candidates.push(Contender::peer(peer, worker)),
            Err(error) => tell(error.to_string()),
        }
    }
    let mut seen = std::collections::HashSet::new();
    candidates.retain(|candidate| seen.insert(candidate.info.id.clone()));
    Ok(candidates)
}

/// Finds a peer and builds its worker.
fn built(name: &str, programs: &Programs) -> Result<(Peer, PathBuf), peers::PeerError> {
    let peer = peers::find(name)?;
    let target = programs.worker.with_file_name("system-mpi");
    let worker = peer.build(&target)?;
    Ok((peer, worker))
}

/// The programs that were built together with this one.
fn programs() -> Result<Programs, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let beside = |name: &str| {
        let path = this.with_file_name(name);
        let hint = format!("{name} is not beside mpj-bench: start it by `cargo mpj bench`");
        if path.is_file() { Ok(path) } else { Err(hint) }
    };
    Ok(Programs { launcher: beside("mpjrun")?, worker: beside("mpj-bench-rank")? })
}

fn configurations(
    options: &Options,
    thresholds: Vec<usize>,
    tell: &mut impl FnMut(String),
) -> Vec<Configuration> {
    let extent = Extent {
        quick: options.quick,
        ranks: options.np.clone(),
        sizes: options.sizes(),
        orders: options.orders(),
        thresholds,
    };
    let mut all = Vec::new();
    for benchmark in &options.what {
        let (configurations, refused) = benchmark.configurations(&extent);
        all.extend(configurations);
        refused.into_iter().for_each(&mut *tell);
    }
    all
}

/// Prints the tables and writes the files.
fn show(options: &Options, run: &Run, then: Option<&Run>) -> Result<(), String> {
    let tables = analysis::tables(run);
    println!("{}", text::header(run));
    for view in &views::of(run, &tables) {
        println!("{}", text::table(view, &run.header));
        if options.details {
            println!("{}", text::details(view, &run.header));
        }
    }
    println!("{}", text::launches_note(run));
    if let Some(then) = then {
        println!("{}", baseline::text(run, then));
    }
    if let Some(path) = &options.html {
        write(path, &page::html(run, &tables))?;
    }
    if let Some(path) = &options.markdown {
        write(path, &results::markdown(run))?;
    }
    Ok(())
}

/// Whether a file can be written, before anything is measured for it. What it holds stays.
fn writable(path: &Path) -> Result<(), String> {
    let opened: Result<File, _> = OpenOptions::new().create(true).append(true).open(path);
    opened.map(drop).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn write(path: &Path, contents: &str) -> Result<(), String> {
    fs::write(path, contents).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
