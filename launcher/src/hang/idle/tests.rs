//! Which threads are idle, by lines as the kernel writes them and for threads of this process.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::getpid;
use rustix::thread::{gettid, set_name};

use super::*;

fn wait(operation: i32, limit: u64) -> Syscall {
    in_call(libc::SYS_futex, [0x7f00, operation as u64, 2, limit, 0, u32::MAX.into()])
}

fn in_call(syscall_number: i64, argument_registers: [u64; 6]) -> Syscall {
    Syscall::Blocked { syscall_number, argument_registers, stack_pointer: 0, program_counter: 0 }
}

#[test]
fn only_a_wait_without_end_that_nobody_else_can_end_is_idle() {
    let idle = |does: Syscall, private| is_wait_without_end(does, |_| private);
    let (private, clock) = (libc::FUTEX_PRIVATE_FLAG, libc::FUTEX_CLOCK_REALTIME);
    for command in [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET] {
        assert!(idle(wait(command | private, 0), false));
        assert!(idle(wait(command | private | clock, 0), false));
        assert!(idle(wait(command | clock, 0), true), "as in pthread_join");
        assert!(!idle(wait(command | clock, 0), false), "another process may wake it");
        assert!(!idle(wait(command | private, 0x7ffd), false), "a time limit");
    }
    let other_commands =
        [libc::FUTEX_WAKE, libc::FUTEX_LOCK_PI, libc::FUTEX_LOCK_PI2, libc::FUTEX_WAIT_REQUEUE_PI];
    for command in other_commands {
        assert!(!idle(wait(command | private, 0), true), "{command}");
    }
    let other_calls =
        [libc::SYS_futex_waitv, libc::SYS_clock_nanosleep, libc::SYS_poll, libc::SYS_vfork, -1];
    for number in other_calls {
        let does = in_call(number, [0x7f00, 0x80, 0, 0, 0, 0]);
        assert!(!idle(does, true), "{number}");
    }
    assert!(!idle(Syscall::Running, true));
}

#[test]
fn memory_is_private_by_the_mapping_that_the_address_is_in() {
    let maps = "1000-2000 rw-p 00000000 00:00 0 \n2000-3000 rw-s 00000000 00:01 9 /memfd:x\n\
                3000-4000 rw-p 00000000 fe:01 17 /lib/x.so\n4000-5000 rw-p 00000000 00:00 0 [heap]\n";
    let maps = MemoryMaps::from_read(maps.as_bytes()).expect("they are well-formed");
    let of = |address| is_private_memory(&maps, address);
    assert!(of(0x1000) && of(0x1fff) && of(0x4000));
    assert!(!of(0x2000) && !of(0x5000) && !of(0xfff));
    assert!(!of(0x3000), "another process may have mapped the file");
}

#[test]
fn a_process_that_may_share_its_memory_is_told_from_others() {
    assert!(is_only_one(7, &[5, 7, 9]));
    assert!(!is_only_one(7, &[7, 9, 7]), "shared");
    assert!(!is_only_one(7, &[5, 9]), "not found");
    assert!(!is_only_one(7, &[7, 0]), "one is hidden");
    assert!(!is_only_one(0, &[5, 0]));
}

/// The status of this process with another value in one line.
fn status(name: &str, value: &str) -> Option<Status> {
    let own = text("/proc/self/status").expect("it is there");
    let line = |line: &str| match line.split_once(':') {
        Some((of, _)) if of == name => format!("{name}:\t{value}\n"),
        _ => format!("{line}\n"),
    };
    Status::from_read(own.lines().map(line).collect::<String>().as_bytes()).ok()
}

#[test]
fn signals_from_outside_are_told_from_faults() {
    let of = |caught: &str| Some(catches_nothing_from_outside(&status("SigCgt", caught)?));
    assert_eq!(of("0000000000000000"), Some(true));
    assert_eq!(of("0000000000000440"), Some(true), "SIGBUS and SIGSEGV, as Rust's programs do");
    assert_eq!(of("0000000180000000"), Some(true), "those of the C library");
    assert_eq!(of("0000000000000002"), Some(false), "SIGINT");
    assert_eq!(of("0000000000004440"), Some(false), "SIGTERM beside the others");
    assert_eq!(of("0000000000002000"), Some(false), "SIGALRM");
    assert_eq!(of("0000000000010000"), Some(false), "SIGCHLD");
    assert_eq!(of("?"), None);
}

#[test]
fn switches_of_both_kinds_count() {
    let mut status = status("voluntary_ctxt_switches", "12").expect("it is well-formed");
    status.nonvoluntary_ctxt_switches = Some(30);
    assert_eq!(switches(&status), Some(42));
    status.nonvoluntary_ctxt_switches = None;
    assert_eq!(switches(&status), None);
}

/// A thread of this process, if it is idle.
fn seen(number: i32) -> Option<Idle> {
    idle(getpid(), &Entry { number, ..Entry::default() })
}

/// Waits until what is seen of the thread is `wanted`, and returns it.
fn until(thread: i32, wanted: impl Fn(Option<Idle>) -> bool) -> Option<Idle> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let seen = seen(thread);
        if wanted(seen) {
            return seen;
        }
        assert!(Instant::now() < end, "{seen:?}");
        thread::yield_now();
    }
}

#[test]
fn a_thread_that_waits_for_a_channel_is_idle_until_it_gets_something() {
    let (send_number, number) = mpsc::channel();
    let (send, receive) = mpsc::channel::<Duration>();
    let thread = thread::spawn(move || {
        set_name(c"cut in a letter\xc3").expect("a thread may have any name");
        send_number.send(gettid().as_raw_nonzero().get()).expect("somebody waits for it");
        while let Ok(nap) = receive.recv() {
            thread::sleep(nap);
        }
    });
    let number = number.recv().expect("it is sent");
    let first = until(number, |seen| seen.is_some());
    assert_eq!(seen(number), first, "it has slept all the time");
    send.send(Duration::ZERO).expect("it waits");
    let later = until(number, |seen| seen.is_some() && seen != first);
    assert!(later.map(|idle| idle.switches) > first.map(|idle| idle.switches));
    send.send(Duration::from_secs(3600)).expect("it waits");
    until(number, |seen| seen.is_none());
    // Nobody wakes it: it ends with the process.
    drop((send, thread));
}

#[test]
fn a_thread_that_joins_another_is_idle() {
    let (send_number, number) = mpsc::channel();
    let (send, receive) = mpsc::channel::<()>();
    let joining = thread::spawn(move || {
        let joined = thread::spawn(move || receive.recv());
        send_number.send(gettid().as_raw_nonzero().get()).expect("somebody waits for it");
        let _ = joined.join();
    });
    let number = number.recv().expect("it is sent");
    until(number, |seen| seen.is_some());
    drop(send);
    joining.join().expect("it does not panic");
}
