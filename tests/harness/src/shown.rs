//! Reads what `mpjrun --trace` has written: as much of Perfetto's format as tests need.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The number of the argument of calls that were not over.
const UNFINISHED: u64 = 8;

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
                12 => reading.names.extend(value.iter().filter_map(|field| match field {
                    (2, Field::Bytes(name)) => {
                        let name = fields(name);
                        Some(((sequence?, of(&name, 1)?), text(&name, 2)?))
                    }
                    _ => None,
                })),
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
            let is_unfinished = |(field, value): &(u64, Field<'_>)| match value {
                Field::Bytes(argument) => {
                    *field == 4 && of(&fields(argument), 1) == Some(UNFINISHED)
                }
                Field::Number(_) => false,
            };
            if event.iter().any(is_unfinished) {
                self.unfinished.push(name.clone());
            }
            *self.calls.entry(name).or_default() += 1;
        }
    }

    /// Returns how often this name begins a call.
    pub fn calls(&self, name: &str) -> usize {
        self.calls.get(name).copied().unwrap_or(0)
    }
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
