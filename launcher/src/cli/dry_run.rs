//! `--dry-run`: prints the command of each rank of a job in the language of the shell. The job is checked as before a
//! start, and nothing is started.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::LaunchError;
use crate::cli::answer;
use crate::job::JobSpec;
use crate::job::spawn::{self, Program};

/// Returns a line for each rank: `rank 0: cd FOLDER && env NAME=VALUE PROGRAM ARGS  # bound to processor 3`, with the
/// absolute path of the program.
///
/// # Errors
/// [`LaunchError`], as before the start of the job.
pub fn text(spec: &JobSpec) -> Result<String, LaunchError> {
    let prepared = spawn::check(spec, (0..spec.ranks()).collect())?;
    let note = prepared.placement.note().map(|note| format!("# {note}\n"));
    let lines = prepared.ranks().map(|(rank, program)| {
        let host = spec.hosts.as_ref().map(|hosts| &hosts.names[hosts.of_rank[rank]]);
        let host = host.map_or(String::new(), |host| format!("  # on {host}"));
        let place = prepared.place_of(rank).map_or(String::new(), |words| format!("  # {words}"));
        format!("rank {rank}: {}{host}{place}\n", line(program))
    });
    Ok(note.into_iter().chain(lines).collect())
}

/// Prints the notes about the command line and the text, and returns the exit code.
///
/// # Errors
/// Those of [`text`] and [`answer::print`].
pub fn print(spec: &JobSpec) -> Result<u8, LaunchError> {
    for note in &spec.notes {
        answer::complain(format_args!("mpjrun: {note}"));
    }
    answer::print(&text(spec)?)
}

fn line(program: &Program<'_>) -> String {
    let mut line = String::new();
    if let Some(folder) = &program.app.wdir {
        line += &format!("cd {} && ", quoted(folder.as_os_str()));
    }
    if !program.environment.is_empty() {
        line += "env ";
    }
    for (name, value) in &program.environment {
        line += &format!("{}={} ", quoted(name), quoted(value));
    }
    line += &quoted(program.path.as_os_str());
    for arg in &program.app.args {
        line += &format!(" {}", quoted(arg));
    }
    line
}

/// Quotes a word for a shell; one that is not text or has control characters as `$'...'`, for bash.
fn quoted(word: &OsStr) -> String {
    match word.to_str().filter(|text| !text.contains(char::is_control)) {
        Some(text) => shell_words::quote(text).into_owned(),
        None => format!("$'{}'", word.as_bytes().escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{App, Export};

    #[test]
    fn every_rank_has_a_line() {
        let export =
            |name: &str, value: &str| Export { name: name.into(), value: Some(value.into()) };
        let mut first = App::new(1, "/bin/sh");
        first.args = vec!["-c".into(), "echo $0".into(), "".into()];
        let mut second = App::new(2, "sh");
        second.path = Some("/bin".into());
        second.wdir = Some("/tmp".into());
        second.exports = vec![export("A", "own"), export("C", "a b")];
        let mut spec = JobSpec::new(vec![first, second]);
        spec.exports = vec![export("A", "all"), export("MPJ_GET", "am")];
        let line = |rank| format!("rank {rank}: cd /tmp && env A=own C='a b' MPJ_GET=am /bin/sh");
        let first = "rank 0: env A=all MPJ_GET=am /bin/sh -c 'echo $0' ''";
        let expected = format!("{first}\n{}\n{}\n", line(1), line(2));
        assert_eq!(text(&spec).expect("a job that could start"), expected);
    }

    #[test]
    fn a_word_stays_on_its_line() {
        assert_eq!(quoted("a\nb'c\\".as_ref()), r"$'a\nb\'c\\'");
        assert_eq!(quoted(OsStr::from_bytes(b"\xffx")), r"$'\xffx'");
        assert_eq!(quoted("é".as_ref()), "é");
    }

    #[test]
    fn what_could_not_start_is_refused() {
        let error = text(&JobSpec::new(vec![App::new(2, "/absent")])).expect_err("not there");
        assert_eq!(error.exit_code(), 127);
    }
}
