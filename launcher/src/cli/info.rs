//! `mpjrun --info`: what would be in force for a job: every setting with its origin, the adapter, and how messages
//! travel, with the table that chooses their protocols.

pub mod probe;

use mpjdev::protocol::{Facts, Processor, Protocol, Row as Rule, Table, When, by_hardware};
use transport_lapi::adapter::{Caps, GetKind, Pieces};
use transport_lapi::adapters::ofi::Fabric;
use transport_lapi::adapters::segment_bytes;
use transport_lapi::adapters::shm::caps_of;
use transport_lapi::config::{self, BACKEND, BackendChoice, Keyword, SETTINGS, Settings};

use crate::LaunchError;
use crate::cli::default_ranks;
use crate::host::binding::Placement;
use crate::host::machine;
use crate::job::hosts::parents;
use crate::job::spawn;
use crate::job::{Binding, Export, Hosts, Starter, Universe};
use crate::report::{aligned, of_ranks};

/// The part of a command line that `--info` shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `-n`.
    pub ranks: Option<usize>,
    /// `--universe`.
    pub universe: Option<usize>,
    /// `--contexts`.
    pub contexts: Option<usize>,
    /// `--backend`.
    pub backend: Option<BackendChoice>,
    /// `--genv` and `-x`.
    pub exports: Vec<Export>,
    /// `--bind-to` and `--map-by`.
    pub binding: Binding,
    /// Where the ranks would run; `None` for this host alone.
    pub hosts: Option<Box<Hosts>>,
}

impl Asked {
    /// The value that `-x` gives a variable.
    fn exported(&self, name: &str) -> Option<String> {
        let export = self.exports.iter().rev().find(|export| export.name == name)?;
        Some(export.value.as_ref()?.to_string_lossy().into_owned())
    }
}

/// A line of the table of settings: name, value and origin.
type Row = Vec<String>;

/// Returns the text for this command line in the environment of this process.
///
/// # Errors
/// [`LaunchError::Setting`], as for a job with these settings.
pub fn text(asked: &Asked) -> Result<String, LaunchError> {
    let settings = Settings::from_env_after(&|name| asked.exported(name))?;
    let backend = asked.backend.unwrap_or(settings.backend);
    let settings = Settings { backend, ..settings };
    let ranks = asked.ranks.unwrap_or_else(default_ranks);
    let contexts = asked.contexts.unwrap_or(1);
    let mut rows = vec![row_of("ranks", ranks, asked.ranks, "-n")];
    if asked.hosts.is_none() {
        let most = Universe::of(ranks, asked.universe, contexts).most;
        rows.push(row_of("ranks in all", most, asked.universe, "--universe"));
    }
    rows.push(row_of("contexts", contexts, asked.contexts, "--contexts"));
    rows.extend(SETTINGS.iter().map(|row| setting(asked, row.name, row.default)));
    // Of the fullest host.
    let here = asked.hosts.as_ref().map_or(ranks, |hosts| hosts.fullest().1);
    let (caps, bytes) = (caps_of(here)?, segment_bytes(here, contexts)?);
    let mut text =
        format!("mpjrun {}\nmachine: {}\n", env!("CARGO_PKG_VERSION"), machine::description());
    text += "\nsettings\n";
    text += &aligned("  ", &rows, |_| false);
    text += &adapter(&caps, here, contexts, bytes);
    text += &get(&probe::report(asked));
    let network = asked.hosts.as_deref().map(|hosts| (hosts, Fabric::open(&settings.fabric)));
    if let Some((hosts, network)) = &network {
        text += &hosts_of(hosts);
        text += "\nnetwork between hosts, as this one has it\n  ";
        text += &match network {
            Ok(network) => format!("{}\n  {}", network.explanation(), windows(&network.caps())),
            Err(error) => error.to_string(),
        };
        text += "\n";
    }
    text += "\nprocessors\n";
    text += &processors(&spawn::place(asked.binding, here)?, here);
    let table = Table::of(&settings, Processor::here());
    let others = network.and_then(|(_, network)| Some(network.ok()?.caps()));
    let inside = if others.is_some() { " inside of a host" } else { "" };
    // Whether it does so here, stands above.
    let reading = Caps { gets: Some(GetKind::CrossMemoryAttach), ..caps };
    text += &messages(&table, inside, &reading);
    text += &others.map_or(String::new(), |caps| messages(&table, " between hosts", &caps));
    Ok(text)
}

/// How windows reach targets with which the adapter can do this.
fn windows(caps: &Caps) -> &'static str {
    match by_hardware(caps) {
        true => {
            "windows: its hardware carries out puts and gets of one block, and messages all else"
        }
        false => "windows: messages",
    }
}

/// How messages travel to targets with which the adapter can do this.
fn messages(table: &Table, whose: &str, caps: &Caps) -> String {
    let mut text = format!("\nprotocols of messages{whose}; the first row that applies decides\n");
    let rows: Vec<Row> = table.rows_for(caps).map(rule).collect();
    text += &aligned("  ", &rows, |_| false);
    text += &format!("\nmessages{whose}\n");
    ways(table, caps).iter().for_each(|way| text += &format!("  {way}\n"));
    text
}

/// The hosts of a job that does not run on this one alone.
fn hosts_of(hosts: &Hosts) -> String {
    let starter = match &hosts.starter {
        Starter::Ssh => "ssh".to_owned(),
        Starter::Srun => "srun".to_owned(),
        Starter::Command(words) => shell_words::join(words),
    };
    let parents = parents(hosts.names.len(), hosts.fanout);
    let ranks = hosts.ranks();
    let row = |(place, name): (usize, &String)| {
        let from = parents[place].map(|parent| format!("started from {}", hosts.names[parent]));
        vec![name.clone(), of_ranks(&ranks[place]), from.unwrap_or_default()]
    };
    let rows: Vec<Row> = hosts.names.iter().enumerate().map(row).collect();
    let silence = hosts.silence.as_secs_f64();
    format!("\nhosts, where {starter} starts mpjrun\n")
        + &aligned("  ", &rows, |_| false)
        + &format!("  a host that says nothing for {silence} s counts as lost\n")
}

fn row(name: &str, value: String, origin: &str) -> Row {
    vec![name.to_owned(), value, origin.to_owned()]
}

/// The row of a number that `option` sets if it is `given`.
fn row_of(name: &str, number: usize, given: Option<usize>, option: &str) -> Row {
    let origin = given.map_or("default".to_owned(), |_| format!("command line ({option})"));
    row(name, number.to_string(), &origin)
}

fn setting(asked: &Asked, name: &str, default: &str) -> Row {
    if let Some(backend) = asked.backend.filter(|_| name == BACKEND.name) {
        return row(name, backend.word().to_owned(), "command line (--backend)");
    }
    if let Some(value) = asked.exported(name) {
        return row(name, value, "command line (-x)");
    }
    match config::inherited(name) {
        Some(value) => row(name, value.to_string_lossy().into_owned(), "environment"),
        None => row(name, default.to_owned(), "default"),
    }
}

/// Where the ranks would run, one line for each run of ranks with the same place.
fn processors(placement: &Placement, ranks: usize) -> String {
    let places: Vec<(usize, String)> =
        (0..ranks).map(|rank| (rank, placement.words(rank))).collect();
    let line = |run: &[(usize, String)]| {
        let of: Vec<usize> = run.iter().map(|(rank, _)| *rank).collect();
        vec![of_ranks(&of), run[0].1.clone()]
    };
    let rows: Vec<Row> = places.chunk_by(|one, next| one.1 == next.1).map(line).collect();
    aligned("  ", &rows, |_| false)
        + "  OpenMP starts as many threads in a rank as it may use processors, unless OMP_NUM_THREADS is set\n"
}

fn adapter(caps: &Caps, ranks: usize, contexts: usize, bytes: usize) -> String {
    let Caps { name, max_inline, max_body, .. } = caps;
    let plural = if ranks == 1 { "" } else { "s" };
    let each =
        if contexts == 1 { String::new() } else { format!(" with {contexts} contexts each") };
    format!(
        "\nadapter {name}\n  \
           segment for {ranks} rank{plural}{each}: {bytes} bytes, of which a job takes what it touches\n  \
           a cell carries {max_inline} bytes beside its envelope, a frame up to {max_body}\n"
    )
}

/// How ranks read each other's memory, as two of them have just `said`.
fn get(said: &str) -> String {
    let mut text = format!("  get, as two ranks have just tried it: {said}\n");
    if said.contains("cannot read") {
        text += "    reading another process needs the rights of ptrace: a container may need \
                 --cap-add=SYS_PTRACE\n    or another profile of system calls, a host \
                 kernel.yama.ptrace_scope below 2\n";
    }
    text
}

/// A row of the table of protocols: from which length on, when, how, and why.
fn rule(&Rule { from, when, protocol, because }: &Rule) -> Row {
    let when = match when {
        When::Always => "",
        When::NoCredit => "that find no room or cost more than half of it",
        When::ByNetwork => "in one span",
        When::HugePages => "in huge pages, if get reads memory",
        When::OwnProcessor => "where each rank has a processor, if get reads memory",
    };
    let from = if from == 0 { "all".to_owned() } else { format!("from {from} bytes") };
    vec![from, when.to_owned(), word(protocol).to_owned(), because.to_owned()]
}

fn word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Eager => "eager",
        Protocol::Rendezvous => "rendezvous",
    }
}

/// How messages in one span travel to targets with which the adapter can do this, one line for each range of sizes, by
/// this table where no other fact holds.
fn ways(table: &Table, caps: &Caps) -> Vec<String> {
    let pieces = caps.pieces.within(caps.max_body);
    let whole = pieces.whole();
    let way = |len: usize| match table.choose(len, Facts::of_target(caps), true) {
        Protocol::Rendezvous => word(Protocol::Rendezvous).to_owned(),
        Protocol::Eager if len <= whole => "eager, as one frame".to_owned(),
        Protocol::Eager => format!("eager, in pieces of {}", pieces.size(len)),
    };
    let steps: Vec<usize> = table.rows().iter().filter_map(|row| row.from.checked_sub(1)).collect();
    let mut bounds = [&steps[..], &Pieces::BOUNDS, &[whole]].concat();
    bounds.sort_unstable();
    bounds.retain(|&bound| way(bound) != way(bound + 1));
    bounds.dedup();
    let line = |range: String, len| format!("{range:<22}  {}", way(len));
    let up_to = |&bound: &usize| line(format!("up to {bound} bytes"), bound);
    let mut lines: Vec<_> = bounds.iter().map(up_to).collect();
    lines.push(match bounds.last() {
        Some(bound) => line("longer".to_owned(), bound + 1),
        None => line("any length".to_owned(), 0),
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_go_by_hardware_that_reads_and_writes() {
        let pieces = Pieces::new(1 << 10, [1 << 10; 3]);
        let of = |gets, puts| {
            let (name, copies_bodies, atomics) = ("", true, false);
            let (max_head, max_inline, max_body) = (64, 64, 1 << 10);
            windows(&Caps {
                name,
                max_head,
                max_inline,
                max_body,
                pieces,
                copies_bodies,
                gets,
                puts,
                atomics,
            })
        };
        assert!(of(Some(GetKind::RemoteDirect), true).contains("its hardware carries out puts"));
        for (gets, puts) in [
            (Some(GetKind::RemoteDirect), false),
            (Some(GetKind::RemoteSoftware), true),
            (None, false),
        ] {
            assert_eq!(of(gets, puts), "windows: messages");
        }
    }

    #[test]
    fn every_change_of_the_way_is_one_line() {
        let protocols = |backend, eager_up_to| {
            let settings = Settings { backend, eager_up_to, ..Settings::default() };
            Table::of(&settings, Processor::Other)
        };
        let local = Pieces::new(16 << 10, [16 << 10, 32 << 10, 64 << 10]);
        let caps = |gets, max_body, pieces| Caps {
            name: "",
            max_head: 64,
            max_inline: 64,
            max_body,
            pieces,
            copies_bodies: true,
            gets,
            puts: false,
            atomics: false,
        };
        let lines = ways(&protocols(BackendChoice::Auto, None), &caps(None, 64 << 10, local));
        let expected = [
            "up to 16384 bytes       eager, as one frame",
            "up to 131072 bytes      eager, in pieces of 16384",
            "up to 524288 bytes      eager, in pieces of 32768",
            "up to 16777216 bytes    eager, in pieces of 65536",
            "longer                  rendezvous",
        ];
        assert_eq!(lines, expected);
        let network =
            caps(Some(GetKind::RemoteDirect), 64 << 10, Pieces::new(64 << 10, [21 << 10; 3]));
        let expected = [
            "up to 65536 bytes       eager, as one frame",
            "up to 262143 bytes      eager, in pieces of 21504",
            "longer                  rendezvous",
        ];
        assert_eq!(ways(&protocols(BackendChoice::Auto, None), &network), expected);
        let named = ways(&protocols(BackendChoice::Auto, Some(1000)), &network);
        let expected =
            ["up to 1000 bytes        eager, as one frame", "longer                  rendezvous"];
        assert_eq!(named, expected);
        let rendezvous = ways(&protocols(BackendChoice::Rendezvous, None), &network);
        assert_eq!(rendezvous, ["any length              rendezvous"]);
        let short = ways(&protocols(BackendChoice::Eager, None), &caps(None, 8 << 10, local));
        let expected = [
            "up to 8192 bytes        eager, as one frame",
            "longer                  eager, in pieces of 8192",
        ];
        assert_eq!(short, expected);
    }

    #[test]
    fn a_refusal_comes_with_what_to_change() {
        assert_eq!(get("process_vm_readv").lines().count(), 1);
        let refused = get("active messages (rank 0 cannot read rank 1: Operation not permitted)");
        assert!(refused.contains("Operation not permitted)\n    reading"), "{refused}");
        assert!(refused.contains("SYS_PTRACE"), "{refused}");
    }

    #[test]
    fn the_command_line_counts_for_more_than_the_default() {
        let exports = vec![
            Export { name: "MPJ_NOWHERE".into(), value: Some("1".into()) },
            Export { name: "MPJ_NOWHERE".into(), value: Some("2".into()) },
        ];
        let asked = Asked {
            ranks: Some(3),
            universe: None,
            contexts: None,
            backend: Some(BackendChoice::Eager),
            exports,
            binding: Binding::new(None, None, false),
            hosts: None,
        };
        let given = setting(&asked, "MPJ_BACKEND", "auto");
        assert_eq!(given, row("MPJ_BACKEND", "eager".to_owned(), "command line (--backend)"));
        let last = setting(&asked, "MPJ_NOWHERE", "0");
        assert_eq!(last, row("MPJ_NOWHERE", "2".to_owned(), "command line (-x)"));
        let unset = Asked { exports: Vec::new(), ..asked };
        let default = setting(&unset, "MPJ_NOWHERE", "0");
        assert_eq!(default, row("MPJ_NOWHERE", "0".to_owned(), "default"));
    }
}
