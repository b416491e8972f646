//! Decides which ranks of a job run on which hosts, from the options of its programs and from what a batch system has
//! allocated. Called by the options of the job.
//!
//! - DI1: a program without hosts of its own runs on those of the first program, or else on the allocated ones.
//! - DI2: a job whose hosts are all this one has no list of hosts, and runs as if none had been named.

use std::collections::HashMap;
use std::time::Duration;

use transport_lapi::adapters::MAX_TASKS_PER_HOST;

use super::allocation::System;
use super::hosts::{are_here, canonical};
use super::values::total;
use crate::job::hosts::{deal, merged, room};
use crate::job::{Deal, HostSlots, Hosts, Starter};

/// What the options of one program say about its ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// `-n`.
    pub(super) ranks: Option<usize>,
    /// `--per-host`.
    pub(super) per_host: Option<usize>,
    /// `--host` and `--hostfile`.
    pub(super) hosts: Vec<HostSlots>,
}

/// What the options of the job and the environment say about its hosts.
#[derive(Debug, Clone)]
pub(super) struct Means {
    /// The hosts that a batch system has allocated.
    pub(super) allocated: Option<(System, Vec<HostSlots>)>,
    pub(super) order: Deal,
    /// The words of `--agent-launcher`.
    pub(super) launcher: Option<Vec<String>>,
    pub(super) fanout: usize,
    pub(super) silence: Duration,
}

/// The number of ranks of each program, if the options say so, and the hosts, unless there is only this one (DI2).
///
/// # Errors
/// If a program wants more ranks than `--per-host` allows on its hosts, or if there are too many ranks for one job or on
/// one host.
pub(super) fn distribute(
    wishes: &[Wish],
    means: Means,
) -> Result<(Vec<Option<usize>>, Option<Hosts>), String> {
    let lists = lists(wishes, means.allocated.as_ref());
    let is_here = lists.iter().all(|list| are_here(list));
    let pairs = wishes.iter().zip(&lists);
    let counts = pairs.map(|(wish, list)| count(wish, list, is_here, wishes.len() == 1));
    let counts = counts.collect::<Result<Vec<_>, String>>()?;
    let known: Option<Vec<usize>> = counts.iter().copied().collect();
    let all = total(counts.iter().flatten().copied())?;
    if is_here && all > MAX_TASKS_PER_HOST {
        return Err(crowded(&canonical("localhost"), all));
    }
    let hosts = known.filter(|_| !is_here).map(|counts| {
        let system = means.allocated.as_ref().map(|(system, _)| *system);
        let is_allocated = wishes.iter().all(|wish| wish.hosts.is_empty());
        let starter = match means.launcher {
            Some(words) => Starter::Command(words),
            None if system == Some(System::Slurm) && is_allocated => Starter::Srun,
            None => Starter::Ssh,
        };
        let (names, of_rank) = places(&lists, &counts, means.order);
        let (fanout, silence) = (means.fanout, means.silence);
        let hosts = Hosts { names, of_rank, starter, fanout, silence };
        match hosts.fullest() {
            (_, ..=MAX_TASKS_PER_HOST) => Ok(hosts),
            (host, ranks) => Err(crowded(&hosts.names[host], ranks)),
        }
    });
    Ok((counts, hosts.transpose()?))
}

/// The error about a host with more ranks than one can run.
fn crowded(host: &str, ranks: usize) -> String {
    format!(
        "host {host} would run {ranks} ranks, but at most {MAX_TASKS_PER_HOST} ranks run on one host; name more hosts with \
         --hosts"
    )
}

/// The hosts of each program (DI1); none for a program that runs on this one.
fn lists(wishes: &[Wish], allocated: Option<&(System, Vec<HostSlots>)>) -> Vec<Vec<HostSlots>> {
    let named = |wish: &&Wish| !wish.hosts.is_empty();
    let first = wishes.first().filter(named).map(|wish| wish.hosts.clone());
    let usual = first.or_else(|| allocated.map(|(_, hosts)| hosts.clone())).unwrap_or_default();
    let list = |wish: &Wish| {
        let own = Some(&wish.hosts).filter(|hosts| !hosts.is_empty()).unwrap_or(&usual);
        let mut hosts = merged(own.iter().cloned());
        for host in &mut hosts {
            host.slots = wish.per_host.or(host.slots);
        }
        hosts
    };
    wishes.iter().map(list).collect()
}

/// The number of ranks of a program; `None` where one per processor is meant.
fn count(
    wish: &Wish,
    list: &[HostSlots],
    is_here: bool,
    is_alone: bool,
) -> Result<Option<usize>, String> {
    let hosts = if is_here { 1 } else { list.len().max(1) };
    let most = wish.per_host.map(|each| each.saturating_mul(hosts));
    match (wish.ranks, most) {
        (Some(all), Some(most)) if all > most => {
            let each = wish.per_host.unwrap_or(1);
            let has = if hosts == 1 { "this one".to_owned() } else { format!("these {hosts}") };
            Err(format!(
                "-n {all} with {each} ranks on each host needs more hosts than {has}; name them with --hosts"
            ))
        }
        (None, None) if is_alone && !is_here => Ok(Some(room(list))),
        (ranks, most) => Ok(ranks.or(most)),
    }
}

/// The names of all hosts, and the place of each rank among them. Programs with the same list share its slots.
fn places(lists: &[Vec<HostSlots>], counts: &[usize], order: Deal) -> (Vec<String>, Vec<usize>) {
    let own = [HostSlots { name: canonical("localhost"), slots: None }];
    let list_of = |program: usize| match &lists[program][..] {
        [] => &own[..],
        list => list,
    };
    let programs: Vec<usize> =
        counts.iter().enumerate().flat_map(|(at, count)| std::iter::repeat_n(at, *count)).collect();
    let mut names: Vec<String> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut places = vec![0; programs.len()];
    let mut dealt: Vec<usize> = Vec::new();
    for program in 0..counts.len() {
        let list = list_of(program);
        if dealt.iter().any(|before| list_of(*before) == list) {
            continue;
        }
        dealt.push(program);
        let shares: Vec<bool> = (0..counts.len()).map(|other| list_of(other) == list).collect();
        let sharing: Vec<usize> =
            (0..programs.len()).filter(|rank| shares[programs[*rank]]).collect();
        for (rank, host) in sharing.iter().zip(deal(list, sharing.len(), order)) {
            let name = &list[host].name;
            places[*rank] = *numbers.entry(name).or_insert_with(|| {
                names.push(name.clone());
                names.len() - 1
            });
        }
    }
    (names, places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::hosts::list;

    fn means() -> Means {
        let silence = Duration::from_secs(20);
        Means { allocated: None, order: Deal::Block, launcher: None, fanout: 16, silence }
    }

    fn wish(ranks: Option<usize>, per_host: Option<usize>, hosts: &str) -> Wish {
        let hosts = if hosts.is_empty() { Vec::new() } else { list(hosts).expect(hosts).0 };
        Wish { ranks, per_host, hosts }
    }

    fn placed(wishes: &[Wish], means: Means) -> (Vec<Option<usize>>, Vec<String>) {
        let (counts, hosts) = distribute(wishes, means).expect("legal");
        let hosts = hosts.expect("several");
        (counts, hosts.of_rank.iter().map(|host| hosts.names[*host].clone()).collect())
    }

    #[test]
    fn this_host_alone_is_no_list() {
        for hosts in ["", "localhost:4", "localhost,127.0.0.1"] {
            let (counts, hosts) = distribute(&[wish(None, None, hosts)], means()).expect("legal");
            assert_eq!((counts, hosts), (vec![None], None));
        }
        let (counts, _) = distribute(&[wish(None, Some(3), "")], means()).expect("legal");
        assert_eq!(counts, [Some(3)]);
        let error = distribute(&[wish(Some(4), Some(2), "")], means()).expect_err("too many");
        assert!(error.starts_with("-n 4 with 2 ranks on each host needs more hosts"), "{error}");
    }

    #[test]
    fn the_limits_are_those_of_the_job_and_of_each_host() {
        let refused = |wish| distribute(&[wish], means()).expect_err("too many");
        for (ranks, hosts, host) in [(257, "", &canonical("localhost")[..]), (514, "a,b", "a")] {
            let words =
                format!("host {host} would run 257 ranks, but at most 256 ranks run on one host");
            let error = refused(wish(Some(ranks), None, hosts));
            assert!(error.starts_with(&words), "{error}");
        }
        let error = refused(wish(None, None, "a:18446744073709551615,b:4"));
        assert!(error.ends_with("but a job has 1 to 1048576 ranks"), "{error}");
        let most = (0..4096).map(|host| format!("n{host}:256")).collect::<Vec<_>>().join(",");
        let (counts, places) = placed(&[wish(None, None, &most)], means());
        assert_eq!((counts, &places[(1 << 20) - 1][..]), (vec![Some(1 << 20)], "n4095"));
    }

    #[test]
    fn ranks_follow_slots_and_options() {
        let on = |wish| placed(&[wish], means());
        assert_eq!(on(wish(Some(3), None, "a:2,b:2")).1, ["a", "a", "b"]);
        assert_eq!(
            on(wish(None, None, "a:2,b")),
            (vec![Some(3)], on(wish(Some(3), None, "a:2,b")).1)
        );
        assert_eq!(on(wish(None, Some(2), "a,b")).1, ["a", "a", "b", "b"]);
        assert_eq!(on(wish(Some(3), Some(2), "a,b")).1, ["a", "a", "b"]);
        let error = distribute(&[wish(Some(5), Some(2), "a,b")], means()).expect_err("too many");
        assert!(error.contains("more hosts than these 2"), "{error}");
        let cyclic = Means { order: Deal::Cyclic, ..means() };
        assert_eq!(placed(&[wish(Some(4), None, "a,b")], cyclic).1, ["a", "b", "a", "b"]);
    }

    #[test]
    fn programs_share_a_list_or_have_their_own() {
        let wishes =
            [wish(Some(2), None, "a:2,b:2"), wish(Some(2), None, ""), wish(Some(1), None, "c")];
        assert_eq!(placed(&wishes, means()).1, ["a", "a", "b", "b", "c"]);
    }

    #[test]
    fn an_allocation_is_used_where_no_host_is_named() {
        let slots = list("a:2,b:1").expect("legal").0;
        let allocated = Means { allocated: Some((System::Slurm, slots)), ..means() };
        let starter = |wish| {
            distribute(&[wish], allocated.clone()).expect("legal").1.expect("several").starter
        };
        assert_eq!(placed(&[wish(None, None, "")], allocated.clone()).1, ["a", "a", "b"]);
        assert_eq!(starter(wish(None, None, "")), Starter::Srun);
        assert_eq!(starter(wish(None, None, "c")), Starter::Ssh);
    }
}
