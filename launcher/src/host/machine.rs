//! The machine that tuned values belong to.

use std::fmt;

use procfs::{CpuInfo, Current};
use serde::{Deserialize, Serialize};

/// A machine, as far as tuned values depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Processors that a program of this user may use.
    pub usable: usize,
}

impl Machine {
    /// Returns the machine that this process runs on.
    pub fn here() -> Self {
        let model = CpuInfo::current().ok().and_then(|info| info.model_name(0).map(str::to_owned));
        let processor = model.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
        let usable = std::thread::available_parallelism().map_or(1, usize::from);
        Self { processor, usable }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} usable", self.processor, self.usable)?;
        f.write_str(if self.usable == 1 { " processor" } else { " processors" })
    }
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
