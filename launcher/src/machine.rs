//! What a table of tuned values belongs to: the machine it was measured on.

use std::fmt;
use std::fs;

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
    /// The one that this process runs on.
    pub fn here() -> Self {
        let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let usable = std::thread::available_parallelism().map_or(1, usize::from);
        Self { processor: model(&text), usable }
    }
}

/// The model that `/proc/cpuinfo` tells, or the architecture where the kernel has no name for it.
fn model(text: &str) -> String {
    let value = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    };
    text.lines().find_map(value).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} usable", self.processor, self.usable)?;
        f.write_str(if self.usable == 1 { " processor" } else { " processors" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_that_of_the_first_processor() {
        let text = "processor\t: 0\nmodel name\t: Some CPU: fast\nmodel name\t: another\n";
        assert_eq!(model(text), "Some CPU: fast");
        assert_eq!(model("processor : 0\n"), std::env::consts::ARCH);
    }
}
