//! Programs in C that are recorded: compiled with what an installation contains, run with `--trace`, and judged by the file
//! that is written. Without a C compiler the tests say so and pass.

#![expect(clippy::print_stderr, reason = "tests say why they are skipped")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mpj_harness::{Launch, command, libmpi, libmpi_trace, mpjrun_path};
use mpj_install::{Built, install};
use tempfile::TempDir;

/// What a rank of the ring does in each round; in the end the rank that the argument names is killed.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    int rank, size, got, flag;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    int own, others;
    MPI_Comm_rank(half, &own);
    MPI_Comm_size(half, &others);
    MPI_Request kept;
    MPI_Send_init(&rank, 1, MPI_INT, (rank + 1) % size, 9, MPI_COMM_WORLD, &kept);
    for (int round = 0; round < 5; round++) {
        MPI_Request both[2];
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, half, &both[0]);
        MPI_Isend(&round, 1, MPI_INT, (own + 1) % others, round, half, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        MPI_Sendrecv(&rank, 1, MPI_INT, rank ^ 1, 5, &got, 1, MPI_INT, rank ^ 1, 5, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Start(&kept);
        MPI_Recv(&got, 1, MPI_INT, (rank + size - 1) % size, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&kept, MPI_STATUS_IGNORE);
        MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Allreduce(MPI_IN_PLACE, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Pcontrol(2);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && rank == atoi(argv[1]))
        raise(SIGKILL);
    if (argc > 1)
        MPI_Recv(&got, 1, MPI_INT, atoi(argv[1]), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Request_free(&kept);
    MPI_Comm_free(&half);
    return MPI_Finalize();
}
"#;
const RANKS: usize = 4;
/// Messages of each rank in a round: in its half, in the exchange and in the ring.
const MESSAGES: usize = 5 * 3;

/// An installation, and a program that was compiled with it.
struct Installed {
    folder: TempDir,
    program: PathBuf,
}

impl Installed {
    /// `None`, after a word about it, if there is no compiler.
    fn new() -> Option<Self> {
        let found = Command::new("cc").arg("--version").stdout(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            eprintln!("skipped: there is no C compiler called cc");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let built = Built { library: libmpi(), trace: libmpi_trace(), mpjrun: mpjrun_path() };
        install(&built, &folder.path().join("prefix")).expect("everything was built");
        let [source, program] = ["program.c", "program"].map(|name| folder.path().join(name));
        fs::write(&source, PROGRAM).expect("a file");
        let compiler = command(folder.path().join("prefix/bin/mpicc"));
        compiler
            .args(["-Wall", "-Werror"])
            .args([&source])
            .args(["-o"])
            .args([&program])
            .expect_quiet();
        Some(Self { folder, program })
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    fn job(&self, options: &[&str]) -> Launch {
        let job = command(self.folder.path().join("prefix/bin/mpiexec"));
        job.args(["-n", &RANKS.to_string(), "--trace"])
            .args([&self.file()])
            .args(options)
            .args([&self.program])
    }
}

/// Fields of a message of Protocol Buffers that are bytes, numbers, or numbers of 8 bytes.
enum Field<'a> {
    Bytes(&'a [u8]),
    Number(u64),
}

fn number(bytes: &mut &[u8]) -> u64 {
    let len = bytes.iter().position(|byte| byte & 0x80 == 0).expect("a number ends") + 1;
    let (own, rest) = bytes.split_at(len);
    *bytes = rest;
    own.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7F))
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(number(&mut bytes)),
            1 => {
                let (own, rest) = bytes.split_first_chunk().expect("8 bytes");
                bytes = rest;
                Field::Number(u64::from_le_bytes(*own))
            }
            _ => {
                let len = number(&mut bytes) as usize;
                let (own, rest) = bytes.split_at(len);
                bytes = rest;
                Field::Bytes(own)
            }
        };
        fields.push((key >> 3, field));
    }
    fields
}

/// What a file shows: how often each name begins a call, and for each message how many ends it has.
#[derive(Default)]
struct Shown {
    tracks: Vec<String>,
    calls: BTreeMap<String, usize>,
    messages: BTreeMap<u64, usize>,
}

impl Shown {
    fn read(file: &Path) -> Self {
        let bytes = fs::read(file).expect("it was written");
        let mut shown = Self::default();
        let mut names = BTreeMap::new();
        for (_, packet) in fields(&bytes) {
            let Field::Bytes(packet) = packet else { panic!("a packet is a message") };
            shown.packet(&fields(packet), &mut names);
        }
        shown
    }

    fn packet(&mut self, packet: &[(u64, Field<'_>)], names: &mut BTreeMap<(u64, u64), String>) {
        let sequence = packet.iter().find_map(|field| match field {
            (10, Field::Number(sequence)) => Some(*sequence),
            _ => None,
        });
        for (field, value) in packet {
            let Field::Bytes(value) = value else { continue };
            match field {
                60 => self.tracks.extend(text(&fields(value), 2)),
                12 => names.extend(fields(value).iter().filter_map(|field| match field {
                    (2, Field::Bytes(name)) => {
                        let name = fields(name);
                        Some(((sequence?, of(&name, 1)?), text(&name, 2)?))
                    }
                    _ => None,
                })),
                11 => self
                    .event(&fields(value), |name| names[&(sequence.expect("one"), name)].clone()),
                _ => {}
            }
        }
    }

    fn event(&mut self, event: &[(u64, Field<'_>)], name: impl Fn(u64) -> String) {
        for (field, value) in event {
            if let (47 | 48, Field::Number(flow)) = (field, value) {
                *self.messages.entry(*flow).or_default() += 1;
            }
        }
        let has_flow = event.iter().any(|(field, _)| matches!(field, 47 | 48));
        if let (Some(number), false) = (of(event, 10), has_flow) {
            *self.calls.entry(name(number)).or_default() += 1;
        }
    }

    fn calls(&self, name: &str) -> usize {
        self.calls.get(name).copied().unwrap_or(0)
    }
}

fn of(message: &[(u64, Field<'_>)], wanted: u64) -> Option<u64> {
    message.iter().find_map(|(field, value)| match value {
        Field::Number(number) if *field == wanted => Some(*number),
        _ => None,
    })
}

fn text(message: &[(u64, Field<'_>)], wanted: u64) -> Option<String> {
    message.iter().find_map(|(field, value)| match value {
        Field::Bytes(text) if *field == wanted => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    })
}

#[test]
fn calls_and_messages_are_shown() {
    let Some(installed) = Installed::new() else { return };
    let said = installed.job(&[]).expect(0).stderr;
    assert!(said.starts_with("mpjrun: ") && said.contains("calls; open it at"), "{said}");
    let shown = Shown::read(&installed.file());
    assert_eq!(shown.tracks[1..], ["rank 0", "rank 1", "rank 2", "rank 3"]);
    for (name, of_rank) in [
        ("MPI_Init", 1),
        ("MPI_Comm_split", 1),
        ("MPI_Irecv", 5),
        ("MPI_Waitall", 5),
        ("MPI_Sendrecv", 5),
        ("MPI_Start", 5),
        ("MPI_Allreduce", 5),
        ("MPI_Iprobe", 0),
        ("MPI_Pcontrol(2)", 1),
        ("MPI_Finalize", 1),
    ] {
        assert_eq!(shown.calls(name), RANKS * of_rank, "{name}: {:?}", shown.calls);
    }
    assert!(shown.messages.values().all(|ends| *ends == 2), "{:?}", shown.messages);
    assert_eq!(shown.messages.len(), RANKS * MESSAGES);
}

#[test]
fn what_a_killed_rank_has_recorded_is_shown() {
    let Some(installed) = Installed::new() else { return };
    let job = installed.job(&[]).args(["2"]);
    job.expect(137).says("calls; open it at");
    let shown = Shown::read(&installed.file());
    assert_eq!(shown.tracks.len(), 1 + RANKS);
    assert_eq!((shown.calls("MPI_Allreduce"), shown.calls("MPI_Finalize")), (RANKS * 5, 0));
    assert_eq!(shown.messages.len(), RANKS * MESSAGES);
}

#[test]
fn without_a_trace_nothing_is_recorded() {
    let Some(installed) = Installed::new() else { return };
    let job = command(installed.folder.path().join("prefix/bin/mpiexec")).args(["-n", "2"]);
    job.args([&installed.program]).expect_quiet();
    // The library passes calls on where it is loaded for another reason.
    let library = installed.folder.path().join("prefix/lib/libmpj_trace.so");
    let job = command(installed.folder.path().join("prefix/bin/mpiexec")).args(["-n", "2"]);
    job.env("LD_PRELOAD", &library).args([&installed.program]).expect_quiet();
    assert!(!installed.file().exists());
}
