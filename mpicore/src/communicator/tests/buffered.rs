//! Buffered sends: room in buffers of the rank and of communicators, and waits until messages have left.

use mpj_harness::Sleepers;
use mpjdev::Source;

use super::*;
use crate::AttachedBuffer;

/// Length of a message that does not leave before its receiver takes it.
const LONG: usize = 1 << 20;

fn attached(len: usize) -> AttachedBuffer {
    AttachedBuffer { len: Some(len), address: 0x1000 }
}

fn bsend(over: &Communicator, len: usize) -> Result<Status, Error> {
    over.bsend(&Source::from(vec![7; len]), 1, 3)
}

fn receive(over: &Communicator, len: usize) {
    let into = Received::default();
    let sink = into.sink(len);
    let status = over.device().recv(sink, Some(0), Some(3), over.context()).unwrap();
    assert_eq!((status.bytes, into.take()), (len, vec![7; len]));
}

#[test]
fn a_buffer_limits_the_copies_and_detaching_waits_for_them() {
    run_with_short_unexpected_messages(2, |world| {
        let buffer = world.rank_buffer();
        if world.rank() == 1 {
            world.barrier().unwrap().run().unwrap();
            receive(world, LONG);
            return receive(world, LONG);
        }
        assert!(matches!(bsend(world, 1), Err(Error::AttachedBuffer { attached: 0, .. })));
        buffer.attach(attached(LONG + 1)).unwrap();
        let again = buffer.attach(attached(1)).unwrap_err();
        assert!(matches!(again, Error::Attached { attached: Some(len) } if len == LONG + 1));
        let status = bsend(world, LONG).unwrap();
        assert_eq!((status.source, status.tag, status.bytes), (1, 3, LONG));
        let full = bsend(world, 2).unwrap_err();
        assert!(matches!(full, Error::AttachedBuffer { bytes: 2, free: 1, .. }), "{full}");
        assert_eq!(full.class(), ErrorClass::Buffer);
        world.barrier().unwrap().run().unwrap();
        assert_eq!(buffer.detach().unwrap(), Some(attached(LONG + 1)));
        assert_eq!(buffer.detach().unwrap(), None);
        // All of it is free again.
        buffer.attach(attached(LONG)).unwrap();
        bsend(world, LONG).unwrap();
        buffer.flush().unwrap();
        assert!(bsend(world, LONG + 1).is_err());
    });
}

#[test]
fn a_communicator_uses_its_own_buffer_if_it_has_one() {
    run_with_short_unexpected_messages(2, |world| {
        let one = world.dup().unwrap();
        if world.rank() == 0 {
            let unlimited = AttachedBuffer { len: None, address: 0 };
            one.own_buffer().attach(unlimited).unwrap();
            bsend(&one, LONG).unwrap();
            bsend(&one, LONG).unwrap();
            assert!(bsend(world, 1).is_err(), "the rank has none");
            world.rank_buffer().attach(attached(1)).unwrap();
            bsend(world, 1).unwrap();
            // The messages of a communicator that is gone still leave.
            drop(one);
            world.barrier().unwrap().run().unwrap();
        } else {
            world.barrier().unwrap().run().unwrap();
            receive(&one, LONG);
            receive(&one, LONG);
            receive(world, 1);
        }
        assert_eq!(sum(world, 1), 2);
    });
}

#[test]
fn a_flush_that_was_started_ends_when_the_messages_have_left() {
    run_with_short_unexpected_messages(2, |world| {
        if world.rank() == 1 {
            world.barrier().unwrap().run().unwrap();
            return (0..3).for_each(|_| receive(world, LONG));
        }
        let buffer = world.rank_buffer();
        let device = world.device();
        device.iwait(buffer.start_flush().unwrap()).unwrap();
        buffer.attach(attached(3 * LONG)).unwrap();
        bsend(world, LONG).unwrap();
        bsend(world, LONG).unwrap();
        let mut flush = Some(buffer.start_flush().unwrap());
        assert_eq!(device.itest(&mut flush).unwrap(), None, "nobody has received them");
        // A later send is not waited for, and a detach waits for those of the flush, too.
        bsend(world, LONG).unwrap();
        let second = buffer.start_flush().unwrap();
        world.barrier().unwrap().run().unwrap();
        device.iwait(flush.take().unwrap()).unwrap();
        buffer.detach().unwrap();
        device.iwait(second).unwrap();
        buffer.attach(attached(LONG)).unwrap();
        let full = bsend(world, LONG + 1).unwrap_err();
        assert!(matches!(full, Error::AttachedBuffer { free: LONG, .. }), "{full}");
    });
}

/// While a thread waits for all messages, others see them as they are: none is missed, and what has left gives room.
#[test]
fn a_thread_that_flushes_takes_nothing_from_others() {
    run_with_short_unexpected_messages(2, |world| {
        if world.rank() == 1 {
            world.barrier().unwrap().run().unwrap();
            receive(world, LONG);
            world.barrier().unwrap().run().unwrap();
            return (0..2).for_each(|_| receive(world, LONG));
        }
        let (buffer, device, sleepers) = (world.rank_buffer(), world.device(), Sleepers::default());
        buffer.attach(attached(2 * LONG)).unwrap();
        bsend(world, LONG).unwrap();
        bsend(world, LONG).unwrap();
        thread::scope(|scope| {
            let flushing = scope.spawn(|| {
                sleepers.join();
                world.rank_buffer().flush()
            });
            sleepers.wait_until_asleep(1);
            let mut flush = Some(buffer.start_flush().unwrap());
            assert_eq!(device.itest(&mut flush).unwrap(), None, "the messages are here");
            world.barrier().unwrap().run().unwrap();
            // The other rank has the first message when it enters this barrier.
            world.barrier().unwrap().run().unwrap();
            bsend(world, LONG).unwrap();
            flushing.join().unwrap().unwrap();
            device.iwait(flush.take().unwrap()).unwrap();
        });
        assert_eq!(buffer.detach().unwrap(), Some(attached(2 * LONG)));
    });
}

/// A buffer that a thread waits to detach is neither free nor gone.
#[test]
fn a_buffer_is_attached_until_its_messages_have_left() {
    run_with_short_unexpected_messages(2, |world| {
        if world.rank() == 1 {
            world.barrier().unwrap().run().unwrap();
            return receive(world, LONG);
        }
        let (buffer, sleepers) = (world.rank_buffer(), Sleepers::default());
        buffer.attach(attached(2 * LONG)).unwrap();
        bsend(world, LONG).unwrap();
        thread::scope(|scope| {
            let detaching = scope.spawn(|| {
                sleepers.join();
                world.rank_buffer().detach()
            });
            sleepers.wait_until_asleep(1);
            assert!(matches!(bsend(world, 1), Err(Error::AttachedBuffer { attached: 0, .. })));
            assert!(matches!(buffer.attach(attached(1)), Err(Error::Attached { .. })));
            world.barrier().unwrap().run().unwrap();
            assert_eq!(buffer.detach().unwrap(), None, "another thread detaches it");
            assert_eq!(detaching.join().unwrap().unwrap(), Some(attached(2 * LONG)));
        });
        buffer.attach(attached(1)).unwrap();
    });
}

/// The copies in a buffer without a limit are freed, although nobody asks for room.
#[test]
fn copies_that_have_left_are_freed() {
    run_with_short_unexpected_messages(2, |world| {
        const MESSAGES: usize = 100;
        for _ in 0..MESSAGES {
            if world.rank() == 0 {
                world.rank_buffer().attach(AttachedBuffer { len: None, address: 0 }).ok();
                bsend(world, LONG).unwrap();
            }
            world.barrier().unwrap().run().unwrap();
            if world.rank() == 1 {
                receive(world, LONG);
            }
        }
        world.barrier().unwrap().run().unwrap();
        let kept = world.process().copies.kept();
        assert!(kept < MESSAGES / 2, "{kept} of {MESSAGES} copies are kept");
    });
}
