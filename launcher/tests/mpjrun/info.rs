//! The text of `--info`, and what the variables that it shows do.

use mpj_harness::mpjrun;

#[test]
fn info_says_every_value_and_where_it_is_from() {
    let words = ["--info", "-n", "3", "--backend", "auto", "-x", "MPJ_WAIT=block"];
    let asked = mpjrun(words).env("MPJ_GET", "am").env("MPJ_EAGER_UP_TO", "4K");
    let text = asked.set(|command| command.env_remove("MPJ_EARLY_LIMIT")).expect(0).stdout;
    // Columns are as wide as the values make them.
    let lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for expected in [
        "ranks 3 command line (-n)",
        "MPJ_BACKEND auto command line (--backend)",
        "MPJ_EAGER_UP_TO 4K environment",
        "MPJ_GET am environment",
        "MPJ_WAIT block command line (-x)",
        "MPJ_EARLY_LIMIT 64M default",
        "adapter shm",
        "up to 4096 bytes eager, as one frame",
        "longer rendezvous",
    ] {
        assert!(lines.iter().any(|line| line == expected), "no {expected:?} in {text}");
    }
    for start in ["machine: ", "segment for 3 ranks: "] {
        assert!(lines.iter().any(|line| line.starts_with(start)), "no {start:?} in {text}");
    }
}

#[test]
fn info_says_which_agents_start_which() {
    let words = ["--info", "--hosts", "a,b,c,d", "-n", "4", "--agent-fanout", "2"];
    let text = mpjrun(words).expect(0).stdout;
    let from = |line: &str| line.split("started from ").nth(1).map(str::to_owned);
    let hosts = text.lines().skip_while(|line| !line.starts_with("hosts, where ssh starts"));
    let from: Vec<_> = hosts.skip(1).take(4).map(from).collect();
    assert_eq!(from, [None, Some("a".to_owned()), None, Some("c".to_owned())]);
}

#[test]
fn a_longest_eager_message_that_is_not_legal_starts_no_rank() {
    for words in [&["-n", "2", "sh", "-c", "echo started"][..], &["--info"]] {
        let refused = mpjrun(words).env("MPJ_EAGER_UP_TO", "2G").expect(2);
        let refused =
            refused.says("MPJ_EAGER_UP_TO=2G is not known; legal values: auto, or a number");
        assert_eq!(refused.stdout, "");
    }
}

#[test]
fn a_variable_that_no_rank_reads_is_noted() {
    let ran = mpjrun(["-n", "1", "true"]).env("MPJ_TUNING", "/nowhere/tuning.toml").expect(0);
    ran.says("unknown variable MPJ_TUNING is ignored");
}
