//! Requests for one-sided operations, and answers to them, that make no sense.

use transport_lapi::{RemoteRegion, Rmw, RmwOp, Violation};

use crate::Scene;
use crate::support::buffers::{Landing, pattern};
use crate::support::frames::{
    BODY, FIRST, GET_DATA, GET_REQUEST, GET_SHARE, Head, PUT_REFUSED, RMW, RMW_DONE, RMW_REFUSED,
    SINGLE, received,
};

/// The transport's own messages, for handler 0, with these words of user header.
fn request(kind: u8, number: u32, words: &[u64]) -> Head {
    let uhdr: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    match kind {
        SINGLE => Head::new(SINGLE, 0, 0).uhdr(&uhdr),
        _ => {
            let head = Head::new(FIRST, 0, number).field(20_000);
            head.uhdr(&uhdr)
        }
    }
}

/// Requests that ask for nothing known: no operation, an unknown one, too few words, a vector of an unknown kind.
#[test]
fn requests_that_do_not_exist() {
    let mut scene = Scene::new();
    for words in [&[][..], &[0], &[9, 1, 2], &[1, 0], &[2, 0, 1], &[2, 0, 0, 7], &[3, 0, 1 << 32]] {
        let head = request(SINGLE, 0, words);
        scene.expect(&head, pattern(1, 8), Violation::UnknownRequest);
    }
    // Words that were sent ahead and are no vector.
    scene.packet(&request(SINGLE, 0, &[4, 1]), &99_u64.to_le_bytes());
    scene.progress();
    let unregistered = Violation::UnregisteredPut;
    scene.expect(&request(SINGLE, 0, &[2, 0, 0]), pattern(1, 8), unregistered);
    scene.expect(&request(SINGLE, 0, &[4, 1]), &[1, 2, 3], Violation::UnknownRequest);
    scene.expect_service();
}

/// Puts and read-modify-writes whose place is not inside registered memory, with every kind of wrong arithmetic.
#[test]
fn places_outside_of_registered_memory() {
    let mut scene = Scene::new();
    let landing = Landing::new(64);
    let memory = landing.region(64);
    let region = scene.context.session().unwrap().register_writable(memory).unwrap();
    let key = region.key;
    for (key, offset) in [
        (key, 57),
        (key, 64),
        (key, u64::MAX),
        (key, u64::MAX - 7),
        (key + 1, 0),
        (key + (1 << 32), 0),
        (u64::MAX, 0),
    ] {
        let unregistered = Violation::UnregisteredPut;
        scene.expect(&request(SINGLE, 0, &[1, key, offset]), pattern(1, 8), unregistered);
        scene.expect(&request(FIRST, 1, &[1, key, offset]), pattern(1, 10_000), unregistered);
        scene.packet(&Head::new(BODY, 0, 1).field(10_000), pattern(1, 10_000));
        scene.progress();
        let add = [key, offset, 1, 0];
        let head = add.iter().fold(Head::new(RMW, 8, 5), |head, &word| head.field(word));
        let unregistered = Violation::UnregisteredRmw;
        scene.expect(&head, &[], unregistered);
    }
    for vector in [
        &[1, 0, 4, 62, 4][..],
        &[1, u64::MAX, 8],
        &[1, 0, 4, 0, 4],
        &[2, 0, 4, 3, 2],
        &[2, u64::MAX, 4, 4, 2],
        &[2, 0, 8, u64::MAX, 1],
        &[1, 0, 3],
    ] {
        let words: Vec<u64> = [2, key, 0].into_iter().chain(vector.iter().copied()).collect();
        let unregistered = Violation::UnregisteredPut;
        scene.expect(&request(SINGLE, 0, &words), pattern(1, 8), unregistered);
        let words: Vec<u64> = [3, key, 7].into_iter().chain(vector.iter().copied()).collect();
        if vector[..] == [1, 0, 4, 0, 4] || vector[..] == [1, 0, 3] {
            continue;
        }
        let unregistered = Violation::UnregisteredGetv;
        scene.expect(&request(SINGLE, 0, &words), &[], unregistered);
    }
    let unknown = [key, 0, 1, 0].iter().fold(Head::new(RMW, 15, 5), |head, &word| head.field(word));
    scene.expect(&unknown, &[], Violation::UnregisteredRmw);
    assert!(landing.holds(&[]), "nothing was written");
    scene.expect_service();
}

/// Answers to read-modify-writes that are not in progress, or in progress with another task.
#[test]
fn answers_to_read_modify_writes_that_were_not_asked_for() {
    let mut scene = Scene::new();
    let remote = RemoteRegion::over_frames(u64::MAX, 64, 0);
    let call = Rmw::new(2, remote, 0, RmwOp::Swap(1_i64));
    scene.context.session().unwrap().rmw(call).unwrap();
    for ticket in [0, 1, u32::MAX] {
        let done = Head::new(RMW_DONE, 0, ticket).field(3);
        scene.expect(&done, &[], Violation::StrayRmw { ticket });
        scene.expect(&Head::new(RMW_REFUSED, 0, ticket), &[], Violation::StrayRmw { ticket });
    }
    scene.expect(&Head::new(PUT_REFUSED, 0, 0), &[], Violation::PutRefused);
    scene.expect_service();
}

/// No task may name the key under which the answer to a get by vector is packed: not to read it, which would end the
/// other task's get, and not to make a chain of such answers.
#[test]
fn answers_of_other_tasks_cannot_be_named() {
    const LEN: u64 = 8 << 20;
    let mut scene = Scene::new();
    let landing = Landing::new(LEN as usize);
    let memory = landing.region(LEN as usize);
    let region = scene.context.session().unwrap().register_writable(memory).unwrap();
    // The answer does not fit into the ring, so its key lasts: the next one.
    scene.packet(&request(SINGLE, 0, &[3, region.key, 77, 1, 0, LEN]), &[]);
    scene.progress();
    let part = region.key + 1;
    let read = Head::new(GET_REQUEST, 0, 5).field(part).field(0).field(4);
    scene.expect(&read, &[], Violation::UnregisteredGet { offset: 0, len: 4 });
    let again = request(SINGLE, 0, &[3, part, 78, 1, 0, 4]);
    scene.expect(&again, &[], Violation::UnregisteredGetv);
    let share = Head::new(GET_SHARE, 0, 1).field(part).field(0).field(4);
    scene.expect(&share, &[], Violation::UnregisteredGet { offset: 0, len: 4 });
    let mut data = 0;
    while data < LEN {
        let frames = received(&mut *scene.peer);
        let answers = frames.iter().filter(|(head, _)| head[0] == GET_DATA);
        data += answers.map(|(_, body)| body.len() as u64).sum::<u64>();
        scene.progress();
    }
    assert_eq!(data, LEN, "the get goes on to its end");
}
