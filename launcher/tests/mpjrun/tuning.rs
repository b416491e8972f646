//! Tuned values: from a file to the ranks, or refused before one starts; and what `--info` says.

use std::fs;
use std::path::Path;

use mpj_launcher::machine::Machine;
use mpj_launcher::tuning_file;
use transport_lapi::config::Tuning;

use super::support::{Finished, command, start};

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
