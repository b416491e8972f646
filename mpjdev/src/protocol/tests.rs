//! The table of every kind of job, and what holds for each table.

use std::collections::BTreeSet;

use proptest::prelude::*;
use transport_lapi::adapter::Pieces;

use super::*;
use Processor::{Intel, IntelWithDemote, Other};
use Protocol::{Eager, Rendezvous};

const KINDS: [Processor; 3] = [Other, Intel, IntelWithDemote];
const COPIED: Facts =
    Facts { readable: false, by_network: false, huge_pages: false, own_processor: false };
const CROWDED: Facts = Facts { readable: true, ..COPIED };
const READ: Facts = Facts { own_processor: true, ..CROWDED };
const NETWORK: Facts = Facts { by_network: true, ..CROWDED };
const HUGE: Facts = Facts { huge_pages: true, ..CROWDED };

/// All combinations of facts.
fn all_facts() -> impl Iterator<Item = Facts> {
    (0..16_u8).map(|bits| Facts {
        readable: bits & 1 != 0,
        huge_pages: bits & 2 != 0,
        own_processor: bits & 4 != 0,
        by_network: bits & 8 != 0,
    })
}

/// The shortest message that goes by rendezvous; `None` if there is none up to 1 GiB.
fn first(table: &Table, facts: Facts, has_credit: bool) -> Option<usize> {
    let starts: BTreeSet<usize> = table.rows().iter().map(|row| row.from).collect();
    starts.into_iter().find(|&len| table.choose(len, facts, has_credit) == Rendezvous)
}

fn auto(processor: Processor) -> Table {
    Table::of(&Settings::default(), processor)
}

/// The capabilities of a network that reads, or does not.
fn network(gets: Option<GetKind>) -> Caps {
    Caps {
        name: "net",
        max_head: 512,
        max_inline: 1024,
        max_body: 64 << 10,
        pieces: Pieces::new(64 << 10, [64 << 10; 3]),
        copies_bodies: true,
        gets,
        puts: false,
        atomics: false,
    }
}

#[test]
fn each_kind_of_target_has_its_rows() {
    let whens = |gets| {
        let table = auto(Intel);
        table.rows_for(&network(gets)).map(|row| row.when).collect::<Vec<_>>()
    };
    use When::{Always, ByNetwork, HugePages, NoCredit, OwnProcessor};
    let in_memory = [NoCredit, HugePages, OwnProcessor, Always, Always];
    assert_eq!(whens(Some(GetKind::CrossMemoryAttach)), in_memory);
    assert_eq!(whens(Some(GetKind::RemoteDirect)), [NoCredit, ByNetwork, Always, Always]);
    assert_eq!(whens(Some(GetKind::RemoteSoftware)), [NoCredit, Always, Always]);
    assert_eq!(whens(None), [NoCredit, Always, Always]);
}

/// `cargo test -p mpjdev the_decision -- --nocapture` prints the table.
#[test]
#[expect(clippy::print_stdout, reason = "shows the decision about every message")]
fn the_decision_about_every_message_is_this_table() {
    let expected = "\
data               Other      Intel      IntelWithDemote
cannot be read     16777217   16777217   16777217
ranks share        16777217   16777217   16777217
can be read        16777217   262144     1048576
in huge pages      131072     131072     131072
read by a network  262144     262144     262144
no credit          0          0          0
";
    let lines = [
        ("cannot be read", COPIED, true),
        ("ranks share", CROWDED, true),
        ("can be read", READ, true),
        ("in huge pages", HUGE, true),
        ("read by a network", NETWORK, true),
        ("no credit", COPIED, false),
    ];
    let line = |cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("{cell:<11}")).collect();
        cells.trim_end().to_owned() + "\n"
    };
    let mut text = format!("{:<19}", "data") + &line(&KINDS.map(|kind| format!("{kind:?}")));
    for (name, facts, has_credit) in lines {
        let firsts = KINDS.map(|kind| first(&auto(kind), facts, has_credit));
        let cells = firsts.map(|from| from.expect("every table has such a message").to_string());
        text += &(format!("{name:<19}") + &line(&cells));
    }
    println!("the shortest messages that go by rendezvous\n{text}");
    assert_eq!(text, expected);
}

#[test]
fn what_the_user_names_depends_on_nothing_but_credit() {
    let of = |backend, eager_up_to| {
        Table::of(&Settings { backend, eager_up_to, ..Settings::default() }, IntelWithDemote)
    };
    for facts in all_facts() {
        let first = |table: Table, has_credit| first(&table, facts, has_credit);
        assert_eq!(first(of(BackendChoice::Auto, Some(1000)), true), Some(1001));
        assert_eq!(first(of(BackendChoice::Auto, Some(0)), true), Some(1));
        assert_eq!(first(of(BackendChoice::Auto, Some(1000)), false), Some(0));
        assert_eq!(first(of(BackendChoice::Eager, Some(10)), true), None);
        assert_eq!(first(of(BackendChoice::Eager, None), false), Some(0));
        assert_eq!(first(of(BackendChoice::Rendezvous, Some(10)), true), Some(0));
    }
}

#[test]
fn a_table_by_length_has_these_steps() {
    let steps = [(0, Eager), (41, Rendezvous), (8_193, Eager), (20_001, Rendezvous)];
    let table = Table::by_length(&steps);
    for (len, protocol) in steps {
        assert_eq!(table.protocol(len), protocol, "{len} bytes");
        assert!(len == 0 || table.protocol(len - 1) != protocol, "one byte less");
    }
    assert_eq!(table.steps().collect::<Vec<_>>(), [41, 8_193, 20_001]);
    assert_eq!(table.eager_below(), 41);
    let eager = Table::by_length(&[(0, Eager), (7, Eager)]);
    assert_eq!((eager.steps().next(), eager.eager_below()), (None, usize::MAX));
    assert_eq!(Table::by_length(&[(0, Rendezvous)]).eager_below(), 0);
    assert_eq!(auto(Other).steps().collect::<Vec<_>>(), [(16 << 20) + 1]);
}

fn any_table() -> impl Strategy<Value = Table> {
    let backend = prop_oneof![
        Just(BackendChoice::Auto),
        Just(BackendChoice::Eager),
        Just(BackendChoice::Rendezvous)
    ];
    let longest = prop::option::of(0..=1_usize << 30);
    (backend, longest, prop::sample::select(&KINDS[..])).prop_map(|(backend, eager_up_to, kind)| {
        Table::of(&Settings { backend, eager_up_to, ..Settings::default() }, kind)
    })
}

/// Lengths near the starts of rows, and others.
fn any_len() -> impl Strategy<Value = usize> {
    let near =
        (0..30_u32, 0..3_usize).prop_map(|(shift, by)| ((1 << shift) + by).saturating_sub(1));
    prop_oneof![near, any::<usize>()]
}

proptest! {
    /// The ranges are total and monotonic: some row applies to every message, and what is said of a message by
    /// rendezvous is said of every longer one, and of one of which more facts hold, or for which there is no credit.
    #[test]
    fn ranges_are_total_and_monotonic(
        table in any_table(), lens in [any_len(), any_len()], bits in [0..16_usize, 0..16],
    ) {
        let [short, long] = { let mut lens = lens; lens.sort_unstable(); lens };
        let facts = |bits| all_facts().nth(bits).unwrap();
        let (few, many) = (facts(bits[0]), facts(bits[0] | bits[1]));
        for (facts, has_credit) in [(few, true), (few, false), (many, true)] {
            let applies = |row: &&Row| row.applies(short, facts.conditions(has_credit));
            let first = table.rows().iter().find(applies).map(|row| row.protocol);
            prop_assert_eq!(Some(table.choose(short, facts, has_credit)), first);
        }
        prop_assert_eq!(table.choose(short, few, false), Rendezvous);
        if table.choose(short, few, true) == Rendezvous {
            prop_assert_eq!(table.choose(long, few, true), Rendezvous);
            prop_assert_eq!(table.choose(short, many, true), Rendezvous);
        }
    }

    /// Nobody need look at the facts of a message that is too short for them.
    #[test]
    fn short_messages_are_eager_whatever_the_facts(table in any_table(), len in any_len()) {
        let choices = all_facts().map(|facts| table.choose(len, facts, true));
        let choices: Vec<Protocol> = choices.collect();
        if len < table.eager_below() {
            prop_assert!(choices.iter().all(|choice| *choice == Eager));
        }
        prop_assert_eq!(choices.contains(&Rendezvous), len >= table.eager_below());
        if len < table.facts_from() {
            prop_assert!(choices.iter().all(|choice| *choice == choices[0]));
        }
    }
}
