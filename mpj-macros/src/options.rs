//! The arguments of the attribute: `ranks = 4, timeout = "10s", backend = "eager"`.

use std::time::Duration;

use proc_macro2::{Span, TokenStream};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Lit, LitInt, LitStr, MetaNameValue, Result, Token};

/// Most ranks of a job.
const MAX_RANKS: usize = 256;
/// How long a test may take that says nothing about it.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Units of a timeout, with what they are in milliseconds. `ms` stands before its end `s`.
const UNITS: [(&str, u64); 3] = [("ms", 1), ("s", 1000), ("m", 60_000)];
/// Longest timeout, in milliseconds: a day.
const MAX_TIMEOUT: u64 = 24 * 60 * 60 * 1000;

/// The words for protocols, with their variants of `mpj::tuning::BackendChoice`.
const BACKENDS: [(&str, &str); 3] =
    [("auto", "Auto"), ("eager", "Eager"), ("rendezvous", "Rendezvous")];

/// The options of a test, checked.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of ranks.
    pub ranks: usize,
    /// How long the job may run.
    pub timeout: Duration,
    /// Variant of `mpj::tuning::BackendChoice`, if one was named.
    pub backend: Option<&'static str>,
}

impl Options {
    /// Parses the attribute's arguments.
    ///
    /// # Errors
    /// An option that is unknown, missing, given twice, or has no legal value, with its place.
    pub fn parse(tokens: TokenStream) -> Result<Self> {
        let parser = Punctuated::<MetaNameValue, Token![,]>::parse_terminated;
        let (mut ranks, mut timeout, mut backend) = (None, None, None);
        for MetaNameValue { path, value, .. } in parser.parse2(tokens)? {
            let name = path.get_ident().map(ToString::to_string).unwrap_or_default();
            let is_new = match &*name {
                "ranks" => ranks.replace(rank_count(&value)?).is_none(),
                "timeout" => timeout.replace(duration(text(&value, "timeout")?)?).is_none(),
                "backend" => backend.replace(variant(text(&value, "backend")?)?).is_none(),
                _ => {
                    let what = "no such option; there are `ranks`, `timeout` and `backend`";
                    return Err(Error::new_spanned(path, what));
                }
            };
            if !is_new {
                return Err(Error::new_spanned(path, format!("`{name}` is given twice")));
            }
        }
        let missing =
            || Error::new(Span::call_site(), "say how many ranks: `#[mpj::test(ranks = 4)]`");
        let ranks = ranks.ok_or_else(missing)?;
        Ok(Self { ranks, timeout: timeout.unwrap_or(DEFAULT_TIMEOUT), backend })
    }
}

fn rank_count(value: &Expr) -> Result<usize> {
    let number = match value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => LitInt::base10_parse(number).ok(),
        _ => None,
    };
    let legal = number.filter(|ranks| (1..=MAX_RANKS).contains(ranks));
    let what = format!("`ranks` is a number from 1 to {MAX_RANKS}");
    legal.ok_or_else(|| Error::new_spanned(value, what))
}

fn text<'a>(value: &'a Expr, option: &str) -> Result<&'a LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text),
        _ => {
            Err(Error::new_spanned(value, format!("`{option}` is a text between quotation marks")))
        }
    }
}

fn duration(text: &LitStr) -> Result<Duration> {
    let value = text.value();
    let parsed = UNITS.iter().find_map(|(unit, factor)| {
        let number: u64 = value.strip_suffix(unit)?.trim_end().parse().ok()?;
        number.checked_mul(*factor)
    });
    let legal = parsed.filter(|millis| (1..=MAX_TIMEOUT).contains(millis));
    let what = "`timeout` is a whole number above 0 with its unit, at most a day: \"500ms\", \
                \"10s\" or \"2m\"";
    legal.map(Duration::from_millis).ok_or_else(|| Error::new(text.span(), what))
}

fn variant(text: &LitStr) -> Result<&'static str> {
    let value = text.value();
    let row = BACKENDS.iter().find(|(word, _)| *word == value);
    let what = "`backend` is \"auto\", \"eager\" or \"rendezvous\"";
    row.map(|(_, variant)| *variant).ok_or_else(|| Error::new(text.span(), what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &str) -> std::result::Result<Options, String> {
        let tokens = options.parse().expect("tokens of Rust");
        Options::parse(tokens).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(options: &str, because: &str) {
        let error = parse(options).expect_err("it is refused");
        assert!(error.contains(because), "{error}");
    }

    #[test]
    fn legal_options() {
        let seconds = Duration::from_secs;
        let timeout =
            |text: &str| parse(&format!("ranks = 1, timeout = {text:?}")).expect("legal").timeout;
        let all = r#"backend = "eager", timeout = "10s", ranks = 256,"#;
        let expected = Options { ranks: 256, timeout: seconds(10), backend: Some("Eager") };
        assert_eq!(parse(all), Ok(expected));
        let fewest = Options { ranks: 1, timeout: seconds(60), backend: None };
        assert_eq!(parse("ranks = 1"), Ok(fewest));
        assert_eq!(timeout("500ms"), Duration::from_millis(500));
        assert_eq!((timeout("2m"), timeout("3 s")), (seconds(120), seconds(3)));
    }

    #[test]
    fn ranks_are_checked() {
        refused("", "say how many ranks");
        refused(r#"timeout = "1s""#, "say how many ranks");
        for ranks in ["0", "257", "-1", "\"4\"", "RANKS", "2.5"] {
            refused(&format!("ranks = {ranks}"), "a number from 1 to 256");
        }
    }

    #[test]
    fn timeouts_are_checked() {
        for timeout in
            ["", "10", "0s", "-1s", "1.5s", "s", "10 hours", "99999999999999999999s", "1441m"]
        {
            refused(&format!("ranks = 2, timeout = {timeout:?}"), "\"500ms\", \"10s\" or \"2m\"");
        }
        refused("ranks = 2, timeout = 10", "a text between quotation marks");
    }

    #[test]
    fn other_options_are_refused() {
        refused("ranks = 2, size = 4", "no such option");
        refused("ranks = 2, a::b = 4", "no such option");
        refused("ranks = 2, ranks = 3", "`ranks` is given twice");
        refused(r#"ranks = 2, backend = "fast""#, "\"eager\" or \"rendezvous\"");
        assert!(parse("4").is_err() && parse("ranks").is_err());
    }
}
