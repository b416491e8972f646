//! Persistent sends and receives over buffers that a test owns.

use super::*;
use crate::datatype::Datatype;
use crate::{AttachedBuffer, Elements, Input, Output, PROC_NULL, SendMode};

#[test]
fn a_transfer_can_be_started_many_times_in_every_mode() {
    use SendMode::{Buffered, Ready, Standard, Synchronous};
    run(2, |world| {
        let (device, other) = (world.device(), 1 - world.rank() as usize);
        world.rank_buffer().attach(AttachedBuffer { len: Some(16), address: 0 }).unwrap();
        for mode in [Standard, Buffered, Synchronous, Ready] {
            let data = Input::keeping(vec![u64::from(world.rank()) + 7, 9]);
            let mut send = world.send_init(data, 2, other, 3, mode).unwrap();
            let mut receive =
                world.recv_init(Output::keeping(vec![0; 2]), 2, None, Some(3)).unwrap();
            for _ in 0..3 {
                let received = receive.start().unwrap();
                // A send in ready mode follows the receive.
                world.barrier().unwrap().run().unwrap();
                let sent = send.start().unwrap();
                let status = device.iwait(received).unwrap();
                assert_eq!((status.source, status.tag, status.bytes), (other as u32, 3, 16));
                device.iwait(sent).unwrap();
            }
            assert_eq!(receive.words(), [other as u64 + 7, 9]);
        }
        world.rank_buffer().detach().unwrap();
    });
}

#[test]
fn elements_lie_as_their_datatype_describes() {
    run(2, |world| {
        let (device, other) = (world.device(), 1 - world.rank() as usize);
        let word = Datatype::predefined(ElementKind::U64);
        let every_second = Datatype::vector(2, 1, 2, &word).unwrap();
        let of_type = Elements::Typed(every_second);
        let data = Input::keeping(vec![1, 2, 3, 4]).with(of_type.clone());
        let mut send = world.send_init(data, 1, other, 0, SendMode::Standard).unwrap();
        let into = Output::keeping(vec![0; 4]).with(of_type.clone());
        let mut receive = world.recv_init(into, 1, Some(other), None).unwrap();
        let requests = [receive.start().unwrap(), send.start().unwrap()];
        for request in requests {
            assert_eq!(device.iwait(request).unwrap().bytes, 16);
        }
        assert_eq!(receive.words(), [1, 0, 3, 0]);
        let short = Input::keeping(vec![1, 2]).with(of_type);
        let refused = world.send_init(short, 1, other, 0, SendMode::Standard);
        assert_eq!(refused.map(drop).unwrap_err().class(), ErrorClass::Arg);
    });
}

#[test]
fn transfers_with_nobody_are_complete_and_wrong_peers_are_refused() {
    run(1, |world| {
        let device = world.device();
        let empty = || (Input::none(), Output::none());
        for mode in [SendMode::Standard, SendMode::Buffered] {
            let mut send = world.send_init(empty().0, 0, PROC_NULL, 3, mode).unwrap();
            device.iwait(send.start().unwrap()).unwrap();
        }
        let mut receive = world.recv_init(empty().1, 0, Some(PROC_NULL), None).unwrap();
        let status = device.iwait(receive.start().unwrap()).unwrap();
        assert_eq!((status.source, status.tag, status.bytes), (u32::MAX, -1, 0));
        let refused = |dest, tag| {
            let sent = world.send_init(empty().0, 0, dest, tag, SendMode::Standard).map(drop);
            let received = world.recv_init(empty().1, 0, Some(dest), Some(tag)).map(drop);
            [sent, received].map(|outcome| outcome.unwrap_err().class())
        };
        assert_eq!(refused(1, 0), [ErrorClass::Rank; 2]);
        assert_eq!(refused(0, -1), [ErrorClass::Tag; 2]);
        assert_eq!(refused(PROC_NULL, -1), [ErrorClass::Tag; 2]);
    });
}
