//! Blocking collective calls on contiguous elements, which run at once if they are short: the layer above makes no
//! [`Plan`](crate::Plan). They match the calls of the same name in `calls.rs` whose plans other ranks run.
//!
//! If nothing was done, the caller makes a plan. Counts are as in `calls.rs`.

use mpjdev::Call;

use super::{operands_in, split};
use crate::collective::{Collective, Exchange, Order};
use crate::communicator::Communicator;
use crate::error::Error;
use crate::memory::Plain;
use crate::op::{ElementKind, Predefined};
use crate::plan::InlineRun;

/// The outcome of a short call; `None` if it was not made.
type Done = Option<Result<(), Error>>;

/// What a rank sends or receives: the buffer and its number of elements; `None` to work in place.
type Block = Option<(Plain, u64)>;

impl Communicator {
    #[inline(always)]
    fn run_short(
        &self,
        call: Call,
        collective: Collective,
        [input, output]: [Plain; 2],
        reduction: Option<(Predefined, ElementKind)>,
    ) -> Done {
        InlineRun { communicator: self, call, collective, input, output, reduction }.run()
    }

    /// Runs [`Communicator::bcast`] at once, if it is short and nothing about it is to be refused.
    /// Otherwise does nothing, and returns `None`.
    ///
    /// # Errors
    /// Those of [`Plan::run`](crate::Plan::run).
    #[inline]
    pub fn short_bcast(&self, buffer: Plain, count: u64, root: u32) -> Done {
        let collective = Collective::Bcast { root, count };
        self.run_short(Call::Bcast, collective, [Plain::none(), buffer], None)
    }

    /// Runs [`Communicator::gather`] at once, if it is short and nothing about it is to be refused.
    /// Otherwise does nothing, and returns `None`.
    ///
    /// # Errors
    /// Those of [`Plan::run`](crate::Plan::run).
    #[inline]
    pub fn short_gather(&self, send: Block, output: Plain, receive: u64, root: u32) -> Done {
        let (input, send) = split(send, Plain::none);
        let directly =
            self.is_direct(root, (receive, output.size()), (send.unwrap_or(0), input.size()));
        let collective = Collective::Gather { root, send, receive, directly };
        self.run_short(Call::Gather, collective, [input, output], None)
    }

    /// Runs [`Communicator::scatter`] at once, if it is short and nothing about it is to be refused.
    /// Otherwise does nothing, and returns `None`.
    ///
    /// # Errors
    /// Those of [`Plan::run`](crate::Plan::run).
    #[inline]
    pub fn short_scatter(&self, input: Plain, send: u64, receive: Block, root: u32) -> Done {
        let (output, receive) = split(receive, Plain::none);
        let directly =
            self.is_direct(root, (send, input.size()), (receive.unwrap_or(0), output.size()));
        let collective = Collective::Scatter { root, send, receive, directly };
        self.run_short(Call::Scatter, collective, [input, output], None)
    }

    /// Runs [`Communicator::allgather`] at once, if it is short and nothing about it is to be refused.
    /// Otherwise does nothing, and returns `None`.
    ///
    /// # Errors
    /// Those of [`Plan::run`](crate::Plan::run).
    #[inline]
    pub fn short_allgather(&self, send: Block, output: Plain, receive: u64) -> Done {
        let (input, send) = split(send, Plain::none);
        // What is longer is not short.
        let collective = Collective::Allgather { send, receive, are_long: false };
        self.run_short(Call::Allgather, collective, [input, output], None)
    }

    /// Runs [`Communicator::alltoall`] with equal blocks at once, if it is short and nothing about it is to be refused.
    /// Otherwise does nothing, and returns `None`.
    ///
    /// # Errors
    /// Those of [`Plan::run`](crate::Plan::run).
    #[inline]
    pub fn short_alltoall(&self, send: Block, output: Plain, receive: u64) -> Done {
        let (input, send) = split(send, Plain::none);
        let collective = Collective::Alltoall { send, receive };
        self.run_short(Call::Alltoall, collective, [input, output], None)
    }

    /// Runs [`Communicator::reduce`] at once, if it is short and nothing about it is to be refused.
    /// Otherwise does nothing, and returns `None`.
    ///
    /// # Errors
    /// Those of [`Plan::run`](crate::Plan::run).
    #[inline]
    pub fn short_reduce(
        &self,
        input: Option<Plain>,
        output: Plain,
        count: u64,
        reduction: (Predefined, ElementKind),
        root: u32,
    ) -> Done {
        let order = Order::of(reduction.0.commutes());
        let (input, operands) = operands_in(input, Plain::none);
        let collective = Collective::Reduce { root, count, operands, order };
        self.run_short(Call::Reduce, collective, [input, output], Some(reduction))
    }

    /// Runs [`Communicator::allreduce`] at once, if it is short and nothing about it is to be refused.
    /// Otherwise does nothing, and returns `None`.
    ///
    /// # Errors
    /// Those of [`Plan::run`](crate::Plan::run).
    #[inline]
    pub fn short_allreduce(
        &self,
        input: Option<Plain>,
        output: Plain,
        count: u64,
        reduction: (Predefined, ElementKind),
    ) -> Done {
        let (input, operands) = operands_in(input, Plain::none);
        // What is longer is not short.
        let (order, exchange) = (Order::of(reduction.0.commutes()), Exchange::Whole);
        let collective = Collective::Allreduce { count, operands, order, exchange };
        self.run_short(Call::Allreduce, collective, [input, output], Some(reduction))
    }
}
