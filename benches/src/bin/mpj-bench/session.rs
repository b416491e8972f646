//! One run of the program: prepares the runtimes, measures them, shows and writes the figures.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use mpj_bench::campaign::{self, Conduct};
use mpj_bench::catalogue::{Benchmark, Configuration, Extent};
use mpj_bench::cli::Options;
use mpj_bench::contender::{self, Contender, Programs, UCX};
use mpj_bench::hosts::Hosts;
use mpj_bench::model::{FABRIC, FORMAT, Header, Run, SELF, Threshold};
use mpj_bench::peers::{self, Peer};
use mpj_bench::report::{baseline, page, summary, text};
use mpj_bench::store::Writer;
use mpj_bench::{analysis, bundle, computation, launch, machine, store, ucx};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::progress::Progress;

/// Exit code when something could not be measured or written.
const INCOMPLETE: u8 = 1;
/// The number of launches of each runtime, unless fewer are requested, that fix the computation of
/// overlap.
const COMPUTATIONS: usize = 3;
/// Exit code when the user stops the run: 128 + SIGINT.
const INTERRUPTED: u8 = 130;

/// Runs the program with `options`.
///
/// # Errors
/// A one-line reason why the whole run is useless.
pub fn run(options: &Options) -> Result<ExitCode, String> {
    let then = options.baseline.as_deref().map(store::read).transpose();
    let then = then.map_err(|error| error.to_string())?;
    check_outputs(options)?;
    if let Some(path) = &options.from {
        let run = store::read(path).map_err(|error| error.to_string())?;
        show(options, &run, then.as_ref())?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_signals(&stop)?;
    let measured = measure(options, &stop);
    let is_stopped = stop.load(Ordering::Relaxed);
    let (run, complaints) = match measured {
        Err(_) if is_stopped => return Ok(ExitCode::from(INTERRUPTED)),
        measured => measured?,
    };
    show(options, &run, then.as_ref())?;
    Ok(match (is_stopped, complaints) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::from(INCOMPLETE),
    })
}

/// Makes signals end the current launch; the figures so far are then shown. The program does not
/// exit earlier, since that would leave the launch running.
fn stop_on_signals(stop: &Arc<AtomicBool>) -> Result<(), String> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| format!("cannot watch for signals: {error}"))?;
    }
    Ok(())
}

/// Runs the benchmarks. Also returns the number of problems, all of which have been printed.
fn measure(options: &Options, stop: &Arc<AtomicBool>) -> Result<(Run, usize), String> {
    let conduct = Conduct { hosts: Hosts::of(&options.hosts)?, stop: stop.clone() };
    let mut troubles = 0;
    let mut tell = |line: String| {
        troubles += 1;
        eprintln!("mpj-bench: {line}");
    };
    let (contenders, mut header) = introduce(options, &conduct, &mut tell)?;
    let thresholds = header.thresholds.iter().map(|threshold| threshold.bytes).collect();
    let mut configurations = configurations(options, thresholds, &mut tell);
    let rounds = options.rounds().min(COMPUTATIONS);
    let computations =
        computation::fix(&conduct, &contenders, rounds, &mut configurations, &mut tell);
    header.machine.extend(computations);
    let bundles = bundle::bundles(configurations);
    if contenders.is_empty() || bundles.is_empty() {
        return Err("nothing is left to measure".to_owned());
    }
    let writer = options.json.as_deref().map(|path| Writer::create(path, &header)).transpose();
    let writer = writer.map_err(|error| error.to_string())?;
    let launches = header.rounds * bundles.len() * contenders.len();
    let mut progress = Progress::new(launches, writer);
    let launches = campaign::run(&conduct, &header, &bundles, &contenders, &mut progress);
    progress.finish();
    Ok((Run { header, launches }, troubles + progress.complaints.len()))
}

/// Finds every runtime and starts it once. Prints those that do not run, and leaves them out.
fn introduce(
    options: &Options,
    conduct: &Conduct,
    tell: &mut impl FnMut(String),
) -> Result<(Vec<Contender>, Header), String> {
    let ranks = options.extent.ranks.iter().copied().max().unwrap_or(2).min(2);
    let ranks = ranks.max(conduct.hosts.count());
    let (mut contenders, mut thresholds, mut facts) = (Vec::new(), Vec::new(), machine::facts());
    facts.extend(conduct.hosts.facts());
    let candidates = candidates(options, conduct, tell)?;
    // After the builds: processes that cargo leaves behind must not be adopted.
    launch::adopt_orphans().map_err(|error| error.to_string())?;
    for contender in candidates {
        let id = &contender.info.id;
        match conduct.introduce(&contender, ranks) {
            Ok(library) => {
                let steps = library.thresholds.into_iter();
                let step = |(bytes, above)| Threshold { bytes, what: format!("{id}: {above}") };
                thresholds.extend(steps.map(step));
                facts.extend(library.facts);
                contenders.push(contender);
            }
            Err(_) if conduct.stop.load(Ordering::Relaxed) => return Err("interrupted".to_owned()),
            Err(reason) => tell(format!("{id} does not start: {reason}")),
        }
    }
    let labels = contenders.iter_mut().map(|contender| &mut contender.info.label);
    contender::number(labels, |label, nth| format!("{label} ({nth})"));
    let mut seen = std::collections::HashSet::new();
    facts.retain(|fact| seen.insert(fact.clone()));
    let pinning = match conduct.hosts.one_machine {
        true => "rank r on usable processor r; none if there are more ranks than those",
        false => {
            "as above on each machine, its first rank on the first; the others' are taken to be alike"
        }
    };
    facts.push(("pinning".to_owned(), pinning.to_owned()));
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

/// The command line without its folders.
fn command_line() -> String {
    let mut words = vec!["cargo mpj bench".to_owned()];
    words.extend(std::env::args().skip(1).map(|word| {
        let path = Path::new(&word);
        let name = path.file_name().filter(|_| path.is_absolute());
        name.map_or(word.clone(), |name| format!(".../{}", name.to_string_lossy()))
    }));
    words.join(" ")
}

/// The requested runtimes that can be built.
fn candidates(
    options: &Options,
    conduct: &Conduct,
    tell: &mut impl FnMut(String),
) -> Result<Vec<Contender>, String> {
    let apart = options.apart()?;
    let transport = apart.filter(|benchmark| benchmark.is_of_transport());
    let over_network = conduct.hosts.are_several();
    let mpj = programs("mpj-bench-rank")?;
    let mut all = match apart {
        Some(Benchmark::Rma) => Vec::new(),
        None => options.backend.iter().map(|backend| Contender::mpj(&mpj, backend)).collect(),
        Some(_) => {
            vec![Contender::transport("lapi", "transport-lapi", programs("mpj-bench-lapi")?)]
        }
    };
    for (above, id) in [(Benchmark::Am2, "am2"), (Benchmark::Pami, "pami")] {
        if transport == Some(above) {
            let programs = programs(&format!("mpj-bench-{id}"))?;
            all.insert(0, Contender::transport(id, id, programs));
        }
    }
    for name in &options.peer {
        match (name.as_str(), transport.map(Benchmark::name)) {
            (SELF, _) => {
                // Tables compare this backend with peers.
                let auto = all.iter().find(|contender| contender.info.id == "auto");
                match auto.or(all.first()).map(Contender::again) {
                    Some(again) => all.push(again),
                    None => tell("self is what was given before, here nothing".to_owned()),
                }
            }
            (UCX, Some(_)) => match ucx::find() {
                Ok((tool, label)) => {
                    all.push(Contender::ucx(beside("mpj-bench-ucx")?, tool, label));
                }
                Err(failure) => tell(failure.to_string()),
            },
            (UCX, None) => {
                tell("ucx is a peer of lapi, am2 and pami, not of MPI's benchmarks".to_owned())
            }
            (FABRIC, None) if over_network && apart.is_none() => {
                all.push(Contender::fabric(programs("mpj-bench-fabric")?));
            }
            (FABRIC, _) => {
                tell("fabric is a peer of MPI's benchmarks over several --hosts".to_owned())
            }
            (other, Some(what)) => {
                tell(format!("{other} does not measure {what}: give --peer {UCX} or {SELF}"));
            }
            (other, None) => match built(other, &mpj) {
                Ok((peer, worker)) => {
                    let peers = if over_network { peer.networks() } else { vec![peer] };
                    all.extend(peers.into_iter().map(|it| Contender::peer(it, worker.clone())));
                }
                Err(_) if conduct.is_stopped() => return Err("interrupted".to_owned()),
                Err(error) => tell(error.to_string()),
            },
        }
    }
    let ids = all.iter_mut().map(|it| &mut it.info.id);
    contender::number(ids, |id, nth| format!("{id}-{nth}"));
    Ok(all)
}

/// Finds a peer and builds its worker.
fn built(name: &str, programs: &Programs) -> Result<(Peer, PathBuf), peers::PeerError> {
    let peer = peers::find(name)?;
    let target = programs.worker.with_file_name("system-mpi");
    let worker = peer.build(&target)?;
    Ok((peer, worker))
}

/// The launcher and this worker.
fn programs(worker: &str) -> Result<Programs, String> {
    Ok(Programs { launcher: beside("mpjrun")?, worker: beside(worker)? })
}

/// A program that was built together with this one.
fn beside(name: &str) -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let path = this.with_file_name(name);
    let hint = format!("{name} is not beside mpj-bench: start it by `cargo mpj bench`");
    if path.is_file() { Ok(path) } else { Err(hint) }
}

fn configurations(
    options: &Options,
    thresholds: Vec<usize>,
    tell: &mut impl FnMut(String),
) -> Vec<Configuration> {
    let hosts = options.hosts.len();
    let extent = Extent { thresholds, hosts, ..options.extent.clone() };
    let mut all = Vec::new();
    for benchmark in options.what() {
        let (configurations, refused) = benchmark.configurations(&extent);
        all.extend(configurations);
        refused.into_iter().for_each(&mut *tell);
    }
    all
}

/// Prints the tables, and writes the files.
fn show(options: &Options, run: &Run, then: Option<&Run>) -> Result<(), String> {
    let tables = analysis::tables(run);
    let compared = then.map(|then| baseline::text(run, then)).unwrap_or_default();
    let out = text::all(run, &tables) + &compared;
    // The reader may close the pipe early, as `head` does.
    let _ = io::stdout().write_all(out.as_bytes());
    let mut files = Vec::new();
    files.extend(options.html.as_ref().map(|path| (path.clone(), page::html(run, &tables))));
    if let Some(path) = &options.summary {
        let picture = path.with_extension("svg");
        let drawn = summary::picture(run, &tables);
        let name = picture.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.push((path.clone(), summary::text(run, &tables, drawn.as_ref().map(|_| &*name))));
        files.extend(drawn.map(|drawn| (picture, drawn)));
    }
    let write = |(path, contents): &(PathBuf, String)| {
        fs::write(path, contents)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    files.iter().map(write).fold(Ok(()), Result::and)
}

/// Checks before measuring that outputs can be written. Their content is kept.
fn check_outputs(options: &Options) -> Result<(), String> {
    for path in [&options.json, &options.html, &options.summary].into_iter().flatten() {
        let opened = File::options().create(true).append(true).open(path);
        opened.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}
