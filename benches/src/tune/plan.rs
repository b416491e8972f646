//! The questions and their launches: a question is one alternative to one built-in value, an arm is
//! a set of values for launches, and a group is the sizes that one launch measures.

use mpj::BackendChoice;
use transport_lapi::config::{Keyword, Protocol, Tuning};

use super::choice;
use super::verdict::{Aspect, Flow};

/// A set of values for launches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// The protocol of the messages.
    pub backend: BackendChoice,
    /// The tuned values.
    pub tuning: Tuning,
}

/// An alternative, and the aspects to judge it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its name for readers.
    pub name: String,
    /// The index of the arm with the built-in value.
    pub built_in: usize,
    /// The index of the arm with the alternative.
    pub alternative: usize,
    /// The aspects to judge it by.
    pub aspects: Vec<Aspect>,
}

/// Questions that the same launches answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The arms, launched in turn.
    pub arms: Vec<Arm>,
    /// The sizes that one launch measures; few, so that compared launches are close together.
    pub groups: Vec<Vec<usize>>,
    /// The questions that the launches answer.
    pub questions: Vec<Question>,
}

/// The arms of [`pieces`].
const BUILT_IN: usize = 0;
const HALVED: usize = 1;
const DOUBLED: usize = 2;

/// Plans the questions about the pieces of eager messages: half and twice the longest whole
/// message, and half and twice the piece of each range.
///
/// One arm halves all numbers and one doubles them, since no size depends on more than one number.
pub fn pieces(tuning: &Tuning) -> Plan {
    let ranges = tuning.pieces().sizes().values().len();
    let arm = |whole, factor| {
        let pieces = choice::pieces(tuning, whole, &vec![factor; ranges]);
        let tuning = Tuning::new(tuning.protocols().clone(), pieces, tuning.spin());
        let tuning = tuning.expect("all but the pieces is as it was");
        Arm { backend: BackendChoice::Eager, tuning }
    };
    let whole = tuning.pieces().whole();
    let question = |name: String, alternative, sizes: &[usize]| Question {
        name,
        built_in: BUILT_IN,
        alternative,
        aspects: aspects(sizes),
    };
    let mut questions = vec![
        question(format!("whole up to {}", whole / 2), HALVED, &[whole]),
        question(format!("whole up to {}", whole * 2), DOUBLED, &[whole * 2]),
    ];
    let mut groups = vec![vec![whole, whole * 2]];
    // In the doubling arm, messages up to this size are whole.
    let mut above = whole * 2;
    for (bound, size) in tuning.pieces().sizes().iter() {
        let last = bound.unwrap_or(above * 8);
        let sizes = vec![last / 4 * 3, last];
        let of_range = format!("for {} to {last}", above + 1);
        questions.push(question(format!("pieces of {} {of_range}", size / 2), HALVED, &sizes));
        questions.push(question(format!("pieces of {} {of_range}", size * 2), DOUBLED, &sizes));
        groups.push(sizes);
        above = last;
    }
    Plan { arms: vec![arm(1.0, 1.0), arm(0.5, 0.5), arm(2.0, 2.0)], groups, questions }
}

/// Plans the questions about protocols: for each size, the one that the table does not use. Eager
/// messages use the pieces of `tuning`.
pub fn protocols(tuning: &Tuning) -> Plan {
    let arm = |backend| Arm { backend, tuning: tuning.clone() };
    let sizes = choice::sizes();
    let questions = sizes.iter().map(|&size| {
        let built_in = tuning.protocols().of(size);
        let other = choice::other(built_in);
        let arm = |protocol| usize::from(protocol != Protocol::Eager);
        Question {
            name: format!("{} at {size}", other.word()),
            built_in: arm(built_in),
            alternative: arm(other),
            aspects: aspects(&[size]),
        }
    });
    Plan {
        arms: vec![arm(BackendChoice::Eager), arm(BackendChoice::Rendezvous)],
        questions: questions.collect(),
        groups: by_cost(&sizes),
    }
}

fn aspects(sizes: &[usize]) -> Vec<Aspect> {
    sizes.iter().flat_map(|&size| [(Flow::Single, size), (Flow::Stream, size)]).collect()
}

/// Groups sizes: the short ones together, long ones in pairs.
fn by_cost(sizes: &[usize]) -> Vec<Vec<usize>> {
    let class =
        |size: &usize| (size >> 13).checked_ilog2().map_or(0, |log| 1 + log.saturating_sub(2) / 2);
    sizes.chunk_by(|a, b| class(a) == class(b)).map(<[usize]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_aspect_is_measured_once() {
        for plan in [pieces(&Tuning::default()), protocols(&Tuning::default())] {
            let measured: Vec<usize> = plan.groups.concat();
            assert!(measured.is_sorted_by(|a, b| a < b), "{measured:?}");
            for question in &plan.questions {
                let sizes = question.aspects.iter().map(|aspect| aspect.1);
                assert!(sizes.into_iter().all(|size| measured.contains(&size)), "{question:?}");
            }
        }
    }

    #[test]
    fn an_arm_differs_from_the_built_in_one_in_what_is_asked() {
        let plan = pieces(&Tuning::default());
        let differ = plan.questions.iter().filter(|question| {
            let pieces = |arm: usize| plan.arms[arm].tuning.pieces();
            let cut = |arm: usize, len: usize| {
                if len <= pieces(arm).whole() { len } else { pieces(arm).size(len) }
            };
            let mut sizes = question.aspects.iter().map(|aspect| aspect.1);
            sizes.all(|size| cut(question.built_in, size) != cut(question.alternative, size))
        });
        assert_eq!(differ.count(), plan.questions.len());
    }

    #[test]
    fn the_alternative_is_what_the_table_has_not() {
        let plan = protocols(&Tuning::default());
        let name = |at: usize| plan.questions[at].name.as_str();
        assert_eq!((name(0), name(18)), ("rendezvous at 256", "eager at 67108864"));
        assert_eq!((plan.questions[0].built_in, plan.questions[18].built_in), (0, 1));
    }
}
