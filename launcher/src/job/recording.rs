//! What is told at the end of a job whose ranks have recorded their calls: the file of `--trace`, `--profile`, and the last
//! calls of a job that finds mistakes and has failed.

use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;

use super::agents::Fetched;
use super::{Job, JobSpec};
use crate::LaunchError;
use crate::host::machine::host_name;
use crate::io::destination::Destination;
use crate::profile::{Profile, ProfileChoice};
use crate::report;
use crate::trace::{Memories, collect_hosts};

/// The records of a job, and what becomes of them.
#[derive(Debug)]
pub(super) struct Recording {
    memories: Rc<Memories>,
    profile: Option<ProfileOutput>,
}

impl Recording {
    /// Begins to record a job, if that is asked for. Files are opened now, so that a mistake in a name costs no job.
    ///
    /// # Errors
    /// [`LaunchError::Trace`] and [`LaunchError::Profile`].
    pub(super) fn begin(spec: &JobSpec) -> Result<Option<Self>, LaunchError> {
        let memories = match &spec.trace {
            Some(choice) => Memories::begin(choice)?,
            None if spec.last_calls && spec.hosts.is_none() => Memories::of_last_calls(),
            None => return Ok(None),
        };
        let profile = spec.profile.as_ref().map(|profile| ProfileOutput::begin(profile, spec));
        Ok(Some(Self { memories: Rc::new(memories), profile: profile.transpose()? }))
    }

    /// Where ranks record.
    pub(super) fn memories(&self) -> Rc<Memories> {
        Rc::clone(&self.memories)
    }
}

/// Where the profile of a job goes, beside standard error.
#[derive(Debug)]
struct ProfileOutput {
    /// What was run, for the title of the page.
    command: String,
    page: Option<Destination>,
}

impl ProfileOutput {
    fn begin(choice: &ProfileChoice, spec: &JobSpec) -> Result<Self, LaunchError> {
        let open = |path: &PathBuf| {
            Destination::open(path)
                .map_err(|source| LaunchError::Profile { path: path.clone(), source })
        };
        Ok(Self { command: command(spec), page: choice.page.as_ref().map(open).transpose()? })
    }

    /// Writes the page, if there is one, and returns the text for standard error.
    fn write(&self, profile: &Profile) -> String {
        let mut text = profile.text();
        if let Some(page) = &self.page {
            let path = page.path().display();
            match page.replace(|out| out.write_all(profile.page(&self.command).as_bytes())) {
                Ok(()) => text += &format!("mpjrun: {path} has the whole profile\n"),
                Err(error) => text += &format!("mpjrun: cannot write {path}: {error}\n"),
            }
        }
        text
    }
}

/// The programs of a job with their arguments.
fn command(spec: &JobSpec) -> String {
    let programs = spec.apps.iter().map(|app| {
        let words = std::iter::once(&app.program).chain(&app.args);
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    });
    programs.collect::<Vec<_>>().join(" : ")
}

impl Job {
    /// Writes and prints what follows from the records of the ranks, if they have recorded. Their last calls are for the
    /// report.
    pub(super) fn tell_records(&mut self) {
        let Some(Recording { memories, profile }) = self.recording.take() else { return };
        let times = memories.end();
        if memories.keep_last() {
            if self.verdict.is_some() {
                let collected = memories.collect(times, &host_name());
                self.last_calls = report::last_calls(&collected.trace);
            }
            return;
        }
        let collected = match self.ranks.fetch_records(&self.signals) {
            None => memories.collect(times, &host_name()),
            Some(Fetched { hosts, missing }) => {
                for (host, why) in missing {
                    let why = report::printable_line(&why);
                    let text = format!("mpjrun: the records of host {host} are missing: {why}\n");
                    self.printer.say(&text);
                }
                collect_hosts(times, hosts)
            }
        };
        self.printer.say(&memories.finish(&collected));
        if let Some(output) = profile {
            self.printer.say(&output.write(&Profile::of(&collected)));
        }
    }
}
