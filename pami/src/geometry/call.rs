//! What a collective is to do, and the rounds of one member: those of `mpicore`'s schedules, and of what is composed of
//! them.
//!
//! Members know all lengths, so nothing has to be said before the data. Lengths are in bytes.

use std::collections::VecDeque;
use std::ops::Range;
use std::slice::from_ref;

use mpicore::collective::{
    Blocks, Buffer, CollectiveError, Exchange, Local, Member, Message, Operands, Order, Part,
    Place, Scratch, allgather, allgatherv, allreduce, alltoall, barrier, bcast, divided_bcast,
    exscan, gather, gatherv, reduce, reduce_scatter, scan, scatter, scatterv,
};
use mpicore::op::{ElementKind, Op, Predefined, UserOp, reduce_local};

use crate::algorithm::{Algorithm, Need, Xfer};
use crate::error::Error;

/// How a reduction combines elements (op, data_cookie and commutative).
#[derive(Debug, Clone)]
pub struct Reduction {
    op: Op,
    kind: ElementKind,
    size: usize,
}

impl Reduction {
    /// One of the operations of PAMI, such as PAMI_DATA_SUM, on elements of a kind.
    ///
    /// # Errors
    /// [`Error::Op`] if it is not defined on them.
    pub fn of(op: Predefined, kind: ElementKind) -> Result<Self, Error> {
        let op = Op::from(op);
        op.check(kind)?;
        Ok(Self { op, kind, size: kind.extent() })
    }

    /// A data function: it gets elements of lower members, and those of higher ones, which its results replace, as many as
    /// it likes of `size` bytes each. It is associative; `commutes` says whether the order matters.
    ///
    /// # Panics
    /// If elements have no bytes.
    pub fn function(
        size: usize,
        commutes: bool,
        combine: impl Fn(&[u8], &mut [u8]) + Send + Sync + 'static,
    ) -> Self {
        assert!(size > 0, "elements have bytes");
        let op = UserOp::new(commutes, move |from, into, _, _| combine(from, into)).into();
        Self { op, kind: ElementKind::Byte, size }
    }

    pub(crate) fn combine(&self, from: &[u8], into: &mut [u8]) {
        reduce_local(&self.op, self.kind, from, into).expect("the call was checked");
    }
}

/// A collective with its arguments (pami_xfer_type_t and pami_collective_t), which all members give alike. Roots are
/// ranks in the geometry. Blocks of equal length lie one after another in the order of ranks; others are the ranges of
/// the buffer, one for each rank.
///
/// Active-message collectives are begun by one member, the root, alone. The others only have the dispatch, see
/// [`Section::amcollective_dispatch_set`](crate::Section::amcollective_dispatch_set).
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names are PAMI's, and those of their arguments")]
pub enum Collective {
    /// No member ends before all have begun.
    Barrier,
    /// All members get the root's data.
    Broadcast { root: usize, len: usize },
    /// All members get what the operands of all are combined to.
    Allreduce { len: usize, op: Reduction },
    /// The root gets it.
    Reduce { root: usize, len: usize, op: Reduction },
    /// Each member gets what the operands of those up to it are combined to. If exclusive, its own are left out, and
    /// rank 0 has no result.
    Scan { len: usize, op: Reduction, exclusive: bool },
    /// Each member gets its part of what the operands of all are combined to.
    ReduceScatter { lens: Vec<usize>, op: Reduction },
    /// All members get the blocks of all.
    Allgather { block: usize },
    /// The same with blocks that differ.
    Allgatherv { blocks: Vec<Range<usize>> },
    /// Each member gets its block of the root's.
    Scatter { root: usize, block: usize },
    /// The same with blocks that differ.
    Scatterv { root: usize, blocks: Vec<Range<usize>> },
    /// The root gets the blocks of all.
    Gather { root: usize, block: usize },
    /// The same with blocks that differ.
    Gatherv { root: usize, blocks: Vec<Range<usize>> },
    /// Each member has a block for each.
    Alltoall { block: usize },
    /// These differ between members: what one sends is as long as what the other receives.
    Alltoallv { send: Vec<Range<usize>>, receive: Vec<Range<usize>> },
    /// Every member gets header and data.
    Ambroadcast { dispatch: usize, header: Vec<u8>, len: usize },
    /// Every member gets its header and its block.
    Amscatter { dispatch: usize, headers: Vec<Vec<u8>>, block: usize },
    /// Every member gets its header, and answers with its block.
    Amgather { dispatch: usize, headers: Vec<Vec<u8>>, block: usize },
    /// Every member gets the header, and answers with its operands.
    Amreduce { dispatch: usize, header: Vec<u8>, len: usize, op: Reduction },
}

/// The arguments of any collective in one form.
#[derive(Clone, Copy, Default)]
pub(crate) struct Arguments<'a> {
    root: Option<usize>,
    /// Bytes of the data, or of a block.
    len: usize,
    /// How it combines elements, if it does.
    pub op: Option<&'a Reduction>,
    /// Blocks that differ.
    blocks: [&'a [Range<usize>]; 2],
    /// Parts that differ.
    lens: &'a [usize],
    /// The dispatch of an active-message collective, and the header of all or those of each member.
    pub active: Option<(usize, &'a [Vec<u8>])>,
}

/// What a member has and gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of its input.
    pub input: usize,
    /// Bytes of its output.
    pub output: usize,
    /// The parts of its output that are results.
    pub results: Vec<Range<usize>>,
}

/// The messages of a round, and what follows them: see [`mpicore::collective::Round`].
type Round = (Vec<Message>, Vec<Local>);

/// What a member does.
pub(crate) struct Plan {
    /// The rounds that have not begun.
    pub rounds: VecDeque<Round>,
    /// Bytes of an element, in which places are counted.
    pub unit: usize,
    /// Bytes of temporary memory.
    pub scratch: usize,
}

impl<'a> Arguments<'a> {
    fn combining(self, op: &'a Reduction) -> Self {
        Self { op: Some(op), ..self }
    }

    /// Bytes of an element.
    fn unit(&self) -> usize {
        self.op.map_or(1, |op| op.size)
    }
}

impl Collective {
    /// Returns its type and its arguments.
    pub(crate) fn arguments(&self) -> (Xfer, Arguments<'_>) {
        let of = |len: &usize| Arguments { len: *len, ..Arguments::default() };
        let rooted = |root: &usize, len| Arguments { root: Some(*root), ..of(len) };
        let listed = |root, blocks| Arguments { root, blocks, ..Arguments::default() };
        let active =
            |id: &usize, headers, len| Arguments { active: Some((*id, headers)), ..of(len) };
        match self {
            Self::Barrier => (Xfer::Barrier, of(&0)),
            Self::Broadcast { root, len } => (Xfer::Broadcast, rooted(root, len)),
            Self::Allreduce { len, op } => (Xfer::Allreduce, of(len).combining(op)),
            Self::Reduce { root, len, op } => (Xfer::Reduce, rooted(root, len).combining(op)),
            Self::Scan { len, op, .. } => (Xfer::Scan, of(len).combining(op)),
            Self::ReduceScatter { lens, op } => {
                (Xfer::ReduceScatter, Arguments { lens, ..of(&0) }.combining(op))
            }
            Self::Allgather { block } => (Xfer::Allgather, of(block)),
            Self::Allgatherv { blocks } => (Xfer::Allgatherv, listed(None, [blocks, &[]])),
            Self::Scatter { root, block } => (Xfer::Scatter, rooted(root, block)),
            Self::Scatterv { root, blocks } => (Xfer::Scatterv, listed(Some(*root), [blocks, &[]])),
            Self::Gather { root, block } => (Xfer::Gather, rooted(root, block)),
            Self::Gatherv { root, blocks } => (Xfer::Gatherv, listed(Some(*root), [blocks, &[]])),
            Self::Alltoall { block } => (Xfer::Alltoall, of(block)),
            Self::Alltoallv { send, receive } => (Xfer::Alltoallv, listed(None, [send, receive])),
            Self::Ambroadcast { dispatch, header, len } => {
                (Xfer::Ambroadcast, active(dispatch, from_ref(header), len))
            }
            Self::Amscatter { dispatch, headers, block } => {
                (Xfer::Amscatter, active(dispatch, headers, block))
            }
            Self::Amgather { dispatch, headers, block } => {
                (Xfer::Amgather, active(dispatch, headers, block))
            }
            Self::Amreduce { dispatch, header, len, op } => {
                (Xfer::Amreduce, active(dispatch, from_ref(header), len).combining(op))
            }
        }
    }

    /// Returns its type.
    pub fn xfer(&self) -> Xfer {
        self.arguments().0
    }

    /// Returns the number of bytes by which its algorithm is chosen: that of the data, or of a block; of blocks that
    /// differ, the longest one.
    pub fn size(&self) -> u64 {
        let (_, Arguments { len, blocks: [some, others], lens, .. }) = self.arguments();
        let blocks = some.iter().chain(others).map(Range::len);
        blocks.chain(lens.iter().copied()).fold(len, usize::max) as u64
    }

    /// Returns the number of elements that members divide among themselves, if the algorithm does that.
    pub(super) fn elements(&self) -> u64 {
        self.size() / self.arguments().1.unit() as u64
    }

    /// Refuses arguments that no geometry of so many members can have.
    fn check(&self, members: usize) -> Result<(), Error> {
        let (xfer, arguments) = self.arguments();
        let Arguments { root, op, blocks: [some, others], lens, active, .. } = arguments;
        if let Some(root) = root.filter(|root| *root >= members) {
            return Err(CollectiveError::Root { root: root as i64, size: members as u32 }.into());
        }
        let headers = active.map_or(members, |(_, headers)| headers.len());
        let given: &[usize] = match xfer {
            Xfer::Allgatherv | Xfer::Scatterv | Xfer::Gatherv => &[some.len()],
            Xfer::Alltoallv => &[some.len(), others.len()],
            Xfer::ReduceScatter => &[lens.len()],
            Xfer::Amscatter | Xfer::Amgather => &[headers],
            _ => &[],
        };
        if let Some(&given) = given.iter().find(|given| **given != members) {
            return Err(CollectiveError::Entries { given, size: members as u32 }.into());
        }
        if let Some(block) = some.iter().chain(others).find(|block| block.start > block.end) {
            return Err(Error::Reversed { start: block.start, end: block.end });
        }
        let Some(size) = op.map(|op| op.size) else { return Ok(()) };
        let mut lens = lens.iter().copied().chain([arguments.len]);
        let partial = lens.find(|len| len % size != 0);
        partial.map_or(Ok(()), |len| Err(Error::Elements { len, size }))
    }

    /// Checks the arguments, and returns what a member has and gets.
    ///
    /// # Errors
    /// [`Error::Reversed`], [`Error::Elements`], [`Error::Collective`].
    pub(crate) fn shape(&self, rank: usize, members: usize) -> Result<Shape, Error> {
        self.check(members)?;
        let (xfer, Arguments { root, len, blocks: [some, others], lens, .. }) = self.arguments();
        let at_root = |len: usize| if root == Some(rank) { len } else { 0 };
        let own = |blocks: &[Range<usize>]| blocks.get(rank).map_or(len, Range::len);
        let all = |blocks: &[Range<usize>]| match blocks.iter().map(|block| block.end).max() {
            Some(end) => Ok(end),
            None => len
                .checked_mul(members)
                .ok_or(CollectiveError::Count { count: len as u64, blocks: members as u32 }),
        };
        let (input, output) = match xfer {
            Xfer::Barrier => (0, 0),
            Xfer::Broadcast => (at_root(len), len),
            Xfer::Allreduce | Xfer::Scan => (len, len),
            Xfer::Reduce => (len, at_root(len)),
            Xfer::ReduceScatter => {
                (lens.iter().copied().fold(0, usize::saturating_add), lens[rank])
            }
            Xfer::Allgather | Xfer::Allgatherv => (own(some), all(some)?),
            Xfer::Scatter | Xfer::Scatterv => (at_root(all(some)?), own(some)),
            Xfer::Gather | Xfer::Gatherv => (own(some), at_root(all(some)?)),
            Xfer::Alltoall | Xfer::Alltoallv => (all(some)?, all(others)?),
            Xfer::Ambroadcast => (len, 0),
            Xfer::Amscatter => (all(&[])?, 0),
            Xfer::Amgather => (0, all(&[])?),
            // What the initiator receives is that of all.
            Xfer::Amreduce => (0, all(&[]).map(|_| len)?),
        };
        let results = match self {
            Self::Scan { exclusive: true, .. } if rank == 0 => Vec::new(),
            Self::Allgatherv { blocks } | Self::Alltoallv { receive: blocks, .. } => blocks.clone(),
            Self::Gatherv { root, blocks } if rank == *root => blocks.clone(),
            _ => vec![0..output; 1],
        };
        Listed::of(&results).blocks().check_apart()?;
        Ok(Shape { input, output, results })
    }

    /// Returns the rounds of a member by an algorithm, which fits. The member knows the hosts if the algorithm needs
    /// them.
    pub(crate) fn plan(
        &self,
        algorithm: Algorithm,
        member: Member<'_>,
    ) -> Result<Plan, CollectiveError> {
        let (xfer, arguments) = self.arguments();
        let Arguments { len, op, blocks: [some, others], lens, .. } = arguments;
        let (need, is_direct) = (algorithm.need(), algorithm.metadata().name == "direct");
        let (unit, root) = (arguments.unit(), arguments.root.unwrap_or(0) as u32);
        let (operands, count) = (Operands::Input, (len / unit) as u64);
        let [some, others] = [some, others].map(Listed::of);
        let (blocks, own) = match some.counts.get(member.rank() as usize) {
            Some(own) => (some.blocks(), Some(*own)),
            None => (Blocks::Equal { count }, Some(count)),
        };
        let schedule = match xfer {
            Xfer::Barrier => Ok(barrier(member)),
            Xfer::Broadcast if need == Need::Share => divided_bcast(member, root, count),
            Xfer::Broadcast => bcast(member, root, count),
            Xfer::Allreduce if need == Need::Share => {
                allreduce(member, count, operands, Exchange::Halves)
            }
            Xfer::Allreduce => allreduce(member, count, operands, Exchange::Whole),
            Xfer::Reduce if op.is_some_and(|op| op.op.commutes()) => {
                reduce(member, root, count, operands, Order::Free)
            }
            Xfer::Reduce => reduce(member, root, count, operands, Order::Ranks),
            Xfer::Scan if matches!(self, Self::Scan { exclusive: true, .. }) => {
                exscan(member, count, operands)
            }
            Xfer::Scan => scan(member, count, operands),
            Xfer::ReduceScatter => {
                let counts: Vec<_> = lens.iter().map(|len| (len / unit) as u64).collect();
                reduce_scatter(member, &counts, operands)
            }
            Xfer::Allgather if need != Need::Nothing => allgather(member, Some(count), count),
            Xfer::Allgather | Xfer::Allgatherv => allgatherv(member, own, blocks),
            Xfer::Scatter if !is_direct => scatter(member, root, count, own),
            Xfer::Scatter | Xfer::Scatterv => scatterv(member, root, blocks, own),
            Xfer::Gather if !is_direct => gather(member, root, own, count),
            Xfer::Gather | Xfer::Gatherv => gatherv(member, root, own, blocks),
            Xfer::Alltoall => alltoall(member, Some(blocks), blocks),
            Xfer::Alltoallv => alltoall(member, Some(blocks), others.blocks()),
            Xfer::Ambroadcast | Xfer::Amscatter => {
                return Ok(Plan { rounds: VecDeque::new(), unit, scratch: 0 });
            }
            Xfer::Amgather => {
                let messages = answers(member, Buffer::Output, len);
                return Ok(Plan { rounds: [(messages, Vec::new())].into(), unit, scratch: 0 });
            }
            Xfer::Amreduce => return Ok(combined_answers(member, len, unit)),
        }?;
        let (Scratch::Elements { count, .. } | Scratch::Operands { count }) = schedule.scratch()
        else {
            unreachable!("no block has a datatype of its own")
        };
        let rounds = schedule.rounds();
        let rounds = rounds.map(|round| (round.messages.to_vec(), round.local.to_vec())).collect();
        Ok(Plan { rounds, unit, scratch: count as usize * unit })
    }
}

/// Blocks in the form in which schedules take them.
struct Listed {
    counts: Vec<u64>,
    displacements: Vec<i64>,
}

impl Listed {
    fn of(blocks: &[Range<usize>]) -> Self {
        let counts = blocks.iter().map(|block| block.len() as u64).collect();
        let first = |block: &Range<usize>| i64::try_from(block.start).unwrap_or(i64::MAX);
        Self { counts, displacements: blocks.iter().map(first).collect() }
    }

    fn blocks(&self) -> Blocks<'_> {
        Blocks::Listed { counts: &self.counts, displacements: &self.displacements }
    }
}

/// The place of elements from `first` on.
fn place(buffer: Buffer, first: usize, count: usize) -> Place {
    Place { buffer, part: Part::Elements { first: first as i64, count: count as u64 } }
}

/// What the initiator of an active-message collective receives: a block of each member, itself included.
fn answers(member: Member<'_>, buffer: Buffer, block: usize) -> Vec<Message> {
    let into = |peer: u32| place(buffer, peer as usize * block, block);
    (0..member.size()).map(|peer| Message::Receive { peer, into: into(peer) }).collect()
}

/// Likewise; all are combined in the order of ranks.
fn combined_answers(member: Member<'_>, len: usize, unit: usize) -> Plan {
    let (size, count) = (member.size() as usize, len / unit);
    let operands = |rank: usize| place(Buffer::Scratch, rank * count, count);
    let reduce = |rank| Local::Reduce { from: operands(rank), into: operands(size - 1) };
    let copy = Local::Copy { from: operands(size - 1), into: place(Buffer::Output, 0, count) };
    let local = (0..size - 1).rev().map(reduce).chain([copy]).collect();
    let rounds = [(answers(member, Buffer::Scratch, count), local)].into();
    Plan { rounds, unit, scratch: size * len }
}
