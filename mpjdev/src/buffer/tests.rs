//! The buffer: written elements come back, in every form and through every state.

mod claims;
mod conditions;
mod golden;
mod regions;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;

/// An object that contains a bit of everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Cell {
    name: String,
    weight: f64,
    neighbours: Vec<u32>,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Kind {
    Wall,
    Flow { speed: f32 },
}

fn cell(number: u32) -> Cell {
    let kind = if number % 2 == 0 { Kind::Wall } else { Kind::Flow { speed: 0.5 } };
    Cell { name: format!("cell {number}"), weight: 1.5, neighbours: vec![number; 3], kind }
}

/// Makes a committed buffer with one section of this type.
fn with_section<T: Element>(element: ElementType, data: &[T]) -> Buffer {
    let mut buffer = Buffer::new(8 + size_of_val(data)).unwrap();
    buffer.put_section_header(element).unwrap();
    buffer.write(data).unwrap();
    buffer.commit();
    buffer
}

/// Returns the buffer that the receiver of a committed buffer gets.
fn received(buffer: &Buffer) -> Buffer {
    Buffer::from_wire(buffer.to_wire().unwrap()).unwrap()
}

/// Returns the same buffer as from a machine with the other byte order, if all its elements have the same length.
fn foreign(buffer: &Buffer, element_bytes: usize) -> Buffer {
    let mut wire = buffer.to_wire().unwrap();
    wire[0] = 1 - wire[0];
    let primary = HEADER + buffer.size();
    for at in [4, HEADER + 4, primary + 4] {
        wire[at..at + 4].reverse();
    }
    let (sections, secondary) = wire.split_at_mut(primary);
    for elements in [&mut sections[2 * HEADER..], &mut secondary[HEADER..]] {
        elements.chunks_exact_mut(element_bytes).for_each(<[u8]>::reverse);
    }
    Buffer::from_wire(wire).unwrap()
}

/// Reads the only section of a buffer.
fn whole<T: Element + Default>(buffer: &mut Buffer, element: ElementType) -> Vec<T> {
    assert_eq!(buffer.get_section_header().unwrap(), element);
    let mut data = vec![T::default(); buffer.section_size().unwrap()];
    buffer.read(&mut data).unwrap();
    assert_eq!(buffer.remaining().unwrap(), 0);
    data
}

/// Checks that elements of this type come back, in static and dynamic sections and in both byte orders.
fn there_and_back<T: Element + Default + PartialEq + std::fmt::Debug>(data: &[T]) {
    let dynamic = ElementType::from_code(T::TYPE.code() + 9).unwrap();
    for element in [T::TYPE, dynamic] {
        let mut buffer = with_section(element, data);
        assert_eq!(whole::<T>(&mut buffer, element), data);
        assert_eq!(whole::<T>(&mut received(&buffer), element), data);
        assert_eq!(whole::<T>(&mut foreign(&buffer, size_of::<T>()), element), data);
    }
}

#[test]
fn elements_of_every_type_come_back() {
    there_and_back(&[0_i8, -1, i8::MIN, i8::MAX]);
    there_and_back(&[0_u8, 1, 200, u8::MAX]);
    there_and_back(&[0_u16, 1, 0xD800, u16::MAX]);
    there_and_back(&[0_i16, -2, i16::MIN, i16::MAX]);
    there_and_back(&[true, false, true]);
    there_and_back(&[0_i32, -3, i32::MIN, i32::MAX]);
    there_and_back(&[0_i64, -4, i64::MIN, i64::MAX]);
    there_and_back(&[0_f32, -0.5, f32::INFINITY, f32::MIN_POSITIVE]);
    there_and_back(&[0_f64, -0.5, f64::NEG_INFINITY, f64::EPSILON]);
    there_and_back::<i32>(&[]);
}

#[test]
fn bits_of_not_a_number_come_back() {
    let data = [f64::from_bits(0x7FF0_0000_0000_0123), f64::from_bits(0xFFF8_0000_0000_0001)];
    let buffer = with_section(ElementType::Double, &data);
    for mut buffer in [received(&buffer), foreign(&buffer, 8)] {
        let read = whole::<f64>(&mut buffer, ElementType::Double);
        assert_eq!(read.map_bits(), data.to_vec().map_bits());
    }
}

/// The bits of numbers.
trait MapBits {
    fn map_bits(&self) -> Vec<u64>;
}

impl MapBits for Vec<f64> {
    fn map_bits(&self) -> Vec<u64> {
        self.iter().map(|number| number.to_bits()).collect()
    }
}

#[test]
fn objects_come_back_between_other_sections() {
    let mut buffer = Buffer::new(80).unwrap();
    buffer.put_section_header(ElementType::Object).unwrap();
    buffer.write_object(&cell(1)).unwrap();
    buffer.write_object(&cell(2)).unwrap();
    buffer.put_section_header(ElementType::Boolean).unwrap();
    buffer.write(&[true, false, true]).unwrap();
    buffer.put_section_header(ElementType::ShortDynamic).unwrap();
    buffer.write(&[7_i16, 8]).unwrap();
    buffer.put_section_header(ElementType::Object).unwrap();
    buffer.write_object("text").unwrap();
    buffer.commit();
    let mut buffer = received(&buffer);
    assert_eq!(buffer.get_section_header().unwrap(), ElementType::Object);
    assert_eq!(buffer.section_size().unwrap(), 2);
    assert_eq!(buffer.read_object::<Cell>().unwrap(), cell(1));
    assert_eq!(buffer.remaining().unwrap(), 1);
    assert_eq!(buffer.read_object::<Cell>().unwrap(), cell(2));
    assert_eq!(whole::<bool>(&mut buffer, ElementType::Boolean), [true, false, true]);
    assert_eq!(whole::<i16>(&mut buffer, ElementType::ShortDynamic), [7, 8]);
    assert_eq!(buffer.get_section_header().unwrap(), ElementType::Object);
    assert_eq!(buffer.read_object::<String>().unwrap(), "text");
}

#[test]
fn an_object_that_is_read_as_another_type_stays_unread() {
    let mut buffer = Buffer::new(8).unwrap();
    buffer.put_section_header(ElementType::Object).unwrap();
    buffer.write_object(&cell(3)).unwrap();
    buffer.commit();
    buffer.get_section_header().unwrap();
    buffer.read_object::<u64>().unwrap_err();
    assert_eq!(buffer.remaining().unwrap(), 1);
    assert_eq!(buffer.read_object::<Cell>().unwrap(), cell(3));
}

#[test]
fn a_commit_rewinds_and_a_clear_forgets() {
    let mut buffer = Buffer::new(24).unwrap();
    assert!(!buffer.is_readable());
    buffer.put_section_header(ElementType::Int).unwrap();
    buffer.write(&[1, 2]).unwrap();
    assert_eq!(buffer.section_size().unwrap(), 2);
    buffer.put_section_header(ElementType::IntDynamic).unwrap();
    buffer.write(&[3]).unwrap();
    for _ in 0..2 {
        buffer.commit();
        assert!(buffer.is_readable());
        assert_eq!(whole::<i32>(&mut buffer, ElementType::Int), [1, 2]);
        assert_eq!(whole::<i32>(&mut buffer, ElementType::IntDynamic), [3]);
    }
    buffer.clear();
    assert!(!buffer.is_readable());
    assert_eq!((buffer.size(), buffer.capacity()), (0, 24));
    buffer.put_section_header(ElementType::ByteDynamic).unwrap();
    buffer.write(&[9_u8]).unwrap();
    buffer.commit();
    assert_eq!(whole::<u8>(&mut buffer, ElementType::ByteDynamic), [9]);
}

/// A buffer that came in the other byte order is written in that of this machine once it is cleared.
#[test]
fn a_cleared_buffer_has_the_order_of_this_machine() {
    let mut buffer = foreign(&with_section(ElementType::Int, &[1, 2]), 4);
    assert_ne!(buffer.encoding(), Encoding::NATIVE);
    buffer.clear();
    assert_eq!(buffer.encoding(), Encoding::NATIVE);
    buffer.put_section_header(ElementType::Int).unwrap();
    buffer.write(&[3, 4]).unwrap();
    buffer.commit();
    assert_eq!(whole::<i32>(&mut received(&buffer), ElementType::Int), [3, 4]);
}

/// Bytes of an earlier message do not travel in a later one.
#[test]
fn padding_is_zero_in_a_buffer_that_is_used_again() {
    let mut buffer = with_section(ElementType::Byte, &[0xFF_u8; 24]);
    buffer.clear();
    buffer.put_section_header(ElementType::Byte).unwrap();
    buffer.write(&[0xEE_u8]).unwrap();
    buffer.put_section_header(ElementType::Byte).unwrap();
    buffer.commit();
    let wire = buffer.to_wire().unwrap();
    assert_eq!(wire[16..32], [0xEE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

/// A source and a clone keep the bytes that they were made from.
#[test]
fn what_shares_the_bytes_keeps_them() {
    let mut buffer = with_section(ElementType::Int, &[1, 2]);
    let (source, mut clone) = (buffer.to_source().unwrap(), buffer.clone());
    let wire = buffer.to_wire().unwrap();
    buffer.clear();
    buffer.put_section_header(ElementType::Int).unwrap();
    buffer.write(&[7]).unwrap();
    assert_eq!(source.len(), wire.len());
    assert_eq!(clone.to_wire().unwrap(), wire);
    assert_eq!(whole::<i32>(&mut clone, ElementType::Int), [1, 2]);
    let mut writable = buffer.clone();
    writable.write(&[8]).unwrap();
    buffer.commit();
    assert_eq!(whole::<i32>(&mut buffer, ElementType::Int), [7]);
}

#[test]
fn a_capacity_is_used_to_its_last_byte() {
    let mut buffer = Buffer::new(17).unwrap();
    assert_eq!(buffer.capacity(), 24);
    buffer.put_section_header(ElementType::Short).unwrap();
    buffer.write(&[1_i16; 8]).unwrap();
    assert_eq!(buffer.size(), 24);
    buffer.write(&[0_i16; 0]).unwrap();
    buffer.write(&[1_i16]).unwrap_err();
    buffer.commit();
    assert_eq!(buffer.to_wire().unwrap().len(), 8 + 24 + 8);
    let mut nothing = Buffer::new(0).unwrap();
    nothing.commit();
    assert_eq!(nothing.to_wire().unwrap().len(), 16);
}

#[test]
fn types_know_their_codes() {
    for code in 0..=17 {
        let element = ElementType::from_code(code).unwrap();
        assert_eq!(element.code(), code);
        assert_eq!(element.is_dynamic(), (8..17).contains(&code));
    }
    assert_eq!(ElementType::from_code(18), None);
    assert_eq!(ElementType::LongDynamic.to_static(), ElementType::Long);
    assert_eq!(ElementType::LongDynamic.to_string(), "LONG_DYNAMIC");
    assert_eq!(ElementType::Object.to_static(), ElementType::Object);
    assert_eq!(ElementType::Undefined.element_bytes(), None);
}

proptest! {
    /// Elements that are written in pieces of any form come back in any pieces.
    #[test]
    fn pieces_of_writes_and_reads_need_not_agree(
        data in prop::collection::vec(any::<i64>(), 0..40),
        cut in 0_usize..40,
        is_dynamic: bool,
    ) {
        let element = if is_dynamic { ElementType::LongDynamic } else { ElementType::Long };
        let (first, second) = data.split_at(cut.min(data.len()));
        let mut buffer = Buffer::new(8 + 8 * data.len()).unwrap();
        buffer.put_section_header(element).unwrap();
        buffer.write(first).unwrap();
        buffer.gather(second, &(0..second.len()).collect::<Vec<_>>()).unwrap();
        buffer.commit();
        let mut buffer = received(&buffer);
        buffer.get_section_header().unwrap();
        let mut read = vec![0; data.len()];
        let backwards: Vec<_> = (0..second.len()).rev().collect();
        buffer.scatter(&mut read, &backwards).unwrap();
        buffer.read(&mut read[second.len()..]).unwrap();
        read[..second.len()].reverse();
        prop_assert_eq!(read, data);
    }
}
