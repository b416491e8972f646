//! How peers start jobs over several hosts, by ssh: each is told the hosts, and which network to use where it has
//! several.

use std::process::Command;

use super::{Flavour, Peer};
use crate::hosts::Hosts;

/// How ranks reach other hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// By libfabric.
    Libfabric,
    /// By the MPI's own use of TCP, which Open MPI has besides.
    Tcp,
}

impl Peer {
    /// Returns this peer once for each network that it has between hosts.
    pub fn networks(self) -> Vec<Self> {
        let named = |network, sign: &str, name: &str| Self {
            id: format!("{}-{sign}", self.id),
            label: format!("{}, {name}", self.label),
            network,
            ..self.clone()
        };
        match self.flavour {
            Flavour::OpenMpi => vec![
                named(Network::Libfabric, "ofi", "libfabric"),
                named(Network::Tcp, "tcp", "own TCP"),
            ],
            Flavour::Mpich | Flavour::Intel | Flavour::Libmpi => vec![self],
        }
    }

    /// Adds to the command of a job on one host what takes it to several.
    pub(super) fn over(&self, ranks: usize, hosts: &Hosts, command: &mut Command) {
        let (slots, each) = (hosts.with_slots(ranks), hosts.each(ranks).to_string());
        // Ranks that share a processor have to give it to each other.
        let yields = hosts.is_oversubscribed(ranks);
        match self.flavour {
            Flavour::OpenMpi => {
                // Open MPI itself excludes the provider of TCP, too.
                let of_network = match self.network {
                    Network::Libfabric => {
                        "pml cm --mca mtl ofi --mca opal_common_ofi_provider_exclude shm,sockets,udp"
                    }
                    Network::Tcp => "pml ob1 --mca btl tcp,self,sm",
                };
                command.args(["--host", &slots, "--mca"]).args(of_network.split(' '));
                if yields {
                    command.args(["--mca", "mpi_yield_when_idle", "1"]);
                }
            }
            Flavour::Mpich => {
                command.args(["-launcher", "ssh", "-hosts", &slots]);
                command.env("MPIR_CVAR_CH4_NETMOD", "ofi");
            }
            Flavour::Intel => {
                let names = hosts.names.join(",");
                command.args(["-bootstrap", "ssh", "-hosts", &names, "-ppn", &each]);
                command.env("FI_PROVIDER", "tcp");
                let prefix = self.mpicc.parent().and_then(|bin| bin.parent());
                command.envs(prefix.map(|prefix| ("FI_PROVIDER_PATH", prefix.join("lib"))));
                if yields {
                    command.env("I_MPI_THREAD_YIELD", "2");
                }
            }
            Flavour::Libmpi => _ = command.args(["--hosts", &slots]),
        }
    }
}
