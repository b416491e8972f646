//! Which provider of libfabric a job uses, and which of its domains: a pure function of what the library offers.
//!
//! Fast networks come first, then TCP. A provider named by `MPJ_FABRIC` is taken whatever it is.

use crate::adapter::GetKind;

/// `MPJ_FABRIC`: which provider of libfabric is used, and which of its domains.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FabricChoice {
    /// The best that is there, never one that reaches this host only.
    #[default]
    Auto,
    /// This one.
    Named {
        /// The provider, as `fi_info` names it.
        provider: String,
        /// The domain, mostly that of an interface; `None` for the provider's first that reaches other hosts.
        domain: Option<String>,
    },
}

impl FabricChoice {
    /// Parses `auto`, `PROVIDER` or `PROVIDER:DOMAIN`.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "auto" {
            return Some(Self::Auto);
        }
        let (provider, domain) = match text.split_once(':') {
            Some((provider, domain)) => (provider, Some(domain)),
            None => (text, None),
        };
        // Names of providers have no capital letters.
        let is_name = |name: &str| !name.bytes().any(|byte| byte.is_ascii_uppercase());
        let is_whole = !provider.is_empty() && is_name(provider) && domain != Some("");
        let domain = domain.map(str::to_owned);
        is_whole.then(|| Self::Named { provider: provider.to_owned(), domain })
    }
}

/// Providers that are taken by themselves, the best first. From 1.18 on `tcp` has the kind of endpoint that is needed;
/// before, `net` has it.
const PREFERRED: [&str; 8] = ["cxi", "efa", "psm3", "psm2", "opx", "verbs;ofi_rxm", "tcp", "net"];

/// The provider at the bottom. Names behind a semicolon are layers above it.
fn lowest(provider: &str) -> &str {
    provider.split(';').next().unwrap_or_default()
}

/// Whether a provider sends by the system's TCP.
pub(super) fn is_over_tcp(provider: &str) -> bool {
    ["tcp", "net", "sockets"].contains(&lowest(provider))
}

/// One way to a network that the library offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Offer {
    /// Name of the provider.
    pub(super) provider: String,
    /// Name of the domain, mostly that of an interface.
    pub(super) domain: String,
    /// Whether only this host is reached that way.
    pub(super) is_loopback: bool,
    /// Whether the address is one of IPv6.
    pub(super) is_ipv6: bool,
    /// Whether it reads memory of other tasks (FI_RMA).
    pub(super) has_rma: bool,
    /// Whether its writes end when the bytes are in place (FI_DELIVERY_COMPLETE).
    pub(super) has_writes: bool,
}

impl Offer {
    /// How the provider reads memory of other tasks, if it does.
    pub(super) fn reads(&self) -> GetKind {
        // Reads over TCP and UDP are made of messages.
        let by_software = is_over_tcp(&self.provider) || lowest(&self.provider) == "udp";
        if by_software { GetKind::RemoteSoftware } else { GetKind::RemoteDirect }
    }

    /// Whether hardware writes the memory of other tasks, and begins nothing more once a registration has ended. Software of
    /// a network may go on with what it has begun.
    pub(super) fn writes_by_hardware(&self) -> bool {
        let is_over_datagrams = self.provider.ends_with(";ofi_rxd");
        self.has_writes && ["verbs", "cxi"].contains(&lowest(&self.provider)) && !is_over_datagrams
    }
}

/// The offer that is taken, with the reason.
///
/// # Errors
/// A sentence that says why none is taken, and what to change.
pub(super) fn choose(offers: &[Offer], choice: &FabricChoice) -> Result<(usize, String), String> {
    let usable: Vec<(usize, &Offer)> =
        offers.iter().enumerate().filter(|(_, offer)| fits(offer, choice)).collect();
    let rank = |offer: &Offer| {
        let place = PREFERRED.iter().position(|name| *name == offer.provider);
        (place.unwrap_or(PREFERRED.len()), offer.is_loopback, offer.is_ipv6, !offer.has_rma)
    };
    // The first of equals: providers list their fastest interface first.
    let Some((index, taken)) = usable.into_iter().min_by_key(|(_, offer)| rank(offer)) else {
        return Err(refusal(offers, choice));
    };
    let why = match choice {
        FabricChoice::Auto => "the first of the preferred providers that is offered here",
        FabricChoice::Named { .. } => "named by MPJ_FABRIC",
    };
    let mut others: Vec<&str> = offers.iter().map(|offer| &*offer.provider).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|name| *name != taken.provider);
    let others: Vec<String> = others
        .into_iter()
        .map(|other| format!("{other}{}", why_not(offers, choice, other)))
        .collect();
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; also offered: {}", others.join(", ")),
    };
    Ok((index, format!("{}:{}, {why}{others}", taken.provider, taken.domain)))
}

/// Why a provider that is offered is not taken, in parentheses.
fn why_not(offers: &[Offer], choice: &FabricChoice, provider: &str) -> &'static str {
    let mut of_provider = offers.iter().filter(|offer| offer.provider == provider);
    match choice {
        FabricChoice::Named { .. } => "",
        _ if !PREFERRED.contains(&provider) => " (only if named)",
        _ if of_provider.all(|offer| offer.is_loopback) => " (reaches only this host)",
        _ => " (comes later)",
    }
}

fn fits(offer: &Offer, choice: &FabricChoice) -> bool {
    match choice {
        FabricChoice::Auto => PREFERRED.contains(&&*offer.provider) && !offer.is_loopback,
        FabricChoice::Named { provider, domain } => {
            offer.provider == *provider
                && domain.as_ref().map_or(!offer.is_loopback, |domain| offer.domain == *domain)
        }
    }
}

fn refusal(offers: &[Offer], choice: &FabricChoice) -> String {
    let mut ways: Vec<String> =
        offers.iter().map(|offer| format!("{}:{}", offer.provider, offer.domain)).collect();
    ways.sort_unstable();
    ways.dedup();
    let ways = match ways.is_empty() {
        true => "libfabric offers nothing here".to_owned(),
        false => format!("libfabric offers {}", ways.join(", ")),
    };
    match choice {
        FabricChoice::Auto => {
            format!(
                "no network to other hosts was found: {ways}; name one by MPJ_FABRIC=provider:domain"
            )
        }
        FabricChoice::Named { provider, domain } => {
            let domain = domain.as_ref().map_or(String::new(), |domain| format!(":{domain}"));
            format!("MPJ_FABRIC={provider}{domain} is not there: {ways}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(provider: &str, domain: &str) -> Offer {
        let (provider, domain) = (provider.to_owned(), domain.to_owned());
        let (is_loopback, is_ipv6) = (domain == "lo", domain.ends_with('6'));
        let (has_rma, has_writes) = (false, false);
        Offer { is_loopback, is_ipv6, has_rma, has_writes, provider, domain }
    }

    fn named(provider: &str, domain: Option<&str>) -> FabricChoice {
        FabricChoice::Named { provider: provider.to_owned(), domain: domain.map(str::to_owned) }
    }

    #[test]
    fn fast_networks_come_first_and_loopback_never_by_itself() {
        let offers = [
            offer("sockets", "eth0"),
            offer("tcp", "lo"),
            offer("tcp", "eth0-6"),
            offer("tcp", "eth0"),
            offer("verbs;ofi_rxm", "mlx5_0"),
        ];
        let taken = |offers: &[Offer]| choose(offers, &FabricChoice::Auto).map(|(index, _)| index);
        assert_eq!(taken(&offers), Ok(4));
        assert_eq!(taken(&offers[..4]), Ok(3), "IPv4 before IPv6");
        assert_eq!(taken(&offers[..3]), Ok(2));
        let refused = taken(&offers[..2]).expect_err("only this host");
        assert!(refused.contains("libfabric offers sockets:eth0, tcp:lo;"), "{refused}");
        let (_, why) = choose(
            &[&offers[..], &[offer("net", "eth0"), offer("efa", "lo")]].concat(),
            &FabricChoice::Auto,
        )
        .expect("there is one");
        let expected = "also offered: efa (reaches only this host), net (comes later), sockets (only if named), tcp (comes later)";
        assert!(
            why.starts_with("verbs;ofi_rxm:mlx5_0, the first") && why.ends_with(expected),
            "{why}"
        );
        assert!(taken(&[]).expect_err("nothing").contains("offers nothing here"));
    }

    #[test]
    fn over_tcp_it_is_software_that_reads() {
        let of = |provider| offer(provider, "eth0").reads();
        assert_eq!(["tcp", "net", "udp;ofi_rxd"].map(of), [GetKind::RemoteSoftware; 3]);
        assert_eq!(["verbs;ofi_rxm", "cxi"].map(of), [GetKind::RemoteDirect; 2]);
    }

    #[test]
    fn only_hardware_writes() {
        let of = |provider| Offer { has_writes: true, ..offer(provider, "x") }.writes_by_hardware();
        assert_eq!(["verbs;ofi_rxm", "verbs", "cxi"].map(of), [true; 3]);
        assert_eq!(["tcp", "net", "verbs;ofi_rxd", "psm3", "efa"].map(of), [false; 5]);
        assert!(!Offer { has_writes: false, ..offer("cxi", "x") }.writes_by_hardware());
    }

    #[test]
    fn what_is_named_is_taken() {
        let offers = [offer("tcp", "eth0"), offer("tcp", "lo"), offer("sockets", "eth0")];
        let taken = |choice| choose(&offers, &choice);
        let (index, why) = taken(named("sockets", None)).expect("it is there");
        assert_eq!((index, &*why), (2, "sockets:eth0, named by MPJ_FABRIC; also offered: tcp"));
        assert_eq!(taken(named("tcp", Some("lo"))).expect("it is there").0, 1);
        assert_eq!(taken(named("tcp", None)).expect("it is there").0, 0);
        let refused = taken(named("tcp", Some("ib0"))).expect_err("it is not there");
        assert!(refused.starts_with("MPJ_FABRIC=tcp:ib0 is not there: "), "{refused}");
    }

    #[test]
    fn a_domain_follows_its_provider() {
        let named = |provider: &str, domain: Option<&str>| {
            let (provider, domain) = (provider.to_owned(), domain.map(str::to_owned));
            Some(FabricChoice::Named { provider, domain })
        };
        assert_eq!(FabricChoice::parse("auto"), Some(FabricChoice::Auto));
        assert_eq!(FabricChoice::parse("verbs;ofi_rxm"), named("verbs;ofi_rxm", None));
        assert_eq!(FabricChoice::parse("tcp:eth0"), named("tcp", Some("eth0")));
        assert_eq!(
            [":eth0", "tcp:", ":", "TCP"].map(FabricChoice::parse),
            [None, None, None, None]
        );
    }
}
