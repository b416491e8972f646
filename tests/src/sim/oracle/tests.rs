//! Every rule of the oracle refuses the history that breaks it, and nothing else.

use super::*;

fn sent(tag: i32) -> Sent {
    Sent { source: 0, dest: 1, context: 0, tag, len: 8, synchronous: false, ended: Some(0) }
}

fn status(message: &Sent) -> Status {
    let Sent { source, tag, len, .. } = *message;
    Status { source: source as u32, tag, bytes: len, cancelled: false }
}

/// Tag 1, then 2, then 1 again, from rank 0 to rank 1, all received by receives for any tag; each
/// posted in the step of its number, and seen to end ten steps later.
fn history() -> History {
    let sent: Vec<_> = [1, 2, 1].map(sent).into();
    let receive = |(number, message): (usize, &Sent)| Receive {
        posted: number,
        ended: Some(Ended { step: number + 10, status: status(message), number: Some(number) }),
        ..Receive::new(1, 0, None, None)
    };
    let receives = sent.iter().enumerate().map(receive).collect();
    History { step: 100, sent, receives }
}

/// Lets two receives change their messages.
fn swap(history: &mut History, one: usize, other: usize) {
    let ended = history.receives[one].ended.take();
    history.receives[one].ended = std::mem::replace(&mut history.receives[other].ended, ended);
}

fn cancel(history: &mut History, place: usize, step: usize) {
    let receive = &mut history.receives[place];
    receive.cancelled = Some(step);
    let status = Status { source: 0, tag: 0, bytes: 0, cancelled: true };
    receive.ended = Some(Ended { step, status, number: None });
}

#[track_caller]
fn refused(history: &History, why: &str) {
    let error = verify(history).expect_err("a rule is broken");
    assert!(error.contains(why), "{error}");
}

#[test]
fn an_orderly_history_is_accepted() {
    assert_eq!(verify(&history()), Ok(()));
}

#[test]
fn o1_a_message_is_neither_lost_nor_doubled_nor_made() {
    let mut lost = history();
    cancel(&mut lost, 2, 3);
    refused(&lost, "message 2 was lost");
    let mut doubled = history();
    doubled.receives[2].ended = doubled.receives[0].ended.clone();
    refused(&doubled, "message 0 went to receives 0 and 2");
    let mut made = history();
    made.sent.pop();
    refused(&made, "nobody sent");
    let mut open = history();
    open.receives[1].ended = None;
    refused(&open, "has not ended");
}

#[test]
fn o1_a_receive_gets_what_it_asks_for() {
    let spoil: [fn(&mut Receive); 5] = [
        |receive| receive.tag = Some(2),
        |receive| receive.source = Some(1),
        |receive| receive.context = 1,
        |receive| receive.rank = 0,
        |receive| receive.ended.iter_mut().for_each(|ended| ended.status.bytes = 9),
    ];
    for spoil in spoil {
        let mut wrong = history();
        spoil(&mut wrong.receives[0]);
        refused(&wrong, "message 0, Sent");
    }
    let mut cancelled = history();
    cancelled.receives[0].cancelled = Some(5);
    refused(&cancelled, "was cancelled or not");
}

#[test]
fn o1_messages_without_bytes_are_told_apart_by_their_order() {
    let mut history = history();
    for number in [0, 2] {
        history.sent[number].len = 0;
        let ended = history.receives[number].ended.as_mut().expect("it has ended");
        (ended.number, ended.status.bytes) = (None, 0);
    }
    assert_eq!(verify(&history), Ok(()));
    history.sent[2].tag = 3;
    refused(&history, "nobody sent");
}

#[test]
fn o2_a_message_does_not_overtake_another_one() {
    let mut wrong = history();
    swap(&mut wrong, 0, 2);
    refused(&wrong, "message 1 overtook message 0");
    // The first receive does not fit the first message: the second message may go there.
    let mut right = history();
    swap(&mut right, 0, 1);
    right.receives[0].tag = Some(2);
    assert_eq!(verify(&right), Ok(()));
}

#[test]
fn o2_messages_of_different_sources_have_no_order() {
    let mut history = history();
    history.sent[0].source = 5;
    let ended = history.receives[0].ended.as_mut().expect("it has ended");
    ended.status.source = 5;
    swap(&mut history, 0, 1);
    assert_eq!(verify(&history), Ok(()));
}

#[test]
fn o3_a_message_does_not_pass_an_earlier_receive() {
    let mut wrong = history();
    wrong.sent.pop();
    cancel(&mut wrong, 2, 50);
    wrong.receives.rotate_right(1);
    refused(&wrong, "passed receive 0");
    // Cancelled before the messages were seen elsewhere: they may have come after that.
    cancel(&mut wrong, 0, 9);
    assert_eq!(verify(&wrong), Ok(()));
}

#[test]
fn o4_a_synchronous_send_waits_for_its_receive() {
    let mut history = history();
    history.sent[2].synchronous = true;
    refused(&history, "synchronous");
    history.sent[2].ended = Some(2);
    assert_eq!(verify(&history), Ok(()));
}

#[test]
fn probes_see_what_was_sent_and_not_received() {
    let mut history = history();
    let seen = status(&history.sent[0]);
    let asked = Receive::new(1, 0, None, None);
    assert!(!history.may_be_probed(&asked, seen), "all were received");
    history.receives.pop();
    assert!(history.may_be_probed(&asked, seen));
    assert!(!history.may_be_probed(&Receive::new(1, 0, None, Some(2)), seen));
    assert!(!history.may_be_probed(&Receive::new(0, 0, None, None), seen));
    assert!(!history.may_be_probed(&asked, Status { bytes: 9, ..seen }));
}
