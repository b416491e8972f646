//! The connection to a process manager of PMI: records out and in, one answer for each question.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::record::{Form, LENGTH, MAX_RECORD, Record};
use super::{ExchangeError, Manager};

/// A connection to a process manager.
#[derive(Debug)]
pub(super) struct Line {
    manager: Manager,
    /// How records are written from now on, both ways.
    pub(super) form: Form,
    socket: OwnedFd,
    /// What has arrived and was not read.
    unread: Vec<u8>,
}

impl Line {
    /// A line that begins with lines of text, as both versions of PMI do.
    pub(super) fn new(manager: Manager, socket: OwnedFd) -> Self {
        Self { manager, form: Form::Line, socket, unread: Vec::new() }
    }

    /// Asks `question`, and returns the answer, which must have the command `answer` and no error in its `rc`. `to` says
    /// what this is for, in errors.
    pub(super) fn ask(
        &mut self,
        question: &Record,
        answer: &str,
        to: &'static str,
    ) -> Result<Record, ExchangeError> {
        let record = self.ask_anything(question, answer, to)?;
        match record.number("rc") {
            None | Some(0) => Ok(record),
            Some(_) => Err(self.refused(&record, to)),
        }
    }

    /// Like [`Line::ask`], whatever the answer's `rc`.
    pub(super) fn ask_anything(
        &mut self,
        question: &Record,
        answer: &str,
        to: &'static str,
    ) -> Result<Record, ExchangeError> {
        self.tell(question, to)?;
        self.hear(answer, to)
    }

    /// Waits for a record of the command `answer`.
    pub(super) fn hear(&mut self, answer: &str, to: &'static str) -> Result<Record, ExchangeError> {
        let manager = self.manager;
        let failed = |source| ExchangeError::Connection { manager, to, source };
        let text = self.receive().map_err(failed)?;
        let record = Record::decode(self.form, &text);
        record.filter(|record| record.command() == answer).ok_or_else(|| {
            let answer = String::from_utf8_lossy(&text).trim().to_owned();
            ExchangeError::Unexpected { manager, to, answer }
        })
    }

    /// Sends a record that has no answer.
    pub(super) fn tell(&mut self, record: &Record, to: &'static str) -> Result<(), ExchangeError> {
        let manager = self.manager;
        self.send(record.encode(self.form).as_bytes()).map_err(|source| ExchangeError::Connection {
            manager,
            to,
            source,
        })
    }

    /// The error for an answer that says no.
    pub(super) fn refused(&self, answer: &Record, to: &'static str) -> ExchangeError {
        let answer = answer.encode(self.form).trim().to_owned();
        ExchangeError::Refused { manager: self.manager, to, answer }
    }

    fn send(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        match self.form {
            Form::Line => loop {
                if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                    let mut line = self.take(end + 1)?;
                    line.truncate(end);
                    return Ok(line);
                }
                self.receive_more()?;
            },
            Form::Counted => {
                let length = self.take(LENGTH)?;
                let length = Record::length(&length).ok_or_else(|| {
                    let what = format!("{:?} is no length", String::from_utf8_lossy(&length));
                    io::Error::new(ErrorKind::InvalidData, what)
                })?;
                self.take(length)
            }
        }
    }

    /// Takes the next `len` bytes.
    fn take(&mut self, len: usize) -> io::Result<Vec<u8>> {
        while self.unread.len() < len {
            self.receive_more()?;
        }
        let rest = self.unread.split_off(len);
        Ok(std::mem::replace(&mut self.unread, rest))
    }

    fn receive_more(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        let received = match recv(&self.socket, &mut bytes[..], RecvFlags::empty()) {
            Ok((_, 0)) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "it was closed")),
            Ok((_, received)) => received,
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        self.unread.extend(&bytes[..received]);
        if self.unread.len() > MAX_RECORD {
            return Err(io::Error::new(ErrorKind::InvalidData, "a record has no end"));
        }
        Ok(())
    }
}
