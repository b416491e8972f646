//! Descriptions of other tasks' memory.

/// Memory of another task, as described by that task. The description is untrusted; it is checked when the memory is
/// read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteRegion {
    /// Address in the owner's memory; `u64::MAX` if only the owner can find the bytes.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// Key under which the owner registered the memory; unique while the region is registered.
    pub key: u64,
}

impl RemoteRegion {
    /// The address of a region whose bytes only the owner can pack.
    pub(crate) const NO_ADDRESS: u64 = u64::MAX;

    /// Set in the key of memory in the owner's shared area; the other bits are its offset there.
    const IN_AREA: u64 = 1 << 63;

    /// Describes memory in the owner's shared area.
    pub(crate) fn in_area(offset: u64, len: u64) -> Self {
        Self { addr: Self::NO_ADDRESS, len, key: Self::IN_AREA | offset }
    }

    /// The offset in the owner's shared area of the byte at `offset`, if the memory lies there. The caller has checked
    /// that the offset lies in the memory.
    #[inline(always)]
    pub(crate) fn area_place(&self, offset: u64) -> Option<u64> {
        (self.key & Self::IN_AREA != 0).then(|| (self.key & !Self::IN_AREA).saturating_add(offset))
    }

    /// Whether the memory can be read by its address.
    #[inline(always)]
    pub(crate) fn is_readable(&self) -> bool {
        self.addr != Self::NO_ADDRESS
    }
}
