//! Which networks understand each other, by what ranks say of theirs.
//!
//! Each rank says which provider it has, and of which libfabric. TCP's provider is called `net` in libfabric 1.17, and `tcp`
//! later; 1.17, 2.4 and 2.5 were tried, and understand each other. The `ofi_rxm` of 1.17 and that of 2.5 do not, though they
//! call their protocol the same. So all other providers have to be of the same version.

use crate::adapter::TaskId;

/// What a rank says of its network: the provider of this name, of this libfabric.
pub(crate) fn network(provider: &str, (major, minor): (u32, u32), is_ipv6: bool) -> String {
    let addresses = if is_ipv6 { " with IPv6" } else { "" };
    format!("{provider}{addresses} of libfabric {major}.{minor}")
}

/// What two networks have in common if they understand each other.
fn language(network: &str) -> &str {
    match network.split_once(" of libfabric ") {
        Some(("net" | "tcp", _)) => "tcp",
        Some(("net with IPv6" | "tcp with IPv6", _)) => "tcp with IPv6",
        _ => network,
    }
}

/// Returns whether two networks understand each other.
pub fn understand_each_other(one: &str, other: &str) -> bool {
    language(one) == language(other)
}

/// Returns why a rank cannot reach another one, whose network it does not understand: a clause whose subject is the rank. Each is
/// given as its host and its network.
pub fn estrangement(
    (host, network): (&str, &str),
    (other, its_host, its_network): (TaskId, &str, &str),
) -> String {
    format!(
        "cannot reach rank {other} on host {its_host}: the network of host {host} is {network}, and that of host \
         {its_host} is {its_network}, which do not understand each other; install the same libfabric on all hosts, or \
         name a network that all of them have by MPJ_FABRIC=provider"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_is_understood_in_all_versions_and_others_in_their_own() {
        let named = |provider, version| network(provider, version, false);
        let (net, tcp) = (named("net", (1, 17)), named("tcp", (2, 5)));
        assert!(understand_each_other(&net, &tcp));
        let [one, other] = [(2, 1), (2, 5)].map(|version| named("verbs;ofi_rxm", version));
        assert!(understand_each_other(&one, &one) && !understand_each_other(&one, &other));
        let [old, new] = [("net", (1, 17)), ("tcp", (2, 5))]
            .map(|(provider, version)| network(provider, version, true));
        assert!(understand_each_other(&old, &new) && !understand_each_other(&tcp, &new));
        assert!(!understand_each_other(&tcp, &named("tcp;ofi_rxm", (2, 5))));
    }

    #[test]
    fn both_hosts_are_named_with_their_networks() {
        let other = network("verbs;ofi_rxm", (2, 5), true);
        let why = estrangement(("b", &other), (4, "a", &network("tcp", (1, 18), false)));
        for words in [
            "cannot reach rank 4 on host a",
            "b is verbs;ofi_rxm with IPv6 of libfabric 2.5",
            "a is tcp of libfabric 1.18",
        ] {
            assert!(why.contains(words), "{why}");
        }
    }
}
