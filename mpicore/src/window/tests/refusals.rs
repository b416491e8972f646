//! What windows refuse, and what the loss of a rank ends.

use mpjdev::PeerError;

use super::*;

#[test]
fn what_a_target_does_not_have_is_refused() {
    run_both(2, |world, make| {
        let (size, unit) = ([64, 32][world.rank() as usize], [8, 4][world.rank() as usize]);
        let (window, number) = (make(world, size, unit), &number());
        window.fence(true, true).unwrap();
        let put = |rank, displacement, count: i64| {
            let numbers = vec![1; count.max(0) as usize];
            window.put(source(&numbers), at(rank, displacement, count, number))
        };
        for outside in
            [put(0, 8, 1), put(0, -1, 1), put(1, 7, 1), put(0, 0, 9), put(0, i64::MAX, 1)]
        {
            assert_eq!(class(outside), ErrorClass::RmaRange);
        }
        match world.rank() {
            0 => put(0, 7, 1).unwrap(),
            _ => put(1, 6, 1).unwrap(),
        }
        put(0, 99, 0).unwrap();
        assert_eq!(class(put(2, 0, 1)), ErrorClass::Rank);
        assert_eq!(class(put(0, 0, -1)), ErrorClass::Count);
        assert_eq!(class(window.put(source(&[1, 2]), at(0, 0, 1, number))), ErrorClass::Count);
        let double = Datatype::predefined(ElementKind::F64);
        let band = window.accumulate(source(&[1]), Predefined::Band, at(0, 0, 1, &double));
        assert_eq!(class(band), ErrorClass::Op);
        let (_, sink) = Fetched::of(1);
        let swap = window.compare_and_swap(source(&[1]), source(&[1]), sink, at(0, 0, 1, &double));
        assert_eq!(class(swap), ErrorClass::Type);
        assert_eq!(class(window.attach(RecvRegion::EMPTY)), ErrorClass::RmaFlavor);
        let of_other = window.shared_query(Some(1 - world.rank())).unwrap();
        assert!(of_other.0.is_null() && of_other.1 == 0, "private memory");
        let own = window.shared_query(Some(world.rank())).unwrap();
        assert_eq!(own, (window.base(), size as u64, unit as u64));
        assert_eq!(window.shared_query(None).unwrap(), window.shared_query(Some(0)).unwrap());
        let too_much = Window::allocate_shared(world, usize::MAX >> 1, 1);
        assert_eq!(class(too_much), ErrorClass::RmaShared);
        assert_eq!(class(window.check_free()), ErrorClass::RmaSync);
        window.fence(true, false).unwrap();
        assert_eq!(
            (window.extent(), window.flavor()),
            ((size as u64, unit as u64), Flavor::Allocate)
        );
        window.free().unwrap();
        assert_eq!(
            class(Window::allocate(world, usize::MAX >> world.rank(), 1)),
            ErrorClass::NoMem
        );
    });
}

/// Operations on memory that is not attached, or that name a byte twice, are refused by the target, and the origin learns it
/// from the call that waits for them.
#[test]
fn targets_refuse_operations() {
    run(2, |world| {
        let (window, number) = (Window::dynamic(world).unwrap(), &number());
        assert!(window.base().is_null());
        assert_eq!(class(window.shared_query(None)), ErrorClass::RmaFlavor);
        window.fence(false, true).unwrap();
        window.put(source(&[1]), at(1, 4096, 1, number)).unwrap();
        assert_eq!(class(window.fence(true, false)), ErrorClass::RmaRange);
        window.lock(LockKind::Shared, 0, true).unwrap();
        window.put(source(&[1]), at(0, 4096, 1, number)).unwrap();
        assert_eq!(class(window.flush(Some(0))), ErrorClass::RmaRange);
        let (untouched, sink) = Fetched::of(1);
        let request = window.rget(sink, at(0, 4096, 1, number)).unwrap();
        let failed = world.device().iwait(request).unwrap_err();
        assert_eq!(Error::from(failed).class(), ErrorClass::RmaRange);
        let (_, sink) = Fetched::of(1);
        window.get(sink, at(0, 4096, 1, number)).unwrap();
        assert_eq!(class(window.flush_local(Some(0))), ErrorClass::RmaRange);
        window.unlock(0).unwrap();
        assert_eq!(untouched.numbers(), [u64::MAX]);
        window.free().unwrap();
    });
}

/// A rank is lost that has the lock of mapped memory, or what serialises updates. Others learn this.
#[test]
#[cfg_attr(miri, ignore = "no memory is mapped")]
fn a_lost_holder_ends_waits_for_mapped_memory() {
    run(3, |world| {
        let (window, device) = (mapped(world, 64, 8), world.device());
        // From now on locks need one word alone.
        window.lock(LockKind::Shared, 1, true).unwrap();
        window.unlock(1).unwrap();
        if world.rank() == 2 {
            window.lock(LockKind::Exclusive, 0, true).unwrap();
        }
        world.run_barrier().unwrap();
        match world.rank() {
            2 => {
                device.abort();
                device.give_up();
            }
            _ => {
                let failed = window.lock(LockKind::Shared, 0, true);
                assert_eq!(class(failed), ErrorClass::ProcFailed);
                assert_eq!(class(window.unlock(0)), ErrorClass::RmaSync, "no epoch is left");
            }
        }
    });
}

/// A rank is lost that has a lock. The one that waits for it learns this, and what needs no other rank goes on.
#[test]
fn a_lost_rank_ends_waits_but_no_gets_from_others() {
    run(3, |world| {
        let (window, number) = (private(world, 64, 8), &number());
        let device = world.device();
        if world.rank() == 2 {
            window.lock(LockKind::Exclusive, 0, true).unwrap();
            window.put(source(&[1]), at(0, 0, 1, number)).unwrap();
            window.flush(Some(0)).unwrap();
        }
        world.run_barrier().unwrap();
        match world.rank() {
            0 => drop(device.probe(Some(1), Some(5), world.context()).unwrap()),
            1 => {
                window.lock(LockKind::Shared, 0, true).unwrap();
                let (untouched, sink) = Fetched::of(1);
                window.get(sink, at(0, 0, 1, number)).unwrap();
                assert_eq!(class(window.unlock(0)), ErrorClass::ProcFailed);
                window.lock(LockKind::Shared, 1, false).unwrap();
                let (own, sink) = Fetched::of(1);
                wait(&window, window.rget(sink, at(1, 0, 1, number)).unwrap());
                assert_eq!((own.numbers(), untouched.numbers()), (vec![0], vec![u64::MAX]));
                device.send_bytes(vec![0], 0, 5, world.context()).unwrap();
            }
            _ => {
                device.abort();
                device.give_up();
            }
        }
    });
}

/// The loss of a rank ends the wait of one thread for a lock. Another thread, whose get from a third rank is under way, does
/// not take for its result what the buffer had before.
#[test]
fn a_wait_that_is_given_up_fails_gets_of_other_threads() {
    run(3, |world| {
        let (window, number) = (private(world, 64, 8), &number());
        let (device, context) = (world.device(), world.context());
        if world.rank() == 1 {
            window.lock(LockKind::Exclusive, 1, true).unwrap();
        }
        world.run_barrier().unwrap();
        match world.rank() {
            0 => {
                // Rank 1 answers the get only when rank 2 is lost.
                window.lock(LockKind::Shared, 1, true).unwrap();
                let (untouched, sink) = Fetched::of(1);
                window.get(sink, at(1, 0, 1, number)).unwrap();
                let waited = window.0.settle_up_to(Call::WinLock, 2, 1);
                assert_eq!(class(waited), ErrorClass::ProcFailed);
                device.send_bytes(vec![0], 1, 5, context).unwrap();
                while window.0.state().peers[1].open.first().is_some() {
                    device.progress().unwrap();
                }
                let get = thread::scope(|scope| scope.spawn(|| window.flush_local(Some(1))).join());
                assert_eq!(class(get.unwrap()), ErrorClass::ProcFailed);
                assert_eq!(untouched.numbers(), [u64::MAX]);
                device.send_bytes(vec![0], 1, 6, context).unwrap();
            }
            1 => {
                device.probe(Some(0), Some(5), context).unwrap();
                let _ = window.unlock(1);
                device.probe(Some(0), Some(6), context).unwrap();
            }
            _ => {
                device.abort();
                device.give_up();
            }
        }
    });
}

/// Rank 0 sends a message that breaks the rules, and rank 1 says so.
fn violation(message: Vec<u8>) -> PeerError {
    ranks::violation(message, |world| {
        let window = private(world, 8, 1);
        let context = window.0.communicator.context();
        (window, context)
    })
}

#[test]
fn messages_that_break_the_rules_are_refused() {
    let of = |kind, number| Head::alone(kind, number);
    assert_eq!(violation(vec![0; 9]), PeerError::Window { len: 9 });
    // A number that was carried out, a lock that the rank does not have, and answers to nothing.
    assert_eq!(violation(of(Kind::Flush, 0)), PeerError::Window { len: 24 });
    assert_eq!(violation(of(Kind::Unlock, 1)), PeerError::Window { len: 24 });
    for kind in [Kind::LongPut, Kind::LongGet] {
        let outside = Head::new(kind, 1, 1).message(&[8], 0);
        assert_eq!(violation(outside), PeerError::Window { len: 32 });
    }
    assert_eq!(violation(of(Kind::Done { failed: false }, 1)), PeerError::StrayWindowAnswer);
    assert_eq!(
        violation(of(Kind::Data { failed: false, refused: false }, 1)),
        PeerError::StrayWindowAnswer
    );
}
