//! The division of a get, and the errors that damaged words cause.

use proptest::prelude::*;

use super::*;

fn words() -> Words {
    let zero = || AtomicU64::new(0);
    Words { claims: zero(), done: zero(), addr: zero(), len: zero(), seal: zero() }
}

fn open(words: &Words, number: u32, units: usize) -> (Opened, Measure) {
    let measure = Measure::of(units * UNIT);
    (Opened::new(words, number, 4096, measure), measure)
}

/// Claims a slice for the target; returns it with its first unit and length.
fn claimed(words: &Words, number: u32, measure: Measure) -> Option<(Slice, (u16, u16))> {
    claim(words, number, measure).map(|(slice, addr)| {
        assert_eq!(addr, 4096);
        (slice, (slice.first, slice.units))
    })
}

fn copy(first: u16, units: u16) -> Result<NextSlice, ShareDamage> {
    Ok(NextSlice::Copy(Slice { first, units }))
}

proptest! {
    #[test]
    fn claims_and_counts_survive_the_segment(number: u32, low: u16, high: u16, units: u32) {
        let claims = Claims { number, low, high };
        prop_assert_eq!(Claims::decode(claims.encode()), claims);
        let slice = Slice { first: low, units: high };
        let done = Done { units, handed_back: (high > 0).then_some(slice) };
        prop_assert_eq!(Done::decode(done.encode()), done);
    }

    /// For every length, the number of units is in range and their bytes are those of the get.
    #[test]
    fn units_tile_the_bytes(len in prop_oneof![1usize..10 << 20, 1usize..isize::MAX as usize]) {
        let measure = Measure::of(len);
        prop_assert!(measure.units > 0 && measure.largest > 0);
        let all = Slice { first: 0, units: measure.units };
        prop_assert_eq!(measure.bytes(all), (0, len));
        let last = Slice { first: measure.units - 1, units: 1 };
        let (begin, bytes) = measure.bytes(last);
        prop_assert!(bytes > 0 && begin + bytes == len);
    }

    /// Both ends claim in any order: every unit is claimed once, and slices respect their limit.
    #[test]
    fn every_unit_is_claimed_once(units in 2usize..200, turns: [bool; 64]) {
        let words = words();
        let (mut opened, measure) = open(&words, 7, units);
        let mut owners = vec![0; units];
        let mut own = |slice: Slice| {
            assert!(slice.units <= measure.largest);
            (slice.first..slice.first + slice.units).for_each(|unit| owners[usize::from(unit)] += 1);
        };
        for origins in turns.into_iter().chain([true; 200]) {
            if !origins {
                if let Some((slice, _)) = claim(&words, 7, measure) {
                    own(slice);
                    finish(&words, slice, true);
                }
            } else if let NextSlice::Copy(slice) = opened.next(&words).unwrap() {
                own(slice);
            }
        }
        prop_assert_eq!(opened.next(&words), Ok(NextSlice::Over));
        prop_assert!(owners.iter().all(|&times| times == 1), "{:?}", owners);
    }
}

/// A target must not write to a damaged address.
#[test]
fn a_damaged_address_is_noticed() {
    for bit in 0..64 {
        for of_address in [true, false] {
            let words = words();
            let (_, measure) = open(&words, 7, 4);
            let damaged = if of_address { &words.addr } else { &words.seal };
            damaged.fetch_xor(1 << bit, Ordering::Relaxed);
            assert!(claim(&words, 7, measure).is_none(), "bit {bit}");
        }
    }
}

#[test]
fn each_end_takes_its_half_at_once() {
    let words = words();
    let (mut opened, measure) = open(&words, 1, 9);
    assert_eq!(opened.next(&words), copy(0, 5));
    let (slice, bounds) = claimed(&words, 1, measure).unwrap();
    assert_eq!(bounds, (5, 4));
    assert_eq!(opened.next(&words), Ok(NextSlice::Wait));
    assert_eq!(claimed(&words, 1, measure), None);
    finish(&words, slice, true);
    assert_eq!(opened.next(&words), Ok(NextSlice::Over));
}

#[test]
fn an_end_alone_takes_less_and_less_of_the_others_half() {
    let words = words();
    let (mut opened, measure) = open(&words, 1, 24);
    for (first, units) in [(0, 12), (12, 6), (18, 4)] {
        assert_eq!(opened.next(&words), copy(first, units));
    }
    assert_eq!(claimed(&words, 1, measure).unwrap().1, (22, 2), "of its half it takes all");
}

#[test]
fn slices_have_a_largest_length() {
    let words = words();
    let largest = (LARGEST / UNIT) as u16;
    let (mut opened, _) = open(&words, 1, 5 * usize::from(largest));
    assert_eq!(opened.next(&words), copy(0, largest));
    assert_eq!(opened.next(&words), copy(largest, largest));
}

#[test]
fn a_target_claims_nothing_of_another_get() {
    let words = words();
    let (_, measure) = open(&words, 5, 4);
    assert_eq!(claim(&words, 4, measure), None, "of the get before");
    assert_eq!(claim(&words, 6, measure), None, "of a get to come");
    assert_eq!(claim(&words, 5, Measure::of(measure.len - 1)), None, "of another length");
    assert!(claim(&words, 5, measure).is_some());
    assert_eq!(claim(&self::words(), 0, Measure::of(0)), None, "before any get");
}

#[test]
fn a_slice_handed_back_is_copied_once_by_the_origin() {
    let words = words();
    let (mut opened, measure) = open(&words, 1, 4);
    let (slice, _) = claimed(&words, 1, measure).unwrap();
    finish(&words, slice, false);
    assert_eq!(opened.next(&words), copy(0, 2));
    assert_eq!(opened.next(&words), copy(2, 2));
    assert_eq!(opened.next(&words), Ok(NextSlice::Over));
}

#[test]
fn a_closed_get_waits_for_what_the_target_has_claimed() {
    let words = words();
    let (mut opened, measure) = open(&words, 1, 8);
    let (slice, _) = claimed(&words, 1, measure).unwrap();
    opened.close(&words).unwrap();
    assert_eq!(claimed(&words, 1, measure), None);
    assert!(!opened.is_settled(&words));
    finish(&words, slice, true);
    assert!(opened.is_settled(&words));
}

/// U5, for each way in which the words can be wrong.
#[test]
fn damaged_words_are_noticed() {
    let claims = |number, low, high| Claims { number, low, high }.encode();
    for wrong in [claims(2, 0, 4), claims(1, 1, 4), claims(1, 0, 5)] {
        let words = words();
        let (mut opened, _) = open(&words, 1, 4);
        words.claims.store(wrong, Ordering::Relaxed);
        assert_eq!(opened.next(&words), Err(ShareDamage), "{wrong:#x}");
        assert_eq!(opened.close(&words), Err(ShareDamage), "{wrong:#x}");
        assert!(opened.is_settled(&words), "damaged words are not waited for");
    }
    let back = |first, units| Some(Slice { first, units });
    for (units, handed_back) in [(3, None), (u32::MAX, None), (2, back(0, 3)), (2, back(3, 2))] {
        let words = words();
        let (mut opened, measure) = open(&words, 1, 4);
        assert!(claimed(&words, 1, measure).is_some());
        assert_eq!(opened.next(&words), copy(0, 2));
        words.done.store(Done { units, handed_back }.encode(), Ordering::Relaxed);
        assert_eq!(opened.next(&words), Err(ShareDamage), "{units} units, {handed_back:?}");
    }
}
