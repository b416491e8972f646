//! Says why ranks that all wait were not judged to be in deadlock: what the detector could not rule out (WD1 of
//! [`crate::hang::watch`]), in terms of the user's program.

use transport_lapi::bootstrap::waits::TaskState;

use super::INDENT;
use super::format::ranks;
use super::standing::Standing;
use crate::hang::snapshot::{Activity, Snapshot};
use crate::hang::watch::{self, Doubt};

/// The line, if every rank that is left waits and there is a reason not to judge. If there is none, the detector has
/// not looked often enough yet.
pub(super) fn text(standings: &[Standing<'_>], snapshot: &Snapshot) -> String {
    let left: Vec<usize> = (0..standings.len()).filter(|rank| standings[*rank].is_alive).collect();
    if left.is_empty() || !left.iter().all(|rank| waits(&standings[*rank])) {
        return String::new();
    }
    let reasons = match snapshot.ignores_deadlocks {
        true => vec!["--deadlock ignore".to_owned()],
        false => reasons(&left, snapshot),
    };
    match reasons.is_empty() {
        true => String::new(),
        false => format!("{INDENT}not judged to be a deadlock: {}\n", reasons.join("; ")),
    }
}

/// Whether a rank waits for others, in a process that could go on.
fn waits(standing: &Standing<'_>) -> bool {
    !standing.is_halted() && standing.holding().next().is_some()
}

fn reasons(left: &[usize], snapshot: &Snapshot) -> Vec<String> {
    let doubts = [Doubt::Awake, Doubt::Crowded, Doubt::Elsewhere, Doubt::OtherThread];
    let reason = |doubt| {
        let is_meant = |rank: &usize| match (snapshot.doubt(*rank), snapshot.activity(*rank)) {
            // A thread that was awake and sleeps by now was about to sleep.
            (Some(Doubt::Awake), activity) => {
                doubt == Doubt::Awake && activity == Some(Activity::Computing)
            }
            (of_rank, _) => of_rank == Some(doubt),
        };
        let meant: Vec<usize> = left.iter().copied().filter(is_meant).collect();
        (!meant.is_empty()).then(|| words(doubt, &meant, &snapshot.spinning))
    };
    let on_their_way = has_frames_on_their_way(snapshot).then(|| {
        "messages between hosts are on their way, or went to a rank that has ended".to_owned()
    });
    doubts.into_iter().filter_map(reason).chain(on_their_way).collect()
}

/// Whether ranks have sent more frames to other hosts than were received there, if all could be read.
fn has_frames_on_their_way(snapshot: &Snapshot) -> bool {
    let states = snapshot.ranks.iter().map(|seen| seen.state().cloned()).collect();
    watch::traffic(&states).is_some_and(|(sent, received)| sent != received)
}

/// The words for a doubt about ranks. `spinning` are those whose setting makes them poll.
fn words(doubt: Doubt, of: &[usize], spinning: &[usize]) -> String {
    let one_or = |one: &'static str, many: &'static str| if of.len() == 1 { one } else { many };
    let ranks = ranks(of);
    match doubt {
        Doubt::Awake => {
            let setting = match of.iter().all(|rank| spinning.contains(rank)) {
                true => " (MPJ_WAIT=spin)",
                false => "",
            };
            format!("{ranks} {} while waiting{setting}", one_or("polls", "poll"))
        }
        Doubt::Crowded => {
            let (has, listed) = (one_or("has", "have"), TaskState::LISTED);
            format!("{ranks} {has} more threads in calls than the {listed} that are listed")
        }
        Doubt::Elsewhere => format!(
            "{ranks} {} in another PID namespace, where threads cannot be counted",
            one_or("is", "are")
        ),
        Doubt::OtherThread => format!(
            "{ranks} {} a thread outside of mpj's calls that may go on by itself (it runs, sleeps for a time, waits \
             for input or a child; or its process catches signals, shares its memory, or cannot be looked at)",
            one_or("has", "have")
        ),
    }
}
