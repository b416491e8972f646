//! A builder for commands, used by every test that starts one.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::running::Reader;
use crate::{LIMIT, Outcome, Running, Scene, mpjrun_path, process};

/// A command that has not been started. It has no input.
pub struct Launch {
    command: Command,
    /// What follows all options: the program of a job, and arguments.
    rest: Vec<OsString>,
    mark: String,
    limit: Duration,
    reader: Reader,
}

/// A job of this program: `mpjrun OPTIONS PROGRAM ARGUMENTS`.
pub fn launch(program: impl AsRef<OsStr>) -> Launch {
    command(mpjrun_path()).args([program])
}

/// `mpjrun` with these words.
pub fn mpjrun<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Launch {
    command(mpjrun_path()).args(words)
}

/// A shell that runs this script, with `mpjrun` as its `$0`; further arguments may follow.
pub fn shell(script: &str) -> Launch {
    command("sh").args(["-c", script]).args([mpjrun_path()])
}

/// Any program.
pub fn command(program: impl AsRef<OsStr>) -> Launch {
    static LAUNCHES: AtomicUsize = AtomicUsize::new(0);
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let number = LAUNCHES.fetch_add(1, Ordering::Relaxed);
    let mark = format!("{}-{number}", std::process::id());
    Launch { command, rest: Vec::new(), mark, limit: LIMIT, reader: Reader::Harness }
}

impl Launch {
    /// Sets the number of ranks.
    pub fn ranks(self, ranks: usize) -> Self {
        self.options(["-n", &ranks.to_string()])
    }

    /// Adds words before the program of the job.
    pub fn options<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.command.args(words);
        self
    }

    /// Adds words at the end of the command line.
    pub fn args<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.rest.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Sets a variable of the environment.
    pub fn env(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.set(|command| command.env(name, value))
    }

    /// Sets anything else about the command.
    pub fn set(mut self, how: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        how(&mut self.command);
        self
    }

    /// Gives it this as standard input.
    pub fn stdin(self, input: impl Into<Stdio>) -> Self {
        self.set(|command| command.stdin(input))
    }

    /// Sends standard output there instead of into the outcome.
    pub fn into(mut self, out: impl Into<Stdio>) -> Self {
        self.reader = Reader::Elsewhere;
        self.set(|command| command.stdout(out))
    }

    /// Leaves standard output unread until [`Running::read`].
    pub fn unread(mut self) -> Self {
        self.reader = Reader::Nobody;
        self
    }

    /// Runs it in a scene, which looks for what it leaves behind.
    pub fn at(mut self, scene: &Scene) -> Self {
        self.mark = scene.mark().to_owned();
        let places = ["TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
        self.set(|command| command.envs(places.map(|place| (place, scene.folder()))))
    }

    /// Sets how long it may take.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// When there is no such program.
    #[track_caller]
    pub fn start(mut self) -> Running {
        self.command.args(self.rest).env(process::MARK, &self.mark);
        Running::start(self.command, self.mark, self.limit, self.reader)
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it does not end within the limit.
    #[track_caller]
    pub fn run(self) -> Outcome {
        self.start().finish()
    }

    /// Runs it to its end, and asserts its exit code.
    ///
    /// # Panics
    /// When it ends otherwise, or not within the limit.
    #[track_caller]
    pub fn expect(self, code: i32) -> Outcome {
        self.run().expect(code)
    }

    /// Runs it to its end, and asserts exit code 0 and an empty standard error.
    ///
    /// # Panics
    /// When it ends otherwise, or not within the limit.
    #[track_caller]
    pub fn expect_quiet(self) -> Outcome {
        self.run().expect_quiet()
    }
}
