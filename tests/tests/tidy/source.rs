//! Scans a source file into what the rules look at: code, comments, tokens.
//!
//! Called by the rules beside it. This is no parser: it knows only comments, string and character literals, words and
//! brackets.

/// A file of the tree.
pub struct Source<'a> {
    /// Path from the root of the tree, with `/`.
    pub path: &'a str,
    /// The whole text.
    pub text: &'a str,
    /// Comments without their `//`, `///`, `//!` or stars, one per line that has one.
    pub comments: Vec<Line<'a>>,
    /// Words and punctuation outside comments and literals. A literal becomes one quote, which keeps its neighbours
    /// apart.
    pub tokens: Vec<Line<'a>>,
}

/// A piece of text and the line that it is on, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    pub number: usize,
    pub text: &'a str,
}

/// Something that a rule forbids.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    pub line: usize,
    pub what: String,
}

impl<'a> Source<'a> {
    /// Scans a Rust file. For files of other kinds only `path` and `text` are meaningful.
    pub fn new(path: &'a str, text: &'a str) -> Self {
        let mut splitter =
            Splitter { rest: text, number: 1, tokens: Vec::new(), comments: Vec::new() };
        while splitter.step() {}
        let Splitter { tokens, comments, .. } = splitter;
        Self { path, text, comments, tokens }
    }

    pub fn finding(&self, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: self.path.to_owned(), line, what: what.into() }
    }

    /// The tokens of one line.
    pub fn tokens_on(&self, line: usize) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter(move |token| token.number == line).map(|token| token.text)
    }

    /// Places in `tokens` where this sequence of words and signs begins.
    pub fn find(&self, wanted: &[&str]) -> impl Iterator<Item = usize> {
        let first = wanted[0];
        let begins = move |token: &(usize, &Line)| token.1.text == first;
        let begun = self.tokens.iter().enumerate().filter(begins).map(|(at, _)| at);
        begun.filter(move |&at| {
            let there = self.tokens[at..].iter().map(|token| token.text);
            there.take(wanted.len()).eq(wanted.iter().copied())
        })
    }

    /// The line of the bracket that closes the block which opens at or after token `from`; `None`
    /// when a `;` outside all brackets comes first.
    pub fn end_of_block(&self, from: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for token in &self.tokens[from..] {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ";" if depth == 0 => return None,
                ")" | "]" => depth = depth.saturating_sub(1),
                "}" if depth <= 1 => return Some(token.number),
                "}" => depth -= 1,
                _ => {}
            }
        }
        None
    }
}

struct Splitter<'a> {
    rest: &'a str,
    number: usize,
    tokens: Vec<Line<'a>>,
    comments: Vec<Line<'a>>,
}

impl<'a> Splitter<'a> {
    /// Advances by one comment, literal, word or sign, and the space before it. False at the end.
    fn step(&mut self) -> bool {
        let rest = self.rest.trim_start();
        self.take(self.rest.len() - rest.len());
        let Some(first) = rest.chars().next() else { return false };
        let word = rest.find(|char| !is_of_words(char)).unwrap_or(rest.len());
        if let Some(len) = raw_string_len(rest, word) {
            self.literal(len);
        } else if word > 0 {
            self.token(word);
        } else if rest.starts_with("//") {
            self.comment(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.comment(block_comment_len(rest));
        } else if first == '"' || first == '\'' && is_char_literal(rest) {
            self.literal(quoted_len(rest, first));
        } else {
            self.token(if rest.starts_with("::") { 2 } else { first.len_utf8() });
        }
        true
    }

    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.number += taken.matches('\n').count();
        taken
    }

    fn token(&mut self, len: usize) {
        let number = self.number;
        let text = self.take(len);
        self.tokens.push(Line { number, text });
    }

    fn literal(&mut self, len: usize) {
        self.tokens.push(Line { number: self.number, text: "\"" });
        self.take(len);
    }

    fn comment(&mut self, len: usize) {
        let first = self.number;
        for (line, text) in self.take(len).split('\n').enumerate() {
            let text = text.trim().trim_start_matches(['/', '*', '!']).trim_end_matches(['/', '*']);
            self.comments.push(Line { number: first + line, text: text.trim() });
        }
    }
}

/// Whether a character is part of a word.
fn is_of_words(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Length of the block comment that `text` starts with; they nest.
fn block_comment_len(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// Length of the raw string that `text` starts with, if it does: with a word of that length.
fn raw_string_len(text: &str, word: usize) -> Option<usize> {
    let (prefix, rest) = text.split_at(word);
    if !matches!(prefix, "r" | "br" | "cr") {
        return None;
    }
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let inside = rest[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = inside.find(&close).map_or(inside.len(), |at| at + close.len());
    Some(text.len() - inside.len() + end)
}

/// Length of the literal between two `quote`s that `text` starts with; a backslash escapes a quote.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut hidden = false;
    for (at, char) in text.char_indices().skip(1) {
        if hidden {
            hidden = false;
        } else if char == '\\' {
            hidden = true;
        } else if char == quote {
            return at + 1;
        }
    }
    text.len()
}

/// Whether the quote that `text` starts with begins a character and not a lifetime.
fn is_char_literal(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    let (first, second) = (chars.next(), chars.next());
    first == Some('\\') || (first.is_some() && second == Some('\''))
}
