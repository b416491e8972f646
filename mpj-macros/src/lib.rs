//! The attribute `#[mpj::test]`. Programs use it through `mpj`, where it is documented; what it
//! expands to calls `mpj::testing`.
//!
//! ```text
//!  options     what stands in the brackets of the attribute, checked
//!  expansion   from the function of the user to a test of libtest
//! ```

#![forbid(unsafe_code)]

use proc_macro::TokenStream;

mod expansion;
mod options;

/// Makes a function a test whose body runs on the ranks of a job.
#[proc_macro_attribute]
pub fn test(options: TokenStream, function: TokenStream) -> TokenStream {
    expansion::expand(options.into(), function.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
