//! Tests of the codec: whatever serde describes comes back, and bytes that are no value say so.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde::Deserialize;

use super::*;

/// A value with everything that serde has: all kinds of variants, options, maps, integers of all lengths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Tree {
    Leaf,
    Number(i128),
    Pair(u128, f64),
    Named {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<char>,
        flag: bool,
    },
    Inner(Vec<Tree>),
    Table(BTreeMap<u16, Tree>),
}

/// Fields in another structure's place, and a value that is recognised by its form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Flat {
    own: u8,
    #[serde(flatten)]
    rest: BTreeMap<String, Either>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Either {
    Number(i64),
    Text(String),
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        Just(Tree::Leaf),
        any::<i128>().prop_map(Tree::Number),
        (any::<u128>(), -1e300..1e300).prop_map(|(a, b)| Tree::Pair(a, b)),
        (any::<String>(), any::<Option<char>>(), any::<bool>())
            .prop_map(|(text, note, flag)| Tree::Named { text, note, flag }),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Tree::Inner),
            btree_map(any::<u16>(), inner, 0..4).prop_map(Tree::Table),
        ]
    })
}

fn encoded<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(value, &mut bytes, usize::MAX).expect("there is no limit");
    bytes
}

proptest! {
    #[test]
    fn what_is_encoded_comes_back(value in tree()) {
        prop_assert_eq!(decode(&encoded(&value)), Ok(value));
    }

    #[test]
    fn no_part_of_a_value_is_one(value in tree(), cut in any::<prop::sample::Index>()) {
        let bytes = encoded(&value);
        prop_assert!(decode::<Tree>(&bytes[..cut.index(bytes.len())]).is_err());
        prop_assert_eq!(decode::<Tree>(&[&bytes[..], &[0]].concat()), Err(CodecError::Trailing { len: 1 }));
    }

    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in vec(any::<u8>(), 0..60)) {
        // What decodes also encodes.
        if let Ok(value) = decode::<Tree>(&bytes) {
            prop_assert_eq!(decode(&encoded(&value)), Ok(value));
        }
    }

    #[test]
    fn a_value_fits_its_length_and_no_less(value in tree()) {
        let (len, mut bytes) = (encoded(&value).len(), Vec::new());
        prop_assert_eq!(encode(&value, &mut bytes, len), Ok(()));
        let limit = len - 1;
        let refused = encode(&value, &mut Vec::new(), limit);
        prop_assert_eq!(refused, Err(CodecError::TooLong { limit }));
    }
}

#[test]
fn attributes_of_serde_that_need_names_work() {
    let rest = [("a", Either::Number(-1)), ("b", Either::Text("x".to_owned()))];
    let rest = rest.map(|(name, value)| (name.to_owned(), value)).into();
    let value = Flat { own: 3, rest };
    assert_eq!(decode(&encoded(&value)), Ok(value));
}

#[test]
fn every_violation_has_its_error() {
    let refused = |bytes: &[u8]| decode::<Tree>(bytes).unwrap_err();
    assert_eq!(
        decode::<String>(&encoded(&5)),
        Err(CodecError::Mismatch { wanted: "str", found: "an integer" })
    );
    assert_eq!(
        decode::<Vec<u8>>(&encoded("text")).unwrap_err().to_string(),
        "there is a text instead of array"
    );
    assert!(matches!(decode::<u8>(&encoded(&300)), Err(CodecError::Mismatch { .. })));
    assert!(matches!(decode::<String>(&[0x62, b'a']), Err(CodecError::Truncated { .. })));
    assert!(matches!(decode::<String>(&[0x61, 0xff]), Err(CodecError::Malformed { .. })));
    assert!(matches!(refused(&[]), CodecError::Truncated { .. }));
    let CodecError::Refused(why) = refused(&encoded("Branch")) else {
        panic!("it has no such variant")
    };
    assert!(why.contains("unknown variant `Branch`"), "{why}");
    assert_eq!(decode::<serde::de::IgnoredAny>(&[0x81; 1_000]).unwrap_err(), CodecError::TooDeep);
    assert_eq!(decode::<u8>(&[5, 5, 5]), Err(CodecError::Trailing { len: 2 }));
}

#[test]
fn a_claimed_length_takes_no_memory() {
    // 2^64 - 1 numbers, and 2^40 bytes.
    assert!(decode::<Vec<u64>>(&[[0x9b].as_slice(), &[0xff; 8]].concat()).is_err());
    assert!(decode::<String>(&[0x7b, 0, 0, 1, 0, 0, 0, 0, 0, b'a']).is_err());
}
