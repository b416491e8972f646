//! This program as cargo's runner, and the runners that a user's own configuration may name. Cargo would use
//! one of the two and say nothing of the other, so there must be only ours.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

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
    let is_cfg = |key: &String| key.starts_with("cfg(");
    for file in files() {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        // Of what is wrong with it cargo tells.
        let keys = text.parse().map_or(Vec::new(), |table| with_runners(&table));
        let cfgs = if keys.iter().any(is_cfg) { facts(triple)? } else { String::new() };
        let facts: Vec<&str> = cfgs.lines().collect();
        let is_ours = |key: &String| key == triple || (is_cfg(key) && holds(key, &facts));
        if let Some(key) = keys.into_iter().find(is_ours) {
            let place = format!("target.'{key}' in {}", file.display());
            return Err(CargoError::Runner { place });
        }
    }
    Ok(())
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

/// What the compiler says of a target, one fact a line.
fn facts(triple: &str) -> Result<String, CargoError> {
    let answer = succeeded("version", rustc().args(["--print", "cfg", "--target", triple]))?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Whether a condition holds: `cfg`, `all`, `any` or `not` of others, or one of these facts.
fn holds(condition: &str, facts: &[&str]) -> bool {
    let condition = condition.trim();
    let inner = |name| {
        let list = condition.strip_prefix(name)?.trim_start().strip_prefix('(')?;
        list.strip_suffix(')').map(parts)
    };
    let holds = |part: &&str| holds(part, facts);
    if let Some(parts) = inner("all").or_else(|| inner("cfg")) {
        parts.iter().all(|part| holds(part))
    } else if let Some(parts) = inner("any") {
        parts.iter().any(|part| holds(part))
    } else if let Some(parts) = inner("not") {
        !parts.iter().all(|part| holds(part))
    } else {
        let fact: String = condition.split_whitespace().collect();
        facts.contains(&fact.as_str())
    }
}

/// The conditions of a list, without those inside of them.
fn parts(list: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = list.split(|char| {
        depth += match char {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth == 0 && char == ','
    });
    parts.filter(|part| !part.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_cargo() {
        let facts = ["unix", "target_os=\"linux\"", "target_arch=\"x86_64\""];
        for condition in [
            "cfg(unix)",
            "cfg(all())",
            "cfg(target_os = \"linux\")",
            "cfg(all(unix, any(windows, target_os=\"linux\"), not(windows)))",
            "cfg(not(all(unix, windows)))",
        ] {
            assert!(holds(condition, &facts), "{condition}");
        }
        for condition in
            ["cfg(windows)", "cfg(any())", "cfg(not(unix))", "cfg(all(unix, any(a, b)))"]
        {
            assert!(!holds(condition, &facts), "{condition}");
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
