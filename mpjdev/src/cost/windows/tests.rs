//! Windows against tables of times: they find the faster protocol, and notice when that changes.

use std::time::Instant;

use super::*;
use crate::cost::{Costs, FROM};
use Protocol::{Eager, Rendezvous};

/// Microseconds of one message by each protocol: eager, rendezvous.
type Times = [f64; 2];

/// A destination to which windows are sent, each of which is answered, with the clock that ranks share.
#[derive(Default)]
struct Stream {
    costs: Costs,
    clock: Duration,
    windows: u64,
}

impl Stream {
    fn window(&mut self, times: Times) -> f64 {
        self.window_of(FROM, times)
    }

    /// Sends the messages of one window, which take `times` each. Returns how long it took.
    fn window_of(&mut self, len: usize, [eager, rendezvous]: Times) -> f64 {
        let Self { costs, clock, windows } = self;
        *windows += 1;
        costs.choose(0, len, *windows, Instant::now, || *clock);
        let mut total = 0.0;
        for _ in 1..WINDOW {
            let protocol = costs.in_a_row(0, len, || *clock);
            let took = if protocol == Eager { eager } else { rendezvous };
            total += took;
            *clock += Duration::from_secs_f64(took / 1e6);
        }
        total
    }

    fn windows(&mut self, windows: usize, times: Times) -> f64 {
        (0..windows).map(|_| self.window(times)).sum()
    }
}

/// How long windows of messages take each of which takes `micros`.
fn fixed(windows: usize, micros: f64) -> f64 {
    windows as f64 * f64::from(WINDOW - 1) * micros
}

/// Times of each message of a window: Xeon, 256 KiB, unchanged; EPYC, near, 512 KiB; equal ones.
#[test]
fn windows_go_by_the_protocol_that_is_faster_for_windows() {
    for times in [[12.6, 6.5], [11.6, 16.4], [10.0, 10.0]] {
        let took = Stream::default().windows(1000, times);
        let best = fixed(1000, times[0].min(times[1]));
        assert!(took < 1.03 * best, "{took} instead of {best} for {times:?}");
    }
}

/// One window by rendezvous shows enough if it takes twice as long.
#[test]
fn a_trial_of_a_much_slower_protocol_ends_early() {
    for (rendezvous, tried) in [(10.0, 1), (25.0, 1), (7.0, 3)] {
        let took = Stream::default().windows(13, [5.0, rendezvous]);
        let expected = fixed(13 - tried, 5.0) + fixed(tried, rendezvous);
        assert!((took - expected).abs() < 1.0, "{took}, {expected}");
    }
}

/// One window in 40 takes three times as long.
#[test]
fn an_interrupted_window_does_not_end_rendezvous() {
    let mut stream = Stream::default();
    stream.windows(20, [10.0, 7.0]);
    let mut seed = 1_u64;
    let (mut took, mut least) = (0.0, 0.0);
    for _ in 0..2000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let times = if (seed >> 33) % 40 == 0 { [30.0, 21.0] } else { [10.0, 7.0] };
        took += stream.window(times);
        least += fixed(1, times[1]);
    }
    assert!(took < 1.03 * least, "{took} instead of {least}");
}

#[test]
fn windows_notice_that_the_other_protocol_has_become_faster() {
    let mut stream = Stream::default();
    stream.windows(200, [10.0, 6.0]);
    assert_eq!(stream.costs.in_a_row(0, FROM, || stream.clock), Rendezvous);
    stream.windows(700, [5.0, 6.0]);
    let settled = stream.windows(100, [5.0, 6.0]);
    assert!(settled < fixed(100, 5.1), "{settled}");
}

/// A program that sends in one direction and then in both, or the other way round, soon uses the better protocol.
#[test]
fn windows_that_change_are_tried_again_soon() {
    let mut stream = Stream::default();
    stream.windows(1000, [5.0, 6.0]);
    let changed = stream.windows(60, [10.0, 7.0]);
    assert!(changed < fixed(60, 8.5), "{changed}");
    // Where each is different, there are not many more trials.
    let mut stream = Stream::default();
    let each = |turn: usize| [10.0, 14.0, 6.0][turn % 3];
    let took: f64 = (0..600).map(|turn| stream.window([each(turn), 1.5 * each(turn)])).sum();
    assert!(took < fixed(600, 11.0), "{took}");
}

/// Both ends of an exchange are faster if both use rendezvous. An end that alone uses eager hardly takes longer itself,
/// but the other one does. Trials at the same time find the better protocol, whatever one end has sent before.
#[test]
fn both_ends_of_an_exchange_find_what_is_better_for_both() {
    for mixed in [15.0, 17.0, 20.0] {
        let by_rendezvous = windows_by_rendezvous(mixed);
        assert!(by_rendezvous > 150, "{by_rendezvous} if one end alone makes it {mixed} us");
    }
}

/// How many of 200 windows of an exchange go by rendezvous in both directions. A message takes 10 us by eager, 7 by
/// rendezvous, and `mixed` if the ends do not agree.
fn windows_by_rendezvous(mixed: f64) -> u32 {
    let mut ends = [Stream::default(), Stream::default()];
    ends[0].windows(700, [5.0, 6.0]);
    ends[1].clock = ends[0].clock;
    let mut by_rendezvous = 0;
    for _ in 0..200 {
        let mut protocols = [Eager; 2];
        let mut clock = ends[0].clock;
        for (end, chosen) in ends.iter_mut().zip(&mut protocols) {
            end.windows += 1;
            end.costs.choose(0, FROM, end.windows, Instant::now, || clock);
            for _ in 1..WINDOW {
                *chosen = end.costs.in_a_row(0, FROM, || clock);
            }
        }
        let each = match protocols {
            [Rendezvous, Rendezvous] => 7.0,
            [Eager, Eager] => 10.0,
            _ => mixed,
        };
        by_rendezvous += u32::from(protocols == [Rendezvous; 2]);
        clock += Duration::from_secs_f64(f64::from(WINDOW) * each / 1e6);
        ends.iter_mut().for_each(|end| end.clock = clock);
    }
    by_rendezvous
}

/// A program that sends a few windows of each size tries both protocols for the first one only.
#[test]
fn a_size_begins_with_what_is_known_of_a_similar_one() {
    let mut stream = Stream::default();
    stream.windows(7, [10.0, 6.0]);
    let took: f64 = (0..5).map(|_| stream.window_of(2 * FROM, [20.0, 12.0])).sum();
    assert!(took < fixed(5, 12.1), "{took}");
    // What is not so for this size is found out.
    let took: f64 = (0..200).map(|_| stream.window_of(4 * FROM, [20.0, 30.0])).sum();
    assert!(took < fixed(200, 22.0), "{took}");
    let took = stream.window_of(64 * FROM, [20.0, 10.0]);
    assert!(took > fixed(1, 19.9), "nothing is known of a size so different");
}
