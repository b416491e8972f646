//! Makes this program cargo's runner, and refuses every other runner that the user names.
//!
//! This program is the runner for the target that cargo builds for, and for the condition `cfg(all())`, which always
//! holds: the name of a target that is found wrongly, for example in words of the program, must not turn the job into
//! one process. Of several runners cargo would use only one, or complain in words that name neither cause nor remedy.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};
use transport_lapi::config;

use super::{AS_MPJRUN, CargoError, not_started, succeeded};

/// The options of cargo that make this program the runner, with these options of a job, beside the user's own words.
pub(super) fn settings(job: &[OsString], cargo: &[OsString]) -> Result<Vec<String>, CargoError> {
    let target = refuse_others(cargo)?;
    let program = std::env::current_exe().map_err(not_started("cargo-mpj"))?.into_os_string();
    let words = [&[program, AS_MPJRUN.into()], job].concat();
    let words = words.into_iter().map(|word| word.into_string().map(Value::String));
    let words = words.collect::<Result<Vec<_>, OsString>>().map_err(CargoError::NoText)?;
    let runner = Value::Array(words);
    let setting = |target| format!("--config=target.'{target}'.runner={runner}");
    Ok([&target, "cfg(all())"].map(setting).to_vec())
}

/// Returns the target that cargo builds for, with these words of the user. Fails if a variable, a word or a file names
/// a runner for it, or for any condition.
pub(super) fn refuse_others(cargo: &[OsString]) -> Result<String, CargoError> {
    let tables = tables(cargo);
    let variable = || Some(config::inherited("CARGO_BUILD_TARGET")?.to_string_lossy().into_owned());
    let of_table = || tables.iter().find_map(|(table, _)| build_target(table));
    let named = values(cargo, "--target").next().or_else(variable).or_else(of_table);
    let target = named.filter(|target| target != "host-tuple").map_or_else(host, Ok)?;
    // A target may be described by a file.
    let name = target.strip_suffix(".json").and_then(|path| Path::new(path).file_name()?.to_str());
    let target = name.unwrap_or(&target).to_owned();
    let variable =
        format!("CARGO_TARGET_{}_RUNNER", target.to_uppercase().replace(['-', '.'], "_"));
    let is_set = config::inherited(&variable).is_some();
    let of_table = |(table, place): &(Table, String)| {
        Some(format!("target.{} in {place}", with_runner(table, &target)?))
    };
    let place = is_set.then_some(variable).or_else(|| tables.iter().find_map(of_table));
    place.map_or(Ok(target), |place| Err(CargoError::Runner { place }))
}

/// The values of an option among words of cargo.
fn values(cargo: &[OsString], option: &str) -> impl Iterator<Item = String> {
    let value = move |(at, word): (usize, &OsString)| {
        let word = word.to_string_lossy();
        match word.strip_prefix(option)? {
            "" => Some(cargo.get(at + 1)?.to_string_lossy().into_owned()),
            rest => rest.strip_prefix('=').map(str::to_owned),
        }
    };
    cargo.iter().enumerate().filter_map(value)
}

/// The target that the compiler builds for by itself.
fn host() -> Result<String, CargoError> {
    let rustc = config::inherited("RUSTC").unwrap_or_else(|| "rustc".into());
    let answer = succeeded("rustc -vV", Command::new(rustc).arg("-vV"))?;
    let answer = String::from_utf8_lossy(&answer);
    let host = answer.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or(CargoError::NoHost)
}

/// Cargo's configuration for these words in the current folder, and where it stands; earlier tables override later
/// ones. Cargo reports the errors in them.
fn tables(cargo: &[OsString]) -> Vec<(Table, String)> {
    let words: Vec<String> = values(cargo, "--config").collect();
    let of_word = |word: String| {
        let table = fs::read_to_string(&word).as_ref().unwrap_or(&word).parse().ok()?;
        Some((table, format!("--config {word}")))
    };
    let here = std::env::current_dir().unwrap_or_default();
    let home = config::inherited("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let home = config::inherited("CARGO_HOME").map(PathBuf::from).or(home);
    let folders = here.ancestors().map(|folder| folder.join(".cargo")).chain(home);
    let files = folders.flat_map(|folder| ["config", "config.toml"].map(|name| folder.join(name)));
    let of_file = |file: PathBuf| {
        Some((fs::read_to_string(&file).ok()?.parse().ok()?, file.display().to_string()))
    };
    words.into_iter().rev().filter_map(of_word).chain(files.filter_map(of_file)).collect()
}

/// The target in a table of cargo, which may be a list.
fn build_target(table: &Table) -> Option<String> {
    let target = table.get("build")?.get("target")?;
    target.as_str().or_else(|| target.get(0)?.as_str()).map(str::to_owned)
}

/// The entry of a table with a runner for `target` or a condition.
fn with_runner<'a>(table: &'a Table, target: &str) -> Option<&'a str> {
    let is_other = |(name, entry): &(&String, &Value)| {
        (*name == target || name.starts_with("cfg(")) && entry.get("runner").is_some()
    };
    let (name, _) = table.get("target")?.as_table()?.iter().find(is_other)?;
    Some(name)
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
        assert_eq!(["t", "u", "v"].map(|it| with_runner(&table, it)), [Some("t"), None, None]);
        assert!(build_target(&Table::new()).is_none() && with_runner(&Table::new(), "t").is_none());
        let table: Table =
            "build.target = ['v']\ntarget.'cfg(unix)'.runner = ['a']".parse().expect("likewise");
        assert_eq!(build_target(&table).as_deref(), Some("v"));
        assert_eq!(with_runner(&table, "t"), Some("cfg(unix)"));
    }

    #[test]
    fn values_of_options_of_cargo_are_found() {
        let of = |words: &[&str]| -> Vec<String> {
            values(&words.iter().map(OsString::from).collect::<Vec<_>>(), "--target").collect()
        };
        assert_eq!(of(&["--bin", "x", "--target", "t", "--target=u", "-q"]), ["t", "u"]);
        assert!(of(&["--target-dir", "t", "--target-dir=d", "--target"]).is_empty());
    }

    #[test]
    fn a_runner_is_a_list_of_words() {
        let job = ["-x".into(), "A='b' \"c\"".into()];
        let settings = settings(&job, &["--target=a.b".into()]).expect("text");
        for (setting, target) in settings.iter().zip(["a.b", "cfg(all())"]) {
            let table: Table = setting["--config=".len()..].parse().expect("it is well-formed");
            let runner = table["target"][target]["runner"].as_array().expect("a list");
            let runner: Vec<&str> = runner.iter().filter_map(Value::as_str).collect();
            assert_eq!(runner[1..], ["as-mpjrun", "-x", "A='b' \"c\""]);
        }
    }
}
