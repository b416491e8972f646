//! `MPJ_FABRIC`: which network reaches other hosts.

/// Which provider of libfabric is used, and which of its domains.
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
        let is_whole = !provider.is_empty() && domain.is_none_or(|domain| !domain.is_empty());
        let domain = domain.map(str::to_owned);
        is_whole.then(|| Self::Named { provider: provider.to_owned(), domain })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_follows_its_provider() {
        let named = |provider: &str, domain: Option<&str>| {
            let (provider, domain) = (provider.to_owned(), domain.map(str::to_owned));
            Some(FabricChoice::Named { provider, domain })
        };
        assert_eq!(FabricChoice::parse("auto"), Some(FabricChoice::Auto));
        assert_eq!(FabricChoice::parse("verbs;ofi_rxm"), named("verbs;ofi_rxm", None));
        assert_eq!(FabricChoice::parse("tcp:eth0"), named("tcp", Some("eth0")));
        assert_eq!([":eth0", "tcp:", ":"].map(FabricChoice::parse), [None, None, None]);
    }
}
