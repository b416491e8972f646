//! The name and the processors of the host.

use procfs::{CpuInfo, Current};

/// Describes the host: the model of its processor, and how many of them a program of this user may use.
pub(crate) fn description() -> String {
    let model = CpuInfo::current().ok().and_then(|info| info.model_name(0).map(str::to_owned));
    let processor = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    let plural = if usable == 1 { "" } else { "s" };
    format!("{processor} with {usable} usable processor{plural}")
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
