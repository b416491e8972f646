//! Checks of collective calls (`MPJ_CHECK`): before a rank makes one, it tells the others which, and compares what they
//! tell. Calls that do not fit together are refused on all ranks, before any data are used.
//!
//! - CC1: the ranks exchange their claims by an allgather of their own, with a tag that belongs to the number of the
//!   call, so that the claims of a call meet whatever the calls are, and however they are made. A persistent call is
//!   checked when it is made.
//! - CC2: all ranks compare the same words in the same way, so all refuse the call or none does, and no message of a
//!   refused call is sent.
//! - CC3: where blocks have lengths of their own, each rank adds up a number for all that it sends to another rank, and
//!   subtracts one for all that it expects from another rank, which are the same if length and types are. The sum over all
//!   ranks is 0 if everything fits, and otherwise with a probability of 2^-64. If it is not, the ranks tell each other
//!   what they send and expect, and compare that.
//!
//! Calls of intercommunicators, and calls by which only some ranks make a communicator, are not checked. Bytes fit elements
//! of any type.

use std::cell::RefCell;
use std::panic::Location;

use mpjdev::{CALL_NUMBERS, Call, recorded, shortened};

use super::{Persistent, Route, Scheduled, Tag};
use crate::collective::{Collective, Local, Message, Place};
use crate::communicator::{Communicator, Parts};
use crate::datatype::{Datatype, Signature};
use crate::error::{Aspect, Error, Mistake};
use crate::memory::{Input, Output, Reduction};
use crate::process::{fingerprint, scrambled};

/// Tags of claims are from here on, up to those of blocking calls (PL4).
pub(super) const CLAIMS: u32 = CALL_NUMBERS + CALL_NUMBERS / 2;

/// Stands for the types of a call by which a rank sends other types than it receives.
const UNLIKE: u64 = u64::MAX;
/// Number of words of a text.
const TEXT: usize = 24;
/// How many bytes at the beginning of a text are kept.
const KEPT: usize = 80;
/// Number of words of a claim: one for each aspect, its balance (CC3), and its text.
const WORDS: usize = Aspect::ALL.len() + 1 + TEXT;

thread_local! {
    static SITE: RefCell<Option<Site>> = const { RefCell::new(None) };
}

/// Where the program makes a call, and the type of the elements, for the checks of calls that this thread makes while
/// it lives.
#[derive(Debug, Clone)]
pub struct Site {
    place: String,
    element: Option<Datatype>,
}

impl Site {
    /// Notes the place in the program's source and the type of an element, if the call has elements of one type.
    pub fn enter(place: &Location<'_>, element: Option<Datatype>) -> Entered {
        let place = format!("{}:{}", place.file(), place.line());
        SITE.set(Some(Self { place, element }));
        Entered(())
    }
}

/// Returns where the program makes the call that this thread is in, for a report; nothing if that is not known.
pub(crate) fn place() -> String {
    SITE.with_borrow(|site| {
        site.as_ref().map_or(String::new(), |site| format!(" at {}", site.place))
    })
}

/// Forgets a [`Site`] at its end.
#[derive(Debug)]
pub struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        SITE.take();
    }
}

/// How a call is made. All ranks make it in one form, since the messages of each have tags of their own (PL4).
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// MPI_Ibcast, MPI_Iallreduce and so on.
    Started,
    /// MPI_Bcast_init, MPI_Allreduce_init and so on.
    Persistent,
}

/// What a rank tells of a call.
pub(crate) struct Claim {
    /// What must be the same on all ranks: the call and its form, the root, the operation, the length, and the types, or
    /// 0 if these are not known, or [`UNLIKE`]. The last one is 0 on all ranks: whether the buffers overlap.
    aspects: [u64; Aspect::ALL.len()],
    /// What the rank sends to each rank, and what it expects from each, if blocks have lengths of their own.
    moved: [Vec<Moved>; 2],
    /// The rank.
    rank: u32,
    text: String,
}

/// All that a rank sends to another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Moved {
    bytes: u64,
    /// Stands for the types; 0 if these are not known.
    types: u64,
}

impl Moved {
    fn add(&mut self, bytes: u64, types: Option<Signature>) {
        if bytes == 0 {
            return;
        }
        let is_known = self.bytes == 0 || self.types != 0;
        let types = types.filter(|types| is_known && !types.has_bytes());
        self.types = types.map_or(0, |types| numbered([self.types, types.fingerprint()]).max(1));
        self.bytes += bytes;
    }

    /// The number of what rank `from` sends to rank `to` (CC3).
    fn number(self, from: u32, to: u32) -> u64 {
        match self.bytes {
            0 => 0,
            bytes => numbered([from.into(), to.into(), bytes, self.types]),
        }
    }
}

/// Returns a number for words that looks random.
fn numbered<const N: usize>(words: [u64; N]) -> u64 {
    words.into_iter().fold(0, |number, word| scrambled(number ^ word))
}

impl Claim {
    /// That of a call with equal blocks.
    pub fn of_blocks(
        call: Call,
        collective: &Collective,
        rank: u32,
        (input, output): (&Input, &Output),
        reduction: Option<&Reduction>,
    ) -> Self {
        let data = collective.significant(rank);
        let (size, own) = match data.of_input {
            true => (input.data_size(), [input.datatype(), output.datatype()]),
            false => (output.data_size(), [output.datatype(), input.datatype()]),
        };
        let data = data.count.map(|count| (count, size));
        let mut claim = Self::new((call, rank), collective.root(), reduction, (data, own));
        claim.aspects[Aspect::Buffers as usize] = input.overlaps(output).into();
        claim
    }

    /// That of any other call.
    pub fn of_call(
        call: Call,
        rank: u32,
        root: Option<u32>,
        reduction: Option<&Reduction>,
    ) -> Self {
        Self::new((call, rank), root, reduction, (None, [None; 2]))
    }

    /// Adds what the rank sends to others and expects from them, each of these `ranks`, by its messages (CC3).
    pub fn with_messages(
        mut self,
        Parts { schedule, memory, reduction, .. }: Parts<'_>,
        ranks: u32,
    ) -> Self {
        let element = SITE.with_borrow(|site| site.as_ref().and_then(|site| site.element.clone()));
        // Partial results may lie in memory of other types.
        let knows = reduction.is_none();
        let of = |place: &Place| {
            let bytes = memory.source(place).map_or(0, |data| data.len() as u64);
            let given = || repeated(element.as_ref()?, bytes);
            (bytes, memory.signature(*place).or_else(given).filter(|_| knows))
        };
        self.moved = [(); 2].map(|()| vec![Moved::default(); ranks as usize]);
        let mut add = |direction: usize, peer: u32, place: &Place| {
            let (bytes, types) = of(place);
            self.moved[direction][peer as usize].add(bytes, types);
        };
        for round in schedule.rounds() {
            for message in round.messages {
                match message {
                    Message::Send { peer, from } => add(0, *peer, from),
                    Message::Receive { peer, into } => add(1, *peer, into),
                }
            }
            // What a rank copies, it sends itself.
            for step in round.local {
                if let Local::Copy { from, into } = step {
                    add(0, self.rank, from);
                    add(1, self.rank, into);
                }
            }
        }
        self
    }

    /// The rank's part of the sum (CC3).
    fn balance(&self) -> u64 {
        let [sent, expected] = &self.moved;
        let sent = (0..).zip(sent).map(|(to, moved)| moved.number(self.rank, to));
        let expected = (0..).zip(expected).map(|(from, moved)| moved.number(from, self.rank));
        sent.fold(0, u64::wrapping_add).wrapping_sub(expected.fold(0, u64::wrapping_add))
    }

    /// `data` are the number of elements and their size, with the datatypes of their buffer and of the other one, if
    /// these have one.
    fn new(
        (call, rank): (Call, u32),
        root: Option<u32>,
        reduction: Option<&Reduction>,
        (data, [own, other]): (Option<(u64, usize)>, [Option<&Datatype>; 2]),
    ) -> Self {
        let site = SITE.with_borrow(Clone::clone);
        let op = reduction.map(|reduction| match reduction.predefined() {
            Some((op, _)) => op.to_string(),
            None => "a function".to_owned(),
        });
        // What lies in bytes may have any type.
        let element = site.as_ref().and_then(|site| site.element.as_ref());
        let kind = reduction.and_then(Reduction::predefined).map(|(_, kind)| kind);
        let kind = kind.map(Datatype::predefined);
        let bytes = data.map(|(count, size)| count.saturating_mul(size as u64));
        let types = |element: Option<&Datatype>| {
            repeated(element?, bytes?).filter(|types| !types.has_bytes())
        };
        // What a rank sends and what it receives have the same types, too, unless they are known by another way.
        let types = match element.or(kind.as_ref()) {
            Some(element) => [types(Some(element)), None],
            None => [types(own), types(other)],
        };
        let (types_text, types) =
            match types.map(|types| types.map(|it| (it.to_string(), it.fingerprint()))) {
                [Some((text, one)), Some((other_text, another))] if one != another => {
                    (Some(format!("{text} and {other_text}")), UNLIKE)
                }
                [Some((text, types)), _] => (Some(text), types),
                [None, _] => (None, 0),
            };
        let root_text = root.map(|root| format!("root {root}"));
        let data_text = types_text.or_else(|| bytes.map(|bytes| format!("{bytes} bytes")));
        let arguments: Vec<String> =
            [root_text, op.clone(), data_text].into_iter().flatten().collect();
        let name = call.name();
        Self {
            aspects: [
                u64::from(call as u16),
                root.map_or(0, |root| u64::from(root) + 1),
                op.map_or(0, |op| fingerprint(op.bytes())),
                bytes.unwrap_or(0),
                types,
                0,
            ],
            moved: [Vec::new(), Vec::new()],
            rank,
            text: format!("{name}({}){}", arguments.join(", "), place()),
        }
    }

    /// The same of a call that does not block.
    fn in_form(&mut self, form: Form) {
        self.aspects[0] |= (form as u64 + 1) << 16;
        match form {
            Form::Started => self.text.insert(0, 'i'),
            Form::Persistent => {
                let end = self.text.find('(').unwrap_or(self.text.len());
                self.text.insert_str(end, "_init");
            }
        }
    }

    /// What the ranks tell each other if the sum is not 0 (CC3).
    fn words_of_messages(&self) -> Vec<u64> {
        let moved = self.moved.iter().flatten();
        moved.flat_map(|moved| [moved.bytes, moved.types]).collect()
    }

    fn words(&self) -> Vec<u64> {
        // The call is at the beginning, the line at the end.
        let text = shortened(&self.text, KEPT, TEXT * size_of::<u64>());
        let mut words = self.aspects.to_vec();
        words.push(self.balance());
        words.extend(text.as_bytes().chunks(size_of::<u64>()).map(|chunk| {
            let mut word = [0; size_of::<u64>()];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        }));
        words.resize(WORDS, 0);
        words
    }
}

/// The exchange of words that belong to the claims of a call (CC1).
fn exchange(
    words: Vec<u64>,
    communicator: &Communicator,
    call: Call,
    number: i32,
) -> Result<Scheduled<'_>, Error> {
    let (schedule, buffers) = communicator.gathering(words)?;
    let mut work = communicator.workspace().with(schedule);
    work.fill(buffers, None)?;
    let tag = CLAIMS + number as u32 % (CALL_NUMBERS / 2 - 1);
    let tag = Tag::Own { number, tag: tag as i32 };
    let route = Route { peers: None, context: communicator.collective_context(), tag };
    Ok(Scheduled { communicator, call, route, work, claim: None })
}

/// Returns the types of `bytes` of data in elements of a datatype; an element of a buffer may be several of these.
fn repeated(element: &Datatype, bytes: u64) -> Option<Signature> {
    let signature = element.signature();
    Some(signature.repeat(bytes.checked_div(signature.size())?))
}

/// Refuses calls that do not fit together (CC2). `words` are the claims of all ranks. Returns whether all messages have
/// the lengths and types that are expected; if not, [`verdict_of_messages`] finds out.
fn verdict(words: &[u64]) -> Result<bool, Error> {
    let first = words.get(..WORDS).unwrap_or_default();
    for (rank, other) in words.chunks_exact(WORDS).enumerate() {
        let differs = |at: &usize| match (Aspect::ALL[*at], first[*at], other[*at]) {
            (Aspect::Types, _, UNLIKE) => true,
            // Of one of them they are not known.
            (Aspect::Types, 0, _) | (Aspect::Types, _, 0) => false,
            (Aspect::Buffers, _, overlap) => overlap != 0,
            (_, one, another) => one != another,
        };
        if let Some(at) = (0..Aspect::ALL.len()).find(differs) {
            let (calls, ranks) = ([first, other].map(text_of), [0, rank as u32]);
            let mistake = Mistake { aspect: Aspect::ALL[at], ranks, calls };
            return Err(Error::Mistake(Box::new(mistake)));
        }
    }
    let balances = words.chunks_exact(WORDS).map(|claim| claim[Aspect::ALL.len()]);
    Ok(balances.fold(0, u64::wrapping_add) == 0)
}

/// Refuses a call of which a message has another length or other types than expected (CC3). `moved` are the words of all
/// ranks about their messages, `claims` their claims.
fn verdict_of_messages(moved: &[u64], claims: &[u64]) -> Result<(), Error> {
    let claims: Vec<_> = claims.chunks_exact(WORDS).collect();
    let ranks = claims.len();
    let of = |rank: usize, direction: usize, peer: usize| {
        let at = 2 * ((2 * rank + direction) * ranks + peer);
        (moved[at], moved[at + 1])
    };
    for (from, to) in (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to))) {
        let aspect = match (of(from, 0, to), of(to, 1, from)) {
            ((sent, _), (expected, _)) if sent != expected => Aspect::BlockLength,
            ((_, sent), (_, expected)) if sent != expected && sent != 0 && expected != 0 => {
                Aspect::BlockTypes
            }
            _ => continue,
        };
        let calls = [from, to].map(|rank| text_of(claims[rank]));
        let mistake = Mistake { aspect, ranks: [from as u32, to as u32], calls };
        return Err(Error::Mistake(Box::new(mistake)));
    }
    Ok(())
}

fn text_of(claim: &[u64]) -> String {
    let bytes: Vec<u8> =
        claim[Aspect::ALL.len() + 1..].iter().flat_map(|it| it.to_le_bytes()).collect();
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned()
}

impl Scheduled<'_> {
    /// Says in which form it runs, if it does not block.
    pub(super) fn in_form(mut self, form: Form) -> Self {
        self.claim.iter_mut().for_each(|claim| claim.in_form(form));
        self
    }

    /// Refuses the call if those of other ranks do not fit, where calls are checked.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        let number = self.route.tag.number();
        if self.communicator.is_described() {
            recorded::collective(self.call.name(), number);
        }
        let Some(claim) = self.claim.take() else { return Ok(()) };
        let told = |words| exchange(words, self.communicator, self.call, number)?.run_and_keep();
        let claims = told(claim.words())?;
        match verdict(&claims)? {
            true => Ok(()),
            false => verdict_of_messages(&told(claim.words_of_messages())?, &claims),
        }
    }
}

/// Starts to compare the claim of a call that no thread waits for, and passes on what comes of it.
pub(super) fn start(
    claim: Box<Claim>,
    communicator: &Communicator,
    call: Call,
    number: i32,
    then: impl FnOnce(Result<(), Error>) + Send + 'static,
) {
    let own = communicator.clone();
    tell(claim.words(), communicator, call, number, move |claims| {
        let judged = claims.and_then(|claims| Ok((verdict(&claims)?, claims)));
        match judged {
            Ok((false, claims)) => {
                tell(claim.words_of_messages(), &own, call, number, move |moved| {
                    then(moved.and_then(|moved| verdict_of_messages(&moved, &claims)));
                });
            }
            judged => then(judged.map(drop)),
        }
    });
}

/// Starts the exchange of these words, and passes on those of all ranks.
fn tell(
    words: Vec<u64>,
    communicator: &Communicator,
    call: Call,
    number: i32,
    then: impl FnOnce(Result<Vec<u64>, Error>) + Send + 'static,
) {
    match exchange(words, communicator, call, number) {
        Ok(exchange) => Persistent::new(exchange).start_then(then),
        Err(error) => then(Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rank_that_differs_is_named_with_both_calls() {
        let here = || Claim::of_call(Call::Gatherv, 0, Some(0), None);
        let claims = |others: &[Claim]| {
            let all = [&[here()], others].concat_words();
            verdict(&all)
        };
        assert!(claims(&[here(), here()]).is_ok());
        let error = claims(&[here(), Claim::of_call(Call::Gatherv, 2, Some(1), None)]);
        let Err(Error::Mistake(mistake)) = error else { panic!("the roots differ") };
        assert_eq!((mistake.aspect, mistake.ranks), (Aspect::Root, [0, 2]));
        assert_eq!(mistake.calls, ["gatherv(root 0)", "gatherv(root 1)"]);
    }

    trait ConcatWords {
        fn concat_words(&self) -> Vec<u64>;
    }

    impl ConcatWords for [&[Claim]; 2] {
        fn concat_words(&self) -> Vec<u64> {
            self.iter().flat_map(|claims| claims.iter()).flat_map(Claim::words).collect()
        }
    }

    /// CC3.
    #[test]
    fn blocks_are_compared_by_a_sum_and_then_by_their_words() {
        let claim = |rank, sent: [u64; 2], expected: [u64; 2]| {
            let [sent, expected] = [sent, expected].map(|[bytes, types]| {
                let mut moved = vec![Moved::default(); 2];
                moved[1 - rank as usize] = Moved { bytes, types };
                moved
            });
            let moved = [sent, expected];
            Claim { moved, ..Claim::of_call(Call::Alltoallv, rank, None, None) }
        };
        let judged = |first: [[u64; 2]; 2], second: [[u64; 2]; 2]| {
            let claims = [claim(0, first[0], first[1]), claim(1, second[0], second[1])];
            let words: Vec<u64> = claims.iter().flat_map(Claim::words).collect();
            let moved: Vec<u64> = claims.iter().flat_map(Claim::words_of_messages).collect();
            let found = match verdict_of_messages(&moved, &words) {
                Ok(()) => None,
                Err(Error::Mistake(mistake)) => Some((mistake.aspect, mistake.ranks)),
                Err(error) => panic!("{error}"),
            };
            (verdict(&words).expect("the calls are alike"), found)
        };
        assert_eq!(judged([[4, 7], [8, 9]], [[8, 9], [4, 7]]), (true, None));
        assert_eq!(judged([[4, 7], [8, 9]], [[8, 0], [4, 7]]), (false, None), "bytes fit all");
        let types = Some((Aspect::BlockTypes, [1, 0]));
        assert_eq!(judged([[4, 7], [8, 9]], [[8, 5], [4, 7]]), (false, types));
        let length = Some((Aspect::BlockLength, [0, 1]));
        assert_eq!(judged([[8, 7], [8, 7]], [[4, 7], [4, 7]]), (false, length), "both cross");
    }

    #[test]
    fn of_a_long_text_the_beginning_and_the_end_are_kept() {
        let text = format!("bcast({}:17", "x".repeat(1000));
        let claim = Claim { text, ..Claim::of_call(Call::Bcast, 0, None, None) };
        let words = claim.words();
        assert_eq!(words.len(), WORDS);
        let (start, end) = ("x".repeat(KEPT - 6), "x".repeat(TEXT * 8 - KEPT - 6));
        assert_eq!(text_of(&words), format!("bcast({start}...{end}:17"));
    }
}
