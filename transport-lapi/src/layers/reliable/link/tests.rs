//! Two links over a simulated channel with a simulated clock, against a naive list of what has arrived; and links
//! against claims of a peer.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// One step of the simulated clock.
const TICK: Duration = Duration::from_micros(100);

fn options() -> ReliableOptions {
    let resend = 8 * TICK;
    ReliableOptions { resend, timeout: 20_000 * TICK, ..ReliableOptions::default() }
}

/// How often the channel and the callers misbehave, per hundred.
#[derive(Debug, Clone, Copy)]
struct Plan {
    first: u32,
    frames: u32,
    ack_threshold: u32,
    drop: u64,
    duplicate: u64,
    /// Most ticks that a message takes.
    delay: u64,
    /// How often there is no room in the channel.
    full: u64,
    /// How often a poll's budget is used up.
    busy: u64,
}

fn plan() -> impl Strategy<Value = Plan> {
    let first = prop_oneof![Just(0), any::<u32>(), u32::MAX - 200..=u32::MAX];
    let faults = (0_u64..40, 0_u64..30, 1_u64..20, 0_u64..50, 0_u64..50);
    (first, 1_u32..300, 1_u32..=30, faults).prop_map(|(first, frames, ack_threshold, faults)| {
        let (drop, duplicate, delay, full, busy) = faults;
        Plan { first, frames, ack_threshold, drop, duplicate, delay, full, busy }
    })
}

/// What is under way: a receipt, perhaps with a frame.
#[derive(Debug, Clone, Copy)]
struct Message {
    arrives: u64,
    receipt: Receipt,
    data: Option<(Number, u32)>,
}

/// One end of the link, and what a naive observer knows of the frames to it.
struct End {
    link: Link<u32>,
    sent: u32,
    /// What was handed over.
    taken: Vec<u32>,
    /// What has arrived.
    seen: BTreeSet<u32>,
    /// Messages to this end.
    coming: Vec<Message>,
}

/// The simulation.
struct Pair {
    plan: Plan,
    options: ReliableOptions,
    dice: u64,
    start: Instant,
    ticks: u64,
    ends: [End; 2],
}

impl Pair {
    fn new(plan: Plan, seed: u64) -> Self {
        let end = || End {
            link: Link::beginning_with(Number(plan.first)),
            sent: 0,
            taken: Vec::new(),
            seen: BTreeSet::new(),
            coming: Vec::new(),
        };
        let options = ReliableOptions { ack_threshold: plan.ack_threshold, ..options() };
        let (start, ends) = (Instant::now(), [end(), end()]);
        Self { plan, options, dice: seed, start, ticks: 0, ends }
    }

    fn now(&self) -> Instant {
        self.start + TICK * self.ticks as u32
    }

    fn roll(&mut self, limit: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.dice >> 33) % limit
    }

    fn falls(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }

    /// Sends a message from one end to the other. Returns whether there was room.
    fn transmit(&mut self, from: usize, data: Option<(Number, u32)>) -> bool {
        if self.falls(self.plan.full) {
            return false;
        }
        let receipt = self.ends[from].link.receipt();
        let copies = match self.falls(self.plan.drop) {
            true => 0,
            false => 1 + usize::from(self.falls(self.plan.duplicate)),
        };
        for _ in 0..copies {
            let arrives = self.ticks + 1 + self.roll(self.plan.delay);
            self.ends[1 - from].coming.push(Message { arrives, receipt, data });
        }
        self.ends[from].link.receipt_sent();
        true
    }

    /// One end sends a new frame, if it may.
    fn send(&mut self, from: usize) {
        let End { link, sent, .. } = &self.ends[from];
        if *sent < self.plan.frames && link.has_room() {
            let (number, frame) = (link.next(), *sent);
            let has_left = self.transmit(from, Some((number, frame)));
            let (now, end) = (self.now(), &mut self.ends[from]);
            end.link.sent(frame, now, &self.options);
            end.sent += 1;
            if !has_left {
                end.link.postpone(number, now, &self.options);
            }
        }
    }

    /// One end does what is due.
    fn attend(&mut self, at: usize, is_idle: bool) {
        let now = self.now();
        while let Some((number, &frame)) = self.ends[at].link.overdue(now) {
            assert!(self.ends[at].link.due().is_some_and(|due| due <= now));
            let is_sent = self.transmit(at, Some((number, frame)));
            let link = &mut self.ends[at].link;
            match is_sent {
                true => link.repeated(number, now, &self.options),
                false => link.postpone(number, now, &self.options),
            }
        }
        let due = self.ends[at].link.receipt_due();
        if due.is_some_and(|due| is_idle || due <= now) && !self.transmit(at, None) {
            self.ends[at].link.postpone_receipt(now, &self.options);
        }
        assert!(self.ends[at].link.due().is_none_or(|due| due > now), "all that was due is done");
    }

    /// One end takes what arrives in this tick, in any order. Returns how many messages those were.
    fn take(&mut self, at: usize) -> usize {
        let mut arrived = 0;
        while let Some(place) =
            self.ends[at].coming.iter().position(|message| message.arrives <= self.ticks)
        {
            let message = self.ends[at].coming.swap_remove(place);
            arrived += 1;
            let is_busy = self.falls(self.plan.busy);
            self.accept(at, message, is_busy);
        }
        if !self.falls(self.plan.busy) {
            self.take_stored(at);
        }
        arrived
    }

    fn take_stored(&mut self, at: usize) {
        let now = self.now();
        let End { link, taken, .. } = &mut self.ends[at];
        while let Some(frame) = link.take_next(now, &self.options) {
            taken.push(frame);
        }
    }

    fn accept(&mut self, at: usize, message: Message, is_busy: bool) {
        let now = self.now();
        let End { link, taken, seen, .. } = &mut self.ends[at];
        link.take_receipt(message.receipt, now).expect("both ends are honest");
        let Some((number, frame)) = message.data else { return };
        let fate = link.arrived(number, now, &self.options).expect("both ends are honest");
        let is_new = seen.insert(frame);
        match fate {
            Fate::Duplicate => assert!(!is_new, "frame {frame} has not arrived before"),
            Fate::New(place) => {
                assert!(is_new, "frame {frame} has arrived before");
                assert_eq!(taken.len() + place, frame as usize);
                assert!(place < WINDOW);
                if place == 0 && !is_busy {
                    link.hand_over();
                    taken.push(frame);
                } else {
                    link.store(place, frame);
                }
            }
        }
        let due = taken.len() as u32;
        let marks = seen.iter().filter(|&&frame| frame >= due);
        let marks = marks.fold(0, |marks, frame| marks | 1_u64 << (frame - due));
        let expected = Number(self.plan.first.wrapping_add(due));
        assert_eq!(link.receipt(), Receipt { expected, marks });
    }

    fn tick(&mut self) {
        self.ticks += 1;
        for at in [0, 1] {
            for _ in 0..self.roll(4) {
                self.send(at);
            }
            let arrived = self.take(at);
            self.attend(at, arrived == 0);
            let link = &self.ends[at].link;
            assert!(link.under_way.len() <= WINDOW && link.stored.len() <= WINDOW);
            assert!(!link.has_timed_out(self.now(), &self.options));
        }
    }

    fn is_over(&self) -> bool {
        let is_done =
            |end: &End| end.taken.len() as u32 == self.plan.frames && end.link.is_settled();
        self.ends.iter().all(is_done)
    }
}

proptest! {
    #[test]
    fn frames_are_handed_over_once_and_in_order(plan in plan(), seed: u64) {
        let mut pair = Pair::new(plan, seed);
        while !pair.is_over() {
            pair.tick();
            prop_assert!(pair.ticks < 100_000, "the frames do not arrive");
        }
        // What is still under way does no harm, and nothing is left to be done.
        while pair.ends.iter().any(|end| !end.coming.is_empty() || end.link.due().is_some()) {
            pair.tick();
            prop_assert!(pair.ticks < 100_000, "the links do not come to rest");
        }
        for end in &pair.ends {
            prop_assert!(end.taken.iter().copied().eq(0..plan.frames));
        }
    }

    /// Whatever a peer claims, nothing panics, the window is kept, and what is refused changes nothing.
    #[test]
    fn claims_of_a_peer_are_checked(
        first in prop_oneof![Just(0), Just(u32::MAX - 5), any::<u32>()],
        claims in proptest::collection::vec((-80_i32..80, any::<u64>(), 0_u32..64), 1..200),
    ) {
        let (options, now) = (options(), Instant::now());
        let mut link = Link::beginning_with(Number(first));
        let (mut sent, mut confirmed, mut taken) = (0_i64, 0_i64, BTreeSet::new());
        for (round, (near, bits, shift)) in claims.into_iter().enumerate() {
            if round % 3 == 0 && link.has_room() {
                link.sent(round, now, &options);
                sent += 1;
            }
            let number = Number(first.wrapping_add_signed(near));
            let receipt = Receipt { expected: number, marks: bits >> shift };
            let marked = i64::from(64 - receipt.marks.leading_zeros());
            let claimed = i64::from(near);
            let is_stale = (0..confirmed).contains(&claimed);
            let is_legal = is_stale || claimed >= confirmed && claimed + marked <= sent;
            let before = (link.under_way.len(), link.receipt());
            prop_assert_eq!(link.take_receipt(receipt, now).is_ok(), is_legal);
            if is_legal {
                confirmed = confirmed.max(claimed);
            } else {
                prop_assert_eq!(before, (link.under_way.len(), link.receipt()));
            }
            prop_assert_eq!(link.under_way.len() as i64, sent - confirmed);
            let due = i64::from(link.expected.since(Number(first)));
            match link.arrived(number, now, &options) {
                Ok(Fate::New(place)) => {
                    prop_assert!(taken.insert(number.0) && place < WINDOW);
                    prop_assert_eq!(due + place as i64, claimed);
                    link.store(place, 0);
                }
                Ok(Fate::Duplicate) => prop_assert!(taken.contains(&number.0)),
                Err(_) => prop_assert!(claimed < 0 || claimed >= due + WINDOW as i64),
            }
            if round % 2 == 0 {
                let _ = link.take_next(now, &options);
            }
        }
    }
}

#[test]
fn receipts_for_frames_that_were_not_sent_are_refused() {
    let (options, now) = (options(), Instant::now());
    let mut link = Link::beginning_with(Number(u32::MAX));
    let refusal = |link: &mut Link<u32>, expected: u32, marks| {
        link.take_receipt(Receipt { expected: Number(expected), marks }, now).err()
    };
    let unsent = |expected, marks, next| Some(FrameError::UnsentReceipt { expected, marks, next });
    assert_eq!(refusal(&mut link, 0, 0), unsent(0, 0, u32::MAX));
    assert_eq!(refusal(&mut link, u32::MAX, 1), unsent(u32::MAX, 1, u32::MAX));
    assert_eq!(refusal(&mut link, u32::MAX - 1, 0), unsent(u32::MAX - 1, 0, u32::MAX));
    for frame in 0..3 {
        link.sent(frame, now, &options);
    }
    assert_eq!(refusal(&mut link, 0, 0b10), None);
    assert_eq!(refusal(&mut link, u32::MAX, u64::MAX), None, "it is older, so no news");
    assert_eq!(refusal(&mut link, 0, 0b100), unsent(0, 0b100, 2));
    assert_eq!(refusal(&mut link, 3, 0), unsent(3, 0, 2));
    assert_eq!(refusal(&mut link, 2, 0), None);
    assert!(link.is_settled());
}

#[test]
fn frames_outside_the_window_are_refused() {
    let (options, now) = (options(), Instant::now());
    let mut link = Link::<u32>::beginning_with(Number(u32::MAX));
    let fate = |link: &mut Link<u32>, number| link.arrived(Number(number), now, &options);
    let outside = |number, expected| Err(FrameError::OutsideWindow { number, expected });
    assert_eq!(fate(&mut link, u32::MAX), Ok(Fate::New(0)));
    link.hand_over();
    assert_eq!(fate(&mut link, u32::MAX), Ok(Fate::Duplicate));
    assert_eq!(fate(&mut link, u32::MAX - 1), outside(u32::MAX - 1, 0), "it was never sent");
    assert_eq!(fate(&mut link, 63), Ok(Fate::New(63)));
    assert_eq!(fate(&mut link, 64), outside(64, 0));
    assert_eq!(fate(&mut link, 1 << 31), outside(1 << 31, 0));
}

#[test]
fn the_time_between_repetitions_doubles() {
    let (options, start) = (options(), Instant::now());
    let mut link = Link::new();
    link.sent((), start, &options);
    let (mut now, mut waits) = (start, Vec::new());
    for _ in 0..9 {
        let due = link.due().expect("the frame has no receipt");
        assert!(link.overdue(due - Duration::from_nanos(1)).is_none());
        let (number, ()) = link.overdue(due).expect("it is time");
        link.repeated(number, due, &options);
        waits.push(due.duration_since(now).as_micros() / TICK.as_micros());
        now = due;
    }
    assert_eq!(waits, [8, 16, 32, 64, 128, 256, 512, 512, 512]);
}

#[test]
fn a_receipt_is_due_at_the_threshold_and_otherwise_soon() {
    let (options, now) = (ReliableOptions { ack_threshold: 3, ..options() }, Instant::now());
    let mut link = Link::<u32>::new();
    let arrive = |link: &mut Link<u32>| {
        let number = link.receipt().expected;
        link.arrived(number, now, &options).expect("it is the next one");
        link.hand_over();
        link.receipt_due().expect("a receipt is owed").duration_since(now)
    };
    for _ in 0..2 {
        assert_eq!(arrive(&mut link), options.resend / 4);
        assert_eq!(arrive(&mut link), options.resend / 4);
        assert_eq!(arrive(&mut link), Duration::ZERO);
        link.receipt_sent();
        assert_eq!(link.receipt_due(), None);
    }
    link.arrived(FIRST, now, &options).expect("it was sent");
    assert_eq!(link.receipt_due(), Some(now), "a copy shows that the receipt was lost");
}

#[test]
fn a_receipt_follows_when_a_stored_frame_is_handed_over() {
    let (options, now) = (options(), Instant::now());
    let mut link = Link::new();
    link.arrived(FIRST, now, &options).expect("it is the next one");
    link.store(0, 7);
    link.receipt_sent();
    assert_eq!(link.take_next(now, &options), Some(7));
    assert_eq!(link.receipt_due(), Some(now + options.resend / 4), "LK4");
}

#[test]
fn a_marked_frame_is_not_repeated_unless_it_is_the_oldest() {
    let (options, now) = (options(), Instant::now());
    let mut link = Link::new();
    (0..3).for_each(|frame| link.sent(frame, now, &options));
    link.take_receipt(Receipt { expected: FIRST, marks: 0b110 }, now).expect("they were sent");
    let numbers = |link: &Link<u32>| link.awaited().map(|(number, _)| number.0).collect::<Vec<_>>();
    assert_eq!(numbers(&link), [FIRST.0]);
    link.take_receipt(Receipt { expected: FIRST.plus(1), marks: 0b11 }, now).expect("as above");
    assert_eq!(numbers(&link), [FIRST.0 + 1], "LK3");
}

#[test]
fn a_link_without_progress_times_out() {
    let (options, start) = (options(), Instant::now());
    let mut link = Link::new();
    let over = start + options.timeout;
    assert!(!link.has_timed_out(over, &options), "nothing is under way");
    link.sent(0, start + TICK, &options);
    link.sent(1, over, &options);
    assert!(!link.has_timed_out(over, &options));
    assert!(link.has_timed_out(over + TICK, &options));
    let marked = Receipt { expected: FIRST, marks: 0b10 };
    for _ in 0..2 {
        link.take_receipt(marked, over + TICK).expect("they were sent");
        assert!(!link.has_timed_out(over + 2 * TICK, &options));
    }
    let later = over + options.timeout + TICK;
    link.take_receipt(marked, later).expect("they were sent");
    assert!(link.has_timed_out(later, &options), "the receipt was no news");
}
