//! Turns the user's function into a test of libtest.
//!
//! The user's function moves, as it is but without its attributes, into a function of the same name
//! that libtest runs. All attributes stay with that one, so `#[ignore]`, `#[should_panic]` and
//! `#[cfg]` mean what they mean for any test.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, ItemFn, Result, Signature, Type};

use crate::options::Options;

/// Returns the test that the attribute makes of `function`.
///
/// # Errors
/// Options that are not legal; a function that cannot be a test.
pub fn expand(options: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let options = Options::parse(options)?;
    let mut function: ItemFn = syn::parse2(function)?;
    let attributes = std::mem::take(&mut function.attrs);
    if let Some(twice) = attributes.iter().find(|attribute| attribute.path().is_ident("test")) {
        let what = "`#[mpj::test]` makes the function a test already; remove `#[test]`";
        return Err(Error::new_spanned(twice, what));
    }
    let run = runner(&function.sig)?;
    let name = &function.sig.ident;
    let case = case(&name.to_string(), &options);
    // A name that the function cannot have.
    let parameter = Ident::new("world", Span::mixed_site());
    let world = (!function.sig.inputs.is_empty()).then(|| quote!(#parameter));
    // With the place of the name, so that an error that is returned is reported there.
    let body = quote_spanned!(name.span()=> |#world| ::mpj::testing::check(#name(#world)));
    Ok(quote! {
        #[::core::prelude::v1::test]
        #(#attributes)*
        fn #name() {
            #function
            ::mpj::testing::#run(&#case, #body)
        }
    })
}

/// The value of `mpj::testing::Case` that describes the test called `name`.
fn case(name: &str, options: &Options) -> TokenStream {
    let Options { ranks, timeout, backend } = options;
    let millis = u64::try_from(timeout.as_millis()).expect("a timeout is at most a day");
    let backend = match backend.map(|variant| format_ident!("{variant}")) {
        Some(variant) => {
            quote!(::core::option::Option::Some(::mpj::tuning::BackendChoice::#variant))
        }
        None => quote!(::core::option::Option::None),
    };
    quote! {
        ::mpj::testing::Case {
            module: ::core::module_path!(),
            name: #name,
            ranks: #ranks,
            timeout: ::core::time::Duration::from_millis(#millis),
            backend: #backend,
        }
    }
}

/// Returns whether the type is a reference, perhaps wrapped by a macro or in parentheses.
fn is_reference(written: &Type) -> bool {
    match written {
        Type::Group(inside) => is_reference(&inside.elem),
        Type::Paren(inside) => is_reference(&inside.elem),
        written => matches!(written, Type::Reference(_)),
    }
}

/// The function of `mpj::testing` that runs a body of this signature.
fn runner(signature: &Signature) -> Result<TokenStream> {
    let refused = |what: &dyn quote::ToTokens, why: &str| Err(Error::new(what.span(), why));
    if let Some(keyword) = &signature.asyncness {
        return refused(keyword, "a test of several ranks is not async");
    }
    if !signature.generics.params.is_empty() {
        return refused(&signature.generics, "a test has no generic parameters");
    }
    let world =
        "a test of several ranks takes nothing, or its world as `&mpj::World` or `mpj::World`";
    let mut inputs = signature.inputs.iter();
    match (inputs.next(), inputs.next()) {
        (None, _) => Ok(quote!(run)),
        (Some(FnArg::Typed(world)), None) if is_reference(&world.ty) => Ok(quote!(run_with_world)),
        (Some(FnArg::Typed(_)), None) => Ok(quote!(run_owning_world)),
        (Some(_), _) => refused(&signature.inputs, world),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expansion(options: &str, function: &str) -> std::result::Result<String, String> {
        let tokens = |text: &str| text.parse().expect("tokens of Rust");
        let expanded = expand(tokens(options), tokens(function));
        expanded.map(|tokens| tokens.to_string()).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(function: &str, because: &str) {
        let error = expansion("ranks = 2", function).expect_err("it is refused");
        assert!(error.contains(because), "{error}");
    }

    #[test]
    fn the_parameter_chooses_how_the_body_is_run() {
        for (function, run) in [
            ("fn f() {}", "testing :: run (&"),
            ("fn f(world: &World) {}", "testing :: run_with_world (&"),
            (
                "fn f(_: mpj::World) -> Result<(), String> { Ok(()) }",
                "testing :: run_owning_world (&",
            ),
        ] {
            let text = expansion("ranks = 3", function).expect("legal").replace("( &", "(&");
            assert!(text.contains(run) && text.contains("ranks : 3usize"), "{text}");
        }
    }

    #[test]
    fn attributes_stay_with_the_test() {
        let text = expansion("ranks = 2", "#[ignore] #[should_panic] fn f() {}").expect("legal");
        let (head, body) = text.split_once("fn f").expect("a function");
        assert!(head.contains("# [ignore]") && head.contains("# [should_panic]"), "{text}");
        assert!(!body.contains("ignore"), "{text}");
    }

    #[test]
    fn functions_that_are_no_tests() {
        refused("async fn f() {}", "not async");
        refused("fn f<T>() {}", "no generic parameters");
        refused("fn f(&self) {}", "takes nothing, or its world");
        refused("fn f(a: &World, b: &World) {}", "takes nothing, or its world");
        refused("#[test] fn f() {}", "remove `#[test]`");
        refused("struct S;", "expected `fn`");
    }
}
