//! The C face of the project: MPI's functions with the binary interface that MPI 5.0 defines, as a shared library with
//! the name `libmpi_abi.so.1`. Programs in C, C++, Python and Rust that were compiled against any library with this
//! interface run on it.
//!
//! It is a face: it checks arguments, translates handles, and passes errors to error handlers. What MPI means is in
//! `mpicore`. The modules follow the chapters of the standard; `README.md` lists them, and shows how a function is added.
//!
//! - FC1: a program keeps the standard's promises about the pointers that it passes: a pointer is null, or that of memory
//!   of the type and number that the function asks for, which nobody uses otherwise until the operation has ended. Null
//!   pointers are found where the standard does not allow them.
//! - FC2: what is made by MPI_Init is never freed, so calls of other threads need no lock to use it.
//! - FC3: no exported name is called by another one, so a tool between program and library sees each call once.

#![expect(unsafe_code, reason = "functions of C use the pointers that programs pass")]
#![allow(non_camel_case_types, non_snake_case, reason = "C's names")]
#![expect(clippy::too_many_arguments, reason = "functions of C have many")]

mod abi;
mod call;
mod collective;
mod comm;
mod datatype;
mod environment;
mod error;
mod file;
mod handles;
mod info;
mod p2p;
mod process;
mod request;
mod tool;
mod topology;
mod win;
