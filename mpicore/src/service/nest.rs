//! Which handlers a thread may run while it waits in others.
//!
//! A handler that waits runs the handlers of calls that arrive meanwhile, on top of itself, since calls may come back
//! to where they came from. The stack of a thread is finite, and a handler goes on only when those above it have
//! returned. So a thread does not run everything at once:
//!
//! - RC1: every call has a depth: 0 outside of handlers, and one more than that of the handler that makes it. Notices,
//!   for which no handler waits, have the depth 0. A thread runs a handler on top of others only if its call is deeper
//!   than the topmost one, or as deep while fewer than [`ALIKE`] of this depth are there. Other calls wait in the thread
//!   until handlers have returned. So a thread runs at most `DEPTHS * ALIKE` handlers at a time. Of those that wait it
//!   runs only deeper ones on top of others, and the deepest one first.
//! - RC2: no call waits forever for lack of a place. While a handler runs, no call that waits in its thread is deeper
//!   than it is: those that come are let in, and of those that waited the deepest one was taken. So a call of depth `d`
//!   that waits does so for a topmost handler of depth `d` or more, and so does one whose handler is not topmost. If that
//!   handler waits for calls, or for room for one, these have the depth `d + 1` or more; and depths have an end.
//!   (Handlers that wait for messages of their own must know who sends them.)
//! - After its own handler, a frame runs at most as many others as waited then. It passes the rest back to the device,
//!   so that the call in which it runs returns, however many calls come meanwhile.

use std::cell::RefCell;

use super::head::DEPTHS;

/// How many handlers of calls of the same depth a thread runs on top of each other.
pub(super) const ALIKE: usize = 4;

/// What a thread runs, and what waits there.
struct Nest {
    /// The depths of the calls whose handlers run, the topmost one last.
    depths: Vec<u8>,
    waiting: Vec<(u8, Handler)>,
}

/// Runs a handler now, or passes it back to the device.
type Handler = Box<dyn FnOnce(When)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Now,
    Later,
}

thread_local! {
    static NEST: RefCell<Nest> = const { RefCell::new(Nest { depths: Vec::new(), waiting: Vec::new() }) };
}

impl Nest {
    /// Whether the handler of a call of this depth may run now (RC1).
    fn admits(&self, depth: u8) -> bool {
        let alike = self.depths.iter().rev().take_while(|running| **running == depth).count();
        match self.depths.last() {
            Some(top) => depth > *top || depth == *top && alike < ALIKE,
            None => true,
        }
    }
}

/// Returns the depth of a call that this thread makes; `None` if it would be too deep.
pub(super) fn depth() -> Option<u8> {
    let depth = NEST.with_borrow(|nest| nest.depths.last().map_or(0, |top| top + 1));
    (depth < DEPTHS).then_some(depth)
}

/// Runs the handler of a call of this depth now, or when this thread has returned from others (RC1). It must not panic.
pub(super) fn run(depth: u8, handler: impl FnOnce(When) + 'static) {
    if !NEST.with_borrow(|nest| nest.admits(depth)) {
        return NEST.with_borrow_mut(|nest| nest.waiting.push((depth, Box::new(handler))));
    }
    let run_now = |depth, handler: Handler| {
        NEST.with_borrow_mut(|nest| nest.depths.push(depth));
        handler(When::Now);
        NEST.with_borrow_mut(|nest| nest.depths.pop());
    };
    run_now(depth, Box::new(handler));
    for _ in 0..NEST.with_borrow(|nest| nest.waiting.len()) {
        let Some((depth, handler)) = next() else { return };
        run_now(depth, handler);
    }
    while let Some((_, handler)) = next() {
        handler(When::Later);
    }
}

/// Takes the first one of the deepest handlers that wait, if it may run now: on top of others, only a deeper one (RC2).
fn next() -> Option<(u8, Handler)> {
    NEST.with_borrow_mut(|nest| {
        let deepest = nest.waiting.iter().map(|(depth, _)| *depth).max()?;
        nest.depths.last().is_none_or(|top| deepest > *top).then_some(())?;
        let place = nest.waiting.iter().position(|(depth, _)| *depth == deepest)?;
        Some(nest.waiting.remove(place))
    })
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn deeper_calls_run_on_top_and_others_wait() {
        let order = Rc::new(RefCell::new(Vec::new()));
        let note = |name: &'static str| {
            let order = order.clone();
            move |_| order.borrow_mut().push(name)
        };
        let (first, deeper, equal, later) =
            (note("first"), note("deeper"), note("equal"), note("later"));
        run(1, move |now| {
            assert_eq!(depth(), Some(2));
            run(2, move |now| {
                run(1, later);
                deeper(now);
            });
            run(1, equal);
            first(now);
        });
        assert_eq!(*order.borrow(), ["deeper", "equal", "first", "later"]);
        assert_eq!(depth(), Some(0));
    }

    #[test]
    fn the_deepest_call_that_waits_comes_first() {
        let order = Rc::new(RefCell::new(Vec::new()));
        let note = |name: u8| {
            let order = order.clone();
            move |_| order.borrow_mut().push(name)
        };
        let (shallow, middle, deep, top) = (note(0), note(1), note(2), note(3));
        run(3, move |now| {
            run(0, move |now| {
                // Whatever waits now waits for this one.
                let depths = NEST.with_borrow(|nest| nest.waiting.iter().map(|call| call.0).max());
                assert!(depths.is_none_or(|deepest| deepest == 0));
                shallow(now);
            });
            run(1, middle);
            run(2, deep);
            top(now);
        });
        assert_eq!(*order.borrow(), [3, 2, 1, 0]);
    }

    /// Runs handlers of one depth on top of each other, as many as there are, and returns how many there were at a time.
    fn pile(left: usize, at_a_time: &Rc<RefCell<Vec<usize>>>) {
        let seen = at_a_time.clone();
        run(3, move |_| {
            seen.borrow_mut().push(NEST.with_borrow(|nest| nest.depths.len()));
            if left > 1 {
                pile(left - 1, &seen);
            }
        });
    }

    #[test]
    fn few_of_one_depth_run_on_top_of_each_other() {
        let at_a_time = Rc::default();
        pile(10, &at_a_time);
        let at_a_time = at_a_time.borrow();
        assert_eq!((at_a_time.len(), at_a_time.iter().max()), (10, Some(&ALIKE)));
    }

    /// Handlers that each leave one more behind, as many as `left`, and count those that run and those passed back.
    fn refill(left: u32, counts: &Rc<RefCell<[u32; 2]>>) {
        let counted = counts.clone();
        run(0, move |when| {
            counted.borrow_mut()[usize::from(when == When::Later)] += 1;
            if left > 0 && when == When::Now {
                // On top of handlers of a deeper call, the next one waits.
                let next = counted.clone();
                run(1, move |_| refill(left - 1, &next));
            }
        });
    }

    #[test]
    fn a_frame_ends_while_calls_keep_coming() {
        let counts = Rc::default();
        refill(1_000, &counts);
        assert_eq!(counts.take(), [2, 1]);
        assert!(NEST.with_borrow(|nest| nest.waiting.is_empty()));
    }

    #[test]
    fn a_chain_of_calls_has_an_end() {
        fn deepen() -> u8 {
            let Some(depth) = depth() else { return 0 };
            let deepest = Rc::new(RefCell::new(0));
            let found = deepest.clone();
            run(depth, move |_| *found.borrow_mut() = deepen().max(depth));
            deepest.take()
        }
        assert_eq!(deepen(), DEPTHS - 1);
    }
}
