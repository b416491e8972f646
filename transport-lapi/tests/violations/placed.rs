//! Messages whose data lies in the sender's shared area, and answers to them, that make no sense.

use transport_lapi::{Amsend, LapiError, Sent, Violation};

use crate::support::buffers::area_source;
use crate::support::frames::{COPIED, Head, PLACED, received};
use crate::support::job::Kind;
use crate::{STORE, Scene};

/// Data that does not lie in the sender's shared area: behind its end, or where there are no areas.
#[test]
fn data_outside_of_the_shared_area() {
    for (kind, places) in [
        (Kind::ShmAm, &[(1 << 40, 8), (u64::MAX, 8), (0, u64::MAX), (u64::MAX, u64::MAX)][..]),
        (Kind::Threads, &[(0, 8)]),
    ] {
        let mut scene = Scene::over(kind);
        for &(place, len) in places {
            let head = Head::new(PLACED, STORE, 3).field(place).field(len);
            scene.expect(&head, &[], Violation::OutsideArea { place, len });
        }
        assert_eq!(received(&mut *scene.peer), [], "nothing was copied");
        scene.expect_service();
    }
    let mut scene = Scene::new();
    let refusal = scene.context.session().unwrap().alloc_shared(usize::MAX).unwrap_err();
    let LapiError::AreaExhausted { longest, .. } = refusal else { panic!("{refusal}") };
    let end = longest as u64;
    for (place, len) in [(end - 7, 8), (end, 1), (end + 1, 0)] {
        let head = Head::new(PLACED, STORE, 3).field(place).field(len);
        scene.expect(&head, &[], Violation::OutsideArea { place, len });
    }
    scene.packet(&Head::new(PLACED, STORE, 3).field(end - 8).field(8), &[]);
    scene.progress();
    assert_eq!(received(&mut *scene.peer).len(), 1, "the last bytes were copied");
    assert_eq!(scene.context.session().unwrap().state.complete, [8]);
}

/// News of a copy that nobody, or somebody else, was to make.
#[test]
fn stray_news_of_copies() {
    let mut scene = Scene::new();
    scene.expect(&Head::new(COPIED, 0, 0), &[], Violation::StrayCopied { ticket: 0 });
    let memory = scene.context.session().unwrap().alloc_shared(5000).unwrap();
    let call = Amsend::new(2, STORE, &[], area_source(&memory, 0, 5000));
    let sent = scene.context.session().unwrap().amsend(Amsend { in_place: true, ..call }).unwrap();
    assert_eq!(sent, Sent::Later);
    for ticket in [0, 1, u32::MAX] {
        scene.expect(&Head::new(COPIED, 0, ticket), &[], Violation::StrayCopied { ticket });
    }
    let call = Amsend::new(1, STORE, &[], area_source(&memory, 0, 5000));
    let sent = scene.context.session().unwrap().amsend(Amsend { in_place: true, ..call }).unwrap();
    assert_eq!(sent, Sent::Later);
    scene.packet(&Head::new(COPIED, 0, 1), &[]);
    scene.progress();
    scene.expect(&Head::new(COPIED, 0, 1), &[], Violation::StrayCopied { ticket: 1 });
    scene.expect_service();
}
