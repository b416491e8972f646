//! Point-to-point calls on communicators of some of the ranks, and with MPI_PROC_NULL; scopes on several communicators.
//! Every job runs under a watchdog.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mpj::tuning::{BackendChoice, Options};
use mpj::{
    ANY_SOURCE, ANY_TAG, Communicator, Error, ErrorClass, PROC_NULL, RemoteLeader, collective,
};

use super::unchecked;
use crate::job::{job, job_with};

/// Returns a communicator of the odd or of the even ranks, in reverse order: rank `r` of it is another rank of the
/// world.
fn part(world: &Communicator) -> Communicator {
    world.split((world.rank() % 2) as u32, -(world.rank() as i32)).unwrap()
}

#[test]
fn messages_that_are_too_long_are_told_with_the_rank_in_the_part() {
    job_with(&unchecked(), 6, |world| {
        let part = part(world);
        if part.rank() == 1 {
            part.send(&[1, 2], 0, 7).unwrap();
            part.send(&[1, 2], 0, 7).unwrap();
        } else if part.rank() == 0 {
            let text = part.recv(&mut [0], 1, 7).unwrap_err().to_string();
            assert!(text.contains("from rank 1 with tag 7"), "{text}");
            let text = part.irecv(vec![0], 1, 7).unwrap().wait().unwrap_err().to_string();
            assert!(text.contains("from rank 1 with tag 7"), "{text}");
        }
        // The root of the broadcast is rank 2 of the part, which has rank 0 or 1 in the world. Collectives name that
        // one, since the error also reaches ranks that got no message from the root.
        let mut numbers = vec![0; 1 + usize::from(part.rank() == 2)];
        let outcome = part.broadcast(&mut numbers, 2);
        if let Err(error) = &outcome {
            let root = format!("from job rank {}", world.rank() % 2);
            assert!(error.to_string().contains(&root), "{error}");
        }
        assert_eq!(outcome.is_ok(), part.rank() == 2);
        // Wait, so that no rank leaves early and appears lost to the others.
        world.barrier().unwrap();
    });
}

#[test]
fn errors_of_started_collectives_reach_the_error_handler() {
    job_with(&unchecked(), 2, |world| {
        let (world, errors) = (world.dup().unwrap(), Arc::new(AtomicU32::new(0)));
        let counted = errors.clone();
        world.set_error_handler(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        let len = 2 - world.rank();
        let outcome = world.start(collective::broadcast(vec![0; len], 0)).unwrap().wait();
        let mut kept = world.persistent(collective::broadcast(vec![0; len], 0)).unwrap();
        kept.start().unwrap();
        assert!(kept.buffer().is_err());
        assert_eq!(outcome.is_err(), world.rank() == 1);
        assert_eq!(kept.wait().is_err(), world.rank() == 1);
        assert_eq!(errors.load(Ordering::Relaxed), [1, 3][world.rank()]);
    });
}

#[test]
fn ranks_and_statuses_are_those_of_the_part() {
    job(6, |world| {
        let part = part(world);
        let (me, right, left) = (part.rank(), (part.rank() + 1) % 3, (part.rank() + 2) % 3);
        for len in [1, 5_000] {
            let (sent, mut got) = (vec![me; len], vec![9; len]);
            let status = part.sendrecv(&sent, right, 1, &mut got, left, 1).unwrap();
            assert_eq!((status.source, got[len - 1]), (left, left));

            let receive = part.irecv(vec![9; len], ANY_SOURCE, 2).unwrap();
            let send = part.issend(sent.clone(), right, 2).unwrap();
            let (got, status) = receive.wait().unwrap();
            assert_eq!((status.source, got[0]), (left, left));
            assert_eq!(send.wait().unwrap().1.source, right);

            let send = part.isend(sent, right, 3).unwrap();
            assert_eq!(part.probe(ANY_SOURCE, 3).unwrap().source, left);
            assert_eq!(part.iprobe(left, 3).unwrap().unwrap().source, left);
            let message = part.mprobe(left, ANY_TAG).unwrap();
            assert_eq!((message.status().source, message.status().tag), (left, 3));
            assert_eq!(message.recv_vec::<usize>().unwrap().0, vec![left; len]);
            send.wait().unwrap();
        }
    });
}

#[test]
fn a_rank_that_the_part_has_not_is_refused() {
    job(4, |world| {
        let (part, mut place) = (part(world), [0u8]);
        for error in [
            part.send(&[1u8], 2, 0).unwrap_err(),
            part.bsend(&[1u8], 2, 0).unwrap_err(),
            part.isend(vec![1u8], 3, 0).err().unwrap(),
            part.recv(&mut place, 2, 0).unwrap_err(),
            part.mprobe(2, 0).err().unwrap(),
            part.recv_init(vec![1u8], 2, 0).err().unwrap(),
            world.send_init(vec![1u8], 4, 0).err().unwrap(),
            part.bsend_init(vec![1u8], 2, 0).err().unwrap(),
            part.scope(|scope| scope.irecv(&mut place, 2, 0).map(drop)).unwrap_err(),
        ] {
            assert_eq!(error.class(), ErrorClass::Rank, "{error}");
        }
        world.barrier().unwrap();
    });
}

#[test]
fn nobody_sends_nothing_and_takes_everything() {
    job(2, |world| {
        let part = part(world);
        for ranks in [world as &Communicator, &part] {
            let mut kept = [7u8; 2];
            ranks.send(&kept, PROC_NULL, 0).unwrap();
            ranks.isend(vec![1u8], PROC_NULL, 0).unwrap().wait().unwrap();
            let status = ranks.recv(&mut kept, PROC_NULL, ANY_TAG).unwrap();
            assert_eq!((status.source, status.tag, status.bytes), (PROC_NULL, -1, 0));
            assert_eq!(ranks.probe(PROC_NULL, 3).unwrap(), status);
            assert_eq!(ranks.iprobe(PROC_NULL, 3).unwrap(), Some(status));
            assert_eq!(ranks.recv_vec::<u8>(PROC_NULL, 0).unwrap(), (vec![], status));
            let message = ranks.mprobe(PROC_NULL, 0).unwrap();
            assert_eq!(message.irecv(vec![4u8]).unwrap().wait().unwrap(), (vec![4], status));
            let mut receive = ranks.recv_init(vec![1u8], PROC_NULL, 0).unwrap();
            receive.start().unwrap();
            assert_eq!(receive.wait().unwrap(), Some(status));
            // A send to nobody needs no room for a copy.
            let mut send = ranks.bsend_init(vec![1u8], PROC_NULL, 0).unwrap();
            send.start().unwrap();
            assert_eq!(send.wait().unwrap(), Some(status));
            ranks
                .scope(|scope| {
                    scope.isend(&9, PROC_NULL, 0)?;
                    scope.irecv(&mut kept, PROC_NULL, 0)?;
                    Ok(())
                })
                .unwrap();
            assert_eq!(kept, [7; 2]);
            let class = ranks.send(&[1u8], PROC_NULL, -2).unwrap_err().class();
            assert_eq!(class, ErrorClass::Tag);
        }
        world.barrier().unwrap();
    });
}

#[test]
fn a_scope_serves_communicators_of_one_context() {
    let options = Options { contexts: 2, ..Default::default() };
    job_with(&options, 2, |world| {
        let further = world.on_endpoint(1).unwrap();
        let send = world.scope(|scope| scope.on(&further).isend(&1, 0, 0).map(drop));
        assert!(matches!(send, Err(Error::OtherContext)), "{send:?}");
        let mut cells = [0; 3];
        let view = world.scope(|scope| {
            let part = mpj::split_halo_mut(&mut cells, [3], 1)?.remove(0);
            scope.on(&further).irecv_view(part.ghost, 0, 0).map(drop)
        });
        assert!(matches!(view, Err(Error::OtherContext)), "{view:?}");
        let barrier =
            world.scope(|scope| scope.on(&further).start(collective::barrier()).map(drop));
        assert!(matches!(barrier, Err(Error::OtherContext)), "{barrier:?}");
        let (part, leader) = (part(&further), 1 - world.rank());
        let other = RemoteLeader { peers: &further, leader, tag: 0 };
        let between = part.create_inter(0, Some(other)).unwrap();
        let (mine, mut theirs) = (1, 0);
        let barrier =
            world.scope(|scope| scope.between(&between).start(collective::barrier()).map(drop));
        assert!(matches!(barrier, Err(Error::OtherContext)), "{barrier:?}");
        let gather = world.scope(|scope| {
            scope.between(&between).start(collective::all_gather(&mine, &mut theirs)).map(drop)
        });
        assert!(matches!(gather, Err(Error::OtherContext)), "{gather:?}");
        // Neither call has counted.
        between.barrier().unwrap();
        world.barrier().unwrap();
    });
}

#[test]
fn the_error_of_the_body_comes_first() {
    job(1, |world| {
        let mut short = [0u8; 1];
        let error = world.scope(|scope| {
            scope.irecv(&mut short, 0, 0)?;
            world.send(&[1u8, 2], 0, 0)?;
            scope.isend(&1, 7, 0).map(drop)
        });
        assert_eq!(error.unwrap_err().class(), ErrorClass::Rank, "not the truncation");
    });
}

#[test]
fn buffered_sends_wait_for_nobody() {
    job(2, |world| {
        let (other, len) = (1 - world.rank(), 300_000);
        world.attach_buffer(2 * len).unwrap();
        for tag in 0..2 {
            world.bsend(&vec![tag as u8; len], other, tag).unwrap();
        }
        // Both messages are sent before any rank receives.
        world.barrier().unwrap();
        for tag in 0..2 {
            assert_eq!(world.recv_vec::<u8>(other, tag).unwrap().0, vec![tag as u8; len]);
        }
        assert_eq!(world.detach_buffer().unwrap(), 2 * len);
        assert_eq!(world.bsend(&[1u8], other, 0).unwrap_err().class(), ErrorClass::Buffer);
        world.barrier().unwrap();
    });
}

#[test]
fn a_kept_buffered_send_copies_what_it_finds_at_each_start() {
    const LEN: usize = 1_000;
    // By rendezvous, a copy leaves only when it is received.
    let options = Options::with_backend(BackendChoice::Rendezvous);
    job_with(&options, 2, |world| {
        if world.rank() == 1 {
            world.barrier().unwrap();
            for number in 1..4 {
                assert_eq!(world.recv_vec::<u32>(0, 3).unwrap().0, [number; LEN]);
                world.send(&[1u8], 0, 4).unwrap();
            }
            return;
        }
        let class = |outcome: Result<(), Error>| outcome.unwrap_err().class();
        let mut send = world.bsend_init(vec![0; LEN], 1, 3).unwrap();
        assert_eq!(class(send.start()), ErrorClass::Buffer, "none is attached");
        world.attach_buffer(4 * LEN).unwrap();
        send.buffer_mut().unwrap().fill(1_u32);
        send.start().unwrap();
        assert_eq!(class(send.start()), ErrorClass::Request, "it was not waited for");
        assert!(send.buffer_mut().is_err());
        let status = send.wait().unwrap().unwrap();
        assert_eq!((status.source, status.tag, status.bytes), (1, 3, 4 * LEN));
        // The pending copy keeps its contents, and leaves no room for the next message.
        send.buffer_mut().unwrap().fill(2);
        assert_eq!(class(send.start()), ErrorClass::Buffer, "there is no room");
        assert_eq!(send.wait().unwrap(), None);
        world.barrier().unwrap();
        for number in 2..4 {
            world.recv(&mut [0u8], 1, 4).unwrap();
            send.buffer_mut().unwrap().fill(number);
            send.start().unwrap();
            while !send.test().unwrap() {}
        }
        assert_eq!(world.detach_buffer().unwrap(), 4 * LEN);
        world.recv(&mut [0u8], 1, 4).unwrap();
    });
}
