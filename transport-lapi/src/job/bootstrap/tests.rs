//! The legal values of the job variables. The tests in `inherit` take the descriptors.

use std::os::fd::AsFd;

use super::*;

const COMPLETE: [(&str, &str); 4] =
    [("MPJ_RANK", "2"), ("MPJ_SIZE", "3"), ("MPJ_SHM_FD", "4"), ("MPJ_CTRL_FD", "9")];

/// Parses the complete set with one variable changed or, if `value` is `None`, left out.
fn parse_with(name: &str, value: Option<&str>) -> Result<Inherited, BootstrapError> {
    Inherited::parse(&|variable| {
        let complete = COMPLETE.iter().find(|(known, _)| *known == variable);
        let value = if variable == name { value } else { complete.map(|(_, value)| *value) };
        value.map(str::to_owned)
    })
}

fn inherited() -> Inherited {
    parse_with("MPJ_CONTEXTS", None).expect("complete")
}

#[test]
fn a_complete_set_is_a_seat() {
    let expected = Inherited {
        world: World::whole(2, 3),
        contexts: 1,
        descriptors: Descriptors { segment: 4, control: 9, table: None },
    };
    assert_eq!(inherited(), expected);
}

#[test]
fn a_missing_variable_is_named() {
    for (name, _) in COMPLETE {
        let error = parse_with(name, None).expect_err("incomplete");
        assert!(matches!(error, BootstrapError::Missing { variable } if variable == name));
        assert!(error.to_string().starts_with(name));
    }
}

#[test]
fn a_rank_that_is_told_nothing_of_contexts_has_one() {
    assert_eq!(inherited().contexts, 1);
}

#[test]
fn a_malformed_variable_is_named_with_its_value() {
    let malformed = [
        ("MPJ_CONTEXTS", "0"),
        ("MPJ_CONTEXTS", "5"),
        ("MPJ_CONTEXTS", "two"),
        ("MPJ_RANK", "3"),
        ("MPJ_RANK", "-1"),
        ("MPJ_RANK", "one"),
        ("MPJ_SIZE", "0"),
        ("MPJ_SIZE", "257"),
        ("MPJ_SIZE", "99999999999999999999"),
        ("MPJ_UNIVERSE", "2"),
        ("MPJ_UNIVERSE", "1025"),
        ("MPJ_CTRL_FD", "2"),
        ("MPJ_CTRL_FD", "2147483648"),
    ];
    for (name, text) in malformed {
        let error = parse_with(name, Some(text)).expect_err("malformed");
        let BootstrapError::Malformed { variable, value, .. } = error else {
            panic!("{name}={text}: {error}");
        };
        assert_eq!((variable, value.as_str()), (name, text));
    }
}

#[test]
fn what_the_launcher_writes_is_what_a_rank_parses() {
    let (receiver, rank) = control::control_pair().expect("a socket pair");
    let (segment, control) = (receiver.as_fd(), rank.as_fd());
    let descriptors = Descriptors { segment, control, table: None };
    let spawned = World { task: 5, tasks: 4..6, universe: 9, parent: Some(3) };
    for (world, local) in [(World::whole(1, 2), "1"), (spawned, "5")] {
        let place = RankPlace { world: world.clone(), local: world.task, contexts: 3 };
        let entries = rank_environment(&place, "j", descriptors);
        let get = |name: &str| {
            entries.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.clone())
        };
        let inherited = Inherited::parse(&get).expect("the launcher's own words");
        assert_eq!((inherited.world, inherited.contexts), (world, 3));
        assert_eq!(inherited.descriptors.control, rank.as_raw_fd());
        assert_eq!(inherited.descriptors.table, None);
        assert_eq!(get("MPJ_LOCAL_RANK").as_deref(), Some(local));
        assert_eq!([get("MPJ_RANK"), get("MPJ_SIZE")], ["1", "2"].map(|it| Some(it.to_owned())));
    }
}

#[test]
fn a_spawned_rank_has_a_place_behind_its_parent() {
    let parsed = |first: &str, parent: &str| {
        Inherited::parse(&|variable| {
            let more = [("MPJ_UNIVERSE", "6"), ("MPJ_FIRST_TASK", first), ("MPJ_PARENT", parent)];
            let all = COMPLETE.iter().chain(&more);
            all.into_iter().find(|(known, _)| *known == variable).map(|(_, it)| (*it).to_owned())
        })
    };
    let world = parsed("3", "2").expect("legal").world;
    assert_eq!(world, World { task: 5, tasks: 3..6, universe: 6, parent: Some(2) });
    for (first, parent) in [("0", "0"), ("4", "0"), ("3", "3"), ("x", "0"), ("3", "-1")] {
        let error = parsed(first, parent).expect_err("no such place");
        assert!(matches!(error, BootstrapError::Malformed { .. }), "{first} {parent}: {error}");
    }
}

#[test]
fn the_last_rank_of_the_largest_job_has_a_place() {
    let (receiver, rank) = control::control_pair().expect("a socket pair");
    let (segment, control) = (receiver.as_fd(), rank.as_fd());
    let (size, last) = (MAX_TASKS, MAX_TASKS as TaskId - 1);
    let parsed = |size: usize, table| {
        let descriptors = Descriptors { segment, control, table };
        let place = RankPlace { world: World::whole(last, size), local: 255, contexts: 4 };
        let entries = rank_environment(&place, "j", descriptors);
        Inherited::parse(&|name| entries.iter().find(|(known, _)| *known == name)?.1.clone())
    };
    let place = parsed(size, Some(segment)).expect("legal");
    assert_eq!(place.world, World::whole(last, size));
    for (size, table) in [(size + 1, Some(segment)), (size, None)] {
        let error = parsed(size, table).expect_err("more than the job, or one host, can have");
        assert!(matches!(error, BootstrapError::Malformed { variable: "MPJ_SIZE", .. }), "{error}");
    }
}

#[test]
fn a_refused_descriptor_is_refused_for_its_own_reason_every_time() {
    let taken = AtomicBool::new(false);
    let place = Descriptors { segment: 1_000_000, control: 1_000_001, table: None };
    let place = Inherited { descriptors: place, ..inherited() };
    for _ in 0..2 {
        let take = || inherit::take(place.descriptors);
        let error = take_once(&taken, take).expect_err("nothing is open there");
        assert!(matches!(error, BootstrapError::NotInherited { number: 1_000_000, .. }), "{error}");
    }
    let once = AtomicBool::new(true);
    assert!(matches!(take_once(&once, || Ok(())), Err(BootstrapError::AlreadyTaken)));
}

#[test]
fn the_limit_in_the_messages_is_the_limit() {
    assert_eq!((MAX_TASKS, MAX_TASKS_PER_HOST, MAX_PLACES_PER_HOST), (1_048_576, 256, 1024));
}
