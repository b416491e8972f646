//! One of the launcher's own streams, written without blocking (O3 of [`super`]).
//!
//! Poll does not say how much a terminal takes, and it may tell two writers of one pipe that there is room. So the
//! write itself must not block. The shell and other programs share the descriptor, so it cannot get the flag
//! O_NONBLOCK: pipes and terminals are opened anew with the flag, and a socket has calls that do not block.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, major, minor, open};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::stdio::{stderr, stdout};
use rustix::termios::isatty;

use super::Stream;

/// The device `ptmx`: to open it anew would create another terminal.
const TERMINAL_MAKER: (u32, u32) = (5, 2);

/// The kind of file that a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Terminal,
    Pipe,
    Socket,
    /// A file, or a device that is no terminal, such as `/dev/null`.
    Other,
}

/// A stream of the launcher.
#[derive(Debug)]
pub(super) struct Sink {
    stream: Stream,
    pub(super) kind: Kind,
    /// The same pipe or terminal, opened anew, unless that was refused.
    anew: Option<OwnedFd>,
}

impl Sink {
    pub(super) fn new(stream: Stream) -> Self {
        let status = fstat(own(stream)).ok();
        let kind = status.as_ref().map_or(Kind::Other, |status| kind(stream, status));
        let makes_terminals =
            |status: &Stat| (major(status.st_rdev), minor(status.st_rdev)) == TERMINAL_MAKER;
        let is_reopened = matches!(kind, Kind::Pipe | Kind::Terminal)
            && !status.as_ref().is_some_and(makes_terminals);
        Self { stream, kind, anew: is_reopened.then(|| reopen(stream)).flatten() }
    }

    /// Writes as many of `bytes` as the stream takes. If it could not be opened anew, this may block, unless poll said
    /// that the stream takes some and the bytes are at most PIPE_BUF.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self.kind {
            Kind::Socket => send(self, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            _ => rustix::io::write(self, bytes),
        }
    }
}

impl AsFd for Sink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.anew.as_ref().map_or(own(self.stream), OwnedFd::as_fd)
    }
}

/// The launcher's own descriptor.
pub(super) fn own(stream: Stream) -> BorrowedFd<'static> {
    match stream {
        Stream::Out => stdout(),
        Stream::Err => stderr(),
    }
}

fn kind(stream: Stream, status: &Stat) -> Kind {
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Fifo => Kind::Pipe,
        FileType::Socket => Kind::Socket,
        _ if isatty(own(stream)) => Kind::Terminal,
        _ => Kind::Other,
    }
}

/// Opens a stream anew. The kernel refuses it, for example, for a pipe of another user, or without a reader.
fn reopen(stream: Stream) -> Option<OwnedFd> {
    let number = match stream {
        Stream::Out => "1",
        Stream::Err => "2",
    };
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open(format!("/proc/self/fd/{number}"), flags, Mode::empty()).ok()
}
