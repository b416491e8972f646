//! The hints that files use (MPI-4.1 section 14.2.8). Those that collective calls depend on are rank 0's on all ranks.

use crate::info::{Info, InfoError};

/// The hints of a file. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hints {
    /// Whether collective calls may gather data on some ranks: `collective_buffering`.
    pub is_collective: bool,
    /// How much these gather at a time: `cb_buffer_size`.
    pub stage: u64,
    /// How many ranks do; 0 for some of each host: `cb_nodes`.
    pub nodes: u64,
    /// How much a rank reads at once where it needs scattered bytes: `ind_rd_buffer_size`.
    pub read: u64,
    /// How much it reads and writes at once to change scattered bytes: `ind_wr_buffer_size`.
    pub write: u64,
    /// Whether it may do that, and so write bytes between those that it changes: `romio_ds_write`. Only the program knows
    /// whether others, without this hint, write there at the same time.
    pub sieves_writes: bool,
}

impl Default for Hints {
    fn default() -> Self {
        Self {
            is_collective: true,
            stage: 4 << 20,
            nodes: 0,
            read: 4 << 20,
            write: 512 << 10,
            sieves_writes: false,
        }
    }
}

/// The least and the most bytes of a buffer.
const BUFFER: std::ops::RangeInclusive<u64> = 4096..=1 << 30;

impl Hints {
    /// Takes over what an info object says. Values that have no meaning are ignored, as MPI demands.
    pub fn take(&mut self, info: &Info) {
        let text = |key: &str| std::str::from_utf8(info.get(key.as_bytes())?).ok();
        let number = |key: &str| text(key)?.trim().parse::<u64>().ok();
        let buffer = |key: &str| number(key).filter(|size| BUFFER.contains(size));
        let choice = |key: &str, [yes, no]: [&str; 2]| match text(key)? {
            value if value == yes => Some(true),
            value if value == no => Some(false),
            _ => None,
        };
        let is_collective = choice("collective_buffering", ["true", "false"]);
        let sieves_writes = choice("romio_ds_write", ["enable", "disable"]);
        self.is_collective = is_collective.unwrap_or(self.is_collective);
        self.stage = buffer("cb_buffer_size").unwrap_or(self.stage);
        self.nodes = number("cb_nodes").unwrap_or(self.nodes);
        self.read = buffer("ind_rd_buffer_size").unwrap_or(self.read);
        self.write = buffer("ind_wr_buffer_size").unwrap_or(self.write);
        self.sieves_writes = sieves_writes.unwrap_or(self.sieves_writes);
    }

    /// Returns the words by which rank 0 tells the others what collective calls depend on.
    pub fn to_words(self) -> Vec<u64> {
        vec![u64::from(self.is_collective), self.stage, self.nodes]
    }

    /// Takes over rank 0's words.
    pub fn agree(&mut self, words: &[u64]) {
        if let [is_collective, stage, nodes] = *words {
            self.is_collective = is_collective == 1;
            self.stage = stage.clamp(*BUFFER.start(), *BUFFER.end());
            self.nodes = nodes;
        }
    }

    /// Returns the info object that says the same, with so many ranks that gather data.
    ///
    /// # Errors
    /// None: all keys and values are short.
    pub fn to_info(self, nodes: usize) -> Result<Info, InfoError> {
        let mut info = Info::default();
        let numbers = [
            ("cb_buffer_size", self.stage),
            ("cb_nodes", nodes as u64),
            ("ind_rd_buffer_size", self.read),
            ("ind_wr_buffer_size", self.write),
        ];
        for (key, number) in numbers {
            info.set(key.as_bytes(), number.to_string().as_bytes())?;
        }
        info.set(b"collective_buffering", self.is_collective.to_string().as_bytes())?;
        let sieves = if self.sieves_writes { "enable" } else { "disable" };
        info.set(b"romio_ds_write", sieves.as_bytes())?;
        Ok(info)
    }
}

/// Returns the permissions of a new file, before the process's mask: `file_perm`, in octal digits.
pub(super) fn permissions(info: &Info) -> u32 {
    let given = info.get(b"file_perm").and_then(|value| std::str::from_utf8(value).ok());
    let given = given.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok());
    given.map_or(0o666, |bits| bits & 0o7777)
}
