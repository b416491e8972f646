//! Generalized requests beside requests of the device, with callbacks that count their calls.

use super::*;
use crate::{Cause, GeneralizedCallbacks, GeneralizedRequest};

/// Counts the calls of each callback.
#[derive(Default)]
struct Counts {
    queries: AtomicUsize,
    frees: AtomicUsize,
    cancels: AtomicUsize,
}

struct Counted(Arc<Counts>);

impl GeneralizedCallbacks for Counted {
    fn query(&self) -> Result<Status, Cause> {
        self.0.queries.fetch_add(1, Ordering::Relaxed);
        Ok(Status { cancelled: self.0.cancels.load(Ordering::Relaxed) > 0, ..Status::new(5, 6, 7) })
    }

    fn free(&self) -> Result<(), Cause> {
        match self.0.frees.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err("freed twice".into()),
        }
    }

    fn cancel(&self, is_complete: bool) -> Result<(), Cause> {
        self.0.cancels.fetch_add(1, Ordering::Relaxed);
        if is_complete { Err("too late".into()) } else { Ok(()) }
    }
}

fn start(over: &Communicator) -> (Arc<Counts>, GeneralizedRequest, Option<mpjdev::Request>) {
    let counts = Arc::<Counts>::default();
    let (own, request) = GeneralizedRequest::start(over, Counted(counts.clone())).unwrap();
    (counts, own, Some(request))
}

#[test]
fn generalized_requests_are_waited_for_in_lists_with_others() {
    run(1, |world| {
        let (device, context) = (world.device(), world.context());
        let (counts, own, request) = start(world);
        let nothing = mpjdev::RecvRegion::EMPTY;
        let receive = device.irecv(nothing, Some(0), Some(1), context).unwrap();
        let mut list = [Some(receive), request];
        assert!(device.itestany(&mut list).unwrap().is_none());
        thread::scope(|scope| {
            scope.spawn(|| own.complete().unwrap());
            let (place, outcome) = device.iwaitany(&mut list).unwrap().unwrap();
            assert_eq!((place, outcome.is_ok()), (1, true));
        });
        let status = own.query().unwrap();
        assert_eq!((status.source, status.tag, status.bytes), (5, 6, 7));
        own.free().unwrap();
        own.free().unwrap();
        assert_eq!(counts.frees.load(Ordering::Relaxed), 1);
        assert!(own.is_complete());
        let again = own.complete().unwrap_err();
        assert_eq!(again.class(), ErrorClass::Request);
        let data = mpjdev::SendRegion::EMPTY;
        device.send(data, 0, 1, context, mpjdev::Mode::Standard).unwrap();
        assert_eq!(device.iwaitall(&mut list).unwrap().len(), 1);
    });
}

#[test]
fn a_request_that_was_given_up_is_freed_by_its_completion() {
    run(1, |world| {
        let (counts, own, request) = start(world);
        world.device().detach(request.unwrap(), Box::new(()));
        own.release().unwrap();
        assert_eq!(counts.frees.load(Ordering::Relaxed), 0);
        own.complete().unwrap();
        assert_eq!(counts.frees.load(Ordering::Relaxed), 1);
        assert_eq!(counts.queries.load(Ordering::Relaxed), 0);

        let (counts, own, request) = start(world);
        own.complete().unwrap();
        world.device().detach(request.unwrap(), Box::new(()));
        own.release().unwrap();
        assert_eq!(counts.frees.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn the_program_decides_whether_a_request_is_cancelled() {
    run(1, |world| {
        let (counts, own, mut request) = start(world);
        own.cancel().unwrap();
        assert_eq!(world.device().itest(&mut request).unwrap(), None, "it is not complete");
        own.complete().unwrap();
        world.device().iwait(request.take().unwrap()).unwrap();
        assert!(own.query().unwrap().cancelled);
        let late = own.cancel().unwrap_err();
        let said = "the cancel callback of a generalized request failed: too late";
        assert_eq!(late.to_string(), said);
        own.free().unwrap();
        assert_eq!(counts.cancels.load(Ordering::Relaxed), 2);
    });
}
