//! The wait table under loom: words that a reader returns belong together. A change of two words stands for the change
//! of a line.

use loom::sync::Arc;
use loom::thread;

use super::*;

impl WaitTable {
    fn write(&self, value: u32) {
        self.change(|| {
            self.lines[0].state.store(value, Ordering::Relaxed);
            self.lines[0].ticket.store(value, Ordering::Relaxed);
        });
    }

    /// The epoch and both words.
    fn words(&self) -> Option<(u64, [u32; 2])> {
        let line = &self.lines[0];
        self.at_one_moment(|| [&line.state, &line.ticket].map(|word| word.load(Ordering::Relaxed)))
    }
}

/// SL2: in whatever order the words become visible, no reading mixes two changes.
#[test]
fn loom_a_reading_is_of_one_moment() {
    loom::model(|| {
        let wait_table = Arc::new(WaitTable::new());
        let writer = {
            let wait_table = Arc::clone(&wait_table);
            thread::spawn(move || {
                wait_table.write(1);
                wait_table.write(2);
            })
        };
        if let Some((epoch, words)) = wait_table.words() {
            assert_eq!(words, [(epoch / 2) as u32; 2]);
        }
        writer.join().unwrap();
    });
}

/// SL3 as the launcher uses it: if the first of two readings shows what a sender has published, the second one finds
/// that the sender has rung the sleeper's bell.
#[test]
fn loom_whoever_has_published_has_rung_before() {
    loom::model(|| {
        let (sender, rung) = (Arc::new(WaitTable::new()), Arc::new(AtomicU32::new(0)));
        let task = {
            let (sender, rung) = (Arc::clone(&sender), Arc::clone(&rung));
            thread::spawn(move || {
                rung.fetch_add(1, Ordering::Release);
                sender.write(1);
            })
        };
        let first = sender.words();
        if first.is_some_and(|(_, words)| words == [1; 2]) {
            assert_eq!(rung.load(Ordering::Relaxed), 1, "the ring comes before the publishing");
            assert_eq!(sender.words(), first);
        }
        task.join().unwrap();
    });
}
