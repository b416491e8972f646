//! What is concluded from news, and whether it is true in all interleavings of a model.

use super::*;

mod model;

/// An agreement of two hosts that have told this, and been asked.
fn asked(first: (u64, u64), second: (u64, u64)) -> (Agreement, Option<u64>) {
    let mut agreement = Agreement::new(2);
    agreement.still(0, first.0, first.1);
    assert_eq!(agreement.ask(), None, "the other host has told nothing");
    agreement.still(1, second.0, second.1);
    let round = agreement.ask();
    (agreement, round)
}

#[test]
fn hosts_that_are_still_twice_are_in_deadlock() {
    let (mut agreement, round) = asked((7, u64::MAX), (1, 9));
    let round = round.expect("nothing is on its way: 7 + 1 = 9 - 1");
    assert_eq!(agreement.ask(), None, "once");
    agreement.answered(0, round, true);
    assert!(!agreement.is_reached());
    agreement.answered(1, round, true);
    assert!(agreement.is_reached() && !agreement.is_reached());
    assert!(agreement.ask().is_some_and(|next| next != round), "it is found again");
}

#[test]
fn frames_on_their_way_and_refused_ones_keep_the_hosts_from_being_asked() {
    assert_eq!(asked((7, 3), (1, 4)).1, None);
}

#[test]
fn whatever_a_host_tells_else_voids_the_round() {
    type Event = fn(&mut Agreement);
    let events: [(&str, Event); 3] = [
        ("another stillness", |agreement| agreement.still(0, 1, 1)),
        ("an answer that it is not", |agreement| agreement.answered(0, 2, false)),
        ("its loss", |agreement| agreement.moved(0)),
    ];
    for (name, event) in events {
        let (mut agreement, round) = asked((1, 1), (0, 0));
        assert_eq!(round, Some(2));
        agreement.answered(0, 2, true);
        event(&mut agreement);
        agreement.answered(1, 2, true);
        agreement.answered(0, 2, true);
        assert!(!agreement.is_reached(), "{name}");
    }
}
