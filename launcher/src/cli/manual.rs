//! The text at the end of `--help`: several programs, other launchers' options, exit codes, signals, and the variables
//! that ranks read. Pure.

use transport_lapi::config::SETTINGS;

const TEXT: &str = "\
Several programs: `mpjrun -n 1 A : -n 4 B` is one job with A as rank 0 and B as ranks 1 to 4. Every word \
`:` ends a program's arguments; to pass one on, use --configfile. Options of the job stand before the \
first program; -n, -x, --wdir, --path, --hosts and --hostfile apply to the program that follows them. If an \
option is given twice, the last one counts; -x, --genv, --output, --hosts and --hostfile add up.\n\n\
Options of other launchers: -np, -c, -ppn, -perhost, -N, --npernode and --map-by ppr:N:node (ranks on each \
host), -H, -host, -hosts, -f, -machinefile, -env and -genv with NAME VALUE, -usize, -wdir, -wd, \
-prepend-rank, --tag-output, --timestamp-output, --output-filename, --display-map and -s work as there. \
--oversubscribe, --allow-run-as-root, --mca, -genvall and -genvlist are accepted and have no effect. Long options may \
have one dash or two. Called as mpiexec or mpirun, this program prints no \
notes, and MPIEXEC_TIMEOUT=S means --timeout S.\n\n\
Under cargo: with CARGO_TARGET_<TRIPLE>_RUNNER=\"mpjrun -n 4\", cargo run, cargo test and cargo bench start \
jobs; a test program with --list runs once, without a job.\n\n\
Exit code: that of the first rank that failed; 128 + S if a signal S ended that rank or mpjrun; 1 if a \
rank ended with code 0 without finishing while another one waited for it; the code of mpj::abort; 124 after \
--timeout or --stall; 125 for a deadlock, for output that cannot be written, and if the launcher itself failed; \
126 if PROGRAM cannot be executed; 127 if it is not found; 141 if nobody reads standard output any more; 2 for a wrong command line.\n\n\
SIGQUIT to mpjrun (Ctrl-\\ in its terminal, `kill -QUIT PID` elsewhere, also in the background) prints what \
every rank waits for or does, and the job goes on. SIGUSR1, SIGUSR2 and SIGCONT are passed on to the ranks.\n\n\
Variables that ranks read:\n";

/// The text.
pub(super) fn text() -> String {
    let mut text = TEXT.to_owned();
    for row in SETTINGS {
        let (name, default) = (row.name, row.default);
        text +=
            &format!("  {name}={default}\n      {}.\n      Legal: {}.\n", row.meaning, row.legal);
    }
    text
}
