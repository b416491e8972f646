//! Options of Open MPI, MPICH and Intel MPI in this launcher's words: translated, noted as not needed,
//! or refused with a reason. Pure; called on every section of a command line before clap sees it.
//!
//! - FO1: nothing behind PROGRAM is touched. Where the launcher's own options end follows from clap's
//!   description of them, so an option that is added there needs nothing here.
//! - FO2: a word that is the value of an option is never taken for an option. A known option where the value
//!   of a variable belongs is refused: the value was forgotten.
//! - FO3: an option that `own` has means what it means there, whatever others mean by it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::{Arg, Command};

mod places;

/// Why an option that says on which host ranks run has nothing to say.
const ONE_HOST: &str = ": every rank runs on this host";
/// Why an option of the environment has nothing to say.
const INHERITED: &str = ": ranks inherit this environment";
/// Why options about the report of a hang have nothing to say.
const REPORTED: &str = ": the report comes anyway";
/// What options that define a variable look like.
const DEFINITION: &str = "give NAME VALUE or NAME=VALUE";
/// Why debuggers are not started.
const DEBUGGERS: &str =
    "attach a debugger to a rank that runs, as gdb -p PID; --report-bindings names the processes";
/// What keeps the output of ranks apart.
const FILES: &str = "--output dir=FOLDER makes a file for each stream of each rank";
/// Why ranks need no number of cores.
const ALL_CORES: &str = ": a rank may use every core unless --bind-to binds it";
/// Why an option that forbids ranks on this host cannot be followed.
const NOWHERE_ELSE: &str = "ranks run on this host only; leave it out";

/// What another launcher's option means here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// This word of ours; a value follows if it takes one.
    Is(&'static str),
    /// `NAME VALUE` or `NAME=VALUE`, for this option of ours.
    Variable(&'static str),
    /// Names of variables with commas between them, for this option of ours.
    Variables(&'static str),
    /// A folder for the ranks' output.
    Folder,
    /// A place or an order, for this option of ours, which has the same name.
    Place(&'static str),
    /// Nothing, with so many values, and why.
    Needless(usize, &'static str),
    /// What cannot be done, and what to do instead.
    Refused(&'static str),
}

use Meaning::{Folder, Is, Needless, Place, Refused, Variable, Variables};

/// Other launchers' options, without their dashes.
const FOREIGN: &[(&str, Meaning)] = &[
    ("c", Is("--np")),
    ("wd", Is("--wdir")),
    ("H", Is("--host")),
    ("hosts", Is("--host")),
    ("f", Is("--hostfile")),
    ("machinefile", Is("--hostfile")),
    ("default-hostfile", Is("--hostfile")),
    ("app", Is("--configfile")),
    ("s", Is("--stdin")),
    ("prepend-rank", Is("-l")),
    ("tag-output", Is("--output=tag")),
    ("timestamp-output", Is("--output=timestamp")),
    ("output-filename", Folder),
    ("bind-to", Place("--bind-to")),
    ("map-by", Place("--map-by")),
    ("display-map", Is("--report-bindings")),
    ("display-devel-map", Is("--report-bindings")),
    ("print-rank-map", Is("--report-bindings")),
    ("display", Needless(1, ": --report-bindings says where ranks run")),
    ("display-allocation", Needless(0, ONE_HOST)),
    ("merge-stderr-to-stdout", Needless(0, ": 2>&1 behind the command joins the streams")),
    ("v", Needless(0, ": what goes wrong is said anyway")),
    ("verbose", Needless(0, ": what goes wrong is said anyway")),
    ("q", Needless(0, ": only what goes wrong is said")),
    ("quiet", Needless(0, ": only what goes wrong is said")),
    ("disable-auto-cleanup", Is("--on-failure=keep")),
    ("enable-recovery", Is("--on-failure=keep")),
    ("env", Variable("-x")),
    ("genv", Variable("--genv")),
    ("gx", Is("--genv")),
    ("envlist", Variables("-x")),
    ("genvlist", Variables("--genv")),
    ("envall", Needless(0, INHERITED)),
    ("genvall", Needless(0, INHERITED)),
    ("envnone", Refused("ranks inherit the launcher's environment; empty it with env -i")),
    ("genvnone", Refused("ranks inherit the launcher's environment; empty it with env -i")),
    ("file", Refused("give the file of programs as --configfile, that of hosts as --hostfile")),
    ("nolocal", Refused(NOWHERE_ELSE)),
    ("usize", Needless(1, ": ranks start no others")),
    ("ppn", Is("--soft")),
    ("perhost", Is("--soft")),
    ("npernode", Is("--soft")),
    ("N", Is("--soft")),
    ("arch", Needless(1, ONE_HOST)),
    ("iface", Needless(1, ONE_HOST)),
    ("launcher", Needless(1, ONE_HOST)),
    ("bootstrap", Needless(1, ONE_HOST)),
    ("rmk", Needless(1, ONE_HOST)),
    ("rank-by", Needless(1, ": ranks are numbered in order")),
    ("mca", Needless(2, "")),
    ("gmca", Needless(2, "")),
    ("omca", Needless(2, "")),
    ("gomca", Needless(2, "")),
    ("pmixmca", Needless(2, "")),
    ("gpmixmca", Needless(2, "")),
    ("prtemca", Needless(2, "")),
    ("prefix", Needless(1, "")),
    ("noprefix", Needless(0, "")),
    ("oversubscribe", Needless(0, "")),
    ("nooversubscribe", Needless(0, ": ranks may share a core")),
    ("allow-run-as-root", Needless(0, "")),
    ("use-hwthread-cpus", Needless(0, "")),
    ("cpus-per-rank", Needless(1, ALL_CORES)),
    ("cpus-per-proc", Needless(1, ALL_CORES)),
    ("bind-to-none", Is("--bind-to=none")),
    ("bind-to-core", Is("--bind-to=core")),
    ("bind-to-socket", Is("--bind-to=socket")),
    ("rankfile", Refused("say where ranks run by --bind-to and --map-by")),
    ("cpu-set", Refused("give the processors to mpjrun: taskset -c LIST mpjrun ...")),
    ("cpu-list", Refused("give the processors to mpjrun: taskset -c LIST mpjrun ...")),
    ("membind", Refused("give the memory to mpjrun: numactl --membind=LIST mpjrun ...")),
    ("preload-binary", Needless(0, ONE_HOST)),
    ("preload-files", Needless(1, ONE_HOST)),
    ("localhost", Needless(1, ONE_HOST)),
    ("launcher-exec", Needless(1, ONE_HOST)),
    ("bootstrap-exec", Needless(1, ONE_HOST)),
    ("do-not-launch", Is("--dry-run")),
    ("outfile-pattern", Refused(FILES)),
    ("errfile-pattern", Refused(FILES)),
    ("outfile", Refused(FILES)),
    ("errfile", Refused(FILES)),
    (
        "prepend-pattern",
        Refused("-l begins lines with their rank, --output timestamp with the time"),
    ),
    ("ordered-output", Needless(0, ": lines are never mixed")),
    ("print-all-exitcodes", Needless(0, ": what fails is said anyway")),
    ("check_mpi", Needless(0, ": deadlocks are found and reported anyway")),
    ("xterm", Refused("no windows are opened; tell ranks apart by -l, or by --output dir=FOLDER")),
    ("gdb", Refused(DEBUGGERS)),
    ("debug", Refused(DEBUGGERS)),
    ("tv", Refused(DEBUGGERS)),
    ("totalview", Refused(DEBUGGERS)),
    ("get-stack-traces", Needless(0, REPORTED)),
    ("report-state-on-timeout", Needless(0, REPORTED)),
];

/// The options of other launchers that are taken, by the names that are more than letters.
pub(super) fn accepted() -> impl Iterator<Item = &'static str> {
    let taken = FOREIGN.iter().filter(|(_, meaning)| !matches!(meaning, Refused(_)));
    taken.map(|(name, _)| *name).filter(|name| name.len() > 2)
}

/// A section in this launcher's words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Translated {
    pub(crate) words: Vec<OsString>,
    /// What was left out, one sentence each.
    pub(crate) notes: Vec<String>,
}

/// Translates a section, which begins with its first option. `own` is the command that will parse it,
/// built.
///
/// # Errors
/// Names an option that cannot be translated, and says what to do.
pub(crate) fn translate(
    own: &Command,
    section: impl IntoIterator<Item = OsString>,
) -> Result<Translated, String> {
    let mut words = section.into_iter();
    let mut translated = Translated::default();
    while let Some(word) = words.next() {
        if !word.as_bytes().starts_with(b"-") || word == "-" || word == "--" {
            translated.words.push(word);
            translated.words.extend(words);
            break;
        }
        let (name, attached) = parts(&word);
        match meaning_of(own, name) {
            Some(meaning) => translated.take(own, meaning, &word, attached, &mut words)?,
            None => translated.keep(own, respelt(own, word), &mut words),
        }
    }
    Ok(translated)
}

/// What another launcher means by this option, unless it is ours (FO3). Ours that are in the table take
/// what others write behind them as well.
fn meaning_of(own: &Command, name: &OsStr) -> Option<Meaning> {
    let (_, meaning) = FOREIGN.iter().find(|(known, _)| name == *known)?;
    let is_wider = matches!(meaning, Place(_) | Variable(_));
    (is_wider || !is_ours(own, name)).then_some(*meaning)
}

fn is_ours(own: &Command, name: &OsStr) -> bool {
    own.get_arguments().any(|option| {
        let letter = option.get_short().map(String::from);
        option.get_long().is_some_and(|long| name == long)
            || letter.is_some_and(|letter| name == letter.as_str())
    })
}

impl Translated {
    /// Keeps a word of our own, with the value that belongs to it (FO2).
    fn keep(&mut self, own: &Command, word: OsString, rest: &mut dyn Iterator<Item = OsString>) {
        let value = if awaits_value(own, &word) { rest.next() } else { None };
        self.words.push(word);
        self.words.extend(value);
    }

    fn take(
        &mut self,
        own: &Command,
        meaning: Meaning,
        word: &OsStr,
        attached: Option<OsString>,
        rest: &mut dyn Iterator<Item = OsString>,
    ) -> Result<(), String> {
        match meaning {
            Is(ours) => match attached {
                Some(value) => self.words.push(joined(ours.as_ref(), "=", &value)),
                None => self.keep(own, ours.into(), rest),
            },
            Variable(ours) => self.define(own, ours, word, attached, rest)?,
            Variables(ours) => self.pass_on(own, ours, word, attached, rest)?,
            Folder => {
                let folder = value(own, word, attached, rest, "give a folder")?;
                self.words.push(output_into(&folder));
            }
            Place(ours) => match attached.or_else(|| rest.next()) {
                Some(value) => self.place(ours, &value)?,
                None => self.words.push(ours.into()),
            },
            Needless(values, why) => {
                let left = values.saturating_sub(attached.is_some().into());
                let values: Vec<OsString> = rest.take(left).collect();
                let said =
                    values.iter().fold(word.to_owned(), |said, value| joined(&said, " ", value));
                self.notes.push(format!("{} is not needed{why}", said.to_string_lossy()));
            }
            Refused(why) => return Err(format!("{}: {why}", word.to_string_lossy())),
        }
        Ok(())
    }

    /// `NAME=VALUE` from one word that has it all, or from two.
    fn define(
        &mut self,
        own: &Command,
        ours: &str,
        word: &OsStr,
        attached: Option<OsString>,
        rest: &mut dyn Iterator<Item = OsString>,
    ) -> Result<(), String> {
        let is_whole = attached.is_some();
        let mut text = value(own, word, attached, rest, DEFINITION)?;
        if !is_whole && !text.as_bytes().contains(&b'=') {
            let so_far = joined(word, " ", &text);
            text = joined(&text, "=", &value(own, &so_far, None, rest, DEFINITION)?);
        }
        if text.is_empty() || text.as_bytes().starts_with(b"=") {
            return Err(format!("{}: the name is empty; {DEFINITION}", word.to_string_lossy()));
        }
        self.words.push(given(ours, &text));
        Ok(())
    }

    /// Variables by their names.
    fn pass_on(
        &mut self,
        own: &Command,
        ours: &str,
        word: &OsStr,
        attached: Option<OsString>,
        rest: &mut dyn Iterator<Item = OsString>,
    ) -> Result<(), String> {
        let list = value(own, word, attached, rest, "give names with commas between them")?;
        let names = list.as_bytes().split(|byte| *byte == b',').filter(|name| !name.is_empty());
        self.words.extend(names.map(|name| given(ours, OsStr::from_bytes(name))));
        Ok(())
    }

    /// A place or an order, in our words where it is in others'.
    fn place(&mut self, ours: &str, value: &OsStr) -> Result<(), String> {
        let whole = joined(ours.as_ref(), "=", value);
        let taken = match value.to_str() {
            Some(text) => places::taken(ours, text)?.map(OsString::from),
            None => None,
        };
        let note = |taken: &OsString| {
            let (asked, taken) = (value.to_string_lossy(), taken.to_string_lossy());
            match taken.strip_prefix("--soft=") {
                Some(ranks) => {
                    format!("{ours} {asked} is taken as -n {ranks}, where no -n is given")
                }
                None => format!("{ours} {asked} is taken as {}", taken.replacen('=', " ", 1)),
            }
        };
        self.notes.extend(taken.as_ref().map(note));
        self.words.push(taken.unwrap_or(whole));
        Ok(())
    }
}

/// The value of `word`, from it or from the word behind it. If there is none, but an option, `wanted` says
/// what to do.
fn value(
    own: &Command,
    word: &OsStr,
    attached: Option<OsString>,
    rest: &mut dyn Iterator<Item = OsString>,
    wanted: &str,
) -> Result<OsString, String> {
    if let Some(value) = attached {
        return Ok(value);
    }
    let word = word.to_string_lossy();
    match rest.next() {
        None => Err(format!("{word}: nothing follows it; {wanted}")),
        Some(next) if is_option(own, &next) => {
            let next = next.to_string_lossy();
            Err(format!("{word}: {next} follows it, which is an option; {wanted}"))
        }
        Some(next) => Ok(next),
    }
}

/// The option of ours for output into `folder`, behind which Open MPI takes `:nojobid`, `:nocopy` or both.
fn output_into(folder: &OsStr) -> OsString {
    let qualifiers: [(&[u8], &[u8]); 4] = [
        (b":nojobid,nocopy", b",nocopy"),
        (b":nocopy,nojobid", b",nocopy"),
        (b":nocopy", b",nocopy"),
        (b":nojobid", b""),
    ];
    let bytes = folder.as_bytes();
    let qualified = qualifiers
        .iter()
        .find_map(|(theirs, ours)| bytes.strip_suffix(*theirs).map(|path| (path, *ours)));
    let (path, ours) = qualified.unwrap_or((bytes, b""));
    OsString::from_vec([b"--output=dir=", path, ours].concat())
}

/// Whether a word is an option that is known here, ours or another launcher's.
fn is_option(own: &Command, word: &OsStr) -> bool {
    let bytes = word.as_bytes();
    let (name, _) = parts(word);
    let is_count = bytes.strip_prefix(b"-n").is_some_and(is_number);
    bytes.starts_with(b"-")
        && (is_count || is_ours(own, name) || FOREIGN.iter().any(|(known, _)| name == *known))
}

fn is_number(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

/// An option of ours with its value in the same word.
fn given(ours: &str, value: &OsStr) -> OsString {
    joined(ours.as_ref(), if ours.starts_with("--") { "=" } else { "" }, value)
}

fn joined(first: &OsStr, between: &str, second: &OsStr) -> OsString {
    let bytes = [first.as_bytes(), between.as_bytes(), second.as_bytes()].concat();
    OsString::from_vec(bytes)
}

/// The name of an option without its dashes, and the value behind `=`.
fn parts(word: &OsStr) -> (&OsStr, Option<OsString>) {
    let bytes = word.as_bytes();
    let bytes = bytes.strip_prefix(b"--").or(bytes.strip_prefix(b"-")).unwrap_or(bytes);
    let mut fields = bytes.splitn(2, |byte| *byte == b'=');
    let name = OsStr::from_bytes(fields.next().unwrap_or_default());
    (name, fields.next().map(|value| OsStr::from_bytes(value).to_owned()))
}

/// A long option that has one dash gets its second one, so that clap knows it, or names it whole; and
/// `-np4` means `-n4`.
fn respelt(own: &Command, word: OsString) -> OsString {
    let (name, _) = parts(&word);
    let letters = name.as_bytes();
    if word.as_bytes().starts_with(b"--") || letters.len() < 2 {
        return word;
    }
    if let Some(count) = letters.strip_prefix(b"np").filter(|count| is_number(count)) {
        return given("-n", OsStr::from_bytes(count));
    }
    let is_long = own.get_arguments().filter_map(Arg::get_long).any(|long| name == long);
    // No number begins with a letter.
    let is_no_count = letters[0] == b'n' && letters[1].is_ascii_alphabetic();
    match is_long || is_no_count || option_of_letter(own, letters[0]).is_none() {
        true => joined("-".as_ref(), "", &word),
        false => word,
    }
}

/// Whether the word after this option of ours is its value.
fn awaits_value(own: &Command, word: &OsStr) -> bool {
    let takes_value = |option: &Arg| option.get_action().takes_values();
    let bytes = word.as_bytes();
    if let Some(name) = bytes.strip_prefix(b"--") {
        let mut options = own.get_arguments();
        let is_it = |option: &&Arg| option.get_long().is_some_and(|long| long.as_bytes() == name);
        return options.find(is_it).is_some_and(takes_value);
    }
    // The first letter that takes a value takes what follows it in the word, if anything does.
    let takes = |letter: &u8| option_of_letter(own, *letter).is_some_and(takes_value);
    bytes[1..].iter().position(takes).is_some_and(|at| at + 2 == bytes.len())
}

fn option_of_letter(own: &Command, letter: u8) -> Option<&Arg> {
    own.get_arguments().find(|option| option.get_short() == Some(char::from(letter)))
}

#[cfg(test)]
mod tests;
