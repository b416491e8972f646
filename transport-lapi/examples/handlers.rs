//! An active message with both handlers: the header handler chooses the place, the completion handler answers.
//!
//! `cargo run -p transport-lapi --example handlers` plays with two threads, `mpjrun -n 2 target/debug/examples/handlers`
//! with two processes.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;
use std::sync::Arc;

use parking_lot::Mutex;
use transport_lapi::{
    Amsend, Arrival, ForeignBytes, HeaderAction, Next, Outbox, Sink, Source, Unpack,
};

mod support;
use support::{Contexts, Outcome};

const QUESTION: u8 = 1;
const ANSWER: u8 = 2;

/// The state of a task, which its handlers get.
#[derive(Default)]
struct Letters {
    /// Where the letters of a question go.
    question: Arc<Mutex<Vec<u8>>>,
    answer: Option<Vec<u8>>,
}

/// A place that owns its bytes, so that no code here is unsafe.
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Unpack for Shared {
    fn size(&self) -> usize {
        self.0.lock().len()
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        from.copy_to(&mut self.0.lock()[offset..]);
    }
}

/// The header handler: the first packet has arrived, perhaps not the rest. It chooses where the bytes go, and what
/// happens when all of them are there. It cannot communicate.
fn question(letters: &mut Letters, message: Arrival<'_>) -> HeaderAction<Letters> {
    letters.question.lock().resize(message.len as usize, 0);
    let into = Sink::layout(Shared(letters.question.clone()));
    HeaderAction::Deliver { into, next: Next::Inline(asked, message.origin.into()) }
}

/// The completion handler: all bytes are stored. It may answer.
fn asked(letters: &mut Letters, outbox: &mut Outbox<Letters>, origin: u64) {
    let answer: Vec<u8> = letters.question.lock().iter().rev().copied().collect();
    if outbox.amsend(origin as u32, ANSWER, &[], answer).is_err() {
        letters.answer = Some(b"the answer cannot be sent".to_vec());
    }
}

/// A header handler that takes a short message out of its packet, and needs no completion handler.
fn answer(letters: &mut Letters, message: Arrival<'_>) -> HeaderAction<Letters> {
    letters.answer = message.data.map(|data| data.to_vec());
    HeaderAction::Consumed
}

fn main() -> ExitCode {
    support::play("handlers", 2, 1, play)
}

fn play(contexts: &Contexts<Letters>) -> Outcome<()> {
    let context = &contexts[0];
    let mut session = context.session()?;
    session.addr_set(QUESTION.into(), question)?;
    session.addr_set(ANSWER.into(), answer)?;
    let [sent, complete] = [session.counter(), session.counter()];
    drop(session);
    // No message before every task has set its handlers.
    context.gfence()?;
    if context.task() == 0 {
        let text = Source::from(b"!sretteL".to_vec());
        let mut call = Amsend::new(1 % context.num_tasks() as u32, QUESTION, &[], text);
        (call.on_origin, call.cmpl_cntr) = (Next::Counter(sent), Some(complete));
        let _ = context.session()?.amsend(call)?;
        context.waitcntr(sent, 1)?;
        println!("the origin's buffer is reusable");
        context.waitcntr(complete, 1)?;
        println!("the completion handler has run at the target");
        let answer = context.wait(|session| session.state.answer.take())?;
        println!("the answer: {}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}
