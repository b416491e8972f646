//! `--bind-to`, `--map-by` and `--report-bindings`, on whatever processors this machine has.

use mpj_harness::mpjrun;

use crate::script;

const WHERE: &str = "while read key value; do [ $key != Cpus_allowed_list: ] || echo $value; done \
                     < /proc/$$/status";

/// How many processors this process may use. Limits on processor time do not count, as they do for
/// `available_parallelism`.
fn usable() -> usize {
    let set = rustix::thread::sched_getaffinity(None).expect("the kernel tells");
    set.count() as usize
}

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

/// What OpenMP takes for the number of its threads: all processors together where there are no more ranks than
/// processors, and all of them in each rank where there are more.
#[test]
fn ranks_share_the_processors_evenly_unless_asked_for() {
    let count =
        "while read key value; do [ $key != Cpus_allowed: ] || echo $value; done < /proc/$$/status";
    let allowed = |ranks: usize| -> Vec<u32> {
        let outcome = script(ranks, count).expect(0);
        let bits = |line: &str| {
            let digits = line.chars().filter_map(|digit| digit.to_digit(16));
            digits.map(u32::count_ones).sum()
        };
        outcome.stdout.lines().map(bits).collect()
    };
    let usable = usable();
    assert_eq!(allowed(1), [usable as u32]);
    assert_eq!(allowed(2 * usable), vec![usable as u32; 2 * usable]);
    for ranks in (2..=usable).take(6) {
        let shares = allowed(ranks);
        assert_eq!(shares.iter().sum::<u32>(), usable as u32, "{ranks}: {shares:?}");
    }
}

#[test]
fn info_tells_where_ranks_would_run() {
    let usable = usable();
    let told = |ranks: usize| mpjrun(["--info", "-n", &ranks.to_string()]).expect(0).stdout;
    assert!(told(1).contains("\nprocessors\n  rank 0  not bound\n"), "{}", told(1));
    let many = told(2 * usable);
    assert!(many.contains("\n  ranks 0-1  not bound, at home on processor "), "{many}");
    let even = told(2);
    assert_eq!(usable > 1, even.contains("\n  rank 1  bound to processor"), "{even}");
    assert!(even.contains("OMP_NUM_THREADS"), "{even}");
}

#[test]
fn more_ranks_than_places_share_and_it_is_said_once() {
    let place = "echo $MPJ_PROCESSORS";
    let words = ["-n", "200", "--map-by", "hwthread", "sh", "-c", place];
    let done = mpjrun(words).expect(0);
    let usable = usable();
    if usable < 200 {
        assert_eq!(done.stderr.matches("so some share one").count(), 1, "{done:?}");
        assert_eq!(done.stdout, format!("{usable}\n").repeat(200));
    }
    assert_eq!(script(1, place).expect(0).stdout, "\n", "said to bound ranks only");
}
