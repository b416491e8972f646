//! Reads what `mpjrun --trace` has written: as much of Perfetto's format as tests need.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The numbers of arguments: of calls that were not over, and of the protocol of sends.
const UNFINISHED: u64 = 8;
const PROTOCOL: u64 = 9;

/// Fields of a message of Protocol Buffers that are bytes, numbers, or numbers of 8 bytes.
enum Field<'a> {
    Bytes(&'a [u8]),
    Number(u64),
}

fn number(bytes: &mut &[u8]) -> u64 {
    let len = bytes.iter().position(|byte| byte & 0x80 == 0).expect("a number ends") + 1;
    let (own, rest) = bytes.split_at(len);
    *bytes = rest;
    own.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7F))
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(number(&mut bytes)),
            1 => {
                let (own, rest) = bytes.split_first_chunk().expect("8 bytes");
                bytes = rest;
                Field::Number(u64::from_le_bytes(*own))
            }
            _ => {
                let len = number(&mut bytes) as usize;
                let (own, rest) = bytes.split_at(len);
                bytes = rest;
                Field::Bytes(own)
            }
        };
        fields.push((key >> 3, field));
    }
    fields
}

/// What a file of `mpjrun --trace` shows.
#[derive(Debug, Default)]
pub struct Shown {
    /// The names of the tracks, in the order of the file.
    pub tracks: Vec<String>,
    /// The values of each counter in order, by the names of its rank's track and its own.
    pub counters: BTreeMap<(String, String), Vec<u64>>,
    /// How often each name begins a call.
    pub calls: BTreeMap<String, usize>,
    /// The names of calls that were not over at the end.
    pub unfinished: Vec<String>,
    /// How often a call of this name, the first one, went by the protocol of this name, the second one.
    pub protocols: BTreeMap<(String, String), usize>,
    /// How many ends each message has.
    pub messages: BTreeMap<u64, usize>,
    /// The messages that leave one call and arrive in another one, in the order of their numbers.
    pub arrows: Vec<Arrow>,
}

/// A message as a file of `mpjrun --trace` shows it: where it leaves and arrives, the name of a track and nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrow {
    /// Where it leaves.
    pub from: (String, u64),
    /// Where it arrives.
    pub to: (String, u64),
}

/// What is known while a file is read.
#[derive(Default)]
struct Reading {
    /// The names of calls, by sequence and number.
    names: BTreeMap<(u64, u64), String>,
    /// The texts of arguments, in the same way.
    texts: BTreeMap<(u64, u64), String>,
    /// The counters by the numbers of their tracks.
    counters: BTreeMap<u64, (String, String)>,
    /// The names of tracks by their numbers, and the tracks of sequences.
    tracks: BTreeMap<u64, String>,
    track_of: BTreeMap<u64, u64>,
    /// The ends of messages, by their numbers: where they leave and where they arrive.
    ends: BTreeMap<u64, [Option<(String, u64)>; 2]>,
}

impl Shown {
    /// Reads a file.
    ///
    /// # Panics
    /// When there is no such file, or it is damaged.
    pub fn read(file: &Path) -> Self {
        let bytes = fs::read(file).expect("it was written");
        let (mut shown, mut reading) = (Self::default(), Reading::default());
        for (_, packet) in fields(&bytes) {
            let Field::Bytes(packet) = packet else { panic!("a packet is a message") };
            shown.packet(&fields(packet), &mut reading);
        }
        let arrow = |[from, to]: [Option<_>; 2]| Some(Arrow { from: from?, to: to? });
        shown.arrows = reading.ends.into_values().filter_map(arrow).collect();
        shown
    }

    fn packet(&mut self, packet: &[(u64, Field<'_>)], reading: &mut Reading) {
        let sequence = of(packet, 10);
        for (field, value) in packet {
            let Field::Bytes(value) = value else { continue };
            let value = fields(value);
            match field {
                60 => {
                    let name = text(&value, 2);
                    if message(&value, 8).is_some() {
                        let parent = of(&value, 5).and_then(|parent| reading.tracks.get(&parent));
                        let counter = parent.cloned().zip(name);
                        reading.counters.extend(of(&value, 1).zip(counter));
                        continue;
                    }
                    self.tracks.extend(name.clone());
                    reading.tracks.extend(of(&value, 1).zip(name));
                }
                59 => {
                    let events = message(&value, 11).unwrap_or_default();
                    reading.track_of.extend(sequence.zip(of(&events, 11)));
                }
                12 => {
                    let sequence = sequence.expect("one");
                    reading.names.extend(interned(&value, 2, sequence));
                    reading.texts.extend(interned(&value, 29, sequence));
                }
                11 => self.event(&value, (sequence.expect("one"), of(packet, 8)), reading),
                _ => {}
            }
        }
    }

    fn event(
        &mut self,
        event: &[(u64, Field<'_>)],
        (sequence, at): (u64, Option<u64>),
        reading: &mut Reading,
    ) {
        if let Some(counter) = of(event, 11).and_then(|track| reading.counters.get(&track)) {
            let values = self.counters.entry(counter.clone()).or_default();
            values.extend(of(event, 30));
            return;
        }
        for (field, value) in event {
            if let (47 | 48, Field::Number(flow)) = (field, value) {
                *self.messages.entry(*flow).or_default() += 1;
                let track = reading.tracks[&reading.track_of[&sequence]].clone();
                let end = usize::from(*field == 48);
                reading.ends.entry(*flow).or_default()[end] = at.map(|at| (track, at));
            }
        }
        let has_flow = event.iter().any(|(field, _)| matches!(field, 47 | 48));
        if let (Some(number), false) = (of(event, 10), has_flow) {
            let name = reading.names[&(sequence, number)].clone();
            for (field, value) in event {
                let (4, Field::Bytes(argument)) = (field, value) else { continue };
                let argument = fields(argument);
                match of(&argument, 1) {
                    Some(UNFINISHED) => self.unfinished.push(name.clone()),
                    Some(PROTOCOL) => {
                        let number = of(&argument, 17).expect("a text that all calls share");
                        let protocol = reading.texts[&(sequence, number)].clone();
                        *self.protocols.entry((name.clone(), protocol)).or_default() += 1;
                    }
                    _ => {}
                }
            }
            *self.calls.entry(name).or_default() += 1;
        }
    }

    /// Returns how often this name begins a call.
    pub fn calls(&self, name: &str) -> usize {
        self.calls.get(name).copied().unwrap_or(0)
    }
}

/// The texts of this list that events name by numbers, each with its sequence and number.
fn interned<'a>(
    lists: &'a [(u64, Field<'a>)],
    wanted: u64,
    sequence: u64,
) -> impl Iterator<Item = ((u64, u64), String)> + 'a {
    lists.iter().filter_map(move |(list, entry)| match entry {
        Field::Bytes(entry) if *list == wanted => {
            let entry = fields(entry);
            Some(((sequence, of(&entry, 1)?), text(&entry, 2)?))
        }
        _ => None,
    })
}

fn of(message: &[(u64, Field<'_>)], wanted: u64) -> Option<u64> {
    message.iter().find_map(|(field, value)| match value {
        Field::Number(number) if *field == wanted => Some(*number),
        _ => None,
    })
}

fn text(message: &[(u64, Field<'_>)], wanted: u64) -> Option<String> {
    message.iter().find_map(|(field, value)| match value {
        Field::Bytes(text) if *field == wanted => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    })
}

fn message<'a>(message: &[(u64, Field<'a>)], wanted: u64) -> Option<Vec<(u64, Field<'a>)>> {
    message.iter().find_map(|(field, value)| match value {
        Field::Bytes(bytes) if *field == wanted => Some(fields(bytes)),
        _ => None,
    })
}
