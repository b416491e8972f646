//! Marks and visits in one thread: which origins are due, in which order, and until when.

use super::*;

fn none() -> Arrivals {
    Arrivals(std::array::from_fn(|_| AtomicU64::new(0)))
}

/// All due origins, in the order of their visits. They stay due.
fn visited(visits: &mut Visits<'_>) -> Vec<usize> {
    visits.collect();
    std::iter::from_fn(|| visits.next()).collect()
}

#[test]
fn the_marked_are_visited_in_order_and_stay_due_until_they_are_done() {
    let arrivals = none();
    let mut visits = Visits::new(&arrivals, MAX_TASKS_PER_HOST);
    assert_eq!(visited(&mut visits), []);
    for origin in [255, 0, 64, 63, 128, 64] {
        arrivals.mark(origin);
    }
    assert_eq!(visited(&mut visits), [0, 63, 64, 128, 255]);
    visits.done(63);
    visits.done(255);
    assert_eq!(visited(&mut visits), [0, 64, 128]);
    [0, 64, 128].into_iter().for_each(|origin| visits.done(origin));
    assert_eq!(visited(&mut visits), []);
}

/// AV3.
#[test]
fn a_mark_that_comes_during_the_visits_waits_for_the_next_ones() {
    let arrivals = none();
    let mut visits = Visits::new(&arrivals, 100);
    arrivals.mark(7);
    arrivals.mark(70);
    visits.collect();
    assert_eq!(visits.next(), Some(7));
    arrivals.mark(8);
    assert_eq!(visits.next(), Some(70));
    assert_eq!(visits.next(), None);
    assert_eq!(visited(&mut visits), [7, 8, 70]);
}

#[test]
fn all_origins_of_a_mark_are_visited() {
    let arrivals = none();
    let mut visits = Visits::new(&arrivals, 600);
    arrivals.mark(599);
    arrivals.mark(300);
    assert_eq!(visited(&mut visits), [44, 87, 300, 343, 556, 599]);
    [44, 87, 300, 343, 556].into_iter().for_each(|origin| visits.done(origin));
    assert_eq!(visited(&mut visits), [599]);
}

/// AV4.
#[test]
fn marks_of_tasks_that_the_job_has_not_are_passed_over() {
    let arrivals = none();
    for origin in [17, 18, 63, 64, 255] {
        arrivals.mark(origin);
    }
    assert_eq!(visited(&mut Visits::new(&arrivals, 18)), [17]);
}
