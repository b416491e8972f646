//! The line under every cut and every change of its bytes.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::adapter::MAX_TASKS;
use crate::job::bootstrap::control::ControlMessage;
use crate::job::bootstrap::control::agents::{Ending, HostJob, HostProgram, Stream};

fn secret(byte: u8) -> Secret {
    Secret([byte; 32])
}

fn news() -> impl Strategy<Value = News> {
    prop_oneof![
        Just(News::Ready),
        Just(News::Alive),
        (any::<u32>(), vec(any::<u8>(), 0..200)).prop_map(|(task, bytes)| News::Output {
            task,
            stream: Stream::Err,
            bytes
        }),
        any::<u32>().prop_map(|task| News::Message { task, message: ControlMessage::Finished }),
        (any::<u32>(), any::<i32>()).prop_map(|(task, code)| News::Ended {
            task,
            ending: Ending::Code(code),
            at_nanos: 7
        }),
    ]
}

fn written(messages: &[News]) -> Vec<u8> {
    let mut writer = LineWriter::new(&secret(1));
    let frame = |message: &News| writer.frame(&Encoded::of(message).expect("short")).concat();
    messages.iter().flat_map(frame).collect()
}

/// What comes out of these bytes, and why the line ended.
fn read(pieces: &[&[u8]]) -> (Vec<News>, Option<LineError>) {
    let (mut reader, mut messages) = (LineReader::new(&secret(1)), Vec::new());
    for piece in pieces {
        reader.push(piece);
        loop {
            match reader.take() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

proptest! {
    #[test]
    fn messages_arrive_however_the_bytes_are_cut(messages in vec(news(), 0..8), cuts in vec(any::<prop::sample::Index>(), 0..6)) {
        let bytes = written(&messages);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let (arrived, error) = read(&pieces);
        prop_assert!(error.is_none());
        prop_assert_eq!(arrived, messages);
    }

    #[test]
    fn a_changed_byte_ends_the_line_before_its_message(messages in vec(news(), 1..6), at: prop::sample::Index, flip in 1_u8..) {
        let mut bytes = written(&messages);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let (arrived, _) = read(&[&bytes]);
        prop_assert!(arrived.len() < messages.len());
        prop_assert_eq!(&arrived[..], &messages[..arrived.len()]);
        let whole: usize = written(&arrived).len();
        prop_assert!(whole <= at, "a message with a changed byte came through");
    }

    #[test]
    fn any_bytes_are_answered(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(read(&[&bytes]).0, Vec::new());
        let _ = decode::<Order>(&bytes);
        let _ = decode::<News>(&bytes);
        let _ = announced(&bytes);
    }
}

#[test]
fn each_wrong_frame_has_its_error() {
    let bytes = written(&[News::Ready, News::Alive]);
    let first = written(&[News::Ready]).len();
    assert!(matches!(
        read(&[&bytes[first..]]).1,
        Some(LineError::OutOfOrder { number: 1, due: 0 })
    ));
    let twice = [&bytes[..first], &bytes[..first]].concat();
    assert!(matches!(read(&[&twice]).1, Some(LineError::OutOfOrder { number: 0, due: 1 })));
    let mut long = bytes.clone();
    long[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&[&long]).1, Some(LineError::TooLong { .. })));
    let mut other = LineReader::<News>::new(&secret(2));
    other.push(&bytes);
    assert!(matches!(other.take(), Err(LineError::Unproven { number: 0 })));
    let mut back = LineReader::<Order>::new(&secret(1));
    back.push(&bytes);
    assert!(matches!(back.take(), Err(LineError::Unproven { number: 0 })), "sent back");
    assert!(matches!(decode::<News>(&[0xff; 9]), Err(LineError::Undecodable(_))));
    let mut body = bytes[HEAD..first].to_vec();
    body.push(0);
    assert!(matches!(decode::<News>(&body), Err(LineError::TrailingBytes { extra: 1 })));
}

#[test]
fn a_message_that_is_too_long_is_not_sent() {
    let output = News::Output { task: 0, stream: Stream::Out, bytes: vec![0; MAX_FRAME] };
    assert!(matches!(Encoded::of(&output), Err(LineError::TooLong { .. })));
}

#[test]
fn the_largest_job_fits_an_order() {
    let hosts = (0..MAX_TASKS).map(|host| format!("node{host:07}.cluster.example")).collect();
    let program = HostProgram { ranks: MAX_TASKS as u64, ..HostProgram::default() };
    let job = HostJob {
        hosts,
        host_of: (0..MAX_TASKS as u32).collect(),
        programs: vec![program],
        ..HostJob::default()
    };
    let prepare = Order::Prepare(job.into());
    let encoded = Encoded::of(&prepare).expect("not too long");
    assert!(decode::<Order>(&encoded.body).expect("round trip") == prepare);
}

#[test]
fn a_greeting_before_the_announcement_is_skipped() {
    let greeting = b"Welcome!\n";
    let bytes = [&greeting[..], &announcement("1.2"), b"rest"].concat();
    let found = announced(&bytes).expect("it is there");
    assert_eq!((found.start, &*found.version), (greeting.len(), "1.2"));
    assert_eq!(&bytes[found.end..], b"rest");
    assert_eq!(announced(&bytes[..found.end - 1]), None);
}

#[test]
fn a_secret_travels_as_a_line() {
    let secret = Secret::random().expect("the kernel has random bytes");
    let line = secret.to_line();
    assert_eq!((line.len(), line.ends_with('\n')), (65, true));
    assert_eq!(Secret::from_line(line.trim().as_bytes()), Some(secret.clone()));
    assert_eq!(Secret::from_line(b"abc"), None);
    assert_ne!(secret.of_ranks(), secret.0);
}
