//! What a client and a process manager say to each other: records of named values, in the two forms of PMI.
//!
//! Pure. PMI-1 writes lines, `cmd=get_result rc=0 value=ab\n`. PMI-2 writes six characters of decimal length, then as
//! many bytes: `    31cmd=kvs-get-response;rc=0;value=ab;`. Neither has a way to quote that all managers understand, so
//! what is written here contains no separator, and what is read may contain words of any other kind, which are ignored.

use std::fmt::Write;

/// Longest record that is read or written, in bytes; PMI-2 can announce no longer one.
pub(crate) const MAX_RECORD: usize = 999_999;
/// Characters of the length of a record of PMI-2.
pub(crate) const LENGTH: usize = 6;

/// How a record is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// One line, words separated by spaces.
    Line,
    /// A length, then words each ended by a semicolon.
    Counted,
}

/// A record: names with their values, in order. The first name is `cmd`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    words: Vec<(String, String)>,
}

impl Record {
    /// The record of command `cmd`.
    pub(crate) fn new(cmd: &str) -> Self {
        Self { words: vec![("cmd".to_owned(), cmd.to_owned())] }
    }

    /// Adds a value. Characters that separate words become underscores.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        let separates = |c: char| c.is_whitespace() || c.is_control() || c == ';';
        self.words.push((name.to_owned(), value.to_string().replace(separates, "_")));
        self
    }

    /// Returns the command.
    pub(crate) fn command(&self) -> &str {
        &self.words[0].1
    }

    /// Returns the value called `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.words.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value called `name` if it is a number.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    /// Writes the record.
    pub(crate) fn encode(&self, form: Form) -> String {
        let mut text = String::new();
        for (at, (name, value)) in self.words.iter().enumerate() {
            let written = match form {
                Form::Line if at == 0 => write!(text, "{name}={value}"),
                Form::Line => write!(text, " {name}={value}"),
                Form::Counted => write!(text, "{name}={value};"),
            };
            written.expect("a string takes any text");
        }
        match form {
            Form::Line => text + "\n",
            Form::Counted => format!("{:LENGTH$}{text}", text.len()),
        }
    }

    /// Reads the words of a record, without the end of its line, or without its length.
    pub(crate) fn decode(form: Form, text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= MAX_RECORD)?;
        let separator = match form {
            Form::Line => ' ',
            Form::Counted => ';',
        };
        let pair = |word: &str| {
            let (name, value) = word.trim_end_matches(['\r', '\n']).split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        };
        let words: Vec<_> = text.split(separator).filter_map(pair).collect();
        words.first().is_some_and(|(name, _)| name == "cmd").then_some(Self { words })
    }

    /// Reads the length of a record of PMI-2.
    pub(crate) fn length(text: &[u8]) -> Option<usize> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() == LENGTH)?;
        text.trim().parse().ok().filter(|length| *length <= MAX_RECORD)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(text: &str) -> Option<Record> {
        Record::decode(Form::Line, text.as_bytes())
    }

    #[test]
    fn answers_of_managers_are_read() {
        let hydra = line("cmd=get_result rc=0 msg=success value=(vector,(0,1,2))").unwrap();
        assert_eq!(hydra.command(), "get_result");
        assert_eq!((hydra.number("rc"), hydra.get("value")), (Some(0), Some("(vector,(0,1,2))")));
        let absent = line("cmd=get_result rc=-1 msg=key not found value=unknown").unwrap();
        assert_eq!((absent.number("rc"), absent.get("value")), (Some(-1), Some("unknown")));
        let text = b"cmd=kvs-get-response;rc=0;found=TRUE;value=ab;";
        let slurm = Record::decode(Form::Counted, text).unwrap();
        assert_eq!((slurm.get("found"), slurm.get("value")), (Some("TRUE"), Some("ab")));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for text in ["", "cmd", "rc=0 cmd=x", "hello", "\n"] {
            assert_eq!(line(text), None, "{text:?}");
        }
        assert_eq!(Record::decode(Form::Line, b"cmd=\xff"), None);
    }

    #[test]
    fn a_length_has_six_characters() {
        for (text, length) in [("    46", Some(46)), ("999999", Some(999_999)), ("000007", Some(7))]
        {
            assert_eq!(Record::length(text.as_bytes()), length, "{text:?}");
        }
        for text in ["46", "", "     x", "    -1", "   4 6", "0000046"] {
            assert_eq!(Record::length(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn separators_in_a_value_do_not_end_it() {
        let record = Record::new("abort").with("message", "rank 1; it said\ncmd=finalize");
        assert_eq!(record.encode(Form::Line), "cmd=abort message=rank_1__it_said_cmd=finalize\n");
        assert_eq!(
            record.encode(Form::Counted),
            "    47cmd=abort;message=rank_1__it_said_cmd=finalize;"
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            cmd in "[a-z_-]{1,20}",
            words in prop::collection::vec(("[a-z_-]{1,20}", "[!-:<-~]{0,80}"), 0..6),
        ) {
            let new = Record::new(&cmd);
            let record = words.iter().fold(new, |record, (name, value)| record.with(name, value));
            let text = record.encode(Form::Line);
            prop_assert_eq!(Record::decode(Form::Line, text.as_bytes()), Some(record.clone()));
            let text = record.encode(Form::Counted).into_bytes();
            let (length, text) = text.split_at(LENGTH);
            prop_assert_eq!(Record::length(length), Some(text.len()));
            prop_assert_eq!(Record::decode(Form::Counted, text), Some(record));
        }

        #[test]
        fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Record::length(&bytes);
            for form in [Form::Line, Form::Counted] {
                let _ = Record::decode(form, &bytes);
            }
        }
    }
}
