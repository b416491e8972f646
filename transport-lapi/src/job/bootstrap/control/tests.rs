//! The encoding, fixed by golden bytes and tested with arbitrary ones, and the line if one end is gone or full.

use proptest::prelude::*;

use super::*;
use crate::adapter::MAX_TASKS;
use crate::adapter::waits::{CallCode, Space};
use crate::adapters::MAX_TASKS_PER_HOST;

fn line(task: TaskId) -> (ControlReceiver, Control) {
    let (launcher, rank) = control_pair().expect("a socket pair");
    (launcher, Control::new(task, rank))
}

fn socket_of(rank: &Control) -> &OwnedFd {
    let Line::Launcher(line) = &rank.line else { panic!("a line to a launcher") };
    &line.socket
}

fn failed(message: &str, location: &str) -> ControlMessage {
    let (message, location) = (message.to_owned(), location.to_owned());
    ControlMessage::Failed { at_nanos: 0x0102, message, location, thread: 9 }
}

fn queues() -> Queues {
    let space = Space { context: 2, id: 7, label: None, is_collective: true };
    let labelled = Space { label: Some(5), is_collective: false, ..space };
    let posted = vec![PostedReceive { source: Some(1), tag: None, space, bytes: 3 }];
    let unexpected =
        vec![UnexpectedMessage { source: 4, tag: -1, space: labelled, bytes: 6, eager: true }];
    let spaces = vec![SpaceMembers::new(space, "rows", vec![6, 4, 5, 2])];
    Queues { posted, all_posted: 1, unexpected, all_unexpected: 2, spaces }
}

fn counters() -> MessageCounts {
    let protocol = |n| ProtocolCounts { messages: n, bytes: n + 1, unexpected: n + 2 };
    let (eager, rendezvous) = (protocol(1), protocol(4));
    let (received, fallbacks, unexpected_bytes, dropped) = (7, 8, 9, 10);
    MessageCounts { eager, rendezvous, received, fallbacks, unexpected_bytes, dropped }
}

fn endpoints() -> Endpoints {
    let addresses = vec![b"ab".to_vec(), vec![7]];
    Endpoints { network: "net".to_owned(), client: "am".to_owned(), first: 4, addresses }
}

/// These bytes are the contract: another encoder may be used if it writes the same.
#[test]
fn golden_bytes() {
    let (counters, endpoints, queues) = (counters(), endpoints(), queues());
    let name = demand::Name::Port(b"p".to_vec());
    let vocabulary = Vocabulary::new([("no", true)], "s", "w");
    let numbers = |numbers: std::ops::RangeInclusive<u64>| -> Vec<u8> {
        numbers.flat_map(u64::to_le_bytes).collect()
    };
    let leaving = [&[3, 0, 0, 0][..], &numbers(1..=10)].concat();
    let golden: [(ControlMessage, &[u8]); 13] = [
        (ControlMessage::Joined { pid: 0x1_0203 }, &[0, 0, 0, 0, 3, 2, 1, 0]),
        (ControlMessage::Finished, &[1, 0, 0, 0]),
        (
            failed("no", "a.rs:1"),
            b"\x02\0\0\0\x02\x01\0\0\0\0\0\0\x02\0\0\0\0\0\0\0no\x06\0\0\0\0\0\0\0a.rs:1\x09\0\0\0",
        ),
        (ControlMessage::Leaving { counters }, &leaving),
        (
            ControlMessage::Aborted { at_nanos: 2, code: -1 },
            b"\x04\0\0\0\x02\0\0\0\0\0\0\0\xff\xff\xff\xff",
        ),
        (
            ControlMessage::Queues { context: 3, queues },
            b"\x05\0\0\0\x03\0\0\0\
              \x01\0\0\0\0\0\0\0\x01\x01\0\0\0\0\x02\0\0\0\x07\0\0\0\0\x01\
              \x03\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\
              \x01\0\0\0\0\0\0\0\x04\0\0\0\xff\xff\xff\xff\x02\0\0\0\x07\0\0\0\x01\x05\0\0\0\0\
              \x06\0\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\0\
              \x01\0\0\0\0\0\0\0\x02\0\0\0\x07\0\0\0\0\x01\x04\0\0\0\0\0\0\0rows\
              \x02\0\0\0\0\0\0\0\x02\0\0\0\x02\0\0\0\x04\0\0\0\x06\0\0\0",
        ),
        (
            ControlMessage::MetLoss { at_nanos: 6, lost: 2 },
            b"\x07\0\0\0\x06\0\0\0\0\0\0\0\x02\0\0\0",
        ),
        (
            ControlMessage::Vocabulary { first: 1, contexts: 3, vocabulary },
            b"\x08\0\0\0\x01\0\0\0\x03\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0no\x01\
              \x01\0\0\0\0\0\0\0s\x01\0\0\0\0\0\0\0w\0\0\0\0\0\0\0\0",
        ),
        (
            ControlMessage::Endpoints { endpoints },
            b"\x09\0\0\0\x03\0\0\0\0\0\0\0net\x02\0\0\0\0\0\0\0am\x04\0\0\0\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0ab\x01\0\0\0\0\0\0\0\x07",
        ),
        (
            ControlMessage::Unreachable { at_nanos: 3, why: "ca".to_owned() },
            b"\x0a\0\0\0\x03\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0ca",
        ),
        (
            ControlMessage::Mistaken { at_nanos: 3, message: "no".to_owned() },
            b"\x0b\0\0\0\x03\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0no",
        ),
        (
            ControlMessage::Chosen { name: "ring".to_owned(), times: 3 },
            b"\x0c\0\0\0\x04\0\0\0\0\0\0\0ring\x03\0\0\0\0\0\0\0",
        ),
        (
            ControlMessage::Demanded { demand: Demand::Lookup { name } },
            b"\x0d\0\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0p",
        ),
    ];
    for (message, bytes) in golden {
        assert_eq!(encode(&message), bytes);
        assert_eq!(decode(bytes).expect("golden bytes decode"), message);
    }
}

#[test]
fn damaged_packets_are_refused_each_for_its_reason() {
    let whole = encode(&failed("text", "place"));
    for len in 0..whole.len() {
        let error = decode(&whole[..len]).expect_err("a cut packet is no message");
        assert!(matches!(error, ControlError::Undecodable(_)), "{len}: {error}");
    }
    let mut trailing = whole.clone();
    trailing.push(0);
    assert!(matches!(decode(&trailing), Err(ControlError::TrailingBytes { extra: 1 })));
    let mut unknown = whole.clone();
    unknown[0] = 99;
    assert!(matches!(decode(&unknown), Err(ControlError::Undecodable(_))));
    let mut huge = whole;
    huge[12..20].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(decode(&huge), Err(ControlError::Undecodable(_))));
    let long = vec![0; MAX_MESSAGE + 1];
    assert!(matches!(decode(&long), Err(ControlError::TooLong { len }) if len == MAX_MESSAGE + 1));
}

/// The largest queues that a rank can report fit into one message (L1).
#[test]
fn the_largest_queues_fit_a_packet() {
    let last = MAX_TASKS as u32 - 1;
    let even: Vec<u32> = (0..=last).rev().step_by(2).take(MAX_TASKS_PER_HOST / 2).collect();
    let name = format!("x{}", "é".repeat(100));
    let space = Space { context: 3, id: u32::MAX, label: Some(u32::MAX), is_collective: true };
    let members = SpaceMembers::new(space, &name, even);
    assert_eq!(members.members.len(), SpaceMembers::MAX_RANGES, "none is left out");
    let all = SpaceMembers::new(space, &name, (0..=last).collect());
    assert_eq!(all.members, [RankRange { first: 0, last }]);
    let more = (0..=last).step_by(2).collect();
    assert_eq!(SpaceMembers::new(space, &name, more).members, [], "too many to be told");
    assert_eq!(members.name.len(), SpaceMembers::MAX_NAME - 1, "cut between characters");
    let posted = PostedReceive { source: Some(last), tag: Some(2), space, bytes: 4 };
    let unexpected = UnexpectedMessage { source: last, tag: -1, space, bytes: 6, eager: true };
    let queues = Queues {
        posted: vec![posted; Queues::LISTED],
        all_posted: u64::MAX,
        unexpected: vec![unexpected; Queues::LISTED],
        all_unexpected: u64::MAX,
        spaces: vec![members; Queues::SPACES],
    };
    let message = ControlMessage::Queues { context: 3, queues };
    let packet = encode(&message);
    assert!(packet.len() < MAX_MESSAGE / 2, "{}", packet.len());
    assert_eq!(decode(&packet).expect("round trip"), message);
}

/// A vocabulary as a hostile rank may send it, without the checks of [`Vocabulary::new`].
fn packet_with(calls: &[&str], space: &str, client: &str) -> Vec<u8> {
    let mut packet = [8_u32, 0, 1].map(u32::to_le_bytes).concat();
    let text = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    packet.extend((calls.len() as u64).to_le_bytes());
    calls.iter().for_each(|name| packet.extend([text(name), vec![0]].concat()));
    packet.extend([text(space), text("world"), text(client)].concat());
    packet
}

#[test]
fn vocabularies_that_are_not_fit_to_be_shown_are_refused() {
    let refused = |calls: &[&str], space| match decode(&packet_with(calls, space, "")) {
        Err(error) => error.to_string(),
        Ok(taken) => panic!("{taken:?}"),
    };
    let words = |place| format!("name {place} is not 1 to 32 printable characters");
    let long = "x".repeat(Vocabulary::MAX_NAME + 1);
    for name in ["", "\u{1b}[2J", "two\nlines", "\u{e9}", &long] {
        assert_eq!(refused(&["good", name], "space"), words(2), "{name:?}");
        assert_eq!(refused(&[], name), words(1), "{name:?}");
    }
    let client = decode(&packet_with(&[], "space", "two\nlines")).expect_err("two lines");
    assert_eq!(client.to_string(), words(3));
    let number = Vocabulary::MAX_CALLS + 1;
    let words = "vocabulary of 257 calls, the limit is 256";
    assert_eq!(refused(&vec!["x"; number], "space"), words);
    let mut endless = packet_with(&["good"], "space", "client");
    assert!(decode(&endless).is_ok());
    endless[12..20].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(decode(&endless), Err(ControlError::Undecodable(_))));
}

#[test]
fn the_largest_vocabulary_fits_a_packet_and_names_its_calls() {
    let names: Vec<String> =
        (1..=Vocabulary::MAX_CALLS).map(|code| format!("{code:032}")).collect();
    let calls = names.iter().map(|name| (name.as_str(), name.ends_with('7')));
    let vocabulary = Vocabulary::new(calls, &names[0], &names[1]);
    let message =
        ControlMessage::Vocabulary { first: 0, contexts: 1, vocabulary: vocabulary.clone() };
    assert_eq!(decode(&encode(&message)).expect("round trip"), message);
    for (code, name) in [(1, names[0].as_str()), (256, &names[255])] {
        assert_eq!(vocabulary.name(CallCode(code)), name);
    }
    assert!(vocabulary.needs_all(CallCode(7)) && !vocabulary.needs_all(CallCode(8)));
    for unknown in [0, 257, u16::MAX].map(CallCode) {
        assert_eq!(vocabulary.name(unknown), format!("call {}", unknown.0));
        assert!(!vocabulary.needs_all(unknown));
    }
}

#[test]
fn names_that_are_not_fit_to_be_shown_are_refused() {
    for name in ["", "two\nlines", "123456789012345678901234567890123"] {
        let message = ControlMessage::Chosen { name: name.to_owned(), times: 1 };
        let refused = decode(&encode(&message));
        assert!(matches!(refused, Err(ControlError::IllegalName { place: 1 })), "{name:?}");
    }
}

#[test]
fn messages_arrive_in_order_and_then_the_end() {
    let (launcher, rank) = line(7);
    assert_eq!(launcher.try_recv().expect("nothing is no error"), Incoming::Nothing);
    rank.joined();
    rank.failed("boom", "src/main.rs:3:5");
    rank.leaving(MessageCounts { received: 3, ..MessageCounts::default() });
    rank.clone().finished();
    drop(rank);
    let pid = std::process::id();
    let first = launcher.try_recv().expect("joined");
    assert_eq!(first, Incoming::Message(ControlMessage::Joined { pid }));
    let Incoming::Message(ControlMessage::Failed { at_nanos, message, location, thread }) =
        launcher.try_recv().expect("failed")
    else {
        panic!("the second message is the failure");
    };
    assert!(at_nanos > 0 && at_nanos <= monotonic_nanos());
    assert_eq!((message.as_str(), location.as_str()), ("boom", "src/main.rs:3:5"));
    assert_eq!(thread, gettid().as_raw_nonzero().get());
    let third = launcher.try_recv().expect("leaving");
    let counters = MessageCounts { received: 3, ..MessageCounts::default() };
    assert_eq!(third, Incoming::Message(ControlMessage::Leaving { counters }));
    let fourth = launcher.try_recv().expect("finished");
    assert_eq!(fourth, Incoming::Message(ControlMessage::Finished));
    assert_eq!(launcher.try_recv().expect("end"), Incoming::End);
}

#[test]
fn the_first_loss_is_told_and_no_other() {
    let (launcher, rank) = line(3);
    rank.met_loss(3);
    rank.met_loss(1);
    rank.clone().met_loss(2);
    rank.met_loss(1);
    drop(rank);
    let told = launcher.try_recv().expect("a loss");
    assert!(matches!(told, Incoming::Message(ControlMessage::MetLoss { lost: 1, .. })));
    assert_eq!(launcher.try_recv().expect("end"), Incoming::End);
}

#[test]
fn a_vanished_launcher_is_ignored() {
    let (launcher, rank) = line(0);
    drop(launcher);
    rank.joined();
    rank.failed("nobody hears this", "");
    rank.finished();
}

#[test]
fn overlong_texts_are_cut_between_characters() {
    let (launcher, rank) = line(0);
    let text = format!("x{}", "é".repeat(MAX_TEXT));
    rank.failed(&text, &text);
    let Incoming::Message(ControlMessage::Failed { message, location, .. }) =
        launcher.try_recv().expect("it fits")
    else {
        panic!("a failure was sent");
    };
    assert_eq!((message.len(), location.len()), (MAX_TEXT - 1, MAX_LOCATION - 1));
    assert!(text.starts_with(&message) && text.starts_with(&location));
}

#[test]
fn a_packet_above_the_limit_is_refused_and_the_next_one_arrives() {
    let (launcher, rank) = line(1);
    send(socket_of(&rank), &vec![0; MAX_MESSAGE + 5], SendFlags::empty())
        .expect("the socket takes it");
    rank.finished();
    let error = launcher.try_recv().expect_err("too long");
    assert!(matches!(error, ControlError::TooLong { len } if len == MAX_MESSAGE + 5));
    let next = launcher.try_recv().expect("the line is still usable");
    assert_eq!(next, Incoming::Message(ControlMessage::Finished));
}

#[test]
fn a_full_line_gives_up_after_its_patience() {
    let (launcher, rank) = line(1);
    let noise = encode(&ControlMessage::Finished);
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    while send(socket_of(&rank), &noise, flags).is_ok() {}
    let start = std::time::Instant::now();
    rank.joined();
    assert!(start.elapsed() >= PATIENCE);
    assert!(matches!(launcher.try_recv(), Ok(Incoming::Message(_))));
}

proptest! {
    /// Arbitrary bytes never panic, and whatever decodes encodes to the same bytes.
    #[test]
    fn arbitrary_bytes_are_refused_or_canonical(packet in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = decode(&packet) {
            prop_assert_eq!(encode(&message), packet);
        }
    }

    /// The same, close to valid messages.
    #[test]
    fn mutated_messages_are_refused_or_canonical(
        text in ".{0,20}",
        at in 0..60usize,
        byte in any::<u8>(),
    ) {
        let mut packet = encode(&failed(&text, "src/lib.rs:1:1"));
        let at = at % packet.len();
        packet[at] = byte;
        if let Ok(message) = decode(&packet) {
            prop_assert_eq!(encode(&message), packet);
        }
    }

    /// The same for lists in lists.
    #[test]
    fn mutated_queues_are_refused_or_canonical(
        ranks in prop::collection::vec(0..40_u32, 0..20),
        name in ".{0,20}",
        at in 0..200usize,
        byte in any::<u8>(),
    ) {
        let other = Space { id: 3, label: Some(1), ..Space::default() };
        let spaces = vec![SpaceMembers::new(Space::default(), &name, ranks), SpaceMembers::new(other, "", vec![])];
        let queues = Queues { spaces, ..Queues::default() };
        let mut packet = encode(&ControlMessage::Queues { context: 0, queues });
        let at = at % packet.len();
        packet[at] = byte;
        if let Ok(message) = decode(&packet) {
            prop_assert_eq!(encode(&message), packet);
        }
    }

    #[test]
    fn every_message_comes_back(
        at_nanos in any::<u64>(),
        text in ".*",
        thread in any::<i32>(),
    ) {
        let (message, location) = (text.clone(), text);
        let message = ControlMessage::Failed { at_nanos, message, location, thread };
        prop_assert_eq!(decode(&encode(&message)).expect("round trip"), message);
    }
}
