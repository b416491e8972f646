//! Starts programs on hosts as ssh does, with a line that goes over their network, so that a cable that is out cuts it.
//!
//! - `line HOST PROGRAM ARGUMENTS...` starts a program on a host, and is its standard input and output.
//! - `line serve PROGRAM ARGUMENTS...` is the other end: it prints the port that it listens on, and becomes the program
//!   once the line has come.

#![allow(clippy::print_stdout, reason = "a program talks to its user")]

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [serve, program, arguments @ ..] if serve == "serve" => {
            Err(become_other(program, arguments)?)
        }
        [host, program @ ..] => connect(host, program),
        [] => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    }
}

fn become_other(program: &str, arguments: &[String]) -> io::Result<io::Error> {
    let listener = TcpListener::bind(("0.0.0.0", 0))?;
    println!("{}", listener.local_addr()?.port());
    let (stream, _) = listener.accept()?;
    let ends = (OwnedFd::from(stream.try_clone()?), OwnedFd::from(stream));
    Ok(Command::new(program).args(arguments).stdin(ends.0).stdout(ends.1).exec())
}

fn connect(host: &str, program: &[String]) -> io::Result<()> {
    let mut enter = Command::new("enter");
    enter.arg(host).arg(std::env::current_exe()?).arg("serve").args(program);
    let mut other = enter.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut port = String::new();
    BufReader::new(other.stdout.take().expect("it is piped")).read_line(&mut port)?;
    let mut stream = TcpStream::connect(format!("{host}:{}", port.trim()))?;
    let mut there = stream.try_clone()?;
    thread::spawn(move || {
        // A line that ends early ends the other direction, too.
        let _ = pass_on(&mut io::stdin().lock(), &mut there);
        let _ = there.shutdown(Shutdown::Write);
    });
    // Without a buffer: no line breaks say where messages end.
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    pass_on(&mut stream, &mut out)
}

/// Passes on what comes when it comes, which `io::copy` does not promise.
fn pass_on(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            len => to.write_all(&bytes[..len])?,
        }
    }
}
