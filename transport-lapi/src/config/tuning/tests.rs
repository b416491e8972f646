//! The limits of tuned values, and the word that carries them to the ranks.

use proptest::prelude::*;

use super::*;

fn eager_up_to(bounds: Vec<usize>) -> Ranges<Protocol> {
    let values = (0..=bounds.len())
        .map(|place| if place % 2 == 0 { Protocol::Eager } else { Protocol::Rendezvous });
    let values = values.collect();
    Ranges::new(bounds, values).expect("ascending")
}

fn tuning(bounds: Vec<usize>, spin: u32) -> Result<Tuning, TuningError> {
    Tuning::new(eager_up_to(bounds), Pieces::default(), spin)
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, TuningError>) -> String {
    outcome.expect_err("outside the limits").to_string()
}

#[test]
fn the_built_in_values_keep_the_limits() {
    let Tuning { protocols, pieces, spin } = Tuning::default();
    let same = Pieces::new(pieces.whole(), pieces.sizes().clone());
    assert_eq!(same.as_ref(), Ok(&pieces));
    assert_eq!(Tuning::new(protocols, pieces, spin), Ok(Tuning::default()));
}

#[test]
fn numbers_outside_their_limits_are_refused_by_name() {
    let bound = "protocols.bounds is 100; it has to be a multiple of 256 from 256 to 1073741824";
    assert_eq!(refusal(tuning(vec![100], 4000)), bound);
    assert!(refusal(tuning(vec![2 << 30], 4000)).starts_with("protocols.bounds"));
    let spin = "wait.spin is 19; it has to be a number from 20 to 1000000";
    assert_eq!(refusal(tuning(vec![512], 19)), spin);
    assert!(refusal(tuning(vec![512], 1_000_001)).starts_with("wait.spin is 1000001"));
    let pieces = |whole, bounds: &[usize], sizes: &[usize]| {
        Pieces::new(whole, Ranges::new(bounds.to_vec(), sizes.to_vec()).expect("ascending"))
    };
    assert!(refusal(pieces(5000, &[], &[8192])).starts_with("pieces.whole_up_to is 5000"));
    assert!(refusal(pieces(8192, &[], &[2 << 20])).starts_with("pieces.bytes is 2097152"));
    let below = refusal(pieces(8192, &[8192], &[8192, 8192]));
    assert!(below.contains("multiple of 4096 from 12288"), "{below}");
}

#[test]
fn an_adapter_with_short_frames_shortens_the_pieces() {
    let pieces = Pieces::default().within(20 << 10);
    let sizes = (pieces.whole(), pieces.size(17_000), pieces.size(1 << 20));
    assert_eq!(sizes, (16 << 10, 16 << 10, 20 << 10));
    assert_eq!(Pieces::default().within(4096).whole(), 4096);
}

#[test]
fn the_word_of_the_built_in_values() {
    let word = "eager<=16777216,rendezvous;16384;16384<=131072,32768<=524288,65536;4000";
    assert_eq!(Tuning::default().to_string(), word);
}

#[test]
fn a_damaged_word_is_refused() {
    let word = Tuning::default().to_string();
    for cut in 0..word.rfind(';').expect("it has fields") {
        assert_eq!(word[..cut].parse::<Tuning>(), Err(NotATuning), "{}", &word[..cut]);
    }
    for (from, to) in
        [("eager<", "later<"), (";4000", ";0"), (";4000", ";-1"), ("<=131072", "<=x"), (",", ";")]
    {
        assert_eq!(word.replacen(from, to, 1).parse::<Tuning>(), Err(NotATuning), "{to}");
    }
}

fn ascending(step: usize, from: usize, to: usize) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::btree_set(from..to, 0..15)
        .prop_map(move |set| set.into_iter().map(|multiple| multiple * step).collect())
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(
        bounds in ascending(256, 1, 1 << 22),
        whole in 1usize..16, piece_bounds in ascending(4096, 16, 1 << 18), first in 1usize..200,
        spin in 20u32..1_000_000,
    ) {
        let sizes = (0..=piece_bounds.len()).map(|place| (first + place) * 4096).collect();
        let sizes = Ranges::new(piece_bounds, sizes).unwrap();
        let pieces = Pieces::new(whole * 4096, sizes).unwrap();
        let tuning = Tuning::new(eager_up_to(bounds), pieces, spin).unwrap();
        prop_assert_eq!(tuning.to_string().parse::<Tuning>(), Ok(tuning));
    }
}
