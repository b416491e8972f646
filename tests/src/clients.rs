//! A rank with three clients in one process: `mpj`, AM-2, and handlers of its own over the transport.

use std::error::Error;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use am2::{Am, Bundle, BundleKind, Endpoint, EventMask, Tag};
use mpj::Communicator;
use transport_lapi::{AnyAdapter, Arrival, Context, HeaderAction, Options, TaskId};

/// The header handler of the rank's own messages.
const WORD: u8 = 1;
/// The handlers of AM-2.
const ASKED: u8 = 1;
const TOLD: u8 = 2;

/// What a part of a program ends with.
pub type Done = Result<(), Box<dyn Error + Send + Sync>>;

/// The words that have arrived: how many, and their sum.
#[derive(Default)]
pub struct Words {
    number: u64,
    sum: u64,
}

fn word(words: &mut Words, message: Arrival<'_>) -> HeaderAction<Words> {
    let bytes = message.uhdr.try_into().expect("a word has eight bytes");
    words.number += 1;
    words.sum += u64::from_ne_bytes(bytes);
    HeaderAction::Consumed
}

/// A client that uses the transport itself.
pub struct Own(Context<Words>);

impl Own {
    /// Begins over a connected adapter.
    ///
    /// # Errors
    /// Those of the transport.
    pub fn new(adapter: AnyAdapter) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let context = Context::init(adapter, Words::default(), Options::default());
        context.session()?.addr_set(WORD.into(), word)?;
        context.gfence()?;
        Ok(Self(context))
    }

    /// The context of the transport.
    pub fn context(&self) -> &Context<Words> {
        &self.0
    }

    /// Sends a word to each task, and waits for as many.
    ///
    /// # Errors
    /// Those of the transport, and a wrong sum.
    pub fn round(&self, round: u64) -> Done {
        let tasks = self.0.num_tasks() as u64;
        for target in 0..tasks {
            let word = (round + target).to_ne_bytes();
            self.0.session()?.amsend_bytes(target as TaskId, WORD, &word, &[])?;
        }
        let due = (round + 1) * tasks;
        let ready = |words: &Words| (words.number >= due).then_some(words.sum);
        let found = self.0.wait(|session| ready(&session.state))?;
        // No task begins the next round before all have ended this one.
        self.0.gfence()?;
        // Each task sends the same word to this one.
        let expected = (0..=round).map(|round| tasks * (round + u64::from(self.0.task()))).sum();
        if found == expected { Ok(()) } else { Err(format!("{found} is not {expected}").into()) }
    }
}

/// A client of AM-2 that asks its neighbour and gets answers.
pub struct Asking {
    bundle: Bundle,
    endpoint: Endpoint,
    neighbour: u16,
    told: Arc<AtomicU64>,
}

impl Asking {
    /// Meets the same client of the other tasks.
    ///
    /// # Errors
    /// Those of AM-2.
    pub fn new(am: &Am) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut bundle = am.allocate_bundle(BundleKind::Sequential)?;
        let endpoint = bundle.allocate_endpoint()?;
        for name in bundle.exchange_names(endpoint)? {
            bundle.map_any(endpoint, name, Tag::ALL)?;
        }
        bundle.set_event_mask(EventMask::NotEmpty);
        bundle.set_tag(endpoint, Tag::ALL)?;
        bundle.set_handler(endpoint, ASKED, |token, message| {
            token.reply_short(TOLD, &[message.args[0] * 2]).expect("this is the only reply");
        })?;
        let told = Arc::new(AtomicU64::new(0));
        let sum = Arc::clone(&told);
        bundle.set_handler(endpoint, TOLD, move |_, message| {
            sum.fetch_add(message.args[0].into(), Ordering::Relaxed);
        })?;
        bundle.set_expected_resources(endpoint, 4)?;
        bundle.barrier()?;
        let neighbour = ((am.task() as usize + 1) % am.num_tasks()) as u16;
        Ok(Self { bundle, endpoint, neighbour, told })
    }

    /// Asks the neighbour, and waits until all tasks have their answers.
    ///
    /// # Errors
    /// Those of AM-2, and a wrong answer.
    pub fn round(&mut self, round: u64) -> Done {
        let due = self.told.load(Ordering::Relaxed) + 2 * (round + 1);
        let args = [round as u32 + 1];
        self.bundle.request_short(self.endpoint, self.neighbour.into(), ASKED, &args)?;
        while self.told.load(Ordering::Relaxed) < due {
            if self.bundle.poll()? == 0 {
                self.bundle.wait_sema()?;
            }
        }
        self.bundle.barrier()?;
        let found = self.told.load(Ordering::Relaxed);
        if found == due { Ok(()) } else { Err(format!("{found} is not {due}").into()) }
    }

    /// Returns whether a task has said 1.
    ///
    /// # Errors
    /// Those of AM-2.
    pub fn agree(&mut self, word: u64) -> Result<bool, Box<dyn Error + Send + Sync>> {
        Ok(self.bundle.exchange(word)?.contains(&1))
    }

    /// Waits for a message that nobody sends.
    ///
    /// # Errors
    /// Those of AM-2.
    pub fn wait_for_nothing(&mut self) -> Done {
        Ok(self.bundle.wait_sema()?)
    }

    /// Leaves the job.
    ///
    /// # Errors
    /// Those of AM-2.
    pub fn leave(&mut self) -> Done {
        Ok(self.bundle.leave()?)
    }
}

/// A round of messages of `mpj`.
///
/// # Errors
/// Those of `mpj`, and wrong data.
pub fn round(ranks: &Communicator, round: u64) -> Done {
    let (rank, size) = (ranks.rank(), ranks.size());
    let (up, down) = ((rank + 1) % size, (rank + size - 1) % size);
    let sent = ranks.isend(vec![round ^ rank as u64; 1_000], up, 7)?;
    let mut got = vec![0; 1_000];
    ranks.recv(&mut got, down, 7)?;
    sent.wait()?;
    if got.iter().all(|word| *word == round ^ down as u64) {
        Ok(())
    } else {
        Err("wrong data".into())
    }
}

/// Rounds of all clients in turn, in one thread.
///
/// # Errors
/// Those of the clients.
pub fn in_turn(ranks: &Communicator, asking: &mut Asking, own: &Own, rounds: Range<u64>) -> Done {
    for number in rounds {
        round(ranks, number)?;
        asking.round(number)?;
        own.round(number)?;
    }
    Ok(())
}

/// Rounds of all clients at the same time, each in a thread.
///
/// # Errors
/// Those of the clients.
///
/// # Panics
/// If a thread panics.
pub fn at_once(ranks: &Communicator, asking: &mut Asking, own: &Own, rounds: Range<u64>) -> Done {
    let (mut of_mpj, mut of_am2, mut of_own) = (rounds.clone(), rounds.clone(), rounds);
    thread::scope(|scope| {
        let first = scope.spawn(|| of_mpj.try_for_each(|number| round(ranks, number)));
        let second = scope.spawn(|| of_am2.try_for_each(|number| asking.round(number)));
        let third = of_own.try_for_each(|number| own.round(number));
        let ends = [first, second].map(|thread| thread.join().expect("no thread panics"));
        ends.into_iter().fold(third, Result::and)
    })
}
