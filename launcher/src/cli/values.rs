//! Parses values of options. Pure.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use transport_lapi::adapter::MAX_TASKS;
use transport_lapi::adapters::{MAX_CONTEXTS, MAX_PLACES_PER_HOST, MAX_TASKS_PER_HOST};
use transport_lapi::bootstrap::trace;
use transport_lapi::config::{self, BackendChoice, Keyword};

use crate::job::{Export, InputChoice, OutputChoice, ProfileChoice};

/// The error about a number of ranks that no job can have.
fn limit_on_ranks() -> String {
    format!("a job has 1 to {MAX_TASKS} ranks")
}

pub(super) fn rank_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MAX_TASKS).contains(count));
    count.ok_or_else(limit_on_ranks)
}

pub(super) fn count_per_host(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MAX_TASKS_PER_HOST).contains(count));
    count.ok_or_else(|| format!("1 to {MAX_TASKS_PER_HOST} ranks run on one host"))
}

pub(super) fn universe(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MAX_PLACES_PER_HOST).contains(count));
    count.ok_or_else(|| {
        format!("a job on one host can have 1 to {MAX_PLACES_PER_HOST} ranks in all")
    })
}

pub(super) fn context_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MAX_CONTEXTS).contains(count));
    count.ok_or_else(|| format!("a rank has 1 to {MAX_CONTEXTS} contexts"))
}

pub(super) fn fanout(text: &str) -> Result<usize, String> {
    let legal = text.parse().ok().filter(|fanout| (1..=1 << 16).contains(fanout));
    legal.ok_or_else(|| "1 to 65536 agents".to_owned())
}

/// Adds up the ranks of all programs.
///
/// # Errors
/// If they are too many for one job.
pub(super) fn total(counts: impl Iterator<Item = usize>) -> Result<usize, String> {
    let total = counts.fold(0, usize::saturating_add);
    let too_many = || format!("the programs have {total} ranks together, but {}", limit_on_ranks());
    (total <= MAX_TASKS).then_some(total).ok_or_else(too_many)
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let duration = text.parse().ok().and_then(|text| Duration::try_from_secs_f64(text).ok());
    let legal = duration.filter(|duration| !duration.is_zero() && duration.as_secs() < 1 << 32);
    legal.ok_or_else(|| "a number of seconds above 0, fractions allowed".to_owned())
}

fn export(text: OsString) -> Result<Export, String> {
    let fields = text.as_bytes().splitn(2, |byte| *byte == b'=');
    let mut fields = fields.map(|field| OsStr::from_bytes(field).to_owned());
    match (fields.next().filter(|name| !name.is_empty()), fields.next()) {
        (Some(name), value) => Ok(Export { name, value }),
        (None, _) => Err("NAME or NAME=VALUE".to_owned()),
    }
}

pub(super) fn export_parser() -> impl TypedValueParser<Value = Export> {
    OsStringValueParser::new().try_map(export)
}

pub(super) fn backend_parser() -> impl TypedValueParser<Value = BackendChoice> {
    PossibleValuesParser::new(BackendChoice::WORDS.iter().map(|(word, _)| *word))
        .map(|word| BackendChoice::from_word(&word).expect("clap takes no other word"))
}

/// Parses a list of `--output`.
fn output_list(list: OsString) -> Result<OutputChoice, String> {
    let mut choice = OutputChoice::default();
    for word in list.as_bytes().split(|byte| *byte == b',') {
        let folder = word.strip_prefix(b"dir=").filter(|path| !path.is_empty());
        match (word, folder) {
            (b"tag", _) => choice.tag = true,
            (b"timestamp", _) => choice.timestamp = true,
            (b"nocopy", _) => choice.nocopy = true,
            (_, Some(path)) => choice.folder = Some(OsString::from_vec(path.to_vec()).into()),
            _ => return Err("a list of tag, timestamp, dir=FOLDER, nocopy".to_owned()),
        }
    }
    if choice.nocopy && choice.folder.is_none() {
        return Err("nocopy needs dir=FOLDER in the same list".to_owned());
    }
    Ok(choice)
}

pub(super) fn output_parser() -> impl TypedValueParser<Value = OutputChoice> {
    OsStringValueParser::new().try_map(output_list)
}

/// The words of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words(pub(super) Vec<String>);

/// Parses `--agent-launcher`: words, quoted as in a shell.
pub(super) fn command_words(text: &str) -> Result<Words, String> {
    let words = shell_words::split(text).map_err(|_| "a quote is not closed".to_owned())?;
    if words.is_empty() { Err("it names no program".to_owned()) } else { Ok(Words(words)) }
}

/// Parses `--profile`: the name of a file, or nothing.
pub(super) fn profile_parser() -> impl TypedValueParser<Value = ProfileChoice> {
    OsStringValueParser::new().map(|file| {
        let page = Some(file).filter(|file| !file.is_empty()).map(Into::into);
        ProfileChoice { page }
    })
}

/// Parses `--trace-memory`.
pub(super) fn trace_memory(text: &str) -> Result<u64, String> {
    let bytes = config::byte_count(text).map(|bytes| bytes as u64);
    let legal = bytes.filter(|bytes| (trace::LEAST..=trace::MOST).contains(bytes));
    legal.ok_or_else(|| "a number of bytes from 1M to 64G, with suffix K, M or G".to_owned())
}

/// Parses `--stdin`.
pub(super) fn input(text: &str) -> Result<InputChoice, String> {
    match text {
        "none" => Ok(InputChoice::None),
        rank => rank
            .parse()
            .map(InputChoice::Rank)
            .map_err(|_| "the number of a rank, or none".to_owned()),
    }
}
