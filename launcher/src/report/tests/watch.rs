//! The block of `--watch`.

use transport_lapi::bootstrap::control::{MessageTotals, Usage};

use super::*;

fn usage(sent: u64) -> Usage {
    let totals = Some(MessageTotals { sent, bytes: 1_000 * sent, received: 0 });
    Usage { memory: Some(2_000_000), totals }
}

#[test]
fn a_row_says_what_a_rank_does_and_sends() {
    let mut job = joined(4);
    finish(&mut job, 3);
    job.ended(3, Ending::Code(0), ms(600));
    let waits = [state(&[recv(1, 7)]), state(&[]), state(&[barrier(0, 0)]), state(&[])];
    let activities = vec![None, Some(Activity::Computing), None, None];
    let usages = vec![usage(4_000), usage(10), Usage::default(), usage(9)];
    let (at, mut rates) = (ms(2_500), Rates::default());
    let seen = Snapshot { at, activities, usages, ..snapshot(waits) };
    let expected = "\
4 ranks, 2 s: 1.6k messages/s, 1.6MB/s, 4.0MB of memory
rank  sent/s  bytes/s  memory  does
0       1.6k     1.6M    2.0M  recv tag 7 from rank 1 for 2 s
1          4     4.0k    2.0M  awake
2          -        -       -  barrier for 2 s, without ranks 0-1, 3
3          -        -       -  finished, exited with code 0
";
    assert_eq!(rates.block(&job, &seen), expected);
    let usages = vec![usage(4_100), usage(9), usage(7), Usage::default()];
    let later = rates.block(&job, &Snapshot { at: ms(4_500), usages, ..seen });
    let rates_of =
        |line: &str| line.split_whitespace().take(4).map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<_> = later.lines().skip(2).map(rates_of).collect();
    let shown = [["0", "50", "50k", "2.0M"], ["1", "0", "0", "2.0M"], ["2", "3", "3.5k", "2.0M"]];
    assert_eq!(rows[..3], shown, "{later}");
}

/// Looks that follow each other closely show rates of a longer time.
#[test]
fn rates_are_of_about_a_second_at_least() {
    let (job, mut rates) = (joined(1), Rates::default());
    let mut sent_at = |at: u64, sent| {
        let seen = Snapshot { at: ms(at), usages: vec![usage(sent)], ..snapshot([state(&[])]) };
        let block = rates.block(&job, &seen);
        block.lines().nth(2).and_then(|row| row.split_whitespace().nth(1)).unwrap().to_owned()
    };
    assert_eq!(
        [sent_at(500, 500), sent_at(510, 600), sent_at(1_500, 1_500)],
        ["1.0k", "10k", "1.0k"]
    );
    assert_eq!(sent_at(2_500, 1_500), "0");
}

#[test]
fn ranks_of_a_large_job_share_rows() {
    let (job, mut rates) = (joined(64), Rates::default());
    let states = (0..64).map(|rank| match rank {
        0..40 => state(&[recv(rank + 1, 7)]),
        40..63 => state(&[barrier(0, 0)]),
        _ => state(&[]),
    });
    let mut activities = vec![None; 63];
    activities.push(Some(Activity::Computing));
    let seen = Snapshot { activities, usages: vec![usage(10); 64], ..snapshot(states) };
    let expected = "\
64 ranks, 1 s: 640 messages/s, 640kB/s, 128MB of memory
rank   sent/s  bytes/s  memory  does
0-39      400     400k     80M  recv
40-62     230     230k     46M  barrier, without ranks 0-39, 63
63         10      10k    2.0M  awake
";
    assert_eq!(rates.block(&job, &seen), expected);
}

/// Whatever ranks publish, the block has a limit of lines (RE2).
#[test]
fn a_job_of_many_kinds_has_few_rows() {
    let (job, mut rates) = (joined(64), Rates::default());
    let states = (0..64).map(|rank| state(&[Wait { call: CallCode(900 + rank), ..recv(0, 7) }]));
    let block = rates.block(&job, &snapshot(states));
    assert_eq!(block.lines().count(), 2 + 16 + 1, "{block}");
    assert!(block.ends_with("and others, of ranks 16-63\n"), "{block}");
}
