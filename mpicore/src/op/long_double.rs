//! C's `long double` of x86-64, for which Rust has no type, computed by the x87 unit.
//!
//! The loops of `kernels.rs` use it. A number is stored as the ten bytes that it has in memory.
//!
//! - LD1: an instruction that names memory names the ten bytes of a local [`LongDouble`], which is as long as the
//!   80-bit operand; x87 loads and stores need no alignment.
//! - LD2: every block declares all eight x87 registers as overwritten, so it finds the register stack empty. It uses at
//!   most two places of it, and leaves it empty. It pushes nothing on the other stack.
//! - LD3: no block changes the control word, which Linux sets to a significand of 64 bits, rounding to nearest and no
//!   trap. Flags and status word may change, since no block claims to preserve them.

#![expect(unsafe_code, reason = "Rust reaches the x87 unit by assembly only")]

use std::arch::asm;
use std::cmp::Ordering;

use super::element::{Arithmetic, Element};

/// Number of bytes of the number.
const DATA: usize = 10;

/// A floating-point number with a significand of 64 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct LongDouble([u8; DATA]);

impl Element for LongDouble {
    const EXTENT: usize = 16;
    const ALIGN: usize = 16;

    #[inline]
    fn read(bytes: &[u8]) -> Self {
        Self(bytes[..DATA].try_into().expect("as many bytes as the number has"))
    }

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        bytes[..DATA].copy_from_slice(&self.0);
    }
}

/// Implements a function of two numbers by one instruction, which takes both from the register stack and leaves the
/// result there.
macro_rules! by_instruction {
    ($name:ident, $instruction:literal) => {
        #[inline]
        fn $name(self, other: Self) -> Self {
            let mut result = Self([0; DATA]);
            // SAFETY: reads two locals and writes a third (LD1), which is borrowed exclusively; loads
            // two numbers, of which the instruction takes one and the store the other (LD2, LD3).
            unsafe {
                asm!(
                    "fld tbyte ptr [{left}]",
                    "fld tbyte ptr [{right}]",
                    $instruction,
                    "fstp tbyte ptr [{result}]",
                    left = in(reg) self.0.as_ptr(),
                    right = in(reg) other.0.as_ptr(),
                    result = in(reg) result.0.as_mut_ptr(),
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack),
                );
            }
            result
        }
    };
}

impl Arithmetic for LongDouble {
    by_instruction!(plus, "faddp st(1), st");
    by_instruction!(minus, "fsubp st(1), st");
    by_instruction!(times, "fmulp st(1), st");
}

impl PartialOrd for LongDouble {
    /// Returns `None` if one of them is not a number.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let (above, below, unordered): (u8, u8, u8);
        // SAFETY: reads two locals (LD1) and writes no memory; loads two numbers, of which the
        // comparison takes one and the second store, to the register itself, the other (LD2, LD3).
        unsafe {
            asm!(
                "fld tbyte ptr [{right}]",
                "fld tbyte ptr [{left}]",
                "fucomip st, st(1)",
                "fstp st(0)",
                "seta {above}",
                "setb {below}",
                "setp {unordered}",
                left = in(reg) self.0.as_ptr(),
                right = in(reg) other.0.as_ptr(),
                above = out(reg_byte) above,
                below = out(reg_byte) below,
                unordered = out(reg_byte) unordered,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack, readonly),
            );
        }
        match (above, below, unordered) {
            (.., 1) => None,
            (1, ..) => Some(Ordering::Greater),
            (_, 1, _) => Some(Ordering::Less),
            _ => Some(Ordering::Equal),
        }
    }
}

impl PartialEq for LongDouble {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

#[cfg(test)]
mod tests;
