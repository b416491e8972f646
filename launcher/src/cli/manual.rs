//! The end of `--help`: several programs, other launchers' options, exit codes, and every variable that
//! ranks read. Pure.

use transport_lapi::config::SETTINGS;

const TEXT: &str = "\
Several programs: `mpjrun -n 1 A : -n 4 B` is one job with A as rank 0 and B as ranks 1 to 4. A word \
that is `:` ends a program's arguments; to pass one on, use --configfile. Options of the job stand \
before the first program; -n, -x, --wdir, --path, --host and --hostfile count for the program that \
follows them.\n\n\
Of other launchers, these options are taken: -np, -c, -ppn, -perhost, -N, --npernode and --map-by \
ppr:N:node (ranks on each host, of which there is one), -H, -hosts, -f, -machinefile, -env and -genv with \
NAME VALUE, -wdir, -prepend-rank, --tag-output, --timestamp-output, --output-filename, --display-map, -s, and, \
noted as not needed, --oversubscribe, --allow-run-as-root, --mca and -genvall. Long options may have one dash \
or two.\n\n\
Under cargo: with CARGO_TARGET_<TRIPLE>_RUNNER=\"mpjrun -n 4\", cargo run, test and bench start jobs; a \
test program that is asked for its --list runs once, by itself.\n\n\
Exit code: that of the first rank that failed; 128 + S if a signal S ended it, or ended mpjrun; 1 if it \
ended without finishing; what mpj::abort was given; 124 after --timeout or --stall; 125 for a deadlock, \
for output that cannot be written, or if the launcher itself failed; 126 if PROGRAM cannot be executed; \
127 if it is not there; 141 when nobody reads standard output any more; 2 for a wrong command line. Of an \
option that is given twice the last one counts; -x, --genv, --output, --host and --hostfile add up.\n\n\
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
