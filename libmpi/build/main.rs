//! Writes the Rust form of the binary interface, and names the shared library.
//!
//! The generated file has a type for every type of C, a constant for every constant, and for every function the type
//! that its definitions must have, and a macro by which it can be defined from its name alone. `src/abi.rs` includes it.

#![expect(clippy::print_stdout, reason = "cargo reads what a build script prints")]

use std::path::PathBuf;
use std::{env, fs};

mod functions;
mod types;

fn main() {
    // The linker gives the file its name for programs, and keeps it mapped after `dlclose`: threads of the process may
    // still be in its code, and a job can be joined only once.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi_abi.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build");
    let (table, removed) = (mpj_abi::table(), mpj_abi::removed());
    let text = [
        types::typedefs(table.typedefs.iter().chain(&removed.typedefs)),
        types::constants(&table),
        functions::types(table.functions.iter().chain(&removed.functions)),
        functions::by_name(table.functions.iter().chain(&removed.functions)),
    ];
    #[expect(clippy::disallowed_methods, reason = "cargo tells a build script its folder so")]
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    let path = PathBuf::from(folder).join("abi.rs");
    fs::write(path, text.concat()).expect("the folder of the build is writable");
}
