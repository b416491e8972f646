//! Reads the table: one row a line, its four fields separated by tabs; types in C are translated to Rust.

use crate::{Broken, Constant, Function, Macro, Meaning, Parameter, Table, Typedef};

/// Reads a table.
///
/// # Errors
/// [`Broken`] for the first line that is no row.
pub fn parse(text: &str) -> Result<Table, Broken> {
    let mut table = Table::default();
    for (line, row) in (1..).zip(text.lines()).skip(1) {
        let refuse = |what| Broken { line, what };
        let fields: Vec<_> = row.split('\t').collect();
        let [kind, name, class, value] = fields[..] else {
            return Err(refuse("a row has four fields"));
        };
        let (name, class, value) = (name.to_owned(), class.to_owned(), value.trim());
        match kind {
            "macro" => table.macros.push(Macro { name, c: value.to_owned() }),
            "handle" | "enum" => {
                let number = number(value).ok_or(refuse("the value is no number"))?;
                let constant = Constant { name, class, c: value.to_owned(), value: number };
                let list = if kind == "enum" { &mut table.integers } else { &mut table.handles };
                list.push(constant);
            }
            "typedef" => {
                let known = &table.typedefs;
                let typedef = typedef(value, known).ok_or(refuse("no definition of a type"))?;
                table.typedefs.push(typedef);
            }
            "function" => {
                let listed = parameters(value, &table.typedefs);
                let (parameters, variadic) = listed.ok_or(refuse("no list of parameters"))?;
                table.functions.push(Function { name, result: class, parameters, variadic });
            }
            _ => return Err(refuse("an unknown kind of row")),
        }
    }
    Ok(table)
}

/// Reads a decimal or hexadecimal number.
fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Reads the definition of a type.
fn typedef(text: &str, known: &[Typedef]) -> Option<Typedef> {
    let c = text.to_owned();
    if let Some((result, rest)) = text.split_once(" (") {
        let (name, list) = rest.split_once(")(")?;
        let (parameters, variadic) = parameters(list.strip_suffix(')')?, known)?;
        let meaning = Meaning::Callback { result: result.to_owned(), parameters, variadic };
        return Some(Typedef { name: name.to_owned(), c, meaning });
    }
    let (of, name) = text.rsplit_once(' ')?;
    let meaning = match of.strip_prefix("struct ").and_then(|of| of.strip_suffix('*')) {
        Some(structure) => Meaning::Handle { structure: structure.to_owned() },
        None if of.starts_with("MPI_ABI_") => Meaning::Integer,
        None => Meaning::Alias { of: of.to_owned() },
    };
    Some(Typedef { name: name.to_owned(), c, meaning })
}

/// Reads a list of parameters, and whether it ends with an ellipsis.
fn parameters(text: &str, known: &[Typedef]) -> Option<(Vec<Parameter>, bool)> {
    let mut list: Vec<_> = text.split(',').map(str::trim).collect();
    let variadic = list.last() == Some(&"...");
    if variadic {
        list.pop();
    }
    if list == ["void"] {
        list.clear();
    }
    let parameters = list.into_iter().map(|text| parameter(text, known));
    Some((parameters.collect::<Option<_>>()?, variadic))
}

fn parameter(text: &str, known: &[Typedef]) -> Option<Parameter> {
    let (declared, behind) = text.split_at(text.find('[').unwrap_or(text.len()));
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let (before, name) = declared.split_at(declared.trim_end_matches(is_name).len());
    if before.is_empty() || name.is_empty() {
        return None;
    }
    let rust = match behind {
        "" => rust_type(before, known),
        "[]" => pointer(before, &rust_type(constant(before).1, known)),
        "[][3]" => pointer(before, &format!("[{}; 3]", rust_type(constant(before).1, known))),
        _ => return None,
    };
    let [name, before, behind] = [name, before, behind].map(str::to_owned);
    Some(Parameter { name, before, behind, rust })
}

/// Splits the word `const` from the type behind it.
fn constant(text: &str) -> (bool, &str) {
    match text.trim().strip_prefix("const ") {
        Some(rest) => (true, rest.trim()),
        None => (false, text.trim()),
    }
}

/// Returns the Rust type of a pointer to `to`, which may only be read if the text in C says so.
fn pointer(c: &str, to: &str) -> String {
    let access = if constant(c).0 { "const" } else { "mut" };
    format!("*{access} {to}")
}

/// Translates a type of C without brackets to Rust.
pub(crate) fn rust_type(c: &str, known: &[Typedef]) -> String {
    let (_, inner) = constant(c);
    let is_callback = |name: &str| {
        let mut callbacks = known.iter().filter(|known| known.name == name);
        callbacks.any(|known| matches!(known.meaning, Meaning::Callback { .. }))
    };
    if let Some(to) = inner.strip_suffix('*').map(str::trim_end) {
        // Behind a second star, the pointer itself may be changed.
        let c = if to.ends_with('*') { to } else { c };
        return match is_callback(to) {
            true => format!("Option<{to}>"),
            false => pointer(c, &rust_type(to, known)),
        };
    }
    match inner {
        "int" => "c_int".to_owned(),
        "char" => "c_char".to_owned(),
        "void" => "c_void".to_owned(),
        "double" => "f64".to_owned(),
        // A function that is a parameter is passed as a pointer.
        name if is_callback(name) => format!("Option<{name}>"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{removed, table};

    fn rust_of(function: &str) -> Vec<String> {
        let function = table().function(function).expect("it is in the table").clone();
        function.parameters.into_iter().map(|parameter| parameter.rust).collect()
    }

    #[test]
    fn the_table_has_all_rows() {
        let table = table();
        assert_eq!(table.functions.len(), 662);
        assert_eq!((table.handles.len(), table.integers.len()), (109, 214));
        assert_eq!((table.macros.len(), table.typedefs.len()), (41, 47));
        assert_eq!(table.constant("MPI_COMM_WORLD").expect("it is there").value, 0x101);
        assert_eq!(table.constant("MPI_ANY_TAG").expect("it is there").value, -2);
    }

    #[test]
    fn removed_functions_have_types() {
        assert_eq!(removed().functions.len(), 10);
        let create = removed().function("MPI_Errhandler_create").expect("it is there").clone();
        assert_eq!(create.parameters[0].rust, "Option<MPI_Handler_function>");
    }

    #[test]
    fn types_are_translated() {
        assert_eq!(
            rust_of("MPI_Group_range_incl"),
            ["MPI_Group", "c_int", "*mut [c_int; 3]", "*mut MPI_Group"]
        );
        assert_eq!(rust_of("MPI_Wtime"), [] as [&str; 0]);
        assert_eq!(rust_of("MPI_Init"), ["*mut c_int", "*mut *mut *mut c_char"]);
        assert_eq!(rust_of("MPI_Comm_spawn")[1], "*mut *mut c_char");
        assert_eq!(rust_of("MPI_Testany")[1], "*mut MPI_Request");
        assert_eq!(rust_of("MPI_Waitall")[2], "*mut MPI_Status");
        assert_eq!(rust_of("MPI_Get_count")[0], "*const MPI_Status");
        assert_eq!(rust_of("MPI_Op_create")[0], "Option<MPI_User_function>");
        assert_eq!(rust_of("MPI_T_event_handle_free")[2], "Option<MPI_T_event_free_cb_function>");
        assert_eq!(rust_of("MPI_Alltoallw")[3], "*const MPI_Datatype");
        let control = table().function("MPI_Pcontrol").expect("it is in the table").clone();
        assert_eq!((control.parameters[0].rust.as_str(), control.variadic), ("c_int", true));
    }

    #[test]
    fn what_is_no_row_is_refused() {
        let line = |text: &str| parse(&format!("kind\tname\ttype\tvalue\n{text}")).map(drop);
        let broken = |what| Err(Broken { line: 2, what });
        assert_eq!(line("macro\tMPI_X"), broken("a row has four fields"));
        assert_eq!(line("enum\tMPI_X\tint\tabc"), broken("the value is no number"));
        assert_eq!(line("typedef\t\t\tint"), broken("no definition of a type"));
        assert_eq!(line("function\tMPI_X\tint\tint x[4]"), broken("no list of parameters"));
        assert_eq!(line("row\tMPI_X\tint\t1"), broken("an unknown kind of row"));
    }
}
