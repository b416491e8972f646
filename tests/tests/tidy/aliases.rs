//! Names of MPI in the documentation of mpj: each is an alias, by which the documentation's search finds the item, and
//! `docs/from-mpi.md` lists all of them.

use std::collections::BTreeSet;

use super::source::{Finding, Source};

/// Handles of MPI, whose types in mpj no table has to list.
const HANDLES: &[&str] = &["Comm", "Datatype", "Group", "Message", "Op", "Request", "Status"];

/// A public item with names of MPI.
#[derive(Debug, PartialEq, Eq)]
pub struct Named<'a> {
    path: &'a str,
    line: usize,
    item: &'a str,
    /// Names in the first paragraph of its documentation.
    told: BTreeSet<&'a str>,
    aliases: BTreeSet<&'a str>,
}

/// The items of a file that have names of MPI in the first paragraph of their documentation, or as aliases.
pub fn named<'a>(source: &Source<'a>) -> Vec<Named<'a>> {
    let (mut found, mut document, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_attribute = false;
    for (number, line) in source.text.lines().map(str::trim).enumerate() {
        if is_attribute || line.starts_with("#[") {
            attributes.push(line);
            is_attribute = !line.ends_with(']');
        } else if line.starts_with("///") {
            document.push(line);
        } else if !line.starts_with("//") {
            if is_item(line) && !document.is_empty() {
                let told = document.iter().take_while(|line| **line != "///").copied();
                let told = told.flat_map(names).collect();
                let aliases = attributes.iter().copied().flat_map(names).collect();
                let (path, line, item) = (source.path, number + 1, item_of(line));
                found.push(Named { path, line, item, told, aliases });
            }
            document.clear();
            attributes.clear();
        }
    }
    found.retain(|named| !named.told.is_empty() || !named.aliases.is_empty());
    found
}

/// Whether a line below documentation begins a public item, or a variant or field of one.
fn is_item(line: &str) -> bool {
    let is_public = line.starts_with("pub ") || line.starts_with("const ");
    let is_variant = line.starts_with(char::is_uppercase);
    is_public || is_variant
}

/// The name of the item that a line begins.
fn item_of(line: &str) -> &str {
    let words = line.split(|char: char| !char.is_alphanumeric() && char != '_');
    const KEYWORDS: &[&str] = &["pub", "unsafe", "const", "fn", "struct", "enum", "trait", "type"];
    words.into_iter().find(|word| !KEYWORDS.contains(word)).unwrap_or(line)
}

/// The names of MPI in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
    words.filter(|word| word.starts_with("MPI_") && !word.ends_with('_'))
}

/// A row of the tables: names of MPI, and the words of what mpj has for them; `None` for a dash.
struct Row<'a> {
    line: usize,
    mpi: Vec<&'a str>,
    mpj: Option<BTreeSet<&'a str>>,
}

fn rows<'a>(document: &Source<'a>) -> Vec<Row<'a>> {
    let lines = document.text.lines().enumerate();
    let cells = lines.filter_map(|(number, line)| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        Some((number + 1, cells.next()?, cells.next()?))
    });
    let cells = cells.filter(|(_, _, mpj)| *mpj != "mpj");
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let row = |(line, mpi, mpj): (usize, &'a str, &'a str)| Row {
        line,
        mpi: names(mpi).collect(),
        mpj: (mpj != "-").then(|| mpj.split(|char| !is_word(char)).collect()),
    };
    cells.map(row).filter(|row| !row.mpi.is_empty()).collect()
}

/// Every name that the documentation of an item begins with is its alias; every alias is in the tables, perhaps as the
/// blocking call; every name in the tables is an alias of an item that its row names.
pub fn aliases(document: &Source, code: &[&Source]) -> Vec<Finding> {
    let items: Vec<_> = code.iter().flat_map(|source| named(source)).collect();
    let rows = rows(document);
    let listed: BTreeSet<&str> = rows.iter().flat_map(|row| row.mpi.iter().copied()).collect();
    let of_items = items.iter().flat_map(|item| {
        let finding = |what| Finding { path: item.path.to_owned(), line: item.line, what };
        let missing = item.told.difference(&item.aliases);
        let missing = missing.map(move |name| format!("`{}` lacks the alias {name}", item.item));
        let unlisted = item.aliases.iter().filter(|name| !is_listed(name, &listed));
        let unlisted = unlisted.map(|name| format!("{name} is missing in {}", document.path));
        missing.chain(unlisted).map(finding)
    });
    let of_rows = rows.iter().filter_map(|row| Some((row, row.mpj.as_ref()?)));
    let of_rows = of_rows.flat_map(|(row, mpj)| {
        let has = |name: &&&str| {
            items.iter().any(|item| mpj.contains(item.item) && item.aliases.contains(**name))
        };
        let missing = row.mpi.iter().filter(move |name| !has(name));
        missing.map(move |name| {
            document.finding(row.line, format!("no item of this row has the alias {name}"))
        })
    });
    of_items.chain(of_rows).collect()
}

/// Whether the tables list a name: as it is, as the blocking form of a call, or not at all because it is a handle.
fn is_listed(name: &str, listed: &BTreeSet<&str>) -> bool {
    let stem = name.trim_start_matches("MPI_");
    let blocking = stem.strip_suffix("_init").unwrap_or(stem);
    let mut letters = blocking.strip_prefix('I').unwrap_or(blocking).chars();
    let first = letters.next().map_or_else(String::new, |first| first.to_uppercase().to_string());
    let blocking = format!("MPI_{first}{}", letters.as_str());
    listed.contains(name) || listed.contains(&*blocking) || HANDLES.contains(&stem)
}
