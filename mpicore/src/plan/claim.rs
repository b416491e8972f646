//! Checks of collective calls (`MPJ_CHECK`): before a rank makes one, it tells the others which, and compares what they
//! tell. Calls that do not fit together are refused on all ranks, before any data are used.
//!
//! - CC1: the ranks exchange their claims by an allgather of their own, with a tag that belongs to the number of the
//!   call, so that the claims of a call meet whatever the calls are, and however they are made. A persistent call is
//!   checked when it is made.
//! - CC2: all ranks compare the same words in the same way, so all refuse the call or none does, and no message of a
//!   refused call is sent.
//!
//! Calls of intercommunicators, and calls by which only some ranks make a communicator, are not checked. Of blocks of
//! different lengths only the call, the root and the operation are compared. Bytes fit elements of any type, and from C
//! the types of contiguous elements are known in reductions only.

use std::cell::RefCell;
use std::panic::Location;

use mpjdev::{CALL_NUMBERS, Call, shortened};

use super::{Route, Scheduled, Tag};
use crate::collective::Collective;
use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::{Aspect, Error, Mistake};
use crate::memory::{Input, Output, Reduction};
use crate::process::fingerprint;

/// Tags of claims are from here on, up to those of blocking calls (PL4).
pub(super) const CLAIMS: u32 = CALL_NUMBERS + CALL_NUMBERS / 2;

/// Number of words of a text.
const TEXT: usize = 24;
/// How many bytes at the beginning of a text are kept.
const KEPT: usize = 80;
/// Number of words of a claim: one for each aspect, and its text.
const WORDS: usize = Aspect::ALL.len() + TEXT;

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
    /// 0 if these are not known.
    aspects: [u64; Aspect::ALL.len()],
    text: String,
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
        let size = if data.of_input { input.data_size() } else { output.data_size() };
        Self::new(call, collective.root(), reduction, data.count.map(|count| (count, size)))
    }

    /// That of any other call.
    pub fn of_call(call: Call, root: Option<u32>, reduction: Option<&Reduction>) -> Self {
        Self::new(call, root, reduction, None)
    }

    /// `data` are the number of elements and their size.
    fn new(
        call: Call,
        root: Option<u32>,
        reduction: Option<&Reduction>,
        data: Option<(u64, usize)>,
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
        // An element of the buffer may be several of the program's.
        let types = bytes.zip(element.or(kind.as_ref())).and_then(|(bytes, element)| {
            let signature = element.signature();
            let count = bytes.checked_div(signature.size())?;
            Some(signature.repeat(count))
        });
        let types = types.filter(|types| !types.has_bytes());
        let root_text = root.map(|root| format!("root {root}"));
        let data_text = match (&types, bytes) {
            (Some(types), _) => Some(types.to_string()),
            (None, bytes) => bytes.map(|bytes| format!("{bytes} bytes")),
        };
        let arguments: Vec<String> =
            [root_text, op.clone(), data_text].into_iter().flatten().collect();
        let name = call.name();
        let place = site.map_or(String::new(), |site| format!(" at {}", site.place));
        Self {
            aspects: [
                u64::from(call as u16),
                root.map_or(0, |root| u64::from(root) + 1),
                op.map_or(0, |op| fingerprint(op.bytes())),
                bytes.unwrap_or(0),
                types.map_or(0, |types| types.fingerprint()),
            ],
            text: format!("{name}({}){place}", arguments.join(", ")),
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

    /// The exchange of the claims of this call (CC1).
    fn exchange<'c>(
        &self,
        communicator: &'c Communicator,
        call: Call,
        number: i32,
    ) -> Result<Scheduled<'c>, Error> {
        let (schedule, buffers) = communicator.gathering(self.words())?;
        let mut work = communicator.workspace().with(schedule);
        work.fill(buffers, None)?;
        let tag = CLAIMS + number as u32 % (CALL_NUMBERS / 2 - 1);
        let tag = Tag::Own { number, tag: tag as i32 };
        let route = Route { peers: None, context: communicator.collective_context(), tag };
        Ok(Scheduled { communicator, call, route, work, claim: None })
    }

    fn words(&self) -> Vec<u64> {
        // The call is at the beginning, the line at the end.
        let text = shortened(&self.text, KEPT, TEXT * size_of::<u64>());
        let mut words = self.aspects.to_vec();
        words.extend(text.as_bytes().chunks(size_of::<u64>()).map(|chunk| {
            let mut word = [0; size_of::<u64>()];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        }));
        words.resize(WORDS, 0);
        words
    }
}

/// Refuses calls that do not fit together (CC2). `words` are the claims of all ranks.
fn verdict(words: &[u64]) -> Result<(), Error> {
    let first = words.get(..WORDS).unwrap_or_default();
    for (rank, other) in words.chunks_exact(WORDS).enumerate() {
        let differs = |at: &usize| match (Aspect::ALL[*at], first[*at], other[*at]) {
            // Of one of them they are not known.
            (Aspect::Types, 0, _) | (Aspect::Types, _, 0) => false,
            (_, one, another) => one != another,
        };
        if let Some(at) = (0..Aspect::ALL.len()).find(differs) {
            let calls = [first, other].map(text_of);
            let mistake = Mistake { aspect: Aspect::ALL[at], rank: rank as u32, calls };
            return Err(Error::Mistake(Box::new(mistake)));
        }
    }
    Ok(())
}

fn text_of(claim: &[u64]) -> String {
    let bytes: Vec<u8> =
        claim[Aspect::ALL.len()..].iter().flat_map(|it| it.to_le_bytes()).collect();
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
        let Some(claim) = self.claim.take() else { return Ok(()) };
        let exchange = claim.exchange(self.communicator, self.call, self.route.tag.number());
        verdict(&exchange?.run_and_keep()?)
    }
}

/// Starts to compare the claim of a call that no thread waits for, and passes on what comes of it.
pub(super) fn start(
    claim: &Claim,
    communicator: &Communicator,
    call: Call,
    number: i32,
    then: impl FnOnce(Result<(), Error>) + Send + 'static,
) {
    match claim.exchange(communicator, call, number) {
        Ok(exchange) => super::Persistent::new(exchange)
            .start_then(move |words| then(words.and_then(|words| verdict(&words)))),
        Err(error) => then(Err(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rank_that_differs_is_named_with_both_calls() {
        let here = || Claim::of_call(Call::Gatherv, Some(0), None);
        let claims = |others: &[Claim]| {
            let all = [&[here()], others].concat_words();
            verdict(&all)
        };
        assert!(claims(&[here(), here()]).is_ok());
        let error = claims(&[here(), Claim::of_call(Call::Gatherv, Some(1), None)]);
        let Err(Error::Mistake(mistake)) = error else { panic!("the roots differ") };
        assert_eq!((mistake.aspect, mistake.rank), (Aspect::Root, 2));
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

    #[test]
    fn of_a_long_text_the_beginning_and_the_end_are_kept() {
        let text = format!("bcast({}:17", "x".repeat(1000));
        let claim = Claim { aspects: [0; Aspect::ALL.len()], text };
        let words = claim.words();
        assert_eq!(words.len(), WORDS);
        let (start, end) = ("x".repeat(KEPT - 6), "x".repeat(TEXT * 8 - KEPT - 6));
        assert_eq!(text_of(&words), format!("bcast({start}...{end}:17"));
    }
}
