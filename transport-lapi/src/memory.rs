//! Bytes: memory that is borrowed, and bytes of peers, which are claims (`region.rs`); bodies of messages (`body.rs`),
//! also such that are not contiguous (`layout.rs`); memory that other threads write meanwhile (`shared.rs`); and how all
//! are copied, within a process (`copy.rs`) and between two (`process.rs`).

pub(crate) mod body;
pub(crate) mod copy;
pub(crate) mod layout;
pub(crate) mod process;
pub(crate) mod region;
pub(crate) mod shared;
