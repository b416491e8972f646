//! Finding jobs in `/proc`. Processes that end meanwhile, or that do not let themselves be looked at, are
//! passed over.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use transport_lapi::adapters::shm::SEGMENT_NAME;
use transport_lapi::adapters::{MAX_CONTEXTS, MAX_TASKS, segment_bytes};

use super::JobsError;
use super::name::JobName;

/// A job that was running when it was looked for.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) name: JobName,
    /// Its segment, as a file of the launcher's.
    segment: PathBuf,
}

impl Job {
    /// Its command line; empty if the launcher is gone.
    pub(super) fn command(&self) -> String {
        let words = fs::read(process(self.name.launcher).join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).trim_end_matches('\0').replace('\0', " ")
    }

    /// How many ranks it has: segments of jobs with other numbers of ranks, or of contexts, differ in length.
    pub(super) fn ranks(&self) -> Option<usize> {
        let bytes = fs::metadata(&self.segment).ok()?.len();
        let is_it =
            |ranks, contexts| segment_bytes(ranks, contexts).is_ok_and(|size| size as u64 == bytes);
        (1..=MAX_TASKS).find(|&ranks| (1..=MAX_CONTEXTS).any(|contexts| is_it(ranks, contexts)))
    }

    /// Opens its segment.
    pub(super) fn open(&self) -> Result<File, JobsError> {
        let opened = File::options().read(true).write(true).open(&self.segment);
        opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => JobsError::NotRunning { word: self.name.to_string() },
            _ => JobsError::System { action: "open the job's segment", source: error },
        })
    }
}

/// All jobs of this user.
pub(super) fn all() -> Result<Vec<Job>, JobsError> {
    let failed = |source| JobsError::System { action: "list processes", source };
    let entries = fs::read_dir("/proc").map_err(failed)?.flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.filter(|&pid| owner(pid) == Some(user())).filter_map(of_launcher).collect())
}

/// The job that `word` names: its name, or the number of its launcher's process.
pub(super) fn one(word: &str) -> Result<Job, JobsError> {
    let no_name = || JobsError::NoName { word: word.to_owned() };
    let not_running = || JobsError::NotRunning { word: word.to_owned() };
    let name: Option<JobName> = word.parse().ok();
    let pid = name.map_or_else(|| number(word).ok_or_else(no_name), |name| Ok(name.launcher))?;
    match owner(pid) {
        None => return Err(not_running()),
        Some(uid) if uid != user() => return Err(JobsError::OtherUser { pid, uid }),
        Some(_) => {}
    }
    match (of_launcher(pid), name) {
        (Some(job), Some(name)) if job.name != name => Err(not_running()),
        (Some(job), _) => Ok(job),
        (None, Some(_)) => Err(not_running()),
        (None, None) => Err(JobsError::NoLauncher { pid }),
    }
}

/// A number of a process, written as one.
fn number(word: &str) -> Option<u32> {
    word.parse().ok().filter(|number: &u32| *number > 0 && number.to_string() == word)
}

fn user() -> u32 {
    geteuid().as_raw()
}

fn process(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// Whether there is such a process.
pub(super) fn runs(pid: u32) -> bool {
    owner(pid).is_some()
}

/// Whose process that is, if it is there.
fn owner(pid: u32) -> Option<u32> {
    fs::metadata(process(pid)).ok().map(|metadata| metadata.uid())
}

/// The job whose launcher this process is. Ranks hold the segment too, but its name has another number.
fn of_launcher(pid: u32) -> Option<Job> {
    let descriptors = fs::read_dir(process(pid).join("fd")).ok()?.flatten();
    let mut jobs = descriptors.filter_map(|descriptor| {
        let segment = descriptor.path();
        let name = job_name(&fs::read_link(&segment).ok()?)?;
        Some(Job { name, segment })
    });
    jobs.find(|job| job.name.launcher == pid)
}

/// The job whose segment a link in `/proc/PID/fd` shows.
fn job_name(link: &Path) -> Option<JobName> {
    let name = link.to_str()?.strip_prefix("/memfd:")?.strip_prefix(SEGMENT_NAME)?;
    name.strip_suffix(" (deleted)")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn links_to_segments_name_their_jobs() {
        let link = |text: &str| job_name(Path::new(text));
        let name = JobName { launcher: 12, start: 0xab };
        assert_eq!(link("/memfd:mpj-job-12-ab (deleted)"), Some(name));
        assert_eq!(link("/memfd:mpj-job-12-ab"), None);
        assert_eq!(link("/memfd:mpj-tune (deleted)"), None);
        assert_eq!(link("/tmp/mpj-job-12-ab (deleted)"), None);
    }

    #[test]
    fn segments_of_different_jobs_differ_in_length() {
        let all = (1..=MAX_TASKS).flat_map(|ranks| (1..=MAX_CONTEXTS).map(move |n| (ranks, n)));
        let sizes = all.map(|(ranks, n)| segment_bytes(ranks, n).expect("legal numbers"));
        assert_eq!(sizes.collect::<BTreeSet<_>>().len(), MAX_TASKS * MAX_CONTEXTS);
    }
}
