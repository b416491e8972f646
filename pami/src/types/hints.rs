//! Hints: what a program promises about its messages, and what it demands.

/// What a hint is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// A message may use other contexts of its client than that of its sender. By default it may. Messages to an
    /// endpoint with another offset need that.
    Multicontext = 0,
    /// Headers may be longer than [`RECV_IMMEDIATE_MAX`](crate::RECV_IMMEDIATE_MAX). By default they may.
    LongHeader = 1,
    /// Receivers store messages in one piece. It changes nothing here.
    RecvContiguous = 2,
    /// Receivers have no data functions. It changes nothing here.
    RecvCopy = 3,
    /// Enabled: data come with the message always, so messages are short. Disabled: they never do, not even no bytes.
    RecvImmediate = 4,
    /// Dispatch functions of messages between two endpoints run in the order of sending. Here they always do.
    Consistency = 5,
    /// Buffers are registered. It changes nothing here.
    BufferRegistered = 6,
    /// Messages arrive while the receiver makes no progress. This cannot be enabled.
    RemoteAsyncProgress = 7,
    /// Data are moved by the network's card alone. This can be neither enabled nor disabled.
    UseRdma = 8,
    /// Messages go through shared memory, so to tasks of the same host only; or not, so to others only.
    UseShmem = 9,
    /// A message that cannot be sent at once is queued. By default it is. See
    /// [`Section::send_immediate`](crate::Section::send_immediate).
    QueueImmediate = 10,
}

/// The value of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Setting {
    /// What PAMI defines as the default of the hint.
    #[default]
    Default = 0,
    /// Yes.
    Enable = 1,
    /// No.
    Disable = 2,
}

/// The hints of a dispatch, which are hard: they are honoured, and all tasks give the same (pami_dispatch_hint_t).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints(u32);

impl Hints {
    /// Bits of all hints.
    pub(crate) const BITS: u32 = 22;

    /// The same hints but for this one.
    ///
    /// ```
    /// use pami::{Hint, Hints, Setting};
    /// let hints = Hints::default().with(Hint::RecvImmediate, Setting::Disable);
    /// assert_eq!(hints.get(Hint::RecvImmediate), Setting::Disable);
    /// assert_eq!(hints.get(Hint::UseShmem), Setting::Default);
    /// ```
    #[must_use]
    pub fn with(self, hint: Hint, setting: Setting) -> Self {
        let shift = 2 * hint as u32;
        Self(self.0 & !(0b11 << shift) | (setting as u32) << shift)
    }

    /// Returns the value of a hint.
    pub fn get(self, hint: Hint) -> Setting {
        match self.0 >> (2 * hint as u32) & 0b11 {
            1 => Setting::Enable,
            2 => Setting::Disable,
            _ => Setting::Default,
        }
    }

    /// The hint that cannot be honoured, if there is one.
    pub(crate) fn unsupported(self) -> Option<(Hint, Setting)> {
        let refused = [
            (Hint::RemoteAsyncProgress, Setting::Enable),
            (Hint::UseRdma, Setting::Enable),
            (Hint::UseRdma, Setting::Disable),
        ];
        refused.into_iter().find(|&(hint, setting)| self.get(hint) == setting)
    }

    /// All of them, for a message.
    pub(crate) fn to_bits(self) -> u32 {
        self.0
    }

    /// Those that a message claims.
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}
