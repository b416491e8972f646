//! One source file, taken apart far enough for the rules: code, comments, tokens.
//!
//! Called by the rules beside it. This is no parser: it knows comments, string and character
//! literals, words and brackets, which is all that the rules ask about.

/// A file of the tree.
pub struct Source {
    /// Path from the root of the tree, with `/`.
    pub path: String,
    /// The file as it is.
    pub text: String,
    /// Comments without their `//`, `///`, `//!` or stars, one per line that has one.
    pub comments: Vec<Line>,
    /// Words and punctuation outside comments and literals.
    pub tokens: Vec<Line>,
}

/// A piece of text and the line that it is on, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub number: usize,
    pub text: String,
}

/// Something that a rule forbids.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    pub line: usize,
    pub what: String,
}

impl Source {
    /// Takes a Rust file apart. For files of other kinds only `path` and `text` are of use.
    pub fn new(path: &str, text: &str) -> Self {
        let (code, comments) = split(text);
        let tokens = tokens(&code);
        Self { path: path.to_owned(), text: text.to_owned(), comments, tokens }
    }

    pub fn finding(&self, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, what: what.into() }
    }

    /// The tokens of one line.
    pub fn tokens_on(&self, line: usize) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter(move |token| token.number == line).map(|token| &*token.text)
    }

    /// Places in `tokens` where this word or these words and signs follow one another.
    pub fn find<'a>(&'a self, wanted: &'a [&'a str]) -> impl Iterator<Item = usize> + 'a {
        let windows = self.tokens.windows(wanted.len()).enumerate();
        windows.filter_map(move |(at, window)| {
            window.iter().zip(wanted).all(|(token, wanted)| token.text == *wanted).then_some(at)
        })
    }

    /// The line of the bracket that closes the block which opens at or after token `from`; `None`
    /// when a `;` outside all brackets comes first.
    pub fn end_of_block(&self, from: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for token in &self.tokens[from..] {
            match &*token.text {
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

/// The code with comments and the insides of literals blanked out, and the comments.
fn split(text: &str) -> (String, Vec<Line>) {
    let mut splitter =
        Splitter { rest: text, number: 1, code: String::new(), comments: Vec::new() };
    while splitter.step() {}
    (splitter.code, splitter.comments)
}

struct Splitter<'a> {
    rest: &'a str,
    number: usize,
    code: String,
    comments: Vec<Line>,
}

impl<'a> Splitter<'a> {
    /// Goes on by one comment, one literal or one character. False at the end.
    fn step(&mut self) -> bool {
        let Some(next) = self.rest.chars().next() else { return false };
        let in_word = self.code.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.comment(end);
        } else if self.rest.starts_with("/*") {
            self.comment(block_comment_len(self.rest));
        } else if let Some(hashes) = raw_string_hashes(self.rest).filter(|_| !in_word) {
            let open = self.rest.find('"').expect("a raw string has a quote") + 1;
            let close = format!("\"{}", "#".repeat(hashes));
            let inside = self.rest[open..].find(&close).unwrap_or(self.rest.len() - open);
            self.literal((open + inside + close.len()).min(self.rest.len()));
        } else if next == '"' {
            self.literal(quoted_len(self.rest, '"'));
        } else if next == '\'' && is_char_literal(self.rest) {
            self.literal(quoted_len(self.rest, '\''));
        } else {
            let taken = self.take(next.len_utf8());
            self.code.push_str(taken);
        }
        true
    }

    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.number += taken.matches('\n').count();
        taken
    }

    fn comment(&mut self, len: usize) {
        let first = self.number;
        let taken = self.take(len);
        for (line, text) in taken.split('\n').enumerate() {
            let text = text.trim().trim_start_matches(['/', '*', '!']).trim_end_matches(['/', '*']);
            self.comments.push(Line { number: first + line, text: text.trim().to_owned() });
        }
        self.blank(taken);
    }

    /// A literal becomes an empty string, so that what stood beside it does not grow together.
    fn literal(&mut self, len: usize) {
        let taken = self.take(len);
        self.code.push('"');
        self.blank(taken);
    }

    fn blank(&mut self, taken: &str) {
        self.code.push(' ');
        self.code.extend(taken.matches('\n'));
    }
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

/// How many hashes surround the raw string that `text` starts with, if it does.
fn raw_string_hashes(text: &str) -> Option<usize> {
    let rest = ["br", "cr", "r"].iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    rest[hashes..].starts_with('"').then_some(hashes)
}

/// Length of the literal between two `quote`s that `text` starts with; a backslash hides one.
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

/// Words, `::`, and every other sign alone.
fn tokens(code: &str) -> Vec<Line> {
    let mut tokens = Vec::new();
    for (index, line) in code.split('\n').enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let len = match word {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                word => word,
            };
            tokens.push(Line { number: index + 1, text: rest[..len].to_owned() });
            rest = rest[len..].trim_start();
        }
    }
    tokens
}
