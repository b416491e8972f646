//! The legal values of the job variables. The tests in `inherit` take the descriptors.

use std::os::fd::AsFd;

use super::*;

fn variables() -> JobVariables {
    let text = |text: &str| Some(text.to_owned());
    JobVariables {
        rank: text("2"),
        size: text("3"),
        contexts: None,
        job: text("j-1"),
        segment: text("4"),
        control: text("9"),
    }
}

fn place() -> RankPlace {
    RankPlace::parse(&variables()).expect("complete")
}

#[test]
fn a_complete_set_is_a_seat() {
    let place = place();
    let job = "j-1".to_owned();
    let expected = RankPlace { task: 2, num_tasks: 3, contexts: 1, job, segment: 4, control: 9 };
    assert_eq!(place, expected);
}

#[test]
fn a_missing_variable_is_named() {
    let incomplete = [
        ("MPJ_RANK", JobVariables { rank: None, ..variables() }),
        ("MPJ_SIZE", JobVariables { size: None, ..variables() }),
        ("MPJ_JOB", JobVariables { job: None, ..variables() }),
        ("MPJ_SHM_FD", JobVariables { segment: None, ..variables() }),
    ];
    for (name, set) in incomplete {
        let error = RankPlace::parse(&set).expect_err("incomplete");
        assert!(matches!(error, BootstrapError::Missing { variable } if variable == name));
        assert!(error.to_string().starts_with(name));
    }
}

#[test]
fn a_rank_that_is_told_nothing_of_contexts_has_one() {
    assert_eq!(place().contexts, 1);
}

#[test]
fn a_malformed_variable_is_named_with_its_value() {
    let rank = |value: &str| JobVariables { rank: Some(value.to_owned()), ..variables() };
    let size = |value: &str| JobVariables { size: Some(value.to_owned()), ..variables() };
    let control = |value: &str| JobVariables { control: Some(value.to_owned()), ..variables() };
    let contexts = |value: &str| JobVariables { contexts: Some(value.to_owned()), ..variables() };
    let malformed = [
        ("MPJ_CONTEXTS", "0", contexts("0")),
        ("MPJ_CONTEXTS", "5", contexts("5")),
        ("MPJ_CONTEXTS", "two", contexts("two")),
        ("MPJ_RANK", "3", rank("3")),
        ("MPJ_RANK", "-1", rank("-1")),
        ("MPJ_RANK", "one", rank("one")),
        ("MPJ_SIZE", "0", size("0")),
        ("MPJ_SIZE", "257", size("257")),
        ("MPJ_SIZE", "99999999999999999999", size("99999999999999999999")),
        ("MPJ_CTRL_FD", "2", control("2")),
        ("MPJ_CTRL_FD", "2147483648", control("2147483648")),
    ];
    for (name, text, set) in malformed {
        let error = RankPlace::parse(&set).expect_err("malformed");
        let BootstrapError::Malformed { variable, value, .. } = error else {
            panic!("{name}={text}: {error}");
        };
        assert_eq!((variable, value.as_str()), (name, text));
    }
}

#[test]
fn what_the_launcher_writes_is_what_a_rank_parses() {
    let (receiver, rank) = control::control_pair().expect("a socket pair");
    let entries = rank_environment(1, 2, 3, "j", receiver.as_fd(), rank.as_fd());
    let get = |name: &str| {
        entries.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    };
    let set = JobVariables {
        rank: get("MPJ_RANK"),
        size: get("MPJ_SIZE"),
        contexts: get("MPJ_CONTEXTS"),
        job: get("MPJ_JOB"),
        segment: get("MPJ_SHM_FD"),
        control: get("MPJ_CTRL_FD"),
    };
    let place = RankPlace::parse(&set).expect("the launcher's own words");
    assert_eq!((place.task, place.num_tasks, place.job.as_str()), (1, 2, "j"));
    assert_eq!(place.contexts, 3);
    assert_eq!(place.control, rank.as_raw_fd());
    assert_eq!(get("MPJ_LOCAL_RANK").as_deref(), Some("1"));
}

#[test]
fn a_refused_descriptor_is_refused_for_its_own_reason_every_time() {
    let taken = AtomicBool::new(false);
    let place = RankPlace { segment: 1_000_000, control: 1_000_001, ..place() };
    for _ in 0..2 {
        let error = take_once(&taken, &place).expect_err("nothing is open there");
        assert!(matches!(error, BootstrapError::NotInherited { number: 1_000_000, .. }), "{error}");
    }
    let once = AtomicBool::new(true);
    assert!(matches!(take_once(&once, &place), Err(BootstrapError::AlreadyTaken)));
}

#[test]
fn the_limit_in_the_messages_is_the_limit() {
    assert_eq!((MAX_TASKS, MAX_CONTEXTS), (256, 4));
}
