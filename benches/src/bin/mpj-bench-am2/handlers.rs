//! The handlers of the measured messages, and what they share with the program.
//!
//! Handlers of requests run at task 1 and reply; [`ANSWER`] runs at task 0. All of them count in one number: each task
//! knows how many messages a round brings it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use am2::{Bundle, Endpoint, Error, MAX_LONG, MAX_MEDIUM, Message, Token};
use mpj_bench_programs::{payload, words};

/// Answers a short message with one of as many arguments.
pub const SHORT: u8 = 1;
/// Answers a medium message with one of the same length.
pub const MEDIUM: u8 = 2;
/// Answers a long message with one of the same length.
pub const LONG: u8 = 3;
/// Answers a short message with a long one, whose length is the argument.
pub const FETCH: u8 = 4;
/// Answers the last message of a window with a short one.
pub const WINDOW: u8 = 5;
/// Gets the replies.
pub const ANSWER: u8 = 6;

/// What the handlers of a task share with its program. One thread uses it.
#[derive(Debug, Default)]
pub struct Shared {
    /// The messages that handlers of this task have got.
    pub arrived: AtomicU64,
    /// The number of messages in a window.
    pub window: AtomicU64,
    /// Whether payloads are rewritten between messages.
    pub rewrites: AtomicBool,
    /// Whether payloads have known contents, which handlers check.
    pub checks: AtomicBool,
    /// Whether a check has failed.
    pub is_damaged: AtomicBool,
}

impl Shared {
    /// Counts a message of another task, and reads or checks its payload.
    fn see(&self, token: &Token<'_>, message: &Message<'_>) -> u64 {
        let bytes = message.payload.bytes();
        if self.rewrites.load(Ordering::Relaxed) {
            words::read(bytes);
        }
        if self.checks.load(Ordering::Relaxed)
            && payload::check(bytes, token.source().task().into()).is_err()
        {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        self.arrived.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// The payloads of replies, whose contents are stored anew where that is asked for.
struct Own {
    bytes: Vec<u8>,
    turn: u64,
}

impl Own {
    fn new(len: usize) -> Self {
        Self { bytes: vec![0; len], turn: 0 }
    }

    /// The first `len` bytes, ready to be sent by task 1.
    fn ready(&mut self, len: usize, shared: &Shared) -> &[u8] {
        let bytes = &mut self.bytes[..len];
        if shared.rewrites.load(Ordering::Relaxed) {
            self.turn += 1;
            words::store(bytes, self.turn);
        }
        if shared.checks.load(Ordering::Relaxed) {
            payload::fill(bytes, 1);
        }
        bytes
    }
}

/// Sets all handlers of an endpoint.
///
/// # Errors
/// An error of AM-2.
pub fn set(bundle: &mut Bundle, endpoint: Endpoint, shared: &Arc<Shared>) -> Result<(), Error> {
    const ONLY: &str = "it is the only reply, and not too long";
    let of = |_| Arc::clone(shared);
    let [short, medium, long, fetch, window, answer] = [(); 6].map(of);
    bundle.set_handler(endpoint, SHORT, move |token, message| {
        short.see(token, &message);
        token.reply_short(ANSWER, message.args).expect(ONLY);
    })?;
    let mut own = Own::new(MAX_MEDIUM);
    bundle.set_handler(endpoint, MEDIUM, move |token, message| {
        medium.see(token, &message);
        let len = message.payload.bytes().len();
        token.reply_medium(ANSWER, own.ready(len, &medium), &[]).expect(ONLY);
    })?;
    let mut own = Own::new(MAX_LONG);
    bundle.set_handler(endpoint, LONG, move |token, message| {
        long.see(token, &message);
        let len = message.payload.bytes().len();
        token.reply_long(ANSWER, 0, own.ready(len, &long), &[]).expect(ONLY);
    })?;
    let mut own = Own::new(MAX_LONG);
    bundle.set_handler(endpoint, FETCH, move |token, message| {
        fetch.arrived.fetch_add(1, Ordering::Relaxed);
        let len = message.args[0] as usize;
        token.reply_long(ANSWER, 0, own.ready(len, &fetch), &[]).expect(ONLY);
    })?;
    bundle.set_handler(endpoint, WINDOW, move |token, message| {
        let arrived = window.see(token, &message);
        if arrived % window.window.load(Ordering::Relaxed) == 0 {
            token.reply_short(ANSWER, &[]).expect(ONLY);
        }
    })?;
    bundle.set_handler(endpoint, ANSWER, move |token, message| {
        answer.see(token, &message);
    })
}
