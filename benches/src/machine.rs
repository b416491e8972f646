//! Facts about the machine and the source tree for readers of the figures. They come from `/proc`,
//! `/sys` and git; missing ones are left out.

use std::fs;
use std::process::{Command, Stdio};

use procfs::{CpuInfo, Current, Meminfo};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::model::PROCESSOR;

/// Prefixes of environment variables that change the behaviour of a library.
const PREFIXES: &[&str] =
    &["MPJ_", "OMPI_", "PMIX_", "PRTE_", "MPICH_", "MPIR_", "I_MPI_", "UCX_", "FI_"];

/// Returns the processors that this process may use, in ascending order.
pub fn processors() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor)).collect()
}

/// Returns the facts as pairs of name and value.
pub fn facts() -> Vec<(String, String)> {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    let (page, memory) = (rustix::param::page_size(), Meminfo::current());
    let processors = processors();
    let numbers: Vec<_> = processors.iter().map(ToString::to_string).collect();
    let facts = [
        (PROCESSOR, processor()),
        ("last-level cache", last_level_cache()),
        ("usable processors", Some(format!("{}: {}", processors.len(), numbers.join(", ")))),
        ("hyper-threading", line("/sys/devices/system/cpu/smt/control")),
        ("frequency governor", line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ("hypervisor", hypervisor()),
        ("memory", memory.ok().map(|it| format!("{} kB", it.mem_total / 1024))),
        ("page size", Some(format!("{page} B"))),
        ("huge pages", line("/sys/kernel/mm/transparent_hugepage/enabled")),
        ("kernel", Some(format!("Linux {release}"))),
        ("ptrace scope", line("/proc/sys/kernel/yama/ptrace_scope")),
        ("clock", line("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("load at the start", line("/proc/loadavg")),
        ("settings in the environment", settings()),
        ("source tree", source_tree()),
    ];
    let known = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    known.collect()
}

/// The model of the processor, with its numbers, since virtual machines may show one name for many
/// models.
fn processor() -> Option<String> {
    let name = of_cpu("model name")?;
    let numbers = [("cpu family", "family"), ("model", "model"), ("stepping", "stepping")];
    let number = |(key, word)| Some(format!("{word} {}", of_cpu(key)?));
    let numbers = numbers.into_iter().filter_map(number);
    Some(std::iter::once(name).chain(numbers).collect::<Vec<_>>().join(", "))
}

/// The size of the last-level cache of the first processor.
fn last_level_cache() -> Option<String> {
    let sizes = (0..8)
        .map_while(|index| line(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")));
    sizes.last()
}

/// The first line of a file.
fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

/// What the kernel says of the first processor under this name.
fn of_cpu(name: &str) -> Option<String> {
    CpuInfo::current().ok()?.get_field(0, name).map(str::to_owned)
}

/// Environment variables of this process, inherited by ranks, that change the behaviour of a
/// library.
fn settings() -> Option<String> {
    let environment = fs::read("/proc/self/environ").ok()?;
    let variables = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let is_setting = |variable: &str| PREFIXES.iter().any(|prefix| variable.starts_with(prefix));
    let set: Vec<_> = variables.filter(|variable| is_setting(variable)).collect();
    (!set.is_empty()).then(|| set.join(" "))
}

/// The current commit of the source tree, and whether files have changed since. `cargo mpj bench`
/// builds from this tree just before the run.
fn source_tree() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty=, changed"]);
    let output = git.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}

fn hypervisor() -> Option<String> {
    let flags = of_cpu("flags")?;
    let is_guest = flags.split(' ').any(|flag| flag == "hypervisor");
    Some(if is_guest { "yes: processors are virtual" } else { "no" }.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_linux_has_a_kernel_and_processors() {
        let facts = facts();
        let value = |name: &str| facts.iter().find(|fact| fact.0 == name).map(|fact| &*fact.1);
        assert!(value("kernel").is_some_and(|kernel| kernel.starts_with("Linux ")));
        assert!(value("memory").is_some_and(|memory| memory.ends_with("kB")));
        let count = processors().len().to_string();
        assert!(value("usable processors").is_some_and(|value| value.starts_with(&count)));
    }
}
