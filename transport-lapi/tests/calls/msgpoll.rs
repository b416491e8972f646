//! LAPI_Probe and LAPI_Msgpoll.

use transport_lapi::{Amsend, Arrival, Context, HeaderAction, MsgInfo, SendRegion, Sent};

use crate::support::buffers::{Landing, pattern, source};
use crate::support::job::Kind;

fn store(_: &mut (), message: Arrival<'_>) -> HeaderAction<()> {
    let len = message.len as usize;
    HeaderAction::Deliver {
        into: Landing::new(len).region(len).into(),
        next: transport_lapi::Next::Nothing,
    }
}

#[test]
fn each_bit_tells_what_has_happened() {
    const NOTHING: MsgInfo =
        MsgInfo { send_complete: false, recv_complete: false, disp_cntr: true };
    for kind in Kind::SEGMENTS {
        let mut adapters = kind.adapters(2);
        let target = Context::init(adapters.remove(1), (), Default::default());
        let origin = Context::init(adapters.remove(0), (), Default::default());
        target.session().unwrap().addr_set(1, store).unwrap();
        for rounds in [0, 1, 100] {
            assert_eq!(target.session().unwrap().msgpoll(rounds).unwrap(), NOTHING);
        }
        let send = |len| {
            let call = Amsend::new(1, 1, &[], source(pattern(1, len)));
            origin.session().unwrap().amsend(call).unwrap()
        };
        assert_eq!(send(8), Sent::Now);
        let received = MsgInfo { recv_complete: true, ..MsgInfo::default() };
        assert_eq!(target.session().unwrap().msgpoll(100).unwrap(), received, "{kind:?}");
        assert_eq!(target.session().unwrap().msgpoll(3).unwrap(), NOTHING, "{kind:?}");
        // A message for which the ring has no room.
        const LONG: usize = 6 << 20;
        assert_eq!(send(LONG), Sent::Later);
        assert_eq!(target.session().unwrap().msgpoll(1).unwrap(), NOTHING, "{kind:?}: a part");
        let (mut has_sent, mut has_received) = (false, false);
        while !(has_sent && has_received) {
            has_sent |= origin.session().unwrap().msgpoll(1).unwrap().send_complete;
            let info = target.session().unwrap().msgpoll(1).unwrap();
            assert!(!info.recv_complete || has_sent, "{kind:?}: it is sent before it is complete");
            has_received |= info.recv_complete;
        }
        let empty = Amsend::new(0, 1, &[], SendRegion::EMPTY);
        target.session().unwrap().addr_set(1, store).unwrap();
        origin.session().unwrap().addr_set(1, store).unwrap();
        let _ = target.session().unwrap().amsend(empty).unwrap();
        assert_eq!(origin.session().unwrap().msgpoll(100).unwrap(), received, "{kind:?}");
        assert_eq!(origin.session().unwrap().progress().unwrap(), 0);
    }
}
