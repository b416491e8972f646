//! The types of elements that a section can have: their codes on the wire, and the Rust types for them.
//!
//! The buffer uses them for every element that is written or read, and `wire.rs` to translate codes.

use std::fmt;

use self::sealed::Codec;

/// The type of a section's elements, with the code that it has on the wire.
///
/// The elements of a static section lie in the section itself, so they use the buffer's capacity. The elements of a
/// dynamic section (`OBJECT` and the `_DYNAMIC` types) lie behind all sections, in memory that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ElementType {
    /// One byte, signed or not: `i8`, `u8`.
    Byte = 0,
    /// A code unit of UTF-16, two bytes: `u16`.
    Char = 1,
    /// Two bytes: `i16`.
    Short = 2,
    /// One byte, 0 or 1: `bool`.
    Boolean = 3,
    /// Four bytes: `i32`.
    Int = 4,
    /// Eight bytes: `i64`.
    Long = 5,
    /// Four bytes, IEEE 754: `f32`.
    Float = 6,
    /// Eight bytes, IEEE 754: `f64`.
    Double = 7,
    /// Any value that serde can serialize.
    Object = 8,
    /// [`ElementType::Byte`] in a dynamic section.
    ByteDynamic = 9,
    /// [`ElementType::Char`] in a dynamic section.
    CharDynamic = 10,
    /// [`ElementType::Short`] in a dynamic section.
    ShortDynamic = 11,
    /// [`ElementType::Boolean`] in a dynamic section.
    BooleanDynamic = 12,
    /// [`ElementType::Int`] in a dynamic section.
    IntDynamic = 13,
    /// [`ElementType::Long`] in a dynamic section.
    LongDynamic = 14,
    /// [`ElementType::Float`] in a dynamic section.
    FloatDynamic = 15,
    /// [`ElementType::Double`] in a dynamic section.
    DoubleDynamic = 16,
    /// No type; no section has it.
    Undefined = 17,
}

/// All types, in the order of their codes.
const TYPES: [ElementType; 18] = {
    use ElementType::*;
    [
        Byte,
        Char,
        Short,
        Boolean,
        Int,
        Long,
        Float,
        Double,
        Object,
        ByteDynamic,
        CharDynamic,
        ShortDynamic,
        BooleanDynamic,
        IntDynamic,
        LongDynamic,
        FloatDynamic,
        DoubleDynamic,
        Undefined,
    ]
};

impl ElementType {
    /// Returns the code on the wire.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the type with this code, if there is one.
    pub fn from_code(code: u8) -> Option<Self> {
        TYPES.get(usize::from(code)).copied()
    }

    /// Returns whether elements of this type lie in memory that grows.
    pub fn is_dynamic(self) -> bool {
        (Self::Object.code()..Self::Undefined.code()).contains(&self.code())
    }

    /// Returns the number of bytes of one element, which is the same in static and dynamic sections. `None` for
    /// objects, whose lengths differ, and for `UNDEFINED`.
    pub fn element_bytes(self) -> Option<usize> {
        match self.to_static() {
            Self::Byte | Self::Boolean => Some(1),
            Self::Char | Self::Short => Some(2),
            Self::Int | Self::Float => Some(4),
            Self::Long | Self::Double => Some(8),
            _ => None,
        }
    }

    /// Returns the static type of the same elements; `OBJECT`, which has none, is returned unchanged.
    pub fn to_static(self) -> Self {
        let first = Self::ByteDynamic.code();
        if self.is_dynamic() && self != Self::Object {
            TYPES[usize::from(self.code() - first)]
        } else {
            self
        }
    }
}

impl fmt::Display for ElementType {
    /// Writes the type's name in mpjdev.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.to_static() {
            Self::Byte => "BYTE",
            Self::Char => "CHAR",
            Self::Short => "SHORT",
            Self::Boolean => "BOOLEAN",
            Self::Int => "INT",
            Self::Long => "LONG",
            Self::Float => "FLOAT",
            Self::Double => "DOUBLE",
            Self::Object => "OBJECT",
            _ => "UNDEFINED",
        };
        let variant = if self.to_static() == *self { "" } else { "_DYNAMIC" };
        write!(formatter, "{name}{variant}")
    }
}

/// A Rust type whose values are elements of a section. No other crate can implement it: the types are fixed by the wire
/// format.
pub trait Element: Codec {
    /// The type of the static sections that hold it.
    const TYPE: ElementType;
}

/// What the buffer needs from elements. No other crate can call or implement it.
mod sealed {
    /// Conversion of values from bytes.
    pub trait Codec: bytemuck::NoUninit {
        /// Copies `from` over the bytes of `to`, which are as many.
        fn load(from: &[u8], to: &mut [Self]);

        /// Returns the value with its bytes in reverse order.
        fn swapped(self) -> Self;
    }
}

/// Implements the traits for a number, for which any bytes are a value.
macro_rules! number {
    ($number:ty, $code:ident, $swapped:expr) => {
        impl Element for $number {
            const TYPE: ElementType = ElementType::$code;
        }

        impl Codec for $number {
            fn load(from: &[u8], to: &mut [Self]) {
                bytemuck::cast_slice_mut::<Self, u8>(to).copy_from_slice(from);
            }

            fn swapped(self) -> Self {
                $swapped(self)
            }
        }
    };
}

number!(i8, Byte, i8::swap_bytes);
number!(u8, Byte, u8::swap_bytes);
number!(u16, Char, u16::swap_bytes);
number!(i16, Short, i16::swap_bytes);
number!(i32, Int, i32::swap_bytes);
number!(i64, Long, i64::swap_bytes);
number!(f32, Float, |value: f32| f32::from_bits(value.to_bits().swap_bytes()));
number!(f64, Double, |value: f64| f64::from_bits(value.to_bits().swap_bytes()));

impl Element for bool {
    const TYPE: ElementType = ElementType::Boolean;
}

impl Codec for bool {
    fn load(from: &[u8], to: &mut [Self]) {
        for (to, from) in to.iter_mut().zip(from) {
            *to = *from != 0;
        }
    }

    fn swapped(self) -> Self {
        self
    }
}
