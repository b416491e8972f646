//! Several clients in one process and one job: `mpj`, AM-2 and handlers over the transport meet the same clients of other
//! ranks and nobody else, join and leave in their order, and are reported truly.

use std::sync::Mutex;

use am2::Am;
use mpj::tuning::Options;
use mpj_harness::{Launch, launch, shell, watch};
use mpj_tests::clients::{Asking, Own, at_once, in_turn};
use transport_lapi::adapters::segment_bytes;
use transport_lapi::wireup;

const CLIENTS: &str = env!("CARGO_BIN_EXE_clients");

/// Runs a scene on so many ranks.
fn job(ranks: usize, scene: &[&str]) -> Launch {
    launch(CLIENTS).ranks(ranks).args(scene)
}

/// Runs a scene on two ranks that end well and each print one line. Returns what each says.
#[track_caller]
fn told(options: &[&str], scene: &str) -> [String; 2] {
    let told = job(2, &[scene]).options(options).expect_quiet();
    let lines = told.sorted_lines();
    [0, 1].map(|rank| {
        let said = lines[rank].strip_prefix(&format!("rank {rank}: "));
        said.unwrap_or_else(|| panic!("{told:?}")).to_owned()
    })
}

#[test]
fn clients_meet_their_like_and_leave_in_any_order() {
    for (ranks, order) in [(1, "mpj,am2,own"), (2, "own,am2,mpj"), (3, "am2,mpj,own")] {
        let told = job(ranks, &["exchange", order]).expect_quiet();
        let expected: Vec<String> =
            (0..ranks).map(|rank| format!("rank {rank} of {ranks}")).collect();
        assert_eq!(told.sorted_lines(), expected);
    }
}

/// Bells of many tasks are marked, and further contexts of `mpj` come before those of other clients.
#[test]
fn clients_of_many_ranks_and_contexts_meet() {
    let options = ["--contexts", "3"];
    let told = job(20, &["exchange", "mpj,am2,own"]).options(options).expect_quiet();
    assert_eq!(told.stdout.lines().count(), 20);
}

#[test]
fn the_numbers_of_a_rank_are_told_when_its_last_client_leaves() {
    let told = job(2, &["exchange", "mpj,am2,own"]).options(["--stats"]).expect(0);
    told.says("mpjrun:    1    100   800000 ").says("mpjrun:  all    200  1600000 ");
}

/// AM-2 may end without leaving: the others have left in an orderly way, before it or after it.
#[test]
fn a_client_that_is_dropped_leaves_the_end_to_the_others() {
    for order in ["drop,mpj,own", "own,mpj,drop"] {
        job(2, &["exchange", order]).expect_quiet();
    }
}

/// Without a launcher each client is in a job of this process alone.
#[test]
fn a_process_alone_has_several_clients() {
    let told = mpj_harness::command(CLIENTS).args(["exchange", "mpj,am2,own"]).expect_quiet();
    assert_eq!(told.stdout, "rank 0 of 1\n");
}

/// Ranks that are threads: each client gets one of their contexts.
#[test]
fn clients_of_ranks_that_are_threads_meet() {
    watch(|| {
        let mut ranks = wireup::in_process(3, 3).expect("memory suffices");
        let further = ranks.iter_mut().map(|contexts| {
            let (own, of_am2) = (contexts.pop(), contexts.pop());
            let am = of_am2.map(|adapter| Am::init(adapter, Default::default()));
            Mutex::new(Some((am.expect("a context").expect("AM-2"), own.expect("a context"))))
        });
        let further: Vec<_> = further.collect();
        let ends = mpj::local::run_over(&Options::default(), ranks, |world| {
            let taken = further[world.rank()].lock().expect("no panic").take();
            let (am, own) = taken.expect("each rank takes its own");
            let (mut asking, own) = (Asking::new(&am)?, Own::new(own)?);
            in_turn(&world, &mut asking, &own, 0..50)?;
            at_once(&world, &mut asking, &own, 50..100)?;
            asking.leave()
        });
        ends.expect("no rank panics").into_iter().for_each(|end| end.expect("all went well"));
    });
}

#[test]
fn ranks_that_join_in_different_orders_are_told_so() {
    let expected = "rank 1 joins the job as other, where rank 0 joins as own: all ranks join with the same clients in \
                    the same order";
    assert_eq!(told(&[], "order"), [expected; 2]);
}

#[test]
fn clients_beyond_the_last_context_are_refused() {
    let [first, second] = told(&["--contexts", "2"], "many");
    let expected = "fourth cannot join: it asks for 1 of the contexts of its rank, and the clients before it leave 0; a \
                    rank has as many as mpjrun --contexts says and 3 more";
    assert_eq!([&*first, &*second], [expected; 2]);
}

/// Where large files or mappings are forbidden, a job has no room for further clients, and is as large as without them.
#[test]
fn limits_leave_no_room_for_further_clients() {
    let bytes = segment_bytes(2, 1).expect("two ranks");
    for limit in [format!("-f {}", bytes.div_ceil(512)), format!("-v {}", 8 * bytes / 1024)] {
        let run = format!("ulimit {limit}; exec \"$0\" -n 2 \"$1\" late");
        let told = shell(&run).args([CLIENTS]).expect_quiet();
        assert!(told.stdout.contains("has left its job"), "{told:?}");
        let run = format!("ulimit {limit}; exec \"$0\" -n 2 \"$1\" twice");
        let refused = shell(&run).args([CLIENTS]).run();
        let expected = "am2 cannot join: it asks for 1 of the contexts of its rank, and the clients before it leave 0; a \
                        rank has as many as mpjrun --contexts says and 0 more, since ulimit -f or ulimit -v leaves no \
                        room for them\n";
        assert!(refused.stderr.contains(expected), "{refused:?}");
    }
}

#[test]
fn a_client_joins_once_and_before_the_others_have_left() {
    let again = "am2 has joined its job already in this process: a client joins once";
    assert_eq!(told(&[], "twice"), [again; 2]);
    let late = "am2 cannot join, since this process has left its job: a client joins before the last one of those \
                before it leaves";
    assert_eq!(told(&[], "late"), [late; 2]);
}

/// A client waits for the ranks that have not joined with it, which may be in deadlock with them.
#[test]
fn ranks_that_wait_for_a_client_and_for_a_message_are_in_deadlock() {
    let outcome = job(2, &["absent"]).expect(125);
    outcome.says("mpjrun: deadlock").says_all(&[
        "1      join        others    -  all, context 1      -  others have not come there",
        "cycle: 0 waits for 1 (recv tag 7) -> 1 waits for 0 (join in context 1) -> 0",
    ]);
}

#[test]
fn a_deadlock_of_all_clients_is_found() {
    let outcome = job(2, &["stuck"]).expect(125);
    outcome.says("mpjrun: deadlock").says_all(&[
        "0      recv           rank 1    7  world ",
        "0-1    a call of am2  -         -  -, context 1 ",
    ]);
}

#[test]
fn a_rank_that_waits_in_one_client_and_works_in_another_is_left_alone() {
    job(2, &["busy"]).options(["--look-every", "0.001"]).expect_quiet();
}

#[test]
fn a_rank_that_fails_ends_the_waits_of_the_others_in_whatever_client() {
    for client in ["mpj", "am2"] {
        let outcome = job(3, &["fails", client]).options(["--on-failure", "keep"]).run();
        let outcome = outcome.expect(101).says("it panicked at").says("the end of rank 0");
        for rank in [1, 2] {
            let said = format!("mpjrun: rank {rank} (pid ");
            let why = "mpjrun:   it said: rank 0 is gone: it gave up or ended before the job was finished";
            let lines: Vec<&str> = outcome.stderr.lines().collect();
            let is_end = |pair: &[&str]| pair[0].starts_with(&said) && pair[1] == why;
            assert!(lines.windows(2).any(is_end), "{outcome:?}");
        }
    }
}
