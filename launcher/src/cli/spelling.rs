//! Rewrites command lines for `mpirun` and `mpiexec` into words that clap reads: two dashes before long options, one
//! word for a variable and its value. The options of other launchers are aliases in the declarations of ours. Pure;
//! called for every section of a command line before clap.
//!
//! - CW1: words behind PROGRAM are not changed. Clap's description of the options says where they end, so new options
//!   need no change here.
//! - CW2: the value of an option is never taken for an option. A known option in place of a variable's value is
//!   refused, since the value was forgotten.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::{Arg, Command};

/// Other launchers' letters for options of ours.
const LETTERS: [(&str, &str); 5] = [
    ("-c", "--np"),
    ("-f", "--hostfile"),
    ("-H", "--host"),
    ("-N", "--per-host"),
    ("-s", "--stdin"),
];

/// Options whose value may be two words, NAME and VALUE.
const VARIABLES: [&str; 2] = ["--env", "--genv"];

/// The form of those options, for errors.
const DEFINITION: &str = "give NAME VALUE or NAME=VALUE";

/// Rewrites a section for clap. `own` is the built command that will parse it.
///
/// # Errors
/// Names a variable that has no value.
pub(crate) fn respelt(
    own: &Command,
    section: impl IntoIterator<Item = OsString>,
) -> Result<Vec<OsString>, String> {
    let mut rest = section.into_iter();
    let mut words = Vec::new();
    while let Some(word) = rest.next() {
        if !is_option(&word) {
            words.push(word);
            words.extend(rest);
            break;
        }
        words.extend(with_values(own, word, &mut rest)?);
    }
    Ok(words)
}

/// The words of a command line in two lists.
#[derive(Debug, Default)]
pub(crate) struct Separated {
    /// The known options with their values, rewritten for clap.
    pub(crate) known: Vec<OsString>,
    /// All other words, unchanged.
    pub(crate) unknown: Vec<OsString>,
}

/// Separates the options of `own` from all other words.
///
/// # Errors
/// As [`respelt`].
pub(crate) fn separate(own: &Command, words: Vec<OsString>) -> Result<Separated, String> {
    let mut rest = words.into_iter();
    let mut separated = Separated::default();
    while let Some(word) = rest.next() {
        if is_option(&word) && is_known(own, &word) {
            separated.known.extend(with_values(own, word, &mut rest)?);
        } else {
            separated.unknown.push(word);
        }
    }
    Ok(separated)
}

/// Rewrites an option for clap, with its values, which are the next words.
fn with_values(
    own: &Command,
    word: OsString,
    rest: &mut dyn Iterator<Item = OsString>,
) -> Result<Vec<OsString>, String> {
    let option = dashed(own, word);
    if VARIABLES.iter().any(|name| option == *name) {
        return Ok(vec![joined(&option, &definition(own, &option, rest)?)]);
    }
    let values = values_behind(own, &option);
    let words: Vec<OsString> = std::iter::once(option).chain(rest.take(values)).collect();
    Ok(per_host(&words).map_or(words, |ranks| vec![ranks]))
}

fn is_option(word: &OsStr) -> bool {
    word.as_bytes().starts_with(b"-") && word != "-" && word != "--"
}

/// The option for N ranks on each host, if this is `--map-by ppr:N:node`.
fn per_host(option: &[OsString]) -> Option<OsString> {
    let option: Option<Vec<&str>> = option.iter().map(|word| word.to_str()).collect();
    let option = option?.join("=");
    let ranks = option.strip_prefix("--map-by=ppr:")?.strip_suffix(":node")?;
    Some(format!("--per-host={ranks}").into())
}

/// A variable and its value, from one word or from two.
fn definition(
    own: &Command,
    option: &OsStr,
    rest: &mut dyn Iterator<Item = OsString>,
) -> Result<OsString, String> {
    let mut next = || match rest.next() {
        Some(word) if is_option(&word) && is_known(own, &word) => {
            let (option, word) = (option.to_string_lossy(), word.to_string_lossy());
            Err(format!("{option}: {word} follows, which is an option; {DEFINITION}"))
        }
        Some(word) => Ok(word),
        None => Err(format!("{}: a value is missing; {DEFINITION}", option.to_string_lossy())),
    };
    let name = next()?;
    if name.as_bytes().contains(&b'=') { Ok(name) } else { Ok(joined(&name, &next()?)) }
}

fn joined(name: &OsStr, value: &OsStr) -> OsString {
    OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat())
}

/// Rewrites the name of an option: another launcher's letter becomes ours, a long option with one dash gets a second
/// one, and `-np4` becomes `-n4`.
fn dashed(own: &Command, word: OsString) -> OsString {
    if let Some((_, ours)) = LETTERS.iter().find(|(letter, _)| word == *letter) {
        return ours.into();
    }
    let bytes = word.as_bytes();
    let letters = bytes[1..].split(|byte| *byte == b'=').next().unwrap_or_default();
    if let Some(count) = letters.strip_prefix(b"np").filter(|count| is_number(count)) {
        return OsString::from_vec([b"-n", count].concat());
    }
    // No number of ranks begins with a letter.
    let is_no_count = letters.len() > 1 && letters[0] == b'n' && letters[1].is_ascii_alphabetic();
    let is_cluster = letters.len() < 2 || of_letter(own, letters[0]).is_some();
    match bytes.starts_with(b"--") || (is_cluster && !is_no_count && !is_long(own, letters)) {
        true => word,
        false => OsString::from_vec([b"-", bytes].concat()),
    }
}

pub(super) fn is_number(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

/// How many words behind this option are its values.
fn values_behind(own: &Command, option: &OsStr) -> usize {
    let bytes = option.as_bytes();
    let values = |option: &Arg| match option.get_action().takes_values() {
        true => option.get_num_args().map_or(1, |range| range.min_values()),
        false => 0,
    };
    if let Some(name) = bytes.strip_prefix(b"--") {
        return own.get_arguments().find(|arg| has_name(arg, name)).map_or(0, values);
    }
    // Clap itself finds the value of several letters in one word.
    of_letter(own, bytes[1]).filter(|_| bytes.len() == 2).map_or(0, values)
}

/// Whether clap knows this option, or the first of several letters.
fn is_known(own: &Command, word: &OsStr) -> bool {
    let word = dashed(own, word.to_owned());
    match word.as_bytes().strip_prefix(b"--") {
        Some(name) => is_long(own, name.split(|byte| *byte == b'=').next().unwrap_or_default()),
        None => of_letter(own, word.as_bytes()[1]).is_some(),
    }
}

fn is_long(own: &Command, name: &[u8]) -> bool {
    own.get_arguments().any(|arg| has_name(arg, name))
}

fn has_name(arg: &Arg, name: &[u8]) -> bool {
    let aliases = arg.get_all_aliases().unwrap_or_default();
    arg.get_long().into_iter().chain(aliases).any(|long| long.as_bytes() == name)
}

fn of_letter(own: &Command, letter: u8) -> Option<&Arg> {
    own.get_arguments().find(|arg| arg.get_short() == Some(char::from(letter)))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::{Mpjrun, built};

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[track_caller]
    fn assert_becomes(line: &str, expected: &str) {
        let own = built(Mpjrun::command());
        assert_eq!(respelt(&own, words(line)).expect(line), words(expected), "{line}");
    }

    #[test]
    fn long_options_get_two_dashes() {
        for (line, expected) in [
            ("-np 4 p", "--np 4 p"),
            ("-np4 p", "-n4 p"),
            ("-np=4 p", "--np=4 p"),
            ("-c 4 p", "--np 4 p"),
            ("-H localhost -f file p", "--host localhost --hostfile file p"),
            ("-N 2 -s none p", "--per-host 2 --stdin none p"),
            ("-ppn 2 -perhost=3 p", "--ppn 2 --perhost=3 p"),
            ("-hosts=localhost p", "--hosts=localhost p"),
            ("-map-by ppr:2:node p", "--per-host=2 p"),
            ("--map-by=ppr:2:node p", "--per-host=2 p"),
            ("-map-by socket p", "--map-by socket p"),
            ("-mca btl self,vader p", "--mca btl self,vader p"),
            ("-help", "--help"),
            ("-bogus p", "--bogus p"),
            ("-nosuch p", "--nosuch p"),
            ("-np2x p", "--np2x p"),
            ("-n2x p", "-n2x p"),
        ] {
            assert_becomes(line, expected);
        }
    }

    #[test]
    fn a_variable_and_its_value_become_one_word() {
        for (line, expected) in [
            ("-genv A b p", "--genv=A=b p"),
            ("-genv A=b p", "--genv=A=b p"),
            ("-genv=A=b p", "--genv=A=b p"),
            ("-genv A -1 p", "--genv=A=-1 p"),
            ("-genv A -O2 p", "--genv=A=-O2 p"),
            ("-env A b p", "--env=A=b p"),
            ("-x A p", "-x A p"),
        ] {
            assert_becomes(line, expected);
        }
        for (line, said) in [
            ("-genv", "--genv: a value is missing; give NAME VALUE"),
            ("-genv A", "--genv: a value is missing"),
            ("-genv A -n 1 p", "--genv: -n follows, which is an option; give NAME VALUE"),
            ("-genv A -n4 p", "--genv: -n4 follows"),
            ("-genv A -np=4 p", "--genv: -np=4 follows"),
            ("-env A --oversubscribe p", "--env: --oversubscribe follows"),
            ("-env -l p", "--env: -l follows"),
        ] {
            let text = respelt(&built(Mpjrun::command()), words(line)).expect_err(line);
            assert!(text.starts_with(said), "{line}: {text}");
        }
    }

    #[test]
    fn the_programs_words_are_left_alone() {
        for rest in ["p -np 2 --oversubscribe", "-- -np --mca a b", "- -np"] {
            let values = ["--wdir --mca", "-x -np", "--genv=-np"];
            let options = ["-n 2", "-n2", "-l", "-ln 2", "--np=2", "-xA=1", "--backend eager", ""];
            for options in options.iter().chain(&values) {
                let line = format!("{options} {rest}");
                assert_becomes(&line, &line);
            }
        }
    }

    #[test]
    fn words_that_are_no_text_pass() {
        let odd = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let section =
            [odd(b"--wdir=\xff"), "-genv".into(), odd(b"A\xff"), odd(b"\xfe"), odd(b"\xff")];
        let expected = [odd(b"--wdir=\xff"), odd(b"--genv=A\xff=\xfe"), odd(b"\xff")];
        assert_eq!(respelt(&built(Mpjrun::command()), section).expect("legal"), expected);
    }
}
