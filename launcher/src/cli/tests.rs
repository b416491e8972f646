//! What the command line of `mpjrun` accepts and refuses.

use clap::ValueEnum;
use std::time::Duration;
use transport_lapi::adapters::MAX_TASKS_PER_HOST;
use transport_lapi::config::{BackendChoice, SETTINGS};

use super::*;
use crate::job::{App, Export, ProfileChoice, TraceChoice};
use crate::job::{BindTo, Binding, InputChoice, MapBy, OnFailure, OutputChoice, Vigilance};

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn request(line: &str) -> Result<Request, clap::Error> {
    parse_mpjrun(words(&format!("mpjrun {line}")))
}

fn parse(line: &str) -> Result<JobSpec, clap::Error> {
    match request(line)? {
        Request::Run(spec) => Ok(spec),
        other => panic!("{line} asks for {other:?}"),
    }
}

/// The one program of a legal command line.
fn app(line: &str) -> App {
    let mut apps = parse(line).expect(line).apps;
    assert_eq!(apps.len(), 1, "{line}");
    apps.remove(0)
}

fn refusal(line: &str) -> (ErrorKind, String) {
    let error = request(line).expect_err(line);
    (error.kind(), error.to_string())
}

fn export(name: &str, value: Option<&str>) -> Export {
    Export { name: name.into(), value: value.map(OsString::from) }
}

#[test]
fn every_option_is_taken() {
    let line = "-n 3 --contexts 2 --backend eager -l --timeout 1.5 --stall 9 --deadlock ignore --genv B=2 -x A=b=c -x HOME --wdir /tmp \
                --path /opt:/srv --host localhost prog";
    let app = App {
        exports: vec![export("A", Some("b=c")), export("HOME", None)],
        wdir: Some("/tmp".into()),
        path: Some("/opt:/srv".into()),
        ..App::new(3, "prog")
    };
    let expected = JobSpec {
        exports: vec![export("B", Some("2"))],
        contexts: 2,
        backend: Some(BackendChoice::Eager),
        output: OutputChoice { tag: true, ..OutputChoice::default() },
        timeout: Some(Duration::from_millis(1500)),
        vigilance: Vigilance {
            ends_deadlocks: false,
            stall: Some(Duration::from_secs(9)),
            ..Vigilance::default()
        },
        ..JobSpec::new(vec![app])
    };
    assert_eq!(parse(line).expect("all legal"), expected);
}

#[test]
fn a_job_is_watched_from_its_start_or_while_it_runs() {
    let spec = parse("-n 2 --watch --watch-every 0.5 prog 77").expect("legal");
    assert_eq!(
        (spec.watch, spec.apps[0].args.clone()),
        (Some(Duration::from_millis(500)), words("77"))
    );
    assert_eq!(parse("77").expect("a program").watch, None);
    let watched = |line| match parse_words(words(line).into_iter()) {
        Ok(Request::Watch(watched)) => Some(watched),
        _ => None,
    };
    assert_eq!(watched("--watch 77"), Some(Watched { launcher: 77, every: None }));
    assert_eq!(watched("--watch ./77"), None);
    assert_eq!(watched("-n 1 --watch 77 : -n 1 prog"), None);
}

fn recorded(memory: u64) -> TraceChoice {
    TraceChoice { file: None, memory, newest: false, details: false }
}

#[test]
fn a_profile_and_a_trace_need_the_same_records() {
    for (line, file, page) in [
        ("--profile prog", None, None),
        ("--profile=p.html prog", None, Some("p.html")),
        ("--trace t --profile prog", Some("t"), None),
    ] {
        let spec = parse(&format!("-n 2 --trace-memory 2M {line}")).expect(line);
        let [file, page] = [file, page].map(|path| path.map(PathBuf::from));
        assert_eq!(spec.trace, Some(Box::new(TraceChoice { file, ..recorded(2 << 20) })), "{line}");
        assert_eq!(spec.profile, Some(Box::new(ProfileChoice { page })), "{line}");
        assert_eq!(spec.apps[0].program, "prog", "{line}");
    }
    let spec = parse("-n 2 --trace t prog").expect("legal");
    assert_eq!((spec.trace.is_some(), spec.profile), (true, None));
    let spec = parse("--hosts a:1,b:1 --profile prog").expect("legal");
    assert!(spec.trace.is_some() && spec.profile.is_some() && spec.hosts.is_some());
    let (_, text) = refusal("-n 2 --trace-memory 2M prog");
    assert!(text.contains("--trace-memory goes with --trace or --profile"), "{text}");
}

#[test]
fn a_job_can_be_recorded() {
    let choice = |line| parse(line).expect("legal").trace.map(|choice| *choice);
    let usual = TraceChoice { file: Some("f".into()), ..recorded(64 << 20) };
    assert_eq!(choice("--trace f p"), Some(usual.clone()));
    let more = TraceChoice { memory: 1 << 30, ..usual.clone() };
    assert_eq!(choice("--trace f --trace-memory 1G p"), Some(more));
    let newest = TraceChoice { newest: true, ..usual.clone() };
    assert_eq!(choice("--trace f --trace-newest p"), Some(newest));
    for wrong in
        ["--trace-newest p", "--profile --trace-newest p", "--trace f --profile --trace-newest p"]
    {
        let (_, text) = refusal(wrong);
        assert!(
            text.contains("--trace-newest goes with --trace, and not with --profile"),
            "{text}"
        );
    }
    let detailed = TraceChoice { details: true, ..usual };
    assert_eq!(choice("--trace f --trace-details p"), Some(detailed));
    let (_, text) = refusal("--profile --trace-details p");
    assert!(text.contains("--trace-details goes with --trace"), "{text}");
    let (_, text) = refusal("--trace f --profile=f p");
    assert!(text.contains("--trace and --profile name the same file"), "{text}");
    assert_eq!(choice("p"), None);
    for wrong in ["1", "1023K", "65G", "much"] {
        let (kind, text) = refusal(&format!("--trace f --trace-memory {wrong} p"));
        assert_eq!(kind, ErrorKind::ValueValidation);
        assert!(text.contains("a number of bytes from 1M to 64G"), "{text}");
    }
}

#[test]
fn checks_are_asked_for_or_refused() {
    for (word, value) in [("--check", "1"), ("--check=yes", "1"), ("--check=no", "0")] {
        let spec = parse(&format!("-n 2 {word} prog")).expect("legal");
        assert_eq!(spec.exports, [export("MPJ_CHECK", Some(value))], "{word}");
        assert_eq!(spec.last_calls, value == "1", "{word}");
        assert_eq!(spec.apps[0].program, "prog");
    }
    assert_eq!(parse("prog").expect("legal").exports, []);
    assert_eq!(refusal("--check=perhaps prog").0, ErrorKind::ValueValidation);
}

#[test]
fn several_programs_have_their_own_options() {
    let line = "-l -n 1 -x A=1 io --out x : -n 4 -wdir /tmp -x B=2 compute -l : -np 2 io";
    let spec = parse(line).expect("legal");
    let first =
        App { exports: vec![export("A", Some("1"))], args: words("--out x"), ..App::new(1, "io") };
    let second = App {
        exports: vec![export("B", Some("2"))],
        wdir: Some("/tmp".into()),
        args: words("-l"),
        ..App::new(4, "compute")
    };
    let expected = vec![first, second, App::new(2, "io")];
    assert_eq!((spec.ranks(), spec.output.tag, spec.apps), (7, true, expected));
}

#[test]
fn what_is_wrong_with_several_programs_is_said() {
    let options = ["-l", "--timeout 3", "-timeout 3", "--genv A=1", "--backend eager", "--dry-run"];
    for option in options {
        let (_, text) = refusal(&format!("-n 1 a : -n 1 {option} b"));
        assert!(text.contains("those of the whole job stand before the first program"), "{text}");
        assert!(text.contains(option.split(' ').next().unwrap().trim_start_matches('-')), "{text}");
    }
    let (_, text) = refusal("-n 2 a : b");
    assert!(text.contains("-n N b"), "{text}");
    let (_, text) = refusal("-n 200 a : -n 57 b");
    let said = "would run 257 ranks, but at most 256 ranks run on one host; name more hosts";
    assert!(text.contains(said), "{text}");
    assert_eq!(parse("-n 200 a : -n 56 b").expect("they fit").ranks(), 256);
    let (_, text) = refusal("-n 1048575 a : -n 2 b");
    let said = "the programs have 1048577 ranks together, but a job has 1 to 1048576 ranks";
    assert!(text.contains(said), "{text}");
    for line in ["-n 1 a :", "-n 1 a : : -n 1 b", ": -n 1 a", "-n 1 a : -n 1"] {
        let (kind, text) = refusal(line);
        assert_eq!(kind, ErrorKind::MissingRequiredArgument, "{line}: {text}");
    }
    let (kind, text) = refusal("-n 1 a : --wdri /tmp -n 1 b");
    assert_eq!(kind, ErrorKind::UnknownArgument);
    assert!(text.contains("'--wdir'"), "{text}");
}

#[test]
fn a_file_names_the_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("programs");
    let file_named = |text: &str, options: &str| {
        std::fs::write(&file, text).expect("a file");
        request(&format!("{options} --configfile {}", file.display()))
    };
    let text = "# a comment\n-n 1 -timeout 3 io 'one word' :\n\n-n 2 -x A=1 compute\n";
    let Ok(Request::Run(spec)) = file_named(text, "-l") else { panic!("it is legal") };
    let first = App { args: vec!["one word".into(), ":".into()], ..App::new(1, "io") };
    let second = App { exports: vec![export("A", Some("1"))], ..App::new(2, "compute") };
    assert_eq!(spec.apps, [first, second]);
    assert_eq!((spec.output.tag, spec.timeout), (true, Some(Duration::from_secs(3))));
    for (text, options, said) in [
        ("a\n", "-n 2", "belong into the lines"),
        ("a 'b\n", "", "line 1: a quote is not closed"),
        ("# a\n", "", "no line names a program"),
        ("--configfile other a\n", "", "cannot name another one"),
        ("a\n\n-n 1 -l b\n", "", "line 3: unexpected argument '-l' found"),
        ("# a\n-n x a\n", "", "programs: line 2: invalid value 'x' for '--np <N>'"),
        ("a\n-genv b\n", "", "programs: line 2: --genv: a value is missing"),
        ("a\n-n 2\n", "", "line 2: the following required arguments were not provided"),
        ("-n 2\n", "", "line 1: it names no program"),
    ] {
        let text = file_named(text, options).expect_err(text).to_string();
        assert!(text.starts_with("error: ") && text.contains(said), "{text}");
    }
    let help = file_named("a\n--help\n", "").expect_err("no job");
    assert_eq!((help.kind(), help.exit_code()), (ErrorKind::DisplayHelp, 0));
    let (_, text) = refusal("--configfile f a");
    assert!(text.contains("give none beside it"), "{text}");
    assert!(refusal("--configfile /absent/f").1.contains("/absent/f: No such file"));
}

#[test]
fn every_shell_gets_a_script_that_names_the_options() {
    for shell in Shell::value_variants() {
        let Ok(Request::Completions(script)) = request(&format!("--completions {shell}")) else {
            panic!("{shell} is legal")
        };
        for word in ["backend", "timeout", "configfile"] {
            assert!(script.contains(word), "{word} is missing for {shell}");
        }
    }
    assert!(refusal("--completions tcsh").1.contains("zsh"));
}

#[test]
fn a_dry_run_is_not_a_run() {
    let expected = JobSpec::new(vec![App::new(2, "p")]);
    let dry = request("-n 2 --dry-run p").expect("legal");
    assert_eq!(dry, Request::DryRun(expected));
}

#[test]
fn hosts_have_names() {
    assert_eq!(app("-host localhost:2 -n 2 p"), App::new(2, "p"));
    let (kind, text) = refusal("--host localhost,-node8 -n 2 p");
    assert_eq!(kind, ErrorKind::ValueValidation);
    assert!(text.contains("\"-node8\" is no name of a host"), "{text}");
    assert!(refusal("--hostfile /absent p").1.contains("/absent"));
}

#[test]
fn output_is_a_list() {
    let output = |line: &str| parse(&format!("{line} prog")).expect(line).output;
    let everything =
        OutputChoice { tag: true, timestamp: true, folder: Some("a=b/c".into()), nocopy: true };
    assert_eq!(output("--output tag,timestamp,dir=a=b/c,nocopy"), everything);
    assert_eq!(output("-l --output timestamp --output=dir=a=b/c,nocopy"), everything);
    assert_eq!(output(""), OutputChoice::default());
    for wrong in ["tags", "dir=", "dir", "tag,,timestamp"] {
        let (kind, text) = refusal(&format!("--output {wrong} prog"));
        assert_eq!(kind, ErrorKind::ValueValidation, "{wrong}");
        assert!(text.contains("a list of tag, timestamp, dir=FOLDER, nocopy"), "{text}");
    }
    let (_, text) = refusal("--output nocopy prog");
    assert!(text.contains("nocopy needs dir=FOLDER"), "{text}");
}

#[test]
fn streams_places_and_failures_are_chosen() {
    let spec = |line: &str| parse(&format!("{line} prog")).expect(line);
    assert_eq!(spec("--stdin none").input, InputChoice::None);
    assert_eq!(spec("--stdin 3").input, InputChoice::Rank(3));
    assert_eq!(refusal("--stdin -1 prog").0, ErrorKind::ValueValidation);
    assert_eq!(refusal("--stdin all prog").0, ErrorKind::ValueValidation);
    let binding = spec("--bind-to core --map-by package --report-bindings").binding;
    assert_eq!(binding, Binding::new(Some(BindTo::Core), Some(MapBy::Socket), true));
    assert_eq!(spec("--map-by slot").binding.bind_to, Some(BindTo::Core));
    assert_eq!(refusal("--bind-to board prog").0, ErrorKind::InvalidValue);
    assert_eq!(spec("--on-failure keep").on_failure, OnFailure::Keep);
    let values =
        "--output tag --stdin 0 --bind-to none --map-by core --on-failure kill -np 4 p -np 5";
    let spec = parse(values).expect("values are not programs");
    assert_eq!((spec.ranks(), spec.apps[0].args.clone()), (4, words("-np 5")));
}

#[test]
fn info_needs_no_program_and_takes_none() {
    let parsed = request("-np 3 --universe 9 --contexts 4 --info --backend eager -genv A 1 -x B=2")
        .expect("legal");
    let (ranks, contexts, backend) = (Some(3), Some(4), Some(BackendChoice::Eager));
    let exports = vec![export("A", Some("1")), export("B", Some("2"))];
    let binding = Binding::new(None, None, false);
    assert_eq!(
        parsed,
        Request::Info(Asked {
            ranks,
            universe: Some(9),
            contexts,
            backend,
            exports,
            binding,
            hosts: None
        })
    );
    assert_eq!(refusal("--info prog").0, ErrorKind::ArgumentConflict);
    assert_eq!(refusal("--info : -n 2 p").0, ErrorKind::InvalidValue);
    assert_eq!(app("prog --info").args, words("--info"));
}

#[test]
fn what_follows_the_program_is_the_programs() {
    for args in ["-n 4 -l --backend nonsense --help", "-np 9 -- --version -x", "-- -n"] {
        let app = app(&format!("-n 2 prog {args}"));
        assert_eq!((app.ranks, app.args), (2, words(args)), "{args}");
    }
}

#[test]
fn the_other_spellings_of_n_are_taken() {
    let lines = "-np 4,-np4,-l -np4,--np 4,--np=4,-n4,-l -np 4,-x np -np 4";
    for line in lines.split(',') {
        assert_eq!(app(&format!("{line} p")).ranks, 4, "{line}");
    }
}

#[test]
fn options_of_other_launchers_mean_the_same() {
    let spec = parse(
        "-hosts localhost -prepend-rank -timestamp-output --output-filename d -display-map -s none -env A 1 \
         -genv B 2 -wdir /tmp -c 2 p",
    );
    let spec = spec.expect("legal");
    assert!(spec.output.tag && spec.output.timestamp && spec.binding.report);
    assert_eq!((spec.output.folder, spec.input), (Some("d".into()), InputChoice::None));
    assert_eq!(spec.exports, [export("B", Some("2"))]);
    let wdir = Some("/tmp".into());
    let expected = App { exports: vec![export("A", Some("1"))], wdir, ..App::new(2, "p") };
    assert_eq!(spec.apps, [expected]);
}

#[test]
fn options_of_other_launchers_that_are_not_needed_are_noted() {
    let line =
        "--allow-run-as-root -n 4 --mca a b -oversubscribe -mca c d -genvall p --oversubscribe";
    let spec = parse(line).expect("legal");
    let note =
        "--oversubscribe, --allow-run-as-root, --genvall, --genvlist and --mca change nothing here";
    assert_eq!(spec.notes, [note]);
    assert_eq!(parse("-genvlist A,B p").expect("legal").notes, [note]);
    assert_eq!(parse("-usize 8 -n 4 p").expect("legal").universe, Some(8));
    assert_eq!(parse("--universe 1024 -n 4 p").expect("legal").universe, Some(1024));
    assert!(refusal("--universe 1025 -n 4 p").1.contains("can have 1 to 1024 ranks in all"));
    assert_eq!((spec.apps[0].ranks, &spec.apps[0].args), (4, &words("--oversubscribe")));
}

#[test]
fn without_n_there_are_as_many_ranks_as_cores() {
    let cores = std::thread::available_parallelism().expect("a number").get();
    assert_eq!(app("prog").ranks, cores.min(MAX_TASKS_PER_HOST));
}

#[test]
fn impossible_numbers_of_ranks_are_refused_with_the_limit() {
    for number in ["0", "-1", "1048577", "two", "1.5", "99999999999999999999999"] {
        let (kind, text) = refusal(&format!("-n {number} prog"));
        assert_eq!(kind, ErrorKind::ValueValidation, "{number}");
        assert!(text.contains(number) && text.contains("a job has 1 to 1048576 ranks"), "{text}");
    }
    assert!(refusal("-n 257 prog").1.contains("at most 256 ranks run on one host"));
    assert!(refusal("-n 257 --info").1.contains("at most 256 ranks run on one host"));
    assert_eq!(app("-n 256 prog").ranks, 256);
}

#[test]
fn an_unknown_option_gets_a_suggestion() {
    for (line, meant) in [
        ("--bakend eager prog", "'--backend'"),
        ("-bakend eager prog", "'--backend'"),
        ("-n 1 p : -n 1 --wdri /tmp q", "'--wdir'"),
        ("-gpu p", "--help lists all options"),
        ("-z prog", "--help lists all options"),
        ("-n 1 p : -n 1 -z q", "before the first program"),
    ] {
        let (kind, text) = refusal(line);
        assert_eq!(kind, ErrorKind::UnknownArgument, "{line}");
        assert!(text.contains(meant) && !text.contains("as a value"), "{text}");
    }
}

#[test]
fn of_options_that_are_repeated_the_last_one_counts() {
    let line = "-l -n 1 --timeout 1 --stats -l -np 3 --stats --timeout 2 --bind-to none --bind-to core \
                -x A=1 -x B=2 p : -n 1 -n 2 --wdir /a --wdir /b q";
    let spec = parse(line).expect("legal");
    assert_eq!((spec.apps[0].ranks, spec.apps[1].ranks), (3, 2));
    assert_eq!(spec.apps[0].exports, [export("A", Some("1")), export("B", Some("2"))]);
    assert_eq!(spec.apps[1].wdir, Some("/b".into()));
    assert_eq!((spec.timeout, spec.stats), (Some(Duration::from_secs(2)), true));
    assert_eq!(spec.binding.bind_to, Some(BindTo::Core));
}

#[test]
fn ranks_per_host_are_ranks() {
    for line in ["--map-by ppr:3:node p", "-N 3 p", "-ppn 3 p", "-perhost 3 p", "-n 3 -ppn 4 p"] {
        assert_eq!(parse(line).expect("legal").ranks(), 3, "{line}");
    }
    let (_, text) = refusal("-n 4 --map-by ppr:2:node p");
    assert!(text.contains("-n 4 with 2 ranks on each host needs more hosts"), "{text}");
    assert!(refusal("-n 4 -N 2 --info").1.contains("needs more hosts"));
    assert!(refusal("--map-by ppr:2:socket p").1.contains("core, socket, hwthread"));
    for number in [0, 257] {
        assert!(refusal(&format!("-ppn {number} p")).1.contains("1 to 256 ranks run on one host"));
    }
}

#[test]
fn an_unknown_backend_gets_the_legal_ones() {
    let (kind, text) = refusal("--backend fast prog");
    assert_eq!(kind, ErrorKind::InvalidValue);
    assert!(text.contains("fast") && text.contains("auto, eager, rendezvous"), "{text}");
}

#[test]
fn impossible_numbers_of_contexts_are_refused_with_the_legal_ones() {
    for value in ["0", "5", "-1", "two"] {
        let (kind, text) = refusal(&format!("--contexts {value} prog"));
        assert_eq!(kind, ErrorKind::ValueValidation, "{text}");
        assert!(text.contains("a rank has 1 to 4 contexts"), "{text}");
    }
}

#[test]
fn a_missing_program_is_named() {
    let (kind, text) = refusal("-n 2");
    assert_eq!(kind, ErrorKind::MissingRequiredArgument);
    assert!(text.contains("<PROGRAM>"), "{text}");
}

#[test]
fn impossible_timeouts_and_variables_are_refused() {
    for option in ["--timeout", "--stall", "-timeout"] {
        for value in ["0", "-1", "-0.5", "nan", "1e30"] {
            let (kind, text) = refusal(&format!("{option} {value} prog"));
            assert_eq!(kind, ErrorKind::ValueValidation, "{text}");
            assert!(text.contains("a number of seconds above 0"), "{text}");
        }
    }
    assert_eq!(refusal("-x =v prog").0, ErrorKind::ValueValidation);
}

#[test]
fn the_manual_lists_every_setting_and_every_exit_code() {
    let text = refusal("--help").1;
    assert!(text.contains("kill -QUIT PID"), "{text}");
    // Which would take the program for a value: the words of that option of MPICH are two.
    assert!(!text.contains("--env"), "{text}");
    for row in SETTINGS {
        assert!(text.contains(row.name) && text.contains(row.legal), "{} is missing", row.name);
    }
    for code in ["124", "125", "126", "127", "128 + S", "141"] {
        assert!(text.contains(code), "{code} is missing");
    }
}
