//! The fault campaign: ranks that fail at random moments of everything that a job does. Whatever happens, the launcher
//! names the cause, ends soon with its code, and leaves nothing behind.
//!
//! Each round has a seed, which a failure prints. `MPJ_FAULT_ROUNDS=5000 MPJ_FAULT_SEED=1 cargo test -p mpj-tests
//! --test faults` runs more rounds than the usual 120, and others.

use mpj_harness::{Outcome, Scene, launch};
use mpj_tests::faults::{FIRST_SEED, Fault, How, ROUNDS, asked};

const VICTIM: &str = env!("CARGO_BIN_EXE_victim");
const SCRIBBLER: &str = env!("CARGO_BIN_EXE_scribbler");

#[test]
fn whatever_befalls_a_rank_is_told_and_nothing_is_left() {
    let scene = Scene::new(VICTIM);
    let first = asked("MPJ_FAULT_SEED", FIRST_SEED);
    for seed in (0..asked("MPJ_FAULT_ROUNDS", ROUNDS)).map(|round| first.wrapping_add(round)) {
        let fault = Fault::of_seed(seed);
        round(&scene, &fault).unwrap_or_else(|complaint| {
            panic!("MPJ_FAULT_ROUNDS=1 MPJ_FAULT_SEED={seed}: {fault:?}: {complaint}")
        });
    }
}

fn round(scene: &Scene, fault: &Fault) -> Result<(), String> {
    let backend = if fault.stage.is_rendezvous() { "rendezvous" } else { "auto" };
    let job = launch(VICTIM).ranks(fault.ranks).options(["--backend", backend]);
    let outcome = job.args(fault.words()).at(scene).run();
    check(fault, &outcome).map_err(|complaint| format!("{complaint}: {outcome:?}"))?;
    if fault.how == How::Orphan {
        scene.bury_orphans();
    }
    match &scene.remains()[..] {
        [] => Ok(()),
        remains => Err(format!("left behind: {remains:?}")),
    }
}

fn check(fault: &Fault, outcome: &Outcome) -> Result<(), String> {
    let Outcome { code, stdout, stderr } = outcome;
    let expected = fault.how.exit_code().unwrap_or(137);
    if *code != expected {
        return Err(format!("the code should be {expected}"));
    }
    let pid = stdout.lines().find_map(|line| line.strip_prefix("victim "));
    match fault.how {
        How::Orphan => return Ok(()),
        How::Pause if stderr.is_empty() => return Ok(()),
        How::Pause => return Err("it complains of nothing".to_owned()),
        _ => {}
    }
    let pid = pid.ok_or("what the victim printed is lost")?;
    let named = format!("rank {} (pid {pid}", fault.rank);
    let cause = fault.how.cause();
    let missing = [&named, &cause].into_iter().find(|words| !stderr.contains(*words));
    missing.map_or(Ok(()), |words| Err(format!("it does not say {words:?}")))
}

/// A rank writes garbage over the shared memory while all ranks send each other messages. The others may finish if they
/// never see it; they may fail, or wait until the job is ended. They may not crash, and the launcher ends the job and
/// says why.
#[test]
fn garbage_in_the_shared_memory_is_an_error_at_worst() {
    let scene = Scene::new(SCRIBBLER);
    let first = asked("MPJ_FAULT_SEED", 815);
    for seed in (0..asked("MPJ_GARBAGE_ROUNDS", 15)).map(|round| first.wrapping_add(round)) {
        let (ranks, backend) = (2 + seed % 3, ["auto", "rendezvous", "eager"][seed as usize % 3]);
        let words = [seed % ranks, seed].map(|number| number.to_string());
        let job = launch(SCRIBBLER).ranks(ranks as usize).args(words).at(&scene);
        let outcome = job.options(["--backend", backend, "--timeout", "1"]).run();
        let Outcome { code, stderr, .. } = &outcome;
        let again = format!("MPJ_GARBAGE_ROUNDS=1 MPJ_FAULT_SEED={seed}: {outcome:?}");
        assert!([0, 1, 124, 125].contains(code), "{again}");
        assert!(*code == 0 || stderr.contains("mpjrun: "), "{again}");
        assert!(!stderr.contains("panicked"), "{again}");
        assert_eq!(scene.remains(), [""; 0], "{again}");
    }
}
