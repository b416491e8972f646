//! Tuned values reach the ranks from a file, or are refused before a rank starts; the text of `--info`.

#![allow(clippy::print_stderr, reason = "a test that cannot be made here says so")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use mpj_launcher::machine::Machine;
use mpj_launcher::tuning_file;
use transport_lapi::config::Tuning;

use super::support::{Finished, MPJRUN, command, start};

const WORD: &str = "eager<=1024,rendezvous;12288;4096<=16384,8192;77";

/// A file of `WORD` for this machine at `path`, with `from` replaced by `to`.
fn file(path: &Path, from: &str, to: &str) {
    let tuning: Tuning = WORD.parse().expect("legal");
    tuning_file::write(path, &tuning, &Machine::here()).expect("room");
    let text = fs::read_to_string(path).expect("just written");
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).expect("room");
}

/// `mpjrun` with these words, where `MPJ_TUNING` is `source` and the user's folder is `folder`.
fn with(words: &[&str], source: &str, folder: &Path) -> Finished {
    let mut command = command(words);
    start(command.env("MPJ_TUNING", source).env("XDG_CONFIG_HOME", folder)).finish()
}

const TELL: [&str; 5] = ["-n", "2", "sh", "-c", "echo $MPJ_TUNED"];

#[test]
fn all_ranks_get_the_values_of_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let user = folder.path().join("mpj/tuning.toml");
    file(&user, "spin", "spin");
    let tuned = format!("{WORD}\n{WORD}\n");
    let built_in = format!("{0}\n{0}\n", Tuning::default());
    assert_eq!(with(&TELL, "", folder.path()).assert_code(0).text(), tuned);
    assert_eq!(with(&TELL, "none", folder.path()).assert_code(0).text(), built_in);
    let (named, elsewhere) = (user.to_str().expect("text"), folder.path().join("nothing"));
    assert_eq!(with(&TELL, named, &elsewhere).assert_code(0).text(), tuned);
    assert_eq!(with(&TELL, "user", &elsewhere).assert_code(0).text(), built_in);
    let export = format!("MPJ_TUNING={named}");
    let exported = [["-x", &export].as_slice(), &TELL].concat();
    assert_eq!(with(&exported, "none", &elsewhere).assert_code(0).text(), tuned);
}

#[test]
fn a_file_that_is_refused_starts_no_rank() {
    let folder = tempfile::tempdir().expect("a folder");
    let user = folder.path().join("mpj/tuning.toml");
    for (from, to, says) in [
        ("spin = 77", "spin = ", "tuning.toml: line "),
        ("spin = 77", "spin = 1", "tuning.toml: wait.spin is 1; it has to be"),
        ("usable = ", "usable = 9", "tuning.toml: measured on "),
        ("format = 1", "format = 7", "tuning.toml: format 7, this version reads format 1"),
    ] {
        file(&user, from, to);
        for words in [&TELL[..], &["--info"]] {
            let refused = with(words, "", folder.path()).assert_code(2).assert_says(says);
            let refused = refused.assert_says("set MPJ_TUNING=none");
            assert_eq!((refused.text(), refused.err.lines().count()), (String::new(), 1));
        }
    }
    let missing = with(&TELL, "/nowhere/t.toml", folder.path()).assert_code(2);
    missing.assert_says("mpjrun: tuning file /nowhere/t.toml: cannot be read: No such file");
}

/// The command line for one whom the permissions of `path` stop: where they do not, since root passes over
/// them, its right to do so is taken away. `None` where that cannot be done.
fn stopped_by(path: &Path) -> Option<Command> {
    let plain = Command::new("env");
    let mut confined = Command::new("setpriv");
    confined.arg("--bounding-set=-dac_override,-dac_read_search");
    let is_stopped = |command: &Command| {
        let mut tried = Command::new(command.get_program());
        tried.args(command.get_args()).args(["test", "-r"]).arg(path);
        tried.status().is_ok_and(|status| status.code() == Some(1))
    };
    [plain, confined].into_iter().find(is_stopped)
}

#[test]
fn a_file_of_another_user_is_passed_over_unless_it_was_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let user = folder.path().join("mpj/tuning.toml");
    file(&user, "spin", "spin");
    fs::set_permissions(&user, Permissions::from_mode(0o000)).expect("it is ours");
    let run = |words: &[&str], source: &str| {
        let mut command = stopped_by(&user)?;
        command.arg(MPJRUN).args(words).stdin(Stdio::null());
        command.env("MPJ_TUNING", source).env("XDG_CONFIG_HOME", folder.path());
        Some(start(&mut command).finish())
    };
    let built_in = format!("{0}\n{0}\n", Tuning::default());
    let says = format!(
        "mpjrun: tuning file {} cannot be read: Permission denied (os error 13); the built-in values \
         are used\n",
        user.display()
    );
    let Some(passed_over) = run(&TELL, "") else {
        return eprintln!("skipped: no setpriv here that takes root's rights away");
    };
    let passed_over = passed_over.assert_code(0);
    assert_eq!((passed_over.text(), &passed_over.err), (built_in, &says));
    let again = |words: &[&str], source| run(words, source).expect("as before");
    let info = again(&["--info"], "user").assert_code(0).text();
    assert!(info.contains("default: tuning file /"), "{info}");
    let named = again(&TELL, user.to_str().expect("text")).assert_code(2);
    named.assert_says("cannot be read: Permission denied (os error 13); measure again");
}

#[test]
fn a_folder_that_cannot_be_there_has_no_file_and_a_file_that_is_broken_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let built_in = format!("{0}\n{0}\n", Tuning::default());
    let nowhere = with(&TELL, "", Path::new("/dev/null")).assert_code(0);
    assert_eq!((nowhere.text(), &*nowhere.err), (built_in, ""));
    let user = folder.path().join("mpj/tuning.toml");
    fs::create_dir_all(&user).expect("room");
    with(&TELL, "", folder.path()).assert_code(2).assert_says("cannot be read: Is a directory");
    fs::remove_dir(&user).expect("it is empty");
    symlink("nowhere", &user).expect("room");
    with(&TELL, "", folder.path()).assert_code(2).assert_says("cannot be read: No such file");
}

#[test]
fn info_says_every_value_and_where_it_is_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.toml");
    file(&path, "spin", "spin");
    let named = path.to_str().expect("text");
    let words = ["--info", "-n", "3", "--backend", "auto", "-x", "MPJ_WAIT=block"];
    let mut command = command(words);
    command.env("MPJ_TUNING", named).env("MPJ_GET", "am").env_remove("MPJ_EARLY_LIMIT");
    let text = start(&mut command).finish().assert_code(0).text();
    // Columns are as wide as the paths make them.
    let lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let from_file = format!("tuning file {named}");
    for expected in [
        "ranks 3 command line (-n)",
        "MPJ_BACKEND auto command line (--backend)",
        "MPJ_GET am environment",
        "MPJ_WAIT block command line (-x)",
        "MPJ_EARLY_LIMIT 64M default",
        &format!("MPJ_TUNING {named} environment"),
        &format!("protocols eager<=1024, rendezvous {from_file}"),
        &format!("pieces.whole_up_to 12288 {from_file}"),
        &format!("pieces 4096<=16384, 8192 {from_file}"),
        &format!("wait.spin 77 {from_file}"),
        "adapter shm",
        "up to 1024 bytes eager, as one frame",
        "longer rendezvous",
    ] {
        assert!(lines.iter().any(|line| line == expected), "no {expected:?} in {text}");
    }
    let segment = "segment for 3 ranks: ";
    assert!(lines.iter().any(|line| line.starts_with(segment)), "no {segment:?} in {text}");
}
