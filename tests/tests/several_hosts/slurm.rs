//! Jobs that `mpjrun` starts inside a batch job of Slurm, on the cluster of `tests/slurm`. Where Slurm is missing, the
//! tests say so and show nothing.

use std::process::Stdio;

use mpj_harness::{Launch, REFUSED, command, eventually, mpjrun_path, process, skip, workspace};

use super::RANK;

/// A script on the first host of a cluster, whose arguments are `mpjrun` and the program of a rank.
fn on_cluster(script: &str) -> Launch {
    let mpjrun = mpjrun_path();
    let built = mpjrun.parent().expect("it lies in a folder");
    let shared = ["-s".as_ref(), workspace().as_os_str(), "-s".as_ref(), built.as_os_str()];
    let cluster = command(workspace().join("tests/slurm")).options(shared);
    cluster.options(["sh", "-euc", script, "sh"]).options([&mpjrun]).args([RANK])
}

#[test]
fn mpjrun_finds_the_hosts_of_a_batch_job() {
    let script = "sbatch --wait -N2 -n4 -o /tmp/out --wrap \"$1 $2 well\" >&2; cat /tmp/out";
    let outcome = on_cluster(script).run();
    if outcome.code == REFUSED {
        return skip(&outcome.stderr);
    }
    let lines: Vec<String> = (0..4).map(|rank| format!("rank {rank} of 4")).collect();
    assert_eq!(outcome.expect(0).sorted_lines(), lines);
}

#[test]
fn nothing_is_left_of_a_batch_job_that_is_cancelled() {
    // Prints the numbers of the ranks, then those of the processes that started them.
    let script = "sbatch -N2 -n4 -o /tmp/out --wrap \"$1 $2 idle\" >&2
        until [ \"$(grep -c . /tmp/out 2>/dev/null)\" = 4 ]; do sleep 0.1; done
        cat /tmp/out
        for rank in $(cat /tmp/out); do cut -d ' ' -f 4 /proc/$rank/stat; done
        scancel --user root
        read -r _ || true";
    let mut job = on_cluster(script).stdin(Stdio::piped()).start();
    let mut is_refused = false;
    eventually("the job runs, or there is no Slurm", || {
        is_refused = job.stderr().contains("slurm: ") || job.stderr().contains("hosts: ");
        is_refused || job.stdout().lines().count() == 8
    });
    if is_refused {
        return skip(&job.stderr());
    }
    process::await_end(&job.numbers(8));
    drop(job.stdin());
    job.expect(0);
}
