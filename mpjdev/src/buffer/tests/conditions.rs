//! Each of mpjdev's conditions under which a call fails, and that a failed call changes nothing.

use std::error::Error;

use super::*;

/// Makes a writable buffer with a section of two numbers, and room for two more.
fn writable() -> Buffer {
    let mut buffer = Buffer::new(24).unwrap();
    buffer.put_section_header(ElementType::Int).unwrap();
    buffer.write(&[1, 2]).unwrap();
    buffer
}

/// Makes the same buffer, committed, with its section as the current one.
fn readable() -> Buffer {
    let mut buffer = writable();
    buffer.commit();
    buffer.get_section_header().unwrap();
    buffer
}

/// Checks that a failed call has changed nothing: everything written can still be read.
fn check_untouched(mut buffer: Buffer) {
    if buffer.is_readable() {
        assert_eq!(buffer.remaining().unwrap(), 2);
        let mut data = [0; 2];
        buffer.read(&mut data).unwrap();
        assert_eq!(data, [1, 2]);
    } else {
        assert_eq!(buffer.section_size().unwrap(), 2);
        buffer.commit();
        assert_eq!(whole::<i32>(&mut buffer, ElementType::Int), [1, 2]);
    }
}

macro_rules! fails {
    ($buffer:expr, $call:expr, $condition:pat) => {{
        let mut buffer: Buffer = $buffer;
        let call: fn(&mut Buffer) -> Result<(), BufferError> = $call;
        let error = call(&mut buffer).expect_err("the call is wrong");
        assert!(matches!(error, $condition), "{error:?}");
        let message = error.to_string();
        assert!(message.contains([';', ',']), "it does not say what to change: {message}");
        check_untouched(buffer);
    }};
}

#[test]
fn wrong_state() {
    use BufferError::WrongState as Condition;
    fails!(readable(), |b| b.write(&[3]), Condition(WrongState::Readable));
    fails!(readable(), |b| b.gather(&[3], &[0]), Condition(WrongState::Readable));
    fails!(readable(), |b| b.write_object(&3), Condition(WrongState::Readable));
    let begin = |b: &mut Buffer| b.put_section_header(ElementType::Int);
    fails!(readable(), begin, Condition(WrongState::Readable));
    fails!(writable(), |b| b.read(&mut [3]), Condition(WrongState::Writable));
    fails!(writable(), |b| b.scatter(&mut [3], &[0]), Condition(WrongState::Writable));
    fails!(writable(), |b| b.read_object(), Condition(WrongState::Writable));
    fails!(writable(), |b| b.get_section_header().map(drop), Condition(WrongState::Writable));
    fails!(writable(), |b| b.remaining().map(drop), Condition(WrongState::Writable));
    fails!(writable(), |b| b.to_wire().map(drop), Condition(WrongState::Writable));
    fails!(writable(), |b| b.to_source().map(drop), Condition(WrongState::Writable));
}

#[test]
fn wrong_state_without_a_section() {
    let mut buffer = Buffer::new(24).unwrap();
    let without = |outcome: Result<(), BufferError>| {
        let error = outcome.unwrap_err();
        assert!(matches!(error, BufferError::WrongState(WrongState::NoSection)), "{error:?}");
    };
    without(buffer.write(&[1]));
    without(buffer.write_object(&1));
    without(buffer.section_size().map(drop));
    buffer.commit();
    without(buffer.read(&mut [1]));
    without(buffer.read_object());
    without(buffer.section_size().map(drop));
    assert_eq!(buffer.remaining().unwrap(), 0);
}

#[test]
fn overflow() {
    use BufferError::Overflow as Condition;
    fails!(writable(), |b| b.write(&[3; 3]), Condition { needed: 12, free: 8 });
    fails!(writable(), |b| b.gather(&[3], &[0; 3]), Condition { needed: 12, free: 8 });
    let repeated = |b: &mut Buffer| b.str_gather(&[3], 0, 2, 0, 2, &[1 << 40, 1 << 40, 0, 0]);
    fails!(writable(), repeated, Condition { needed: usize::MAX, free: 8 });
    let full = || {
        let mut buffer = Buffer::new(16).unwrap();
        buffer.put_section_header(ElementType::Int).unwrap();
        buffer.write(&[1, 2]).unwrap();
        buffer
    };
    let begin = |b: &mut Buffer| b.put_section_header(ElementType::Object);
    fails!(full(), begin, Condition { needed: 8, free: 0 });
    // A dynamic section is limited only by the longest message.
    let mut buffer = Buffer::new(8).unwrap();
    buffer.put_section_header(ElementType::ByteDynamic).unwrap();
    let error = buffer.str_gather(&[0_u8], 0, 1, 0, 1, &[1 << 31, 0]).unwrap_err();
    assert!(matches!(error, Condition { needed: 0x8000_0000, free: MAX_PAYLOAD }), "{error:?}");
}

#[test]
fn underflow() {
    use BufferError::Underflow as Condition;
    fails!(
        readable(),
        |b| b.read(&mut [0; 3]),
        Condition(Underflow::Elements { wanted: 3, remaining: 2 })
    );
    fails!(
        readable(),
        |b| b.scatter(&mut [0], &[0; 3]),
        Condition(Underflow::Elements { wanted: 3, remaining: 2 })
    );
    let mut buffer = readable();
    buffer.read(&mut [0; 2]).unwrap();
    let error = buffer.get_section_header().unwrap_err();
    assert!(matches!(error, Condition(Underflow::Sections)), "{error:?}");

    let mut buffer = Buffer::new(8).unwrap();
    buffer.put_section_header(ElementType::Object).unwrap();
    buffer.commit();
    buffer.get_section_header().unwrap();
    let error = buffer.read_object::<u8>().unwrap_err();
    let none = Underflow::Elements { wanted: 1, remaining: 0 };
    assert!(matches!(error, Condition(found) if found == none), "{error:?}");
}

#[test]
fn type_mismatch() {
    use BufferError::TypeMismatch as Condition;
    use ElementType::{Float, Int, Object};
    fails!(writable(), |b| b.write(&[1_f32]), Condition { section: Int, element: Float });
    fails!(writable(), |b| b.write_object(&1), Condition { section: Int, element: Object });
    fails!(readable(), |b| b.read(&mut [1_f32]), Condition { section: Int, element: Float });
    fails!(readable(), |b| b.read_object(), Condition { section: Int, element: Object });
    let mut buffer = with_section(ElementType::IntDynamic, &[1]);
    buffer.get_section_header().unwrap();
    let error = buffer.read(&mut [1_i16]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the section has elements of type INT_DYNAMIC, the call is for type SHORT; use the Rust type \
         of the section"
    );
}

#[test]
fn section_size_mismatch() {
    let next = |b: &mut Buffer| b.get_section_header().map(drop);
    fails!(readable(), next, BufferError::SectionSizeMismatch { remaining: 2 });
}

/// A value that refuses to be serialized after its beginning.
struct Stubborn;

impl Serialize for Stubborn {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::{Error, SerializeSeq};
        serializer.serialize_seq(Some(2))?.serialize_element("beginning")?;
        Err(S::Error::custom("it will not"))
    }
}

#[test]
fn dynamic() {
    let mut buffer = Buffer::new(8).unwrap();
    buffer.put_section_header(ElementType::Object).unwrap();
    let error = buffer.write_object(&Stubborn).unwrap_err();
    assert!(matches!(error, BufferError::Dynamic { is_writing: true, .. }), "{error:?}");
    let cause = error.source().expect("serde's error").to_string();
    assert!(cause.contains("it will not"), "{cause}");
    buffer.write_object(&"whole").unwrap();
    buffer.commit();
    buffer.get_section_header().unwrap();
    assert_eq!(buffer.section_size().unwrap(), 1);
    let error = buffer.read_object::<Cell>().unwrap_err();
    assert!(matches!(error, BufferError::Dynamic { is_writing: false, .. }), "{error:?}");
    assert!(error.source().is_some());
    assert_eq!(buffer.read_object::<String>().unwrap(), "whole");
}

#[test]
fn out_of_bounds() {
    use BufferError::OutOfBounds as Condition;
    fails!(writable(), |b| b.gather(&[1, 2], &[0, 2]), Condition { index: 2, len: 2 });
    fails!(readable(), |b| b.scatter(&mut [1, 2], &[5, 0]), Condition { index: 5, len: 2 });
    fails!(
        writable(),
        |b| b.str_gather(&[1], 0, 1, 0, 1, &[2, -1]),
        Condition { index: -1, len: 1 }
    );
    fails!(
        readable(),
        |b| b.str_scatter(&mut [0; 4], 1, 1, 0, 1, &[2, 3]),
        Condition { index: 4, len: 4 }
    );
    fails!(writable(), |b| b.str_gather(&[1], 1, 0, 0, 0, &[]), Condition { index: 1, len: 1 });
    let far = |b: &mut Buffer| b.str_gather(&[1], 0, 1, 0, 1, &[isize::MAX, isize::MAX]);
    fails!(writable(), far, Condition { .. });
}

#[test]
fn illegal_argument() {
    use BufferError::IllegalArgument as Condition;
    let begin = |b: &mut Buffer| b.put_section_header(ElementType::Undefined);
    fails!(writable(), begin, Condition(IllegalArgument::Type));
    fails!(
        writable(),
        |b| b.str_gather(&[1], 0, 2, 0, 1, &[1, 1]),
        Condition(IllegalArgument::Rank { rank: 2, from: 1, len: 2 })
    );
    fails!(
        writable(),
        |b| b.str_gather(&[1], 0, usize::MAX, 1, 1, &[1, 1]),
        Condition(IllegalArgument::Rank { .. })
    );
    fails!(
        readable(),
        |b| b.str_scatter(&mut [1], 0, 1, 0, 1, &[-1, 1]),
        Condition(IllegalArgument::Extent { extent: -1, dimension: 0 })
    );
    let error = Buffer::new(MAX_PAYLOAD + 1).unwrap_err();
    assert!(matches!(error, Condition(IllegalArgument::Capacity { .. })), "{error:?}");
}
