//! The page of a launcher: a memory file with the last block of `mpjrun --watch`, which other processes of the same user
//! read through `/proc`. Nobody listens, and the page has no name in a file system.
//!
//! - PB1: the number at both ends of the page is that of the block. A reader that finds different ones has met the writer,
//!   and reads again.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

/// The name that the kernel shows for the descriptor of a page.
const NAME: &str = "mpj-watch";

/// The page of this process.
#[derive(Debug)]
pub(crate) struct Page {
    file: File,
    number: u64,
}

impl Page {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { file: memfd_create(NAME, MemfdFlags::CLOEXEC)?.into(), number: 0 })
    }

    /// Replaces the block.
    pub(crate) fn write(&mut self, block: &str) -> io::Result<()> {
        self.number += 1;
        let text = format!("{0}\n{block}{0}\n", self.number);
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }
}

/// Finds the page of process `pid`; `None` if it has none.
pub(crate) fn find(pid: u32) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        let path = entry?.path();
        let name = format!("/memfd:{NAME} (deleted)");
        // A descriptor may be closed meanwhile.
        if fs::read_link(&path).is_ok_and(|file| file == Path::new(&name)) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The block of a page and its number; `None` if there is no whole one now (PB1).
pub(crate) fn read(page: &Path) -> Option<(u64, String)> {
    let text = fs::read_to_string(page).ok()?;
    let (first, rest) = text.split_once('\n')?;
    let block = rest.strip_suffix('\n')?.strip_suffix(first)?;
    Some((first.parse().ok()?, block.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_found_and_has_the_last_block() {
        let mut page = Page::new().expect("memory");
        let path = find(std::process::id()).expect("it is listed").expect("it is there");
        assert_eq!(read(&path), None);
        page.write("a long block\nof lines\n").expect("room");
        assert_eq!(read(&path), Some((1, "a long block\nof lines\n".to_owned())));
        page.write("short\n").expect("room");
        assert_eq!(read(&path), Some((2, "short\n".to_owned())));
        page.file.write_all_at(b"3", 0).expect("room");
        assert_eq!(read(&path), None, "the writer has begun");
        drop(page);
    }
}
