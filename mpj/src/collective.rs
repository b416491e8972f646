//! Collective calls (MPI-4 chapter 6). Their messages have a context of their own, so they never
//! match a receive of the program.

use mpjdev::Mode;

use crate::communicator::Communicator;
use crate::error::Error;
use crate::point_to_point::{recv_region, send_region};

/// Tag of the messages of [`Communicator::dup`]; the barrier's are its rounds.
const AGREE: i32 = 1 << 20;

impl Communicator {
    /// Waits until every rank has called it (MPI_Barrier). A dissemination: in round `k` a rank
    /// signals the one `2^k` places up and waits for the one `2^k` places down.
    ///
    /// # Errors
    /// As [`Communicator::recv`].
    pub fn barrier(&self) -> Result<(), Error> {
        self.device.answer(self.disseminate())
    }

    fn disseminate(&self) -> Result<(), mpjdev::Error> {
        let (rank, size) = (self.rank(), self.size());
        let mut distance = 1;
        let mut round = 0;
        while distance < size {
            let (up, down) = ((rank + distance) % size, (rank + size - distance) % size);
            self.exchange_signals(up, down, round)?;
            distance *= 2;
            round += 1;
        }
        Ok(())
    }

    /// Signals `up` and waits for the signal of `down`. The receive is posted first: a send may wait
    /// for it.
    fn exchange_signals(&self, up: usize, down: usize, tag: i32) -> Result<(), mpjdev::Error> {
        let context = self.collective_context();
        let nothing = recv_region::<u8>(&mut []);
        let signal = self.device.irecv(nothing, Some(down), Some(tag), context)?;
        self.device.send(send_region::<u8>(&[]), up, tag, context, Mode::Standard)?;
        self.device.iwait(signal).map(drop)
    }

    /// A number that rank 0 makes, on every rank.
    pub(crate) fn given_by_rank_0(&self, make: impl FnOnce() -> u32) -> Result<u32, Error> {
        let mut number = [0];
        let given = if self.rank() == 0 {
            number[0] = make();
            self.tell_all(&number)
        } else {
            let (into, context) = (recv_region(&mut number), self.collective_context());
            self.device.recv(into, Some(0), Some(AGREE), context).map(drop)
        };
        self.device.answer(given).map(|()| number[0])
    }

    fn tell_all(&self, number: &[u32]) -> Result<(), mpjdev::Error> {
        let context = self.collective_context();
        let mut others = 1..self.size();
        others.try_for_each(|rank| {
            self.device.send(send_region(number), rank, AGREE, context, Mode::Standard)
        })
    }
}
