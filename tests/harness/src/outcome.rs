//! The outcome of a launch, with assertions about it.

/// What a command did. The assertions return it, so that they can be strung together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Exit code, or 128 plus the number of the signal that killed the process, as in a shell.
    pub code: i32,
    /// Everything on standard output.
    pub stdout: String,
    /// Everything on standard error.
    pub stderr: String,
}

impl Outcome {
    /// Asserts the exit code.
    ///
    /// # Panics
    /// When it is another one.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Asserts exit code 0 and an empty standard error.
    ///
    /// # Panics
    /// When either is not so.
    #[track_caller]
    pub fn expect_quiet(self) -> Self {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        self
    }

    /// Asserts that these words are on standard error.
    ///
    /// # Panics
    /// When they are not.
    #[track_caller]
    pub fn says(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "no {words:?} in {self:?}");
        self
    }

    /// Asserts that all of these words are on standard error, in any order.
    ///
    /// # Panics
    /// When some are not.
    #[track_caller]
    pub fn says_all(self, list: &[&str]) -> Self {
        for words in list {
            assert!(self.stderr.contains(words), "no {words:?} in {self:?}");
        }
        self
    }

    /// Lines of standard output, sorted, since the order between ranks varies.
    pub fn sorted_lines(&self) -> Vec<&str> {
        let mut lines: Vec<_> = self.stdout.lines().collect();
        lines.sort_unstable();
        lines
    }
}
