//! Learns which protocol is cheaper for long messages, from the times that messages take. Pure: callers read the clocks.
//!
//! Which one is cheaper depends on the processors, on where they are, and on what the program does with its buffers, so
//! nothing here is a constant of a machine. `choice.rs` asks for each long message; `timing.rs` passes the times.
//!
//! - PC1: for each destination, sizes are divided into classes by powers of two, from [`FROM`] on. A class has an
//!   estimate for each protocol, in femtoseconds per byte. It falls to a lower time at once, since a time that was
//!   possible once is mostly possible again. It rises by an eighth of the difference, and at most by an eighth of
//!   itself: one interrupted message says little. For much longer times by the present protocol it does not rise at all,
//!   but is forgotten if several follow one another (PC2).
//! - PC2: a class begins with eager messages: first [some](ring_fills) that may find memory of the ring that was never
//!   used, then until [`ENOUGH`] answers have counted. They show that the destination posts receives ahead. Two ranks
//!   that always first send to each other, then receive, thus stay with eager. Then, and after every pause, a burst of
//!   messages goes by the other protocol; the times of the last ones count. Pauses are so long that bursts cost about one
//!   part in a hundred. As the messages behind a burst take longer, too, every burst that speaks for the present protocol
//!   doubles the next pauses, within bounds. One that speaks against it makes the next pause short. A pause ends early if
//!   messages suddenly take much longer, or times that this rank does not know any more, since the program does something
//!   else then: what was known of the times is forgotten.
//! - PC3: the time of a message does not contain everything: after a rendezvous, the sender's next stores into its buffer
//!   miss its cache. So the periods of the program are compared, too, from one message to the next: the shorter of two
//!   within a burst and the shorter of two just before it, since one of them may be interrupted. Rendezvous is chosen
//!   once its times are shorter and it clearly shortens the periods, and given up once its times are longer or it clearly
//!   lengthens the periods. As long as nothing is known of the periods, or if they take much longer than an eager
//!   message is known to take, its times must be even shorter. Where nothing is known of the times, since this rank
//!   computes when the answers come, the periods alone decide.
//! - PC4: messages that follow one another are apart from single ones. As long as nothing has come from anybody after an
//!   eager message, that message may still be on its way. At most [`WINDOW`] such messages of a class are a window, and
//!   go by one protocol, which `windows.rs` chooses.
//! - PC5: a class forgets what it has learned, and so returns to eager, if no answer of an eager burst has counted when
//!   that of a later rendezvous does, or when the next burst is due. So rendezvous lasts only where eager messages find
//!   receives, too.

use std::array;
use std::time::{Duration, Instant};

use transport_lapi::config::{CHEAPER_FROM as FROM, Protocol};

use windows::{WINDOW, Window, Windows};

mod windows;

/// Classes of sizes. The last one has no upper bound.
const CLASSES: usize = 9;
/// Eager messages just before the first burst, whose times count.
const TRIAL: u16 = 4;
/// How many answers to eager messages must have counted before the first burst.
const ENOUGH: u8 = 3;
/// How many classes similar sizes are apart at most (WC5 of [`windows`]).
const SIMILAR: usize = 2;
/// Messages of a burst, and how many of its last periods count; the messages at their ends are timed, as they are before
/// a burst. The first messages find caches as the other protocol left them. Eager messages go through a ring, whose lines
/// have left the caches meanwhile. So a burst of them has as many more as [fill a ring](ring_fills).
const BURST: u8 = 8;
const COUNTED: u8 = 2;
/// The largest area of a ring for the bodies from one task to another, and the most messages that are to fill it.
const RING: usize = 4 << 20;
const MOST_FILLS: usize = 32;
/// Bounds of the pause between two bursts, in messages: the least, up to where it is doubled, and the most.
const PAUSE: [u64; 3] = [64, 1000, 4000];
/// If the other protocol takes at least so many hundredths more, bursts cost much and rarely bring news, so the pause is
/// doubled up to the most.
const EXPENSIVE: u64 = 100;
/// Doubling so often leads from the shortest pause to the lower one of these bounds.
const MOST_CONFIRMED: u8 = 4;
/// The pause if nothing was learned, since messages were not alone after all or came too early, and the longest one as
/// long as no burst has spoken for the present protocol.
const UNTOLD: u16 = 256;
/// How many times in a row must speak for the other protocol before it is taken, or for comparing anew.
const DOUBTS: u8 = 3;
/// A time is unlike the estimate if it is longer by so many hundredths of it. Trials of the other end lengthen times by
/// less.
const UNLIKE: u32 = 40;
/// Of eager messages outside of bursts one of so many is timed, since that takes an answer, and so are the last ones
/// before a burst, and some after one that speaks for a change.
const EVERY: u16 = 16;

/// Periods do not count if they take so many times as long as an eager message.
const DILUTED: u64 = 8;
/// The most hundredths by which the periods or windows of a pair differ: one of them may have been interrupted.
const MOST_SAVED: i8 = 50;
/// The hundredths by which periods or windows must differ before one protocol is clearly faster.
const CLEARLY: i8 = 3;

/// For each destination and size, the times that messages have taken.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    /// By rank; made with the first long message to it.
    peers: Vec<Option<Box<Peer>>>,
    /// The classes of the destination that was learned of last, with which a new one begins.
    latest: [Class; CLASSES],
}

/// One destination.
#[derive(Debug)]
struct Peer {
    classes: [Class; CLASSES],
    /// How many messages had come, from anybody, when the last long one was sent eagerly; `None` if it was received.
    unheard: Option<u64>,
    /// The present or last window.
    window: Option<Window>,
    /// The periods that are being measured.
    periods: Option<Periods>,
}

/// The periods of a class that are being measured (PC3).
#[derive(Debug, Clone, Copy)]
struct Periods {
    class: usize,
    /// The beginning of the present one.
    since: Instant,
    /// The shortest before the burst, and within it.
    before: Option<Duration>,
    within: Option<Duration>,
}

/// What is known of both protocols, in femtoseconds per byte; 0 if nothing (PC1).
#[derive(Debug, Default, Clone, Copy)]
struct Times {
    eager: u32,
    rendezvous: u32,
}

/// The messages of one size to one destination.
#[derive(Debug, Clone, Copy)]
struct Class {
    times: Times,
    /// By how many hundredths rendezvous shortens periods, if that is known (PC3).
    saving: Option<i8>,
    /// How many answers to eager messages to this destination have counted, up to [`ENOUGH`] (PC2).
    counted: u8,
    takes_rendezvous: bool,
    /// Whether no answer of the latest eager burst has counted yet (PC5).
    is_doubtful: bool,
    /// How many of the last times have spoken for the other protocol.
    doubts: u8,
    /// How many of the last times by the present protocol were much longer than its estimate, or not known; if negative,
    /// how many were neither, up to [`DOUBTS`]. The former count only behind so many of the latter.
    unlike: i8,
    /// How many more answers have to come before the times may be forgotten again.
    settled: u16,
    /// How many bursts have spoken for the present protocol since the last one that did not, up to [`MOST_CONFIRMED`].
    confirmed: u8,
    /// Messages that are left of a burst.
    burst: u8,
    /// Messages until the next burst.
    pause: u16,
    windows: Windows,
}

/// What [`Class::choose`] says of a message.
#[derive(Clone, Copy)]
struct Single {
    protocol: Protocol,
    is_timed: bool,
    period: Period,
}

/// What the call for a message is to the periods that are measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Period {
    /// The beginning of the first one before a burst.
    Begins,
    /// The end of one, before a burst or within it.
    GoesOn { is_burst: bool },
    /// The end of the last one.
    Ends,
    /// None of these, but perhaps the beginning of the first one within a burst.
    Other,
}

/// How a message is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub protocol: Protocol,
    /// What to pass to [`Costs::learn`] with the time until the message is received, if it is to be timed.
    pub timed: Option<Timed>,
}

/// What a time is the time of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timed {
    pub since: Instant,
    pub protocol: Protocol,
    /// Length of the message.
    pub len: usize,
}

impl Costs {
    /// Chooses the protocol of a message before which no other one is queued. `arrived` is the number of messages that
    /// have come so far, `shared_now` the time on a clock that all ranks share.
    pub fn choose(
        &mut self,
        dest: u32,
        len: usize,
        arrived: u64,
        now: impl FnOnce() -> Instant,
        shared_now: impl FnOnce() -> Duration,
    ) -> Choice {
        let peer = self.peer(dest);
        if peer.unheard == Some(arrived) {
            let protocol = self.in_a_row(dest, len, shared_now);
            if protocol == Protocol::Rendezvous {
                // It ends when all before it has been received.
                self.hear(dest);
            }
            return Choice { protocol, timed: None };
        }
        if let Some(window) = &mut peer.window {
            window.has_ended = true;
        }
        let single = peer.classes[index(len)].choose(len);
        let Single { protocol, is_timed, .. } = single;
        peer.unheard = (protocol == Protocol::Eager).then_some(arrived);
        if !is_timed && single.period == Period::Other {
            return Choice { protocol, timed: None };
        }
        let now = now();
        peer.measure_period(len, single, now);
        Choice { protocol, timed: is_timed.then_some(Timed { since: now, protocol, len }) }
    }

    /// Chooses the protocol of a message that follows another one (PC4). `now` is the time on a clock that all ranks
    /// share.
    pub fn in_a_row(&mut self, dest: u32, len: usize, now: impl FnOnce() -> Duration) -> Protocol {
        let Peer { classes, window, .. } = self.peer(dest);
        let class = index(len);
        let goes_on = |window: &Window| {
            window.class == class && window.messages < WINDOW && !window.has_ended
        };
        let mut current = window.filter(goes_on).unwrap_or_else(|| {
            let far_cheaper = classes[class].times.ratio().is_some_and(|ratio| ratio < 50);
            let guess = classes[class].is_known() && far_cheaper;
            let before = window.filter(|before| before.class == class && before.has_ended);
            let now = now();
            if classes[class].windows.is_new() {
                let messages = window.map_or(WINDOW, |window| window.messages);
                let bytes = usize::from(messages).saturating_mul(len);
                if let Some(known) = windows_of_similar(classes, class, bytes, now) {
                    classes[class].windows = known;
                }
            }
            classes[class].windows.begin(class, before, guess, now)
        });
        current.messages += 1;
        current.bytes = current.bytes.saturating_add(len);
        *window = Some(current);
        current.protocol
    }

    /// Notes that this destination has received all that was sent to it.
    pub fn hear(&mut self, dest: u32) {
        self.peer(dest).unheard = None;
    }

    /// Takes note that a receive was posted ahead for a single message, and of the time that the message took, from the
    /// call until the receiver had all bytes; `None` if nobody noticed that at once.
    pub fn learn(&mut self, dest: u32, timed: Timed, took: Option<Duration>) {
        let Timed { protocol, len, .. } = timed;
        let index = index(len);
        let class = &mut self.peer(dest).classes[index];
        class.learn(protocol, len, took.map(|took| per_byte(took, len)));
        let Class { times, saving, takes_rendezvous, .. } = *class;
        let windows = class.windows.between_trials();
        self.latest[index] = Class { times, saving, takes_rendezvous, windows, ..Class::default() };
    }

    fn peer(&mut self, dest: u32) -> &mut Peer {
        let dest = dest as usize;
        if self.peers.len() <= dest {
            self.peers.resize_with(dest + 1, || None);
        }
        let latest = self.latest;
        self.peers[dest].get_or_insert_with(|| {
            let classes = array::from_fn(|index| latest[index].with_new_ring(FROM << index));
            Box::new(Peer { classes, unheard: None, window: None, periods: None })
        })
    }
}

/// What windows of so many bytes begin with by what is known of the nearest similar class (WC5 of [`windows`]).
fn windows_of_similar(
    classes: &[Class; CLASSES],
    class: usize,
    bytes: usize,
    now: Duration,
) -> Option<Windows> {
    let nearest = (1..=SIMILAR).flat_map(|apart| [class.checked_sub(apart), Some(class + apart)]);
    let similar = |class: usize| classes.get(class)?.windows.for_similar(bytes, now);
    nearest.flatten().find_map(similar)
}

/// The class of messages of this length.
fn index(len: usize) -> usize {
    let doublings = (len / FROM).checked_ilog2().unwrap_or(0) as usize;
    doublings.min(CLASSES - 1)
}

impl Peer {
    /// Measures periods before a burst, then within it (PC3).
    fn measure_period(&mut self, len: usize, single: Single, now: Instant) {
        let Self { classes, periods, .. } = self;
        let class = index(len);
        let Some(current) = periods.as_mut().filter(|periods| periods.class == class) else {
            if single.period == Period::Begins {
                *periods = Some(Periods { class, since: now, before: None, within: None });
            }
            return;
        };
        let period = now - current.since;
        current.since = now;
        let shorter = |other: Option<Duration>| Some(other.map_or(period, |it| it.min(period)));
        match single.period {
            Period::Begins => (current.before, current.within) = (None, None),
            Period::Other => {}
            Period::GoesOn { is_burst: false } => current.before = shorter(current.before),
            Period::GoesOn { is_burst: true } => current.within = shorter(current.within),
            Period::Ends => {
                if let (Some(before), Some(within)) = (current.before, shorter(current.within)) {
                    let both = [before, within].map(|period| per_byte(period, len));
                    classes[class].learn_periods(single.protocol, len, both);
                }
                *periods = None;
            }
        }
    }
}

/// Femtoseconds per byte.
fn per_byte(took: Duration, bytes: usize) -> u32 {
    let per_byte = took.as_nanos() * 1_000_000 / bytes.max(1) as u128;
    per_byte.clamp(1, u32::MAX.into()) as u32
}

impl Times {
    fn of(&mut self, protocol: Protocol) -> &mut u32 {
        match protocol {
            Protocol::Eager => &mut self.eager,
            Protocol::Rendezvous => &mut self.rendezvous,
        }
    }

    /// Takes note of a time.
    fn learn(&mut self, protocol: Protocol, sample: u32) {
        let estimate = self.of(protocol);
        *estimate = match *estimate {
            0 => sample,
            old if sample < old => sample,
            old => old.saturating_add((sample - old).min(old) / 8),
        };
    }

    /// Rendezvous in hundredths of eager, if both are known.
    fn ratio(self) -> Option<u64> {
        let (eager, rendezvous) = (u64::from(self.eager), u64::from(self.rendezvous));
        (eager != 0 && rendezvous != 0).then(|| rendezvous * 100 / eager)
    }

    /// How much more the other protocol takes than the present one, in hundredths of that, if both are known.
    fn lost(self, takes_rendezvous: bool) -> Option<u64> {
        let Self { eager, rendezvous } = self;
        let (own, other) = if takes_rendezvous { (rendezvous, eager) } else { (eager, rendezvous) };
        self.ratio().map(|_| 100 * u64::from(other.saturating_sub(own)) / u64::from(own))
    }
}

impl Default for Class {
    fn default() -> Self {
        Self {
            times: Times::default(),
            saving: None,
            counted: 0,
            takes_rendezvous: false,
            is_doubtful: false,
            doubts: 0,
            unlike: 0,
            settled: 0,
            confirmed: 0,
            burst: 0,
            pause: TRIAL,
            windows: Windows::default(),
        }
    }
}

impl Class {
    fn is_known(&self) -> bool {
        self.counted == ENOUGH
    }

    /// This class where the ring was not used for long (PC2).
    fn with_new_ring(self, len: usize) -> Self {
        Self { pause: self.pause + u16::from(ring_fills(len)), ..self }
    }

    /// Returns to eager messages (PC5).
    fn forget(&mut self, len: usize) {
        *self = Self { windows: self.windows, ..Self::default() }.with_new_ring(len);
    }

    /// Messages of a whole burst.
    fn whole_burst(&self, len: usize) -> u8 {
        if self.takes_rendezvous { BURST + ring_fills(len) } else { BURST }
    }

    fn choose(&mut self, len: usize) -> Single {
        if self.burst > 0 {
            self.burst -= 1;
            if self.burst == 0 {
                self.pause = self.next_pause(len);
                if self.doubts == 0 && self.is_cheaper() == Some(self.takes_rendezvous) {
                    self.confirmed = MOST_CONFIRMED.min(self.confirmed + 1);
                }
            }
            let period = match self.burst {
                0 => Period::Ends,
                left if left < COUNTED => Period::GoesOn { is_burst: true },
                _ => Period::Other,
            };
            let protocol = protocol(!self.takes_rendezvous);
            return Single { protocol, is_timed: self.burst <= COUNTED, period };
        }
        self.pause -= 1;
        let period = match self.pause {
            2 => Period::Begins,
            0 | 1 => Period::GoesOn { is_burst: false },
            _ => Period::Other,
        };
        match (self.pause, self.is_known()) {
            (0, true) if self.is_doubtful => self.forget(len),
            (0, true) => {
                (self.burst, self.is_doubtful) = (self.whole_burst(len), self.takes_rendezvous);
            }
            // Some answers have counted, so others will soon.
            (0, false) if self.counted > 0 => self.pause = EVERY,
            (0, false) => self.pause = UNTOLD,
            _ => {}
        }
        let rendezvous = self.is_known() && self.takes_rendezvous;
        // What another destination has shown is soon used for this one.
        let seems_cheaper =
            self.takes_rendezvous && self.pause < TRIAL + u16::from(ring_fills(len));
        let is_timed = rendezvous
            || seems_cheaper
            || self.pause < TRIAL
            || self.pause % EVERY == 0
            || (self.unlike > 0 || self.doubts > 0)
                && self.pause % EVERY >= EVERY - u16::from(DOUBTS);
        Single { protocol: protocol(rendezvous), is_timed, period }
    }

    /// The pause after a burst of `n` messages that take `r` times as long: `n (r - 1)` messages are lost in it. It is
    /// doubled for every burst that has spoken for the present protocol.
    fn next_pause(&self, len: usize) -> u16 {
        let of_times = self.times.lost(self.takes_rendezvous);
        let of_periods = self.saving.map(|saving| {
            let saving = i64::from(if self.takes_rendezvous { saving } else { -saving });
            // A saving is a part of the longer period, a loss one of the shorter.
            (100 * saving / (100 - saving)).max(0) as u64
        });
        let [least, doubled, most] = PAUSE;
        let most = if self.confirmed == 0 { UNTOLD.into() } else { most };
        let pause = |lost: u64| {
            let first = u64::from(self.whole_burst(len)) * lost;
            let doubled = if lost < EXPENSIVE { doubled } else { most };
            (first.max(least) << self.confirmed).min(doubled).max(first).min(most) as u16
        };
        of_times.max(of_periods).map_or(UNTOLD, pause)
    }

    fn learn(&mut self, protocol: Protocol, len: usize, sample: Option<u32>) {
        match protocol {
            Protocol::Eager => {
                self.counted = ENOUGH.min(self.counted + 1);
                self.is_doubtful = false;
            }
            Protocol::Rendezvous => {
                if self.is_doubtful && self.burst == 0 {
                    self.forget(len);
                    return;
                }
            }
        }
        let before = *self.times.of(protocol);
        let is_own = self.takes_rendezvous == (protocol == Protocol::Rendezvous);
        let is_longer = |now: u32| now.saturating_sub(before) > before / 100 * UNLIKE;
        let is_unlike = is_own && before != 0 && sample.is_none_or(is_longer);
        let most = DOUBTS as i8;
        self.unlike = match self.unlike {
            run if !is_own => run,
            run if is_unlike && (run > 0 || run == -most) => run.max(0).saturating_add(1),
            run if !is_unlike && sample.is_some() && run <= 0 => (run - 1).max(-most),
            _ if !is_unlike && sample.is_some() => -most,
            _ => 0,
        };
        self.settled = self.settled.saturating_sub(1);
        let forgets = self.unlike >= most && self.settled == 0;
        if forgets {
            (self.unlike, self.confirmed) = (0, 0);
            (self.saving, self.times) = (None, Times::default());
            self.pause = self.pause.min(TRIAL);
            self.settled = 16 * u16::from(self.whole_burst(len));
        }
        if let Some(sample) = sample.filter(|_| forgets || !is_unlike) {
            self.times.learn(protocol, sample);
        }
        if self.is_cheaper().is_none_or(|is_cheaper| is_cheaper == self.takes_rendezvous) {
            self.doubts = 0;
            return;
        }
        self.doubts += 1;
        if self.doubts == DOUBTS {
            self.takes_rendezvous = !self.takes_rendezvous;
            (self.doubts, self.confirmed) = (0, 0);
            (self.burst, self.pause) = (0, self.next_pause(len));
        }
    }

    /// Takes note of the periods before a burst by `protocol` and within it, per byte of one message. Half of their
    /// difference counts.
    fn learn_periods(&mut self, protocol: Protocol, len: usize, [before, burst]: [u32; 2]) {
        let (eager, rendezvous) = match protocol {
            Protocol::Eager => (burst, before),
            Protocol::Rendezvous => (before, burst),
        };
        let (longer, message) = (u64::from(eager.max(rendezvous)), u64::from(self.times.eager));
        if message == 0 || longer < DILUTED * message {
            let was_known = self.saving.is_some();
            let (old, new) = (self.saving.unwrap_or(0), saving(eager, rendezvous));
            self.saving = Some(old + (new - old) / 2);
            let contradicts = if self.takes_rendezvous { new < -CLEARLY } else { new > CLEARLY };
            if contradicts || !was_known {
                self.confirmed = 0;
                self.pause = self.pause.min(self.next_pause(len));
            }
        } else {
            self.saving = None;
        }
    }

    /// Whether rendezvous is cheaper, if anything is known that says so (PC3).
    fn is_cheaper(&self) -> Option<bool> {
        let takes = self.takes_rendezvous;
        match (self.times.ratio(), self.saving) {
            (Some(ratio), Some(saving)) if takes => Some(ratio < 103 && saving > -CLEARLY),
            (Some(ratio), Some(saving)) => Some(ratio < 97 && saving > CLEARLY),
            (Some(ratio), None) => Some(ratio < if takes { 90 } else { 85 }),
            (None, saving) => saving.map(|saving| saving > if takes { 0 } else { 2 * CLEARLY }),
        }
    }
}

/// By how many hundredths of the longer one rendezvous is shorter than eager.
fn saving(eager: u32, rendezvous: u32) -> i8 {
    let (eager, rendezvous) = (i64::from(eager), i64::from(rendezvous));
    let most = i64::from(MOST_SAVED);
    (100 * (eager - rendezvous) / eager.max(rendezvous).max(1)).clamp(-most, most) as i8
}

/// How many messages of this length fill the largest ring, but not more than [`MOST_FILLS`].
fn ring_fills(len: usize) -> u8 {
    MOST_FILLS.min(RING / len.max(1)) as u8
}

fn protocol(rendezvous: bool) -> Protocol {
    if rendezvous { Protocol::Rendezvous } else { Protocol::Eager }
}

#[cfg(test)]
mod tests;
