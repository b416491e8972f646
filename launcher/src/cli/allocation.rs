//! Finds the hosts that a batch system has allocated: Slurm, PBS and LSF say so in the environment. Pure; called by the
//! options of a job that names no hosts.

use super::hosts::canonical;
use crate::job::HostSlots;

/// How the environment is read: the value of a variable that is set and not empty.
type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Most hosts in one range of Slurm's: no cluster has more.
const MOST_IN_RANGE: u64 = 1 << 20;

/// The batch system that has allocated hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Slurm,
    Pbs,
    Lsf,
}

/// Returns the hosts of an allocation with their slots; `None` outside of one. `read` reads a file.
///
/// # Errors
/// Names the variable that cannot be understood.
pub(super) fn find(
    lookup: Lookup<'_>,
    read: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Option<(System, Vec<HostSlots>)>, String> {
    let wrong = |name: &str, value: &str| {
        format!("{name}={value} cannot be understood; name the hosts with --hosts")
    };
    if let Some(nodes) = lookup("SLURM_JOB_NODELIST") {
        let names = node_list(&nodes).ok_or_else(|| wrong("SLURM_JOB_NODELIST", &nodes))?;
        let slots = match lookup("SLURM_TASKS_PER_NODE") {
            Some(text) => counts(&text).ok_or_else(|| wrong("SLURM_TASKS_PER_NODE", &text))?,
            None => Vec::new(),
        };
        let slots = slots.into_iter().map(Some).chain(std::iter::repeat(None));
        return Ok(Some((System::Slurm, names.iter().zip(slots).map(host).collect())));
    }
    if let Some(path) = lookup("PBS_NODEFILE") {
        let text = read(&path).map_err(|error| format!("PBS_NODEFILE={path}: {error}"))?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        return Ok(Some((System::Pbs, lines.map(|name| host((name, Some(1)))).collect())));
    }
    if let Some(text) = lookup("LSB_MCPU_HOSTS") {
        let words: Vec<&str> = text.split_whitespace().collect();
        let pairs = words.chunks(2).map(|pair| match pair {
            [name, slots] => Some(host((name, Some(slots.parse().ok().filter(|it| *it > 0)?)))),
            _ => None,
        });
        let hosts = pairs.collect::<Option<_>>().ok_or_else(|| wrong("LSB_MCPU_HOSTS", &text))?;
        return Ok(Some((System::Lsf, hosts)));
    }
    Ok(None)
}

fn host((name, slots): (impl AsRef<str>, Option<usize>)) -> HostSlots {
    HostSlots { name: canonical(name.as_ref()), slots }
}

/// The names of Slurm's list: `a,node[01-03,7]-ib,b[1-2][x,y]`.
fn node_list(text: &str) -> Option<Vec<String>> {
    let entries = split_outside(text)?.into_iter().map(expanded);
    let names = entries.collect::<Option<Vec<_>>>()?.concat();
    let is_legal = !names.is_empty() && !names.iter().any(String::is_empty);
    is_legal.then_some(names)
}

/// The parts between commas that are not inside brackets.
fn split_outside(text: &str) -> Option<Vec<&str>> {
    let (mut parts, mut from, mut is_inside) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '[' if is_inside => return None,
            ']' if !is_inside => return None,
            '[' | ']' => is_inside = !is_inside,
            ',' if !is_inside => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    (!is_inside).then_some(parts)
}

/// The names of one entry, whose brackets hold numbers and ranges.
fn expanded(entry: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = entry.split_once('[') else { return Some(vec![entry.to_owned()]) };
    let (list, after) = rest.split_once(']')?;
    let insides = list.split(',').map(range).collect::<Option<Vec<_>>>()?.concat();
    let tails = expanded(after)?;
    let with_tails = |inside: &String| {
        let head = format!("{before}{inside}");
        tails.iter().map(move |tail| format!("{head}{tail}")).collect::<Vec<_>>()
    };
    Some(insides.iter().flat_map(with_tails).collect())
}

/// The numbers of `7` or `01-03`, which all have as many digits as the first one at least.
fn range(text: &str) -> Option<Vec<String>> {
    let Some((first, last)) = text.split_once('-') else { return Some(vec![text.to_owned()]) };
    let (from, to): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let is_legal = from <= to && to - from < MOST_IN_RANGE;
    let width = first.len();
    is_legal.then(|| (from..=to).map(|number| format!("{number:0width$}")).collect())
}

/// The numbers of Slurm's `2(x3),1`.
fn counts(text: &str) -> Option<Vec<usize>> {
    let entries = text.split(',').map(|entry| {
        let (count, times) = match entry.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (entry, 1),
        };
        let count = count.parse().ok().filter(|count| *count > 0)?;
        (times as u64 <= MOST_IN_RANGE).then(|| vec![count; times])
    });
    Some(entries.collect::<Option<Vec<_>>>()?.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<Option<(System, Vec<HostSlots>)>, String> {
        let lookup = |name: &str| {
            let variable = variables.iter().find(|(known, _)| *known == name);
            variable.map(|(_, value)| (*value).to_owned())
        };
        find(&lookup, &|_| Ok("n1\nn1\nn2\nn1\n\n".to_owned()))
    }

    fn hosts(given: &[(&str, Option<usize>)]) -> Vec<HostSlots> {
        given
            .iter()
            .map(|(name, slots)| HostSlots { name: (*name).into(), slots: *slots })
            .collect()
    }

    #[test]
    fn slurm_lists_ranges_of_nodes() {
        let names = |text| node_list(text).expect(text).join(" ");
        assert_eq!(names("node[01-03,7]"), "node01 node02 node03 node7");
        assert_eq!(names("a,b[9-11]-ib,c"), "a b9-ib b10-ib b11-ib c");
        assert_eq!(names("r[1-2]n[0,x]"), "r1n0 r1nx r2n0 r2nx");
        for wrong in ["", "a,", "a[", "a]", "a[1-", "a[3-1]", "a[x-y]", "a[[1]]", "a[0-99999999]"] {
            assert_eq!(node_list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn slurm_counts_tasks() {
        assert_eq!(counts("2(x3),1"), Some(vec![2, 2, 2, 1]));
        for wrong in ["", "0", "2(x", "2(xx)", "2,,1", "2(x99999999)"] {
            assert_eq!(counts(wrong), None, "{wrong}");
        }
        let nodes = ("SLURM_JOB_NODELIST", "n[1-3]");
        let all = found(&[nodes, ("SLURM_TASKS_PER_NODE", "2(x2),1")]).expect("legal");
        let expected = hosts(&[("n1", Some(2)), ("n2", Some(2)), ("n3", Some(1))]);
        assert_eq!(all, Some((System::Slurm, expected)));
        let bare = found(&[nodes]).expect("legal").expect("an allocation").1;
        assert_eq!(bare, hosts(&[("n1", None), ("n2", None), ("n3", None)]));
        let error = found(&[("SLURM_JOB_NODELIST", "n[")]).expect_err("open");
        assert!(error.starts_with("SLURM_JOB_NODELIST=n["), "{error}");
    }

    #[test]
    fn pbs_and_lsf_name_hosts_with_slots() {
        let pbs = found(&[("PBS_NODEFILE", "/f")]).expect("legal");
        let lines = hosts(&[("n1", Some(1)), ("n1", Some(1)), ("n2", Some(1)), ("n1", Some(1))]);
        assert_eq!(pbs, Some((System::Pbs, lines)));
        let lsf = found(&[("LSB_MCPU_HOSTS", "n1 4 n2 2")]).expect("legal");
        assert_eq!(lsf, Some((System::Lsf, hosts(&[("n1", Some(4)), ("n2", Some(2))]))));
        assert!(found(&[("LSB_MCPU_HOSTS", "n1 4 n2")]).is_err());
        assert_eq!(found(&[]), Ok(None));
    }
}
