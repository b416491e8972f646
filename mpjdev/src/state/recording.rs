//! What a device records of itself in the calls that are recorded (`device/recorded.rs`): how long its queues are, and the
//! phases of a rendezvous.

use std::num::NonZeroU32;

use rustc_hash::FxHashMap;
use transport_lapi::bootstrap::trace::{self, Kind};

/// The phases of operations that go on, where it is recorded what calls consist of: by the key of the operation, since when.
#[derive(Debug, Default)]
pub(crate) struct Phases(FxHashMap<u64, u64>);

impl Phases {
    /// Notes that a phase of an operation begins.
    #[cold]
    pub(crate) fn begin(&mut self, key: u64) {
        if let Some(recorder) = trace::recorder_of_parts().filter(|recorder| recorder.has_details())
        {
            self.0.insert(key, recorder.now());
        }
    }

    /// Forgets a phase whose operation has ended in another way.
    #[cold]
    pub(crate) fn forget(&mut self, key: u64) {
        self.0.remove(&key);
    }

    /// Records as much of a phase as belongs to the call that this thread is in, with the other rank, the tag and the bytes.
    #[cold]
    pub(crate) fn end(
        &mut self,
        key: u64,
        name: &'static str,
        (peer, tag, bytes): (u32, i32, usize),
    ) {
        let Some(since) = self.0.remove(&key) else { return };
        let Some(recorder) = trace::recorder_of_parts() else { return };
        let Some(call) = recorder.current() else { return };
        let Some(part) = recorder.phase(recorder.text_once(name), call, since) else { return };
        part.peer(Some(peer), Some(tag));
        part.bytes(bytes as u64);
    }
}

/// The lengths of the queues of a device, as they were recorded last.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    /// Posted receives, unexpected messages, and bytes of these.
    last: (usize, usize, u64),
    /// Receives that were started.
    looks: u64,
}

/// Of so many receives one records how long the queues are,
const LOOKS: u64 = 16;
/// and so does each that finds so many bytes more or less of unexpected messages.
const MANY: u64 = 64 << 10;

impl Levels {
    /// Records the lengths now and then, when they have changed, of this device.
    pub(crate) fn note(&mut self, device: NonZeroU32, now: (usize, usize, u64)) {
        self.looks += 1;
        let is_due = self.looks % LOOKS == 1 || now.2.abs_diff(self.last.2) >= MANY;
        if !is_due || now == self.last {
            return;
        }
        let Some(recorder) = trace::recorder_of_parts() else { return };
        let Some(call) = recorder.current() else { return };
        let Some(levels) = recorder.part(Kind::Levels, call) else { return };
        let (posted, unexpected, bytes) = now;
        levels.peer(u32::try_from(posted).ok(), i32::try_from(unexpected).ok());
        levels.bytes(bytes);
        levels.request(device.get().into());
        self.last = now;
    }
}
