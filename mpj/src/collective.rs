//! Collective calls (MPI-4 chapter 6). Their messages have a context of their own, so they never
//! match a receive of the program, and the number of the call as their tag: in one call, each rank sends another one
//! at most one message.

use mpjdev::{Call, Mode, Within};

use crate::communicator::Communicator;
use crate::error::Error;
use crate::point_to_point::{recv_region, send_region};

/// Ranks of a group in a barrier by groups.
const GROUP: usize = 16;
/// Largest job whose barrier is a dissemination. That is the shortest way where every rank has a
/// processor; where they share them, each round may cost a change of process on all of them, and a
/// barrier by groups has two of those per rank whatever the number of ranks.
const MOST_DISSEMINATING: usize = 4;

/// A message of a collective call under way, with its data.
struct Told {
    sent: mpjdev::Request,
    data: Vec<u32>,
}

impl Told {
    /// Whether it was complete when it was told, as most are.
    #[inline(always)]
    fn is_complete(&self) -> bool {
        self.sent.completed().is_some()
    }
}

impl Communicator {
    /// Waits until every rank has called it (MPI_Barrier).
    ///
    /// # Errors
    /// As [`Communicator::recv`].
    pub fn barrier(&self) -> Result<(), Error> {
        let _within = Within::call(Call::Barrier);
        let (few, call) = (self.size() <= MOST_DISSEMINATING, self.next_call());
        self.device.answer(if few { self.disseminate(call) } else { self.gather_and_release(call) })
    }

    /// In round `k` a rank signals the one `2^k` places up and waits for the one `2^k` places down.
    fn disseminate(&self, call: i32) -> Result<(), mpjdev::Error> {
        let (rank, size) = (self.rank(), self.size());
        let mut distance = 1;
        while distance < size {
            let (up, down) = ((rank + distance) % size, (rank + size - distance) % size);
            self.exchange_signals(up, down, call)?;
            distance *= 2;
        }
        Ok(())
    }

    /// The first rank of every [`GROUP`] waits for the others of its group, then the first ranks do
    /// so among themselves, up to rank 0; and back the same way.
    fn gather_and_release(&self, call: i32) -> Result<(), mpjdev::Error> {
        let (rank, size) = (self.rank(), self.size());
        let followers = |distance| (1..GROUP).map(move |k| rank + k * distance);
        let exist = |&follower: &usize| follower < size;
        let mut distance = 1;
        while distance < size && rank % (distance * GROUP) == 0 {
            followers(distance)
                .take_while(exist)
                .try_for_each(|from| self.await_signal(from, call))?;
            distance *= GROUP;
        }
        if rank != 0 {
            let first = rank - rank % (distance * GROUP);
            self.signal(first, call)?;
            self.await_signal(first, call)?;
        }
        while distance > 1 {
            distance /= GROUP;
            followers(distance).take_while(exist).try_for_each(|to| self.signal(to, call))?;
        }
        Ok(())
    }

    /// Starts to send `data` of this call.
    // Inlined so that a request is not moved, which takes long right after it was written.
    #[inline(always)]
    fn tell(&self, to: usize, call: i32, data: Vec<u32>) -> Result<Told, mpjdev::Error> {
        let context = self.collective_context();
        let sent = self.device.isend(send_region(&data), to, call, context, Mode::Standard)?;
        Ok(Told { sent, data })
    }

    /// Waits until what was told is complete, if the rest of the call has gone well. Where a rank is lost, the other
    /// one may have failed in this call, and may never receive it: it goes on by itself then.
    #[inline(never)]
    fn complete(&self, told: Told, rest: Result<(), mpjdev::Error>) -> Result<(), mpjdev::Error> {
        match rest.and_then(|()| self.device.iwait_unless_loss(&told.sent)) {
            Ok(()) => self.device.iwait(told.sent).map(drop),
            Err(error) => {
                self.device.detach(told.sent, Box::new(told.data));
                Err(error)
            }
        }
    }

    fn signal(&self, to: usize, call: i32) -> Result<(), mpjdev::Error> {
        self.signal_with(to, call, Vec::new())
    }

    fn signal_with(&self, to: usize, call: i32, data: Vec<u32>) -> Result<(), mpjdev::Error> {
        let told = self.tell(to, call, data)?;
        if told.is_complete() { Ok(()) } else { self.complete(told, Ok(())) }
    }

    fn await_signal(&self, from: usize, call: i32) -> Result<(), mpjdev::Error> {
        let (nothing, context) = (recv_region::<u8>(&mut []), self.collective_context());
        self.device.recv(nothing, Some(from), Some(call), context).map(drop)
    }

    /// Signals `up` and waits for the signal of `down`.
    fn exchange_signals(&self, up: usize, down: usize, call: i32) -> Result<(), mpjdev::Error> {
        let told = self.tell(up, call, Vec::new())?;
        let (nothing, context) = (recv_region::<u8>(&mut []), self.collective_context());
        match self.device.recv(nothing, Some(down), Some(call), context) {
            Ok(_) if told.is_complete() => Ok(()),
            received => self.complete(told, received.map(drop)),
        }
    }

    /// A number that rank 0 makes, on every rank.
    pub(crate) fn given_by_rank_0(&self, make: impl FnOnce() -> u32) -> Result<u32, Error> {
        let _within = Within::call(Call::Dup);
        let (mut number, call) = ([0], self.next_call());
        let given = if self.rank() == 0 {
            number[0] = make();
            self.tell_all(number[0], call)
        } else {
            let (into, context) = (recv_region(&mut number), self.collective_context());
            self.device.recv(into, Some(0), Some(call), context).map(drop)
        };
        self.device.answer(given).map(|()| number[0])
    }

    fn tell_all(&self, number: u32, call: i32) -> Result<(), mpjdev::Error> {
        (1..self.size()).try_for_each(|rank| self.signal_with(rank, call, vec![number]))
    }
}
