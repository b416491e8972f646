//! Buffers as messages: sections of numbers and of objects, by whatever protocol the length calls for.

use std::sync::Barrier;

use mpjdev::Mode;
use mpjdev::buffer::{Buffer, BufferError, ElementType, ParseError, TransferError, WrongState};

use super::job::Setup;

/// Elements of the section of numbers: from none to more than is on its way at once.
const LENGTHS: [usize; 6] = [0, 1, 60, 1_000, 20_000, 300_000];

/// A committed buffer with `len` numbers and as many bytes of an object.
fn buffer(len: usize) -> Buffer {
    let numbers: Vec<i64> = (0..len as i64).collect();
    let mut buffer = Buffer::new(16 + 8 * len).unwrap();
    buffer.put_section_header(ElementType::Long).unwrap();
    buffer.write(&numbers).unwrap();
    buffer.put_section_header(ElementType::Object).unwrap();
    buffer.write_object(&"x".repeat(len)).unwrap();
    buffer.commit();
    buffer
}

/// Reads a buffer of `len`.
fn check(mut buffer: Buffer, len: usize) {
    assert_eq!(buffer.get_section_header().unwrap(), ElementType::Long);
    let mut numbers = vec![0_i64; buffer.section_size().unwrap()];
    buffer.read(&mut numbers).unwrap();
    assert!(numbers.into_iter().eq(0..len as i64));
    assert_eq!(buffer.get_section_header().unwrap(), ElementType::Object);
    assert!(buffer.read_object::<String>().unwrap() == "x".repeat(len));
}

/// To another rank, blocking and not.
pub fn buffers_of_every_size(setup: &Setup) {
    setup.run(2, |rank| {
        for (tag, len) in (0..).zip(LENGTHS) {
            if rank.me() == 0 {
                rank.send_buffer(&buffer(len), 1, tag, 0, Mode::Standard).unwrap();
                let request = rank.isend_buffer(&buffer(len), 1, tag, 0, Mode::Synchronous);
                rank.iwait(request.unwrap()).unwrap();
                continue;
            }
            for _ in 0..2 {
                let (buffer, status) = rank.recv_buffer(Some(0), None, 0).unwrap();
                assert_eq!((status.source, status.tag), (0, tag));
                assert_eq!(status.bytes, buffer.to_wire().unwrap().len());
                check(buffer, len);
            }
        }
    });
}

/// The message does not change by what the sender does with its buffer after it has started the send.
pub fn a_buffer_may_be_used_again_at_once(setup: &Setup) {
    let met = Barrier::new(2);
    setup.run(2, move |rank| {
        for (tag, len) in (0..).zip(LENGTHS) {
            if rank.me() == 1 {
                met.wait();
                let (buffer, _) = rank.recv_buffer(Some(0), Some(tag), 0).unwrap();
                check(buffer, len);
                continue;
            }
            let mut buffer = buffer(len);
            let request = rank.isend_buffer(&buffer, 1, tag, 0, Mode::Standard).unwrap();
            buffer.clear();
            buffer.put_section_header(ElementType::Long).unwrap();
            buffer.write(&vec![-1_i64; len]).unwrap();
            drop(buffer);
            met.wait();
            rank.iwait(request).unwrap();
        }
    });
}

/// A message that is no buffer is an error only of the receive that asked for one.
pub fn messages_that_are_no_buffers(setup: &Setup) {
    setup.run(2, |rank| {
        if rank.me() == 0 {
            rank.send(&[0; 20], 1, 1).unwrap();
            rank.send_buffer(&buffer(3), 1, 2, 0, Mode::Standard).unwrap();
            return;
        }
        let error = rank.recv_buffer(Some(0), Some(1), 0).unwrap_err();
        let TransferError::Malformed { source_rank: 0, tag: 1, violation } = error else {
            panic!("{error}");
        };
        assert_eq!(violation, ParseError::SecondaryLength { claimed: 0, carried: 4 });
        check(rank.recv_buffer(Some(0), Some(2), 0).unwrap().0, 3);
    });
}

/// Nothing goes out of a buffer that may still be written.
pub fn writable_buffers_are_not_sent(setup: &Setup) {
    setup.run(1, |rank| {
        let writable = Buffer::new(8).unwrap();
        let error = rank.send_buffer(&writable, 0, 0, 0, Mode::Standard).unwrap_err();
        let TransferError::Buffer(BufferError::WrongState(WrongState::Writable)) = error else {
            panic!("{error}");
        };
        assert_eq!(rank.iprobe(0, 0).unwrap(), None);
    });
}
