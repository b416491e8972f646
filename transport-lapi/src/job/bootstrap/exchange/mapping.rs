//! The process mapping: the text by which PMI-1 and PMI-2 tell which rank runs on which host.
//!
//! Pure. A mapping is a list of blocks `(host, hosts, ranks)`: `hosts` hosts from number `host` on, with `ranks` ranks
//! each, in order. A list that ends before all ranks have a host begins again. Hydra writes `(vector,(0,1,3),(1,1,1))`;
//! Slurm may write a list that repeats, `(vector,[(0,2,1)]x2)`.

/// Returns the host of each of `size` ranks. Hosts are numbered from 0 in the order of their first ranks. `None` if the
/// text is no mapping.
pub(crate) fn hosts(text: &str, size: usize) -> Option<Vec<u32>> {
    let list = text.trim().strip_prefix("(vector,")?.strip_suffix(')')?;
    let mut ids = Vec::new();
    Parser { rest: list, depth: 0 }
        .blocks(size, &mut ids)
        .filter(|parser| parser.rest.is_empty())?;
    let first = ids.len();
    if first == 0 {
        return None;
    }
    (first..size).for_each(|at| ids.push(ids[at - first]));
    Some(numbered(&ids))
}

/// Numbers hosts in the order in which they appear first.
pub(crate) fn numbered<T: Eq + std::hash::Hash>(ids: &[T]) -> Vec<u32> {
    let mut numbers = rustc_hash::FxHashMap::default();
    let number = |id| {
        let next = numbers.len() as u32;
        *numbers.entry(id).or_insert(next)
    };
    ids.iter().map(number).collect()
}

/// What is left of a list.
struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

/// How deep lists may lie in lists.
const DEEPEST: usize = 8;

impl Parser<'_> {
    /// Reads blocks and repeated lists of blocks up to a bracket or the end, and appends the hosts of at most `size`
    /// ranks in all.
    fn blocks(mut self, size: usize, ids: &mut Vec<u64>) -> Option<Self> {
        loop {
            if self.takes("[") {
                let from = ids.len();
                let inner = Self { depth: self.depth + 1, ..self };
                let inner = (inner.depth <= DEEPEST).then(|| inner.blocks(size, ids))??;
                self.rest = inner.rest.strip_prefix("]x")?;
                let (times, group) = (self.number()?, ids.len() - from);
                for _ in 1..times {
                    if group == 0 || ids.len() >= size {
                        break;
                    }
                    ids.extend_from_within(ids.len() - group..);
                    ids.truncate(size);
                }
                if times == 0 {
                    ids.truncate(from);
                }
            } else {
                self.block(size, ids)?;
            }
            if !self.takes(",") {
                return Some(self);
            }
        }
    }

    fn block(&mut self, size: usize, ids: &mut Vec<u64>) -> Option<()> {
        let mut numbers = [0; 3];
        for (at, number) in numbers.iter_mut().enumerate() {
            let before = if at == 0 { "(" } else { "," };
            *number = self.takes(before).then(|| self.number())??;
        }
        let [first, hosts, ranks] = numbers;
        let room = size.saturating_sub(ids.len());
        let ranks_of = |host| std::iter::repeat_n(first.saturating_add(host), ranks as usize);
        if ranks > 0 {
            ids.extend((0..hosts).flat_map(ranks_of).take(room));
        }
        self.takes(")").then_some(())
    }

    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn number(&mut self) -> Option<u64> {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        number.parse::<u32>().ok().map(u64::from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_forms_are_read() {
        for (text, expected) in [
            ("(vector,(0,1,2))", vec![0, 0]),
            ("(vector,(0,1,3),(1,1,1))", vec![0, 0, 0, 1]),
            ("(vector,(0,2,2))", vec![0, 0, 1, 1]),
            ("(vector,[(0,2,1)]x2)", vec![0, 1, 0, 1]),
            ("(vector,[(0,2,1),(1,1,1)]x2,(5,1,1))", vec![0, 1, 1, 0, 1, 1, 2]),
            ("(vector,(7,1,1),(3,1,2))", vec![0, 1, 1]),
            ("(vector,[[(0,2,1)]x2,(2,1,1)]x2)", vec![0, 1, 0, 1, 2, 0, 1, 0, 1, 2]),
        ] {
            assert_eq!(hosts(text, expected.len()), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_list_that_ends_early_begins_again() {
        assert_eq!(hosts("(vector,(0,2,1))", 5), Some(vec![0, 1, 0, 1, 0]));
    }

    #[test]
    fn a_list_that_is_too_long_is_cut_without_building_it() {
        let long = "(vector,[(0,4000000000,4000000000)]x4000000000)";
        assert_eq!(hosts(long, 3), Some(vec![0, 0, 0]));
        assert_eq!(hosts("(vector,[(0,4000000000,1)]x4000000000)", 3), Some(vec![0, 1, 2]));
    }

    #[test]
    fn what_is_no_mapping_is_refused() {
        for text in [
            "",
            "unknown",
            "(vector)",
            "(vector,)",
            "(vector,(0,1,0))",
            "(vector,(0,0,1))",
            "(vector,[(0,4000000000,0)]x4000000000)",
            "(vector,(0,1))",
            "(vector,(0,1,1)",
            "(vector,(0,1,-1))",
            "(vector,(0,1,1),)",
            "(vector,(0,1,1)(1,1,1))",
            "(vector,[(0,1,1)])",
            "(vector,[(0,1,1)]x0)",
            "(vector,[(0,1,1)]x)",
            "(vector,(99999999999999999999,1,1))",
            "(vector,[[[[[[[[[(0,1,1)]x1]x1]x1]x1]x1]x1]x1]x1]x1)",
        ] {
            assert_eq!(hosts(text, 2), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_gives_every_rank_a_host_or_nothing(
            text in "\\(vector,[\\[\\](),x0-9]{0,40}\\)", size in 1_usize..50,
        ) {
            if let Some(hosts) = hosts(&text, size) {
                prop_assert_eq!(hosts.len(), size);
                let next = hosts.iter().fold(0, |next, host| next.max(host + 1));
                prop_assert!((0..next).all(|host| hosts.contains(&host)));
            }
        }

        #[test]
        fn a_plan_survives_its_mapping(plan in prop::collection::vec(0_u32..5, 1..40)) {
            let blocks: Vec<_> = plan.iter().map(|host| format!("({host},1,1)")).collect();
            let text = format!("(vector,{})", blocks.join(","));
            prop_assert_eq!(hosts(&text, plan.len()), Some(numbered(&plan)));
        }
    }
}
