//! Every setting of the project, and the only file that reads the environment.
//!
//! `mpj` reads [`Settings`] once at init. [`crate::job::bootstrap`] reads the variables by which the launcher tells a
//! process that it is a rank. The launcher prints [`SETTINGS`] as its manual. Parsers are pure: they take a lookup
//! function, so that tests need not touch the environment. `written.rs` has what programs set themselves.
//!
//! - CF1: an unknown value is an error that lists the legal ones. It never falls back silently.
//! - CF2: an empty value means the same as an unset variable.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

mod start;
mod written;

pub use crate::adapters::ofi::FabricChoice;
pub use crate::adapters::shm::GetMode;

pub(crate) use start::{ForeignLauncher, PMI_FD, Start};

/// One setting: a row of the manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// The value if the variable is unset.
    pub default: &'static str,
    /// The legal values, as listed in errors.
    pub legal: &'static str,
    /// What the values are.
    pub values: Values,
    /// Whether all ranks of a job need the same value.
    pub is_common: bool,
    /// What the setting decides.
    pub meaning: &'static str,
}

/// What the values of a setting are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// The words of [`Setting::legal`], which commas divide.
    Words,
    /// Numbers.
    Number,
    /// Other texts.
    Text,
}

/// `MPJ_BACKEND`.
pub const BACKEND: Setting = Setting {
    name: "MPJ_BACKEND",
    default: "auto",
    legal: "auto, eager, rendezvous",
    values: Values::Words,
    is_common: false,
    meaning: "protocol of messages: chosen by a table, data at once, or data on demand",
};
const EAGER_UP_TO: Setting = Setting {
    name: "MPJ_EAGER_UP_TO",
    default: "auto",
    legal: "auto, or a number of bytes up to 1G, with suffix K, M or G for powers of 1024",
    values: Values::Text,
    is_common: false,
    meaning: "with MPJ_BACKEND=auto: longest message whose data are sent at once, those of longer ones go on demand; \
              auto: what the table of --info says",
};
const GET: Setting = Setting {
    name: "MPJ_GET",
    default: "auto",
    legal: "auto, cma, am",
    values: Values::Words,
    is_common: false,
    meaning: "how memory of other ranks is read, for long messages and windows: best available, process_vm_readv, active messages",
};
const WAIT: Setting = Setting {
    name: "MPJ_WAIT",
    default: "adaptive",
    legal: "spin, adaptive, block",
    values: Values::Words,
    is_common: false,
    meaning: "how a blocked rank waits: never sleeps, spins briefly then sleeps, sleeps at once",
};
const SPIN: Setting = Setting {
    name: "MPJ_SPIN",
    default: "1000",
    legal: "a number of microseconds, at most 1000000",
    values: Values::Number,
    is_common: false,
    meaning: "how long an adaptive wait polls before it sleeps, where every rank has a processor; up to ten times as \
              long while sleeps turn out short",
};
const EARLY_LIMIT: Setting = Setting {
    name: "MPJ_EARLY_LIMIT",
    default: "64M",
    legal: "a number of bytes, with suffix K, M or G for powers of 1024",
    values: Values::Number,
    is_common: true,
    meaning: "memory for messages that arrive before their receive, per peer",
};
const PROGRESS_THREAD: Setting = Setting {
    name: "MPJ_PROGRESS_THREAD",
    default: "0",
    legal: "0, 1",
    values: Values::Words,
    is_common: false,
    meaning: "1: a thread of each rank makes progress from the beginning, beside computation; 0: only once a future \
              waits, or the program asks for it",
};
const SINGLETON: Setting = Setting {
    name: "MPJ_SINGLETON",
    default: "0",
    legal: "0, 1",
    values: Values::Words,
    is_common: true,
    meaning: "1: run as a job of one rank even when another launcher or a process manager started the process",
};

/// `MPJ_CHECK`.
pub const CHECK: Setting = Setting {
    name: "MPJ_CHECK",
    default: "auto",
    legal: "auto, 0, 1",
    values: Values::Words,
    is_common: true,
    meaning: "1: find mistakes between ranks, such as collective calls and messages that do not fit together, if all ranks \
              ask for it; auto: programs in Rust that were built with debug assertions, and tests, ask for it",
};
const FABRIC: Setting = Setting {
    name: "MPJ_FABRIC",
    default: "auto",
    legal: "auto, PROVIDER, PROVIDER:DOMAIN, as fi_info names them",
    values: Values::Text,
    is_common: true,
    meaning: "network between hosts: the best that libfabric offers, or this one, such as tcp:eth0",
};

const CONNECT_TIMEOUT: Setting = Setting {
    name: "MPJ_CONNECT_TIMEOUT",
    default: "30",
    legal: "a number of seconds from 1 to 86400",
    values: Values::Number,
    is_common: false,
    meaning: "how long a rank tries over TCP to reach one of another host for the first time, before the job ends",
};

/// Every setting that a user may give, in the order of the manual.
pub const SETTINGS: [Setting; 11] = [
    BACKEND,
    EAGER_UP_TO,
    GET,
    WAIT,
    SPIN,
    PROGRESS_THREAD,
    EARLY_LIMIT,
    CHECK,
    FABRIC,
    CONNECT_TIMEOUT,
    SINGLETON,
];

/// Rank of this process, set by the launcher.
pub(crate) const RANK: &str = "MPJ_RANK";
/// Number of ranks of the world of this process, set by the launcher.
pub(crate) const SIZE: &str = "MPJ_SIZE";
/// Number of tasks that the job can have, set by the launcher where it is more than `MPJ_SIZE`.
pub(crate) const UNIVERSE: &str = "MPJ_UNIVERSE";
/// Number of ranks that programs may expect in all, set by the launcher where the job has room for more.
pub const EXPECTED: &str = "MPJ_EXPECTED";
/// The first task of the world of a spawned process, set by the launcher.
pub(crate) const FIRST_TASK: &str = "MPJ_FIRST_TASK";
/// The task that has spawned this process, set by the launcher.
pub(crate) const PARENT: &str = "MPJ_PARENT";
/// Rank among those of this host, set by the launcher for programs that choose a device by it.
pub(crate) const LOCAL_RANK: &str = "MPJ_LOCAL_RANK";
/// Number of contexts of each rank, set by the launcher; 1 if unset.
pub(crate) const CONTEXTS: &str = "MPJ_CONTEXTS";
/// Opaque name of the job, set by the launcher.
pub(crate) const JOB: &str = "MPJ_JOB";
/// Number of the inherited descriptor of the job segment, set by the launcher.
pub(crate) const SHM_FD: &str = "MPJ_SHM_FD";
/// Number of the inherited descriptor of the job table, set by the launcher in a job of several hosts.
pub const HOSTS_FD: &str = "MPJ_HOSTS_FD";
/// Number of the inherited descriptor of the control socket, set by the launcher.
pub(crate) const CTRL_FD: &str = "MPJ_CTRL_FD";
/// Number of the inherited descriptor of the memory for what the rank records, set by the launcher if it is to.
pub const TRACE_FD: &str = "MPJ_TRACE_FD";

/// Number of the program that this process runs among those of its job, from 0, set by the launcher.
pub const PROGRAM: &str = "MPJ_PROGRAM";

/// All variables that the launcher sets for a rank. Programs that a rank starts outside its job do not get them.
pub const JOB_VARIABLES: [&str; 14] = [
    RANK, SIZE, UNIVERSE, EXPECTED, FIRST_TASK, PARENT, LOCAL_RANK, CONTEXTS, JOB, SHM_FD,
    HOSTS_FD, CTRL_FD, PROGRAM, TRACE_FD,
];
/// Identifies the test of several ranks that a process was started for, and the process that runs it. A test sets it
/// for its launcher, which passes it to its ranks.
pub const TEST: &str = "MPJ_TEST";

/// The prefix of this project's variables.
pub const PREFIX: &str = "MPJ_";
/// Known variables that are not settings for users: those that lengthen or repeat the project's own tests, the
/// compilers that `mpicc` and `mpicxx` call, and the folder of MPJ Express.
const NO_SETTINGS: [&str; 10] = [
    "MPJ_CC",
    "MPJ_CXX",
    "MPJ_FAULT_ROUNDS",
    "MPJ_FAULT_SEED",
    "MPJ_GARBAGE_ROUNDS",
    "MPJ_PLANTED_PROGRAMS",
    "MPJ_PROGRAMS",
    "MPJ_PROGRAMS_SEED",
    "MPJ_SPOILT_PROGRAMS",
    "MPJ_HOME",
];

/// Returns whether a variable has this project's prefix but is not one of its variables.
pub fn is_unknown(name: &str) -> bool {
    let is_known = SETTINGS.iter().any(|row| row.name == name)
        || JOB_VARIABLES.contains(&name)
        || NO_SETTINGS.contains(&name)
        || [PROCESSORS, PLACE].contains(&name)
        || name.starts_with(TEST);
    name.starts_with(PREFIX) && !is_known
}

/// Returns the names of the variables in this process's environment, except empty ones (CF2).
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub fn inherited_names() -> impl Iterator<Item = OsString> {
    std::env::vars_os().filter(|(_, value)| !value.is_empty()).map(|(name, _)| name)
}

/// Returns whether a launcher started this process as a rank.
pub fn is_rank() -> bool {
    inherited(CTRL_FD).is_some()
}

/// A setting whose legal values are a few words.
pub trait Keyword: Copy + PartialEq + Sized + 'static {
    /// Every legal word with its value.
    const WORDS: &'static [(&'static str, Self)];

    /// Returns the value that `word` stands for, if it is legal.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
    }

    /// Returns the word that stands for this value.
    fn word(self) -> &'static str {
        let row = Self::WORDS.iter().find(|(_, value)| *value == self);
        row.expect("every value has a row in WORDS").0
    }
}

/// `MPJ_BACKEND`: which protocol carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendChoice {
    /// One of the two below, chosen for each message by a table of sizes and facts.
    #[default]
    Auto,
    /// Envelope and data in one amsend.
    Eager,
    /// Envelope first, data by get once a receive has matched.
    Rendezvous,
}

impl Keyword for BackendChoice {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("eager", Self::Eager), ("rendezvous", Self::Rendezvous)];
}

impl Keyword for GetMode {
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("cma", Self::Cma), ("am", Self::Am)];
}

/// `MPJ_WAIT`: what a blocked rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitMode {
    /// Never sleeps.
    Spin,
    /// Spins briefly, yields, then sleeps.
    #[default]
    Adaptive,
    /// Sleeps at once.
    Block,
}

impl Keyword for WaitMode {
    const WORDS: &'static [(&'static str, Self)] =
        &[("spin", Self::Spin), ("adaptive", Self::Adaptive), ("block", Self::Block)];
}

/// The settings of one process, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `MPJ_BACKEND`.
    pub backend: BackendChoice,
    /// `MPJ_EAGER_UP_TO`: the longest eager message of [`BackendChoice::Auto`], in bytes; `None` if the built-in table
    /// decides.
    pub eager_up_to: Option<usize>,
    /// `MPJ_GET`.
    pub get: GetMode,
    /// `MPJ_WAIT`.
    pub wait: WaitMode,
    /// `MPJ_SPIN`: how long an adaptive wait polls before it sleeps.
    pub spin: Duration,
    /// `MPJ_PROGRESS_THREAD`: whether a thread makes progress from the beginning.
    pub progress_thread: bool,
    /// `MPJ_EARLY_LIMIT`: the most bytes of unexpected messages that one peer may have pending at this rank.
    pub early_limit: usize,
    /// `MPJ_CHECK`: whether this rank asks for checks of mistakes between ranks; `None` leaves it to the program.
    pub check: Option<bool>,
    /// `MPJ_FABRIC`.
    pub fabric: FabricChoice,
    /// `MPJ_CONNECT_TIMEOUT`: how long a rank of another host may be out of reach at the first contact.
    pub connect_timeout: Duration,
    /// `MPJ_SINGLETON`: whether the variables of another MPI's launcher are ignored.
    pub singleton: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            backend: BackendChoice::default(),
            eager_up_to: None,
            get: GetMode::default(),
            wait: WaitMode::default(),
            spin: Duration::from_millis(1),
            progress_thread: false,
            early_limit: 64 << 20,
            check: None,
            fabric: FabricChoice::default(),
            connect_timeout: Duration::from_secs(30),
            singleton: false,
        }
    }
}

/// Why the settings were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A variable has a value that is not legal.
    #[error("{name}={value} is not known; legal values: {legal}")]
    Unknown {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// Its legal values.
        legal: &'static str,
    },
}

impl Settings {
    /// Reads what the program has set by [`Setting::write`], and what else the environment of this process says.
    ///
    /// # Errors
    /// [`ConfigError::Unknown`] for the first variable whose value is not legal.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_lookup(&in_force)
    }

    /// Reads the environment, overridden by variables that the launcher sets.
    ///
    /// # Errors
    /// As [`Settings::from_env`].
    pub fn from_env_after(given: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Self::from_lookup(&|name| match given(name) {
            Some(value) => Some(value).filter(|value| !value.is_empty()),
            None => environment(name),
        })
    }

    fn from_lookup(lookup: Lookup<'_>) -> Result<Self, ConfigError> {
        let default = Self::default();
        Ok(Self {
            backend: parse(lookup, &BACKEND, Keyword::from_word, default.backend)?,
            eager_up_to: parse(lookup, &EAGER_UP_TO, eager_length, default.eager_up_to)?,
            get: parse(lookup, &GET, Keyword::from_word, default.get)?,
            wait: parse(lookup, &WAIT, Keyword::from_word, default.wait)?,
            spin: parse(lookup, &SPIN, microseconds, default.spin)?,
            progress_thread: parse(lookup, &PROGRESS_THREAD, flag, default.progress_thread)?,
            early_limit: parse(lookup, &EARLY_LIMIT, byte_count, default.early_limit)?,
            check: parse(lookup, &CHECK, choice, default.check)?,
            connect_timeout: parse(lookup, &CONNECT_TIMEOUT, seconds, default.connect_timeout)?,
            fabric: parse(lookup, &FABRIC, FabricChoice::parse, default.fabric)?,
            singleton: parse(lookup, &SINGLETON, flag, default.singleton)?,
        })
    }
}

/// Returns what `MPJ_CHECK` says, for jobs in one process, which read no other setting.
///
/// # Errors
/// [`ConfigError::Unknown`].
pub fn check() -> Result<Option<bool>, ConfigError> {
    parse(&in_force, &CHECK, choice, None)
}

/// Returns the environment entry that makes a rank choose `backend`.
pub fn backend_entry(backend: BackendChoice) -> (&'static str, &'static str) {
    (BACKEND.name, backend.word())
}

/// Returns a variable of this process's environment; `None` if it is unset or empty (CF2). For variables that the
/// launcher itself uses, such as `PATH` and `CARGO`, and for settings that it prints.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub fn inherited(name: impl AsRef<OsStr>) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns a variable of this process's environment unchanged, even if it is empty; `None` if it is unset. For
/// variables that the launcher passes on by name, whose meaning only the program knows.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub fn given(name: impl AsRef<OsStr>) -> Option<OsString> {
    std::env::var_os(name)
}

/// Variable that tells a bound rank how many processors the ranks of its job share. The launcher sets it for ranks that
/// it has bound and removes it for all others.
pub const PROCESSORS: &str = "MPJ_PROCESSORS";

/// How many processors the ranks of this process's job share, if the launcher has set it: a rank that is bound to one
/// processor may still be in a job that has enough of them.
pub(crate) fn processors() -> Option<usize> {
    environment(PROCESSORS)?.parse().ok()
}

/// Variable that tells a rank on which processor it is at home, if it shares that one with others and is not bound.
pub const PLACE: &str = "MPJ_PLACE";

/// The processor on which this process is at home, if the launcher has set one.
pub(crate) fn place() -> Option<u32> {
    environment(PLACE)?.parse().ok()
}

/// The number of this process's program among those of its job, if a launcher has set it.
pub fn program() -> Option<u32> {
    environment(PROGRAM)?.parse().ok()
}

/// The number of ranks that a program may expect in its job in all, with those that it spawns, if a launcher has set one
/// that is less than the room of the job.
pub fn expected() -> Option<usize> {
    environment(EXPECTED)?.parse().ok()
}

/// The name of this process's job, if a launcher has set it.
pub fn job() -> Option<String> {
    environment(JOB)
}

/// The number of ranks of this process's world, if a launcher or a process manager has set it; known before the process
/// joins the job.
pub fn size() -> Option<u32> {
    if is_rank() {
        return environment(SIZE)?.parse().ok();
    }
    start().size(&environment).filter(|_| !is_singleton())
}

/// Whether `MPJ_SINGLETON` is set, for questions asked before the settings are read.
fn is_singleton() -> bool {
    environment(SINGLETON.name).as_deref() == Some("1")
}

/// Returns how this process was started, if not by `mpjrun`.
pub(crate) fn start() -> Start {
    Start::from_lookup(&environment)
}

/// How a parser reads the environment: the value, or `None` if it is unset or empty (CF2).
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A variable of the environment as a string. What is not Unicode becomes replacement characters, which errors can show
/// and no legal value contains.
pub(crate) fn environment(name: &str) -> Option<String> {
    inherited(name).map(|value| value.to_string_lossy().into_owned())
}

/// The value of a setting that this process has set, or else its variable.
fn in_force(name: &str) -> Option<String> {
    written::value(name).or_else(|| environment(name))
}

fn parse<T>(
    lookup: Lookup<'_>,
    setting: &Setting,
    parser: fn(&str) -> Option<T>,
    default: T,
) -> Result<T, ConfigError> {
    let Setting { name, legal, .. } = *setting;
    let Some(value) = lookup(name) else { return Ok(default) };
    parser(value.trim()).ok_or(ConfigError::Unknown { name, value, legal })
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// A flag, or `auto`, which leaves it to others.
fn choice(text: &str) -> Option<Option<bool>> {
    if text == "auto" { Some(None) } else { flag(text).map(Some) }
}

fn microseconds(text: &str) -> Option<Duration> {
    let number = text.parse().ok().filter(|number| *number <= 1_000_000)?;
    Some(Duration::from_micros(number))
}

fn seconds(text: &str) -> Option<Duration> {
    let number = text.parse().ok().filter(|number| (1..=86_400).contains(number))?;
    Some(Duration::from_secs(number))
}

fn eager_length(text: &str) -> Option<Option<usize>> {
    if text == EAGER_UP_TO.default {
        return Some(None);
    }
    byte_count(text).filter(|bytes| *bytes <= 1 << 30).map(Some)
}

/// Returns the number of bytes that a text means, which may have a suffix K, M or G for powers of 1024; `None` if it means
/// none.
pub fn byte_count(text: &str) -> Option<usize> {
    let (digits, shift) = match text.char_indices().next_back()? {
        (at, 'K' | 'k') => (&text[..at], 10),
        (at, 'M' | 'm') => (&text[..at], 20),
        (at, 'G' | 'g') => (&text[..at], 30),
        _ => (text, 0),
    };
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests;
