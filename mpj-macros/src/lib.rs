//! The attribute `#[mpj::test]` and the derive `mpj::Datatype`. Programs use them through `mpj`, where they are
//! documented; what they expand to calls `mpj::testing` and `mpj::derive`.
//!
//! ```text
//!  options     what stands in the brackets of the attribute, checked
//!  expansion   from the function of the user to a test of libtest
//!  datatype    from a structure to its datatype
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
