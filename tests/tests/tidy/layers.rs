//! Which layer may use which: the table of `ARCHITECTURE.md`, without what the manifests of the crates prevent.
//!
//! Called by the tests of the tree. Names are found in `use` trees and in paths; those that begin with `super` are
//! resolved from the place of the file.

use crate::source::{Finding, Line, Source};

/// Files that may use, of a crate or module, only what is listed.
pub struct Layer {
    /// Beginning of the paths of the files.
    files: &'static str,
    /// A crate or a module.
    name: &'static str,
    /// What they may use of it.
    allowed: &'static [&'static str],
}

/// Shortens the table below.
const fn layer(files: &'static str, name: &'static str, allowed: &'static [&'static str]) -> Layer {
    Layer { files, name, allowed }
}

/// What the launcher needs to make a job and to read the settings.
const JOB_CONTRACT: &[&str] = &[
    "transport_lapi::TaskId",
    "transport_lapi::adapter::AdapterError",
    "transport_lapi::adapter::Caps",
    "transport_lapi::adapter::GetKind",
    "transport_lapi::adapter::MAX_TASKS",
    "transport_lapi::adapter::Pieces",
    "transport_lapi::adapters::MAX_CONTEXTS",
    "transport_lapi::adapters::MAX_PLACES_PER_HOST",
    "transport_lapi::adapters::MAX_TASKS_PER_HOST",
    "transport_lapi::adapters::ofi::Fabric",
    "transport_lapi::adapters::SPARE_CONTEXTS",
    "transport_lapi::adapters::segment_bytes",
    "transport_lapi::adapters::shm::caps_of",
    "transport_lapi::adapters::shm::create_segment",
    "transport_lapi::adapters::shm::create_segment_with_room",
    "transport_lapi::adapters::shm::room_for",
    "transport_lapi::bootstrap",
    "transport_lapi::config",
    "transport_lapi::wireup",
];

/// What pure code may use of the standard library: nothing that depends on the system.
const PURE: &[&str] = &["std::cell", "std::collections", "std::hash", "std::mem"];

/// What describes where the bytes of a message lie.
const LAYOUTS: &[&str] = &["transport_lapi::Layout", "transport_lapi::LayoutError"];

/// What names bytes that others may access meanwhile, in which loops update elements.
const SHARED_MEMORY: &[&str] =
    &["transport_lapi::ForeignBytes", "transport_lapi::RecvPart", "transport_lapi::SharedBytes"];

/// What the expansions of macros name.
const MADE_BY_MACROS: &[&str] = &[
    "mpj::Datatype",
    "mpj::Error",
    "mpj::TypeMap",
    "mpj::Zeroable",
    "mpj::derive",
    "mpj::testing",
    "mpj::tuning::BackendChoice",
];

/// The layers.
pub const LAYERS: &[Layer] = &[
    layer("transport-lapi/src/adapters/threads", "crate::adapters::shm", &[]),
    layer("transport-lapi/src/adapters/shm", "crate::adapters::threads", &[]),
    layer("am2/src/", "transport_lapi::adapters", &[]),
    layer("pami/src/", "transport_lapi::adapters", &[]),
    layer("pami/src/", "mpicore", &["mpicore::collective", "mpicore::op"]),
    layer("mpjdev/src/", "transport_lapi::adapters", &[]),
    layer("mpjdev/src/matching", "crate", &["crate::matching"]),
    layer("mpjdev/src/matching", "transport_lapi", &[]),
    layer("mpjdev/src/matching", "std", PURE),
    layer("mpicore/src/", "transport_lapi::adapters", &[]),
    layer("mpicore/src/collective", "crate", &["crate::collective", "crate::ErrorClass"]),
    layer("mpicore/src/collective", "mpjdev", &[]),
    layer("mpicore/src/collective", "transport_lapi", &[]),
    layer("mpicore/src/group", "crate", &["crate::group", "crate::ErrorClass"]),
    layer("mpicore/src/group", "mpjdev", &[]),
    layer("mpicore/src/group", "transport_lapi", &[]),
    layer("mpicore/src/topology", "crate", &["crate::topology", "crate::ErrorClass"]),
    layer("mpicore/src/topology", "mpjdev", &[]),
    layer("mpicore/src/topology", "transport_lapi", &[]),
    layer("mpicore/src/datatype", "crate", &["crate::datatype", "crate::op", "crate::ErrorClass"]),
    layer("mpicore/src/datatype", "mpjdev", &[]),
    layer("mpicore/src/datatype", "transport_lapi", LAYOUTS),
    layer("mpicore/src/op", "crate", &["crate::op", "crate::ErrorClass"]),
    layer("mpicore/src/op", "mpjdev", &[]),
    layer("mpicore/src/op", "transport_lapi", SHARED_MEMORY),
    layer("mpj/", "mpj_launcher", &["mpj_launcher::testing"]),
    layer("mpj/", "mpj_macros", &["mpj_macros::test", "mpj_macros::Datatype"]),
    // Their expansions are part of other crates, so their manifest says nothing about what these name.
    layer("mpj-macros/", "mpj", MADE_BY_MACROS),
    layer("mpj-macros/", "mpj_launcher", &[]),
    layer("mpj-macros/", "transport_lapi", &[]),
    layer("mpj/examples/", "mpjdev", &[]),
    layer("launcher/src/", "transport_lapi", JOB_CONTRACT),
    layer("launcher/src/", "mpjdev", &["mpjdev::protocol", "mpjdev::Call"]),
];

/// Foreign crates that only one place may use, so that they can be replaced there.
const FENCED: &[(&str, &str)] = &[
    ("bincode", "transport-lapi/src/job/bootstrap/control"),
    ("cbor4ii", "mpjdev/src/buffer/codec"),
];

/// A fenced crate is used only inside its fence.
pub fn fences(source: &Source) -> Vec<Finding> {
    let names = names(source);
    let outside = FENCED.iter().filter(|(_, place)| !source.path.starts_with(place));
    let uses = outside.flat_map(|(fenced, place)| {
        let uses = names.iter().filter(|name| is_under(&name.path, fenced));
        uses.map(move |name| (name.line, format!("`{fenced}` is for {place} alone")))
    });
    uses.map(|(line, what)| source.finding(line, what)).collect()
}

/// No file uses a name that its layer may not know.
pub fn layering(source: &Source) -> Vec<Finding> {
    let names: Vec<_> = names(source).into_iter().map(|name| name.resolved(source.path)).collect();
    let mut findings = Vec::new();
    for layer in LAYERS.iter().filter(|layer| source.path.starts_with(layer.files)) {
        for name in names.iter().filter(|name| layer.forbids(name)) {
            let what = format!("`{}` is of a layer that this file may not know", name.path);
            findings.push(source.finding(name.line, what));
        }
    }
    findings
}

/// A path that a file mentions.
#[derive(Debug, PartialEq, Eq)]
pub struct Name {
    pub line: usize,
    pub path: String,
    /// Whether it is from a `use`, which makes everything below the path reachable.
    pub imported: bool,
}

impl Name {
    /// A path that begins with `super`, in a file of a crate, from the root of the crate. It does
    /// not count as imported: `super::*` in a module of tests means the file itself.
    pub fn resolved(self, file: &str) -> Self {
        let Some((_, inside)) = file.split_once("/src/") else { return self };
        let mut module: Vec<_> = inside.trim_end_matches(".rs").split('/').collect();
        let mut rest = &*self.path;
        while let Some(above) = rest.strip_prefix("super") {
            module.pop();
            rest = above.trim_start_matches("::");
        }
        if rest.len() == self.path.len() {
            return self;
        }
        module.insert(0, "crate");
        module.extend(Some(rest).filter(|rest| !rest.is_empty()));
        Self { path: module.join("::"), imported: false, ..self }
    }
}

impl Layer {
    fn forbids(&self, name: &Name) -> bool {
        let allowed = self.allowed.iter().any(|allowed| is_under(&name.path, allowed));
        let reaches = name.imported && self.name.contains("::") && is_under(self.name, &name.path);
        !allowed && (is_under(&name.path, self.name) || reaches)
    }
}

/// Whether `path` is `stem` or below it.
fn is_under(path: &str, stem: &str) -> bool {
    path.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// Every path with at least one `::`, and every leaf of every `use` tree. A glob import counts as an import of the
/// module.
pub fn names(source: &Source) -> Vec<Name> {
    let mut names = Vec::new();
    let mut rest = &source.tokens[..];
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let opens_tree = rest.first().is_some_and(|token| token.text != "<");
        if first.text == "use" && opens_tree {
            let end = rest.iter().position(|token| token.text == ";").unwrap_or(rest.len());
            leaves(&rest[..end], "", &mut names);
            rest = &rest[end..];
        } else if is_word(first) && rest.first().is_some_and(|token| token.text == "::") {
            let (path, len) = path(first, rest);
            names.push(Name { line: first.number, path, imported: false });
            rest = &rest[len..];
        }
    }
    names
}

/// The path that starts with `first`, and how many tokens of `rest` belong to it.
fn path(first: &Line, rest: &[Line]) -> (String, usize) {
    let mut path = first.text.to_owned();
    let pairs = rest.chunks_exact(2).take_while(|pair| pair[0].text == "::" && is_word(&pair[1]));
    let mut len = 0;
    for pair in pairs {
        path = path + "::" + pair[1].text;
        len += 2;
    }
    (path, len)
}

/// Appends the leaves of a `use` tree whose branches begin with `stem`.
fn leaves(tree: &[Line], stem: &str, names: &mut Vec<Name>) {
    for branch in branches(tree) {
        let group = branch.iter().position(|token| token.text == "{");
        let plain = &branch[..group.unwrap_or(branch.len())];
        let words =
            plain.iter().take_while(|token| token.text != "as").filter(|token| is_word(token));
        let own = words.filter(|token| token.text != "self").map(|token| token.text);
        let parts: Vec<_> =
            Some(stem).filter(|stem| !stem.is_empty()).into_iter().chain(own).collect();
        let path = parts.join("::");
        match group {
            Some(open) => leaves(inside(&branch[open..]), &path, names),
            None => names.push(Name { line: branch[0].number, path, imported: true }),
        }
    }
}

/// The tokens between the first and the last one.
fn inside<'a>(group: &'a [Line<'a>]) -> &'a [Line<'a>] {
    group.get(1..group.len() - 1).unwrap_or(&[])
}

/// The parts of a `use` tree between the commas outside of groups.
fn branches<'a>(tree: &'a [Line<'a>]) -> Vec<&'a [Line<'a>]> {
    let mut depth = 0_usize;
    let at_comma = tree.split(|token| {
        match token.text {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        token.text == "," && depth == 0
    });
    at_comma.filter(|branch| !branch.is_empty()).collect()
}

fn is_word(token: &Line) -> bool {
    token.text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}
