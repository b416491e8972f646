//! Where another process of this host finds a memfd, without a launcher that could pass the descriptor on: `/proc/PID/fd/NUMBER`.
//! Nothing listens, nothing has a name in a file system, and nothing is left when the processes have ended.
//!
//! - HV1: other users cannot open it. The kernel lets a process follow such a link only if it may read the memory of
//!   that process: the same user, or root. Such a process needs no link to do harm.
//! - HV2: nobody can pass another descriptor off as the one that was offered. When the link is followed, the process may
//!   have ended, and its number may belong to another one. So the link is followed without opening what is behind it;
//!   that must be a memfd with the very name that was offered, which contains 128 random bits and is visible only to those
//!   who could open it anyway. Only then it is opened. As secret as the offer is kept, as secret is the name.
//! - HV3: a number of a process means something only in its PID namespace, so that is part of the offer, too.
//! - HV4: whoever maps the descriptor checks what is behind it, its seals above all, as if it were inherited.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Mode, OFlags, open};

use crate::platform::sys;

/// Returns a name for a memfd that will be offered, which nobody can guess.
///
/// # Errors
/// What the system answers.
pub(crate) fn secret_name() -> io::Result<String> {
    Ok(format!("{:032x}", u128::from_ne_bytes(sys::random()?)))
}

/// What the link of a memfd says before and after its name.
const LINK: (&str, &str) = ("/memfd:", " (deleted)");

/// Where a descriptor is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    namespace: u64,
    pid: u32,
    number: u32,
    /// The text of the link.
    link: String,
}

impl Offer {
    /// Describes a descriptor, which must stay open under its number.
    pub fn of(descriptor: impl AsFd) -> io::Result<Self> {
        let number = descriptor.as_fd().as_raw_fd();
        let link = link(&descriptor)?;
        let (namespace, pid) = (pid_namespace(), std::process::id());
        Ok(Self { namespace, pid, number: number as u32, link })
    }

    /// Returns the offer as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let Self { namespace, pid, number, link } = self;
        format!("{namespace} {pid} {number} {link}").into_bytes()
    }

    /// Reads an offer, which is a claim of a peer; `None` if it is none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(bytes).ok()?.splitn(4, ' ');
        let offer = Self {
            namespace: words.next()?.parse().ok()?,
            pid: words.next()?.parse().ok()?,
            number: words.next()?.parse().ok()?,
            link: words.next()?.to_owned(),
        };
        let is_memfd = offer.link.starts_with(LINK.0) && offer.link.ends_with(LINK.1);
        (is_memfd && offer.pid > 0).then_some(offer)
    }

    /// Opens what is offered (HV2, HV3).
    pub fn open(&self) -> io::Result<OwnedFd> {
        if self.namespace != pid_namespace() {
            return Err(io::Error::other("it runs in another PID namespace"));
        }
        let path = format!("/proc/{}/fd/{}", self.pid, self.number);
        let found = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        if link(&found)? != self.link {
            return Err(io::Error::other("it has closed that memory"));
        }
        let path = format!("/proc/self/fd/{}", found.as_raw_fd());
        Ok(open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
    }
}

/// The link of a descriptor, which names what is behind it.
fn link(descriptor: impl AsFd) -> io::Result<String> {
    let path = format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd());
    let link = fs::read_link(path)?.into_os_string().into_string();
    link.map_err(|_| io::Error::other("its name is no text"))
}

/// The PID namespace of this process; 0 if unknown.
pub(crate) fn pid_namespace() -> u64 {
    // Following the link leads to the namespace itself.
    fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    fn memory(name: &str) -> OwnedFd {
        memfd_create(name, MemfdFlags::CLOEXEC).expect("memfd")
    }

    #[test]
    fn what_is_offered_is_opened() {
        let name = "0123456789abcdef";
        let offered = memory(name);
        let offer = Offer::of(&offered).expect("a link");
        assert_eq!(offer.link, format!("/memfd:{name} (deleted)"));
        let read = Offer::decode(&offer.encode()).expect("an offer");
        assert_eq!(read, offer);
        let opened = read.open().expect("this process may");
        let inode = |fd: &OwnedFd| rustix::fs::fstat(fd).expect("a file").st_ino;
        assert_eq!(inode(&opened), inode(&offered));
        assert_eq!(rustix::io::pwrite(&opened, b"x", 0), Ok(1), "it can be written");
    }

    #[test]
    fn something_else_under_the_number_is_refused() {
        let offered = memory("a");
        let offer = Offer::of(&offered).expect("a link");
        let other = Offer { link: "/memfd:b (deleted)".to_owned(), ..offer.clone() };
        let error = other.open().expect_err("the names differ");
        assert_eq!(error.to_string(), "it has closed that memory");
        let closed = Offer { number: 1_000_000, ..offer.clone() };
        assert_eq!(closed.open().expect_err("no such number").kind(), io::ErrorKind::NotFound);
        let elsewhere = Offer { namespace: offer.namespace + 1, ..offer };
        let error = elsewhere.open().expect_err("the namespaces differ");
        assert_eq!(error.to_string(), "it runs in another PID namespace");
    }

    #[test]
    fn what_is_no_offer_is_refused() {
        for text in [
            "",
            "1 2 3",
            "1 2 3 /tmp/file",
            "1 2 3 /memfd:a",
            "1 0 3 /memfd:a (deleted)",
            "1 -2 3 /memfd:a (deleted)",
            "x 2 3 /memfd:a (deleted)",
        ] {
            assert_eq!(Offer::decode(text.as_bytes()), None, "{text:?}");
        }
        assert!(Offer::decode(b"1 2 3 /memfd:a b (deleted)").is_some());
    }
}
