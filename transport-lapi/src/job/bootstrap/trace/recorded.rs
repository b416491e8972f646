//! The launcher's half: reads what a rank has recorded. Nothing that it reads is trusted (TC4): what makes no sense is
//! left out, and no content makes it fail.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::fstat;

use super::{
    BLOCKS, Clock, FOOTPRINT, Form, Kind, LONGEST_TEXT, MAGIC, MOST_LOOKS, RECORD, WORDS, block,
    flag, head, word,
};

/// What a rank has recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// One for each thread, in the order of their first records.
    pub threads: Vec<ThreadRecords>,
    /// How many calls were lost of threads that have no record.
    pub lost: u64,
    /// How many bytes of memory the rank occupied, each with its time by the clock of the records.
    pub footprint: Vec<(u64, u64)>,
}

/// What a thread has recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadRecords {
    /// The id that the system had given to the thread.
    pub system_id: u32,
    /// In the order in which they were made, or in a ring, where the first of them may follow the last.
    pub records: Vec<Record>,
    /// How many later records were lost because the memory was full.
    pub lost: u64,
    /// How many earlier records were overwritten.
    pub overwritten: u64,
    /// When the last of these began. All that begins later is here.
    pub overwritten_until: u64,
}

/// A record, as a rank has written it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// A number that [`Kind::Ended`] and [`Kind::Started`] name.
    pub number: u64,
    /// When it began, by the clock of the records.
    pub start: u64,
    /// When it ended.
    pub end: Option<u64>,
    /// The name.
    pub name: Arc<str>,
    /// The place in the source.
    pub place: Option<Arc<str>>,
    /// What it is of.
    pub kind: Kind,
    /// The number of the communicator.
    pub communicator: Option<u32>,
    /// The other rank.
    pub peer: Option<u32>,
    /// The tag.
    pub tag: Option<i32>,
    /// How many bytes are sent or received.
    pub bytes: u64,
    /// The number of the request; 0 if there is none.
    pub request: u64,
    /// Which collective call of its communicator it is; for [`Kind::Ended`] and [`Kind::Started`] the record that this
    /// belongs to.
    pub sequence: Option<u64>,
    /// Whether the operation was cancelled.
    pub is_cancelled: bool,
    /// Of sends whose protocol is known, whether it is rendezvous.
    pub by_rendezvous: Option<bool>,
    /// What a [`Kind::Exchange`] has received, if that has ended in the call.
    pub received: Option<Received>,
}

/// A message that was received in a call that also sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The rank that has sent it.
    pub source: u32,
    /// Its tag.
    pub tag: i32,
    /// Its bytes.
    pub bytes: u64,
}

/// Reads the memory of a rank. Returns `None` if it is not such memory, or if its times are of another clock.
pub fn read(memory: impl AsFd, clock: Clock) -> Option<Recorded> {
    let len = u64::try_from(fstat(&memory).ok()?.st_size).ok()?;
    let beginning = bytes_of(&memory, 0, BLOCKS)?;
    let words = words(&beginning);
    if words[head::MAGIC] != MAGIC || words[head::CLOCK] != clock as u64 {
        return None;
    }
    let size = Form::of(words[head::FORM]).block();
    let most = len.saturating_sub(BLOCKS as u64) / size as u64;
    let mut texts = Texts { words: &words, known: BTreeMap::new() };
    let mut threads = BTreeMap::<u64, ThreadRecords>::new();
    for number in 0..words[head::BLOCKS_TAKEN].min(most) {
        let at = BLOCKS as u64 + number * size as u64;
        let Some(bytes) = bytes_of(&memory, at, size) else { break };
        texts.block(&bytes, at, &mut threads);
    }
    let looks = words[FOOTPRINT / 8..].chunks_exact(2).map(|look| (look[0], look[1]));
    let footprint = looks.take_while(|(at, _)| *at != 0).collect();
    Some(Recorded { lost: words[head::LOST], threads: threads.into_values().collect(), footprint })
}

/// Notes in the memory of a rank how many bytes it has occupied, each number with its time by the clock of the records, not
/// 0: at most [`MOST_LOOKS`]. Those behind are left out.
///
/// # Errors
/// What the system answers.
pub fn note_footprint(memory: impl AsFd, looks: &[(u64, u64)]) -> io::Result<()> {
    let looks = looks.iter().take(MOST_LOOKS).flat_map(|(at, bytes)| [*at, *bytes]);
    let bytes: Vec<u8> = looks.flat_map(u64::to_le_bytes).collect();
    rustix::io::pwrite(memory, &bytes, FOOTPRINT as u64)?;
    Ok(())
}

/// Returns which bytes of the memory of a rank can differ from 0: its head with the texts, its footprint, and its blocks.
/// `None` if it is too short to be such memory.
pub fn used(memory: impl AsFd) -> Option<[Range<u64>; 3]> {
    let len = u64::try_from(fstat(&memory).ok()?.st_size).ok()?;
    let words = words(&bytes_of(&memory, 0, RECORD)?);
    let size = Form::of(words[head::FORM]).block() as u64;
    let texts = words[head::TEXT_TAKEN].saturating_mul(8).saturating_add(RECORD as u64);
    let blocks = len.checked_sub(BLOCKS as u64)? / size;
    let blocks = words[head::BLOCKS_TAKEN].min(blocks) * size;
    let looks = self::words(&bytes_of(&memory, FOOTPRINT as u64, 16 * MOST_LOOKS)?);
    let looks = looks.chunks_exact(2).take_while(|look| look[0] != 0).count() as u64;
    let [footprint, behind] = [FOOTPRINT, BLOCKS].map(|at| at as u64);
    Some([0..texts.min(footprint), footprint..footprint + 16 * looks, behind..behind + blocks])
}

/// Reads so many bytes.
fn bytes_of(memory: impl AsFd, at: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut done = 0;
    while done < len {
        match rustix::io::pread(&memory, &mut bytes[done..], at + done as u64) {
            Ok(0) | Err(_) => return None,
            Ok(read) => done += read,
        }
    }
    Some(bytes)
}

/// Takes bytes apart.
fn words(bytes: &[u8]) -> Vec<u64> {
    let chunks = bytes.chunks_exact(8).filter_map(|chunk| chunk.try_into().ok());
    chunks.map(u64::from_le_bytes).collect()
}

/// The texts of a rank.
struct Texts<'a> {
    words: &'a [u64],
    /// Those that were read, by their numbers.
    known: BTreeMap<u32, Option<Arc<str>>>,
}

impl Texts<'_> {
    /// Reads a block of records.
    fn block(&mut self, bytes: &[u8], at: u64, threads: &mut BTreeMap<u64, ThreadRecords>) {
        let words = words(bytes);
        if words[block::THREAD] == 0 {
            return;
        }
        let thread = threads.entry(words[block::THREAD]).or_default();
        thread.system_id = words[block::SYSTEM_ID] as u32;
        thread.lost = thread.lost.saturating_add(words[block::LOST]);
        thread.overwritten = thread.overwritten.saturating_add(words[block::OVERWRITTEN]);
        let until = words[block::OVERWRITTEN_UNTIL];
        thread.overwritten_until = thread.overwritten_until.max(until);
        for (place, record) in words.chunks_exact(WORDS).enumerate().skip(1) {
            // TC3
            if record[word::START] != 0 {
                let number = at + (place * RECORD) as u64;
                thread.records.extend(self.record(number, record));
            }
        }
    }

    /// Reads a record, if it makes sense.
    fn record(&mut self, number: u64, words: &[u64]) -> Option<Record> {
        let flags = words[word::KIND];
        let has = |bit: u64| flags & bit != 0;
        let kind = *Kind::ALL.get((flags >> 32 & 0xFF) as usize)?;
        let is_part = matches!(kind, Kind::Ended | Kind::Started | Kind::Levels);
        let (start, end) = (words[word::START], words[word::END]);
        let (request, sequence) = (words[word::REQUEST], words[word::SEQUENCE]);
        let (source, tag) = (sequence as u32, (sequence >> 32) as u32 as i32);
        let received = Received { source, tag, bytes: request };
        let received = has(flag::RECEIVED).then_some(received);
        Some(Record {
            number,
            start,
            end: (end != 0).then(|| end.max(start)),
            name: self.text(words[word::NAME] as u32).unwrap_or_else(|| "?".into()),
            place: self.text((words[word::NAME] >> 32) as u32),
            kind,
            communicator: has(flag::COMMUNICATOR).then_some(flags as u32),
            peer: has(flag::PEER).then_some(words[word::PEER] as u32),
            tag: has(flag::TAG).then_some((words[word::PEER] >> 32) as u32 as i32),
            bytes: words[word::BYTES],
            request: if received.is_none() { request } else { 0 },
            sequence: (has(flag::SEQUENCE) || is_part).then_some(sequence),
            is_cancelled: has(flag::CANCELLED),
            by_rendezvous: has(flag::PROTOCOL).then(|| has(flag::RENDEZVOUS)),
            received,
        })
    }

    /// Reads the text with this number, if there is one. Control characters become replacement characters.
    fn text(&mut self, number: u32) -> Option<Arc<str>> {
        let words = self.words;
        let text = self.known.entry(number).or_insert_with(|| {
            let at = Some(number as usize).filter(|at| *at >= WORDS)?;
            let len = usize::try_from(*words.get(at)?).ok().filter(|len| *len <= LONGEST_TEXT)?;
            let bytes = words.get(at + 1..at + 1 + len.div_ceil(8))?;
            let bytes: Vec<u8> =
                bytes.iter().flat_map(|word| word.to_le_bytes()).take(len).collect();
            let text = String::from_utf8_lossy(&bytes);
            Some(text.replace(char::is_control, "\u{FFFD}").into())
        });
        text.clone()
    }
}
