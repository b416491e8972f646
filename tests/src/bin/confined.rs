//! Runs a program with less than it usually has: `confined WHAT... -- PROGRAM ARGS`.
//!
//! - `no-reads`: a filter of system calls forbids to read and write the memory of other processes.
//! - `no-ptrace`: no right to trace processes that do not allow it, and none to override the modes of files.
//! - `files=N`: at most N open files.
//! - `memory=N`: at most N bytes of address space.
//! - `file-size=N`: files of at most N bytes; the memory of a job is such a file.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut parts = words.split(|word| word == "--");
    let (Some(limits), Some([program, args @ ..])) = (parts.next(), parts.next()) else {
        eprintln!("confined WHAT... -- PROGRAM ARGS");
        return ExitCode::from(2);
    };
    for limit in limits {
        if let Err(error) = confine(limit) {
            eprintln!("confined: {limit}: {error}");
            return ExitCode::from(2);
        }
    }
    let error = Command::new(program).args(args).exec();
    eprintln!("confined: {program}: {error}");
    ExitCode::from(2)
}

fn confine(limit: &str) -> Result<(), Box<dyn std::error::Error>> {
    let (name, number) = limit.split_once('=').unwrap_or((limit, "0"));
    let resource = match name {
        "no-reads" => return Ok(seccompiler::apply_filter(&no_reads()?)?),
        "no-ptrace" => return Ok(no_ptrace()?),
        "files" => Resource::Nofile,
        "memory" => Resource::As,
        "file-size" => Resource::Fsize,
        _ => return Err("unknown".into()),
    };
    let most = Some(number.parse()?);
    Ok(setrlimit(resource, Rlimit { current: most, maximum: most })?)
}

fn no_reads() -> Result<BpfProgram, seccompiler::Error> {
    let calls = [libc::SYS_process_vm_readv, libc::SYS_process_vm_writev];
    let refused = SeccompAction::Errno(Errno::PERM.raw_os_error() as u32);
    let rules = calls.map(|call| (call, Vec::new())).into_iter().collect();
    let machine = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, refused, machine)?.try_into()?)
}

/// Takes effect with the next program. A user who is not root has none of these rights.
fn no_ptrace() -> rustix::io::Result<()> {
    let rights =
        [CapabilitySet::SYS_PTRACE, CapabilitySet::DAC_OVERRIDE, CapabilitySet::DAC_READ_SEARCH];
    for right in rights {
        match remove_capability_from_bounding_set(right) {
            Ok(()) | Err(Errno::PERM) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
