//! Compares `mpi.h` with the table: programs in C and C++, made from the table, include the header. Without a compiler
//! for a language its tests say so and pass.

#![expect(clippy::print_stderr, reason = "tests say why they are skipped")]

use std::fs;
use std::process::{Command, Stdio};

use mpj_abi::{Macro, Meaning, Parameter, Table, header, removed, table};
use mpj_harness::command;

/// Compiler, ending of files and standard of a language.
type Language = (&'static str, &'static str, &'static str);

const LANGUAGES: [Language; 3] =
    [("cc", "c", "c99"), ("c++", "cpp", "c++11"), ("c++", "cpp", "c++20")];

/// Prefixes of the two names of each function.
const PREFIXES: [&str; 2] = ["", "P"];

/// Compiles a program that begins with the header, in a folder of its own, and runs it if it has a `main`.
#[track_caller]
fn assert_accepted((compiler, ending, standard): Language, program: &str) {
    let found = Command::new(compiler).arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no {compiler}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let source = format!("program.{ending}");
    fs::write(folder.path().join("mpi.h"), header(&table())).expect("a file");
    fs::write(folder.path().join(&source), format!("#include \"mpi.h\"\n{program}"))
        .expect("a file");
    let has_main = program.contains("int main(");
    let made = if has_main { ["-o", "program"] } else { ["-c", "-oprogram.o"] };
    let compile = command(compiler).set(|command| command.current_dir(folder.path()));
    let compile = compile.args(["-I.", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    compile.args([&format!("-std={standard}"), &source]).args(made).expect_quiet();
    if has_main {
        command(folder.path().join("program")).expect_quiet();
    }
}

#[track_caller]
fn assert_accepted_everywhere(program: &str) {
    for language in LANGUAGES {
        assert_accepted(language, program);
    }
}

/// The value of a macro: of its number, which may stand behind a cast, or of the constant that it names.
fn value(table: &Table, definition: &Macro) -> i64 {
    if let Some(constant) = table.constant(&definition.c) {
        return constant.value;
    }
    let number = definition.c.trim_end_matches(')').rsplit(')').next().unwrap_or_default();
    let parsed = match number.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => number.parse(),
    };
    parsed.unwrap_or_else(|_| panic!("{definition:?} has no value"))
}

/// A parameter's type without its name, with arrays as the pointers that they become.
fn kind(parameter: &Parameter) -> String {
    let before = parameter.before.trim_end();
    match parameter.behind.as_str() {
        "" => before.to_owned(),
        "[]" => format!("{before} *"),
        "[][3]" => format!("{before} (*)[3]"),
        other => panic!("unknown form of array: {other}"),
    }
}

/// Declares a variable that points to a function of this type, with this value.
fn pointer(name: &str, result: &str, kinds: &str, value: &str) -> String {
    let variable = format!("{result} (*{name})({kinds})");
    format!("extern {variable};\n{variable} = {value};\n")
}

/// [`pointer`] to a function with these parameters.
fn pointer_to(
    name: &str,
    result: &str,
    (parameters, variadic): (&[Parameter], bool),
    value: &str,
) -> String {
    let list: Vec<_> = parameters.iter().map(kind).chain(variadic.then(|| "...".into())).collect();
    let kinds = if list.is_empty() { "void".to_owned() } else { list.join(", ") };
    pointer(name, result, &kinds, value)
}

const CHECK: &str = "
#include <stddef.h>
#include <stdio.h>
static int wrong = 0;
static void check(const char *name, intptr_t is, intptr_t should)
{
    if (is == should)
        return;
    wrong = 1;
    fprintf(stderr, \"%s is %ld, not %ld\\n\", name, (long)is, (long)should);
}
";

#[test]
fn constants_and_sizes_are_those_of_the_table() {
    let table = table();
    let mut checks = Vec::new();
    for constant in table.handles.iter().chain(&table.integers) {
        let (name, class, value) = (&constant.name, &constant.class, constant.value);
        let check = format!("check(\"{name}\", (intptr_t)it, {value});");
        checks.push(format!("{{ {class} it = {name}; {check} }}"));
    }
    for definition in &table.macros {
        let (name, value) = (&definition.name, value(&table, definition));
        checks.push(format!("check(\"{name}\", (intptr_t)({name}), {value});"));
    }
    let sizes = [("int", 4), ("MPI_Aint", 8), ("MPI_Offset", 8), ("MPI_Count", 8)];
    let sizes = sizes.into_iter().chain([("MPI_Fint", 4), ("MPI_Status", 32)]);
    let handles = table.typedefs.iter().filter(|it| matches!(it.meaning, Meaning::Handle { .. }));
    for (name, size) in sizes.chain(handles.map(|typedef| (typedef.name.as_str(), 8))) {
        checks.push(format!("check(\"sizeof {name}\", sizeof({name}), {size});"));
    }
    for (name, offset) in
        [("MPI_SOURCE", 0), ("MPI_TAG", 4), ("MPI_ERROR", 8), ("MPI_internal", 12)]
    {
        checks.push(format!("check(\"{name}\", offsetof(MPI_Status, {name}), {offset});"));
    }
    for name in ["MPI_Aint", "MPI_Offset", "MPI_Count", "MPI_Fint"] {
        checks.push(format!("check(\"sign of {name}\", ({name})-1 < 0, 1);"));
    }
    assert!(checks.len() > 370, "constants are missing: {checks:?}");
    let checks = checks.join("\n");
    assert_accepted_everywhere(&format!(
        "{CHECK}int main(void)\n{{\n{checks}\nreturn wrong;\n}}\n"
    ));
}

#[test]
fn functions_have_the_types_of_the_table() {
    let (table, removed) = (table(), removed());
    assert_eq!((table.functions.len(), removed.functions.len()), (662, 10));
    let mut program = String::new();
    for function in table.functions.iter().chain(&removed.functions) {
        for prefix in PREFIXES {
            let (name, result) = (format!("{prefix}{}", function.name), &function.result);
            let parameters = (&function.parameters[..], function.variadic);
            program += &pointer_to(&format!("p{name}"), result, parameters, &name);
        }
    }
    for typedef in table.typedefs.iter().chain(&removed.typedefs) {
        if let Meaning::Callback { result, parameters, variadic } = &typedef.meaning {
            let (name, null) = (format!("p{}", typedef.name), format!("({} *)0", typedef.name));
            program += &pointer_to(&name, result, (parameters, *variadic), &null);
        }
    }
    assert_accepted_everywhere(&program);
}

#[test]
fn handles_and_statuses_are_converted_for_fortran() {
    let same = ["Comm", "Errhandler", "File", "Group", "Info", "Message", "Op", "Request"];
    let rest = [("Session", "Session"), ("Type", "Datatype"), ("Win", "Win")];
    let mut program = String::new();
    for (stem, class) in same.into_iter().map(|name| (name, name)).chain(rest) {
        let handle = format!("MPI_{class}");
        for name in PREFIXES.map(|prefix| format!("{prefix}MPI_{stem}")) {
            let (there, back) = (format!("{name}_c2f"), format!("{name}_f2c"));
            program += &pointer(&format!("p{there}"), "MPI_Fint", &handle, &there);
            program += &pointer(&format!("p{back}"), &handle, "MPI_Fint", &back);
        }
    }
    assert_accepted_everywhere(&program);
    assert_accepted_everywhere(
        "int main(void) {
            MPI_Status it = {1, 2, 3, {4, 5, 6, 7, 8}}, back;
            MPI_Fint array[MPI_F_STATUS_SIZE];
            int i, wrong = MPI_Status_c2f(&it, array) | PMPI_Status_f2c(array, &back);
            for (i = 0; i < 8; i++) wrong |= array[i] != i + 1;
            for (i = 0; i < 5; i++) wrong |= back.MPI_internal[i] != it.MPI_internal[i];
            return wrong || back.MPI_SOURCE != 1 || back.MPI_TAG != 2 || back.MPI_ERROR != 3;
        }\n",
    );
}

#[test]
fn other_standards_of_c_take_the_header() {
    for standard in ["c89", "c11", "c2x"] {
        assert_accepted(
            ("cc", "c", standard),
            "MPI_Comm world = MPI_COMM_WORLD;\n#include \"mpi.h\"\n",
        );
    }
}

#[test]
fn the_preprocessor_knows_the_constants() {
    assert_accepted_everywhere(
        "#if MPI_VERSION < 5 || MPI_ABI_VERSION != 1 || 3-MPI_ANY_TAG != 5 || !defined MPI_COMM_WORLD
         #error
         #endif
         int array[MPI_MAX_PROCESSOR_NAME];\n",
    );
}
