//! The slate under loom: what a reader takes belongs together.

use loom::sync::Arc;
use loom::thread;

use super::*;

fn entry(number: u32) -> Entry {
    let wait = Wait { open: number, bytes: u64::from(number), ..Wait::default() };
    Entry { wait, standing: Standing::Asleep { ticket: number } }
}

/// SL2: in whatever order the words become visible, no reading mixes two changes.
#[test]
fn loom_a_reading_is_of_one_moment() {
    loom::model(|| {
        let slate = Arc::new(Slate::new());
        let writer = {
            let slate = Arc::clone(&slate);
            thread::spawn(move || {
                slate.put(0, &entry(1));
                slate.put(0, &entry(2));
            })
        };
        if let Some(reading) = slate.look() {
            let expected: &[Entry] = match reading.epoch {
                0 => &[],
                2 => &[entry(1)],
                _ => &[entry(2)],
            };
            assert_eq!(reading.entries, expected);
        }
        writer.join().unwrap();
    });
}

/// SL3 as the launcher uses it: a slate that is found unchanged, and a bell that nobody rang, at the
/// second of two looks were so at any moment between them; a message of a task that has published since
/// has rung the bell.
#[test]
fn loom_whoever_has_published_has_rung_before() {
    loom::model(|| {
        let (sender, sleeper, rung) =
            (Arc::new(Slate::new()), Arc::new(Slate::new()), Arc::new(AtomicU32::new(0)));
        sleeper.put(0, &entry(0));
        let task = {
            let (sender, rung) = (Arc::clone(&sender), Arc::clone(&rung));
            thread::spawn(move || {
                rung.fetch_add(1, Ordering::Release);
                sender.put(0, &entry(0));
            })
        };
        let first = [&sender, &sleeper].map(|slate| slate.look());
        let second = [&sender, &sleeper].map(|slate| slate.look());
        let blocked = |looks: &[Option<Reading>; 2]| {
            looks.iter().all(|look| look.as_ref().is_some_and(|look| !look.entries.is_empty()))
        };
        if blocked(&first) && first == second {
            assert_eq!(rung.load(Ordering::Relaxed), 1, "the ring comes before the publishing");
        }
        task.join().unwrap();
    });
}
