//! The attribute `#[mpj::test]` and the derive `mpj::Datatype`. Programs use them through `mpj`, where they are
//! documented. The code that they generate calls `mpj::testing` and `mpj::derive`.
//!
//! ```text
//!  options     parses and checks the arguments of the attribute
//!  expansion   turns the user's function into a test of libtest
//!  datatype    implements `mpj::Datatype` for a structure
//! ```

use proc_macro::TokenStream;

mod datatype;
mod expansion;
mod options;

/// Makes a structure an element of messages.
#[proc_macro_derive(Datatype)]
pub fn datatype(structure: TokenStream) -> TokenStream {
    datatype::expand(structure.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a function a test whose body runs on the ranks of a job.
#[proc_macro_attribute]
pub fn test(options: TokenStream, function: TokenStream) -> TokenStream {
    expansion::expand(options.into(), function.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
