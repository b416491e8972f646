//! Words for endings, signals, ranks and waits.

use signal_hook::low_level::signal_name;
use transport_lapi::bootstrap::control::{Vocabulary, cut};
use transport_lapi::bootstrap::waits::{CallCode, Phase, Space};

use super::INDENT;
use super::waiting::Waiting;
use crate::exits::Ending;

/// Most lines of a text that a rank has sent.
const MAX_LINES: usize = 20;
/// Most bytes of one.
const MAX_BYTES: usize = 2048;
/// Most runs of numbers in one list.
const MAX_RUNS: usize = 8;

pub(super) fn ended_how(ending: Ending) -> String {
    match ending {
        Ending::Code(code) => format!("exited with code {code}"),
        Ending::Signal(signal) => format!("was killed by {}", signal_words(signal)),
        Ending::Lost => "was lost with its host".to_owned(),
    }
}

pub(super) fn signal_words(signal: i32) -> String {
    match signal_name(signal) {
        Some(name) => format!("signal {signal} ({name})"),
        None => format!("signal {signal}"),
    }
}

/// Ascending numbers as text: `0, 2-4`. After [`MAX_RUNS`] runs the other numbers are counted.
pub(super) fn ranges(numbers: &[usize]) -> String {
    let runs = || numbers.chunk_by(|one, next| one + 1 == *next);
    let mut words: Vec<String> = runs().take(MAX_RUNS).map(run).collect();
    let rest: usize = runs().skip(MAX_RUNS).map(<[usize]>::len).sum();
    if rest > 0 {
        words.push(format!("and {rest} more"));
    }
    words.join(", ")
}

fn run(run: &[usize]) -> String {
    match run {
        [first, .., last] => format!("{first}-{last}"),
        _ => run[0].to_string(),
    }
}

/// The line `and 3 more chains`, if there are more than `most`.
pub(super) fn and_more(all: usize, most: usize, noun: &str) -> String {
    match all.saturating_sub(most) {
        0 => String::new(),
        more => format!("{INDENT}and {more} more {noun}\n"),
    }
}

/// `rank 3` or `ranks 3-5`.
pub(crate) fn ranks(numbers: &[usize]) -> String {
    let noun = if numbers.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", ranges(numbers))
}

/// The lines of a text that a rank has sent, made fit to be shown: control characters are escaped, since they would act
/// on a terminal; a long text is cut, and a last line counts the lines that are left out.
pub(crate) fn printable_lines(text: &str) -> Vec<String> {
    let text = text.trim();
    let shown = start(text);
    let mut lines: Vec<String> = shown.lines().take(MAX_LINES).map(escaped).collect();
    // The cut is mentioned if it is in a line that is shown.
    if shown.lines().nth(MAX_LINES).is_none() {
        if let Some(last) = lines.last_mut() {
            *last += &rest(text, shown);
        }
        return lines;
    }
    match text.lines().skip(MAX_LINES).count() {
        1 => lines.push("and 1 more line".to_owned()),
        more => lines.push(format!("and {more} more lines")),
    }
    lines
}

/// The same for a text that belongs on one line.
pub(crate) fn printable_line(text: &str) -> String {
    let shown = start(text);
    escaped(shown) + &rest(text, shown)
}

/// The part of a text that is shown: at most [`MAX_BYTES`] from its start, ending between two characters.
fn start(text: &str) -> &str {
    cut(text, MAX_BYTES)
}

/// The words that follow the `shown` part of a text, if that is not all.
fn rest(text: &str, shown: &str) -> String {
    match text.len() - shown.len() {
        0 => String::new(),
        more => format!("... ({} more)", bytes(more as u64)),
    }
}

fn escaped(text: &str) -> String {
    let mut tame = String::new();
    for char in text.chars() {
        match char.is_control() && char != '\t' {
            true => tame.extend(char.escape_default()),
            false => tame.push(char),
        }
    }
    tame
}

/// Seconds from one time to another, with two digits.
pub(super) fn seconds_between(from: u64, to: u64) -> String {
    format!("{:.2}", std::time::Duration::from_nanos(to.saturating_sub(from)).as_secs_f64())
}

/// A time with three digits: `3.10 s`, `12.3 ms`, `456 µs`.
pub(crate) fn time(nanos: u64) -> String {
    let nanos = nanos as f64;
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
    // What rounds up to the next unit is told in that one.
    match units.iter().find(|(unit, _)| nanos >= unit * 0.9995) {
        Some((unit, name)) => format!("{} {name}", three_digits(nanos / unit)),
        None => format!("{nanos} ns"),
    }
}

/// A number with three digits: `1.50`, `12.3`, `456`.
pub(crate) fn three_digits(value: f64) -> String {
    let digits = match value {
        small if small < 9.995 => 2,
        middle if middle < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

/// `1 byte` or `8 bytes`.
pub(super) fn bytes(number: u64) -> String {
    let noun = if number == 1 { "byte" } else { "bytes" };
    format!("{number} {noun}")
}

/// `on world`, or `on communicator 2`, with the name of the space if it has one: `on communicator 2 "rows"`.
pub(super) fn on_named_space(space: Space, name: &str, words: &Vocabulary) -> String {
    let of_task = in_context(space, " in");
    match space.label {
        Some(0) => format!(" on {}{of_task}", words.everywhere()),
        Some(number) if !name.is_empty() => {
            format!(" on {} {number} \"{}\"{of_task}", words.space(), printable_line(name))
        }
        _ => on_space(space, words),
    }
}

/// `world`, or the number of a space, with the ranks' context unless that is the first one.
pub(super) fn space(space: Space, words: &Vocabulary) -> String {
    let name = match space.label {
        Some(0) => words.everywhere().to_owned(),
        Some(number) => number.to_string(),
        None => "-".to_owned(),
    };
    name + &in_context(space, ",")
}

/// The words behind an operation: ` on communicator 2`; nothing for the world in the first context, nor for a space
/// that has no number.
pub(super) fn on_space(space: Space, words: &Vocabulary) -> String {
    let number = space.label.filter(|number| *number != 0);
    let on = number.map_or(String::new(), |number| format!(" on {} {number}", words.space()));
    on + &in_context(space, " in")
}

fn in_context(space: Space, before: &str) -> String {
    match space.context {
        0 => String::new(),
        context => format!("{before} context {context}"),
    }
}

/// `tag 7` or `any tag`.
pub(super) fn tag(tag: Option<i32>) -> String {
    tag.map_or("any tag".to_owned(), |tag| format!("tag {tag}"))
}

/// `rank 3` or `any rank`.
pub(super) fn source(rank: Option<u32>) -> String {
    rank.map_or("any rank".to_owned(), |rank| format!("rank {rank}"))
}

/// The name of what is waited for: a collective operation, or a message.
fn awaited(wait: &Waiting<'_>) -> String {
    match wait.operation != CallCode::NONE {
        true => wait.words.name(wait.operation),
        false if wait.sends => "send".to_owned(),
        false => "recv".to_owned(),
    }
}

/// The call that a thread is blocked in, with the number of `open` operations: `recv`, `waitall (3 open): recv`.
pub(super) fn call(wait: &Waiting<'_>, open: &str) -> String {
    let (name, awaited) = (wait.name(), awaited(wait));
    match (wait.call, wait.open) {
        _ if wait.is_unknown() => wait.words.unknown(),
        (CallCode::NONE, _) => format!("a call that waits to {awaited}"),
        (_, 0) => name,
        _ if open == "1" => format!("{name}: {awaited}"),
        _ => format!("{name} ({open} open): {awaited}"),
    }
}

/// The operation that a thread waits for: `recv tag 7`.
pub(super) fn operation(wait: &Waiting<'_>) -> String {
    let call = match wait.call {
        _ if wait.at_end || wait.is_unknown() => return call(wait, "1"),
        CallCode::NONE => awaited(wait),
        _ => call(wait, "1"),
    };
    let on = on_space(wait.space, wait.words);
    match wait.space.is_collective {
        _ if wait.is_collective() => call + &on,
        _ if wait.is_of_peer() => {
            let number = wait.tag.map_or(String::new(), |number| format!(" {number}"));
            format!("{call}{number}{on}")
        }
        true => format!("{call} of a collective call{on}"),
        false => format!("{call} {}{on}", tag(wait.tag)),
    }
}

/// The same with its peer: `recv tag 7 from rank 0`.
pub(super) fn operation_with_peer(wait: &Waiting<'_>) -> String {
    let operation = operation(wait);
    match wait.sends {
        _ if wait.is_for_others() || wait.is_unknown() => operation,
        true => format!("{operation} to {}", source(wait.peer)),
        false if wait.is_of_peer() => format!("{operation} at {}", source(wait.peer)),
        false => format!("{operation} from {}", source(wait.peer)),
    }
}

/// How far an operation has come.
pub(super) fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Unknown => "-",
        Phase::Unmatched | Phase::Sought => "no message has come",
        Phase::Arriving => "data are arriving",
        Phase::Fetching => "fetching the data (rendezvous)",
        Phase::Leaving => "no room at the receiver",
        Phase::Offered => "not fetched yet (rendezvous)",
        Phase::Unanswered => "no receive has met it (synchronous)",
        Phase::Others => "others have not come there",
    }
}

#[cfg(test)]
mod tests {
    use mpjdev::Call;

    use super::*;

    #[test]
    fn a_space_is_named_with_its_context_unless_that_is_the_first() {
        let words = Call::vocabulary();
        let spaces = [(0, 0), (0, 3), (1, 0), (3, 5)];
        let spaces = spaces.map(|(context, label)| Space {
            context,
            label: Some(label),
            ..Space::default()
        });
        let names = spaces.map(|one| space(one, &words));
        assert_eq!(names, ["world", "3", "world, context 1", "5, context 3"]);
        let on = spaces.map(|one| on_space(one, &words));
        assert_eq!(
            on,
            ["", " on communicator 3", " in context 1", " on communicator 5 in context 3"]
        );
        assert_eq!(on_named_space(spaces[2], "", &words), " on world in context 1");
        let (unnamed, words) = (Space { context: 2, ..Space::default() }, Vocabulary::default());
        assert_eq!(space(unnamed, &words), "-, context 2");
        assert_eq!(on_named_space(unnamed, "x", &words), " in context 2");
        assert_eq!(on_space(spaces[3], &words), " on space 5 in context 3");
    }

    #[test]
    fn ranges_are_short() {
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2, 5, 7-8");
        let even: Vec<usize> = (0..256).step_by(2).collect();
        assert_eq!(ranges(&even), "0, 2, 4, 6, 8, 10, 12, 14, and 120 more");
    }

    #[test]
    fn what_ranks_say_is_tame_and_short() {
        let text = "\n\x1b[2Ja\x1b]0;title\x07\r\n\tback\rspace\u{9b}1m\n\n";
        let told = ["\\u{1b}[2Ja\\u{1b}]0;title\\u{7}", "\tback\\rspace\\u{9b}1m"];
        assert_eq!(printable_lines(text), told);
        assert_eq!(printable_line("src/a\n.rs"), "src/a\\n.rs");
        assert_eq!(printable_lines(&"x\n".repeat(20)).len(), 20);
        let many = printable_lines(&"x\n".repeat(22));
        assert_eq!((many.len(), many[20].as_str()), (21, "and 2 more lines"));
        assert_eq!(printable_lines(&"\n".repeat(32 << 10)), Vec::<String>::new());
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(printable_line(&"x".repeat(2048)).len(), 2048);
        assert_eq!(printable_line(&"x".repeat(2049))[2048..], *"... (1 byte more)");
        let wide = printable_lines(&["x", &"\u{e9}".repeat(2000)].concat());
        let expected = ["x", &"\u{e9}".repeat(1023), "... (1954 bytes more)"].concat();
        assert_eq!(wide, [expected]);
        let lines = printable_lines(&["first", &"y".repeat(5000), "third"].join("\n"));
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with("y... (2964 bytes more)"), "{}", lines[1]);
    }

    #[test]
    fn signals_without_a_name_have_a_number() {
        assert_eq!(signal_words(libc::SIGSEGV), "signal 11 (SIGSEGV)");
        assert_eq!(signal_words(40), "signal 40");
    }
}
