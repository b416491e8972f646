//! Where the ranks of launches run: on this machine, or on several hosts, each with the same number of ranks.

use std::collections::HashSet;
use std::process::{Command, Stdio};

use crate::machine;

/// What the kernel of a machine calls itself until it is started again.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The hosts and processors of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    /// The processors that ranks are pinned to. Other machines are taken to have the same ones.
    pub processors: Vec<usize>,
    /// Their names; empty if all ranks run here.
    pub names: Vec<String>,
    /// Whether all ranks share the processors of one machine, as those of hosts made out of namespaces do.
    pub one_machine: bool,
}

impl Hosts {
    /// This machine.
    pub fn here() -> Self {
        Self { processors: machine::processors(), names: Vec::new(), one_machine: true }
    }

    /// These hosts, or this machine if there are none.
    ///
    /// # Errors
    /// A host that ssh does not reach.
    pub fn of(hosts: &[String]) -> Result<Self, String> {
        let machines = hosts.iter().map(|host| boot_id(host)).collect::<Result<HashSet<_>, _>>()?;
        Ok(Self { names: hosts.to_vec(), one_machine: machines.len() < 2, ..Self::here() })
    }

    /// Returns whether there is a network between ranks.
    pub fn are_several(&self) -> bool {
        !self.names.is_empty()
    }

    /// Returns the number of hosts.
    pub fn count(&self) -> usize {
        self.names.len().max(1)
    }

    /// Returns how many of so many ranks run on each host.
    pub fn each(&self, ranks: usize) -> usize {
        ranks / self.count()
    }

    /// Returns whether a machine has more of so many ranks than processors.
    pub fn is_oversubscribed(&self, ranks: usize) -> bool {
        let on_a_machine = if self.one_machine { ranks } else { self.each(ranks) };
        on_a_machine > self.processors.len()
    }

    /// Returns the processor of each of so many ranks; empty if there are too few.
    pub fn pins(&self, ranks: usize) -> Vec<usize> {
        if self.is_oversubscribed(ranks) {
            return Vec::new();
        }
        let on_a_machine = if self.one_machine { ranks } else { self.each(ranks) };
        (0..ranks).map(|rank| self.processors[rank % on_a_machine]).collect()
    }

    /// Returns the hosts as launchers take them: `a:2,b:2` for four ranks.
    pub fn with_slots(&self, ranks: usize) -> String {
        let each = self.each(ranks);
        let entries: Vec<_> = self.names.iter().map(|host| format!("{host}:{each}")).collect();
        entries.join(",")
    }

    /// Returns what readers of figures over several hosts have to know of them.
    pub fn facts(&self) -> Vec<(String, String)> {
        let how = if self.one_machine {
            "namespaces of one machine, whose processors they share"
        } else {
            "machines of their own"
        };
        let fact = ("hosts".to_owned(), format!("{}: {how}", self.names.join(", ")));
        if self.are_several() { vec![fact] } else { Vec::new() }
    }
}

/// The boot number of the machine that a host is on.
fn boot_id(host: &str) -> Result<String, String> {
    let mut ssh = Command::new("ssh");
    ssh.args(["-o", "BatchMode=yes", host, "cat", BOOT_ID]).stdin(Stdio::null());
    let output = ssh.output().map_err(|error| format!("cannot start ssh: {error}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        return Ok(said(&output.stdout));
    }
    Err(format!("host {host}: no answer by ssh: {}", said(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str], one_machine: bool) -> Hosts {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Hosts { processors: vec![3, 5], names, one_machine }
    }

    #[test]
    fn ranks_of_one_machine_share_its_processors() {
        for hosts in [hosts(&[], true), hosts(&["a", "b"], true)] {
            assert_eq!(hosts.pins(2), [3, 5]);
            assert!(hosts.is_oversubscribed(4) && hosts.pins(4).is_empty());
        }
    }

    #[test]
    fn machines_have_processors_of_their_own() {
        let hosts = hosts(&["a", "b"], false);
        assert_eq!((hosts.pins(2), hosts.pins(4)), (vec![3, 3], vec![3, 5, 3, 5]));
        assert!(!hosts.is_oversubscribed(4) && hosts.is_oversubscribed(6));
        assert_eq!(hosts.with_slots(4), "a:2,b:2");
    }
}
