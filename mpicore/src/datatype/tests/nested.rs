//! Nested datatypes, compared with their type maps written out entry by entry.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A complete type map, with its markers.
#[derive(Debug, Clone, Default)]
struct Naive {
    entries: Vec<(Basic, isize)>,
    lows: Vec<isize>,
    highs: Vec<isize>,
}

impl Naive {
    fn basic(basic: Basic) -> Self {
        let entries = match basic.pair() {
            Some([(_, value), (at, index)]) => vec![(value, 0), (index, at)],
            None => vec![(basic, 0)],
        };
        Self { entries, ..Self::default() }
    }

    fn add(&mut self, other: &Self, by: isize) {
        self.entries.extend(other.entries.iter().map(|(basic, at)| (*basic, at + by)));
        self.lows.extend(other.lows.iter().map(|low| low + by));
        self.highs.extend(other.highs.iter().map(|high| high + by));
    }

    /// Returns copies at these displacements.
    fn copies(&self, places: impl IntoIterator<Item = isize>) -> Self {
        let mut copies = Self::default();
        places.into_iter().for_each(|by| copies.add(self, by));
        copies
    }

    fn true_bounds(&self) -> (isize, isize) {
        let low = self.entries.iter().map(|(_, at)| *at).min().unwrap_or(0);
        let ends = self.entries.iter().map(|(basic, at)| at + basic.size() as isize);
        (low, ends.max().unwrap_or(0))
    }

    fn bounds(&self) -> (isize, isize) {
        let (low, high) = self.true_bounds();
        match (self.lows.iter().min(), self.highs.iter().max()) {
            (Some(low), Some(high)) => (*low, high - low),
            _ => {
                let align = self.entries.iter().map(|(basic, _)| basic.align()).max().unwrap_or(1);
                (low, (high - low).unsigned_abs().next_multiple_of(align) as isize)
            }
        }
    }

    fn places(&self) -> Vec<isize> {
        let bytes = |(basic, at): &(Basic, isize)| *at..at + basic.size() as isize;
        self.entries.iter().flat_map(bytes).collect()
    }

    /// The runs of equal entries that belong together for everybody who matches them.
    fn signature(&self) -> Vec<Basic> {
        self.entries.iter().map(|(basic, _)| basic.matched()).collect()
    }
}

/// How a datatype is made.
#[derive(Debug, Clone)]
enum Recipe {
    Basic(Basic),
    Contiguous(i64, Box<Recipe>),
    Vector(i64, i64, i64, Box<Recipe>),
    Hvector(i64, i64, isize, Box<Recipe>),
    Indexed(Vec<(i64, i64)>, Box<Recipe>),
    Hindexed(Vec<(i64, isize)>, Box<Recipe>),
    IndexedBlock(i64, Vec<i64>, Box<Recipe>),
    HindexedBlock(i64, Vec<isize>, Box<Recipe>),
    Struct(Vec<(i64, isize, Recipe)>),
    Resized(isize, isize, Box<Recipe>),
    Dup(Box<Recipe>),
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let basics = [
        ElementKind::I16.into(),
        ElementKind::I32.into(),
        ElementKind::F64.into(),
        ElementKind::DoubleInt.into(),
        ElementKind::ShortInt.into(),
        Basic::Char,
        Basic::Long,
    ];
    let leaf = prop::sample::select(basics.to_vec()).prop_map(Recipe::Basic);
    let (count, length) = (|| 0_i64..4, || 0_i64..4);
    leaf.prop_recursive(3, 24, 3, move |inner| {
        let old = || inner.clone().prop_map(Box::new);
        prop_oneof![
            (count(), old()).prop_map(|(n, old)| Recipe::Contiguous(n, old)),
            (count(), length(), -4_i64..6, old())
                .prop_map(|(n, len, stride, old)| Recipe::Vector(n, len, stride, old)),
            (count(), length(), -40_isize..60, old())
                .prop_map(|(n, len, stride, old)| Recipe::Hvector(n, len, stride, old)),
            (vec((length(), -4_i64..6), 0..4), old()).prop_map(|(b, old)| Recipe::Indexed(b, old)),
            (vec((length(), -40_isize..60), 0..4), old())
                .prop_map(|(blocks, old)| Recipe::Hindexed(blocks, old)),
            (length(), vec(-4_i64..6, 0..4), old())
                .prop_map(|(len, at, old)| Recipe::IndexedBlock(len, at, old)),
            (length(), vec(-40_isize..60, 0..4), old())
                .prop_map(|(len, at, old)| Recipe::HindexedBlock(len, at, old)),
            vec((length(), -60_isize..90, inner.clone()), 0..4).prop_map(Recipe::Struct),
            (-9_isize..9, -20_isize..40, old())
                .prop_map(|(low, extent, old)| Recipe::Resized(low, extent, old)),
            old().prop_map(Recipe::Dup),
        ]
    })
}

/// Blocks of these lengths at these displacements.
fn blocks(blocks: impl IntoIterator<Item = (i64, isize)>, extent: isize) -> Vec<isize> {
    let block = |(len, at): (i64, isize)| (0..len as isize).map(move |i| at + i * extent);
    blocks.into_iter().flat_map(block).collect()
}

impl Recipe {
    fn datatype(&self) -> Datatype {
        match self {
            Self::Basic(basic) => Ok(Datatype::predefined(*basic)),
            Self::Contiguous(count, old) => Datatype::contiguous(*count, &old.datatype()),
            Self::Vector(count, len, stride, old) => {
                Datatype::vector(*count, *len, *stride, &old.datatype())
            }
            Self::Hvector(count, len, stride, old) => {
                Datatype::hvector(*count, *len, *stride, &old.datatype())
            }
            Self::Indexed(blocks, old) => {
                let (lens, at): (Vec<_>, Vec<_>) = blocks.iter().copied().unzip();
                Datatype::indexed(&lens, &at, &old.datatype())
            }
            Self::Hindexed(blocks, old) => {
                let (lens, at): (Vec<_>, Vec<_>) = blocks.iter().copied().unzip();
                Datatype::hindexed(&lens, &at, &old.datatype())
            }
            Self::IndexedBlock(len, at, old) => Datatype::indexed_block(*len, at, &old.datatype()),
            Self::HindexedBlock(len, at, old) => {
                Datatype::hindexed_block(*len, at, &old.datatype())
            }
            Self::Struct(parts) => {
                let lens: Vec<_> = parts.iter().map(|part| part.0).collect();
                let at: Vec<_> = parts.iter().map(|part| part.1).collect();
                let types: Vec<_> = parts.iter().map(|part| part.2.datatype()).collect();
                Datatype::create_struct(&lens, &at, &types)
            }
            Self::Resized(low, extent, old) => old.datatype().resized(*low, *extent),
            Self::Dup(old) => old.datatype().dup(),
        }
        .unwrap()
    }

    fn naive(&self) -> Naive {
        let copies = |old: &Self, places: &dyn Fn(isize) -> Vec<isize>| {
            let old = old.naive();
            old.copies(places(old.bounds().1))
        };
        match self {
            Self::Basic(basic) => Naive::basic(*basic),
            Self::Contiguous(count, old) => copies(old, &|ex| blocks([(*count, 0)], ex)),
            Self::Vector(count, len, stride, old) => copies(old, &|ex| {
                blocks((0..*count).map(|i| (*len, (i * stride) as isize * ex)), ex)
            }),
            Self::Hvector(count, len, stride, old) => {
                copies(old, &|ex| blocks((0..*count).map(|i| (*len, i as isize * stride)), ex))
            }
            Self::Indexed(list, old) => copies(old, &|ex| {
                blocks(list.iter().map(|(len, at)| (*len, *at as isize * ex)), ex)
            }),
            Self::Hindexed(list, old) => copies(old, &|ex| blocks(list.iter().copied(), ex)),
            Self::IndexedBlock(len, at, old) => {
                copies(old, &|ex| blocks(at.iter().map(|at| (*len, *at as isize * ex)), ex))
            }
            Self::HindexedBlock(len, at, old) => {
                copies(old, &|ex| blocks(at.iter().map(|at| (*len, *at)), ex))
            }
            Self::Struct(parts) => {
                let mut whole = Naive::default();
                for (len, at, part) in parts {
                    let part = part.naive();
                    whole.add(&part.copies(blocks([(*len, *at)], part.bounds().1)), 0);
                }
                whole
            }
            Self::Resized(low, extent, old) => {
                Naive { lows: vec![*low], highs: vec![low + extent], ..old.naive() }
            }
            Self::Dup(old) => old.naive(),
        }
    }
}

/// Memory for `count` elements, and the place in it that displacements count from.
fn memory(datatype: &Datatype, count: i64) -> (Vec<u8>, isize) {
    let (low, high) = datatype.layout(count).unwrap().bounds();
    ((0..high - low + 2).map(|i| (i * 7 + i / 251) as u8).collect(), 1 - low)
}

proptest! {
    #[test]
    fn queries_are_those_of_the_type_map(recipe in recipe(), count in 0_i64..4) {
        let (datatype, naive) = (recipe.datatype(), recipe.naive());
        let (low, high) = naive.true_bounds();
        prop_assert_eq!(datatype.size(), naive.places().len());
        prop_assert_eq!((datatype.lower_bound(), datatype.extent()), naive.bounds());
        prop_assert_eq!((datatype.true_lower_bound(), datatype.true_extent()), (low, high - low));
        prop_assert_eq!(places(&datatype), naive.places());
        let elements = naive.copies(blocks([(count, 0)], datatype.extent())).places();
        let together = elements.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        prop_assert!(together || !datatype.is_contiguous(count));
        prop_assert!(datatype.is_contiguous(count) || datatype.layout(count).unwrap().span().is_none());
        if let Some((at, len)) = datatype.span(count).filter(|(_, len)| *len > 0) {
            prop_assert_eq!((at, len), (elements[0], elements.len()));
        }
    }

    #[test]
    fn signatures_are_those_of_the_type_map(one in recipe(), other in recipe(), count in 0_u64..4) {
        let (left, right) = (one.naive().signature(), other.naive().signature());
        let (sent, received) = (one.datatype(), other.datatype());
        let mut runs = Vec::new();
        let collected = sent.signature().each_run(&mut |basic, elements| {
            runs.extend(std::iter::repeat_n(basic.matched(), elements as usize));
            Ok::<_, ()>(())
        });
        prop_assert_eq!((collected, &runs), (Ok(()), &left));
        prop_assert_eq!(sent.signature() == received.signature(), left == right);
        let right = right.repeat(count as usize);
        let received = received.signature().repeat(count);
        prop_assert_eq!(sent.signature().is_received_by(&received), right.starts_with(&left));
        let mut bytes = 0;
        for (elements, basic) in left.iter().enumerate() {
            prop_assert_eq!(sent.signature().elements_in(bytes), Some(elements as u64));
            bytes += basic.size() as u64;
        }
    }

    #[test]
    fn what_is_packed_is_unpacked_and_gaps_stay(recipe in recipe(), count in 0_i64..4) {
        let datatype = recipe.datatype();
        let places = recipe.naive().copies(blocks([(count, 0)], datatype.extent())).places();
        let (memory, origin) = memory(&datatype, count);
        let size = datatype.pack_size(count).unwrap();
        let (mut packed, mut position) = (vec![0; size + 3], 3);
        datatype.pack(&memory, origin, count, &mut packed, &mut position).unwrap();
        let expected: Vec<_> = places.iter().map(|at| memory[(origin + at) as usize]).collect();
        prop_assert_eq!((&packed[3..], position), (&expected[..], size + 3));

        let (mut back, mut position) = (vec![0xee; memory.len()], 3);
        let mut expected = back.clone();
        let result = datatype.unpack(&packed, &mut position, &mut back, origin, count);
        let mut sorted = places.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            prop_assert_eq!(result, Err(transport_lapi::LayoutError::Overlap.into()));
            prop_assert_eq!((&back, position), (&expected, 3));
            return Ok(());
        }
        places.iter().for_each(|at| expected[(origin + at) as usize] = memory[(origin + at) as usize]);
        prop_assert_eq!((result, &back, position), (Ok(()), &expected, size + 3));
    }

    #[test]
    fn external_values_come_back(recipe in recipe(), count in 0_i64..4) {
        let datatype = recipe.datatype();
        let naive = recipe.naive().copies(blocks([(count, 0)], datatype.extent()));
        let mut places = naive.places();
        places.sort_unstable();
        prop_assume!(places.windows(2).all(|pair| pair[0] < pair[1]));
        let (mut memory, origin) = memory(&datatype, count);
        let at = |place: isize| (origin + place) as usize;
        for (_, place) in naive.entries.iter().filter(|(basic, _)| *basic == Basic::Long) {
            let value = (*place as i64 * 77).to_ne_bytes();
            memory[at(*place)..at(place + 8)].copy_from_slice(&value);
        }
        let size = datatype.pack_external_size(count).unwrap();
        let entries = naive.entries.iter().map(|(basic, _)| basic.external_size());
        prop_assert_eq!(size, entries.sum::<usize>());
        let mut packed = vec![0; size];
        datatype.pack_external(&memory, origin, count, &mut packed, &mut 0).unwrap();
        let mut back = vec![0xee; memory.len()];
        datatype.unpack_external(&packed, &mut 0, &mut back, origin, count).unwrap();
        for (index, byte) in back.iter().enumerate() {
            let is_data = places.binary_search(&(index as isize - origin)).is_ok();
            prop_assert_eq!(*byte, if is_data { memory[index] } else { 0xee });
        }
    }
}
