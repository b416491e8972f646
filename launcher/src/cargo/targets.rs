//! The programs of a workspace, by what `cargo metadata` prints, and which one is meant. Pure.

use std::fmt;
use std::path::Path;

use serde_json::Value;

use super::{CargoError, Selection};

/// What can be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bin,
    Example,
}

impl Kind {
    fn of(target: &Value) -> Option<Self> {
        target["kind"].as_array()?.iter().find_map(|kind| match kind.as_str() {
            Some("bin") => Some(Self::Bin),
            Some("example") => Some(Self::Example),
            _ => None,
        })
    }

    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Bin => "--bin",
            Self::Example => "--example",
        }
    }
}

/// A program of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) package: String,
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Whether its package names it as the one to run.
    is_default: bool,
    /// Whether the package is the one that the current folder lies in.
    is_here: bool,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} -p {}", self.kind.option(), self.name, self.package)
    }
}

impl Target {
    /// Every program in `metadata`, as seen from `folder`; `None` if it is not cargo's metadata.
    pub(super) fn all_of(metadata: &Value, folder: &Path) -> Option<Vec<Self>> {
        let packages = metadata["packages"].as_array()?;
        let home = |package: &Value| {
            Some(Path::new(package["manifest_path"].as_str()?).parent()?.to_owned())
        };
        let around = packages.iter().filter_map(home).filter(|home| folder.starts_with(home));
        let here = around.max_by_key(|home| home.components().count());
        let mut targets = Vec::new();
        for package in packages {
            let is_here = here.is_some() && home(package) == here;
            for target in package["targets"].as_array()? {
                let name = target["name"].as_str()?.to_owned();
                let is_default = package["default_run"] == *name;
                let package = package["name"].as_str()?.to_owned();
                let found =
                    Kind::of(target).map(|kind| Self { package, kind, name, is_default, is_here });
                targets.extend(found);
            }
        }
        Some(targets)
    }
}

/// The one that `selection` means.
pub(super) fn choose(targets: &[Target], selection: &Selection) -> Result<Target, CargoError> {
    let (kind, name) = match (&selection.bin, &selection.example) {
        (_, Some(name)) => (Kind::Example, Some(name)),
        (name, None) => (Kind::Bin, name.as_ref()),
    };
    let mut known: Vec<&Target> = targets.iter().collect();
    if let Some(asked) = &selection.package {
        known.retain(|target| target.package == *asked);
        if known.is_empty() {
            let known = listed(targets.iter().map(|target| target.package.clone()));
            return Err(CargoError::NoPackage { asked: asked.clone(), known });
        }
    }
    known.retain(|target| target.kind == kind);
    let mut meant = known.clone();
    meant.retain(|target| name.is_none_or(|name| target.name == *name));
    narrow(&mut meant, |target| target.is_here);
    // Across packages, one that names a default says nothing about the others.
    let in_one_package = meant.windows(2).all(|pair| pair[0].package == pair[1].package);
    if name.is_none() && in_one_package {
        narrow(&mut meant, |target| target.is_default);
    }
    match meant.as_slice() {
        [only] => Ok((*only).clone()),
        [] => {
            let asked = match name {
                Some(name) => format!("{} {name}", &kind.option()[2..]),
                None => "program to run".to_owned(),
            };
            Err(CargoError::NoTarget {
                asked,
                known: listed(known.iter().map(ToString::to_string)),
            })
        }
        several => {
            let candidates = listed(several.iter().map(ToString::to_string));
            Err(CargoError::Ambiguous { candidates })
        }
    }
}

/// Keeps those that are `closer`, if there are any.
fn narrow(targets: &mut Vec<&Target>, closer: fn(&Target) -> bool) {
    if targets.iter().any(|target| closer(target)) {
        targets.retain(|target| closer(target));
    }
}

/// The words, sorted, each once.
fn listed(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = words.collect();
    words.sort_unstable();
    words.dedup();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
