//! The types of functions, and the macro that defines a function by its name.

use std::fmt::Write;

use mpj_abi::Function;

use crate::types::parameters_of;

/// Writes the type of each function. Rust cannot define a function with an ellipsis; such a function is defined with
/// its fixed parameters, and callers of C may pass more.
pub fn types<'a>(functions: impl Iterator<Item = &'a Function>) -> String {
    let mut text = "pub mod function {\nuse super::*;\n".to_owned();
    for function in functions {
        let list = parameters_of(&function.parameters, false);
        let (name, result) = (&function.name, function.rust_result());
        writeln!(text, "pub type {name} = unsafe extern \"C-unwind\" fn({list}) -> {result};")
            .expect("a string takes all");
    }
    text + "}\n"
}

/// Writes the macro `by_name`, which passes the definition of a function without its body to another macro.
pub fn by_name<'a>(functions: impl Iterator<Item = &'a Function>) -> String {
    let mut text = "macro_rules! by_name {\n".to_owned();
    for function in functions {
        let list = parameters_of(&function.parameters, false);
        let (name, result) = (&function.name, function.rust_result());
        writeln!(text, "({name}, [$($to:tt)*] $($with:tt)*) => {{ $($to)*! {{ fn {name}({list}) -> {result}; $($with)* }} }};")
            .expect("a string takes all");
    }
    text + "}\npub(crate) use by_name;\n"
}
