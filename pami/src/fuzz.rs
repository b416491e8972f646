//! The entry of the fuzz target in `tests/fuzz`: packets of a peer, one after the other. It is no part of the interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use transport_lapi::{Arrival, ForeignBytes};

use crate::client::Client;
use crate::collective;
use crate::context::{Context, Outcome};
use crate::dispatch::{Arriving, Message};
use crate::state::{arrive, arrive_short};
use crate::types::{Hint, Hints, Setting, data_sink};

thread_local! {
    /// Both tasks of a job, with the context of each. Each input finds task 0 as if nothing had happened.
    static JOB: [(Client, Context); 2] = {
        let clients = Client::in_process("fuzz", 2, 1).expect("two threads are possible");
        let tasks = clients.into_iter().map(|mut client| {
            let context = client.create_contexts(1).expect("it has one").remove(0);
            (client, context)
        });
        tasks.collect::<Vec<_>>().try_into().ok().expect("a job of two")
    };
}

/// Lets packets of task 1 arrive at task 0, which has dispatch 7 with default hints, 8 and 9 that are received immediately
/// always and never, and one message under way to task 1, whose operation has the number 0. An input is a list of packets.
/// Each begins with three bytes: how it comes, the length of the header, and the length of the body. It comes with one word
/// of header if bit 1 of the first byte is set, otherwise with all of it; bit 0 says whether the body is there already.
/// Returns whether a dispatch function was called, or the message has ended well.
pub fn packets(input: &[u8]) -> bool {
    JOB.with(|[(_, context), (_, peer)]| {
        const NOBODY: &str = "nobody else has it";
        let mut guard = context.lock().expect(NOBODY);
        let mut peer = peer.lock().expect(NOBODY);
        let is_accepted = Arc::new(AtomicBool::new(false));
        guard.session.state = collective::new_state(0);
        let accepts = Arc::clone(&is_accepted);
        let end = move |_: &mut crate::Section<'_>, result: Result<(), crate::Error>| {
            accepts.fetch_or(result.is_ok(), Ordering::Relaxed);
        };
        assert_eq!(guard.begin(1, true, Some(Box::new(end))), Some(0));
        for (id, setting) in [(7, Setting::Default), (8, Setting::Enable), (9, Setting::Disable)] {
            let accepts = Arc::clone(&is_accepted);
            let take = move |_: &mut crate::Section<'_>, message: Message<'_>| {
                accepts.store(true, Ordering::Relaxed);
                match message.data {
                    Arriving::Immediate(_) => assert_ne!(setting, Setting::Disable),
                    Arriving::Asynchronous(data) if setting == Setting::Disable => {
                        let short = data_sink(10, |at, piece| assert!(at + piece.len() <= 10));
                        data.receive(short, None);
                    }
                    Arriving::Asynchronous(data) => {
                        assert_ne!(setting, Setting::Enable);
                        data.receive_vec(|_, _| {});
                    }
                }
            };
            let hints = Hints::default().with(Hint::RecvImmediate, setting);
            guard.dispatch_set(id, take, hints).expect("the hints can be honoured");
        }
        let mut rest = input;
        while let Some(([how, uhdr, len], behind)) = rest.split_first_chunk() {
            let (uhdr, behind) = behind.split_at(behind.len().min((*uhdr).into()));
            let (body, behind) = behind.split_at(behind.len().min((*len).into()));
            rest = behind;
            let (bytes, state) = (ForeignBytes::from_slice(body), &mut guard.session.state);
            match uhdr.split_first_chunk() {
                Some((word, [])) if how & 2 != 0 => {
                    let word = u64::from_le_bytes(*word);
                    let _ = arrive_short(state, 1, word, bytes);
                }
                _ => {
                    let data = (how & 1 != 0).then_some(bytes);
                    let _ =
                        arrive(state, Arrival { origin: 1, uhdr, len: body.len() as u64, data });
                }
            }
            let is_quiet = |outcome: Result<Outcome, _>| matches!(outcome, Ok(Outcome::Again));
            while !(is_quiet(guard.advance(1)) & is_quiet(peer.advance(1))) {}
        }
        is_accepted.load(Ordering::Relaxed)
    })
}
