//! The entry of the fuzz target in `tests/fuzz`: packets of a peer, one after the other. It is no part of the interface.

use transport_lapi::{Arrival, ForeignBytes, HeaderAction, Next, Tasks};

use crate::arrival::{arrive, arrive_packed};
use crate::memory::Segment;
use crate::name::{EndpointName, Tag};
use crate::packet::{Args, Header, Kind, Unpacked};
use crate::state::{Replied, State};
use crate::status::Opcode;

/// Bytes of the endpoint's segment.
const SEGMENT: usize = 100;

/// Lets packets of task 1 arrive at task 0. Its endpoint 0 has handler 9, a segment of 100 bytes and the tag 7, maps
/// endpoint 5 of task 1 at index 3, and has made one request there; endpoint 1 was freed. An input is a list of packets.
/// Each begins with three bytes: how it comes, the length of the header, and the length of the payload. It comes packed
/// if bit 1 of the first byte is set, otherwise with the payload apart, which is there already if bit 0 is set. Returns
/// whether a message was accepted.
pub fn packets(input: &[u8]) -> bool {
    let mut state = State::new(0, &Tasks::all_near(2));
    for _ in 0..2 {
        state.add_port().expect("there is room for two endpoints");
    }
    state.free_port(1);
    let port = state.port(0).expect("it was made");
    port.tag = Tag(7);
    port.registered[9] = true;
    port.segment = Some(Segment::new(vec![0; SEGMENT]));
    port.table.map(3, EndpointName { task: 1, number: 5 }, Tag(7)).expect("the index is free");
    port.table.freeze(4).expect("it was not done before");
    port.table.begin(3, Opcode::RequestLong, 9).expect("there are four credits");
    let (mut rest, mut is_accepted) = (input, false);
    while let Some(([whole, uhdr, len], behind)) = rest.split_first_chunk() {
        let (uhdr, behind) = behind.split_at(behind.len().min((*uhdr).into()));
        let (payload, behind) = behind.split_at(behind.len().min((*len).into()));
        rest = behind;
        let (mut header, mut args) = (Header::EMPTY, Args::default());
        if let Ok(Some(len)) = Unpacked::of(uhdr).decode(&mut header, &mut args) {
            let encoded = header.encode(args.words());
            assert_eq!(encoded.bytes(), &uhdr[..len], "the packet encodes differently");
        }
        is_accepted |= match uhdr.split_first_chunk() {
            Some((word, rest)) if whole & 2 != 0 => arrive_with_payload(
                &mut state,
                u64::from_le_bytes(*word),
                &[rest, payload].concat(),
            ),
            _ => arrive_one(&mut state, uhdr, payload, whole & 1 != 0),
        };
    }
    is_accepted
}

/// Lets one packet arrive, and ends the messages that are complete then. Returns whether there was one.
fn arrive_one(state: &mut State, uhdr: &[u8], payload: &[u8], whole: bool) -> bool {
    let data = whole.then(|| ForeignBytes::from_slice(payload));
    let len = payload.len() as u64;
    let message = Arrival { origin: 1, uhdr, len, data };
    if let HeaderAction::Deliver { mut into, next } = arrive(state, message) {
        assert_eq!(into.len(), payload.len(), "the place has another length");
        into.store(0, ForeignBytes::from_slice(payload));
        if let Next::Outcome(_, info) = next {
            state.finish((info >> 48) as u16, info & ((1 << 48) - 1), true);
        }
    }
    handle_all(state)
}

/// Lets one packed packet arrive. Returns whether there was a message.
fn arrive_with_payload(state: &mut State, word: u64, data: &[u8]) -> bool {
    arrive_packed(state, 1, word, ForeignBytes::from_slice(data));
    handle_all(state)
}

/// Ends the messages that are complete. Returns whether there was one.
fn handle_all(state: &mut State) -> bool {
    let mut is_accepted = false;
    while let Some(entry) = state.port(0).and_then(|port| port.queue.take_ready()) {
        is_accepted |= matches!(entry.header.kind, Kind::Message(_));
        let _ = state.settle(entry, Replied::No);
    }
    state.outgoing.clear();
    is_accepted
}
