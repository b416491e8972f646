//! `mpiexec` and `mpirun`: what `mpjrun` does otherwise when it is called by a name of other launchers. Test suites
//! compare all that a launcher prints with what they expect, so a job that succeeds prints only its own output: no notes
//! about the command line, and none about a job that seems to stand still. Pure; called by the parser of `mpjrun`.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use super::{Request, values};

/// The names.
const NAMES: [&str; 2] = ["mpiexec", "mpirun"];
/// The variable that says after how many seconds a job ends, as `--timeout` does.
pub(super) const TIMEOUT: &str = "MPIEXEC_TIMEOUT";
/// Longer than any job lasts.
const NEVER: Duration = Duration::from_secs(1 << 31);

/// Whether a program that is called like this is one of them.
pub(super) fn is_name(called: &OsStr) -> bool {
    Path::new(called).file_name().is_some_and(|called| NAMES.iter().any(|name| called == *name))
}

/// Adapts what `mpjrun` is asked for. `limit` is the value of [`TIMEOUT`]; `--timeout` overrides it.
///
/// # Errors
/// If the limit is not a number of seconds.
pub(super) fn adapted(mut request: Request, limit: Option<OsString>) -> Result<Request, String> {
    let limit = limit.map(|limit| {
        let text = limit.to_string_lossy();
        values::seconds(&text).map_err(|legal| format!("{TIMEOUT}={text}: it must be {legal}"))
    });
    let limit = limit.transpose()?;
    if let Request::Run(spec) | Request::DryRun(spec) = &mut request {
        spec.timeout = spec.timeout.or(limit);
        spec.notes.clear();
        spec.vigilance.standstill = NEVER;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{App, JobSpec};

    fn job() -> JobSpec {
        JobSpec { notes: vec!["a note".into()], ..JobSpec::new(vec![App::new(2, "p")]) }
    }

    #[test]
    fn the_names_count_without_their_folder() {
        assert!(
            ["mpiexec", "mpirun", "/opt/a b/bin/mpiexec"].iter().all(|it| is_name(it.as_ref()))
        );
        assert!(
            !["mpjrun", "mpiexec.bak", "mpiexec/mpjrun", ""].iter().any(|it| is_name(it.as_ref()))
        );
    }

    #[test]
    fn nothing_is_noted() {
        let Ok(Request::Run(spec)) = adapted(Request::Run(job()), None) else { panic!("a job") };
        assert_eq!((spec.notes.len(), spec.vigilance.standstill, spec.timeout), (0, NEVER, None));
    }

    #[test]
    fn the_variable_limits_the_job_unless_an_option_does() {
        let limit = |spec, limit: &str| match adapted(Request::Run(spec), Some(limit.into())) {
            Ok(Request::Run(spec)) => spec.timeout,
            other => panic!("{other:?}"),
        };
        let two = Some(Duration::from_secs(2));
        assert_eq!(limit(job(), "2"), two);
        assert_eq!(limit(JobSpec { timeout: two, ..job() }, "9"), two);
        for wrong in ["soon", "0", "-1", "1h"] {
            let text = adapted(Request::Run(job()), Some(wrong.into())).expect_err(wrong);
            assert!(text.starts_with(&format!("MPIEXEC_TIMEOUT={wrong}: it must be a number")));
        }
    }
}
