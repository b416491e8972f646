//! `--bind-to`, `--map-by` and `--report-bindings`, on whatever processors this machine has.

use mpj_harness::mpjrun;

use crate::script;

const WHERE: &str = "while read key value; do [ $key != Cpus_allowed_list: ] || echo $value; done \
                     < /proc/$$/status";

#[test]
fn a_bound_rank_runs_where_it_is_said_to() {
    let words = ["-n", "1", "--bind-to", "hwthread", "--report-bindings", "sh", "-c", WHERE];
    let done = mpjrun(words).expect(0);
    let processor = done.stdout.trim().to_owned();
    assert!(processor.parse::<usize>().is_ok(), "one processor: {done:?}");
    assert!(done.stderr.starts_with("mpjrun: rank 0 (pid "), "{done:?}");
    done.says(&format!("is bound to processor {processor}, a hardware thread of socket "));
}

#[test]
fn ranks_are_not_bound_unless_asked_for() {
    let free = script(1, WHERE).expect(0).stdout;
    let words = ["-n", "1", "--bind-to", "none", "--map-by", "core", "--report-bindings"];
    let done = mpjrun(words.into_iter().chain(["sh", "-c", WHERE])).expect(0);
    assert_eq!(done.stdout, free);
    done.says(" is not bound\n");
}

#[test]
fn more_ranks_than_places_share_and_it_is_said_once() {
    let place = "echo $MPJ_PROCESSORS";
    let words = ["-n", "200", "--map-by", "hwthread", "sh", "-c", place];
    let done = mpjrun(words).expect(0);
    let usable = std::thread::available_parallelism().expect("a number").get();
    if usable < 200 {
        assert_eq!(done.stderr.matches("so some share one").count(), 1, "{done:?}");
        assert_eq!(done.stdout, format!("{usable}\n").repeat(200));
    }
    assert_eq!(script(1, place).expect(0).stdout, "\n", "said to bound ranks only");
}
