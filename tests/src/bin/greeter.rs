//! Two programs that meet over TCP, for the tests of the hosts that they run on.
//!
//! - `greeter listen` prints the port that it listens on, answers one greeting, and ends.
//! - `greeter greet HOST PORT` greets that, and prints the answer and the address that it came from.

#![allow(clippy::print_stdout, reason = "a program talks to its user")]

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["listen"] => listen(),
        ["greet", host, port] => greet(host, port),
        _ => Err(io::Error::from(io::ErrorKind::InvalidInput)),
    }
}

fn listen() -> io::Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", 0))?;
    println!("{}", listener.local_addr()?.port());
    let (mut stream, _) = listener.accept()?;
    let mut greeting = String::new();
    stream.read_to_string(&mut greeting)?;
    stream.write_all(greeting.to_uppercase().as_bytes())
}

fn greet(host: &str, port: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect(format!("{host}:{port}"))?;
    // Before its end, after which it has none.
    let address = stream.peer_addr()?.ip();
    stream.write_all(b"good morning")?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    println!("{answer} from {address}");
    Ok(())
}
