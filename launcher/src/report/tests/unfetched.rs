//! Sends that wait for their receive while the receiver waits for something else.

use super::*;

/// What is said of sends, beside the cycle.
fn said(waits: &[Wait]) -> String {
    let standings =
        standing::told(&joined(waits.len() as u32), &waiting(waits.iter().copied()), None);
    crate::report::unfetched::text(&standings)
}

const BECAUSE: &str = "waits for its receive, since it goes by rendezvous (shorter ones may be sent \
                       eagerly, but correct programs do not rely on that)";

#[test]
fn two_that_send_first_are_told_what_to_do() {
    let expected = "\
mpjrun:   cycle: 0 waits for 1 (send tag 7) -> 1 waits for 0 (send tag 8) -> 0
mpjrun:   ranks 0-1 and their receivers send first: large messages wait for their receive \
(rendezvous); use sendrecv or isend, or let one side receive first
";
    assert_eq!(found(&[send(1, 7), send(0, 8)]), expected);
    assert!(!found(&[send(1, 7), recv(0, 9)]).contains("send first"));
    let short = |peer, tag| Wait { bytes: 1_000, ..send(peer, tag) };
    let told = found(&[short(1, 7), short(0, 8)]);
    assert!(told.contains("send first: their messages wait for their receive (rend"), "{told}");
}

#[test]
fn a_receiver_that_waits_for_something_else_is_named() {
    let cycle = "mpjrun:   cycle: 0 waits for 1 (send tag 1) -> 1 waits for 0 (recv tag 2) -> 0\n";
    let long = Wait { bytes: 30_000_000, ..send(1, 1) };
    let line = format!(
        "mpjrun:   rank 0's message of 30000000 bytes to rank 1 (tag 1) {BECAUSE}; rank 1 waits for \
         something else first: recv tag 2 from rank 0\n"
    );
    assert_eq!(found(&[long, recv(0, 2)]), format!("{cycle}{line}"));
    let barrier =
        Wait { call: Call::Barrier, operation: Call::Barrier, context: 5, bytes: 0, ..recv(0, 0) };
    let told = said(&[Wait { context: 4, ..long }, barrier]);
    assert!(told.contains("to rank 1 (tag 1 on communicator 2) waits"), "{told}");
    assert!(told.ends_with("something else first: barrier on communicator 2\n"), "{told}");
    let told = said(&[long, finishing()]);
    assert!(told.ends_with("; rank 1 has come to its end without it\n"), "{told}");
    let told = said(&[Wait { bytes: 1_000, ..long }, recv(0, 2)]);
    assert!(
        told.contains("since it goes by rendezvous; rank 1 waits for"),
        "of any length: {told}"
    );
    let synchronous = Wait { phase: Phase::Unanswered, bytes: 1, ..send(1, 1) };
    assert_eq!(
        said(&[synchronous, recv(0, 2)]),
        "mpjrun:   rank 0's message of 1 byte to rank 1 (tag 1) waits for its receive, since it is \
         synchronous; rank 1 waits for something else first: recv tag 2 from rank 0\n"
    );
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

#[test]
fn equal_messages_are_told_together_and_many_are_counted() {
    let mut waits = vec![send(0, 1); 5];
    waits[0] = recv(None, 9);
    let expected = format!(
        "mpjrun:   each message of 1048576 bytes of ranks 1-4 to rank 0 (tag 1) {BECAUSE}; rank 0 waits \
         for something else first: recv tag 9 from any rank\n"
    );
    assert_eq!(said(&waits), expected);
    let mut waits: Vec<Wait> = (0..64).map(|tag| send(0, tag)).collect();
    waits[0] = recv(None, 99);
    let told = said(&waits);
    assert_eq!(told.lines().count(), 5, "{told}");
    assert!(
        told.ends_with("and 59 more kinds of messages that wait for their receive\n"),
        "{told}"
    );
}
