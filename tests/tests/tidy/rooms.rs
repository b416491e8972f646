//! Which room of a package may use which: the table of `ARCHITECTURE.md` that begins with `| rooms of |`.
//!
//! A room is a module at the top of a package's `src`: a file, a folder, or both. A row of the table lists the rooms of
//! one package by floors, the highest first: `a, b / c / d + e`. A room uses rooms of lower floors only, and those that
//! `+` joins to it. `lib.rs`, `main.rs` and `bin/` stand above all rooms; what they define themselves is of no room.
//! Tests may use everything. Called by the tests of the tree.

use std::collections::{BTreeMap, BTreeSet};

use crate::layers::names;
use crate::source::{Finding, Source};

/// How the heading of the table begins.
const HEADING: &str = "| rooms of |";
/// Files and folders of `src` that are no rooms.
const ROOTS: &[&str] = &["lib", "main", "bin"];

/// The rooms of one package, as its row states them.
pub struct Plan<'a> {
    /// The folder of the package.
    folder: &'a str,
    /// Line of the row.
    line: usize,
    /// For each room its floor, from the top, and its place on the floor. Rooms that `+` joins share a place.
    places: BTreeMap<&'a str, (usize, usize)>,
}

impl Plan<'_> {
    fn allows(&self, user: &str, used: &str) -> bool {
        match (self.places.get(user), self.places.get(used)) {
            (Some(above), Some(below)) => above == below || above.0 < below.0,
            // What the row lacks is a finding of its own.
            _ => true,
        }
    }
}

/// The rows of the table in a document.
pub fn plans<'a>(document: &Source<'a>) -> Vec<Plan<'a>> {
    let lines = (1..).zip(document.text.lines());
    let table = lines.skip_while(|(_, line)| !line.starts_with(HEADING)).skip(2);
    table.map_while(|(line, text)| plan(line, text)).collect()
}

fn plan(line: usize, row: &str) -> Option<Plan<'_>> {
    let (folder, floors) = row.strip_prefix('|')?.trim_end().strip_suffix('|')?.split_once('|')?;
    let mut places = BTreeMap::new();
    for (floor, rooms) in floors.split('/').enumerate() {
        for (place, joined) in rooms.split(',').enumerate() {
            places.extend(joined.split('+').map(|room| (bare(room), (floor, place))));
        }
    }
    Some(Plan { folder: bare(folder), line, places })
}

fn bare(name: &str) -> &str {
    name.trim().trim_matches('`')
}

/// The rooms of a package are those of its row, and none uses one that it may not use.
pub fn rooms(plan: &Plan, document: &Source, code: &[Source]) -> Vec<Finding> {
    let inside = format!("{}/src/", plan.folder);
    let files = || code.iter().filter_map(|file| Some((file, file.path.strip_prefix(&*inside)?)));
    let built: BTreeSet<&str> = files().map(|(_, path)| room_of(path)).collect();
    let built: BTreeSet<&str> = built.into_iter().filter(|room| !ROOTS.contains(room)).collect();
    let listed: BTreeSet<&str> = plan.places.keys().copied().collect();
    let differing = built.symmetric_difference(&listed).map(|room| {
        let fault = if built.contains(room) { "is missing in its row" } else { "does not exist" };
        document.finding(plan.line, format!("the room `{room}` of `{}` {fault}", plan.folder))
    });
    let roots = || files().filter(|(_, path)| room_of(path) == "lib");
    let exports: BTreeMap<_, _> = roots().flat_map(|(root, _)| exported(root, &built)).collect();
    let uses = files().filter(|(_, path)| !is_of_tests(path) && !ROOTS.contains(&room_of(path)));
    let upward = uses.flat_map(|(file, path)| {
        let user = room_of(path);
        let used = uses_of(file, &built, &exports);
        used.filter(|(_, used)| !plan.allows(user, used))
            .map(move |(line, used)| {
                file.finding(line, format!("`{user}` uses `{used}`, which is not below it"))
            })
            .collect::<Vec<_>>()
    });
    differing.chain(upward).collect()
}

/// The room of a file, from its path in `src`.
fn room_of(path: &str) -> &str {
    path.split(['/', '.']).next().unwrap_or(path)
}

fn is_of_tests(path: &str) -> bool {
    path.trim_end_matches(".rs").split('/').skip(1).any(|part| part.ends_with("tests"))
}

/// Names that the root of a package takes from its rooms, and the rooms.
fn exported<'a>(root: &Source, built: &BTreeSet<&'a str>) -> Vec<(String, &'a str)> {
    let names = names(root).into_iter().filter(|name| name.imported);
    names
        .filter_map(|name| {
            let (room, inside) = name.path.trim_start_matches("crate::").split_once("::")?;
            let leaf = inside.rsplit("::").next().unwrap_or(inside);
            Some((leaf.to_owned(), *built.get(room)?))
        })
        .collect()
}

/// The rooms that a file uses outside of its tests, with the lines.
fn uses_of<'a>(
    file: &Source,
    built: &'a BTreeSet<&'a str>,
    exports: &'a BTreeMap<String, &'a str>,
) -> impl Iterator<Item = (usize, &'a str)> {
    let tests: Vec<_> = file
        .find(&["mod", "tests", "{"])
        .filter_map(|at| Some(file.tokens[at].number..=file.end_of_block(at)?))
        .collect();
    let names = names(file).into_iter().map(|name| name.resolved(file.path));
    let outside = names.filter(|name| !tests.iter().any(|lines| lines.contains(&name.line)));
    let used: Vec<_> = outside
        .filter_map(|name| {
            let first = name.path.strip_prefix("crate::")?.split("::").next()?;
            let room = built.get(first).or_else(|| exports.get(first))?;
            Some((name.line, *room))
        })
        .collect();
    used.into_iter()
}
