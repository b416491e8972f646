//! What a random number means as an argument: 0 is the tamest choice. Most choices are sensible, so that calls succeed
//! often enough to build objects.

use std::collections::HashMap;

use mpj_abi::{Function, Meaning, Parameter, Table};

/// More arguments than any function has.
pub const MOST_ARGUMENTS: usize = 13;

/// Functions that end the process, that begin what the player has begun, or that wait whatever their arguments are.
const NEVER: &[&str] = &[
    "MPI_Abort",
    "MPI_Init",
    "MPI_Init_thread",
    "MPI_Finalize",
    "MPI_Buffer_flush",
    "MPI_Buffer_detach",
    "MPI_Buffer_detach_c",
    "MPI_Wtime",
    "MPI_Wtick",
    "MPI_Pcontrol",
];

/// Beginnings of the names of functions that may rightly wait for ever in a process that is alone, if their handles are
/// valid. They get none.
const WAITING: &[&str] = &[
    "MPI_Recv",
    "MPI_Send",
    "MPI_Rsend",
    "MPI_Ssend",
    "MPI_Sendrecv",
    "MPI_Probe",
    "MPI_Mprobe",
    "MPI_Mrecv",
    "MPI_Wait",
    "MPI_Comm_disconnect",
    "MPI_Comm_detach_buffer",
    "MPI_Comm_flush_buffer",
    "MPI_Session_detach_buffer",
    "MPI_Session_flush_buffer",
    "MPI_Session_finalize",
    "MPI_Intercomm_create",
    "MPI_Win_start",
    "MPI_Win_wait",
    "MPI_Comm_accept",
    "MPI_Comm_connect",
];

/// Returns whether a function gets no valid handle of a communicator, request, message or window, since it may wait.
pub fn is_waiting(name: &str) -> bool {
    WAITING.iter().any(|waiting| name.starts_with(waiting)) && !name.contains("_init")
}

/// Returns the names of all functions that are called, with those that make and end objects several times.
pub fn functions() -> Vec<String> {
    let often = [
        "MPI_Type_",
        "MPI_Comm_",
        "MPI_Group_",
        "MPI_Info_",
        "MPI_Op_",
        "MPI_Test",
        "MPI_Request_",
    ];
    let (table, removed) = (mpj_abi::table(), mpj_abi::removed());
    let all = table.functions.iter().chain(&removed.functions);
    let called = all.filter(|function| {
        function.result == "int"
            && !function.name.starts_with("MPI_T_")
            && !NEVER.contains(&&*function.name)
    });
    called
        .flat_map(|function| {
            let is_often = often.iter().any(|begin| function.name.starts_with(begin));
            vec![function.name.clone(); if is_often { 4 } else { 1 }]
        })
        .collect()
}

/// What a parameter takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sort {
    /// A number.
    Number,
    /// A key of attributes.
    Key,
    /// A number of bytes in a buffer.
    Bytes,
    /// A handle of this type.
    Handle(String),
    /// A list of `int`s, or a place for one.
    Ints,
    /// A place of a key of attributes.
    Keys,
    /// A list of numbers of 64 bits, or a place for one.
    Wides,
    /// A list of handles of this type, or a place for one; whether the function only reads it.
    Handles(String, bool),
    /// A list of statuses, or a place for one.
    Statuses,
    /// A string.
    Text,
    /// A place for a string.
    Room,
    /// A list of strings.
    Texts,
    /// A buffer that is read; whether it may be MPI_IN_PLACE.
    Source(bool),
    /// A buffer that may be written.
    Sink,
    /// Memory that MPI has allocated.
    Allocated,
    /// A function; whether it may be one of the constants 0 and 1 for copies of attributes.
    Callback(bool),
    /// Only null.
    Null,
}

/// What the functions of the table take.
pub struct Interface {
    table: Table,
    removed: Table,
    /// The constants of each type of handle.
    pub constants: HashMap<String, Vec<usize>>,
}

impl Interface {
    /// Reads the table.
    pub fn new() -> Self {
        let (table, removed) = (mpj_abi::table(), mpj_abi::removed());
        let mut constants: HashMap<_, Vec<_>> = HashMap::new();
        for handle in &table.handles {
            // These would end the process at the next error.
            if !["MPI_ERRORS_ARE_FATAL", "MPI_ERRORS_ABORT"].contains(&&*handle.name) {
                constants.entry(handle.class.clone()).or_default().push(handle.value as usize);
            }
        }
        Self { table, removed, constants }
    }

    /// Returns whether a function may have MPI_PROC_NULL as an argument.
    pub fn may_ignore_arguments(&self, name: &str) -> bool {
        let function = self.table.function(name);
        let mut parameters = function.into_iter().flat_map(|function| &function.parameters);
        parameters.any(|parameter| ["dest", "source"].contains(&&*parameter.name))
    }

    /// Returns the value of a constant.
    pub fn integer(&self, name: &str) -> i32 {
        let found = self.table.integers.iter().find(|constant| constant.name == name);
        found.expect("the table has it").value as i32
    }

    /// Returns what a function takes.
    pub fn sorts(&self, name: &str) -> Vec<Sort> {
        let function = self.table.function(name).or_else(|| self.removed.function(name));
        let function = function.expect("the sequence has functions of the table");
        function.parameters.iter().map(|parameter| self.sort(function, parameter)).collect()
    }

    fn meaning(&self, name: &str) -> Option<&Meaning> {
        let mut types = self.table.typedefs.iter().chain(&self.removed.typedefs);
        types.find(|known| known.name == name).map(|known| &known.meaning)
    }

    fn sort(&self, function: &Function, parameter: &Parameter) -> Sort {
        let is_const = parameter.before.starts_with("const ");
        let before = parameter.before.trim_start_matches("const ");
        let base = before.trim_end_matches(['*', ' ']);
        let stars = before.matches('*').count() + parameter.behind.matches('[').count();
        match (base, stars) {
            ("int", 0) if parameter.name.contains("keyval") => Sort::Key,
            ("int" | "MPI_Aint" | "MPI_Count", 0) if parameter.name.ends_with("size") => {
                Sort::Bytes
            }
            ("int", 0) => Sort::Number,
            ("int", _) if parameter.name.contains("keyval") => Sort::Keys,
            ("int", _) => Sort::Ints,
            ("MPI_Status", _) => Sort::Statuses,
            ("void", _) if function.name == "MPI_Free_mem" => Sort::Allocated,
            ("void", _) if is_const => {
                Sort::Source(parameter.name == "sendbuf" && takes_in_place(&function.name))
            }
            ("void", _) => Sort::Sink,
            ("char", 1) if is_const => Sort::Text,
            ("char", 1) => Sort::Room,
            ("char", 2) => Sort::Texts,
            ("char", _) => Sort::Null,
            _ => match self.meaning(base) {
                Some(Meaning::Handle { .. }) if stars == 0 => Sort::Handle(base.to_owned()),
                Some(Meaning::Handle { .. }) => Sort::Handles(base.to_owned(), is_const),
                Some(Meaning::Callback { .. }) => Sort::Callback(base.contains("opy_")),
                Some(Meaning::Alias { of }) if of.contains("function") => {
                    Sort::Callback(base.contains("opy_"))
                }
                Some(Meaning::Integer) if stars == 0 => Sort::Number,
                Some(Meaning::Integer) => Sort::Wides,
                other => panic!("{}: no choice for {}: {other:?}", function.name, parameter.c()),
            },
        }
    }
}

/// Returns whether a function's `sendbuf` may be MPI_IN_PLACE.
fn takes_in_place(name: &str) -> bool {
    let name = name.trim_start_matches("MPI_").trim_start_matches('I').to_ascii_lowercase();
    ["allreduce", "reduce", "allgather", "alltoall", "scan", "exscan", "gather"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

/// Returns a number: mostly small.
pub fn number(random: u32) -> i64 {
    const NUMBERS: [i64; 32] = [
        1,
        0,
        2,
        3,
        1,
        0,
        2,
        4,
        1,
        0,
        5,
        7,
        1,
        0,
        2,
        17,
        12,
        15,
        -1,
        -2,
        -3,
        -4,
        i32::MIN as i64,
        -32766,
        8,
        16,
        192,
        193,
        1,
        0,
        1,
        0,
    ];
    NUMBERS[random as usize % NUMBERS.len()]
}

/// Returns a number for a list: small, since it may be a displacement in a buffer.
pub fn small(random: u32) -> i64 {
    const NUMBERS: [i64; 16] = [0, 1, 2, 3, 0, 1, 2, 4, 0, 1, 0, 1, 8, -1, -2, -3];
    NUMBERS[random as usize % NUMBERS.len()]
}

/// Returns a number of bytes.
pub fn bytes(random: u32) -> i64 {
    [64, 4096, 0, 1, 4, 8, 2048, -1][random as usize % 8]
}
