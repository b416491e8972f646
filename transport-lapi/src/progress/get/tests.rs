//! The kernel refuses reads from some moment on: gets then begin again over frames.

use std::cell::RefCell;
use std::io;
use std::ops::Deref;

use super::*;
use crate::adapter::{GetKind, Registered};
use crate::adapters::local::{Reach, pass_on};
use crate::adapters::threads;
use crate::memory::layout::Layout;
use crate::memory::region::{RecvRegion, RemoteKey, SendRegion};
use crate::progress::context::{Context, Options};

const LEN: usize = 251 << 13;

thread_local! {
    /// How many reads the kernel still allows, how many it has refused, and with which error.
    static KERNEL: RefCell<(usize, usize, i32)> = const { RefCell::new((0, 0, 0)) };
}

/// Reads as far as [`KERNEL`] allows.
struct Refusing(Box<dyn Reach>);

impl Deref for Refusing {
    type Target = dyn Reach;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Reach for Refusing {
    fn read(
        &self,
        target: TaskId,
        key: RemoteKey,
        offset: u64,
        into: RecvPart<'_>,
    ) -> Result<(), AdapterError> {
        let refused = KERNEL.with_borrow_mut(|(allowed, refused, errno)| match *allowed {
            0 => {
                *refused += 1;
                Some(*errno)
            }
            _ => {
                *allowed -= 1;
                None
            }
        });
        let Some(errno) = refused else { return self.0.read(target, key, offset, into) };
        let reason = io::Error::from_raw_os_error(errno);
        Err(AdapterError::AccessFailed { target, len: into.len(), reason })
    }

    pass_on! {
        name() -> &'static str;
        kind() -> Option<GetKind>;
        register(memory: Registered) -> Option<RemoteKey>;
        deregister(key: RemoteKey);
        has_areas() -> bool;
        may_be_written() -> bool;
        land(target: TaskId, into: &RecvRegion);
        write(origin: TaskId, addr: u64, at: usize, from: SendRegion) -> io::Result<()>;
        is_gone(target: TaskId) -> bool;
    }
}

/// The outcomes of gets, in the order of their ends.
type Ends = Vec<Result<(), LapiError>>;

fn ended(ends: &mut Ends, _: &mut Outbox<Ends>, _: u64, outcome: Result<(), LapiError>) {
    ends.push(outcome);
}

/// Two tasks in this thread.
struct Scene {
    reader: Context<Ends>,
    owner: Context<Ends>,
    bytes: Vec<u8>,
    remote: RemoteRegion,
}

impl Scene {
    /// The kernel allows so many reads, and refuses the others with this error.
    fn new(allowed: usize, errno: i32) -> Self {
        KERNEL.set((allowed, 0, errno));
        let mut tasks = threads::job(2).unwrap().into_iter().map(|task| {
            let adapter = task.into_any().with_reach(Refusing);
            Context::init(adapter, Ends::new(), Options::default())
        });
        let [reader, owner] = [(); 2].map(|()| tasks.next().unwrap());
        let bytes: Vec<u8> = (0..251).collect::<Vec<u8>>().repeat(LEN / 251);
        // SAFETY: G1 of `crate::memory::region`: the scene keeps the bytes, and nothing changes them.
        let region = unsafe { SendRegion::new(bytes.as_ptr(), LEN) };
        let remote = owner.session().unwrap().register(region).unwrap();
        Self { reader, owner, bytes, remote }
    }

    /// Gets `len` bytes from `offset` on, and returns the outcome and the bytes. The owner makes progress only if it
    /// `helps`, or if nothing else happens.
    fn get(&self, offset: usize, len: usize, helps: bool) -> (Result<(), LapiError>, Vec<u8>) {
        let mut landing = vec![0; len];
        // SAFETY: G2 of `crate::memory::region`: the landing is local, and the get ends before it goes.
        let into = unsafe { RecvRegion::new(landing.as_mut_ptr(), len) };
        (self.get_into(offset, into.into(), helps), landing)
    }

    fn get_into(&self, offset: usize, into: Sink, helps: bool) -> Result<(), LapiError> {
        let next = Next::Outcome(ended, 0);
        self.reader.session().unwrap().get(1, self.remote, offset as u64, into, next).unwrap();
        loop {
            let done = self.reader.session().unwrap().progress().unwrap();
            if let Some(end) = self.reader.session().unwrap().state.pop() {
                return end;
            }
            if helps || done == 0 {
                self.owner.session().unwrap().progress().unwrap();
            }
        }
    }
}

fn refusals() -> usize {
    KERNEL.with_borrow(|(_, refused, _)| *refused)
}

#[test]
fn a_refused_get_begins_again_over_frames_and_so_do_all_later_ones() {
    let errors = [libc::EPERM, libc::EACCES, libc::ENOSYS];
    for (allowed, errno) in (0..12).zip(errors.into_iter().cycle()) {
        for helps in [false, true] {
            let scene = Scene::new(allowed, errno);
            let mut from = 0;
            while refusals() == 0 {
                let (end, landed) = scene.get(from, LEN - from, helps);
                end.unwrap();
                assert!(landed == scene.bytes[from..], "{allowed} reads, get from {from} on");
                from += 1;
            }
            for len in [1, 1000, LEN - 7] {
                let (end, landed) = scene.get(7, len, helps);
                end.unwrap();
                assert!(landed == scene.bytes[7..7 + len], "{allowed} reads, {len} bytes");
            }
            assert_eq!(refusals(), 1, "no read is tried again");
        }
    }
}

#[test]
fn a_refused_get_into_a_layout_begins_again() {
    for allowed in 0..4 {
        let scene = Scene::new(allowed, libc::EPERM);
        let mut landing = vec![0_u8; 2 * LEN];
        // SAFETY: G2 of `crate::memory::region`: the landing is local, and the get ends before it goes.
        let memory = unsafe { RecvRegion::new(landing.as_mut_ptr(), landing.len()) };
        let every_other = Layout::strided(1024, 2048, LEN / 1024).unwrap();
        let into = every_other.to_receive(memory, 0).unwrap();
        scene.get_into(0, into, false).unwrap();
        let landed = landing.chunks(2048).flat_map(|both| &both[..1024]);
        assert!(landed.eq(&scene.bytes), "{allowed} reads");
        assert_eq!(refusals(), 1);
    }
}

#[test]
fn another_error_of_a_read_ends_the_get() {
    for len in [1000, LEN] {
        let scene = Scene::new(0, libc::EFAULT);
        let (end, _) = scene.get(0, len, false);
        let failed = end.unwrap_err();
        let is_failure = |error: &LapiError| {
            matches!(error, LapiError::Adapter(AdapterError::AccessFailed { target: 1, .. }))
        };
        assert!(is_failure(&failed), "{failed}");
        scene.get(0, len, false).0.unwrap_err();
        assert_eq!(refusals(), 2, "the next one is read as well");
    }
}

/// A get that has to begin again, but whose target is lost meanwhile, fails for the loss.
#[test]
fn a_refused_get_from_a_lost_task_fails_for_the_loss() {
    let scene = Scene::new(0, libc::EPERM);
    let losses = scene.owner.session().unwrap().adapter().parts().losses;
    let mut landing = vec![0; 1000];
    // SAFETY: G2 of `crate::memory::region`: the landing is local, and the get ends before it goes.
    let into = unsafe { RecvRegion::new(landing.as_mut_ptr(), 1000) };
    let mut session = scene.reader.session().unwrap();
    session.get(1, scene.remote, 0, into, Next::Outcome(ended, 0)).unwrap();
    session.progress().unwrap();
    losses.declare();
    while session.state.is_empty() {
        session.notice_losses().unwrap();
    }
    let lost = session.state.pop().unwrap().unwrap_err();
    assert!(matches!(lost, LapiError::Adapter(AdapterError::PeerLost { task: 1 })), "{lost}");
}

/// Long gets wait without a turn while another one is shared, and all of them end, also those behind a refused one
/// and those that a loss ends.
#[test]
fn gets_wait_for_the_one_that_is_shared() {
    const GETS: usize = 8;
    for (allowed, is_lost) in [(usize::MAX, false), (3, false), (usize::MAX, true)] {
        let scene = Scene::new(allowed, libc::EPERM);
        let mut landings = vec![vec![0; SHARED_FROM]; GETS];
        for (at, landing) in landings.iter_mut().enumerate() {
            // SAFETY: G2 of `crate::memory::region`: the landing is local, and the get ends before it goes.
            let into = unsafe { RecvRegion::new(landing.as_mut_ptr(), SHARED_FROM) };
            let next = Next::Outcome(ended, 0);
            scene.reader.session().unwrap().get(1, scene.remote, at as u64, into, next).unwrap();
        }
        let mut session = scene.reader.session().unwrap();
        session.progress().unwrap();
        assert!(session.engine.outbox.gets.turns.len() <= 1, "the others have none");
        if is_lost {
            session.engine.outbox.lose_gets(1);
            assert_eq!(
                session.engine.outbox.gets.under_way(),
                1,
                "the shared one ends in its turn"
            );
        }
        while session.state.len() < GETS {
            session.progress().unwrap();
            scene.owner.session().unwrap().progress().unwrap();
        }
        assert!(session.engine.outbox.gets.waiting.values().all(VecDeque::is_empty));
        let is_right = |at: usize| landings[at] == scene.bytes[at..][..SHARED_FROM];
        assert!(is_lost || session.state.iter().all(Result::is_ok) && (0..GETS).all(is_right));
    }
}
