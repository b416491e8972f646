//! The descriptors of a rank when it starts: the standard streams, the job's memory, the line to the launcher, and
//! those that the launcher itself inherited.

use std::collections::BTreeMap;
use std::process::Command;

use mpj_harness::{command, mpjrun, mpjrun_path, shell};

/// Shows the descriptors of the process that runs it, and the numbers of those that are the job's.
const SHOW: &str = "ls -l /proc/$$/fd; echo $MPJ_SHM_FD $MPJ_CTRL_FD";
const RANKS: usize = 3;

/// The file of each descriptor, as `ls -l` shows it.
type Descriptors = BTreeMap<i32, String>;

/// The descriptors in what `ls -l` printed, of the lines that begin with `prefix`.
fn listed(text: &str, prefix: &str) -> Descriptors {
    let lines = text.lines().filter_map(|line| line.strip_prefix(prefix)?.split_once(" -> "));
    let named = lines.map(|(before, target)| {
        let number = before.rsplit(' ').next().and_then(|number| number.parse().ok());
        (number.expect("a number"), target.to_owned())
    });
    named.collect()
}

/// The descriptors of a shell that does `before`, and of the ranks of the launcher that it becomes
/// then, each with the numbers that the environment gives for the segment and the control line.
fn job_of_a_shell(before: &str) -> (Descriptors, Vec<(Descriptors, [i32; 2])>) {
    let becomes = format!("{before} sh -c '{SHOW}' >&2; exec \"$@\"");
    let shell = command("sh").args(["-c", &becomes, "sh"]).args([mpjrun_path()]);
    let finished = shell.args(["-l", "-n", &RANKS.to_string(), "sh", "-c", SHOW]).expect(0);
    let text = finished.stdout.as_str();
    let ranks = (0..RANKS).map(|rank| {
        let prefix = format!("[{rank}] ");
        let last = text.lines().filter_map(|line| line.strip_prefix(&prefix)).next_back();
        let numbers = last.expect("every rank prints").split(' ');
        let numbers: Vec<i32> = numbers.map(|number| number.parse().expect("a number")).collect();
        (listed(text, &prefix), numbers.try_into().expect("two numbers"))
    });
    (listed(&finished.stderr, ""), ranks.collect())
}

/// Asserts that a rank has `inherited` and its two descriptors, and nothing else.
#[track_caller]
fn assert_own(rank: &Descriptors, [segment, control]: [i32; 2], inherited: &Descriptors) {
    let numbers: Vec<i32> = rank.keys().copied().collect();
    let mut expected: Vec<i32> = inherited.keys().copied().chain([segment, control]).collect();
    expected.sort_unstable();
    assert_eq!(numbers, expected, "{rank:?}");
    assert!(rank[&segment].starts_with("/memfd:mpj-job-"), "{rank:?}");
    assert!(rank[&control].starts_with("socket:["), "{rank:?}");
    let beyond = inherited.iter().filter(|(number, _)| **number > 2);
    beyond.for_each(|(number, target)| assert_eq!(&rank[number], target, "{rank:?}"));
}

#[test]
fn a_rank_starts_with_the_segment_and_its_own_line_beside_the_streams() {
    let (inherited, ranks) = job_of_a_shell("");
    let mut lines: Vec<&str> = Vec::new();
    for (rank, numbers) in &ranks {
        assert_own(rank, *numbers, &inherited);
        lines.push(&rank[&numbers[1]]);
        assert_eq!(rank[&numbers[0]], ranks[0].0[&ranks[0].1[0]], "one segment");
    }
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), RANKS, "one line each: {ranks:?}");
}

/// As `env` and `timeout` do: whoever left it open meant it for what is started, for example the
/// `<(COMMAND)` of a shell.
#[test]
fn what_the_launcher_was_started_with_goes_on_to_the_ranks() {
    let (inherited, ranks) = job_of_a_shell("exec 8</dev/zero;");
    assert_eq!(inherited[&8], "/dev/zero");
    for (rank, numbers) in &ranks {
        assert_own(rank, *numbers, &inherited);
    }
}

/// Numbers that the segment would have are taken, and none of the streams is open.
#[test]
fn closed_streams_are_no_place_for_a_descriptor_of_the_job() {
    shell("exec <&- >&- 2>&-; exec \"$0\" -n 1 sh -c 'test $MPJ_SHM_FD -gt 2'").expect(0);
}

/// Names of calls that act on a terminal, and a message that is none.
#[test]
fn what_a_rank_sends_over_its_line_is_not_trusted() {
    // Other shells take no descriptor above 9.
    if Command::new("bash").args(["-c", ":"]).status().is_err() {
        return;
    }
    let bytes = |text: &str| text.bytes().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
    let long = |number: u8| format!("\\x{number:02x}{}", "\\0".repeat(7));
    let text = |text: &str| long(text.len() as u8) + &bytes(text);
    let head = format!("\\x08{}", "\\0".repeat(11));
    let names = [head, long(1), text("\u{1b}[2J"), "\\0".to_owned(), text("s"), text("w"), long(0)]
        .concat();
    let send = format!("printf '{names}' >&$MPJ_CTRL_FD; printf xyz >&$MPJ_CTRL_FD; echo sent");
    let finished = mpjrun(["-n", "1", "bash", "-c", &send]).expect(0);
    assert_eq!(finished.stdout, "sent\n");
    let said = "mpjrun: ignoring a damaged control message of rank 0, and further damaged ones: \
                name 1 is not 1 to 32 printable characters\n";
    assert_eq!(finished.stderr, said);
}
