//! How far the clients of one process have come, so that the launcher hears of the rank's end once (L9 of
//! [`super`]).

use parking_lot::Mutex;

use super::MessageCounts;

/// How far each client has come, in the order of joining.
#[derive(Debug)]
pub(super) struct Clients(Mutex<Vec<Stage>>);

#[derive(Debug, Clone, Copy)]
enum Stage {
    Joined,
    /// It waits for its end on the other ranks.
    Leaving(MessageCounts),
    /// It has done its part.
    Finished(MessageCounts),
    /// It could not join, or has ended without leaving.
    Withdrawn,
}

impl Stage {
    fn counts(self) -> MessageCounts {
        match self {
            Self::Leaving(counts) | Self::Finished(counts) => counts,
            Self::Joined | Self::Withdrawn => MessageCounts::default(),
        }
    }
}

impl Default for Clients {
    /// Those of a process whose first client joins.
    fn default() -> Self {
        Self(Mutex::new(vec![Stage::Joined]))
    }
}

impl Clients {
    /// Enters a further client, and returns its number; `None` if no client is in the job any more.
    pub(super) fn enter(&self) -> Option<usize> {
        let mut stages = self.0.lock();
        stages.iter().any(|stage| matches!(stage, Stage::Joined)).then(|| {
            stages.push(Stage::Joined);
            stages.len() - 1
        })
    }

    /// Notes that a client could not join, or ends without leaving, unless it has left. Returns the counters of the others
    /// if these leave or have left, and whether they have done their parts.
    pub(super) fn withdraw(&self, client: usize) -> Option<(MessageCounts, bool)> {
        let mut stages = self.0.lock();
        if matches!(stages[client], Stage::Finished(_) | Stage::Withdrawn) {
            return None;
        }
        stages[client] = Stage::Withdrawn;
        let are_others = stages.iter().any(|stage| !matches!(stage, Stage::Withdrawn));
        let counts = counts_at_end(&stages).filter(|_| are_others)?;
        Some((counts, have_finished(&stages)))
    }

    /// Notes that a client leaves. Returns the counters of all clients if all leave or have left.
    pub(super) fn leaves(&self, client: usize, counts: MessageCounts) -> Option<MessageCounts> {
        let mut stages = self.0.lock();
        stages[client] = Stage::Leaving(counts);
        counts_at_end(&stages)
    }

    /// Notes that a client has done its part. Returns whether all have.
    pub(super) fn finishes(&self, client: usize) -> bool {
        let mut stages = self.0.lock();
        stages[client] = Stage::Finished(stages[client].counts());
        have_finished(&stages)
    }
}

/// The counters of all clients, once none is in the job that does not leave it.
fn counts_at_end(stages: &[Stage]) -> Option<MessageCounts> {
    let all_leave = !stages.iter().any(|stage| matches!(stage, Stage::Joined));
    all_leave.then(|| stages.iter().map(|stage| stage.counts()).sum())
}

/// Whether all clients that have not been withdrawn have done their parts.
fn have_finished(stages: &[Stage]) -> bool {
    stages.iter().all(|stage| matches!(stage, Stage::Finished(_) | Stage::Withdrawn))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(received: u64) -> MessageCounts {
        MessageCounts { received, ..MessageCounts::default() }
    }

    #[test]
    fn the_last_client_that_leaves_speaks_for_all() {
        let clients = Clients::default();
        let (second, third) = (clients.enter().unwrap(), clients.enter().unwrap());
        assert_eq!((second, third), (1, 2));
        assert_eq!(clients.withdraw(third), None);
        assert_eq!(clients.leaves(second, received(5)), None);
        assert!(!clients.finishes(second));
        assert_eq!(clients.leaves(0, received(2)), Some(received(7)));
        assert_eq!(clients.enter(), None, "the process has left");
        assert!(clients.finishes(0));
    }

    #[test]
    fn a_client_that_is_withdrawn_holds_up_nothing() {
        let clients = Clients::default();
        let [second, third] = [(); 2].map(|()| clients.enter().unwrap());
        assert_eq!(clients.leaves(0, received(1)), None);
        assert_eq!(clients.withdraw(second), None);
        assert_eq!(clients.withdraw(third), Some((received(1), false)));
        assert!(clients.finishes(0));
        assert_eq!(clients.withdraw(0), None, "it has left");

        let clients = Clients::default();
        let second = clients.enter().unwrap();
        assert_eq!(clients.leaves(second, received(2)), None);
        assert!(!clients.finishes(second));
        assert_eq!(clients.withdraw(0), Some((received(2), true)));
        assert_eq!(Clients::default().withdraw(0), None, "nobody has left");
    }

    #[test]
    fn a_client_that_stays_keeps_the_rank_in_its_job() {
        let clients = Clients::default();
        assert_eq!(clients.leaves(0, received(1)), Some(received(1)));
        let clients = Clients::default();
        let second = clients.enter().unwrap();
        assert_eq!(clients.leaves(0, received(1)), None);
        assert!(!clients.finishes(0));
        assert_eq!(clients.leaves(second, received(1)), Some(received(2)));
        assert!(clients.finishes(second));
    }
}
