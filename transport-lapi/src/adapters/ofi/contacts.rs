//! First contacts: whether peers for whom packets wait, and to whom none was ever sent, can be reached at all.
//!
//! Until a connection stands, a provider answers -FI_EAGAIN, whatever the cause: a firewall that drops or refuses, an
//! interface that does not reach the other host, or a peer that does not poll. What can be told apart is asked of the kernel,
//! where addresses are those of TCP: it is to connect to the address of the peer, from that of this endpoint.
//!
//! - CK1: a peer counts as unreachable only if packets for it have waited for the whole limit, and the kernel was refused,
//!   or has had no answer in the second half of it. The kernel of a peer that computes, starts late or is stopped
//!   accepts the connection, so such a peer is waited for, without an end. Once a peer has taken a packet, it is never
//!   judged.
//! - CK2: what a provider refuses at the first contact counts as -FI_EAGAIN, so that the kernel's reason is told.
//! - CK3: a kernel does not answer either if a peer that does not poll has too many connections to accept. So that
//!   silence means nothing in jobs with many ranks, and a peer whose kernel has answered is not asked again.
//! - CK4: a peer takes the kernel's connection for a stranger's, and drops it.

use std::fmt;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};

use super::endpoint::Offered;
use crate::adapter::TaskId;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Most connections that are tried at a time. Other peers are judged later.
const MOST_TRIED: usize = 16;

/// See the head of this file.
pub(super) struct Contacts {
    /// The address of the endpoint; `None` if it is not one of TCP.
    own: Option<SocketAddr>,
    limit: Duration,
    /// Whether no answer means that a peer is out of reach (CK3).
    silence_counts: bool,
    looked: Option<Instant>,
    awaited: FxHashMap<TaskId, Contact>,
}

/// A peer that has not taken a packet.
struct Contact {
    /// When a packet for it was first seen to wait.
    since: Instant,
    attempt: Option<Attempt>,
}

/// What the kernel was asked.
enum Attempt {
    Connecting(OwnedFd),
    Refused(Errno),
    /// The kernel of the peer has answered (CK3).
    Answered,
}

/// Why a peer counts as unreachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreachable {
    own: IpAddr,
    peer: SocketAddr,
    limit: Duration,
    /// What the kernel says; `None` if there was no answer.
    refusal: Option<Errno>,
}

impl Contacts {
    /// For a job of so many tasks.
    pub(super) fn new(own: Option<SocketAddr>, limit: Duration, num_tasks: usize) -> Self {
        // Each of them may have two connections and one of the kernel's.
        let silence_counts = own.is_some() && 4 * num_tasks <= backlog();
        Self { own, limit, silence_counts, looked: None, awaited: FxHashMap::default() }
    }

    /// What an offer means whose result is this, to a peer that `was_met` before (CK2).
    pub(super) fn weigh(&self, offered: Offered, was_met: bool) -> Offered {
        match offered {
            Offered::Refused if self.own.is_some() && !was_met => Offered::Again,
            offered => offered,
        }
    }

    /// Whether peers should be looked at, which are awaited if `some_wait`.
    pub(super) fn is_due(&mut self, some_wait: bool) -> bool {
        if !some_wait && self.awaited.is_empty() {
            return false;
        }
        let is_due = self.own.is_some() && self.looked.is_none_or(|at| at.elapsed() >= LOOK);
        if is_due {
            self.looked = Some(Instant::now());
        }
        is_due
    }

    /// Forgets the peers that are not awaited any more.
    pub(super) fn keep(&mut self, is_awaited: impl Fn(TaskId) -> bool) {
        self.awaited.retain(|task, _| is_awaited(*task));
    }

    /// Looks at a peer that is awaited at this `address`. Returns why it cannot be reached, if that is certain (CK1).
    pub(super) fn look(
        &mut self,
        task: TaskId,
        address: impl FnOnce() -> Option<SocketAddr>,
    ) -> Option<Unreachable> {
        let (own, limit) = (self.own?, self.limit);
        let is_open = |it: &&Contact| matches!(it.attempt, Some(Attempt::Connecting(_)));
        let tried = self.awaited.values().filter(is_open).count();
        let new = || Contact { since: Instant::now(), attempt: None };
        let contact = self.awaited.entry(task).or_insert_with(new);
        let waited = contact.since.elapsed();
        let Some(attempt) = &contact.attempt else {
            if waited >= limit / 2 && tried < MOST_TRIED {
                // Those that had to wait for their turn get the second half, too.
                contact.since = Instant::now().checked_sub(limit / 2).unwrap_or(contact.since);
                contact.attempt = Some(Attempt::begin(own, address()?));
            }
            return None;
        };
        if waited < limit {
            return None;
        }
        let Err(refusal) = attempt.outcome() else {
            contact.attempt = Some(Attempt::Answered);
            return None;
        };
        *contact = new();
        if refusal.is_none() && !self.silence_counts {
            return None;
        }
        Some(Unreachable { own: own.ip(), peer: address()?, limit, refusal })
    }
}

impl Attempt {
    /// Begins to connect. What this process lacks for it, such as descriptors, the provider lacks, too.
    fn begin(own: SocketAddr, peer: SocketAddr) -> Self {
        Self::connect(own, peer).unwrap_or_else(Self::Refused)
    }

    fn connect(mut own: SocketAddr, peer: SocketAddr) -> Result<Self, Errno> {
        own.set_port(0);
        let family = if own.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        bind(&socket, &own)?;
        match connect(&socket, &peer) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Self::Connecting(socket)),
            Err(refusal) => Err(refusal),
        }
    }

    /// Whether the kernel has connected; otherwise what it says, if anything.
    fn outcome(&self) -> Result<(), Option<Errno>> {
        let socket = match self {
            Self::Connecting(socket) => socket,
            Self::Refused(refusal) => return Err(Some(*refusal)),
            Self::Answered => return Ok(()),
        };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&at_once)) {
            Ok(0) => Err(None),
            // What cannot be asked is no refusal.
            Err(_) => Ok(()),
            Ok(_) => sockopt::socket_error(socket).unwrap_or(Ok(())).map_err(Some),
        }
    }
}

/// How many connections libfabric lets wait for a process that does not accept them, if the system has no lower limit.
const LISTENING: usize = 4096;

/// How many connections wait in the kernel for such a process, as far as is known.
fn backlog() -> usize {
    let limit = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
    limit.ok().and_then(|limit| limit.trim().parse().ok()).unwrap_or(128).min(LISTENING)
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { own, peer, limit, refusal } = self;
        let limit = limit.as_secs();
        write!(f, "at {peer} from {own}: ")?;
        match refusal {
            Some(refusal) => write!(f, "{refusal}, after {limit} s"),
            None => write!(f, "no answer for {limit} s"),
        }
    }
}

/// The address of TCP that these bytes of a provider are, as the kernel writes it (sockaddr_in, sockaddr_in6).
pub(super) fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    let ip: IpAddr = match i32::from(family) {
        libc::AF_INET => <[u8; 4]>::try_from(bytes.get(4..8)?).ok()?.into(),
        libc::AF_INET6 => {
            let ip = <[u8; 16]>::try_from(bytes.get(8..24)?).ok()?;
            // Addresses of a link need the number of the interface.
            let scope = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
            return Some(SocketAddrV6::new(ip.into(), port, 0, scope).into());
        }
        _ => return None,
    };
    Some((ip, port).into())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread::sleep;

    use super::*;

    const LIMIT: Duration = Duration::from_millis(60);

    /// What is found of a peer at this address once the limit is over, in a job of so many tasks.
    fn judged(peer: SocketAddr, num_tasks: usize) -> Option<Unreachable> {
        let mut contacts = Contacts::new(Some(([127, 0, 0, 1], 9).into()), LIMIT, num_tasks);
        assert!(contacts.is_due(true) && !contacts.is_due(true), "only after a while again");
        let mut look = || contacts.look(3, || Some(peer));
        for pause in [0, 40, 40] {
            sleep(Duration::from_millis(pause));
            if let Some(found) = look() {
                return Some(found);
            }
        }
        None
    }

    #[test]
    fn a_kernel_that_accepts_is_waited_for_and_one_that_refuses_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        assert_eq!(judged(address, 2), None);
        drop(listener);
        let found = judged(address, 1 << 20).expect("nobody listens");
        assert_eq!(found.refusal, Some(Errno::CONNREFUSED));
        let words = found.to_string();
        assert!(words.starts_with(&format!("at {address} from 127.0.0.1: ")), "{words}");
    }

    /// Behind its one connection that waits, the kernel leaves others without an answer.
    #[test]
    fn silence_counts_where_it_cannot_be_that_of_a_peer_with_too_many_connections() {
        let socket =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("a socket");
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        rustix::net::listen(&socket, 0).expect("it is bound");
        let listener = TcpListener::from(socket);
        let address = listener.local_addr().expect("it is bound");
        let first = std::net::TcpStream::connect(address).expect("it waits");
        let found = judged(address, 2).expect("no answer");
        assert_eq!(found.refusal, None);
        assert_eq!(judged(address, 1 << 20), None);
        drop(first);
    }

    #[test]
    fn a_peer_that_is_awaited_no_more_is_not_judged() {
        let mut contacts = Contacts::new(Some(([127, 0, 0, 1], 9).into()), Duration::ZERO, 2);
        let nobody = || Some(([127, 0, 0, 1], 1).into());
        assert_eq!(contacts.look(3, nobody), None, "it is asked first");
        contacts.keep(|task| task != 3);
        assert_eq!(contacts.look(3, nobody), None, "it is asked again");
        assert!(contacts.look(3, nobody).is_some());
        let mut others = Contacts::new(None, Duration::ZERO, 2);
        assert!(!others.is_due(true) && others.look(3, nobody).is_none(), "no address of TCP");
    }

    #[test]
    fn addresses_are_those_of_the_kernel() {
        let mut ipv4 = vec![0; 16];
        ipv4[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        ipv4[2..8].copy_from_slice(&[1, 2, 10, 0, 0, 7]);
        assert_eq!(socket_address(&ipv4), Some(([10, 0, 0, 7], 258).into()));
        let mut ipv6 = vec![0; 28];
        ipv6[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        (ipv6[3], ipv6[23]) = (80, 1);
        assert_eq!(socket_address(&ipv6), Some("[::1]:80".parse().expect("an address")));
        for len in [0, 1, 3, 7] {
            assert_eq!(socket_address(&ipv4[..len]), None);
        }
        assert_eq!(socket_address(&ipv6[..20]), None);
        assert_eq!(socket_address(&[7; 32]), None);
    }
}
