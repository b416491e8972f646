//! The sentence, the text for a terminal and the page.

use super::*;

/// Four ranks that meet twice; rank 2 comes 3 s after the others.
fn uneven() -> Profile {
    let rank =
        |late: u64| vec![collective(1 + late, 4, 0), collective(5 + late, 8, 1), send(9, 9, 0, 9)];
    Profile::of(&trace(vec![rank(0), rank(0), rank(3), rank(0)]))
}

#[test]
fn the_rank_that_computes_longest_is_named() {
    let expected = "Rank 2 computed 6.00 s longer than the others; they waited for it in all_reduce at \
                    src/main.rs:40 (18.0 s in all, 50 % of the ranks' time).";
    assert_eq!(uneven().verdict(), expected);
}

#[test]
fn of_two_ranks_both_are_named() {
    let ranks = vec![vec![recv(1, 5, 1, 1)], vec![send(5, 5, 0, 1)]];
    let expected = "Rank 1 computed 4.00 s longer than rank 0, which waited for it in recv (4.00 s in all, 40 % of the ranks' \
         time).";
    assert_eq!(Profile::of(&trace(ranks)).verdict(), expected);
}

#[test]
fn a_rank_that_is_waited_for_while_it_does_not_compute() {
    let ranks =
        vec![vec![recv(1, 5, 1, 1)], vec![call("write", Kind::File, 1, 5), send(5, 5, 0, 1)]];
    let expected =
        "Most waits were for rank 1, longest in recv (4.00 s in all, 40 % of the ranks' time).";
    assert_eq!(Profile::of(&trace(ranks)).verdict(), expected);
}

#[test]
fn ranks_that_wait_in_turn() {
    let ranks = vec![
        vec![collective(1, 3, 0), collective(6, 6, 1)],
        vec![collective(3, 3, 0), collective(4, 6, 1)],
    ];
    let expected = "Ranks wait for each other in turn, 33 % of their time, longest in all_reduce at src/main.rs:40; \
                    the most, 50 % of it, for rank 0.";
    assert_eq!(Profile::of(&trace(ranks)).verdict(), expected);
}

#[test]
fn jobs_that_move_data_and_jobs_that_compute() {
    let move_data = vec![Call { bytes: 3 << 20, ..send(1, 5, 0, 1) }, send(5, 6, 0, 2)];
    let expected = "Ranks spend 83 % of their time in calls without waiting for others, most in send (2 calls, 1.50 MiB each).";
    assert_eq!(Profile::of(&trace(vec![move_data])).verdict(), expected);
    let compute = Profile::of(&trace(vec![vec![send(97, 100, 0, 1)]]));
    assert_eq!(compute.verdict(), "Ranks compute during 97 % of their time: calls cost little.");
    let nothing = "No rank has made a call that was recorded.";
    assert_eq!(Profile::of(&trace(vec![vec![]])).verdict(), nothing);
    assert_eq!(Profile::of(&Collected::default()).verdict(), nothing);
}

#[test]
fn the_text_for_a_terminal() {
    let expected = "\
mpjrun: 4 ranks, 9.00 s: 50 % computing, 50 % waiting, 0 % in other calls
mpjrun: Rank 2 computed 6.00 s longer than the others; they waited for it in
mpjrun: all_reduce at src/main.rs:40 (18.0 s in all, 50 % of the ranks' time).
mpjrun: rank  computing  waiting  other calls  made others wait
mpjrun:    0     3.00 s   6.00 s         0 ns              0 ns
mpjrun:    1     3.00 s   6.00 s         0 ns              0 ns
mpjrun:    2     9.00 s     0 ns         0 ns            18.0 s
mpjrun:    3     3.00 s   6.00 s         0 ns              0 ns
mpjrun: call                          calls   total  waiting  longest  bytes
mpjrun: all_reduce at src/main.rs:40      8  18.0 s   18.0 s   3.00 s   64 B
mpjrun: send                              4    0 ns     0 ns     0 ns   32 B
mpjrun: rank 0 waited 6.00 s because of rank 2, in all_reduce at src/main.rs:40
mpjrun: rank 1 waited 6.00 s because of rank 2, in all_reduce at src/main.rs:40
mpjrun: rank 3 waited 6.00 s because of rank 2, in all_reduce at src/main.rs:40
";
    assert_eq!(uneven().text(), expected);
}

#[test]
fn many_ranks_fit_a_screen() {
    let rank = |rank: u64| {
        let name = "a_long_name_of_a_call_".repeat(4 + rank as usize % 7);
        let place = Some("src/some/deep/folder/of/the/program/with/long/names.rs:1234".into());
        let late = if rank == 77 { 30_000 } else { rank % 5 };
        vec![Call {
            name: name.as_str().into(),
            place,
            bytes: 1 << 50,
            ..collective(1 + late, 90_000, 0)
        }]
    };
    let mut collected = trace((0..300).map(rank).collect());
    collected.trace.ranks[5].threads[0].lost = 1;
    let text = Profile::of(&collected).text();
    assert!(text.lines().count() <= 24, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("mpjrun: mean of 295 others"), "{text}");
    assert!(text.contains(" 77    30001 s "), "{text}");
    assert!(text.ends_with("mpjrun: not recorded for want of memory: 1 call\n"), "{text}");
}

#[test]
fn the_page_needs_nothing_else_and_quotes_nothing_raw() {
    let evil = "</style><script>alert(1)</script>\"'&";
    let mut collected = trace(vec![
        vec![Call { place: Some(evil.into()), ..recv(1, 4, 1, 1) }, call(evil, Kind::Span, 0, 5)],
        vec![Call { name: evil.into(), ..send(3, 4, 0, 1) }],
    ]);
    collected.trace.ranks[0].host = evil.to_owned();
    let page = Profile::of(&collected).page(evil);
    for foreign in ["<script", "http:", "https:", "//", "url(", "@import", "src="] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert_eq!(page.matches("</style>").count(), 1);
    assert!(page.contains("<table class=\"matrix of-waits\">"), "{page}");
    assert!(page.contains("alert(1)"));
    assert!(page.contains("Rank 1 computed 2.00 s longer than rank 0"));
}
