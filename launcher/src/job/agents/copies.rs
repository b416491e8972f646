//! `--copy`: the programs of a job as they are sent to agents. Each file is sent once, in pieces, to all hosts, as fast
//! as the slowest of them takes it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use transport_lapi::bootstrap::control::agents::{HostCopy, HostJob, Order};

use super::branches::Branches;
use super::host_job;
use crate::LaunchError;
use crate::job::spawn;
use crate::job::spec::JobSpec;

/// Bytes in one order.
const PIECE: u64 = 256 << 10;

/// See the module's head.
#[derive(Debug, Default)]
pub(in crate::job) struct Copies {
    /// The files that have not been sent, with what is left of each, the next one last.
    left: Vec<(u32, PathBuf, io::Take<File>)>,
}

impl Copies {
    /// Finds the programs of a job, and adds them to what its agents are told.
    ///
    /// # Errors
    /// [`LaunchError`] for a program that is not found, or that cannot be read.
    pub(in crate::job) fn of(spec: &JobSpec, job: &mut HostJob) -> Result<Self, LaunchError> {
        let mut paths: Vec<PathBuf> = Vec::new();
        let mut left = Vec::new();
        for (app, program) in spec.apps.iter().zip(&mut job.programs) {
            let path = spawn::find(app)?;
            let known = paths.iter().position(|known| *known == path);
            program.copy = Some(known.unwrap_or(paths.len()) as u32);
            if known.is_none() {
                let unreadable = |source| LaunchError::Copy { path: path.clone(), source };
                let (len, hash) = digest(&path).map_err(unreadable)?;
                let file = File::open(&path).map_err(unreadable)?.take(len);
                left.push((paths.len() as u32, path.clone(), file));
                job.copies.push(HostCopy { name: host_job::bytes(path.as_os_str()), len, hash });
                paths.push(path);
            }
        }
        left.reverse();
        Ok(Self { left })
    }

    /// Sends as much as all agents have room for.
    ///
    /// # Errors
    /// [`LaunchError`] if a file cannot be read any more, or has become shorter.
    pub(in crate::job) fn send(&mut self, branches: &mut Branches) -> Result<(), LaunchError> {
        while branches.take_orders() {
            let Some(order) = self.next()? else { return Ok(()) };
            branches.send_all(&order);
        }
        Ok(())
    }

    /// The next piece.
    fn next(&mut self) -> Result<Option<Order>, LaunchError> {
        let Some((copy, path, file)) = self.left.last_mut() else { return Ok(None) };
        let copy = *copy;
        let mut bytes = Vec::new();
        let mut read = file.by_ref().take(PIECE).read_to_end(&mut bytes);
        if bytes.is_empty() && file.limit() > 0 {
            read = read.and(Err(io::Error::other("it became shorter while it was copied")));
        }
        read.map_err(|source| LaunchError::Copy { path: path.clone(), source })?;
        if file.limit() == 0 {
            self.left.pop();
        }
        Ok(Some(Order::Copy { copy, bytes }))
    }
}

/// The length and the hash of a file.
fn digest(path: &Path) -> io::Result<(u64, [u8; 32])> {
    let (mut file, mut hasher) = (File::open(path)?, blake3::Hasher::new());
    let mut bytes = vec![0; PIECE as usize];
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok((hasher.count(), *hasher.finalize().as_bytes())),
            len => hasher.update(&bytes[..len]),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use crate::job::{App, Hosts, Starter};

    /// A job that runs these programs.
    fn job(programs: &[&Path]) -> Result<(Rc<HostJob>, Copies), LaunchError> {
        let apps = programs.iter().map(|path| App::new(1, *path)).collect();
        let hosts = Hosts {
            names: vec!["a".to_owned()],
            of_rank: vec![0; programs.len()],
            starter: Starter::Ssh,
            fanout: 16,
            silence: Duration::from_secs(20),
        };
        host_job::of_hosts(&JobSpec { copies: true, ..JobSpec::new(apps) }, &hosts)
    }

    fn program(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, bytes).expect("our own folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
        path
    }

    #[test]
    fn each_file_is_sent_once_and_in_pieces() {
        let folder = tempfile::tempdir().expect("a folder");
        let long = vec![7; PIECE as usize + 1];
        let paths = [("long", &long[..]), ("empty", &[])];
        let [long, empty] = paths.map(|(name, bytes)| program(folder.path(), name, bytes));
        let (told, mut copies) = job(&[&long, &empty, &long]).expect("they are there");
        let places: Vec<_> = told.programs.iter().map(|program| program.copy).collect();
        assert_eq!(places, [Some(0), Some(1), Some(0)]);
        assert_eq!(told.copies.iter().map(|copy| copy.len).collect::<Vec<_>>(), [PIECE + 1, 0]);
        let mut pieces = Vec::new();
        while let Some(Order::Copy { copy, bytes }) = copies.next().expect("readable") {
            pieces.push((copy, bytes.len() as u64));
        }
        assert_eq!(pieces, [(0, PIECE), (0, 1), (1, 0)]);
    }

    #[test]
    fn a_file_that_becomes_shorter_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = program(folder.path(), "program", &[7; 100]);
        let (_, mut copies) = job(&[&path]).expect("it is there");
        fs::write(&path, [7; 10]).expect("our own file");
        copies.next().expect("ten bytes");
        let error = copies.next().expect_err("no more").to_string();
        assert!(error.contains("program: it became shorter while it was copied"), "{error}");
    }
}
