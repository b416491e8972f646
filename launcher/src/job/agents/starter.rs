//! The commands that start agents on other hosts.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::host::machine::host_name;
use crate::job::agent;
use crate::job::hosts::Starter;

/// The name of the program that is an agent.
const PROGRAM: &str = "mpjrun";

/// Returns the command that starts an agent on the host called `name`, where `mpjrun` is this `program`. This host needs
/// no other program for that, unless the user has named one.
pub(super) fn command(starter: &Starter, name: &str, program: &OsStr) -> Command {
    let mut command = match starter {
        Starter::Command(words) => {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).arg(name).arg(program);
            command
        }
        _ if name == host_name() => Command::new(program),
        Starter::Ssh => {
            let mut command = Command::new("ssh");
            // A password could not be typed: the input is the agent's.
            command.args(["-T", "-o", "BatchMode=yes", name]);
            // The shell of the other host splits these words.
            let program = program.to_string_lossy().into_owned();
            command.args(["exec", &shell_words::quote(&program)]);
            command
        }
        Starter::Srun => {
            let mut command = Command::new("srun");
            command.args(["--nodes=1", "--ntasks=1", "--overlap", "--mem=0", "--mpi=none"]);
            // Otherwise Slurm keeps output until a line of text ends, and the agent's messages have no lines.
            command.args(["--unbuffered", "--cpu-bind=none", "--quiet"]);
            command.args(["--nodelist", name]).arg(program);
            command
        }
    };
    command.arg(agent::WORD);
    command
}

/// The path of `mpjrun`, which has to be the same on all hosts.
///
/// # Errors
/// That of the system, if `/proc` does not tell.
pub(super) fn program() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let is_it = own.file_name().is_some_and(|name| name == PROGRAM);
    Ok(if is_it { own } else { own.with_file_name(PROGRAM) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(starter: Starter, name: &str) -> String {
        let program = program().expect("it has a path");
        format!("{:?}", command(&starter, name, program.as_os_str())).replace('"', "")
    }

    #[test]
    fn each_starter_gets_host_program_and_mode() {
        let own = program().expect("it has a path").display().to_string();
        assert!(own.ends_with("/mpjrun"), "{own}");
        let ssh = words(Starter::Ssh, "elsewhere.invalid");
        assert_eq!(ssh, format!("ssh -T -o BatchMode=yes elsewhere.invalid exec {own} --agent"));
        let srun = words(Starter::Srun, "n7");
        assert!(srun.contains(" --unbuffered "), "{srun}");
        assert!(srun.ends_with(&format!("--nodelist n7 {own} --agent")), "{srun}");
        let own_words = Starter::Command(vec!["sh".into(), "start.sh".into()]);
        assert_eq!(words(own_words, "a"), format!("sh start.sh a {own} --agent"));
        assert_eq!(words(Starter::Ssh, &host_name()), format!("{own} --agent"));
    }
}
