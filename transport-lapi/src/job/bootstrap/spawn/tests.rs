//! What a prepared child inherits, as reported by real children.

use std::os::fd::AsFd;
use std::process::Stdio;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::process::Signal;

use super::*;
use crate::job::bootstrap::control::control_pair;
use crate::job::bootstrap::signals::Signals;

/// Runs `script` in a prepared shell. `$1` to `$3` are the numbers of a rank's descriptors, `$4` that of the launcher's
/// end.
fn ask(script: &str) -> String {
    ask_within(&DescriptorLimit::raise(), script)
}

fn ask_within(limit: &DescriptorLimit, script: &str) -> String {
    ask_bound(limit, None, script)
}

fn ask_bound(limit: &DescriptorLimit, processors: Option<CpuSet>, script: &str) -> String {
    let memory = || memfd_create("test", MemfdFlags::CLOEXEC).expect("memfd");
    let (segment, table) = (memory(), memory());
    let (receiver, control) = control_pair().expect("a socket pair");
    let signals = Signals::block(&[Signal::TERM, Signal::INT], &[]).expect("signalfd");
    let all = [segment.as_fd(), control.as_fd(), table.as_fd(), receiver.as_fd()];
    let numbers = all.map(|descriptor| descriptor.as_raw_fd().to_string());
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh"]).args(numbers).stdin(Stdio::null());
    let mask = signals.mask_before();
    let [segment, control, table, _] = all;
    let descriptors = Descriptors { segment, control, table: Some(table) };
    prepare(&mut command, descriptors, None, limit, mask, processors);
    let output = command.output().expect("the shell runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for descriptor in all {
        assert_eq!(
            fcntl_getfd(descriptor),
            Ok(FdFlags::CLOEXEC),
            "the parent's stay closed on exec"
        );
    }
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_descriptors_are_inherited_and_the_launchers_end_is_not() {
    let open =
        ask("for fd in $1 $2 $3 $4; do [ -e /proc/$$/fd/$fd ] && echo open || echo closed; done");
    assert_eq!(open, "open\nopen\nopen\nclosed\n");
}

#[test]
fn the_child_leads_its_own_group_and_blocks_no_signal() {
    // The shell itself reads this: while it starts a program, it blocks all signals.
    let status =
        ask("while read key value; do [ $key = SigBlk: ] && echo $value; done </proc/$$/status; \
         cut -d' ' -f5 /proc/$$/stat; echo $$");
    let mut lines = status.lines().map(str::trim);
    assert_eq!(lines.next(), Some("0000000000000000"));
    assert_eq!(lines.next(), lines.next());
}

#[test]
fn the_limit_of_descriptors_is_the_one_from_before() {
    let raised = DescriptorLimit::raise();
    let low = Rlimit { current: Some(77), maximum: raised.before.maximum };
    assert_eq!(ask_within(&DescriptorLimit { before: low }, "ulimit -S -n"), "77\n");
    let now = getrlimit(Resource::Nofile);
    assert_eq!(now.current, now.maximum, "the launcher's own limit is raised");
}

#[test]
fn the_child_runs_on_the_processors_that_it_was_given() {
    let usable = rustix::thread::sched_getaffinity(None).expect("our own");
    let last = (0..CpuSet::MAX_CPU).rfind(|cpu| usable.is_set(*cpu)).expect("at least one");
    let mut only = CpuSet::new();
    only.set(last);
    let script = "while read key value; do [ $key != Cpus_allowed_list: ] || echo $value; done \
                  </proc/$$/status";
    assert_eq!(ask_bound(&DescriptorLimit::raise(), Some(only), script), format!("{last}\n"));
}

/// The end of a thread stands for the death of the launcher: the kernel watches the spawning thread (SP2).
#[test]
fn the_child_dies_with_the_thread_that_spawned_it() {
    let mut child = std::thread::spawn(|| {
        let segment = memfd_create("test", MemfdFlags::CLOEXEC).expect("memfd");
        let (_receiver, control) = control_pair().expect("a socket pair");
        let signals = Signals::block(&[], &[]).expect("signalfd");
        let limit = DescriptorLimit::raise();
        let mut command = Command::new("sleep");
        let mask = signals.mask_before();
        let (segment, control) = (segment.as_fd(), control.as_fd());
        let descriptors = Descriptors { segment, control, table: None };
        prepare(command.arg("600"), descriptors, None, &limit, mask, None);
        command.spawn().expect("sleep runs")
    })
    .join()
    .expect("the thread ends");
    let start = std::time::Instant::now();
    while child.try_wait().expect("our child").is_none() {
        if start.elapsed().as_secs() > 20 {
            child.kill().expect("our child");
            panic!("the child outlived its launcher");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
