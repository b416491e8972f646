//! Whether a job of several hosts is in deadlock, from what its agents tell. Pure. Owned by [`crate::hang::watcher`].
//!
//! Each agent watches the ranks of its host as `mpjrun` watches those of a job of one host ([`crate::hang::watch`]). When
//! they are *still*, it says so, with the numbers of frames that they have sent to other hosts and received from there.
//! When all hosts are still and have received in all what they have sent, `mpjrun` asks all of them whether they have been
//! still all the time (two rounds, as in the counting methods of Mattern). If all say so, the job is in deadlock:
//!
//! - DH1: let `T` be a moment after `mpjrun` asked and before the first agent looked again. Every host was still at a look
//!   before `T`, since it had said so before `mpjrun` asked, and at a look after `T`, at which it had been still all the
//!   time, with the same numbers. So all ranks were blocked at `T`, and the numbers were those that were told.
//! - DH2: at `T` no frame was on its way between hosts. All threads slept in published waits, or looked for messages, and
//!   what they had sent and received before was published with their waits (HA4 of `transport_lapi`'s adapter for hosts).
//!   An offer to the network changes the epoch of a rank before it is made, so no look has made one. A look that has
//!   taken a frame in may not have counted it yet; then that frame counts as on its way. So the difference of the sums is
//!   at least the number of frames on their way. It was 0. Operations on memory of other hosts count as frames do, from
//!   their start to their end.
//! - DH3: no frame waits for room in the network: each look offers it again, and each thread has looked while its host
//!   was found to be still.
//! - DH4: on its own host no rank can go on (WD1 to WD6 of `watch`): the agent's looks found that all threads slept, and
//!   since then they have looked for messages in vain. So the first thread to go on after that finds a frame of another
//!   host; by DH2 and DH3 that was sent after `T`, by a thread that had gone on before. There is none.
//! - DH5: what a host has told is void once it tells something else. A new stillness may have begun after `T`, so the
//!   round begins anew.
//! - DH6: ranks that have ended count with what they have sent and received before, so a frame that went to one of them
//!   and was not received, or never left it, keeps the job from being judged. So does a host that is lost.
//!
//! A model (`agreement/tests.rs`) runs all interleavings of small jobs and finds a false report wherever one of these rules
//! is left out.

/// What is known of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Host {
    /// The numbers of frames sent and received, if it is still.
    still: Option<(u64, u64)>,
    /// Whether it has said in this round that it has been still.
    is_confirmed: bool,
}

/// See the module's head.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Agreement {
    hosts: Vec<Host>,
    round: u64,
    /// Whether the hosts have been asked in this round.
    is_asked: bool,
}

impl Agreement {
    /// For a job on so many hosts.
    pub(crate) fn new(hosts: usize) -> Self {
        Self { hosts: vec![Host::default(); hosts], round: 0, is_asked: false }
    }

    /// Notes that a host is still, and how many frames its ranks have sent to other hosts and received from there.
    pub(crate) fn still(&mut self, host: usize, sent: u64, received: u64) {
        self.hosts[host].still = Some((sent, received));
        self.begin_anew();
    }

    /// Notes the answer of a host: whether it has been still since it said so.
    pub(crate) fn answered(&mut self, host: usize, round: u64, is_still: bool) {
        if !self.is_asked || round != self.round {
            return;
        }
        self.hosts[host].is_confirmed = is_still;
        if !is_still {
            self.moved(host);
        }
    }

    /// Notes that a host is not still, or out of reach.
    pub(crate) fn moved(&mut self, host: usize) {
        self.hosts[host].still = None;
        self.begin_anew();
    }

    /// Whether the hosts are to be asked.
    pub(crate) fn is_due(&self) -> bool {
        !self.is_asked && self.seems_over()
    }

    /// Returns the number of a round in which the hosts are to be asked now.
    pub(crate) fn ask(&mut self) -> Option<u64> {
        let is_due = self.is_due();
        self.is_asked |= is_due;
        is_due.then_some(self.round)
    }

    /// Whether all hosts have answered that the job is in deadlock. The next round finds that again.
    pub(crate) fn is_reached(&mut self) -> bool {
        let is_reached = self.is_asked && self.hosts.iter().all(|host| host.is_confirmed);
        if is_reached {
            self.begin_anew();
        }
        is_reached
    }

    /// Whether all hosts are still, by what they have told, and no frame is on its way (DH2).
    fn seems_over(&self) -> bool {
        let told: Option<Vec<(u64, u64)>> = self.hosts.iter().map(|host| host.still).collect();
        let add = |sum: u64, &(sent, received): &(u64, u64)| {
            sum.wrapping_add(sent).wrapping_sub(received)
        };
        told.is_some_and(|told| told.iter().fold(0, add) == 0)
    }

    /// DH5.
    fn begin_anew(&mut self) {
        self.round += 1;
        self.is_asked = false;
        self.hosts.iter_mut().for_each(|host| host.is_confirmed = false);
    }
}

#[cfg(test)]
mod tests;
