//! Reads what `mpjrun --trace` has written: as much of Perfetto's format as tests need.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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
    /// How often each name begins a call.
    pub calls: BTreeMap<String, usize>,
    /// How many ends each message has.
    pub messages: BTreeMap<u64, usize>,
}

impl Shown {
    /// Reads a file.
    ///
    /// # Panics
    /// When there is no such file, or it is damaged.
    pub fn read(file: &Path) -> Self {
        let bytes = fs::read(file).expect("it was written");
        let mut shown = Self::default();
        let mut names = BTreeMap::new();
        for (_, packet) in fields(&bytes) {
            let Field::Bytes(packet) = packet else { panic!("a packet is a message") };
            shown.packet(&fields(packet), &mut names);
        }
        shown
    }

    fn packet(&mut self, packet: &[(u64, Field<'_>)], names: &mut BTreeMap<(u64, u64), String>) {
        let sequence = packet.iter().find_map(|field| match field {
            (10, Field::Number(sequence)) => Some(*sequence),
            _ => None,
        });
        for (field, value) in packet {
            let Field::Bytes(value) = value else { continue };
            match field {
                60 => self.tracks.extend(text(&fields(value), 2)),
                12 => names.extend(fields(value).iter().filter_map(|field| match field {
                    (2, Field::Bytes(name)) => {
                        let name = fields(name);
                        Some(((sequence?, of(&name, 1)?), text(&name, 2)?))
                    }
                    _ => None,
                })),
                11 => self
                    .event(&fields(value), |name| names[&(sequence.expect("one"), name)].clone()),
                _ => {}
            }
        }
    }

    fn event(&mut self, event: &[(u64, Field<'_>)], name: impl Fn(u64) -> String) {
        for (field, value) in event {
            if let (47 | 48, Field::Number(flow)) = (field, value) {
                *self.messages.entry(*flow).or_default() += 1;
            }
        }
        let has_flow = event.iter().any(|(field, _)| matches!(field, 47 | 48));
        if let (Some(number), false) = (of(event, 10), has_flow) {
            *self.calls.entry(name(number)).or_default() += 1;
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
