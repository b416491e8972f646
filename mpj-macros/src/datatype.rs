//! Generates the code of `#[derive(mpj::Datatype)]`, which describes a structure as a datatype.
//!
//! The expansion asks the compiler for the offset of every field and its type for the rest, so it knows nothing of how
//! the structure lies in memory. An array is taken apart here, since arrays of structures with padding are no
//! elements by themselves.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Field, Fields, Generics, Index, Member, Result, Type, parse_quote,
};

/// Returns the code that the derive adds to `structure`.
///
/// # Errors
/// An enumeration, a union, or a field whose type is written as one that is no element.
pub fn expand(structure: TokenStream) -> Result<TokenStream> {
    let DeriveInput { ident: name, generics, data, .. } = syn::parse2(structure)?;
    let fields = match data {
        Data::Struct(data) => data.fields,
        Data::Enum(_) => return Err(no_structure(&name, "an enumeration has")),
        Data::Union(_) => return Err(no_structure(&name, "a union has")),
    };
    fields.iter().try_for_each(check)?;
    let is_generic = generics.params.iter().next().is_some();
    let generics = bounded(generics, &fields);
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let sizes = fields.iter().map(|field| size(&field.ty));
    let described = fields.iter().enumerate().map(|(place, field)| {
        let (member, datatype) = (member(place, field), datatype(&field.ty));
        quote!((::core::mem::offset_of!(Self, #member), #datatype))
    });
    let made = quote! {
        ::mpj::derive::structure(::core::mem::size_of::<Self>(), [#(#described),*])
    };
    // A static inside of a generic function is one for all its types.
    let made = if is_generic { made } else { quote!(MADE.get_or_init(|| #made).clone()) };
    let once = (!is_generic).then(|| {
        let answer = quote!(::core::result::Result<::mpj::TypeMap, ::mpj::Error>);
        quote!(static MADE: ::std::sync::OnceLock<#answer> = ::std::sync::OnceLock::new();)
    });
    Ok(quote! {
        // SAFETY: every field is `Datatype`, and so `Zeroable`; zeros in all of them and in padding are a value.
        #[automatically_derived]
        unsafe impl #parameters ::mpj::Zeroable for #name #arguments #conditions {}

        // SAFETY: the fields lie inside, apart from each other, and are initialised; each promises for its own bytes.
        #[automatically_derived]
        unsafe impl #parameters ::mpj::Datatype for #name #arguments #conditions {
            const SIZE: usize = 0 #(+ #sizes)*;

            fn datatype() -> ::core::result::Result<::mpj::TypeMap, ::mpj::Error> {
                #once
                #made
            }
        }
    })
}

fn no_structure(name: &syn::Ident, what: &str) -> Error {
    let why = format!(
        "`mpj::Datatype` is for structures: {what} bytes that make no value, so it cannot be received"
    );
    Error::new(name.span(), why)
}

/// Refuses fields of types that are known by their form or name to be no elements. The compiler refuses others.
fn check(field: &Field) -> Result<()> {
    let why = match &field.ty {
        Type::Reference(_) | Type::Ptr(_) => "an address means nothing on another rank",
        Type::Path(path) if path.path.is_ident("bool") => {
            "not every byte is a `bool`: use `mpj::Bool`"
        }
        Type::Path(path) if path.path.is_ident("char") => "not every number is a `char`: use `u32`",
        _ => return Ok(()),
    };
    Err(Error::new(field.ty.span(), format!("a field of this type cannot be received: {why}")))
}

/// The parameters of the structure, with the conditions that its fields are elements.
fn bounded(mut generics: Generics, fields: &Fields) -> Generics {
    if generics.params.is_empty() {
        return generics;
    }
    let parameters: Vec<_> = generics.type_params().map(|one| one.ident.clone()).collect();
    let conditions = &mut generics.make_where_clause().predicates;
    for parameter in parameters {
        conditions.push(parse_quote!(#parameter: ::mpj::Datatype));
    }
    for field in fields {
        let element = innermost(&field.ty);
        conditions.push(parse_quote!(#element: ::mpj::Datatype));
    }
    generics
}

/// The type of the elements of an array, or of an array of arrays; otherwise the type itself.
fn innermost(written: &Type) -> &Type {
    match written {
        Type::Array(array) => innermost(&array.elem),
        written => written,
    }
}

/// Bytes that a field has in a message.
fn size(written: &Type) -> TokenStream {
    match written {
        Type::Array(array) => {
            let (len, element) = (&array.len, size(&array.elem));
            quote!((#len) * (#element))
        }
        written => quote_spanned!(written.span()=> <#written as ::mpj::Datatype>::SIZE),
    }
}

/// The datatype of a field.
fn datatype(written: &Type) -> TokenStream {
    match written {
        Type::Array(array) => {
            let (len, element) = (&array.len, datatype(&array.elem));
            quote!(::mpj::derive::array(#len, #element))
        }
        written => quote_spanned!(written.span()=> <#written as ::mpj::Datatype>::datatype()),
    }
}

/// Returns the name or the index of a field.
fn member(place: usize, field: &Field) -> Member {
    match &field.ident {
        Some(name) => Member::Named(name.clone()),
        None => Member::Unnamed(Index::from(place)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expansion(structure: &str) -> std::result::Result<String, String> {
        let expanded = expand(structure.parse().expect("tokens of Rust"));
        expanded.map(|tokens| tokens.to_string()).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(structure: &str, because: &str) {
        let error = expansion(structure).expect_err("it is refused");
        assert!(error.contains(because), "{error}");
    }

    #[test]
    fn what_is_no_element_is_refused_with_its_reason() {
        refused("enum E { A }", "an enumeration has bytes that make no value");
        refused("union U { a: u8 }", "a union has bytes");
        refused("struct S { a: u8, b: bool }", "use `mpj::Bool`");
        refused("struct S(char);", "use `u32`");
        refused("struct S<'a>(&'a u8);", "an address means nothing");
        refused("struct S { a: *const u8 }", "an address means nothing");
    }

    #[test]
    fn one_datatype_is_kept_for_a_type_but_not_for_a_family_of_types() {
        assert!(expansion("struct S { a: u8 }").expect("legal").contains("OnceLock"));
        assert!(!expansion("struct S<T> { a: T }").expect("legal").contains("OnceLock"));
    }
}
