//! Descriptions of other tasks' memory.

/// The key by which an adapter finds memory that a task has registered: at most [`RemoteKey::MOST`] bytes that only the
/// adapter understands. It travels in messages, so for an adapter it is a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RemoteKey {
    len: u8,
    /// Zeros from `len` on.
    bytes: [u8; Self::MOST],
}

impl RemoteKey {
    /// The greatest length, in bytes.
    pub const MOST: usize = 32;

    /// The key of memory that no adapter has registered.
    pub const NONE: Self = Self { len: 0, bytes: [0; Self::MOST] };

    /// Makes a key of 1 to [`RemoteKey::MOST`] bytes; of other lengths, [`RemoteKey::NONE`].
    ///
    /// ```
    /// use transport_lapi::RemoteKey;
    /// assert_eq!(RemoteKey::new(&[1, 2, 3]).as_bytes(), [1, 2, 3]);
    /// assert!(RemoteKey::new(&[0; 33]).is_none());
    /// ```
    pub fn new(key: &[u8]) -> Self {
        let mut bytes = [0; Self::MOST];
        match bytes.get_mut(..key.len()) {
            Some(start) => start.copy_from_slice(key),
            None => return Self::NONE,
        }
        Self { len: key.len() as u8, bytes }
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns the key as a number, if it has eight bytes and is one, little endian.
    pub fn number(&self) -> Option<u64> {
        self.as_bytes().try_into().ok().map(u64::from_le_bytes)
    }

    /// Returns whether no adapter has registered the memory.
    #[inline(always)]
    pub fn is_none(&self) -> bool {
        self.len == 0
    }
}

impl From<u64> for RemoteKey {
    fn from(number: u64) -> Self {
        Self::new(&number.to_le_bytes())
    }
}

impl std::fmt::Debug for RemoteKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RemoteKey({:02x?})", self.as_bytes())
    }
}

/// Memory of another task, as described by that task. The description is untrusted; it is checked when the memory is
/// accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteRegion {
    /// Address in the owner's memory; `u64::MAX` if it is not told.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// Key under which the owner registered the memory; unique while the region is registered.
    pub key: u64,
    /// Key under which the adapter finds the memory; [`RemoteKey::NONE`] if only the owner can access it.
    pub direct: RemoteKey,
}

impl RemoteRegion {
    /// The address of a region that does not tell it.
    pub const NO_ADDRESS: u64 = u64::MAX;

    /// Describes memory that is accessed over frames.
    pub const fn over_frames(addr: u64, len: u64, key: u64) -> Self {
        Self { addr, len, key, direct: RemoteKey::NONE }
    }

    /// The same memory, which its owner accesses for others whatever the adapter can do.
    #[must_use]
    pub fn over_messages(self) -> Self {
        Self { direct: RemoteKey::NONE, ..self }
    }

    /// Returns whether the memory lies in the shared area of its owner, where others access it by themselves.
    #[inline(always)]
    pub fn is_in_area(&self) -> bool {
        self.key & Self::IN_AREA != 0
    }

    /// Returns the description as words, to send it to other tasks.
    ///
    /// ```
    /// use transport_lapi::{RemoteKey, RemoteRegion};
    /// let region = RemoteRegion { addr: 8, len: 100, key: 7, direct: RemoteKey::new(&[1; 32]) };
    /// assert_eq!(RemoteRegion::from_words(region.to_words()), region);
    /// assert_eq!(RemoteRegion::from_bytes(&region.to_bytes()), region);
    /// ```
    pub fn to_words(&self) -> [u64; 8] {
        let Self { addr, len, key, direct } = *self;
        let mut words = [addr, len, key, u64::from(direct.len), 0, 0, 0, 0];
        for (word, bytes) in words[4..].iter_mut().zip(direct.bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        words
    }

    /// The description that another task has sent.
    pub fn from_words([addr, len, key, direct_len, direct @ ..]: [u64; 8]) -> Self {
        let bytes = direct.map(u64::to_le_bytes);
        let used = usize::try_from(direct_len).unwrap_or(usize::MAX);
        let direct = bytes.as_flattened().get(..used).map_or(RemoteKey::NONE, RemoteKey::new);
        Self { addr, len, key, direct }
    }

    /// Length of the description as bytes.
    pub const BYTES: usize = 64;

    /// Returns [`Self::to_words`] as bytes.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let words = self.to_words().map(u64::to_le_bytes);
        words.as_flattened().try_into().expect("eight words have so many bytes")
    }

    /// The description that another task has sent as bytes.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let mut words = [0; Self::BYTES / size_of::<u64>()];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(size_of::<u64>())) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        Self::from_words(words)
    }

    /// Set in the key of memory in the owner's shared area; the other bits are its offset there.
    const IN_AREA: u64 = 1 << 63;

    /// Describes memory in the owner's shared area.
    pub(crate) fn in_area(offset: u64, len: u64) -> Self {
        Self::over_frames(Self::NO_ADDRESS, len, Self::IN_AREA | offset)
    }

    /// The offset in the owner's shared area of the byte at `offset`, if the memory lies there. The caller has checked
    /// that the offset lies in the memory.
    #[inline(always)]
    pub(crate) fn area_place(&self, offset: u64) -> Option<u64> {
        self.is_in_area().then(|| (self.key & !Self::IN_AREA).saturating_add(offset))
    }
}

/// Bytes of another task: an address of that task, and how many begin there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerBytes {
    /// The address in that task's process.
    pub addr: u64,
    /// The number of bytes.
    pub len: usize,
}
