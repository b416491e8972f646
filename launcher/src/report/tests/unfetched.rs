//! Sends that wait for their receive while the receiver waits for something else.

use super::*;

/// What is said of sends, beside the cycle.
fn said(waits: &[Wait]) -> String {
    let standings =
        standing::told(&joined(waits.len() as u32), &waiting(waits.iter().copied()), None);
    crate::report::unfetched::text(&standings)
}

const LARGE: &str = "large messages wait for their receive (rendezvous; shorter ones may be sent eagerly, but \
                     correct programs do not rely on that)\n";

#[test]
fn two_that_send_first_are_told_what_to_do() {
    let expected = "\
mpjrun:   cycle: 0 waits for 1 (send tag 7) -> 1 waits for 0 (send tag 8) -> 0
mpjrun:   ranks 0-1 and their receivers send first: messages wait for their receive \
(rendezvous); use sendrecv or isend, or let one side receive first
";
    assert_eq!(found(&[send(1, 7), send(0, 8)]), expected);
    assert!(!found(&[send(1, 7), recv(0, 9)]).contains("send first"));
}

#[test]
fn a_large_message_that_is_not_taken_first_is_told() {
    let cycle = "mpjrun:   cycle: 0 waits for 1 (send tag 1) -> 1 waits for 0 (recv tag 2) -> 0\n";
    let long = Wait { bytes: 30_000_000, ..send(1, 1) };
    let line = format!("mpjrun:   rank 0 sends what its receiver does not take first: {LARGE}");
    assert_eq!(found(&[long, recv(0, 2)]), format!("{cycle}{line}"));
    assert_eq!(said(&[long, finishing()]), line);
    assert_eq!(said(&[Wait { bytes: 1_000, ..long }, recv(0, 2)]), "");
    let synchronous = Wait { phase: Phase::Unanswered, ..long };
    assert_eq!(said(&[synchronous, recv(0, 2)]), "");
    let line = format!("mpjrun:   ranks 1-4 send what their receivers do not take first: {LARGE}");
    let mut waits = vec![send(0, 1); 5];
    waits[0] = recv(None, 9);
    assert_eq!(said(&waits), line);
}

#[test]
fn a_send_that_is_about_to_be_received_is_not_told() {
    for receive in [recv(0, 1), recv(None, 1), recv(0, None), recv(None, None)] {
        assert_eq!(said(&[send(1, 1), receive]), "");
    }
    for receive in [Wait { context: 2, ..recv(0, 1) }, recv(1, 1), recv(0, 2)] {
        assert_ne!(said(&[send(1, 1), receive]), "");
    }
    let leaving = Wait { phase: Phase::Leaving, ..send(1, 1) };
    let signal = Wait { call: Call::Barrier, operation: Call::Barrier, context: 1, ..send(1, 0) };
    assert_eq!(said(&[leaving, recv(0, 2)]), "");
    assert_eq!(said(&[signal, recv(0, 2)]), "");
    assert_eq!(said(&[send(9, 1), recv(0, 2)]), "", "a rank that does not exist");
    let mut awake = waiting([send(1, 1), recv(0, 2)]);
    awake.ranks[1] = Seen::from(Some(state(&[])));
    assert!(!found_in(&joined(2), &awake).contains("waits for its receive"));
}

#[test]
fn a_message_to_oneself_is_told_as_such() {
    let advice = "before it receives: use sendrecv or isend\n";
    let told = said(&[send(0, 1), recv(0, 2)]);
    assert_eq!(told, format!("mpjrun:   rank 0 sends to itself {advice}"));
    let told = said(&[send(0, 1), send(1, 1), send(2, 1)]);
    let advice = "before they receive: use sendrecv or isend\n";
    assert_eq!(told, format!("mpjrun:   ranks 0-2 send to themselves {advice}"));
}
