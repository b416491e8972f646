//! Writes a trace for Perfetto, a viewer in the browser (<https://ui.perfetto.dev>), as a `Trace` of Protocol Buffers. Its
//! other format, JSON, cannot order tracks, has no arrows that end at the end of a call, and takes five times the space.
//!
//! ```text
//!  Trace
//!   └── TracePacket, any number
//!        ├── TrackDescriptor   the job; below it the ranks in order; below a rank its threads, if there are several, and the
//!        │                     lengths of its queues
//!        └── TrackEvent        the beginning or the end of a call, a message that leaves or has arrived, or a length
//! ```
//!
//! The events of a thread are one *sequence*: names are written once in each, and then meant by numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::sync::Arc;

use super::proto::Message;
use super::{Call, CallAt, Collected, Flow, Kind, Levels, RankTrace, ThreadTrace};

/// Numbers of fields and values, as Perfetto's protos have them.
mod field {
    /// Trace.packet
    pub(super) const PACKET: u32 = 1;
    pub(super) mod packet {
        pub(in super::super) const TIMESTAMP: u32 = 8;
        pub(in super::super) const SEQUENCE: u32 = 10;
        pub(in super::super) const EVENT: u32 = 11;
        pub(in super::super) const INTERNED: u32 = 12;
        pub(in super::super) const FLAGS: u32 = 13;
        pub(in super::super) const DEFAULTS: u32 = 59;
        pub(in super::super) const TRACK: u32 = 60;
        /// Names of earlier packets of the sequence count no more.
        pub(in super::super) const CLEARED: u64 = 1;
        /// Names of earlier packets of the sequence are used.
        pub(in super::super) const NEEDS_NAMES: u64 = 2;
    }
    pub(super) mod track {
        pub(in super::super) const UUID: u32 = 1;
        pub(in super::super) const NAME: u32 = 2;
        pub(in super::super) const PARENT: u32 = 5;
        pub(in super::super) const COUNTER: u32 = 8;
        pub(in super::super) const CHILD_ORDERING: u32 = 11;
        pub(in super::super) const PLACE: u32 = 12;
        /// Children are ordered by their places.
        pub(in super::super) const EXPLICIT: u64 = 3;
    }
    pub(super) mod counter {
        pub(in super::super) const UNIT: u32 = 3;
    }
    pub(super) mod event {
        pub(in super::super) const ARGUMENTS: u32 = 4;
        pub(in super::super) const TYPE: u32 = 9;
        pub(in super::super) const NAME: u32 = 10;
        pub(in super::super) const TRACK: u32 = 11;
        pub(in super::super) const CATEGORY: u32 = 22;
        pub(in super::super) const VALUE: u32 = 30;
        pub(in super::super) const FLOW: u32 = 47;
        pub(in super::super) const FLOW_ENDS: u32 = 48;
        pub(in super::super) const BEGIN: u64 = 1;
        pub(in super::super) const END: u64 = 2;
        pub(in super::super) const INSTANT: u64 = 3;
        pub(in super::super) const COUNTER: u64 = 4;
    }
    pub(super) mod argument {
        pub(in super::super) const NAME: u32 = 1;
        pub(in super::super) const NUMBER: u32 = 3;
        pub(in super::super) const SIGNED: u32 = 4;
        pub(in super::super) const TEXT: u32 = 17;
    }
    pub(super) mod interned {
        pub(in super::super) const EVENTS: u32 = 2;
        pub(in super::super) const ARGUMENTS: u32 = 3;
        pub(in super::super) const TEXTS: u32 = 29;
        pub(in super::super) const NUMBER: u32 = 1;
        pub(in super::super) const TEXT: u32 = 2;
    }
    /// TracePacketDefaults.track_event_defaults and TrackEventDefaults.track_uuid
    pub(super) const OF_EVENTS: u32 = 11;
}

/// The track of the job.
const JOB: u64 = 1;
/// Names of arguments, which have their places here plus one as numbers.
const ARGUMENTS: [&str; 9] = [
    "communicator",
    "peer",
    "tag",
    "bytes",
    "place",
    "sequence",
    "message",
    "unfinished",
    "protocol",
];
/// The names of protocols, whose numbers come before those of places.
const PROTOCOLS: [(u64, &str); 2] = [(1, "eager"), (2, "rendezvous")];
/// The number of the name of a message that leaves or arrives.
const MESSAGE: u64 = 1;

/// Writes a trace.
///
/// # Errors
/// What the system answers.
pub(super) fn write(collected: &Collected, out: &mut impl Write) -> io::Result<()> {
    let mut packets = Packets { out, packet: Message::default(), framed: Message::default() };
    let ranks = &collected.trace.ranks;
    packets.track(JOB, None, &name_of_job(collected), 0)?;
    let (mut from, mut to) = (collected.flows.clone(), collected.flows.clone());
    from.sort_unstable_by_key(|flow| flow.from);
    to.sort_unstable_by_key(|flow| flow.to);
    let (mut from, mut to) = (from.iter().peekable(), to.iter().peekable());
    let mut sequence = 1;
    for (place, rank) in ranks.iter().enumerate() {
        let of_rank = JOB + 1 + ((place as u64) << 20);
        let has_host = collected.error_between_hosts.is_some();
        packets.track(of_rank, Some(JOB), &name_of(rank, has_host), place)?;
        for (number, thread) in rank.threads.iter().enumerate() {
            let mut track = of_rank;
            if rank.threads.len() > 1 {
                track = of_rank + 1 + number as u64;
                packets.track(track, Some(of_rank), &format!("thread {number}"), number)?;
            }
            let at = |call| CallAt { rank: place, thread: number, call };
            let mut events = Events::begin(&mut packets, sequence, track)?;
            events.thread(thread, |call| {
                let next = |flow: &&Flow| flow.from == at(call);
                let ends = |flow: &&Flow| flow.to == at(call);
                (
                    std::iter::from_fn(|| from.next_if(next)).map(|flow| flow.number).collect(),
                    std::iter::from_fn(|| to.next_if(ends)).map(|flow| flow.number).collect(),
                )
            })?;
            sequence += 1;
        }
        if !rank.levels.is_empty() {
            packets.levels(rank, of_rank, sequence)?;
            sequence += 1;
        }
        if !rank.footprint.is_empty() {
            packets.footprint(rank, of_rank, sequence)?;
            sequence += 1;
        }
    }
    Ok(())
}

/// The name of the job's track.
fn name_of_job(collected: &Collected) -> String {
    let ranks = collected.trace.ranks.len();
    match collected.comparable() {
        None => format!("job of {ranks} ranks"),
        Some(comparable) => format!("job of {ranks} ranks, {comparable}"),
    }
}

/// The name of a rank's track.
fn name_of(rank: &RankTrace, has_host: bool) -> String {
    let host = if has_host { format!(" on {}", rank.host) } else { String::new() };
    let missing = [
        (rank.sum(|thread| thread.overwritten), "first"),
        (rank.sum(|thread| thread.lost), "last"),
    ];
    let missing = missing.into_iter().filter(|(calls, _)| *calls > 0);
    let missing: Vec<_> =
        missing.map(|(calls, which)| format!(" (without its {which} {calls} calls)")).collect();
    format!("rank {}{host}{}", rank.rank, missing.concat())
}

/// Where packets go.
struct Packets<'a, W> {
    out: &'a mut W,
    packet: Message,
    framed: Message,
}

impl<W: Write> Packets<'_, W> {
    fn write(&mut self, build: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.packet.clear();
        build(&mut self.packet);
        self.framed.clear();
        self.framed.text(field::PACKET, self.packet.bytes());
        self.out.write_all(self.framed.bytes())
    }

    /// Describes a track.
    fn track(
        &mut self,
        uuid: u64,
        parent: Option<u64>,
        name: &str,
        place: usize,
    ) -> io::Result<()> {
        use field::track::{CHILD_ORDERING, EXPLICIT, NAME, PARENT, PLACE, UUID};
        self.write(|packet| {
            packet.message(field::packet::TRACK, |track| {
                track.number(UUID, uuid).text(NAME, name).number(CHILD_ORDERING, EXPLICIT);
                if let Some(parent) = parent {
                    track.number(PARENT, parent).number(PLACE, place as u64);
                }
            });
        })
    }
}

/// What a counter counts, as the format has it.
#[derive(Clone, Copy)]
enum Unit {
    Number = 2,
    Bytes = 3,
}

/// The names of the tracks with the lengths of the queues of a device.
const LEVELS: [&str; 3] =
    ["posted receives", "unexpected messages", "bytes of unexpected messages"];
/// Where the numbers of these tracks begin, behind those of a rank's threads.
const OF_LEVELS: u64 = 1 << 19;
/// The devices of a rank that have tracks; a rank has as many contexts at most.
const MOST_DEVICES: usize = 16;

impl<W: Write> Packets<'_, W> {
    /// Writes how long the queues of a rank were: one counter for each queue of each device.
    fn levels(&mut self, rank: &RankTrace, of_rank: u64, sequence: u64) -> io::Result<()> {
        let devices: BTreeSet<u64> = rank.levels.iter().map(|levels| levels.device).collect();
        let are_several = devices.len() > 1;
        // Of each device, where its counters begin, and their last values.
        let mut devices: BTreeMap<u64, (usize, [Option<u64>; 3])> = devices
            .into_iter()
            .zip((0..MOST_DEVICES).map(|at| (LEVELS.len() * at, [None; 3])))
            .collect();
        for (device, (first, _)) in &devices {
            let context = device.saturating_sub(1);
            let context =
                if are_several { format!(" of context {context}") } else { String::new() };
            for (name, at) in LEVELS.iter().zip(*first..) {
                let place = rank.threads.len() + at;
                let unit = if name.starts_with("bytes") { Unit::Bytes } else { Unit::Number };
                self.counter(of_rank, (at, place), &format!("{name}{context}"), unit)?;
            }
        }
        for Levels { at, device, posted, unexpected, bytes } in &rank.levels {
            let Some((first, last)) = devices.get_mut(device) else { continue };
            for ((value, last), place) in
                [posted, unexpected, bytes].into_iter().zip(last).zip(*first..)
            {
                if last.replace(*value) != Some(*value) {
                    self.value(*at, of_rank + OF_LEVELS + place as u64, *value, sequence)?;
                }
            }
        }
        Ok(())
    }

    /// Writes how much memory a rank occupied, below all else.
    fn footprint(&mut self, rank: &RankTrace, of_rank: u64, sequence: u64) -> io::Result<()> {
        let at = LEVELS.len() * MOST_DEVICES;
        self.counter(of_rank, (at, rank.threads.len() + at), "memory", Unit::Bytes)?;
        for (nanos, bytes) in &rank.footprint {
            self.value(*nanos, of_rank + OF_LEVELS + at as u64, *bytes, sequence)?;
        }
        Ok(())
    }

    /// Writes a counter's track.
    fn counter(
        &mut self,
        of_rank: u64,
        (at, place): (usize, usize),
        name: &str,
        unit: Unit,
    ) -> io::Result<()> {
        use field::{counter, packet, track};
        self.write(|out| {
            out.message(packet::TRACK, |out| {
                out.number(track::UUID, of_rank + OF_LEVELS + at as u64).text(track::NAME, name);
                out.number(track::PARENT, of_rank);
                out.number(track::PLACE, place as u64);
                out.message(track::COUNTER, |out| {
                    out.number(counter::UNIT, unit as u64);
                });
            });
        })
    }

    /// Writes a value of a counter.
    fn value(&mut self, at: u64, counter: u64, value: u64, sequence: u64) -> io::Result<()> {
        use field::{event, packet};
        self.write(|out| {
            out.number(packet::TIMESTAMP, at).number(packet::SEQUENCE, sequence);
            out.message(packet::EVENT, |out| {
                out.number(event::TYPE, event::COUNTER);
                out.number(event::TRACK, counter);
                out.number(event::VALUE, value);
            });
        })
    }
}

/// The events of a thread.
struct Events<'p, 'a, W> {
    packets: &'p mut Packets<'a, W>,
    sequence: u64,
    names: Names,
    places: Names,
}

/// Texts that have numbers in a sequence.
#[derive(Default)]
struct Names(HashMap<Arc<str>, u64>);

impl Names {
    /// Returns the number of a text, and whether it is new.
    fn number(&mut self, text: &Arc<str>, first: u64) -> (u64, bool) {
        if let Some(number) = self.0.get(text) {
            return (*number, false);
        }
        let number = first + self.0.len() as u64;
        self.0.insert(text.clone(), number);
        (number, true)
    }
}

impl<'p, 'a, W: Write> Events<'p, 'a, W> {
    fn begin(packets: &'p mut Packets<'a, W>, sequence: u64, track: u64) -> io::Result<Self> {
        use field::{OF_EVENTS, interned, packet};
        packets.write(|first| {
            first.number(packet::SEQUENCE, sequence).number(packet::FLAGS, packet::CLEARED);
            first.message(packet::DEFAULTS, |defaults| {
                defaults.message(OF_EVENTS, |events| {
                    events.number(OF_EVENTS, track);
                });
            });
            first.message(packet::INTERNED, |names| {
                names.message(interned::EVENTS, |name| {
                    name.number(interned::NUMBER, MESSAGE).text(interned::TEXT, "message");
                });
                for (number, text) in PROTOCOLS {
                    names.message(interned::TEXTS, |name| {
                        name.number(interned::NUMBER, number).text(interned::TEXT, text);
                    });
                }
                for (number, text) in (1..).zip(ARGUMENTS) {
                    names.message(interned::ARGUMENTS, |name| {
                        name.number(interned::NUMBER, number).text(interned::TEXT, text);
                    });
                }
            });
        })?;
        Ok(Self { packets, sequence, names: Names::default(), places: Names::default() })
    }

    /// Writes all calls of a thread. `flows` says which messages leave at the beginning of a call, and which have arrived at
    /// its end.
    fn thread(
        &mut self,
        thread: &ThreadTrace,
        mut flows: impl FnMut(usize) -> (Vec<u64>, Vec<u64>),
    ) -> io::Result<()> {
        // The ends of calls that are not over, the innermost last, with the messages that arrive.
        let mut open: Vec<(u64, Vec<u64>)> = Vec::new();
        for (place, call) in thread.calls.iter().enumerate() {
            while open.last().is_some_and(|(end, _)| *end <= call.start) {
                let (end, arrived) = open.pop().expect("there is a last one");
                self.end(end, &arrived)?;
            }
            let (leaving, arrived) = flows(place);
            // A call inside another one ends with it at the latest.
            let most = open.last().map_or(u64::MAX, |(end, _)| *end);
            let end = call.end.unwrap_or(most).min(most);
            if call.kind == Kind::Span && call.end == Some(call.start) {
                self.event(call.start, field::event::INSTANT, Some(call), &[], &[])?;
                continue;
            }
            self.event(call.start, field::event::BEGIN, Some(call), &[], &[])?;
            if !leaving.is_empty() {
                self.event(call.start, field::event::INSTANT, None, &leaving, &[])?;
            }
            open.push((end, arrived));
        }
        while let Some((end, arrived)) = open.pop() {
            self.end(end, &arrived)?;
        }
        Ok(())
    }

    /// Ends a call. One that was never over has no end: the viewer shows it to the end of the trace.
    fn end(&mut self, at: u64, arrived: &[u64]) -> io::Result<()> {
        if at == u64::MAX {
            return Ok(());
        }
        if !arrived.is_empty() {
            self.event(at, field::event::INSTANT, None, &[], arrived)?;
        }
        self.event(at, field::event::END, None, &[], &[])
    }

    /// Writes an event of this type: the beginning of a call, or else an end, or messages.
    fn event(
        &mut self,
        at: u64,
        kind: u64,
        call: Option<&Call>,
        leaving: &[u64],
        arrived: &[u64],
    ) -> io::Result<()> {
        use field::{event, interned, packet};
        let name = call.map(|call| self.names.number(&call.name, MESSAGE + 1));
        let place = call.and_then(|call| call.place.as_ref());
        let place = place.map(|place| self.places.number(place, 1 + PROTOCOLS.len() as u64));
        let is_message = !leaving.is_empty() || !arrived.is_empty();
        let sequence = self.sequence;
        self.packets.write(|out| {
            out.number(packet::TIMESTAMP, at).number(packet::SEQUENCE, sequence);
            out.number(packet::FLAGS, packet::NEEDS_NAMES);
            let new_name = name.filter(|(_, is_new)| *is_new).zip(call.map(|call| &call.name));
            let new_place = place.filter(|(_, is_new)| *is_new);
            let new_place = new_place.zip(call.and_then(|call| call.place.as_ref()));
            if new_name.is_some() || new_place.is_some() {
                out.message(packet::INTERNED, |names| {
                    let lists = [(interned::EVENTS, new_name), (interned::TEXTS, new_place)];
                    for (list, new) in lists {
                        let Some(((number, _), text)) = new else { continue };
                        names.message(list, |name| {
                            name.number(interned::NUMBER, number).text(interned::TEXT, &**text);
                        });
                    }
                });
            }
            out.message(packet::EVENT, |out| {
                out.number(event::TYPE, kind);
                if let Some((number, _)) = name.or(is_message.then_some((MESSAGE, false))) {
                    out.number(event::NAME, number);
                }
                leaving.iter().for_each(|number| {
                    out.fixed(event::FLOW, *number);
                });
                arrived.iter().for_each(|number| {
                    out.fixed(event::FLOW_ENDS, *number);
                });
                if let Some(call) = call {
                    out.text(event::CATEGORY, category(call.kind));
                    arguments(call, place.map(|(number, _)| number), out);
                }
            });
        })
    }
}

/// By which the viewer's queries can choose calls.
fn category(kind: Kind) -> &'static str {
    match kind {
        Kind::Send => "send",
        Kind::Receive => "receive",
        Kind::Exchange => "exchange",
        Kind::Wait => "wait",
        Kind::Probe => "probe",
        Kind::Collective => "collective",
        Kind::OneSided => "one-sided",
        Kind::File => "file",
        Kind::Span => "span",
        Kind::Part => "part",
        Kind::Other => "other",
    }
}

/// Writes what is known of a call.
fn arguments(call: &Call, place: Option<u64>, event: &mut Message) {
    use field::argument::{NAME, NUMBER, SIGNED, TEXT};
    let mut argument = |number: u64, field, value: Option<u64>| {
        if let Some(value) = value {
            event.message(field::event::ARGUMENTS, |argument| {
                argument.number(NAME, number).number(field, value);
            });
        }
    };
    argument(1, NUMBER, call.communicator.map(u64::from));
    argument(2, NUMBER, call.peer.map(u64::from));
    argument(3, SIGNED, call.tag.map(|tag| i64::from(tag) as u64));
    argument(4, NUMBER, Some(call.bytes).filter(|bytes| *bytes > 0));
    argument(5, TEXT, place);
    argument(6, NUMBER, call.sequence);
    argument(7, NUMBER, call.message);
    argument(8, NUMBER, call.end.is_none().then_some(1));
    argument(9, TEXT, call.by_rendezvous.map(|is| 1 + u64::from(is)));
}
