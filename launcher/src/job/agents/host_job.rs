//! A job as it is told to agents: [`JobSpec`] to [`HostJob`] and back. The ranks on all hosts get the variables of
//! `mpjrun`'s environment, except those that belong to a host or a session.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clap::ValueEnum;
use transport_lapi::TaskId;
use transport_lapi::bootstrap::control::agents::{HostJob, HostProgram, Order};
use transport_lapi::bootstrap::control::line::{Encoded, LineError, Secret};
use transport_lapi::config::{self, BackendChoice, Keyword};

use super::copies::Copies;
use super::starter;
use crate::LaunchError;
use crate::host::binding::{BindTo, Binding, MapBy};
use crate::io::stdin::InputChoice;
use crate::job::hosts::Hosts;
use crate::job::spawn;
use crate::job::spec::{App, Export, JobSpec, OnFailure};

/// Variables that are not passed on to other hosts.
const OF_HOST: &[&str] = &[
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOSTNAME",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "TERM",
    "TMPDIR",
    "TTY",
    "XAUTHORITY",
    "_",
];
/// Prefixes of such variables.
const OF_SESSION: &[&str] =
    &["SSH_", "XDG_", "SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID", "SLURMD_"];

/// Returns what to tell agents, and the files to send them.
///
/// # Errors
/// [`LaunchError`] for variables and settings that ranks cannot have, for programs that cannot be copied, and for a job
/// that is too long to be told.
pub(in crate::job) fn of_hosts(
    spec: &JobSpec,
    hosts: &Hosts,
) -> Result<(Rc<HostJob>, Copies), LaunchError> {
    let system = |action| move |source| LaunchError::System { action, source };
    let folder = std::env::current_dir().map_err(system("find the current folder"))?;
    let secret = Secret::random().map_err(system("make a secret for the job"))?;
    let mpjrun = starter::program().map_err(system("find the path of mpjrun"))?;
    let path = config::inherited("PATH").unwrap_or_default();
    let program = |app: &App| {
        // The agent would look for variables without a value, and for programs, in its own environment.
        let (variables, _) = spawn::environment(spec, app)?;
        let search = app
            .path
            .clone()
            .map(|first| [first.as_os_str(), ":".as_ref(), path.as_os_str()].join(OsStr::new("")));
        Ok(HostProgram {
            ranks: app.ranks as u64,
            program: bytes(&app.program),
            args: app.args.iter().map(|arg| bytes(arg)).collect(),
            exports: variables.iter().map(|(name, value)| (bytes(name), bytes(value))).collect(),
            wdir: app.wdir.as_ref().map(|folder| bytes(folder.as_os_str())),
            path: bytes(search.as_ref().unwrap_or(&path)),
            copy: None,
        })
    };
    let programs = spec.apps.iter().map(program).collect::<Result<_, LaunchError>>()?;
    let exports = config::inherited_names().filter(|name| is_passed_on(name));
    let exports = exports.filter_map(|name| Some((bytes(&name), bytes(&config::given(&name)?))));
    let Binding { bind_to, map_by, report } = spec.binding;
    let mut job = HostJob {
        job: spawn::job_name(),
        folder: bytes(folder.as_os_str()),
        programs,
        copies: Vec::new(),
        exports: exports.collect(),
        contexts: spec.contexts as u64,
        backend: spec.backend.map(|backend| backend.word().to_owned()),
        bind_to: bind_to.as_ref().and_then(word),
        map_by: word(&map_by).unwrap_or_default(),
        reports_bindings: report,
        goes_on: spec.on_failure == OnFailure::Keep,
        reader: match spec.input {
            InputChoice::Rank(rank) => Some(rank as TaskId),
            InputChoice::None => None,
        },
        hosts: hosts.names.clone(),
        host_of: hosts.of_rank.iter().map(|host| *host as u32).collect(),
        mpjrun: bytes(mpjrun.as_os_str()),
        fanout: hosts.fanout as u32,
        starter: hosts.starter.clone(),
        secret_of_ranks: secret.of_ranks(),
        silence: hosts.silence.as_millis() as u64,
        looks: spec.vigilance.interval.as_micros() as u64,
        finds_deadlocks: spec.vigilance.ends_deadlocks,
        finds_stalls: spec.vigilance.stall.is_some(),
        records: spec.trace.as_ref().map(|choice| choice.memory),
        newest: spec.trace.as_ref().is_some_and(|choice| choice.newest),
        details: spec.trace.as_ref().is_some_and(|choice| choice.details),
    };
    let copies = if spec.copies { Copies::of(spec, &mut job)? } else { Copies::default() };
    let job = Rc::new(job);
    match Encoded::of(&Order::Prepare(Rc::clone(&job))) {
        Err(LineError::TooLong { len }) => Err(LaunchError::TooLong { len }),
        _ => Ok((job, copies)),
    }
}

/// Returns the program that an agent, or a rank that spawns it, has told.
pub(in crate::job) fn app_of(program: &HostProgram) -> App {
    App {
        ranks: program.ranks as usize,
        program: text(&program.program),
        args: program.args.iter().map(|arg| text(arg)).collect(),
        exports: program.exports.iter().map(export).collect(),
        wdir: program.wdir.as_ref().map(|folder| PathBuf::from(text(folder))),
        path: Some(text(&program.path)).filter(|path| !path.is_empty()),
        copy: None,
    }
}

/// Returns the job that an agent was told, whose copies are at these paths. What does not fit its limits is left out.
pub(in crate::job) fn spec_of(job: &HostJob, copies: &[PathBuf]) -> JobSpec {
    let app = |program: &HostProgram| App {
        copy: program.copy.and_then(|copy| copies.get(copy as usize).cloned()),
        ..app_of(program)
    };
    let bind_to = job.bind_to.as_ref().and_then(|word| BindTo::from_str(word, false).ok());
    let map_by = MapBy::from_str(&job.map_by, false).unwrap_or(MapBy::Core);
    let input = job.reader.map_or(InputChoice::None, |rank| InputChoice::Rank(rank as usize));
    JobSpec {
        exports: job.exports.iter().map(export).collect(),
        contexts: job.contexts as usize,
        backend: job.backend.as_ref().and_then(|word| BackendChoice::from_word(word)),
        input,
        binding: Binding { bind_to, map_by, report: job.reports_bindings },
        on_failure: if job.goes_on { OnFailure::Keep } else { OnFailure::Kill },
        hosts: Some(Box::new(Hosts {
            names: job.hosts.clone(),
            of_rank: job.host_of.iter().map(|host| *host as usize).collect(),
            starter: job.starter.clone(),
            fanout: job.fanout as usize,
            silence: Duration::from_millis(job.silence),
        })),
        ..JobSpec::new(job.programs.iter().map(app).collect())
    }
}

fn is_passed_on(name: &OsStr) -> bool {
    let is_known =
        |name: &str| OF_HOST.contains(&name) || OF_SESSION.iter().any(|it| name.starts_with(it));
    !name.to_str().is_some_and(|name| is_known(name) || config::JOB_VARIABLES.contains(&name))
}

fn word<T: ValueEnum>(value: &T) -> Option<String> {
    Some(value.to_possible_value()?.get_name().to_owned())
}

fn export((name, value): &(Vec<u8>, Vec<u8>)) -> Export {
    Export { name: text(name), value: Some(text(value)) }
}

pub(super) fn bytes(text: &OsStr) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// A text of an agent's job, whatever its bytes.
pub(in crate::job) fn text(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use transport_lapi::bootstrap::control::agents::Starter;
    use transport_lapi::bootstrap::control::line::MAX_FRAME;

    use super::*;

    #[test]
    fn a_job_that_is_too_long_to_be_told_is_refused() {
        let mut app = App::new(1, "true");
        let (starter, silence) = (Starter::Ssh, Duration::from_secs(20));
        let names = vec!["a".to_owned()];
        let hosts = Hosts { names, of_rank: vec![0], starter, fanout: 16, silence };
        of_hosts(&JobSpec::new(vec![app.clone()]), &hosts).expect("it is short");
        app.args = vec!["x".repeat(MAX_FRAME).into()];
        let error = of_hosts(&JobSpec::new(vec![app]), &hosts).expect_err("too long");
        let said = error.to_string();
        assert!(
            said.ends_with("the agents of hosts take 67108864: pass long data in files"),
            "{said}"
        );
        assert_eq!(error.exit_code(), 2);
    }
}
