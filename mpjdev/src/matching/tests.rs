//! Tests of matching: MPI's rules by example, cost and memory, and a quadratic oracle.

use std::cell::Cell;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{ANY_BOTH, ANY_SOURCE, ANY_TAG, CLASSES, EXACT, Envelope, Matcher, Pattern};

thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Called by the code under test for every queue head and every entry that it examines.
pub(crate) fn count_steps(steps: usize) {
    STEPS.set(STEPS.get() + steps);
}

/// Enough keys for memory and costs to grow with them. Miri is slow.
const MANY: i32 = if cfg!(miri) { 1_000 } else { 100_000 };

/// Runs `body`, and returns its result and how many steps it took.
pub(crate) fn steps_of<R>(body: impl FnOnce() -> R) -> (R, usize) {
    let before = STEPS.get();
    let result = body();
    (result, STEPS.get() - before)
}

fn envelope(source: u32, tag: i32) -> Envelope {
    Envelope { context: 7, source, tag }
}

fn pattern(source: impl Into<Option<u32>>, tag: impl Into<Option<i32>>) -> Pattern {
    Pattern { context: 7, source: source.into(), tag: tag.into() }
}

type Numbered = Matcher<usize>;

#[test]
fn the_earliest_posted_receive_wins_over_every_class() {
    let mut matcher = Numbered::new();
    let patterns = [pattern(None, None), pattern(1, 2), pattern(1, None), pattern(None, 2)];
    for (now, pattern) in (0..).zip(patterns) {
        matcher.push_posted(pattern, now);
    }
    for (now, pattern) in (0..).zip(patterns) {
        assert_eq!(matcher.pattern_of(now), Some(pattern));
        assert_eq!(matcher.take_posted(envelope(1, 2)), Some(now));
        assert_eq!(matcher.pattern_of(now), None);
    }
    assert_eq!(matcher.take_posted(envelope(1, 2)), None);
}

#[test]
fn the_earliest_unexpected_message_wins_for_every_class() {
    for pattern in [pattern(1, 2), pattern(None, 2), pattern(1, None), pattern(None, None)] {
        let mut matcher = Numbered::new();
        matcher.push_unexpected(Envelope { context: 8, ..envelope(1, 2) }, 99);
        for now in 0..3 {
            matcher.push_unexpected(envelope(1, 2), now);
        }
        for now in 0..3 {
            assert_eq!(matcher.peek_unexpected(&pattern), Some((envelope(1, 2), &now)));
            assert_eq!(matcher.take_unexpected(&pattern), Some((envelope(1, 2), now)));
        }
        assert_eq!(matcher.take_unexpected(&pattern), None);
        assert_eq!(matcher.unexpected_len(), 1);
    }
}

#[test]
fn no_value_of_source_or_tag_is_mistaken_for_a_wildcard() {
    let extremes = [(0, 0), (u32::MAX, -1), (0, i32::MIN), (u32::MAX, i32::MAX)];
    for (source, tag) in extremes {
        let mut matcher = Numbered::new();
        matcher.push_posted(pattern(source, tag), 0);
        matcher.push_posted(pattern(source, None), 1);
        matcher.push_posted(pattern(None, tag), 2);
        assert_eq!(matcher.take_posted(envelope(5, 5)), None);
        assert_eq!(matcher.take_posted(envelope(source, 5)), Some(1));
        assert_eq!(matcher.take_posted(envelope(5, tag)), Some(2));
        assert_eq!(matcher.take_posted(envelope(source, tag)), Some(0));
    }
}

#[test]
fn a_wildcard_finds_what_came_before_and_after_its_first_use() {
    let mut matcher = Numbered::new();
    matcher.push_unexpected(envelope(1, 10), 0);
    matcher.push_unexpected(envelope(2, 20), 1);
    assert_eq!(matcher.peek_unexpected(&pattern(None, 20)), Some((envelope(2, 20), &1)));
    matcher.push_unexpected(envelope(3, 20), 2);
    assert_eq!(matcher.take_unexpected(&pattern(2, 20)), Some((envelope(2, 20), 1)));
    assert_eq!(matcher.take_unexpected(&pattern(None, 20)), Some((envelope(3, 20), 2)));
    assert_eq!(matcher.take_unexpected(&pattern(None, 10)), Some((envelope(1, 10), 0)));
    assert_eq!(matcher.unexpected_len(), 0);
}

#[test]
fn without_unexpected_messages_a_wildcard_costs_nothing_later() {
    let mut matcher = Numbered::new();
    assert_eq!(matcher.take_unexpected(&pattern(None, None)), None);
    assert_eq!(matcher.peek_unexpected(&pattern(None, None)), None);
    assert!(!matcher.unexpected.active[ANY_BOTH]);
    matcher.push_unexpected(envelope(1, 1), 0);
    assert_eq!(matcher.take_unexpected(&pattern(None, None)), Some((envelope(1, 1), 0)));
    assert!(matcher.unexpected.active[ANY_BOTH]);
}

#[test]
fn stale_tickets_name_nothing() {
    let mut matcher = Numbered::new();
    let taken = matcher.push_unexpected(envelope(1, 1), 2);
    assert_eq!(matcher.take_unexpected(&pattern(1, 1)), Some((envelope(1, 1), 2)));
    assert_eq!(matcher.remove_unexpected(taken), None);
    let removed = matcher.push_unexpected(envelope(1, 1), 4);
    assert_eq!(matcher.remove_unexpected(taken), None);
    assert_eq!(matcher.remove_unexpected(removed), Some((envelope(1, 1), 4)));
    assert_eq!(matcher.remove_unexpected(removed), None);
    assert!(matcher.is_unexpected_empty());
}

#[test]
fn a_number_names_a_receive_while_it_waits() {
    let mut matcher = Numbered::new();
    for wildly in [pattern(1, 1), pattern(None, 1), pattern(None, None)] {
        assert!(!matcher.cancel_posted(7), "nothing has this number");
        matcher.push_posted(wildly, 7);
        assert!(matcher.take_posted(envelope(1, 1)).is_some());
        assert!(!matcher.cancel_posted(7), "it met its message");
        matcher.push_posted(pattern(1, 2), 3);
        matcher.push_posted(wildly, 7);
        assert!(matcher.cancel_posted(7));
        assert!(!matcher.cancel_posted(7), "it was cancelled before");
        assert_eq!(matcher.take_posted(envelope(1, 1)), None);
        assert_eq!(matcher.take_posted(envelope(1, 2)), Some(3));
        assert_eq!(matcher.posted_len(), 0);
    }
}

/// Returns the steps of each kind of operation, on a matcher with `depth` other entries with the same key in each
/// queue, and as many with other keys.
fn steps_at(depth: usize) -> Vec<usize> {
    let mut matcher = Numbered::new();
    // Open the wildcard indexes, so that every operation below maintains all four.
    matcher.push_unexpected(envelope(0, 0), 0);
    for wild in [pattern(None, 0), pattern(0, None), pattern(None, None)] {
        assert!(matcher.peek_unexpected(&wild).is_some());
    }
    for now in 0..depth {
        let number = u32::try_from(now).expect("depths are small");
        let other = number as i32 + 100;
        matcher.push_posted(pattern(1, 1), 3 * number);
        matcher.push_posted(pattern(1, other), 3 * number + 1);
        matcher.push_posted(pattern(None, other), 3 * number + 2);
        matcher.push_unexpected(envelope(2, 2), now);
        matcher.push_unexpected(envelope(2, other), now);
    }
    let last = 3 * u32::try_from(depth).expect("depths are small");
    let mut steps = Vec::new();
    steps.push(steps_of(|| matcher.push_posted(pattern(1, 1), last)).1);
    steps.push(steps_of(|| assert!(matcher.take_posted(envelope(1, 1)).is_some())).1);
    steps.push(steps_of(|| assert!(matcher.take_posted(envelope(9, 9)).is_none())).1);
    steps.push(steps_of(|| assert!(matcher.cancel_posted(last / 2 / 3 * 3))).1);
    steps.push(steps_of(|| matcher.push_unexpected(envelope(2, 2), 1)).1);
    let (ticket, _) = matcher.unexpected_tickets().nth(depth).expect("there are more");
    steps.push(steps_of(|| assert!(matcher.remove_unexpected(ticket).is_some())).1);
    for wanted in [pattern(2, 2), pattern(2, None), pattern(None, 2), pattern(None, None)] {
        steps.push(steps_of(|| assert!(matcher.peek_unexpected(&wanted).is_some())).1);
        steps.push(steps_of(|| assert!(matcher.take_unexpected(&wanted).is_some())).1);
    }
    steps
}

#[test]
fn the_cost_of_a_match_does_not_grow_with_the_depth() {
    let shallow = steps_at(10);
    assert!(shallow.iter().all(|&steps| (1..20).contains(&steps)), "{shallow:?}");
    assert_eq!(shallow, steps_at(MANY as usize / 10));
}

#[test]
fn an_exact_match_touches_one_entry() {
    let mut matcher = Numbered::new();
    let (_, posting) = steps_of(|| matcher.push_posted(pattern(1, 1), 0));
    let (taken, taking) = steps_of(|| matcher.take_posted(envelope(1, 1)));
    assert!(taken.is_some());
    assert_eq!((posting, taking), (0, 0), "a row is in no index");
    matcher.push_posted(pattern(0, 0), 1);
    matcher.push_posted(pattern(0, 1), 2);
    let (_, posting) = steps_of(|| matcher.push_posted(pattern(1, 1), 0));
    let (taken, taking) = steps_of(|| matcher.take_posted(envelope(1, 1)));
    assert!(taken.is_some());
    assert_eq!((posting, taking), (1, 1));
}

#[test]
fn a_wildcard_lane_is_filled_once() {
    let mut matcher = Numbered::new();
    for tag in 0..1000 {
        matcher.push_unexpected(envelope(1, tag), 0);
    }
    let mut first = || steps_of(|| matcher.peek_unexpected(&pattern(None, 5)).is_some());
    let (found, filling) = first();
    assert!(found && filling >= 1000);
    assert_eq!(first(), (true, 1));
}

#[test]
fn memory_stays_bounded_when_no_key_comes_twice() {
    let mut matcher = Numbered::new();
    matcher.push_unexpected(envelope(0, -1), 0);
    matcher.push_posted(pattern(0, -2), 1);
    for wild in [pattern(None, -1), pattern(0, None), pattern(None, None)] {
        assert!(matcher.peek_unexpected(&wild).is_some());
    }
    for tag in 0..MANY {
        let source = tag.unsigned_abs();
        matcher.push_posted(pattern(source, tag), 0);
        assert!(matcher.take_posted(envelope(source, tag)).is_some());
        matcher.push_posted(pattern(None, tag), 0);
        assert!(matcher.take_posted(envelope(source, tag)).is_some());
        matcher.push_unexpected(envelope(source, tag), 0);
        assert!(matcher.take_unexpected(&pattern(source, tag)).is_some());
    }
    let indexes = matcher.posted.indexes.iter().chain(&matcher.unexpected.indexes);
    for (queues, room) in indexes.map(super::index::Index::footprint) {
        assert!(queues <= 64 && room <= 256, "{queues} queues, room for {room}");
    }
    assert_eq!((matcher.posted_len(), matcher.unexpected_len()), (1, 1));
}

#[test]
fn memory_of_a_burst_of_keys_is_given_back() {
    let mut matcher = Numbered::new();
    matcher.push_posted(pattern(2, 0), MANY.unsigned_abs());
    for tag in 0..MANY {
        matcher.push_posted(pattern(1, tag), tag.unsigned_abs());
    }
    let (_, at_peak) = matcher.posted.indexes[EXACT].footprint();
    assert!(at_peak >= MANY as usize);
    for tag in 0..MANY {
        assert!(matcher.take_posted(envelope(1, tag)).is_some());
    }
    for tag in MANY..3 * MANY {
        matcher.push_posted(pattern(1, tag), 0);
        assert!(matcher.take_posted(envelope(1, tag)).is_some());
    }
    let (queues, room) = matcher.posted.indexes[EXACT].footprint();
    assert!(queues <= 64 && room <= 256, "{queues} queues, room for {room}");
}

/// One call of the matcher, as the device makes it.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A receive takes an unexpected message, or is posted.
    Receive(Pattern),
    /// An arrival takes a posted receive, or becomes an unexpected message.
    Arrive(Envelope),
    /// Cancels the receive with this number, whether or not it waits.
    Cancel(usize),
    /// A probe.
    Peek(Pattern),
    /// Removes the unexpected message of the n-th ticket so far, whether or not it waits.
    Remove(usize),
}

/// Two vectors in order of arrival, searched from the front.
#[derive(Default)]
struct Oracle {
    posted: Vec<(Pattern, u32)>,
    unexpected: Vec<(Envelope, usize)>,
}

impl Oracle {
    fn find_unexpected(&self, pattern: Pattern) -> Option<usize> {
        self.unexpected.iter().position(|(envelope, _)| fits(pattern, *envelope))
    }

    fn take_unexpected(&mut self, pattern: Pattern) -> Option<(Envelope, usize)> {
        self.find_unexpected(pattern).map(|at| self.unexpected.remove(at))
    }

    fn take_posted(&mut self, envelope: Envelope) -> Option<u32> {
        let at = self.posted.iter().position(|(pattern, _)| fits(*pattern, envelope))?;
        Some(self.posted.remove(at).1)
    }
}

/// The matching rule, written independently of the code under test.
fn fits(pattern: Pattern, envelope: Envelope) -> bool {
    let source_fits = pattern.source.is_none() || pattern.source == Some(envelope.source);
    let tag_fits = pattern.tag.is_none() || pattern.tag == Some(envelope.tag);
    pattern.context == envelope.context && source_fits && tag_fits
}

fn any_envelope() -> impl Strategy<Value = Envelope> {
    (0..2_u32, 0..3_u32, 0..3_i32).prop_map(|(context, source, tag)| Envelope {
        context,
        source,
        tag,
    })
}

fn any_pattern() -> impl Strategy<Value = Pattern> {
    (any_envelope(), 0..CLASSES).prop_map(|(envelope, class)| Pattern {
        context: envelope.context,
        source: (class & ANY_SOURCE == 0).then_some(envelope.source),
        tag: (class & ANY_TAG == 0).then_some(envelope.tag),
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any_pattern().prop_map(Step::Receive),
        4 => any_envelope().prop_map(Step::Arrive),
        1 => (0..32_usize).prop_map(Step::Cancel),
        1 => any_pattern().prop_map(Step::Peek),
        1 => (0..32_usize).prop_map(Step::Remove),
    ]
}

/// A matcher and an oracle that get the same steps.
#[derive(Default)]
struct Twins {
    matcher: Numbered,
    oracle: Oracle,
    /// Tickets, each with the number that its entry carries.
    unexpected_tickets: Vec<(super::UnexpectedTicket, usize)>,
}

impl Twins {
    fn step(&mut self, now: usize, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Receive(pattern) => self.receive(pattern)?,
            Step::Arrive(envelope) => self.arrive(now, envelope)?,
            Step::Cancel(nth) => self.cancel(nth)?,
            Step::Peek(pattern) => {
                let found = self.matcher.peek_unexpected(&pattern).map(|(e, &value)| (e, value));
                let expected =
                    self.oracle.find_unexpected(pattern).map(|at| self.oracle.unexpected[at]);
                prop_assert_eq!(found, expected);
            }
            Step::Remove(nth) => self.remove(nth)?,
        }
        self.compare_queues()
    }

    fn receive(&mut self, pattern: Pattern) -> Result<(), TestCaseError> {
        let taken = self.matcher.take_unexpected(&pattern);
        prop_assert_eq!(taken, self.oracle.take_unexpected(pattern));
        if taken.is_none() {
            // The lowest free number, as a caller with slots would choose it.
            let taken = |number: &u32| self.oracle.posted.iter().any(|(_, taken)| taken == number);
            let number = (0..).find(|number| !taken(number)).expect("numbers do not end");
            self.matcher.push_posted(pattern, number);
            self.oracle.posted.push((pattern, number));
        }
        Ok(())
    }

    fn arrive(&mut self, now: usize, envelope: Envelope) -> Result<(), TestCaseError> {
        let taken = self.matcher.take_posted(envelope);
        prop_assert_eq!(taken, self.oracle.take_posted(envelope));
        if taken.is_none() {
            self.unexpected_tickets.push((self.matcher.push_unexpected(envelope, now), now));
            self.oracle.unexpected.push((envelope, now));
        }
        Ok(())
    }

    fn cancel(&mut self, nth: usize) -> Result<(), TestCaseError> {
        let at = self.oracle.posted.iter().position(|&(_, waiting)| waiting as usize == nth);
        let expected = at.map(|at| self.oracle.posted.remove(at)).is_some();
        prop_assert_eq!(self.matcher.cancel_posted(nth as u32), expected);
        Ok(())
    }

    fn remove(&mut self, nth: usize) -> Result<(), TestCaseError> {
        let Some(&(ticket, number)) = self.unexpected_tickets.get(nth) else {
            return Ok(());
        };
        let at = self.oracle.unexpected.iter().position(|&(_, waiting)| waiting == number);
        let expected = at.map(|at| self.oracle.unexpected.remove(at));
        prop_assert_eq!(self.matcher.remove_unexpected(ticket), expected);
        Ok(())
    }

    fn compare_queues(&self) -> Result<(), TestCaseError> {
        let posted: Vec<_> = self.matcher.posted().collect();
        let unexpected: Vec<_> =
            self.matcher.unexpected().map(|(&e, &number)| (e, number)).collect();
        prop_assert_eq!(self.matcher.posted_len(), posted.len());
        prop_assert_eq!(self.matcher.unexpected_len(), unexpected.len());
        prop_assert_eq!(&posted, &self.oracle.posted);
        prop_assert_eq!(&unexpected, &self.oracle.unexpected);
        Ok(())
    }
}

proptest! {
    /// Contexts, sources and tags come from tiny ranges so that wildcards collide often.
    #[test]
    fn agrees_with_the_quadratic_oracle(steps in vec(any_step(), 0..128)) {
        let mut twins = Twins::default();
        for (now, step) in steps.into_iter().enumerate() {
            twins.step(now, step)?;
        }
    }

    #[test]
    fn a_pattern_matches_what_the_rule_says(pattern in any_pattern(), envelope in any_envelope()) {
        prop_assert_eq!(pattern.matches(&envelope), fits(pattern, envelope));
    }
}
