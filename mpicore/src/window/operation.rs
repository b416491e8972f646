//! The operations of an origin: puts, gets and accumulates (MPI-4.1 section 12.3).

use mpjdev::{Call, Mode, RecvRegion, Request, SendRegion, Sink, Source, Status};

use super::batch::Short;
use super::direct::Direct;
use super::head::{Head, Kind, Shape};
use super::memory::append;
use super::network::Buffers;
use super::place::overlap;
use super::update::{Update, element_size, is_compared, is_kind_compared};
use super::{Exposed, Fetch, Flavor, State, Window, tag_of};
use crate::datatype::Datatype;
use crate::error::{Error, WindowError};
use crate::op::{ElementKind, Predefined};

/// The elements that an operation accesses at a rank.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The rank in the window.
    pub rank: u32,
    /// Where the elements begin, in the target's units, from the beginning of its window; in a dynamic window, an address.
    pub displacement: i64,
    /// The number of elements.
    pub count: i64,
    /// Their datatype.
    pub datatype: &'a Datatype,
}

/// From how many bytes on data are a message of their own.
pub(super) const LONG: usize = 16 << 10;

/// The most bytes that an accumulate of one block has in a message. Elements are updated one by one, so an operation may
/// be divided between any two, and short messages use the same memory again and again.
const PIECE: usize = 32 << 10;

/// How many bytes of messages a target may not have carried out yet when the next one is sent. It keeps so many for each
/// origin, if it waits for a lock or for long data.
const AHEAD: usize = 1 << 20;

/// What an operation is called, and whether it has a request.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub call: &'static str,
    pub has_request: bool,
}

/// The request of an operation that has begun, if it has one.
type Started = Option<Request>;

/// What an operation does at the target.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub kind: Kind,
    /// The bytes of an element, if all are alike: between two of them it may be divided.
    pub grain: Option<usize>,
    pub data: &'a [Source],
}

/// The displacement of a place in bytes, and its shape.
type Place = (i64, Shape);

impl Target<'_> {
    /// Returns the operation on the elements; without elements, none is refused.
    fn op(&self, op: Predefined) -> Predefined {
        if self.count == 0 || self.datatype.size() == 0 { Predefined::NoOp } else { op }
    }

    fn update(&self, op: Predefined) -> Result<Update, WindowError> {
        Update::new(self.op(op), self.datatype.signature())
    }

    fn grain(&self) -> Option<usize> {
        element_size(self.datatype.signature())
    }

    /// Returns the place, which a target with this memory has; `None` if it has no bytes.
    fn place(&self, exposed: Exposed, flavor: Flavor) -> Result<Option<Place>, Error> {
        let Exposed { size, unit } = exposed;
        let at = i128::from(self.displacement) * i128::from(unit);
        let (first, shape) = match self.datatype.span(self.count) {
            Some((first, len)) => (first, Shape::Block(len)),
            None => (0, Shape::Layout(self.datatype.layout(self.count)?)),
        };
        if shape.size() == 0 {
            return Ok(None);
        }
        let at = at + first as i128;
        let (low, high) = shape.bounds();
        let (low, high) = (at + low as i128, at + high as i128);
        let is_known = flavor != Flavor::Dynamic;
        let range = WindowError::Range { rank: self.rank, low, high, size };
        if is_known && (low < 0 || high > i128::from(size)) {
            return Err(range.into());
        }
        Ok(Some((i64::try_from(at).map_err(|_| range)?, shape)))
    }
}

impl Window {
    /// Writes bytes to the window of a rank, at a displacement in its units, by the short path: into memory that this rank
    /// accesses itself, in an epoch that is open. Returns whether it has begun, as by [`Window::put`], which otherwise
    /// decides what to do.
    #[inline]
    pub fn put_plain(&self, from: SendRegion, rank: u32, displacement: i64) -> bool {
        let Some(direct) = self.0.direct.as_ref().filter(|_| self.0.open.admits(rank)) else {
            return false;
        };
        match direct.is_remote(rank) {
            false => direct.store(from, rank, displacement),
            true => direct.begin_short(rank, displacement, Short::Put(from)).is_some(),
        }
    }

    /// Reads bytes like [`Window::put_plain`]. They are there when those of [`Window::get`] are.
    #[inline]
    pub fn get_plain(&self, into: RecvRegion, rank: u32, displacement: i64) -> bool {
        let Some(direct) = &self.0.direct else { return false };
        if !self.0.open.admits(rank) {
            return false;
        }
        match direct.is_remote(rank) {
            false => direct.load(into, rank, displacement),
            true => direct.begin_short(rank, displacement, Short::Get(into)).is_some(),
        }
    }

    /// Combines elements of one kind, and gets what was there, like [`Window::put_plain`]. Without `from`, the operation is
    /// [`Predefined::NoOp`]. `None` if another path must decide.
    #[inline]
    pub fn combine_plain(
        &self,
        (from, into): (Option<SendRegion>, Option<RecvRegion>),
        (op, kind): (Predefined, ElementKind),
        rank: u32,
        displacement: i64,
    ) -> Option<Result<(), Error>> {
        let direct = self.0.direct.as_ref().filter(|_| self.0.open.admits(rank))?;
        let update = Update::plain(op, kind)?;
        let len = from.map(|from| from.len()).or(into.as_ref().map(RecvRegion::len))?;
        let to = (rank, displacement);
        if direct.is_remote(rank) {
            let from = from.filter(|_| into.is_none())?;
            return direct.begin_short(rank, displacement, Short::Update(update, from)).map(Ok);
        }
        match len {
            4 => return self.combine_number::<4>(direct, to, update, (from, into)),
            8 => return self.combine_number::<8>(direct, to, update, (from, into)),
            _ => {}
        }
        let shape = Shape::Block(len);
        let place = direct.plain_place(rank, displacement, &shape)?;
        if into.as_ref().is_some_and(|into| from.is_some_and(|from| overlap(from, into))) {
            return None;
        }
        let from = from.unwrap_or(SendRegion::EMPTY);
        Some(self.0.combine_block(direct, rank, place, update, (from, into)))
    }

    /// Replaces one element like [`Window::compare_and_swap`], by the short path. `None` if another path must decide.
    #[inline]
    pub fn swap_plain(
        &self,
        (from, compare, into): (SendRegion, SendRegion, RecvRegion),
        kind: ElementKind,
        rank: u32,
        displacement: i64,
    ) -> Option<Result<(), Error>> {
        let direct = self.0.direct.as_ref().filter(|_| self.0.open.admits(rank))?;
        let is_one = [from.len(), compare.len(), into.len()].iter().all(|len| *len == kind.size());
        if !is_one || !is_kind_compared(kind) || kind.size() != kind.extent() {
            return None;
        }
        let to = (rank, displacement);
        match kind.size() {
            4 => self.swap_number::<4>(direct, to, (from, compare, into)),
            8 => self.swap_number::<8>(direct, to, (from, compare, into)),
            _ => None,
        }
    }

    #[inline]
    fn combine_number<const BYTES: usize>(
        &self,
        direct: &Direct,
        to: (u32, i64),
        update: Update,
        (from, into): (Option<SendRegion>, Option<RecvRegion>),
    ) -> Option<Result<(), Error>> {
        let given = from.map_or([0; BYTES], number);
        let combined = |mut now: [u8; BYTES]| {
            update.apply(&given, &mut now);
            update.needs_data().then_some(now)
        };
        self.0.change_number(direct, to, combined, into)
    }

    #[inline]
    fn swap_number<const BYTES: usize>(
        &self,
        direct: &Direct,
        to: (u32, i64),
        (from, compare, into): (SendRegion, SendRegion, RecvRegion),
    ) -> Option<Result<(), Error>> {
        let (given, compared) = (number::<BYTES>(from), number(compare));
        self.0.change_number(direct, to, |now| (now == compared).then_some(given), Some(into))
    }
}

/// Returns the bytes of a number that an origin gives.
#[inline(always)]
fn number<const BYTES: usize>(from: SendRegion) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    from.foreign().copy_to(&mut bytes);
    bytes
}

/// An operation with and without a request.
macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident, $with_request:ident($($arg:ident: $ty:ty),*) = $inner:ident;)*) => {
        impl Window {$(
            $(#[$doc])*
            pub fn $name(&self, $($arg: $ty,)* target: Target<'_>) -> Result<(), Error> {
                self.$inner(Form { call: stringify!($name), has_request: false }, $($arg,)* target).map(drop)
            }

            /// The same with a request, inside of a lock only. The request ends when the buffers are free, and results
            /// are there.
            ///
            /// # Errors
            /// As without a request.
            pub fn $with_request(&self, $($arg: $ty,)* target: Target<'_>) -> Result<Request, Error> {
                let form = Form { call: stringify!($with_request), has_request: true };
                Ok(self.$inner(form, $($arg,)* target)?.ok_or(mpjdev::Error::Request)?)
            }
        )*}
    };
}

forms! {
    /// Writes elements to the window of a rank: MPI_Put. The origin's buffer is in use until the call that ends the epoch
    /// has returned, or a flush.
    ///
    /// # Errors
    /// [`WindowError::Sync`], [`WindowError::Range`], [`WindowError::Lengths`]; [`Error::Group`] if there is no such rank;
    /// [`Error::Datatype`]; the loss of the target; what made the device unusable.
    put, rput(from: Source) = start_put;
    /// Reads elements of the window of a rank: MPI_Get. They are there after the call that ends the epoch, or a flush.
    ///
    /// # Errors
    /// As [`Window::put`].
    get, rget(into: Sink) = start_get;
    /// Combines elements with those in the window of a rank: MPI_Accumulate. Each element is updated at once.
    ///
    /// # Errors
    /// As [`Window::put`]; [`WindowError::Elements`].
    accumulate, raccumulate(from: Source, op: Predefined) = start_accumulate;
    /// Combines elements with those in the window of a rank, and gets what was there: MPI_Get_accumulate,
    /// MPI_Fetch_and_op. With [`Predefined::NoOp`], `from` is not used.
    ///
    /// # Errors
    /// As [`Window::accumulate`].
    get_accumulate, rget_accumulate(from: Source, into: Sink, op: Predefined) = start_get_accumulate;
}

impl Window {
    /// Replaces one element in the window of a rank if it is equal to `compare`, and gets what was there:
    /// MPI_Compare_and_swap.
    ///
    /// # Errors
    /// As [`Window::put`]; [`WindowError::NotCompared`].
    pub fn compare_and_swap(
        &self,
        from: Source,
        compare: Source,
        into: Sink,
        target: Target<'_>,
    ) -> Result<(), Error> {
        if !is_compared(target.datatype) {
            return Err(WindowError::NotCompared.into());
        }
        let form = Form { call: "compare_and_swap", has_request: false };
        let lens = [from.len(), compare.len(), into.len()];
        let data = &[compare, from];
        let work = Work { kind: Kind::CompareAndSwap, grain: None, data };
        self.begin(form, work, Some(into), (target, &lens)).map(drop)
    }

    fn start_put(&self, form: Form, from: Source, target: Target<'_>) -> Result<Started, Error> {
        let lens = [from.len()];
        let work = Work { kind: Kind::Put, grain: None, data: &[from] };
        self.begin(form, work, None, (target, &lens))
    }

    fn start_get(&self, form: Form, into: Sink, target: Target<'_>) -> Result<Started, Error> {
        let lens = [into.len()];
        let work = Work { kind: Kind::Get, grain: None, data: &[] };
        self.begin(form, work, Some(into), (target, &lens))
    }

    fn start_accumulate(
        &self,
        form: Form,
        from: Source,
        op: Predefined,
        target: Target<'_>,
    ) -> Result<Started, Error> {
        let (kind, grain, lens) =
            (Kind::Accumulate(target.update(op)?), target.grain(), [from.len()]);
        match target.op(op) {
            Predefined::NoOp => {
                self.begin(form, Work { kind, grain, data: &[] }, None, (target, &[]))
            }
            _ => self.begin(form, Work { kind, grain, data: &[from] }, None, (target, &lens)),
        }
    }

    fn start_get_accumulate(
        &self,
        form: Form,
        from: Source,
        into: Sink,
        op: Predefined,
        target: Target<'_>,
    ) -> Result<Started, Error> {
        let (kind, grain) = (Kind::GetAccumulate(target.update(op)?), target.grain());
        let lens = [into.len(), from.len()];
        let (data, lens) = match target.op(op) {
            Predefined::NoOp => (&[][..], &lens[..1]),
            _ => (&[from][..], &lens[..]),
        };
        self.begin(form, Work { kind, grain, data }, Some(into), (target, lens))
    }

    /// Begins an operation. The lengths of its data, and of the place for results, are `lens`.
    fn begin(
        &self,
        form: Form,
        work: Work<'_>,
        into: Option<Sink>,
        (target, lens): (Target<'_>, &[usize]),
    ) -> Result<Started, Error> {
        let (window, Work { kind, data, .. }) = (&self.0, work);
        let exposed = window.exposed(target.rank)?;
        let place = target.place(exposed, window.flavor)?;
        let size = place.as_ref().map_or(0, |(_, shape)| shape.size());
        if let Some(&origin) = lens.iter().find(|len| **len != size) {
            return Err(WindowError::Lengths { origin, target: size }.into());
        }
        if form.has_request || !window.open.admits(target.rank) {
            window.epochs(|epochs| epochs.check(form.call, target.rank, form.has_request))?;
        }
        let Some((displacement, shape)) = place else { return self.ended(form) };
        if kind != Kind::Get && !shape.is_disjoint() {
            return Err(WindowError::Overlap.into());
        }
        // What a request fetches is there when it has ended, whatever follows.
        if window.log.is_some() && !(form.has_request && into.is_some()) {
            let is_passive = window.epochs(|epochs| epochs.is_passive());
            let ranks = (self.rank(), target.rank);
            let place = (displacement, &shape);
            let noted =
                window.log().map(|mut log| log.note((form.call, kind), ranks, place, is_passive));
            noted.unwrap_or(Ok(())).map_err(|conflict| Error::Conflict(Box::new(conflict)))?;
        }
        if let Some(direct) = &window.direct {
            // All locks have been asked for.
            if !window.open.admits(target.rank) {
                window.epochs(|epochs| epochs.operate(form.call, target.rank, form.has_request))?;
            }
            if window.communicator.device().is_fork() {
                // The error says so.
                window.communicator.device().progress()?;
            }
            let place = direct.place(target.rank, displacement, &shape);
            window.carry_out_at(direct, target.rank, work, place, into)?;
            return self.ended(form);
        }
        let is_known = window.flavor != Flavor::Dynamic;
        match (kind, &shape) {
            (Kind::Put | Kind::Get, &Shape::Block(len)) if is_known => {
                return self.begin_block(form, work, into, (target.rank, displacement, len));
            }
            (Kind::Accumulate(_), &Shape::Block(len)) if len > PIECE && !data.is_empty() => {
                if let Some(grain) = work.grain.filter(|grain| *grain <= PIECE) {
                    let place = (displacement, len);
                    return self.begin_in_pieces(form, (kind, grain, &data[0]), target.rank, place);
                }
            }
            _ => {}
        }
        self.begin_by_message(form, work, into, (target.rank, displacement, &shape))
    }

    /// Begins a put or get of one block at the target.
    fn begin_block(
        &self,
        form: Form,
        work: Work<'_>,
        into: Option<Sink>,
        (rank, displacement, len): (u32, i64, usize),
    ) -> Result<Started, Error> {
        let from = work.data.first().cloned();
        let buffers = match into {
            Some(into) => Buffers::Get(into),
            None => Buffers::Put(from.clone().unwrap_or(SendRegion::EMPTY.into())),
        };
        let place = displacement..displacement + len as i64;
        let into = match self.0.begin_by_network(form, buffers, rank, place)? {
            Ok(started) => return Ok(started),
            Err(Buffers::Get(into)) => Some(into),
            Err(Buffers::Put(_)) => None,
        };
        match len >= LONG {
            true => self.begin_long(form, (from, into), rank, (displacement, len)),
            false => {
                let to = (rank, displacement, &Shape::Block(len));
                self.begin_by_message(form, work, into, to)
            }
        }
    }

    /// Begins an operation by one message, which has its data.
    fn begin_by_message(
        &self,
        form: Form,
        Work { kind, data, .. }: Work<'_>,
        into: Option<Sink>,
        (rank, displacement, shape): (u32, i64, &Shape),
    ) -> Result<Started, Error> {
        let window = &self.0;
        let words = shape.words()?;
        let len = data.iter().map(Source::len).sum();
        let mut message = Head::new(kind, 0, displacement).message(&words, len);
        data.iter().try_for_each(|data| append(&mut message, data))?;
        let is_fetch = into.is_some();
        let (request, ending) = match form.has_request && is_fetch {
            true => {
                let (device, peer) = (window.communicator.device(), self.group().job_rank(rank)?);
                let context = window.communicator.context();
                let (request, ending) = device.begin_with(Call::Rget, context, 0, peer as usize)?;
                (Some(request), Some(ending))
            }
            false => (None, None),
        };
        let fetch = is_fetch.then_some(Fetch { into, ending });
        let mut answers = is_fetch;
        let number = self.admit(form, rank, message.len(), |state, number| {
            // Nobody waits for answers of targets after [`Window::start`].
            let awaits = !state.epochs.is_started();
            let peer = &mut state.peers[rank as usize];
            peer.open.extend(is_fetch.then_some(number));
            // The answer to another one is under way otherwise, or this is one of many.
            answers |= awaits && peer.done + 1 == number;
            if answers {
                (peer.asked, peer.is_open) = (number, false);
                peer.awaited.extend((!is_fetch).then_some(number));
            }
            state.gets.extend(fetch.map(|fetch| ((rank, number), fetch)));
        })?;
        Head::set_number(&mut message, number, answers && !is_fetch);
        window.post(rank, message)?;
        if is_fetch { Ok(request) } else { self.ended(form) }
    }

    /// Begins a put or get of long data, which the device moves (OW2).
    fn begin_long(
        &self,
        form: Form,
        (from, into): (Option<Source>, Option<Sink>),
        rank: u32,
        (displacement, len): (i64, usize),
    ) -> Result<Started, Error> {
        let (window, peer) = (&self.0, self.group().job_rank(rank)? as usize);
        let (device, context) = (window.communicator.device(), window.transfers());
        let number = self.admit(form, rank, 0, |state, number| {
            state.peers[rank as usize].open.insert(number);
            state.transfers += 1;
        })?;
        let kind = if from.is_some() { Kind::LongPut } else { Kind::LongGet };
        let tag = tag_of(number, kind);
        let begun = match from {
            Some(from) => device.isend(from, peer, tag, context, Mode::Standard),
            None => device.irecv(into.unwrap_or(Sink::EMPTY), Some(peer), Some(tag), context),
        };
        let request = match begun {
            Ok(request) => request,
            Err(error) => {
                window.ended_transfer(Some((rank, number)));
                // The target carries out no later message without one of this number.
                window.post(rank, Head::alone(Kind::Flush, number))?;
                return Err(error.into());
            }
        };
        let (request, ended) = match form.has_request {
            true => {
                let ended = device.join([&request])?;
                (Some(request), ended)
            }
            false => (None, request),
        };
        let of = window.clone();
        device.then(ended, move |_| of.ended_transfer(Some((rank, number))))?;
        window.post(rank, Head::new(kind, number, displacement).message(&[len as u64], 0))?;
        Ok(request)
    }

    /// Begins an accumulate of one block by several messages.
    fn begin_in_pieces(
        &self,
        form: Form,
        (kind, grain, from): (Kind, usize, &Source),
        rank: u32,
        (displacement, len): (i64, usize),
    ) -> Result<Started, Error> {
        let most = PIECE / grain * grain;
        for at in (0..len).step_by(most) {
            let piece = most.min(len - at);
            let from = match from.span() {
                Some(region) => region.part(at, piece).into(),
                None => from.piece(at, piece).to_vec().into(),
            };
            let head = Head::new(kind, 0, displacement + at as i64);
            let mut message = head.message(&[piece as u64], piece);
            append(&mut message, &from)?;
            let number = self.admit(form, rank, message.len(), |_, _| ())?;
            Head::set_number(&mut message, number, false);
            self.0.post(rank, message)?;
        }
        self.ended(form)
    }

    /// Gives an operation its number, after the message that asks for the lock if it needs one. `begin` notes it. `bytes` is
    /// the length of its message: waits until the target has carried out enough of those before it.
    fn admit(
        &self,
        form: Form,
        rank: u32,
        bytes: usize,
        begin: impl FnOnce(&mut State, u64),
    ) -> Result<u64, Error> {
        if self.0.state().peers[rank as usize].ahead > AHEAD {
            let number = self.0.ask(rank, Kind::Flush)?;
            self.0.settle_up_to(Call::WinFlush, rank, number)?;
            self.0.state().peers[rank as usize].ahead = 0;
        }
        self.0.end_accesses(Call::WinFlush, rank)?;
        let mut state = self.0.state();
        let asks = state.epochs.operate(form.call, rank, form.has_request)?;
        let peer = &mut state.peers[rank as usize];
        peer.ahead += bytes;
        let asked = asks.then(|| peer.next());
        let number = peer.next();
        peer.is_open = true;
        begin(&mut state, number);
        drop(state);
        if let Some(number) = asked {
            let lock = Kind::Lock { exclusive: false, answers: self.0.reaches(rank) };
            self.0.post(rank, Head::alone(lock, number))?;
        }
        Ok(number)
    }

    /// Returns an operation that has ended.
    fn ended(&self, form: Form) -> Result<Started, Error> {
        if !form.has_request {
            return Ok(None);
        }
        let device = self.0.communicator.device();
        let (request, ending) = device.begin(Call::Other, self.0.communicator.context(), 0)?;
        device.end(ending, Ok(Status::new(0, 0, 0)));
        Ok(Some(request))
    }
}
