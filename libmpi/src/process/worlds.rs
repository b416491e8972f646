//! Further worlds (MPI-5.0 sections 11.7 to 11.10): processes that this one spawns, and groups that meet at a port or over
//! a socket.
//!
//! Arguments that count only at the root are checked only there. If they are wrong, the other ranks learn that the root has
//! failed.

use std::ffi::{c_char, c_int};
use std::os::fd::BorrowedFd;
use std::slice;
use std::sync::{Arc, Weak};

use mpicore::worlds::{self, Program};
use mpicore::{Communicator, Info};
use mpjdev::Device;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};
use crate::comm::Comm;
use crate::comm::create::{leader, place_of_new};
use crate::error::handler::{Handler, Place};
use crate::process::needed;

/// The most ranks that a job can have on one host, and so the most that can be spawned.
const MOST: i128 = 1024;

/// Makes the intercommunicator with the ranks that have spawned this process, of which this one was the root.
pub(super) fn parents(
    world: &Communicator,
    device: &'static Device,
    parent: u32,
) -> Outcome<Weak<Comm>> {
    let made = Comm::new(world.parents(parent)?, device, Place::new(Handler::Initial));
    made.core.set_name("MPI_COMM_PARENT");
    let handle = made.keep()?;
    Ok(Arc::downgrade(&*handle.find()?))
}

/// Returns the number of ranks and the smaller numbers that will do, as `soft` says: a list of numbers and of triples with
/// first, last and step.
fn soft_counts(soft: &str, most: c_int) -> Option<Vec<u32>> {
    let mut counts = Vec::new();
    for range in soft.split(',') {
        let numbers = range.split(':').map(|number| number.trim().parse::<i64>().map(i128::from));
        let numbers = numbers.collect::<Result<Vec<_>, _>>().ok()?;
        let (first, last, step) = match numbers[..] {
            [first] => (first, first, 1),
            [first, last] => (first, last, 1),
            [first, last, step] if step != 0 => (first, last, step),
            _ => return None,
        };
        let limit = MOST.min(most.into());
        let is_in = |count: &i128| (first - count) % step == 0;
        let between = first.min(last).max(1)..=first.max(last).min(limit);
        let is_reached = (last - first).signum() * step.signum() >= 0;
        counts.extend(between.filter(|count| is_reached && is_in(count)).map(|count| count as u32));
    }
    counts.sort_unstable_by(|one, other| other.cmp(one));
    counts.dedup();
    Some(counts)
}

/// Whether `host` is a name of this host.
fn is_here(host: &str) -> bool {
    let system = rustix::system::uname();
    let own = system.nodename().to_string_lossy();
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    host == "localhost" || host == own || short(host) == short(&own)
}

/// Reads the command of a program, with its hints.
///
/// # Safety
/// FC1: the command is a string or null, the arguments are a list of strings that ends with null, or null.
unsafe fn program(
    command: *const c_char,
    arguments: *const *mut c_char,
    most: c_int,
    info: MPI_Info,
) -> Outcome<Program> {
    let hints: Info = info.copied()?;
    // SAFETY: the caller's promise.
    let command = unsafe { out::bytes(command, MPI_ERR_ARG, "command") }?.trim_ascii();
    if most < 0 {
        return Err(Fault::argument(MPI_ERR_ARG, "maxprocs", format!("{most} is negative")));
    }
    let mut given = Vec::new();
    let mut next = arguments;
    // SAFETY: the caller's promise: there is a null behind the last one.
    while let Some(argument) = unsafe { next.as_ref() }.filter(|argument| !argument.is_null()) {
        // SAFETY: the caller's promise.
        given.push(unsafe { out::bytes(*argument, MPI_ERR_ARG, "argv") }?.to_vec());
        next = next.wrapping_add(1);
    }
    let text = |key: &[u8]| hints.get(key).map(|value| String::from_utf8_lossy(value).into_owned());
    if let Some(host) =
        text(b"host").filter(|host| !host.split(',').any(|host| is_here(host.trim())))
    {
        let text = format!(
            "host {host:?} is not the host of this job; ranks are spawned on that one only"
        );
        return Err(Fault::argument(MPI_ERR_SPAWN, "info", text));
    }
    let counts = match text(b"soft") {
        None => vec![most as u32],
        Some(soft) => {
            soft_counts(&soft, most).filter(|counts| !counts.is_empty()).ok_or_else(|| {
                let text = format!("soft {soft:?} names no number of ranks from 1 to {most}");
                Fault::argument(MPI_ERR_SPAWN, "info", text)
            })?
        }
    };
    Ok(Program {
        command: command.to_vec(),
        arguments: given,
        ranks: counts[0],
        or_fewer: counts[1..].to_vec(),
        folder: hints.get(b"wdir").map(<[u8]>::to_vec),
        path: hints.get(b"path").unwrap_or_default().to_vec(),
        variables: Vec::new(),
    })
}

/// Spawns these programs, of which `most` ranks were asked for each. Both count at the root only.
///
/// # Safety
/// FC1: the codes are null, or places for one code for each rank.
unsafe fn spawn(
    comm: MPI_Comm,
    root: c_int,
    newcomm: *mut MPI_Comm,
    codes: *mut c_int,
    read: impl FnOnce() -> Outcome<(Vec<Program>, Vec<c_int>)>,
) -> Outcome {
    // SAFETY: the caller's promise.
    let place = unsafe { place_of_new(newcomm, "intercomm") }?;
    let comm = comm.find()?;
    let root = leader(root, comm.core.size(), "root")?;
    let (programs, most, fault) = match (comm.core.rank() == root).then(read) {
        None => (Ok(Vec::new()), Vec::new(), None),
        Some(Ok((programs, most))) => (Ok(programs), most, None),
        Some(Err(fault)) => (Err(fault.text()), Vec::new(), Some(fault)),
    };
    let most = most.into_iter().map(|most| most as u64).collect();
    let made = comm.core.spawn(root, programs, most);
    let asked = match &made {
        Ok(spawned) => &spawned.counts,
        Err((_, counts)) => counts,
    };
    let len: u64 = asked.iter().map(|(_, asked)| asked).sum();
    if !codes.is_null() {
        // SAFETY: the caller's promise.
        let codes = unsafe { slice::from_raw_parts_mut(codes, len as usize) };
        let of_program = |(started, asked): &(u64, u64)| {
            let failed = std::iter::repeat_n(MPI_ERR_SPAWN, (asked - started) as usize);
            std::iter::repeat_n(MPI_SUCCESS, *started as usize).chain(failed)
        };
        codes
            .iter_mut()
            .zip(asked.iter().flat_map(of_program))
            .for_each(|(place, code)| *place = code);
    }
    match (made, fault) {
        (_, Some(fault)) => Err(fault.on(&comm)),
        (Err((error, _)), None) => Err(error.into()),
        (Ok(spawned), None) => {
            *place = comm.child(spawned.communicator)?;
            Ok(())
        }
    }
}

/// Writes the name of a port.
///
/// # Safety
/// FC1: the place has room for MPI_MAX_PORT_NAME bytes, or is null.
unsafe fn write_port(place: *mut c_char, port: &[u8]) -> Outcome {
    let mut len = 0;
    // SAFETY: the caller's promise.
    unsafe { out::text(place, &raw mut len, port, MPI_MAX_PORT_NAME) }
}

/// Makes an intercommunicator at a port, whose name counts at the root only.
///
/// # Safety
/// FC1: the name is a string or null.
unsafe fn at_port(
    (port, root, comm): (*const c_char, c_int, MPI_Comm),
    newcomm: *mut MPI_Comm,
    meet: impl FnOnce(&Communicator, &[u8], u32) -> Result<Communicator, mpicore::Error>,
) -> Outcome {
    // SAFETY: the caller's promise.
    let place = unsafe { place_of_new(newcomm, "newcomm") }?;
    let comm = comm.find()?;
    let root = leader(root, comm.core.size(), "root")?;
    let name = match comm.core.rank() == root && !port.is_null() {
        // SAFETY: the caller's promise.
        true => unsafe { out::bytes(port, MPI_ERR_PORT, "port_name") }?,
        // The root refuses an empty name, and tells the others.
        false => &[],
    };
    *place = comm.child(meet(&comm.core, name, root)?)?;
    Ok(())
}

/// Number of bytes that the ends of a socket exchange.
const GREETING: usize = 32;

/// Writes or reads all these bytes, also on a socket that does not block.
fn move_all(
    fd: BorrowedFd<'_>,
    ready: PollFlags,
    len: usize,
    mut part: impl FnMut(usize) -> Result<usize, Errno>,
) -> Outcome {
    let failed =
        |why: &str| Fault::argument(MPI_ERR_ARG, "fd", format!("the socket cannot be used: {why}"));
    let mut done = 0;
    while done < len {
        match part(done) {
            Ok(0) => return Err(failed("the other end is closed")),
            Ok(moved) => done += moved,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(fd, ready)], None);
            }
            Err(errno) => return Err(failed(&errno.to_string())),
        }
    }
    Ok(())
}

/// Exchanges greetings over a socket, and returns that of the other end.
fn greet(fd: BorrowedFd<'_>, own: [u64; 4]) -> Outcome<[u64; 4]> {
    let bytes: Vec<u8> = own.iter().flat_map(|word| word.to_le_bytes()).collect();
    move_all(fd, PollFlags::OUT, GREETING, |done| send(fd, &bytes[done..], SendFlags::NOSIGNAL))?;
    let mut other = [0; GREETING];
    move_all(fd, PollFlags::IN, GREETING, |done| rustix::io::read(fd, &mut other[done..]))?;
    let word =
        |at: usize| u64::from_le_bytes(other[8 * at..][..8].try_into().expect("eight bytes"));
    Ok([0, 1, 2, 3].map(word))
}

mpi! {
    fn MPI_Comm_spawn(
        command: *const c_char, argv: *mut *mut c_char, maxprocs: c_int, info: MPI_Info, root: c_int, comm: MPI_Comm,
        intercomm: *mut MPI_Comm, array_of_errcodes: *mut c_int
    ) -> c_int {
        spawn(comm, root, intercomm, array_of_errcodes, || {
            Ok((vec![program(command, argv, maxprocs, info)?], vec![maxprocs]))
        })
    }

    fn MPI_Comm_spawn_multiple(
        count: c_int, array_of_commands: *mut *mut c_char, array_of_argv: *mut *mut *mut c_char,
        array_of_maxprocs: *const c_int, array_of_info: *const MPI_Info, root: c_int, comm: MPI_Comm,
        intercomm: *mut MPI_Comm, array_of_errcodes: *mut c_int
    ) -> c_int {
        spawn(comm, root, intercomm, array_of_errcodes, || {
            if count < 1 {
                return Err(Fault::argument(MPI_ERR_ARG, "count", format!("{count} is not positive")));
            }
            let commands = out::list(array_of_commands, count.into(), "array_of_commands")?;
            let most = out::list(array_of_maxprocs, count.into(), "array_of_maxprocs")?;
            let infos = out::list(array_of_info, count.into(), "array_of_info")?;
            let programs = commands.iter().zip(most).zip(infos).enumerate().map(|(at, ((command, most), info))| {
                let arguments = match array_of_argv.is_null() {
                    true => std::ptr::null_mut(),
                    false => *array_of_argv.add(at),
                };
                program(*command, arguments, *most, *info)
            });
            Ok((programs.collect::<Outcome<_>>()?, most.to_vec()))
        })
    }

    fn MPI_Comm_get_parent(parent: *mut MPI_Comm) -> c_int {
        // The program may have freed it.
        let known = needed()?.parent.as_ref().and_then(Weak::upgrade);
        out::write(parent, "parent", known.map_or(MPI_COMM_NULL, |parent| parent.live_handle()))
    }

    fn MPI_Open_port(info: MPI_Info, port_name: *mut c_char) -> c_int {
        drop(info.copied()?);
        write_port(port_name, worlds::open_port(needed()?.world.core.process())?.as_bytes())
    }

    fn MPI_Close_port(port_name: *const c_char) -> c_int {
        let port = out::bytes(port_name, MPI_ERR_PORT, "port_name")?;
        Ok(needed()?.own.core.close_port(port)?)
    }

    fn MPI_Comm_accept(
        port_name: *const c_char, info: MPI_Info, root: c_int, comm: MPI_Comm, newcomm: *mut MPI_Comm
    ) -> c_int {
        let _ = info;
        at_port((port_name, root, comm), newcomm, Communicator::accept)
    }

    fn MPI_Comm_connect(
        port_name: *const c_char, info: MPI_Info, root: c_int, comm: MPI_Comm, newcomm: *mut MPI_Comm
    ) -> c_int {
        let _ = info;
        at_port((port_name, root, comm), newcomm, Communicator::connect)
    }

    fn MPI_Publish_name(service_name: *const c_char, info: MPI_Info, port_name: *const c_char) -> c_int {
        drop(info.copied()?);
        let service = out::bytes(service_name, MPI_ERR_ARG, "service_name")?;
        Ok(worlds::publish_name(service, out::bytes(port_name, MPI_ERR_PORT, "port_name")?)?)
    }

    fn MPI_Unpublish_name(service_name: *const c_char, info: MPI_Info, port_name: *const c_char) -> c_int {
        drop(info.copied()?);
        let _ = port_name;
        Ok(worlds::unpublish_name(out::bytes(service_name, MPI_ERR_ARG, "service_name")?)?)
    }

    fn MPI_Lookup_name(service_name: *const c_char, info: MPI_Info, port_name: *mut c_char) -> c_int {
        drop(info.copied()?);
        let port = worlds::lookup_name(out::bytes(service_name, MPI_ERR_ARG, "service_name")?)?;
        write_port(port_name, &port)
    }

    // Between processes that cannot communicate there is no communicator, which is no error.
    fn MPI_Comm_join(fd: c_int, intercomm: *mut MPI_Comm) -> c_int {
        let place = place_of_new(intercomm, "intercomm")?;
        if fd < 0 {
            return Err(Fault::argument(MPI_ERR_ARG, "fd", format!("{fd} is no descriptor")));
        }
        let own = &needed()?.own;
        let greeting = worlds::greeting(own.core.process());
        // The program keeps the descriptor open during the call: FC1.
        let there = greet(BorrowedFd::borrow_raw(fd), greeting)?;
        if let Some(other) = worlds::acquaintance(greeting, there) {
            *place = own.child(own.core.join(0, || Ok(other))?)?;
        }
        Ok(())
    }
}
