//! The commands that start agents on other hosts.

use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::host::machine::host_name;
use crate::job::agent;
use crate::job::hosts::Starter;

/// The name of the program that is an agent.
const PROGRAM: &str = "mpjrun";

/// Returns the command that starts an agent on the host called `name`. This host needs no other program for that, unless
/// the user has named one.
pub(super) fn command(starter: &Starter, name: &str) -> io::Result<Command> {
    let program = program()?;
    let command = match starter {
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
    let mut command = command;
    command.arg(agent::WORD);
    Ok(command)
}

/// The path of `mpjrun`, which is the same on all hosts.
fn program() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let is_it = own.file_name().is_some_and(|name| name == PROGRAM);
    Ok(if is_it { own } else { own.with_file_name(PROGRAM) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(starter: Starter, name: &str) -> String {
        format!("{:?}", command(&starter, name).expect("it has a path")).replace('"', "")
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
