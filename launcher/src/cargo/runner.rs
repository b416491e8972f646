//! Makes this program cargo's runner, and refuses runners in the user's own configuration.
//!
//! This program is the runner for the condition `cfg(all())`, which holds for every target. Cargo refuses a second
//! runner with a condition that holds. It silently prefers a runner for the name of the target, so that one is refused
//! here.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use toml::{Table, Value};
use transport_lapi::config;

use super::{AS_MPJRUN, CargoError, not_started, succeeded};

/// The setting for a program that runs without a runner: cargo refuses those of the user beside it.
pub(super) const NONE: &str = "target.'cfg(all())'.runner='env'";

/// The setting that makes this program the runner, with these options of a job.
pub(super) fn setting(job: &[OsString]) -> Result<String, CargoError> {
    let program = std::env::current_exe().map_err(not_started("cargo-mpj"))?.into_os_string();
    let words = [&[program, AS_MPJRUN.into()], job].concat();
    let words = words.into_iter().map(|word| word.into_string().map(Value::String));
    let words = words.collect::<Result<Vec<_>, OsString>>().map_err(CargoError::NoText)?;
    Ok(format!("target.'cfg(all())'.runner={}", Value::Array(words)))
}

/// Fails if a variable or a file of cargo's configuration names a runner for `target`, or if that is `None`, for the
/// target that cargo builds for.
pub(super) fn refuse_others(target: Option<String>) -> Result<(), CargoError> {
    let variable = || Some(config::inherited("CARGO_BUILD_TARGET")?.to_string_lossy().into_owned());
    let tables = tables();
    let of_file = || tables.iter().find_map(|(table, _)| build_target(table));
    let target = target.or_else(variable).or_else(of_file).map_or_else(host, Ok)?;
    let variable =
        format!("CARGO_TARGET_{}_RUNNER", target.to_uppercase().replace(['-', '.'], "_"));
    let is_set = config::inherited(&variable).is_some();
    let file = tables.iter().find(|(table, _)| has_runner(table, &target));
    let file = file.map(|(_, file)| format!("target.{target} in {}", file.display()));
    is_set.then_some(variable).or(file).map_or(Ok(()), |place| Err(CargoError::Runner { place }))
}

/// The target that the compiler builds for by itself.
fn host() -> Result<String, CargoError> {
    let rustc = config::inherited("RUSTC").unwrap_or_else(|| "rustc".into());
    let answer = succeeded("rustc -vV", Command::new(rustc).arg("-vV"))?;
    let answer = String::from_utf8_lossy(&answer);
    let host = answer.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or(CargoError::NoHost)
}

/// The files of cargo's configuration for the current folder; earlier ones override later ones. Cargo reports the
/// errors in them.
fn tables() -> Vec<(Table, PathBuf)> {
    let here = std::env::current_dir().unwrap_or_default();
    let home = config::inherited("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let home = config::inherited("CARGO_HOME").map(PathBuf::from).or(home);
    let folders = here.ancestors().map(|folder| folder.join(".cargo")).chain(home);
    let files = folders.flat_map(|folder| ["config", "config.toml"].map(|name| folder.join(name)));
    let table = |file: PathBuf| Some((fs::read_to_string(&file).ok()?.parse().ok()?, file));
    files.filter_map(table).collect()
}

fn build_target(table: &Table) -> Option<String> {
    table.get("build")?.get("target")?.as_str().map(str::to_owned)
}

fn has_runner(table: &Table, target: &str) -> bool {
    let target = table.get("target").and_then(|targets| targets.get(target));
    target.is_some_and(|target| target.get("runner").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_and_its_runner_are_found_in_a_configuration() {
        let text = "[target.t]\nrunner = 'a b'\nrustflags = []\n[target.u]\nlinker = 'l'\n\
                    [build]\ntarget = 'v'\n";
        let table: Table = text.parse().expect("it is well-formed");
        assert_eq!(build_target(&table).as_deref(), Some("v"));
        assert_eq!(["t", "u", "v"].map(|target| has_runner(&table, target)), [true, false, false]);
        assert!(build_target(&Table::new()).is_none() && !has_runner(&Table::new(), "t"));
    }

    #[test]
    fn a_runner_is_a_list_of_words() {
        let words = ["-x".into(), "A='b' \"c\"".into()];
        let setting: Table = setting(&words).expect("text").parse().expect("it is well-formed");
        let runner = setting["target"]["cfg(all())"]["runner"].as_array().expect("a list");
        let runner: Vec<&str> = runner.iter().filter_map(Value::as_str).collect();
        assert_eq!(runner[1..], ["as-mpjrun", "-x", "A='b' \"c\""]);
    }
}
