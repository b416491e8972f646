//! Parses `--host` and `--hostfile`. Names are not resolved; those of this host become the name by which it calls
//! itself.

use std::fs;

use super::spelling::is_number;
use crate::host::machine::host_name;
use crate::job::HostSlots;

/// Names by which every host calls itself.
const LOOPBACK: [&str; 4] = ["localhost", "localhost.localdomain", "127.0.0.1", "::1"];

/// The value of one `--host` or `--hostfile`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostList(pub(super) Vec<HostSlots>);

/// Parses `--host`: names separated by commas, each with or without `:slots`.
pub(super) fn list(text: &str) -> Result<HostList, String> {
    let entries = text.split(',').map(|entry| entry_of(entry.trim()));
    entries.collect::<Result<_, _>>().map(HostList)
}

/// Reads the file of `--hostfile`.
pub(super) fn file(path: &str) -> Result<HostList, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    lines(&text)
}

/// Parses the text of a file with one host per line: `name`, `name:slots` or `name slots=N`. `#` begins a comment.
fn lines(text: &str) -> Result<HostList, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let entries = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let entry = entry_of(words.next()?);
        let slots = words.find_map(|word| word.strip_prefix("slots="));
        Some(entry.and_then(|entry| match slots.map(str::parse) {
            None => Ok(entry),
            Some(Ok(slots @ 1..)) => Ok(HostSlots { slots: Some(slots), ..entry }),
            Some(_) => Err(format!("{:?}: slots= needs a number above 0", line.trim())),
        }))
    });
    let hosts = entries.collect::<Result<Vec<_>, _>>()?;
    if hosts.is_empty() { Err("no line names a host".to_owned()) } else { Ok(HostList(hosts)) }
}

fn entry_of(text: &str) -> Result<HostSlots, String> {
    let with_slots = text.rsplit_once(':').filter(|(name, slots)| {
        // The colons of an address in IPv6 separate no slots, except behind the whole of the loopback address.
        is_number(slots.as_bytes()) && (!name.contains(':') || LOOPBACK.contains(name))
    });
    let (name, slots) = match with_slots {
        Some((name, slots)) => (name, Some(slots.parse().ok().filter(|slots| *slots > 0))),
        None => (text, None),
    };
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:@%[]".contains(&byte);
    // A name that begins with a dash would be an option of ssh.
    if name.is_empty()
        || name.starts_with(['-', ':']) && name != "::1"
        || !name.bytes().all(is_legal)
    {
        return Err(format!("{text:?} is no name of a host"));
    }
    match slots {
        Some(None) => Err(format!("{text:?}: a host has at least one slot")),
        slots => Ok(HostSlots { name: canonical(name), slots: slots.flatten() }),
    }
}

/// The name by which this host calls itself, if `name` is one of its names; else `name`.
pub(super) fn canonical(name: &str) -> String {
    let own = host_name();
    if is_here(name, &own) { own } else { name.to_owned() }
}

/// Whether all of these hosts are this one.
pub(super) fn are_here(hosts: &[HostSlots]) -> bool {
    let own = host_name();
    hosts.iter().all(|host| host.name == own)
}

/// Whether `host` is a name of this host, which calls itself `own`.
fn is_here(host: &str, own: &str) -> bool {
    let short = own.split('.').next().unwrap_or_default();
    [own, short].iter().chain(&LOOPBACK).any(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, slots: Option<usize>) -> HostSlots {
        HostSlots { name: name.to_owned(), slots }
    }

    #[test]
    fn this_host_has_many_names() {
        for name in ["localhost", "127.0.0.1", "::1", "Node7.cluster", "node7", "NODE7"] {
            assert!(is_here(name, "node7.cluster"), "{name}");
        }
        assert!(!is_here("node7.other", "node7.cluster") && !is_here("", "node7.cluster"));
        let here = [entry(&host_name(), None), entry(&host_name(), Some(8))];
        assert_eq!(list("::1, localhost:8"), Ok(HostList(here.to_vec())));
        assert!(are_here(&here) && !are_here(&[entry("elsewhere.invalid", None)]));
    }

    #[test]
    fn a_list_has_names_and_slots() {
        let expected = [entry("a", Some(4)), entry("b.c", None), entry("me@fe80::1", None)];
        assert_eq!(list("a:4, b.c,me@fe80::1"), Ok(HostList(expected.to_vec())));
        for wrong in ["", "a,,b", ":4", "a:0", "-oProxyCommand=x", "a b", "a;b", "a:x y"] {
            list(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn a_file_of_hosts_has_one_a_line() {
        let text = "# all\na slots=4 max_slots=8\n\n  b:2 # twice\nc\n";
        let expected = [entry("a", Some(4)), entry("b", Some(2)), entry("c", None)];
        assert_eq!(lines(text), Ok(HostList(expected.to_vec())));
        for wrong in ["", "# none\n", "a slots=0\n", "a slots=many\n", "a\n-b\n"] {
            lines(wrong).expect_err(wrong);
        }
    }
}
