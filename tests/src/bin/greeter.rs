//! Programs that meet over TCP, for the tests of the hosts that they run on.
//!
//! - `greeter listen` prints the port that it listens on, answers one greeting, and ends.
//! - `greeter greet HOST PORT` greets that, and prints the answer and the address that it came from.
//! - `greeter disturb HOST PORT...` says things at random to whatever listens there, in many connections, and leaves some
//!   of them open until its input ends.

#![allow(clippy::print_stdout, reason = "a program talks to its user")]

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use mpj_tests::conformance::Numbers;

/// Connections to each port.
const CONNECTIONS: usize = 40;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["listen"] => listen(),
        ["greet", host, port] => greet(host, port),
        ["disturb", host, ref ports @ ..] => disturb(host, ports),
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

fn disturb(host: &str, ports: &[&str]) -> io::Result<()> {
    let mut numbers = Numbers(53);
    let mut open = Vec::new();
    for port in ports.iter().flat_map(|port| std::iter::repeat_n(port, CONNECTIONS)) {
        let mut stream = TcpStream::connect(format!("{host}:{port}"))?;
        let words: Vec<u8> = (0..numbers.below(3_000)).map(|_| numbers.below(256) as u8).collect();
        // Whoever listens may hang up.
        let _ = stream.write_all(&words);
        if numbers.below(4) == 0 {
            open.push(stream);
        }
    }
    println!("disturbed");
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    Ok(())
}
