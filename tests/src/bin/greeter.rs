//! Programs that meet over TCP, for the tests of the hosts that they run on.
//!
//! - `greeter listen` prints the port that it listens on, answers one greeting, and ends.
//! - `greeter greet HOST PORT` greets that, and prints the answer and the address that it came from.
//! - `greeter disturb HOST PORT...` says things at random to whatever listens there, in many connections, and leaves some
//!   of them open until its input ends.

//! - `greeter forge HOST PORT...` sends packets over libfabric to endpoints there, as a rank of another job would.

#![allow(clippy::print_stdout, reason = "a program talks to its user")]

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};

use mpj_tests::conformance::Numbers;
use transport_lapi::adapters::ofi::{Bare, Fabric};
use transport_lapi::config::FabricChoice;

/// Connections to each port.
const CONNECTIONS: usize = 40;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["listen"] => listen(),
        ["greet", host, port] => greet(host, port),
        ["disturb", host, ref ports @ ..] => disturb(host, ports),
        ["forge", host, ref ports @ ..] => forge(host, ports),
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

/// Each packet has the number that is due, and a token that is none.
fn forge(host: &str, ports: &[&str]) -> io::Result<()> {
    let mut numbers = Numbers(54);
    let fabric = Fabric::open(&FabricChoice::Auto).map_err(io::Error::other)?;
    for port in ports {
        let endpoint = fabric.endpoint().map_err(io::Error::other)?;
        let mut found = format!("{host}:{port}").to_socket_addrs()?;
        let Some(SocketAddr::V4(to)) = found.find(SocketAddr::is_ipv4) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        // As the kernel writes it: family, port, address.
        let mut address = endpoint.address().to_vec();
        address[2..4].copy_from_slice(&to.port().to_be_bytes());
        address[4..8].copy_from_slice(&to.ip().octets());
        let mut stranger = Bare::new(endpoint, &address).ok_or(io::ErrorKind::AddrNotAvailable)?;
        for origin in [0_u32, 1, 7] {
            let token = std::array::from_fn::<u8, 8, _>(|_| numbers.below(256) as u8);
            let frames = [0; 3_000];
            let packet = [&token[..], &origin.to_le_bytes(), &0_u32.to_le_bytes(), &frames];
            if !stranger.send(&packet.concat()) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        stranger.flush();
    }
    println!("disturbed");
    Ok(())
}
