//! Other launchers' options, one by one.

use clap::{Args, CommandFactory};

use super::*;
use crate::cli::{JobOptions, Mpjrun, built};

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn own() -> Command {
    built(Mpjrun::command())
}

#[track_caller]
fn assert_becomes(line: &str, expected: &str) {
    let translated = translate(&own(), words(line)).expect(line);
    assert_eq!(translated.words, words(expected), "{line}");
    assert!(translated.notes.is_empty(), "{translated:?}");
}

#[test]
fn other_spellings_of_our_options() {
    for (line, expected) in [
        ("-np 4 p", "--np 4 p"),
        ("-np4 p", "-n4 p"),
        ("-np=4 p", "--np=4 p"),
        ("-c 4 p", "--np 4 p"),
        ("-wdir /d p", "--wdir /d p"),
        ("-wd /d p", "--wdir /d p"),
        ("-configfile f", "--configfile f"),
        ("--app f", "--configfile f"),
        ("-prepend-rank p", "-l p"),
        ("--tag-output p", "--output=tag p"),
        ("-timestamp-output p", "--output=timestamp p"),
        ("-timeout 3 p", "--timeout 3 p"),
        ("-soft 1:4 p", "--soft 1:4 p"),
        ("-host localhost p", "--host localhost p"),
        ("-hosts=localhost p", "--host=localhost p"),
        ("-H localhost p", "--host localhost p"),
        ("-f file p", "--hostfile file p"),
        ("-machinefile file p", "--hostfile file p"),
        ("-help", "--help"),
        ("--output-filename d/e p", "--output=dir=d/e p"),
        ("--output-filename d:nocopy p", "--output=dir=d,nocopy p"),
        ("--output-filename=d:nojobid,nocopy p", "--output=dir=d,nocopy p"),
        ("--output-filename d:nojobid p", "--output=dir=d p"),
        ("-print-rank-map p", "--report-bindings p"),
        ("--display-map p", "--report-bindings p"),
        ("-bind-to core p", "--bind-to=core p"),
        ("--map-by=socket p", "--map-by=socket p"),
        ("--bind-to", "--bind-to"),
    ] {
        assert_becomes(line, expected);
    }
}

#[test]
fn variables_in_all_their_spellings() {
    for (line, expected) in [
        ("-genv A b p", "--genv=A=b p"),
        ("--genv A b p", "--genv=A=b p"),
        ("-genv A=b p", "--genv=A=b p"),
        ("-genv=A=b p", "--genv=A=b p"),
        ("-genv A -1 p", "--genv=A=-1 p"),
        ("-genv=A p", "--genv=A p"),
        ("-genv A -O2 p", "--genv=A=-O2 p"),
        ("-genv A=-n p", "--genv=A=-n p"),
        ("-env A b p", "-xA=b p"),
        ("-env A=b=c p", "-xA=b=c p"),
        ("-genvlist A,B p", "--genv=A --genv=B p"),
        ("-envlist A,B p", "-xA -xB p"),
        ("-envlist A, p q", "-xA p q"),
        ("-genvlist=,A,,B p", "--genv=A --genv=B p"),
        ("-envlist , p q", "p q"),
        ("--gx A=b,c p", "--genv A=b,c p"),
    ] {
        assert_becomes(line, expected);
    }
}

#[test]
fn what_is_missing_is_named_rather_than_taken_from_the_next_option() {
    for (line, said) in [
        ("-genv", "-genv: nothing follows it; give NAME VALUE or NAME=VALUE"),
        ("-genv A", "-genv A: nothing follows it; give NAME VALUE"),
        ("-genv A -n 1 p", "-genv A: -n follows it, which is an option; give NAME VALUE"),
        ("-genv A -n4 p", "-genv A: -n4 follows it"),
        ("-genv A -np=4 p", "-genv A: -np=4 follows it"),
        ("-env A --oversubscribe p", "-env A: --oversubscribe follows it"),
        ("-env -l p", "-env: -l follows it"),
        ("-env= p", "-env=: the name is empty; give NAME VALUE"),
        ("-genv =b p", "-genv: the name is empty"),
        ("-envlist", "-envlist: nothing follows it; give names"),
        ("-envlist -n 1 p", "-envlist: -n follows it"),
        (
            "--output-filename -n 1 p",
            "--output-filename: -n follows it, which is an option; give a",
        ),
        ("--output-filename", "--output-filename: nothing follows it; give a folder"),
    ] {
        let text = translate(&own(), words(line)).expect_err(line);
        assert!(text.starts_with(said), "{line}: {text}");
    }
}

#[test]
fn places_that_are_not_ours_become_the_nearest() {
    for (line, expected, note) in [
        (
            "-map-by ppr:2:node p",
            "--soft=2 p",
            "--map-by ppr:2:node is taken as -n 2, where no -n is given",
        ),
        ("--map-by node:PE=1 p", "--map-by=node p", "--map-by node:PE=1 is taken as --map-by node"),
        ("--bind-to=numa p", "--bind-to=socket p", "--bind-to numa is taken as --bind-to socket"),
    ] {
        let translated = translate(&own(), words(line)).expect(line);
        let expected = Translated { words: words(expected), notes: vec![note.to_owned()] };
        assert_eq!(translated, expected, "{line}");
    }
    let text = translate(&own(), words("--map-by slot:PE=2 p")).expect_err("it cannot be done");
    assert!(text.starts_with("--map-by slot:PE=2: "), "{text}");
}

#[test]
fn what_is_not_needed_is_noted_with_its_values() {
    for (line, note) in [
        ("--oversubscribe p", "--oversubscribe is not needed"),
        ("--allow-run-as-root p", "--allow-run-as-root is not needed"),
        ("--use-hwthread-cpus p", "--use-hwthread-cpus is not needed"),
        ("--mca btl self,vader p", "--mca btl self,vader is not needed"),
        ("-mca btl ^openib p", "-mca btl ^openib is not needed"),
        ("--gmca a -b p", "--gmca a -b is not needed"),
        ("-genvall p", "-genvall is not needed: ranks inherit this environment"),
        ("-arch x p", "-arch x is not needed: every rank runs on this host"),
        ("-v p", "-v is not needed: what goes wrong is said anyway"),
        ("-q p", "-q is not needed: only what goes wrong is said"),
        ("-usize 8 p", "-usize 8 is not needed: ranks start no others"),
        ("-nooversubscribe p", "-nooversubscribe is not needed: ranks may share a core"),
        (
            "--merge-stderr-to-stdout p",
            "--merge-stderr-to-stdout is not needed: 2>&1 behind the command joins the streams",
        ),
        ("-check_mpi p", "-check_mpi is not needed: deadlocks are found and reported anyway"),
        ("--preload-binary p", "--preload-binary is not needed: every rank runs on this host"),
        (
            "--cpus-per-rank 4 p",
            "--cpus-per-rank 4 is not needed: a rank may use every core unless --bind-to binds it",
        ),
        ("--rank-by slot p", "--rank-by slot is not needed: ranks are numbered in order"),
    ] {
        let translated = translate(&own(), words(line)).expect(line);
        let expected = Translated { words: words("p"), notes: vec![note.to_owned()] };
        assert_eq!(translated, expected, "{line}");
    }
}

#[test]
fn the_programs_words_are_left_alone() {
    for rest in ["p -np 2 --oversubscribe", "-- -np --mca a b", "- -np"] {
        for options in ["-n 2", "-n2", "-l", "-ln 2", "--np=2", "-xA=1", "--backend eager", ""] {
            let line = format!("{options} {rest}");
            assert_becomes(&line, &line);
        }
    }
}

#[test]
fn a_value_that_looks_like_an_option_is_left_alone() {
    for line in ["-x -np p -np", "-lx -np p", "--wdir --mca p", "--genv=-np p"] {
        assert_becomes(line, line);
    }
    assert_becomes("-np -np", "--np -np");
    assert_becomes("-l -np 4 p", "-l --np 4 p");
}

#[test]
fn an_unknown_option_with_one_dash_is_named_whole() {
    assert_becomes("-bogus p", "--bogus p");
    assert_becomes("-np2x p", "--np2x p");
    assert_becomes("-nosuch p", "--nosuch p");
    assert_becomes("-n2x p", "-n2x p");
    for (line, said) in [
        ("-envnone p", "env -i"),
        ("-nolocal p", "ranks run on this host only"),
        ("-file f p", "--configfile"),
        ("-outfile-pattern=out.%r p", "--output dir=FOLDER"),
        ("-errfile-pattern err.%r p", "--output dir=FOLDER"),
        ("--xterm 0 p", "--output dir=FOLDER"),
        ("--gdb p", "--report-bindings names the processes"),
    ] {
        let text = translate(&own(), words(line)).expect_err(line);
        let option = line.split([' ', '=']).next().expect("a word");
        assert!(text.starts_with(option) && text.contains(said), "{text}");
    }
}

#[test]
fn words_that_are_no_text_pass() {
    let odd = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let section = [odd(b"--wdir=\xff"), "-genv".into(), odd(b"A\xff"), odd(b"\xfe"), odd(b"\xff")];
    let translated = translate(&own(), section).expect("legal");
    let expected = [odd(b"--wdir=\xff"), odd(b"--genv=A\xff=\xfe"), odd(b"\xff")];
    assert_eq!(translated.words, expected);
}

#[test]
fn no_option_of_ours_is_taken_for_another_launchers() {
    let options = JobOptions::augment_args(Command::new(""));
    // Those that take what ours does, and more.
    let wider = ["genv", "bind-to", "map-by"];
    let longs = options.get_arguments().filter_map(Arg::get_long);
    let ours = longs.filter(|long| !wider.contains(long));
    let shorts: Vec<String> =
        options.get_arguments().filter_map(Arg::get_short).map(String::from).collect();
    for name in ours.chain(shorts.iter().map(String::as_str)) {
        assert!(!FOREIGN.iter().any(|(foreign, _)| *foreign == name), "{name}");
    }
}
