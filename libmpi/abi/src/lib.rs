//! The application binary interface of MPI 5.0 (chapter 20) as a table: constants, handles, types and functions.
//!
//! The table is `libmpi/abi.tsv`. A second one, `libmpi/removed.tsv`, has the functions of MPI-1 that the standard has
//! removed and old programs still call. The build script of `libmpi` makes Rust definitions of its rows, and the generator of
//! `mpi.h` makes C declarations. Types are given in both languages.
//!
//! ```
//! let table = mpj_abi::table();
//! let send = table.function("MPI_Send").unwrap();
//! assert_eq!(send.parameters[0].c(), "const void *buf");
//! assert_eq!(send.parameters[0].rust, "*const c_void");
//! assert_eq!(send.c(""), "int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)");
//! ```

use std::fmt;

mod header;
mod parse;

pub use header::header;
pub use parse::parse;

/// The whole interface. Each list has the order of the table, in which a type stands before its uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Macros whose values are C expressions.
    pub macros: Vec<Macro>,
    /// Predefined handles, and other constants that have a pointer type.
    pub handles: Vec<Constant>,
    /// Integer constants.
    pub integers: Vec<Constant>,
    /// Types.
    pub typedefs: Vec<Typedef>,
    /// Functions.
    pub functions: Vec<Function>,
}

/// A macro, such as `MPI_BOTTOM`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Macro {
    /// Its name.
    pub name: String,
    /// Its replacement in C: a number, a cast of a number to a pointer, or the name of another constant.
    pub c: String,
}

/// A constant with a value that the standard fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its type in C, which for handles is the type of the handle.
    pub class: String,
    /// Its value as the table writes it, which is C.
    pub c: String,
    /// Its value.
    pub value: i64,
}

/// A type that the interface defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typedef {
    /// Its name.
    pub name: String,
    /// Its definition in C, behind the word `typedef` and without the semicolon.
    pub c: String,
    /// What it is.
    pub meaning: Meaning,
}

/// What a type is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// An integer type: `MPI_Aint`, `MPI_Offset`, `MPI_Count`.
    Integer,
    /// An opaque handle: a pointer to the structure with this name, which is never defined.
    Handle {
        /// Name of the structure in C.
        structure: String,
    },
    /// A function that users write. In Rust the name means the pointer to such a function.
    Callback {
        /// Its type in C.
        result: String,
        /// Its parameters.
        parameters: Vec<Parameter>,
        /// Whether further arguments may follow.
        variadic: bool,
    },
    /// Another name for the type with this name.
    Alias {
        /// The type that it means.
        of: String,
    },
}

/// A function of the interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name, which begins with `MPI_`. A twin exists whose name begins with `PMPI_`.
    pub name: String,
    /// The type of its result in C.
    pub result: String,
    /// Its parameters, without the ellipsis.
    pub parameters: Vec<Parameter>,
    /// Whether further arguments may follow: `MPI_Pcontrol`.
    pub variadic: bool,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, which the standard fixes.
    pub name: String,
    /// What stands before the name in C: `const int ` or `void *`.
    pub before: String,
    /// What stands behind the name in C: `[]`, `[][3]` or nothing.
    pub behind: String,
    /// Its type in Rust. A nullable pointer to a function is an `Option`.
    pub rust: String,
}

impl Parameter {
    /// Returns its declaration in C.
    pub fn c(&self) -> String {
        format!("{}{}{}", self.before, self.name, self.behind)
    }
}

impl Function {
    /// Returns its declaration in C, with this prefix before the name: nothing, or `P`.
    pub fn c(&self, prefix: &str) -> String {
        let mut parameters: Vec<_> = self.parameters.iter().map(Parameter::c).collect();
        parameters.extend(self.variadic.then(|| "...".to_owned()));
        let list = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
        format!("{} {prefix}{}({list})", self.result, self.name)
    }

    /// Returns the type of its result in Rust.
    pub fn rust_result(&self) -> String {
        parse::rust_type(&self.result, &[])
    }
}

impl Table {
    /// Returns the function with this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// Returns the constant of any kind with this name, except macros.
    pub fn constant(&self, name: &str) -> Option<&Constant> {
        self.handles.iter().chain(&self.integers).find(|constant| constant.name == name)
    }
}

/// Why a table was refused: the line, counted from 1, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The line.
    pub line: usize,
    /// What is wrong.
    pub what: &'static str,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the table of the interface: {}", self.line, self.what)
    }
}

impl std::error::Error for Broken {}

/// Returns the table of the interface.
pub fn table() -> Table {
    parse(include_str!("../../abi.tsv")).expect("the table of the tree is correct")
}

/// Returns the functions of MPI-1 that the interface lacks and old programs still call, with their types.
pub fn removed() -> Table {
    parse(include_str!("../../removed.tsv")).expect("the table of the tree is correct")
}
