//! The facts at the start of a segment: a magic number, a version and the sizes of the job, by which a task recognises
//! the segment of its job.
//!
//! The launcher writes them; [`crate::adapters::shm`] checks them before it maps anything. This file only does
//! arithmetic on a copied array of bytes. There is one test for each fact that can be wrong.

use crate::adapter::AdapterError;
use crate::adapters::local::layout::{Layout, SLOT_BYTES};

/// Size of the facts in bytes.
pub(crate) const FACTS_BYTES: usize = 64;

const MAGIC: u64 = u64::from_be_bytes(*b"MPJ-LAPI");

/// Changes whenever the meaning of any byte of a segment changes, frames included.
const VERSION: u64 = 18;

/// Encodes the facts of a segment with `layout`.
pub(crate) fn encode(layout: &Layout) -> [u8; FACTS_BYTES] {
    let mut bytes = [0; FACTS_BYTES];
    for (field, (_, value)) in bytes.chunks_exact_mut(8).zip(facts(layout)) {
        field.copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

/// The numbers that a segment claims to have: of the tasks that its job starts with, of all tasks that the job can have,
/// and of contexts per task. Untrusted until [`check`].
pub(crate) fn claimed_endpoints(bytes: &[u8; FACTS_BYTES]) -> (usize, usize, usize) {
    let field = |at: usize| {
        let field = bytes[at..at + 8].try_into().expect("eight bytes");
        usize::try_from(u64::from_ne_bytes(field)).unwrap_or(usize::MAX)
    };
    let tasks = field(16);
    (tasks.saturating_sub(field(56)), tasks, field(48).saturating_add(1))
}

/// Compares the facts of a segment with those expected for `layout`.
pub(crate) fn check(bytes: &[u8; FACTS_BYTES], layout: &Layout) -> Result<(), AdapterError> {
    for (field, (name, expected)) in bytes.chunks_exact(8).zip(facts(layout)) {
        let found = u64::from_ne_bytes(field.try_into().expect("chunks are 8 bytes long"));
        if found != expected {
            let what = format!("its {name} is {found:#x} and should be {expected:#x}");
            return Err(AdapterError::BadSegment { what });
        }
    }
    Ok(())
}

/// Names and values of the facts, in their order in the segment.
fn facts(layout: &Layout) -> [(&'static str, u64); FACTS_BYTES / 8] {
    [
        ("magic number", MAGIC),
        ("layout version", VERSION),
        ("number of ranks", layout.tasks() as u64),
        ("number of slots per ring", layout.slots() as u64),
        ("size of a slot", SLOT_BYTES as u64),
        ("size of a data ring", layout.data_ring() as u64),
        ("number of contexts beyond the first", layout.contexts() as u64 - 1),
        ("number of ranks that may follow later", (layout.tasks() - layout.first_tasks()) as u64),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_its_own_facts() {
        let layout = Layout::new(3, 1).unwrap();
        check(&encode(&layout), &layout).unwrap();
        assert_eq!(claimed_endpoints(&encode(&layout)), (3, 3, 1));
        let layout = Layout::with_room(2, 5, 4).unwrap();
        check(&encode(&layout), &layout).unwrap();
        assert_eq!(claimed_endpoints(&encode(&layout)), (2, 5, 4));
    }

    #[test]
    fn refuses_each_damaged_field_by_name() {
        let layout = Layout::new(3, 1).unwrap();
        for (index, (name, _)) in facts(&layout).into_iter().enumerate() {
            let mut bytes = encode(&layout);
            bytes[8 * index + 1] ^= 0x40;
            let refused = check(&bytes, &layout).unwrap_err().to_string();
            assert!(refused.contains(&format!("its {name} is")), "{refused}");
        }
    }

    #[test]
    fn refuses_the_segment_of_a_job_of_another_size() {
        let refused = check(&encode(&Layout::new(3, 1).unwrap()), &Layout::new(4, 1).unwrap());
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("number of ranks is 0x3 and should be 0x4"), "{refused}");
    }

    #[test]
    fn refuses_the_segment_of_a_job_with_other_contexts() {
        let refused = check(&encode(&Layout::new(3, 2).unwrap()), &Layout::new(3, 1).unwrap());
        let refused = refused.unwrap_err().to_string();
        let expected = "number of contexts beyond the first is 0x1 and should be 0x0";
        assert!(refused.contains(expected), "{refused}");
    }

    /// For one context and no later tasks the last facts are 0, as in a segment where nobody has written them.
    #[test]
    fn one_context_and_no_room_add_nothing_to_the_facts() {
        assert_eq!(encode(&Layout::new(3, 1).unwrap())[48..], [0; 16]);
    }

    #[test]
    fn refuses_the_segment_of_a_job_with_another_room() {
        let segment = encode(&Layout::with_room(8, 20, 1).unwrap());
        let refused = check(&segment, &Layout::with_room(9, 20, 1).unwrap());
        let refused = refused.unwrap_err().to_string();
        let expected = "number of ranks that may follow later is 0xc and should be 0xb";
        assert!(refused.contains(expected), "{refused}");
    }

    #[test]
    fn refuses_an_empty_segment() {
        assert!(check(&[0; FACTS_BYTES], &Layout::new(1, 1).unwrap()).is_err());
    }
}
