//! This program as cargo's runner, and the runners that a user's own configuration may name. Cargo would use
//! one of the two and say nothing of the other, so there must be only ours.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use cargo_platform::{Cfg, Platform};
use toml::{Table, Value};
use transport_lapi::config;

use super::{AS_MPJRUN, CargoError, succeeded};

/// The settings that make this program, with these options of a job, the runner for the target `triple`, and
/// for any other one, which cargo's configuration may name.
pub(super) fn settings(triple: &str, job: &[OsString]) -> Result<[String; 2], CargoError> {
    let program = std::env::current_exe().map_err(CargoError::Start)?.into_os_string();
    let words = [&[program, AS_MPJRUN.into()], job].concat();
    let words = words.into_iter().map(|word| word.into_string().map(Value::String));
    let words = words.collect::<Result<Vec<_>, OsString>>().map_err(CargoError::NoText)?;
    let runner = Value::Array(words);
    Ok([triple, "cfg(all())"].map(|target| format!("target.'{target}'.runner={runner}")))
}

/// The target that cargo builds for where none is named.
pub(super) fn host() -> Result<String, CargoError> {
    if let Some(target) = config::inherited("CARGO_BUILD_TARGET") {
        return Ok(target.to_string_lossy().into_owned());
    }
    let answer = String::from_utf8(succeeded("version", rustc().arg("-vV"))?);
    let host =
        answer.iter().flat_map(|text| text.lines()).find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or(CargoError::Answer { step: "version" })
}

fn rustc() -> Command {
    Command::new(config::inherited("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Refuses if a variable or a file of cargo's configuration names a runner for the target `triple`.
pub(super) fn refuse_others(triple: &str) -> Result<(), CargoError> {
    let variable =
        format!("CARGO_TARGET_{}_RUNNER", triple.to_uppercase().replace(['-', '.'], "_"));
    if config::inherited(&variable).is_some() {
        return Err(CargoError::Runner { place: variable });
    }
    for file in files() {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        // Of what is wrong with it cargo tells.
        let keys = text.parse().map_or(Vec::new(), |table| with_runners(&table));
        let is_condition = |key: &String| key.starts_with("cfg(");
        let facts = if keys.iter().any(is_condition) { facts(triple)? } else { Vec::new() };
        if let Some(key) = keys.into_iter().find(|key| is_for(key, triple, &facts)) {
            let place = format!("target.'{key}' in {}", file.display());
            return Err(CargoError::Runner { place });
        }
    }
    Ok(())
}

/// Whether a key of the configuration, a target or a condition, is for the target `triple` with these `facts`.
fn is_for(key: &str, triple: &str, facts: &[Cfg]) -> bool {
    key.parse().is_ok_and(|platform: Platform| platform.matches(triple, facts))
}

/// The files of cargo's configuration, as seen from the current folder.
fn files() -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let home = config::inherited("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let home = config::inherited("CARGO_HOME").map(PathBuf::from).or(home);
    let folders = here.ancestors().map(|folder| folder.join(".cargo")).chain(home);
    folders.flat_map(|folder| ["config.toml", "config"].map(|name| folder.join(name))).collect()
}

/// The targets for which a file of cargo's configuration names a runner.
fn with_runners(configuration: &Table) -> Vec<String> {
    let targets = configuration.get("target").and_then(Value::as_table);
    let with_runner = |(key, value): (&String, &Value)| value.get("runner").map(|_| key.clone());
    targets.into_iter().flatten().filter_map(with_runner).collect()
}

/// What the compiler says of a target.
fn facts(triple: &str) -> Result<Vec<Cfg>, CargoError> {
    let answer = succeeded("version", rustc().args(["--print", "cfg", "--target", triple]))?;
    Ok(String::from_utf8_lossy(&answer).lines().flat_map(str::parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_target_or_a_condition() {
        let facts = ["unix", "target_os=\"linux\""].map(|fact| fact.parse().expect("a fact"));
        for key in ["t", "cfg(unix)", "cfg(all(target_os = \"linux\", not(windows)))"] {
            assert!(is_for(key, "t", &facts), "{key}");
        }
        for key in ["u", "cfg(windows)", "cfg(target_os = \"none\")", "cfg("] {
            assert!(!is_for(key, "t", &facts), "{key}");
        }
    }

    #[test]
    fn runners_are_found_in_a_configuration() {
        let text = "[target.t]\nrunner = 'a b'\nrustflags = []\n[target.'cfg(unix)']\nrunner = ['a']\n\
                    [target.u]\nlinker = 'l'\n[build]\njobs = 2\n";
        let mut found = with_runners(&text.parse().expect("it is well-formed"));
        found.sort_unstable();
        assert_eq!(found, ["cfg(unix)", "t"]);
        assert_eq!(with_runners(&Table::new()), [""; 0]);
    }

    #[test]
    fn a_runner_is_a_list_of_words() {
        let words = ["-x".into(), "A='b' \"c\"".into()];
        let [setting, _] = settings("t", &words).expect("text");
        let setting: Table = setting.parse().expect("it is well-formed");
        let runner = setting["target"]["t"]["runner"].as_array().expect("a list");
        let runner: Vec<&str> = runner.iter().filter_map(Value::as_str).collect();
        assert_eq!(runner[1..], ["as-mpjrun", "-x", "A='b' \"c\""]);
    }
}
