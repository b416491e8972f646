//! The exact bytes of a buffer, in both byte orders.

use super::*;

/// Two sections of numbers and one with an object, as a big-endian machine sends them.
const BIG: [u8; 81] = [
    0, 0, 0, 0, 0, 0, 0, 56, // Big endian; 56 bytes of sections.
    4, 0, 0, 0, 0, 0, 0, 3, // INT, 3 elements.
    0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFE, // 1, -2
    0, 1, 0, 0, 0, 0, 0, 0, // 65536, and padding.
    7, 0, 0, 0, 0, 0, 0, 2, // DOUBLE, 2 elements.
    0x3F, 0xF8, 0, 0, 0, 0, 0, 0, // 1.5
    0xBF, 0xD0, 0, 0, 0, 0, 0, 0, // -0.25
    8, 0, 0, 0, 0, 0, 0, 1, // OBJECT, 1 element.
    0, 0, 0, 0, 0, 0, 0, 9, // 9 bytes of dynamic sections.
    0, 0, 0, 5, // An object of 5 bytes.
    0x82, 0x62, b'a', b'b', 7, // In CBOR: a list of 2; a text of 2 bytes; 7.
];

/// The same sections from a little-endian machine.
const LITTLE: [u8; 81] = [
    1, 0, 0, 0, 56, 0, 0, 0, // Little endian.
    4, 0, 0, 0, 3, 0, 0, 0, // INT
    1, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, //
    0, 0, 1, 0, 0, 0, 0, 0, //
    7, 0, 0, 0, 2, 0, 0, 0, // DOUBLE
    0, 0, 0, 0, 0, 0, 0xF8, 0x3F, //
    0, 0, 0, 0, 0, 0, 0xD0, 0xBF, //
    8, 0, 0, 0, 1, 0, 0, 0, // OBJECT
    0, 0, 0, 0, 9, 0, 0, 0, // The secondary header.
    5, 0, 0, 0, //
    0x82, 0x62, b'a', b'b', 7,
];

/// Checks the values in the bytes above.
fn check(buffer: &mut Buffer) {
    assert_eq!(whole::<i32>(buffer, ElementType::Int), [1, -2, 65536]);
    assert_eq!(whole::<f64>(buffer, ElementType::Double), [1.5, -0.25]);
    assert_eq!(buffer.get_section_header().unwrap(), ElementType::Object);
    assert_eq!(buffer.section_size().unwrap(), 1);
    assert_eq!(buffer.read_object::<(String, u8)>().unwrap(), ("ab".to_owned(), 7));
    let end = buffer.get_section_header();
    assert!(matches!(end, Err(BufferError::Underflow(Underflow::Sections))), "{end:?}");
}

#[test]
fn a_buffer_is_written_in_the_exact_layout() {
    let mut buffer = Buffer::new(56).unwrap();
    buffer.put_section_header(ElementType::Int).unwrap();
    buffer.write(&[1, -2]).unwrap();
    buffer.write(&[65536]).unwrap();
    buffer.put_section_header(ElementType::Double).unwrap();
    buffer.write(&[1.5, -0.25]).unwrap();
    buffer.put_section_header(ElementType::Object).unwrap();
    buffer.write_object(&("ab", 7_u8)).unwrap();
    buffer.commit();
    let native = if cfg!(target_endian = "big") { BIG } else { LITTLE };
    assert_eq!(buffer.to_wire().unwrap(), native);
    check(&mut buffer);
}

#[test]
fn buffers_of_both_byte_orders_are_read() {
    for (bytes, encoding) in [(BIG, Encoding::BigEndian), (LITTLE, Encoding::LittleEndian)] {
        let mut buffer = Buffer::from_wire(bytes.to_vec()).unwrap();
        assert_eq!(buffer.encoding(), encoding);
        check(&mut buffer);
        assert_eq!(buffer.to_wire().unwrap(), bytes, "it may be sent on as it came");
    }
}

/// Three elements of one byte take three bytes, and five bytes of padding.
#[test]
fn short_sections_are_padded() {
    let buffer = with_section(ElementType::Boolean, &[true, false, true]);
    let wire = buffer.to_wire().unwrap();
    let count = 3_u32.to_ne_bytes();
    assert_eq!(wire[8..12], [3, 0, 0, 0]);
    assert_eq!(wire[12..16], count);
    assert_eq!(wire[16..24], [1, 0, 1, 0, 0, 0, 0, 0]);
    assert_eq!(wire.len(), 32);
}

/// A dynamic section of numbers has its header in the primary payload and its elements in the secondary one.
#[test]
fn dynamic_sections_have_their_elements_in_the_secondary_payload() {
    const BYTES: [u8; 28] = [
        0, 0, 0, 0, 0, 0, 0, 8, //
        13, 0, 0, 0, 0, 0, 0, 1, // INT_DYNAMIC, 1 element.
        0, 0, 0, 0, 0, 0, 0, 4, // 4 bytes of dynamic sections.
        0, 0, 1, 2, // 258
    ];
    let mut buffer = Buffer::from_wire(BYTES.to_vec()).unwrap();
    assert_eq!(whole::<i32>(&mut buffer, ElementType::IntDynamic), [258]);
    let buffer = with_section(ElementType::IntDynamic, &[258]);
    assert_eq!(buffer.size(), 8);
    assert_eq!(buffer.to_wire().unwrap()[24..], 258_i32.to_ne_bytes());
}
