//! Checks `--host` and `--hostfile`. All ranks run on this host, so only its names are accepted. Names are not
//! resolved.

use std::fs;

use super::spelling::is_number;
use crate::host::machine::host_name;

/// Names by which every host calls itself.
const LOOPBACK: [&str; 4] = ["localhost", "localhost.localdomain", "127.0.0.1", "::1"];

/// Checks `--host`: names separated by commas, each with or without `:slots`.
pub(super) fn list(text: &str) -> Result<String, String> {
    list_for(text, &host_name())
}

/// Reads the file of `--hostfile`, and checks its names.
pub(super) fn file(path: &str) -> Result<String, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    file_for(&text, &host_name())
}

fn list_for(text: &str, own: &str) -> Result<String, String> {
    let foreign = text.split(',').map(str::trim).find(|host| !is_here(host, own));
    foreign.map_or_else(|| Ok(text.to_owned()), |host| Err(refusal(host, own)))
}

/// Checks the text of a file with one host per line: `name`, `name:slots` or `name slots=N`. `#` begins a comment.
fn file_for(text: &str, own: &str) -> Result<String, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    for host in lines.filter_map(|line| line.split_whitespace().next()) {
        list_for(host, own)?;
    }
    Ok(text.to_owned())
}

fn refusal(host: &str, own: &str) -> String {
    format!(
        "{host:?} is not this host ({own}), and ranks run on this host only; leave the option out, \
         or name localhost"
    )
}

/// Whether `host` is a name of this host, which calls itself `own`.
fn is_here(host: &str, own: &str) -> bool {
    let short = own.split('.').next().unwrap_or_default();
    let is_name = |host: &str| {
        !host.is_empty()
            && [own, short].iter().chain(&LOOPBACK).any(|name| name.eq_ignore_ascii_case(host))
    };
    let without_slots = host.rsplit_once(':').filter(|(_, slots)| is_number(slots.as_bytes()));
    is_name(host) || without_slots.is_some_and(|(name, _)| is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_many_names() {
        for list in [
            "localhost",
            "localhost:4,127.0.0.1",
            "::1",
            "::1:8",
            "Node7.cluster",
            "node7:2, node7.cluster:3",
        ] {
            list_for(list, "node7.cluster").expect(list);
        }
    }

    #[test]
    fn other_hosts_are_named_in_the_refusal() {
        for (list, named) in [
            ("localhost,node8", "node8"),
            ("node7.other", "node7.other"),
            ("node7:x", "node7:x"),
            ("", ""),
            ("localhost,,", ""),
            (":4", ":4"),
        ] {
            let text = list_for(list, "node7.cluster").expect_err(list);
            let expected = format!("{named:?} is not this host (node7.cluster)");
            assert!(text.starts_with(&expected), "{list}: {text}");
        }
    }

    #[test]
    fn a_file_of_hosts_has_one_a_line() {
        let good = "# all here\nlocalhost slots=4 max_slots=8\n\n  node7:2 # twice\n";
        file_for(good, "node7").expect("all are this host");
        let text = file_for("node7\nnode8 slots=2\n", "node7").expect_err("the second is not");
        assert!(text.contains("\"node8\""), "{text}");
    }
}
