//! Manifests of the packages that are published: those without `publish`.

use super::source::{Finding, Source};

/// What a registry shows of a package, or needs.
const METADATA: &[&str] = &[
    "name",
    "description",
    "version",
    "edition",
    "rust-version",
    "license",
    "readme",
    "keywords",
    "categories",
    "include",
];
/// Files that lie beside the manifest, so that the package contains them.
const FILES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// A package that is published has all of the metadata, and both licences beside its manifest.
pub fn are_complete(manifest: &Source, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let package = manifest
        .text
        .split("\n[")
        .find(|section| section.trim_start_matches('[').starts_with("package]"));
    let keys: Vec<&str> = package
        .into_iter()
        .flat_map(str::lines)
        .filter_map(|line| line.split(['.', ' ']).next())
        .collect();
    if keys.is_empty() || keys.contains(&"publish") {
        return Vec::new();
    }
    let folder = manifest.path.trim_end_matches("Cargo.toml");
    let keys =
        METADATA.iter().filter(|key| !keys.contains(key)).map(|key| format!("{key} is missing"));
    let files = FILES.iter().filter(|file| !exists(&format!("{folder}{file}")));
    let files = files.map(|file| format!("{file} is missing beside it"));
    keys.chain(files).map(|what| manifest.finding(1, what)).collect()
}
