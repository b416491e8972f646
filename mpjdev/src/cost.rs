//! Learns which protocol is cheaper for long messages, from the times that messages take. Pure: callers read the clock.
//!
//! Which one is cheaper depends on the processors, on where they are, and on what the program does with its buffers, so
//! nothing here is a constant of a machine. `choice.rs` asks for each long message; `timing.rs` passes the times.
//!
//! - PC1: for each destination, sizes are divided into classes by powers of two, from [`FROM`] on. A class has an
//!   estimate for each protocol, in femtoseconds per byte. It falls to a lower time at once, since a time that was
//!   possible once is mostly possible again. It rises by an eighth of the difference, and at most by an eighth of
//!   itself: one interrupted message says little.
//! - PC2: a class begins with eager messages until [`ENOUGH`] of their times have counted. They show that the
//!   destination posts receives ahead, and their minimum is mostly not the time of the first message, which may find
//!   memory that was never used. Two ranks that always first send to each other, then receive, thus stay with eager.
//!   Then, and after every pause, a burst of messages goes by the other protocol; the times of the last ones count. The
//!   pause is so long that bursts cost about one part in a hundred.
//! - PC3: rendezvous is chosen once its estimate is clearly below that of eager, and given up once that is not so clear
//!   any more. This bias against rendezvous stands for a cost that the times do not contain: after a rendezvous the
//!   sender's next stores into its buffer miss its cache.
//! - PC4: messages that follow one another are apart from single ones. As long as nothing has come from anybody after an
//!   eager message, that message may still be on its way. [`WINDOW`] such messages of a class, at most, are a window, and
//!   go by one protocol: first by rendezvous only if it takes less than half of the time for single messages, since eager
//!   keeps both ends busy; then by the one whose windows have been faster. From time to time a window goes by the other
//!   one. The time of a window is that of its first [`PACED`] messages.
//! - PC5: a class forgets what it has learned, and so returns to eager, if no time of an eager burst has counted when
//!   the time of a later rendezvous does, or when the next burst is due. So rendezvous lasts only where eager is timed,
//!   too.

use std::time::{Duration, Instant};

use transport_lapi::config::{CHEAPER_FROM as FROM, Protocol};

/// Classes of sizes. The last one has no upper bound.
const CLASSES: usize = 10;
/// Eager messages before the first burst.
const TRIAL: u16 = 4;
/// How many times of eager messages must have counted before the first burst.
const ENOUGH: u8 = 3;
/// Messages of a burst, and how many of the last ones are timed. The first ones find caches as the other protocol left
/// them.
const BURST: u8 = 4;
const COUNTED: u8 = 2;
/// Bounds of the pause between two bursts, in messages.
const PAUSE: [u64; 2] = [64, 2000];
/// The pause after a burst from which nothing was learned: its messages were not alone after all, or came too early.
const UNTOLD: u16 = 256;
/// How many times in a row must speak for the other protocol before it is taken.
const DOUBTS: u8 = 3;
/// Of eager messages outside of bursts one of so many is timed, since that takes an answer, and so are the last ones
/// before a burst.
const EVERY: u16 = 16;

/// The most messages of a window, and how many of them are timed together: enough that the time of the first one, which
/// fills the way, matters little.
const WINDOW: u32 = 64;
const PACED: u32 = 16;
/// Bounds of the pause between two windows that go by the other protocol, in windows, and the pause as long as nothing
/// is known of one of them.
const WINDOWS_BETWEEN: [u64; 2] = [16, 2000];
const WINDOWS_UNTOLD: u16 = 32;
/// Of the other windows, one of so many is timed.
const WINDOWS_PER_TIME: u16 = 4;

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
    /// The messages that follow one another at present.
    window: Option<Window>,
}

/// Messages of one class that follow one another.
#[derive(Debug, Clone, Copy)]
struct Window {
    class: usize,
    protocol: Protocol,
    messages: u32,
    bytes: usize,
    /// When the first one was sent, if the window is to be timed.
    since: Option<Instant>,
}

/// The messages of one size to one destination.
#[derive(Debug, Clone, Copy)]
struct Class {
    /// Femtoseconds per byte; 0 if nothing is known.
    eager: u32,
    rendezvous: u32,
    /// How many times of eager messages to this destination have counted, up to [`ENOUGH`] (PC2).
    counted: u8,
    takes_rendezvous: bool,
    /// Whether no time of the latest eager burst has counted yet (PC5).
    is_doubtful: bool,
    /// How many of the last times have spoken for the other protocol.
    doubts: u8,
    /// Messages that are left of a burst.
    burst: u8,
    /// Messages until the next burst.
    pause: u16,
    windows: Windows,
}

/// The windows of one size to one destination.
#[derive(Debug, Clone, Copy)]
struct Windows {
    /// Femtoseconds per byte; 0 if nothing is known.
    eager: u32,
    rendezvous: u32,
    takes_rendezvous: bool,
    /// Windows until the next one that goes by the other protocol.
    pause: u16,
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
    /// Length of each message.
    pub len: usize,
    /// Length of all messages since then.
    pub bytes: usize,
    /// Whether they are messages of a window, not a single one.
    pub is_window: bool,
}

impl Costs {
    /// Chooses the protocol of a message before which no other one is queued. `arrived` is the number of messages that
    /// have come so far.
    pub fn choose(
        &mut self,
        dest: u32,
        len: usize,
        arrived: u64,
        now: impl FnOnce() -> Instant,
    ) -> Choice {
        let peer = self.peer(dest);
        if peer.unheard == Some(arrived) {
            let choice = self.in_a_row(dest, len, now);
            if choice.protocol == Protocol::Rendezvous {
                // It ends when all before it has been received.
                self.hear(dest);
            }
            return choice;
        }
        peer.window = None;
        let (protocol, is_timed) = peer.classes[index(len)].choose();
        peer.unheard = (protocol == Protocol::Eager).then_some(arrived);
        let timed =
            is_timed.then(|| Timed { since: now(), protocol, len, bytes: len, is_window: false });
        Choice { protocol, timed }
    }

    /// Chooses the protocol of a message that follows another one (PC4).
    pub fn in_a_row(&mut self, dest: u32, len: usize, now: impl FnOnce() -> Instant) -> Choice {
        let Peer { classes, window, .. } = self.peer(dest);
        let class = index(len);
        let goes_on = |window: &Window| window.class == class && window.messages < WINDOW;
        let mut current = window.filter(goes_on).unwrap_or_else(|| {
            let (protocol, is_timed) = classes[class].next_window();
            let since = is_timed.then(now);
            Window { class, protocol, messages: 0, bytes: 0, since }
        });
        current.messages += 1;
        current.bytes = current.bytes.saturating_add(len);
        *window = Some(current);
        let Window { protocol, messages, bytes, since, .. } = current;
        let timed = since.filter(|_| messages == PACED);
        let timed = timed.map(|since| Timed { since, protocol, len, bytes, is_window: true });
        Choice { protocol, timed }
    }

    /// Notes that this destination has received all that was sent to it.
    pub fn hear(&mut self, dest: u32) {
        self.peer(dest).unheard = None;
    }

    /// Takes note of the time that a message took, or those of a window, from the call until the receiver had all
    /// bytes.
    pub fn learn(&mut self, dest: u32, timed: Timed, took: Duration) {
        let Timed { protocol, len, bytes, is_window, .. } = timed;
        let per_byte = took.as_nanos() * 1_000_000 / bytes.max(1) as u128;
        let per_byte = per_byte.clamp(1, u32::MAX.into()) as u32;
        let class = &mut self.peer(dest).classes[index(len)];
        match is_window {
            true => class.windows.learn(protocol, per_byte),
            false => class.learn(protocol, per_byte),
        }
        let Class { eager, rendezvous, takes_rendezvous, windows, .. } = *class;
        self.latest[index(len)] =
            Class { eager, rendezvous, takes_rendezvous, windows, ..Class::default() };
    }

    fn peer(&mut self, dest: u32) -> &mut Peer {
        let dest = dest as usize;
        if self.peers.len() <= dest {
            self.peers.resize_with(dest + 1, || None);
        }
        let classes = self.latest;
        self.peers[dest]
            .get_or_insert_with(|| Box::new(Peer { classes, unheard: None, window: None }))
    }
}

/// The class of messages of this length.
fn index(len: usize) -> usize {
    let doublings = (len / FROM).checked_ilog2().unwrap_or(0) as usize;
    doublings.min(CLASSES - 1)
}

impl Default for Class {
    fn default() -> Self {
        Self {
            eager: 0,
            rendezvous: 0,
            counted: 0,
            takes_rendezvous: false,
            is_doubtful: false,
            doubts: 0,
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

    /// Returns the protocol of the next single message, and whether to time it.
    fn choose(&mut self) -> (Protocol, bool) {
        if self.burst > 0 {
            self.burst -= 1;
            if self.burst == 0 {
                self.pause = self.next_pause();
            }
            let protocol = protocol(!self.takes_rendezvous);
            return (protocol, self.burst < COUNTED);
        }
        self.pause -= 1;
        match (self.pause, self.is_known()) {
            (0, true) if self.is_doubtful => *self = Self::default(),
            (0, true) => (self.burst, self.is_doubtful) = (BURST, self.takes_rendezvous),
            // Some times have counted, so others will soon.
            (0, false) if self.counted > 0 => self.pause = EVERY,
            (0, false) => self.pause = UNTOLD,
            _ => {}
        }
        let rendezvous = self.is_known() && self.takes_rendezvous;
        let timed = rendezvous || self.pause < TRIAL || self.pause % EVERY == 0;
        (protocol(rendezvous), timed)
    }

    /// Returns the protocol of the next window, and whether to time it.
    fn next_window(&mut self) -> (Protocol, bool) {
        let Class { eager, rendezvous, .. } = *self;
        let far_cheaper = rendezvous != 0 && u64::from(rendezvous) * 2 < u64::from(eager);
        self.windows.next(self.is_known() && far_cheaper)
    }

    /// The pause after a burst of `n` messages that take `r` times as long: `n (r - 1)` messages are lost in it.
    fn next_pause(&self) -> u16 {
        let (own, other) = match self.takes_rendezvous {
            true => (self.rendezvous, self.eager),
            false => (self.eager, self.rendezvous),
        };
        if own == 0 || other == 0 {
            return UNTOLD;
        }
        let lost = u64::from(BURST) * u64::from(other.saturating_sub(own));
        let [least, most] = PAUSE;
        (100 * lost / u64::from(own)).clamp(least, most) as u16
    }

    fn learn(&mut self, protocol: Protocol, sample: u32) {
        let estimate = match protocol {
            Protocol::Eager => {
                self.counted = ENOUGH.min(self.counted + 1);
                self.is_doubtful = false;
                &mut self.eager
            }
            Protocol::Rendezvous => {
                if self.is_doubtful && self.burst == 0 {
                    *self = Self::default();
                    return;
                }
                &mut self.rendezvous
            }
        };
        *estimate = match *estimate {
            0 => sample,
            old if sample < old => sample,
            old => old.saturating_add((sample - old).min(old) / 8),
        };
        if self.eager == 0 || self.rendezvous == 0 {
            return;
        }
        // In hundredths of eager's.
        let ratio = u64::from(self.rendezvous) * 100 / u64::from(self.eager);
        let bound = if self.takes_rendezvous { 90 } else { 85 };
        if (ratio < bound) == self.takes_rendezvous {
            self.doubts = 0;
            return;
        }
        self.doubts += 1;
        if self.doubts == DOUBTS {
            self.takes_rendezvous = !self.takes_rendezvous;
            self.doubts = 0;
            (self.burst, self.pause) = (0, self.next_pause());
        }
    }
}

impl Default for Windows {
    fn default() -> Self {
        Self { eager: 0, rendezvous: 0, takes_rendezvous: false, pause: 2 }
    }
}

impl Windows {
    /// Returns the protocol of the next window, and whether to time it. `guess` is whether it is rendezvous as long as
    /// windows of both have not been timed.
    fn next(&mut self, guess: bool) -> (Protocol, bool) {
        let own = if self.are_known() { self.takes_rendezvous } else { guess };
        if self.pause > 0 {
            self.pause -= 1;
            return (protocol(own), self.pause % WINDOWS_PER_TIME == 0);
        }
        self.pause = self.next_pause();
        (protocol(!own), true)
    }

    fn are_known(&self) -> bool {
        self.eager != 0 && self.rendezvous != 0
    }

    /// The pause after a window that takes `r` times as long: `r - 1` windows are lost in it.
    fn next_pause(&self) -> u16 {
        if !self.are_known() {
            return WINDOWS_UNTOLD;
        }
        let (own, other) = match self.takes_rendezvous {
            true => (self.rendezvous, self.eager),
            false => (self.eager, self.rendezvous),
        };
        let [least, most] = WINDOWS_BETWEEN;
        (100 * u64::from(other.saturating_sub(own)) / u64::from(own)).clamp(least, most) as u16
    }

    /// Takes note of a window's time per byte: a quarter of it counts. Rendezvous is taken once it is clearly faster.
    fn learn(&mut self, protocol: Protocol, sample: u32) {
        let estimate = match protocol {
            Protocol::Eager => &mut self.eager,
            Protocol::Rendezvous => &mut self.rendezvous,
        };
        *estimate = match *estimate {
            0 => sample,
            old => (old - old / 4).saturating_add(sample / 4).max(1),
        };
        if self.are_known() {
            let bound = if self.takes_rendezvous { 100 } else { 90 };
            let ratio = u64::from(self.rendezvous) * 100 / u64::from(self.eager);
            self.takes_rendezvous = ratio < bound;
        }
    }
}

fn protocol(rendezvous: bool) -> Protocol {
    if rendezvous { Protocol::Rendezvous } else { Protocol::Eager }
}

#[cfg(test)]
mod tests;
