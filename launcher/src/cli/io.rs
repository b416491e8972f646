//! Options about the ranks' streams, their processors, and what a failure does.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::host::binding::{BindTo, Binding, MapBy};
use crate::io::output::OutputChoice;
use crate::io::stdin::InputChoice;
use crate::job::OnFailure;

/// The options of this file.
#[derive(Debug, Clone, Args)]
pub(super) struct IoOptions {
    /// What becomes of the ranks' output, a list of: `tag` begins every line with its rank, as -l;
    /// `timestamp` with the time (UTC); `dir=D` writes D/rank.N.stdout and D/rank.N.stderr as well, or,
    /// with `nocopy`, instead
    #[arg(long, value_name = "LIST", value_parser = output_parser())]
    output: Vec<OutputChoice>,
    /// The folder of Open MPI's option of this name
    #[arg(long, value_name = "D", hide = true)]
    output_filename: Option<PathBuf>,
    #[arg(long, hide = true)]
    timestamp_output: bool,
    /// Who gets the standard input: rank R, or `none`
    #[arg(long, value_name = "R", default_value = "0", value_parser = input, allow_negative_numbers = true)]
    stdin: InputChoice,
    /// What each rank is bound to; `core` or `hwthread` if only --map-by is given, else `none`
    #[arg(long, value_enum, value_name = "PLACE")]
    bind_to: Option<BindTo>,
    /// In which order ranks are bound: to one core after the other, to the sockets in turn, or to one
    /// hardware thread after the other
    #[arg(long, value_enum, value_name = "ORDER")]
    map_by: Option<MapBy>,
    /// Say where each rank runs
    #[arg(long, alias = "display-map")]
    report_bindings: bool,
    /// What happens when a rank fails: `kill` ends the job; `keep` lets the others go on to their own end,
    /// but their calls fail from the first one on that has to wait
    #[arg(long, value_enum, value_name = "WHAT", default_value = "kill")]
    pub(super) on_failure: OnFailure,
}

impl IoOptions {
    /// What becomes of output, where `label` is `-l`.
    pub(super) fn output(&self, label: bool) -> OutputChoice {
        let mut choice = OutputChoice {
            tag: label,
            timestamp: self.timestamp_output,
            folder: self.output_filename.clone(),
            nocopy: false,
        };
        for list in self.output.iter().cloned() {
            choice.tag |= list.tag;
            choice.timestamp |= list.timestamp;
            choice.nocopy |= list.nocopy;
            choice.folder = list.folder.or(choice.folder);
        }
        choice
    }

    /// Who gets the standard input.
    pub(super) fn input(&self) -> InputChoice {
        self.stdin
    }

    /// Where ranks run.
    pub(super) fn binding(&self) -> Binding {
        Binding::new(self.bind_to, self.map_by, self.report_bindings)
    }
}

/// Reads one list of `--output`.
fn output_list(list: OsString) -> Result<OutputChoice, String> {
    let mut choice = OutputChoice::default();
    for word in list.as_bytes().split(|byte| *byte == b',') {
        let folder = word.strip_prefix(b"dir=").filter(|path| !path.is_empty());
        match (word, folder) {
            (b"tag", _) => choice.tag = true,
            (b"timestamp", _) => choice.timestamp = true,
            (b"nocopy", _) => choice.nocopy = true,
            (_, Some(path)) => choice.folder = Some(OsString::from_vec(path.to_vec()).into()),
            _ => return Err("a list of tag, timestamp, dir=FOLDER, nocopy".to_owned()),
        }
    }
    if choice.nocopy && choice.folder.is_none() {
        return Err("nocopy needs dir=FOLDER in the same list".to_owned());
    }
    Ok(choice)
}

fn output_parser() -> impl TypedValueParser<Value = OutputChoice> {
    OsStringValueParser::new().try_map(output_list)
}

fn input(text: &str) -> Result<InputChoice, String> {
    match text {
        "none" => Ok(InputChoice::None),
        rank => rank
            .parse()
            .map(InputChoice::Rank)
            .map_err(|_| "the number of a rank, or none".to_owned()),
    }
}
