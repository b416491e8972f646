//! Types and constants.

use std::fmt::Write;

use mpj_abi::{Meaning, Parameter, Table, Typedef};

/// Writes the types. A handle is a number that no code can take for an address.
pub fn typedefs<'a>(typedefs: impl Iterator<Item = &'a Typedef>) -> String {
    let mut text = String::new();
    for Typedef { name, meaning, .. } in typedefs {
        let definition = match meaning {
            Meaning::Integer if name == "MPI_Aint" => format!("pub type {name} = isize;"),
            Meaning::Integer => format!("pub type {name} = i64;"),
            Meaning::Handle { .. } => format!(
                "#[repr(transparent)] #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)] pub struct {name}(pub usize);"
            ),
            Meaning::Callback { result, parameters, variadic } => {
                let result = if result == "void" { "" } else { " -> c_int" };
                let list = parameters_of(parameters, *variadic);
                format!("pub type {name} = unsafe extern \"C-unwind\" fn({list}){result};")
            }
            Meaning::Alias { of } => format!("pub type {name} = {of};"),
        };
        writeln!(text, "{definition}").expect("a string takes all");
    }
    text
}

/// Writes a list of parameters.
pub fn parameters_of(parameters: &[Parameter], variadic: bool) -> String {
    let mut list: Vec<_> = parameters.iter().map(declared).collect();
    list.extend(variadic.then(|| "...".to_owned()));
    list.join(", ")
}

fn declared(parameter: &Parameter) -> String {
    format!("{}: {}", parameter.name, parameter.rust)
}

/// Writes the constants. One that C casts to a pointer is an address here.
pub fn constants(table: &Table) -> String {
    let mut text = String::new();
    let mut write = |name: &str, class: &str, value: &str| {
        writeln!(text, "pub const {name}: {class} = {value};").expect("a string takes all");
    };
    for constant in &table.handles {
        let (class, value) = (&constant.class, constant.value);
        let is_integer = table
            .typedefs
            .iter()
            .any(|typedef| typedef.name == *class && typedef.meaning == Meaning::Integer);
        let value = if is_integer { value.to_string() } else { format!("{class}({value:#x})") };
        write(&constant.name, class, &value);
    }
    for constant in &table.integers {
        write(&constant.name, "c_int", &constant.value.to_string());
    }
    for constant in &table.macros {
        let (name, value) = (&constant.name, constant.c.trim_matches(['(', ')']));
        if let Some(same) = table.constant(value) {
            write(name, &same.class, value);
        } else if let Some((_, address)) = value.split_once(')') {
            write(name, "usize", address);
        } else {
            write(name, "c_int", value);
        }
    }
    text
}
