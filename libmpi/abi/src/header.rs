//! Writes `mpi.h`, for C (from C89 with `stdint.h`) and C++, from the table.
//!
//! Called by the installer and by the tests that compile the header. Constants are macros, so that programs can test
//! them with `#ifdef` and `#if`; only those that have a type of their own are enumerators. Handles of Fortran are
//! converted by inline functions, which call the functions `MPI_*_toint` and `MPI_*_fromint` of the interface. So the
//! library exports nothing for them, and the header works with any library that has this interface.

use crate::{Constant, Function, Parameter, Table, removed};

/// What stands before everything that comes from the table. The standard names the types behind the integer types.
const OPENING: &str = "\
/* mpi.h: the C interface of MPI 5.0, with the standard's binary interface (chapter 20).
   Generated from the table of the interface; do not edit. */

#ifndef MPI_H_INCLUDED
#define MPI_H_INCLUDED

#include <stdint.h>

#ifndef MPI_ABI_Aint
#define MPI_ABI_Aint intptr_t
#endif
#ifndef MPI_ABI_Offset
#define MPI_ABI_Offset int64_t
#endif
#ifndef MPI_ABI_Count
#define MPI_ABI_Count int64_t
#endif
#ifndef MPI_ABI_Fint
#define MPI_ABI_Fint int
#endif

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define MPI_ABI_INLINE static inline
#else
#define MPI_ABI_INLINE static __inline__
#endif

#ifdef __cplusplus
extern \"C\" {
#endif

typedef MPI_ABI_Fint MPI_Fint;

typedef struct MPI_Status {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

";

/// The conversions of a status, whose form in Fortran is an array of `MPI_F_STATUS_SIZE` integers with the same content.
const STATUS_CONVERSIONS: &str = "\
MPI_ABI_INLINE int @MPI_Status_c2f(const MPI_Status *c_status, MPI_Fint *f_status)
{
    int i;
    f_status[MPI_F_SOURCE] = c_status->MPI_SOURCE;
    f_status[MPI_F_TAG] = c_status->MPI_TAG;
    f_status[MPI_F_ERROR] = c_status->MPI_ERROR;
    for (i = 0; i < 5; i++)
        f_status[3 + i] = c_status->MPI_internal[i];
    return MPI_SUCCESS;
}
MPI_ABI_INLINE int @MPI_Status_f2c(const MPI_Fint *f_status, MPI_Status *c_status)
{
    int i;
    c_status->MPI_SOURCE = f_status[MPI_F_SOURCE];
    c_status->MPI_TAG = f_status[MPI_F_TAG];
    c_status->MPI_ERROR = f_status[MPI_F_ERROR];
    for (i = 0; i < 5; i++)
        c_status->MPI_internal[i] = f_status[3 + i];
    return MPI_SUCCESS;
}
";

const CLOSING: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

/// Prefixes of the two names of each function: the plain one, and that of the profiling interface.
const PREFIXES: [&str; 2] = ["", "P"];

/// Returns the text of `mpi.h`, with the functions of MPI-1 that old programs call.
pub fn header(table: &Table) -> String {
    let removed = removed();
    let mut text = OPENING.to_owned();
    text += &enumerations(&table.integers);
    for typedef in table.typedefs.iter().chain(&removed.typedefs) {
        text += &format!("typedef {};\n", typedef.c);
    }
    text += "\n";
    for constant in table.integers.iter().filter(|constant| constant.class == "int") {
        text += &define(&constant.name, &in_parentheses(&constant.c));
    }
    for handle in &table.handles {
        text += &define(&handle.name, &format!("(({}){})", handle.class, handle.c));
    }
    for definition in &table.macros {
        text += &define(&definition.name, &definition.c);
    }
    for prefix in PREFIXES {
        text += "\n";
        for function in table.functions.iter().chain(&removed.functions) {
            text += &format!("{};\n", function.c(prefix));
        }
    }
    for prefix in PREFIXES {
        text += "\n";
        text += &table.functions.iter().filter_map(|it| conversion(it, prefix)).collect::<String>();
        text += &STATUS_CONVERSIONS.replace('@', prefix);
    }
    text + CLOSING
}

fn define(name: &str, value: &str) -> String {
    format!("#define {name} {value}\n")
}

/// A number as it may stand in any expression.
fn in_parentheses(number: &str) -> String {
    if number.starts_with('-') { format!("({number})") } else { number.to_owned() }
}

/// The types of integer constants that have one of their own.
fn enumerations(integers: &[Constant]) -> String {
    let mut text = String::new();
    for constants in integers.chunk_by(|one, next| one.class == next.class) {
        let class = &constants[0].class;
        if class == "int" {
            continue;
        }
        let of = |constant: &Constant| format!("    {} = {}", constant.name, constant.c);
        let list: Vec<String> = constants.iter().map(of).collect();
        text += &format!("typedef enum {class} {{\n{}\n}} {class};\n\n", list.join(",\n"));
    }
    text
}

/// The inline function for Fortran that a conversion between a handle and an integer makes possible.
fn conversion(function: &Function, prefix: &str) -> Option<String> {
    let Function { name, result, parameters, .. } = function;
    let [Parameter { name: argument, before, .. }] = &parameters[..] else { return None };
    let handle = before.trim_end();
    if let Some(stem) = name.strip_suffix("_toint") {
        return Some(format!(
            "MPI_ABI_INLINE MPI_Fint {prefix}{stem}_c2f({handle} {argument})\n\
             {{\n    return (MPI_Fint){prefix}{name}({argument});\n}}\n"
        ));
    }
    let stem = name.strip_suffix("_fromint")?;
    Some(format!(
        "MPI_ABI_INLINE {result} {prefix}{stem}_f2c(MPI_Fint {argument})\n\
         {{\n    return {prefix}{name}((int){argument});\n}}\n"
    ))
}
