//! Messages that are wrong: each way has its own error, and no bytes make the buffer panic.

use transport_lapi::{Amsend, Context, RemoteRegion, Sent, wireup};

use super::*;
use crate::device::{Device, Options};
use crate::envelope::{self, Offer};

/// Returns a buffer with sections of all kinds.
fn mixed() -> Vec<u8> {
    let mut buffer = Buffer::new(96).unwrap();
    buffer.put_section_header(ElementType::Boolean).unwrap();
    buffer.write(&[true, false, true]).unwrap();
    buffer.put_section_header(ElementType::Object).unwrap();
    buffer.write_object(&cell(1)).unwrap();
    buffer.put_section_header(ElementType::CharDynamic).unwrap();
    buffer.write(&[1_u16, 2]).unwrap();
    buffer.put_section_header(ElementType::Long).unwrap();
    buffer.write(&[4_i64, 5]).unwrap();
    buffer.put_section_header(ElementType::BooleanDynamic).unwrap();
    buffer.write(&[true]).unwrap();
    buffer.commit();
    buffer.to_wire().unwrap()
}

/// Reads a buffer to its end, whatever it contains. Nothing may panic, and sections have no more elements than the
/// message has bytes.
fn read_all(mut buffer: Buffer, len: usize) {
    while let Ok(element) = buffer.get_section_header() {
        let count = buffer.section_size().unwrap();
        assert!(count <= len, "{count} elements in {len} bytes");
        match element.to_static() {
            ElementType::Byte => buffer.read(&mut vec![0_u8; count]).unwrap(),
            ElementType::Char => buffer.read(&mut vec![0_u16; count]).unwrap(),
            ElementType::Short => buffer.read(&mut vec![0_i16; count]).unwrap(),
            ElementType::Boolean => buffer.read(&mut vec![false; count]).unwrap(),
            ElementType::Int => buffer.read(&mut vec![0_i32; count]).unwrap(),
            ElementType::Long => buffer.read(&mut vec![0_i64; count]).unwrap(),
            ElementType::Float => buffer.read(&mut vec![0_f32; count]).unwrap(),
            ElementType::Double => buffer.read(&mut vec![0_f64; count]).unwrap(),
            _ => {
                for _ in 0..count {
                    let is_read = buffer.read_object::<Cell>().is_ok()
                        || buffer.read_object::<(String, u8)>().is_ok()
                        || buffer.read_object::<Vec<()>>().is_ok()
                        || buffer.read_object::<Nested>().is_ok();
                    if !is_read {
                        return;
                    }
                }
            }
        }
    }
}

/// A value that nests as deep as its bytes say.
#[derive(Debug, Serialize, Deserialize)]
struct Nested(Vec<Nested>);

/// Generates bytes with the outlines of a message, so that most of them are read beyond the first header.
fn outlined() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![0_u32..6, any::<u32>()];
    let section = (0_u8..19, number.clone(), prop::collection::vec(any::<u8>(), 0..3));
    let sections = prop::collection::vec(section, 0..5);
    let dynamic = prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..40);
    (sections, dynamic).prop_map(|(sections, dynamic)| {
        let mut primary = Vec::new();
        for (code, count, words) in sections {
            primary.extend([code, 0, 0, 0]);
            primary.extend(count.to_le_bytes());
            primary.extend(words.iter().flat_map(|word| [*word & 1; 8]));
        }
        let len = (primary.len() as u32).to_le_bytes();
        let dynamic_len = (dynamic.len() as u32).to_le_bytes();
        [&[1, 0, 0, 0][..], &len, &primary, &[0; 4], &dynamic_len, &dynamic].concat()
    })
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let len = bytes.len();
        if let Ok(buffer) = Buffer::from_wire(bytes) {
            read_all(buffer, len);
        }
    }

    #[test]
    fn no_outlined_bytes_make_it_panic(bytes in outlined()) {
        let len = bytes.len();
        if let Ok(buffer) = Buffer::from_wire(bytes) {
            read_all(buffer, len);
        }
    }

    #[test]
    fn corrupted_buffers_are_errors_or_can_be_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = mixed();
        let len = bytes.len();
        for (at, value) in changes {
            bytes[at.index(len)] = value;
        }
        if let Ok(buffer) = Buffer::from_wire(bytes) {
            read_all(buffer, len);
        }
    }
}

#[test]
fn truncated_and_extended_buffers_are_errors() {
    let whole = mixed();
    read_all(Buffer::from_wire(whole.clone()).unwrap(), whole.len());
    for len in 0..whole.len() {
        Buffer::from_wire(whole[..len].to_vec()).unwrap_err();
    }
    Buffer::from_wire([&whole[..], &[0]].concat()).unwrap_err();
}

/// Makes a message with these sections and this secondary payload, in big endian.
fn message(sections: &[u8], dynamic: &[u8]) -> Vec<u8> {
    let [len, dynamic_len] = [sections, dynamic].map(|part| (part.len() as u32).to_be_bytes());
    [&[0; 4][..], &len, sections, &[0; 4], &dynamic_len, dynamic].concat()
}

#[track_caller]
fn refused(message: Vec<u8>, wanted: ParseError) {
    assert_eq!(Buffer::from_wire(message).err(), Some(wanted));
}

#[test]
fn truncated() {
    refused(vec![0; 15], ParseError::Truncated { len: 15, needed: 16 });
    let mut short = message(&[0; 8], &[]);
    short.pop();
    refused(short, ParseError::Truncated { len: 23, needed: 24 });
    let mut huge = message(&[], &[]);
    huge[4..8].copy_from_slice(&0xFFFF_FFF8_u32.to_be_bytes());
    refused(huge, ParseError::Truncated { len: 16, needed: 0xFFFF_FFF8 + 16 });
}

#[test]
fn unknown_encoding() {
    let mut bytes = message(&[], &[]);
    bytes[0] = 2;
    refused(bytes, ParseError::UnknownEncoding(2));
}

#[test]
fn uneven_length() {
    refused(message(&[0; 12], &[]), ParseError::UnevenLength { len: 12 });
}

#[test]
fn secondary_length() {
    let mut bytes = message(&[], &[0; 3]);
    bytes.pop();
    refused(bytes, ParseError::SecondaryLength { claimed: 3, carried: 2 });
}

#[test]
fn unknown_type() {
    refused(message(&[18, 0, 0, 0, 0, 0, 0, 0], &[]), ParseError::UnknownType { at: 8, code: 18 });
    let undefined = [4, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0];
    refused(message(&undefined, &[]), ParseError::UnknownType { at: 16, code: 17 });
}

#[test]
fn count() {
    let ints = [4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0];
    let element = ElementType::Int;
    refused(message(&ints, &[]), ParseError::Count { at: 8, count: 3, element });
    let count = u32::MAX as usize;
    let doubles = [7, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF];
    let element = ElementType::Double;
    refused(message(&doubles, &[]), ParseError::Count { at: 8, count, element });
    let objects = [8, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF];
    let element = ElementType::Object;
    refused(message(&objects, &[0; 400]), ParseError::Count { at: 8, count, element });
    let object = [8, 0, 0, 0, 0, 0, 0, 1];
    let too_long = [0, 0, 0, 2, 7];
    refused(message(&object, &too_long), ParseError::Count { at: 8, count: 1, element });
    let shorts = [11, 0, 0, 0, 0, 0, 0, 2];
    let element = ElementType::ShortDynamic;
    refused(message(&shorts, &[0; 3]), ParseError::Count { at: 8, count: 2, element });
}

#[test]
fn boolean() {
    let booleans = [3, 0, 0, 0, 0, 0, 0, 2, 1, 2, 0, 0, 0, 0, 0, 0];
    refused(message(&booleans, &[]), ParseError::Boolean { at: 8, value: 2 });
    let booleans = [12, 0, 0, 0, 0, 0, 0, 2];
    refused(message(&booleans, &[0, 0xFF]), ParseError::Boolean { at: 8, value: 0xFF });
}

#[test]
fn leftover() {
    refused(message(&[], &[0; 5]), ParseError::Leftover { len: 5 });
}

/// The padding of a section is neither checked nor read.
#[test]
fn unused_bytes_are_ignored() {
    let bytes = [0, 9, 9, 9, 0, 0, 0, 1, 5, 9, 9, 9, 9, 9, 9, 9];
    let mut buffer = Buffer::from_wire(message(&bytes, &[])).unwrap();
    assert_eq!(whole::<u8>(&mut buffer, ElementType::Byte), [5]);
}

/// Lists in lists, nested as deep as the message is long, would exhaust the stack.
#[test]
fn nested_objects_are_refused() {
    let depth = 1_000_000;
    let mut object = (depth as u32).to_be_bytes().to_vec();
    object.resize(4 + depth, 0x81);
    let mut buffer = Buffer::from_wire(message(&[8, 0, 0, 0, 0, 0, 0, 1], &object)).unwrap();
    buffer.get_section_header().unwrap();
    let error = buffer.read_object::<Nested>().unwrap_err();
    assert!(matches!(error, BufferError::Dynamic { is_writing: false, .. }), "{error:?}");
}

/// Bytes after the value of an object are an error.
#[test]
fn trailing_bytes_are_refused() {
    let object = [0, 0, 0, 2, 7, 8];
    let mut buffer = Buffer::from_wire(message(&[8, 0, 0, 0, 0, 0, 0, 1], &object)).unwrap();
    buffer.get_section_header().unwrap();
    let error = buffer.read_object::<u8>().unwrap_err();
    let cause = std::error::Error::source(&error).expect("the trailing byte").to_string();
    assert_eq!(cause, "1 bytes follow the value");
}

/// A message longer than any memory is received into nothing.
#[test]
fn memory() {
    const LEN: u64 = 1 << 60;
    let mut adapters = wireup::in_process(2, 1).expect("a job of threads").into_iter().flatten();
    let [zero, one] = [(); 2].map(|()| adapters.next().expect("two tasks"));
    let device = Device::new(zero, Options::default()).expect("a new device");
    let peer = Context::init(one, (), transport_lapi::Options::default());
    let data = RemoteRegion::over_frames(8, LEN, 0);
    let (word, offer) = (envelope::eager(0, 7).to_le_bytes(), Offer { request: 0, data });
    let announce = Amsend::new(0, envelope::RENDEZVOUS, &word, offer.pack().to_vec());
    let sent = peer.session().expect("it is usable").amsend(announce);
    assert_eq!(sent.expect("there is a rank 0"), Sent::Now, "there is room");
    let error = device.recv_buffer(Some(1), Some(7), 0).expect_err("there is no such memory");
    let violation = ParseError::Memory { len: LEN as usize };
    let wanted = TransferError::Malformed { source_rank: 1, tag: 7, violation };
    assert_eq!(error.class(), crate::ErrorClass::NoMem);
    assert_eq!(error.to_string(), wanted.to_string());
}
