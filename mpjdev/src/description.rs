//! What a program says of a message in jobs that find mistakes between ranks: the types of the elements, and the place
//! of the call in its source. The layer above says it in the thread that makes the call, just before the call. A sender
//! tells it to the receiver in a message of its own, [`Told`], just before the message itself; the receiver compares it
//! with what is said of the receive (`state/checks.rs`).

use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use transport_lapi::ForeignBytes;
use transport_lapi::bootstrap::control::cut;

use crate::envelope::PeerError;

/// The types of the elements that calls send or receive, in order, as often as they are repeated.
pub trait Types: Send + Sync {
    /// Returns the elements in the first `bytes` bytes, or `None` if these end inside an element.
    fn elements(&self, bytes: u64) -> Option<Elements>;
}

/// The types of some elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elements {
    /// A number that is the same for equal types in the same order, on all ranks, and hardly ever for others; not 0.
    pub fingerprint: u64,
    /// Their names.
    pub text: String,
}

/// What a program says of a message that it sends or receives.
#[derive(Clone)]
pub struct Description {
    /// The context of the message.
    pub context: u32,
    /// The types of the elements; `None` if they fit all types, as bytes do.
    pub types: Option<Arc<dyn Types>>,
    /// Where the call is made, if that is known.
    pub place: Option<&'static Location<'static>>,
}

thread_local! {
    /// That of the next send or receive of this thread.
    static NEXT: RefCell<Option<Description>> = const { RefCell::new(None) };
}

/// Forgets the [`Description`] of a call that has not used it, at its end.
#[derive(Debug)]
#[must_use = "the call is described while this lives"]
pub struct Described(());

impl Drop for Described {
    fn drop(&mut self) {
        NEXT.take();
    }
}

impl Description {
    /// Says it of the next send or receive that this thread starts in its context, if the result lives until then.
    pub fn of_next_call(self) -> Described {
        NEXT.set(Some(self));
        Described(())
    }

    /// Returns whether something was said of the send or receive in `context` that this thread starts.
    pub(crate) fn is_given(context: u32) -> bool {
        NEXT.with_borrow(|next| next.as_ref().is_some_and(|next| next.context == context))
    }

    /// Takes what was said of the send or receive in `context` that this thread starts.
    pub(crate) fn take(context: u32) -> Option<Self> {
        NEXT.with_borrow_mut(|next| next.take_if(|next| next.context == context))
    }

    /// Returns what the receiver of a message of `bytes` bytes is told.
    pub(crate) fn told(&self, bytes: usize) -> Told {
        let elements = self.elements(bytes);
        let fingerprint = elements.as_ref().map_or(0, |elements| elements.fingerprint);
        Told { fingerprint, text: self.text(elements, bytes) }
    }

    /// Returns what a receive asks for, of a message of `bytes` bytes, if the message has other types.
    pub(crate) fn misfit(&self, told: &Told, bytes: usize) -> Option<String> {
        let (mine, fingerprint) = (self.elements(bytes), told.fingerprint);
        let fits = mine.as_ref().is_some_and(|mine| mine.fingerprint == fingerprint);
        let fits = fits || fingerprint == 0 || self.types.is_none();
        (!fits).then(|| self.text(mine, bytes))
    }

    fn elements(&self, bytes: usize) -> Option<Elements> {
        self.types.as_ref()?.elements(bytes as u64)
    }

    fn text(&self, elements: Option<Elements>, bytes: usize) -> String {
        let mut text = elements.map_or_else(|| format!("{bytes} bytes"), |elements| elements.text);
        if let Some(place) = self.place {
            text = format!("{text} at {}:{}", place.file(), place.line());
        }
        text
    }
}

impl fmt::Debug for Description {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { context, place, .. } = self;
        formatter
            .debug_struct("Description")
            .field("context", context)
            .field("place", place)
            .finish_non_exhaustive()
    }
}

/// What the sender of a message tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// That of the elements; 0 if they fit all types.
    pub fingerprint: u64,
    /// The elements and the place of the call. Its first 60 and last 100 bytes are sent.
    pub text: String,
}

/// The most bytes of text, so that it fits into one frame.
const TEXT: usize = 160;

impl Told {
    /// Returns the text as it is sent.
    pub fn packed(&self) -> Vec<u8> {
        shortened(&self.text, 60, TEXT).into_bytes()
    }

    /// Unpacks what a peer has sent.
    pub fn unpack(fingerprint: u64, packed: ForeignBytes<'_>) -> Result<Self, PeerError> {
        let len = packed.len();
        let mut bytes = [0; TEXT];
        let bytes = bytes.get_mut(..len).ok_or(PeerError::Envelope { len, needed: TEXT })?;
        packed.copy_to(bytes);
        Ok(Self { fingerprint, text: String::from_utf8_lossy(bytes).into_owned() })
    }
}

/// Returns a text of at most `most` bytes. What is too long loses what follows its first `kept` bytes.
pub fn shortened(text: &str, kept: usize, most: usize) -> String {
    const GAP: &str = "...";
    if text.len() <= most {
        return text.to_owned();
    }
    let rest = text.len() - (most - kept - GAP.len());
    let end = (rest..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    [cut(text, kept), GAP, &text[end..]].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Elements of four bytes.
    struct Words;

    impl Types for Words {
        fn elements(&self, bytes: u64) -> Option<Elements> {
            let text = format!("{} words", bytes / 4);
            bytes.is_multiple_of(4).then_some(Elements { fingerprint: 7 + bytes, text })
        }
    }

    fn description(context: u32) -> Description {
        Description { context, types: Some(Arc::new(Words)), place: Some(Location::caller()) }
    }

    #[test]
    fn what_is_said_is_taken_once_in_its_context_while_the_call_lasts() {
        let said = description(4).of_next_call();
        assert!(Description::take(5).is_none());
        assert!(Description::take(4).is_some() && Description::take(4).is_none());
        drop(said);
        drop(description(4).of_next_call());
        assert!(Description::take(4).is_none());
    }

    #[test]
    fn elements_are_compared_unless_one_side_has_bytes() {
        let (words, bytes) = (description(0), Description { types: None, ..description(0) });
        let place = format!("at {}:", file!());
        assert!(words.told(8).text.starts_with(&format!("2 words {place}")));
        assert!(bytes.told(8).text.starts_with(&format!("8 bytes {place}")));
        assert_eq!(words.misfit(&words.told(8), 8), None);
        assert_eq!(words.misfit(&bytes.told(7), 7), None);
        assert_eq!(bytes.misfit(&words.told(8), 8), None);
        let other = Told { fingerprint: 1, text: String::new() };
        assert!(words.misfit(&other, 8).is_some_and(|text| text.starts_with("2 words")));
        assert!(words.misfit(&other, 7).is_some_and(|text| text.starts_with("7 bytes")));
    }

    proptest! {
        #[test]
        fn what_is_told_comes_back_with_its_beginning_and_end(text in "\\PC{0,200}") {
            let told = Told { fingerprint: 3, text: text.replace('.', ",") };
            let back = Told::unpack(3, ForeignBytes::from_slice(&told.packed())).unwrap();
            if told.text.len() <= TEXT {
                prop_assert_eq!(back, told);
            } else {
                let (start, end) = back.text.split_once("...").unwrap();
                prop_assert!(start.len() > 56 && told.text.starts_with(start));
                prop_assert!(end.len() > 90 && told.text.ends_with(end));
            }
        }
    }

    #[test]
    fn texts_of_peers_have_a_limit() {
        let long = Told::unpack(0, ForeignBytes::from_slice(&[0; TEXT + 1]));
        assert_eq!(long, Err(PeerError::Envelope { len: TEXT + 1, needed: TEXT }));
    }
}
