//! Options of `cargo build` that `cargo mpj run` takes and passes on as they are: what they mean, and which
//! of them go together, is cargo's business. Pure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

/// What cargo is told beside the program to build.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassedOn {
    /// The words for `cargo build`.
    pub(super) to_build: Vec<OsString>,
    /// Those among them that `cargo metadata` knows too, so that both see the same workspace.
    pub(super) to_metadata: Vec<OsString>,
    manifest: Option<PathBuf>,
}

/// One of these options.
struct Row {
    name: &'static str,
    letter: Option<char>,
    /// What its value is called, if it has one.
    value: Option<&'static str>,
    /// Whether `cargo metadata` knows it.
    is_general: bool,
    help: &'static str,
}

/// An option of `cargo build` alone.
const fn of_build(
    name: &'static str,
    letter: Option<char>,
    value: Option<&'static str>,
    help: &'static str,
) -> Row {
    Row { name, letter, value, is_general: false, help }
}

/// One of `cargo metadata` as well.
const fn general(name: &'static str, value: Option<&'static str>, help: &'static str) -> Row {
    Row { name, letter: None, value, is_general: true, help }
}

/// The option that says which package is meant.
const MANIFEST: &str = "manifest-path";

/// The option that says more when it is repeated.
const REPEATED: &str = "verbose";

/// Unstable options of cargo, which have a letter only.
const UNSTABLE: &str = "Z";

const ROWS: [Row; 19] = [
    of_build("features", Some('F'), Some("FEATURES"), "Features to activate"),
    of_build("all-features", None, None, "Activate all features"),
    of_build("no-default-features", None, None, "Do not activate the default features"),
    of_build("profile", None, Some("NAME"), "Build with this profile"),
    of_build("target", None, Some("TRIPLE"), "Build for this target"),
    of_build("target-dir", None, Some("D"), "Folder for what is built"),
    of_build("jobs", Some('j'), Some("N"), "Number of parallel jobs of cargo"),
    of_build("keep-going", None, None, "Build on after an error"),
    of_build("ignore-rust-version", None, None, "Build whatever version of Rust a package wants"),
    of_build("timings", None, None, "Write down how long each part took to build"),
    of_build(REPEATED, Some('v'), None, "Let cargo say more"),
    of_build("quiet", Some('q'), None, "Let cargo say nothing but errors"),
    general(MANIFEST, Some("F"), "The Cargo.toml of the package or workspace"),
    general("locked", None, "Insist that Cargo.lock is as it has to be"),
    general("offline", None, "Do not use the network"),
    general("frozen", None, "Both --locked and --offline"),
    general("config", Some("KEY=VALUE"), "A value, or a file, of cargo's configuration"),
    general("color", Some("WHEN"), "Colours of cargo's messages"),
    Row {
        letter: Some('Z'),
        ..general(UNSTABLE, Some("FLAG"), "Unstable options of a nightly cargo")
    },
];

impl PassedOn {
    /// The folder that a cargo sees which is started in `start`: that of the manifest, if one is named.
    pub(super) fn folder(&self, start: &Path) -> PathBuf {
        let manifest = self.manifest.as_ref().map(|manifest| start.join(manifest));
        manifest.as_deref().and_then(Path::parent).unwrap_or(start).to_owned()
    }
}

impl Row {
    fn option(&self) -> Arg {
        let option = Arg::new(self.name).help(self.help).help_heading("Options of cargo build");
        let option = match self.value {
            Some(name) => option
                .action(ArgAction::Append)
                .value_name(name)
                .value_parser(value_parser!(OsString)),
            None if self.name == REPEATED => option.action(ArgAction::Count),
            None => option.action(ArgAction::SetTrue),
        };
        let option = if self.name == UNSTABLE { option } else { option.long(self.name) };
        match self.letter {
            Some(letter) => option.short(letter),
            None => option,
        }
    }

    /// The option as it was given, as often as it was.
    fn words(&self, given: &ArgMatches) -> Vec<OsString> {
        if self.value.is_none() {
            let times = match self.name {
                REPEATED => given.get_count(REPEATED),
                name => given.get_flag(name).into(),
            };
            let times = usize::from(times);
            return vec![format!("--{}", self.name).into(); times];
        }
        let option = match self.name {
            UNSTABLE => format!("-{UNSTABLE}"),
            name => format!("--{name}="),
        };
        let word = |value: &OsString| {
            let mut word = OsString::from(&option);
            word.push(value);
            word
        };
        given.get_many(self.name).unwrap_or_default().map(word).collect()
    }
}

impl Args for PassedOn {
    fn augment_args(command: Command) -> Command {
        command.args(ROWS.iter().map(Row::option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PassedOn {
    fn from_arg_matches(given: &ArgMatches) -> Result<Self, clap::Error> {
        let words =
            |rows: &mut dyn Iterator<Item = &Row>| rows.flat_map(|row| row.words(given)).collect();
        Ok(Self {
            to_build: words(&mut ROWS.iter()),
            to_metadata: words(&mut ROWS.iter().filter(|row| row.is_general)),
            manifest: given
                .get_many(MANIFEST)
                .and_then(|mut all| all.next_back())
                .map(|path: &OsString| path.into()),
        })
    }

    fn update_from_arg_matches(&mut self, given: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(given)?;
        Ok(())
    }
}
