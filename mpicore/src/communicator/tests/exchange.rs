//! Exchanges, blocking and started.

use super::*;
use crate::PROC_NULL;

/// A place of four bytes that a test can read.
#[derive(Clone)]
struct Word(Arc<std::sync::Mutex<[u8; 4]>>);

impl Word {
    fn new() -> Self {
        Self(Arc::new(std::sync::Mutex::new([0; 4])))
    }

    fn number(&self) -> u32 {
        u32::from_le_bytes(*self.0.lock().unwrap())
    }
}

impl Unpack for Word {
    fn size(&self) -> usize {
        4
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        from.copy_to(&mut self.0.lock().unwrap()[offset..]);
    }
}

#[test]
fn ranks_of_a_ring_exchange_messages() {
    run(3, |world| {
        let (device, rank, size) = (world.device(), world.rank() as usize, world.size() as usize);
        let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
        let data = || mpjdev::Source::from((rank as u32).to_le_bytes().to_vec());
        for is_in_place in [false, true] {
            let (into, from) = (Word::new(), (Some(left), Some(1)));
            let sink = Sink::layout(into.clone());
            let status = match is_in_place {
                false => world.sendrecv(data(), (right, 1), sink, from, [None; 2]).unwrap(),
                true => world.sendrecv_replace(&data(), (right, 1), sink, from, [None; 2]).unwrap(),
            };
            assert_eq!((status.source, status.tag, status.bytes), (left as u32, 1, 4));
            assert_eq!(into.number(), left as u32);

            let (into, from) = (Word::new(), (None, None));
            let sink = Sink::layout(into.clone());
            let request = match is_in_place {
                false => world.isendrecv(data(), (right, 2), sink, from, [None; 2]).unwrap(),
                true => {
                    world.isendrecv_replace(&data(), (right, 2), sink, from, [None; 2]).unwrap()
                }
            };
            let status = device.iwait(request).unwrap();
            assert_eq!((status.source, status.tag, status.bytes), (left as u32, 2, 4));
            assert_eq!(into.number(), left as u32);
            world.barrier().unwrap().run().unwrap();
        }
    });
}

#[test]
fn exchanges_with_nobody_are_complete_and_errors_end_both_messages() {
    run(1, |world| {
        let device = world.device();
        let data = || mpjdev::Source::from(vec![7; 4]);
        let (nobody, from) = ((PROC_NULL, 1), (Some(PROC_NULL), Some(1)));
        let status = world.sendrecv(data(), nobody, Sink::EMPTY, from, [None; 2]).unwrap();
        assert_eq!((status.source, status.tag, status.bytes), (u32::MAX, -1, 0));
        let request = world.isendrecv(data(), nobody, Sink::EMPTY, from, [None; 2]).unwrap();
        let status = device.iwait(request).unwrap();
        assert_eq!((status.source, status.tag, status.bytes), (u32::MAX, -1, 0));

        let class = |error: Error| error.class();
        let own = (Some(0), Some(1));
        let refused = world.sendrecv(data(), (1, 1), Sink::EMPTY, own, [None; 2]);
        assert_eq!(refused.map_err(class), Err(ErrorClass::Rank));
        let refused = world.isendrecv(data(), (0, -1), Sink::EMPTY, own, [None; 2]).map(drop);
        assert_eq!(refused.map_err(class), Err(ErrorClass::Tag));
        // The message does not fit.
        let request = world.isendrecv(data(), (0, 1), Sink::EMPTY, own, [None; 2]).unwrap();
        let outcome = device.iwait(request).map_err(|error| Error::from(error).class());
        assert_eq!(outcome, Err(ErrorClass::Truncate));
        // No receive is left behind.
        assert!(device.is_idle(world.context()).unwrap());
    });
}
