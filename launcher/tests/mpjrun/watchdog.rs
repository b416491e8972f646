//! What the harness of the tests does with a job that hangs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use mpj_harness::{Scene, eventually};

use crate::script;

#[test]
fn a_job_that_hangs_fails_with_its_report_and_is_ended() {
    let scene = Scene::new("");
    let hangs = "setsid sleep 600 & echo here; sleep 600; echo \"$0\"";
    let job = script(2, hangs).at(&scene).limit(Duration::from_secs(2)).start();
    eventually("both ranks hang", || job.stdout() == "here\nhere\n");
    let failure = catch_unwind(AssertUnwindSafe(|| job.expect(0))).expect_err("it hangs");
    let said = failure.downcast_ref::<String>().expect("a panic with words");
    for words in ["watchdog: not over after 2s", "here\nhere\n", "mpjrun: state of the job "] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    scene.assert_clean();
}
