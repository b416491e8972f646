//! What the command line of `mpjrun` accepts and refuses.

use clap::error::ErrorKind;

use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn parse(line: &str) -> Result<JobSpec, clap::Error> {
    match parse_mpjrun(words(&format!("mpjrun {line}")))? {
        Request::Run(spec) => Ok(spec),
        Request::Info(asked) => panic!("{line} asks for {asked:?}"),
    }
}

fn refusal(line: &str) -> (ErrorKind, String) {
    let error = parse(line).expect_err(line);
    (error.kind(), error.to_string())
}

#[test]
fn every_option_is_taken() {
    let line = "-n 3 --backend eager -l --timeout 1.5 --stall 9 --deadlock ignore -x A=b=c -x HOME \
                --wdir /tmp prog";
    let spec = parse(line).expect("all legal");
    let export = |name: &str, value: Option<&str>| Export {
        name: name.into(),
        value: value.map(OsString::from),
    };
    let expected = JobSpec {
        ranks: 3,
        backend: Some(BackendChoice::Eager),
        label: true,
        timeout: Some(Duration::from_millis(1500)),
        vigilance: Vigilance {
            ends_deadlocks: false,
            stall: Some(Duration::from_secs(9)),
            ..Vigilance::default()
        },
        exports: vec![export("A", Some("b=c")), export("HOME", None)],
        wdir: Some("/tmp".into()),
        program: "prog".into(),
        args: Vec::new(),
        needless: Vec::new(),
    };
    assert_eq!(spec, expected);
}

#[test]
fn info_needs_no_program_and_takes_none() {
    let parsed = parse_mpjrun(words("mpjrun -np 3 --info --backend eager")).expect("legal");
    let (ranks, backend) = (Some(3), Some(BackendChoice::Eager));
    assert_eq!(parsed, Request::Info(Asked { ranks, backend, exports: Vec::new() }));
    assert_eq!(refusal("--info prog").0, ErrorKind::ArgumentConflict);
    assert_eq!(parse("prog --info").expect("the program's own business").args, words("--info"));
}

#[test]
fn what_follows_the_program_is_the_programs() {
    for args in ["-n 4 -l --backend nonsense --help", "-np 9 -- --version -x", "-- -n"] {
        let spec = parse(&format!("-n 2 prog {args}")).expect("the program's own business");
        assert_eq!((spec.ranks, spec.args), (2, words(args)), "{args}");
    }
}

#[test]
fn the_other_spellings_of_n_are_taken() {
    for line in [
        "-np 4 p",
        "-np4 p",
        "-l -np4 p",
        "--np 4 p",
        "--np=4 p",
        "-n4 p",
        "-l -np 4 p",
        "-x np -np 4 p",
    ] {
        assert_eq!(parse(line).expect(line).ranks, 4, "{line}");
    }
}

#[test]
fn options_of_other_launchers_that_are_not_needed_are_noted() {
    let spec = parse("--allow-run-as-root -n 4 --oversubscribe p --oversubscribe").expect("legal");
    assert_eq!(spec.needless, ["--oversubscribe", "--allow-run-as-root"]);
    assert_eq!((spec.ranks, spec.args), (4, words("--oversubscribe")));
}

#[test]
fn a_value_that_looks_like_np_is_left_alone() {
    assert_eq!(accept_np(words("mpjrun -x -np p -np")), words("mpjrun -x -np p -np"));
    assert_eq!(accept_np(words("mpjrun -- -np")), words("mpjrun -- -np"));
    assert_eq!(accept_np(words("mpjrun -np -np")), words("mpjrun -n -np"));
    assert_eq!(accept_np(words("mpjrun p -np2")), words("mpjrun p -np2"));
    assert_eq!(accept_np(words("mpjrun -np2x p")), words("mpjrun -np2x p"));
    assert_eq!(accept_np(words("mpjrun")), words("mpjrun"));
}

#[test]
fn without_n_there_are_as_many_ranks_as_cores() {
    let cores = std::thread::available_parallelism().expect("a number").get();
    assert_eq!(parse("prog").expect("n is optional").ranks, cores.min(MAX_TASKS));
}

#[test]
fn impossible_numbers_of_ranks_are_refused_with_the_limit() {
    for number in ["0", "257", "100000", "two", "1.5", "99999999999999999999999"] {
        let (kind, text) = refusal(&format!("-n {number} prog"));
        assert_eq!(kind, ErrorKind::ValueValidation, "{number}");
        assert!(text.contains(number) && text.contains("a job has 1 to 256 ranks"), "{text}");
    }
    assert_eq!(parse("-n 256 prog").expect("the limit itself").ranks, 256);
}

#[test]
fn an_unknown_option_gets_a_suggestion() {
    let (kind, text) = refusal("--bakend eager prog");
    assert_eq!(kind, ErrorKind::UnknownArgument);
    assert!(text.contains("'--bakend'") && text.contains("'--backend'"), "{text}");
}

#[test]
fn an_unknown_backend_gets_the_legal_ones() {
    let (kind, text) = refusal("--backend fast prog");
    assert_eq!(kind, ErrorKind::InvalidValue);
    assert!(text.contains("fast") && text.contains("auto, eager, rendezvous"), "{text}");
}

#[test]
fn a_missing_program_is_named() {
    let (kind, text) = refusal("-n 2");
    assert_eq!(kind, ErrorKind::MissingRequiredArgument);
    assert!(text.contains("<PROGRAM>"), "{text}");
}

#[test]
fn impossible_timeouts_and_variables_are_refused() {
    for line in ["--timeout 0", "--timeout -1", "--timeout nan", "--timeout 1e30", "-x =v"] {
        let error = parse(&format!("{line} prog")).expect_err(line);
        assert!([ErrorKind::ValueValidation, ErrorKind::UnknownArgument].contains(&error.kind()));
    }
}

#[test]
fn the_manual_lists_every_setting_and_every_exit_code() {
    let text = refusal("--help").1;
    for row in SETTINGS {
        assert!(text.contains(row.name) && text.contains(row.legal), "{} is missing", row.name);
    }
    for code in ["124", "125", "126", "127", "128 + S"] {
        assert!(text.contains(code), "{code} is missing");
    }
}
