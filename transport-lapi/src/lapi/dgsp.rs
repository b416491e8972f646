//! LAPI's data gather/scatter programs (DGSP), which describe where the bytes of a message lie.
//!
//! A program is a list of instructions. Registering one checks it and translates it into a [`Layout`], so it is run by
//! the same interpreter as vectors and MPI's datatypes. LAPI_Util's calls are methods: LAPI_REGISTER_DGSP is
//! [`Dgsp::register`], LAPI_RESERVE_DGSP is `clone`, LAPI_UNRESERVE_DGSP is `drop`, LAPI_DGSP_PACK and _UNPACK are
//! [`Dgsp::pack`] and [`Dgsp::unpack`]. A transfer takes [`Dgsp::to_send`] as its data, and a header handler answers
//! with [`Dgsp::to_receive`]; each of them holds the program until it is over.

use std::ops::Range;

use crate::memory::body::{Sink, Source};
use crate::memory::layout::{Layout, LayoutError};
use crate::memory::region::{RecvRegion, SendRegion};

/// An instruction of a program. Places in the program are indices of instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DgspOp {
    /// COPY: one block.
    Copy {
        /// Length in bytes.
        bytes: usize,
        /// Displacement of the block.
        offset: isize,
    },
    /// MCOPY: blocks, each with its displacement and its length.
    Mcopy(Vec<(isize, usize)>),
    /// GOSUB: runs a body several times, then continues elsewhere.
    Gosub {
        /// Where the body begins.
        to: usize,
        /// Where the program continues.
        ret: usize,
        /// How often the body runs.
        reps: i64,
        /// Displacement of the first run.
        offset: isize,
        /// Distance between the displacements of two runs.
        stride: isize,
    },
    /// ITERATE: the end of a body, or of the program.
    Iterate {
        /// Where the body begins.
        to: usize,
    },
}

/// Why a program cannot be registered or used. Each description names LAPI's condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DgspError {
    /// DGSP_OTHER: the program has no instruction.
    #[error("the program is empty")]
    Empty,
    /// DGSP_STACK: the bodies are nested deeper than the program says, or than a layout can be.
    #[error("the program's bodies are nested deeper than {depth} levels")]
    Stack {
        /// The depth that the program was registered with.
        depth: usize,
    },
    /// DGSP_BRANCH: a place outside the program, a body without an end, or an end that belongs to another body.
    #[error("instruction {at} leads outside its body or the program")]
    Branch {
        /// Index of the instruction.
        at: usize,
    },
    /// DGSP_REPS: a body that runs less than 0 times.
    #[error("instruction {at} runs its body {reps} times")]
    Reps {
        /// Index of the instruction.
        at: usize,
        /// The number of runs.
        reps: i64,
    },
    /// DGSP_COPY_SZ: more bytes than memory can have.
    #[error("the program describes more bytes than memory can have")]
    CopySize,
    /// PACK_SZ: the contiguous side is too short, or the program describes no bytes.
    #[error(
        "{bytes} bytes at position {position} do not fit a buffer of {len}, or the program has none"
    )]
    PackSize {
        /// Number of bytes to pack or unpack.
        bytes: usize,
        /// Where they begin in the buffer.
        position: usize,
        /// Length of the buffer.
        len: usize,
    },
    /// The program does not fit the memory, or writes a byte twice.
    #[error(transparent)]
    Layout(LayoutError),
}

/// A registered program.
///
/// Every second number of a memory of 16-bit numbers, three at a time:
///
/// ```
/// use transport_lapi::{Dgsp, DgspOp};
///
/// let program = vec![
///     DgspOp::Gosub { to: 2, ret: 1, reps: 3, offset: 0, stride: 4 },
///     DgspOp::Iterate { to: 0 },
///     DgspOp::Copy { bytes: 2, offset: 0 },
///     DgspOp::Iterate { to: 2 },
/// ];
/// let dgsp = Dgsp::register(&program, 2, 12)?;
/// let (mut packed, mut position) = ([0; 8], 1);
/// dgsp.pack(b"aa..bb..cc..dd..ee..ff..", 7, &mut packed, &mut position)?;
/// assert_eq!((&packed, position), (b"\0aabbccd", 8));
/// # Ok::<(), transport_lapi::DgspError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dgsp {
    layout: Layout,
    extent: isize,
}

impl Dgsp {
    /// Checks and registers a program (LAPI_REGISTER_DGSP). Its bodies, including itself, are nested at most `depth`
    /// deep. Each repetition in a longer message is `extent` bytes after the previous one.
    ///
    /// # Errors
    /// [`DgspError::Empty`], [`DgspError::Stack`], [`DgspError::Branch`], [`DgspError::Reps`],
    /// [`DgspError::CopySize`].
    pub fn register(code: &[DgspOp], depth: usize, extent: isize) -> Result<Self, DgspError> {
        if code.is_empty() {
            return Err(DgspError::Empty);
        }
        let depth = depth.min(Layout::MAX_DEPTH);
        let mut program = Program { code, depth, bodies: vec![None; code.len()] };
        Ok(Self { layout: program.body(0, 1)?.0, extent })
    }

    /// Returns the number of bytes of one repetition.
    pub fn size(&self) -> usize {
        self.layout.size()
    }

    /// Returns the distance between two repetitions.
    pub fn extent(&self) -> isize {
        self.extent
    }

    /// Returns the layout of as many whole repetitions as `bytes` bytes take. All of them must lie in the memory.
    fn repeated(&self, bytes: usize) -> Result<Layout, DgspError> {
        let count = if bytes == 0 { 0 } else { bytes.div_ceil(self.size().max(1)) };
        self.layout.repeat(count, self.extent).map_err(DgspError::Layout)
    }

    /// Makes a source of whole repetitions with `bytes` bytes or a few more in `memory`, for LAPI_DGSP_XFER.
    ///
    /// # Errors
    /// [`DgspError::Layout`] if a byte lies outside the memory.
    pub fn to_send(&self, memory: SendRegion, bytes: usize) -> Result<Source, DgspError> {
        self.repeated(bytes)?.to_send(memory, 0).map_err(DgspError::Layout)
    }

    /// Makes a sink of `bytes` bytes in `memory`, as a header handler returns it (`dgsp_handle`).
    ///
    /// # Errors
    /// [`DgspError::Layout`] if a byte lies outside the memory, or is written twice.
    pub fn to_receive(&self, memory: RecvRegion, bytes: usize) -> Result<Sink, DgspError> {
        let sink = self.repeated(bytes)?.to_receive(memory, 0).map_err(DgspError::Layout)?;
        Ok(sink.truncated(bytes))
    }

    /// Copies `bytes` bytes out of `memory` into `packed`, beginning at `position`, which is advanced (LAPI_DGSP_PACK).
    ///
    /// # Errors
    /// [`DgspError::PackSize`]; [`DgspError::Layout`] if a byte lies outside the memory.
    pub fn pack(
        &self,
        memory: &[u8],
        bytes: usize,
        packed: &mut [u8],
        position: &mut usize,
    ) -> Result<(), DgspError> {
        let range = self.range(bytes, *position, packed.len())?;
        let layout = self.repeated(bytes)?;
        layout.pack(memory, 0, 0, &mut packed[range]).map_err(DgspError::Layout)?;
        *position += bytes;
        Ok(())
    }

    /// Copies `bytes` bytes of `packed`, beginning at `position`, which is advanced, into `memory` (LAPI_DGSP_UNPACK).
    ///
    /// # Errors
    /// [`DgspError::PackSize`]; [`DgspError::Layout`] if a byte lies outside the memory, or is written twice.
    pub fn unpack(
        &self,
        packed: &[u8],
        position: &mut usize,
        memory: &mut [u8],
        bytes: usize,
    ) -> Result<(), DgspError> {
        let range = self.range(bytes, *position, packed.len())?;
        let layout = self.repeated(bytes)?;
        layout.unpack(&packed[range], 0, memory, 0).map_err(DgspError::Layout)?;
        *position += bytes;
        Ok(())
    }

    /// The part of a buffer of `len` bytes that a call packs into or unpacks from.
    fn range(&self, bytes: usize, position: usize, len: usize) -> Result<Range<usize>, DgspError> {
        match position.checked_add(bytes) {
            Some(end) if end <= len && (bytes == 0 || self.size() > 0) => Ok(position..end),
            _ => Err(DgspError::PackSize { bytes, position, len }),
        }
    }
}

/// A program that is being translated.
struct Program<'a> {
    code: &'a [DgspOp],
    depth: usize,
    /// The bodies that have been translated, by the place where they begin, with their own depth.
    bodies: Vec<Option<(Layout, usize)>>,
}

impl Program<'_> {
    /// Translates the body that begins at `start`, on this level of nesting. Returns it with its own depth.
    fn body(&mut self, start: usize, level: usize) -> Result<(Layout, usize), DgspError> {
        let known = self.bodies.get(start).cloned().flatten();
        let least = known.as_ref().map_or(1, |(_, depth)| *depth);
        if level + least > self.depth + 1 {
            return Err(DgspError::Stack { depth: self.depth });
        }
        if let Some(known) = known {
            return Ok(known);
        }
        let (mut parts, mut deepest) = (Vec::new(), 0);
        let mut at = start;
        // Each instruction of a body runs at most once, so a loop is a wrong branch.
        for _ in 0..self.code.len() {
            let code = self.code;
            let Some(op) = code.get(at) else { break };
            match op {
                DgspOp::Copy { bytes, offset } => {
                    parts.push((*offset, Layout::contiguous(*bytes).map_err(|e| self.refuse(e))?));
                    at += 1;
                }
                DgspOp::Mcopy(blocks) => {
                    let blocks = Layout::indexed(blocks.iter().copied());
                    parts.push((0, blocks.map_err(|error| self.refuse(error))?));
                    at += 1;
                }
                DgspOp::Gosub { to, ret, reps, offset, stride } => {
                    let Ok(reps) = usize::try_from(*reps) else {
                        return Err(DgspError::Reps { at, reps: *reps });
                    };
                    if [to, ret].iter().any(|&&place| place >= self.code.len()) {
                        return Err(DgspError::Branch { at });
                    }
                    let (body, depth) = self.body(*to, level + 1)?;
                    deepest = depth.max(deepest);
                    let runs = body.repeat(reps, *stride).map_err(|error| self.refuse(error))?;
                    parts.push((*offset, runs));
                    at = *ret;
                }
                DgspOp::Iterate { to } if *to == start => {
                    let layout = Layout::list(parts).map_err(|error| self.refuse(error))?;
                    self.bodies[start] = Some((layout.clone(), deepest + 1));
                    return Ok((layout, deepest + 1));
                }
                DgspOp::Iterate { .. } => return Err(DgspError::Branch { at }),
            }
        }
        Err(DgspError::Branch { at: at.min(self.code.len() - 1) })
    }

    fn refuse(&self, error: LayoutError) -> DgspError {
        match error {
            LayoutError::TooDeep => DgspError::Stack { depth: self.depth },
            LayoutError::TooLarge => DgspError::CopySize,
            other => DgspError::Layout(other),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn copy(bytes: usize, offset: isize) -> DgspOp {
        DgspOp::Copy { bytes, offset }
    }

    fn gosub(to: usize, ret: usize, reps: i64, offset: isize, stride: isize) -> DgspOp {
        DgspOp::Gosub { to, ret, reps, offset, stride }
    }

    fn iterate(to: usize) -> DgspOp {
        DgspOp::Iterate { to }
    }

    /// Runs a program by hand: the displacements of its bytes in order.
    fn run(code: &[DgspOp], start: usize, base: isize, bytes: &mut Vec<isize>) {
        let mut at = start;
        loop {
            match &code[at] {
                DgspOp::Copy { bytes: len, offset } => {
                    bytes.extend((0..*len as isize).map(|i| base + offset + i));
                    at += 1;
                }
                DgspOp::Mcopy(blocks) => {
                    for (offset, len) in blocks {
                        bytes.extend((0..*len as isize).map(|i| base + offset + i));
                    }
                    at += 1;
                }
                DgspOp::Gosub { to, ret, reps, offset, stride } => {
                    for i in 0..*reps as isize {
                        run(code, *to, base + offset + i * stride, bytes);
                    }
                    at = *ret;
                }
                DgspOp::Iterate { .. } => return,
            }
        }
    }

    proptest! {
        #[test]
        fn programs_do_what_their_instructions_say(
            blocks in proptest::collection::vec((0_isize..40, 0_usize..5), 0..4),
            reps in [0_i64..4, 0..4], offsets: [u8; 3], strides in [0_isize..50, 0..300],
            bytes in 0_usize..200,
        ) {
            let [a, b, c] = offsets.map(isize::from);
            let code = [
                copy(3, a),
                gosub(4, 2, reps[0], b, strides[1]),
                DgspOp::Mcopy(blocks.clone()),
                iterate(0),
                copy(1, 2),
                gosub(7, 6, reps[1], c, strides[0]),
                iterate(4),
                DgspOp::Mcopy(blocks),
                copy(2, 1),
                iterate(7),
            ];
            let extent = 10;
            let dgsp = Dgsp::register(&code, 3, extent).unwrap();
            let mut places = Vec::new();
            run(&code, 0, 0, &mut places);
            prop_assert_eq!(dgsp.size(), places.len());
            let repeated = (0..).flat_map(|round| places.iter().map(move |at| at + round * extent));
            let places: Vec<_> = repeated.take(bytes).collect();
            let memory: Vec<u8> = (0..8000_usize).map(|i| (i * 31 % 251) as u8).collect();
            let (mut packed, mut position) = (vec![0; bytes + 5], 2);
            dgsp.pack(&memory, bytes, &mut packed, &mut position).unwrap();
            prop_assert_eq!(position, bytes + 2);
            let expected: Vec<u8> = places.iter().map(|at| memory[*at as usize]).collect();
            prop_assert_eq!(&packed[2..bytes + 2], &expected[..]);
        }
    }

    /// Each level runs the next one twice: translated one by one, that would be 2^30 bodies.
    #[test]
    fn each_body_is_translated_once() {
        const LEVELS: usize = 30;
        let mut code = Vec::new();
        for level in 0..LEVELS {
            let (start, next) = (3 * level, 3 * level + 3);
            code.extend([gosub(next, start + 1, 1, 0, 0), gosub(next, start + 2, 1, 1, 0)]);
            code.push(iterate(start));
        }
        code.extend([copy(0, 0), iterate(3 * LEVELS)]);
        assert_eq!(Dgsp::register(&code, LEVELS + 1, 1).unwrap().size(), 0);
        let error = Dgsp::register(&code, LEVELS, 1).unwrap_err();
        assert_eq!(error, DgspError::Stack { depth: LEVELS });
    }

    #[test]
    fn what_was_packed_unpacks_to_its_place() {
        let code = [gosub(2, 1, 4, 3, 10), iterate(0), copy(2, 0), copy(1, 5), iterate(2)];
        let dgsp = Dgsp::register(&code, 2, 50).unwrap();
        assert_eq!((dgsp.size(), dgsp.extent()), (12, 50));
        let memory: Vec<u8> = (1..=100).collect();
        let (mut packed, mut position) = ([0; 20], 0);
        dgsp.pack(&memory, 20, &mut packed, &mut position).unwrap();
        let (mut back, mut position) = ([0; 100], 0);
        dgsp.unpack(&packed, &mut position, &mut back, 20).unwrap();
        let mut again = [0; 20];
        dgsp.pack(&back, 20, &mut again, &mut 0).unwrap();
        assert_eq!(again, packed);
        assert_eq!(back.iter().filter(|&&byte| byte != 0).count(), 20, "nothing else is written");
    }

    #[test]
    fn every_wrong_program_has_its_error() {
        let refusal = |code: &[DgspOp], depth| Dgsp::register(code, depth, 0).unwrap_err();
        assert_eq!(refusal(&[], 1), DgspError::Empty);
        let nested = [gosub(2, 1, 1, 0, 0), iterate(0), copy(1, 0), iterate(2)];
        assert_eq!(refusal(&nested, 1), DgspError::Stack { depth: 1 });
        assert_eq!(refusal(&nested, 0), DgspError::Stack { depth: 0 });
        let recursive = [gosub(0, 1, 1, 0, 0), iterate(0)];
        assert_eq!(refusal(&recursive, 100), DgspError::Stack { depth: 100 });
        let limit = DgspError::Stack { depth: Layout::MAX_DEPTH };
        assert_eq!(refusal(&recursive, usize::MAX), limit);
        assert_eq!(refusal(&[copy(1, 0)], 1), DgspError::Branch { at: 0 });
        assert_eq!(refusal(&[copy(1, 0), iterate(1)], 1), DgspError::Branch { at: 1 });
        let outside = [gosub(7, 1, 1, 0, 0), iterate(0)];
        assert_eq!(refusal(&outside, 2), DgspError::Branch { at: 0 });
        let endless = [copy(1, 0), gosub(2, 0, 1, 0, 0), iterate(2)];
        assert!(matches!(refusal(&endless, 2), DgspError::Branch { .. }));
        let negative = [gosub(1, 1, -1, 0, 0), iterate(0)];
        assert_eq!(refusal(&negative, 2), DgspError::Reps { at: 0, reps: -1 });
        assert_eq!(refusal(&[copy(usize::MAX, 0), iterate(0)], 1), DgspError::CopySize);
        let empty = Dgsp::register(&[iterate(0)], 1, 4).unwrap();
        let mut position = 0;
        let error = empty.pack(&[1; 8], 7, &mut [0; 8], &mut position).unwrap_err();
        assert_eq!((error, position), (DgspError::PackSize { bytes: 7, position: 0, len: 8 }, 0));
        let dgsp = Dgsp::register(&[copy(4, 0), iterate(0)], 1, 4).unwrap();
        let error = dgsp.pack(&[1; 8], 8, &mut [0; 8], &mut 1).unwrap_err();
        assert_eq!(error, DgspError::PackSize { bytes: 8, position: 1, len: 8 });
        let mut behind = usize::MAX;
        let error = dgsp.unpack(&[1; 8], &mut behind, &mut [0; 8], 1).unwrap_err();
        assert_eq!(error, DgspError::PackSize { bytes: 1, position: usize::MAX, len: 8 });
        assert!(matches!(
            dgsp.pack(&[1; 7], 8, &mut [0; 8], &mut 0),
            Err(DgspError::Layout(LayoutError::Outside { .. }))
        ));
    }
}
