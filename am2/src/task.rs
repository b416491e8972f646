//! One task's access to AM-2: the transport's context, which all bundles of the task share.
//!
//! Each bundle is used by one thread at a time, since its calls borrow it mutably; bundles of different threads meet at
//! the lock of the context's session. Handlers and closures of the user run without that lock, and may hold the lock of
//! a segment (`memory.rs`), which a thread with the session's lock may wait for. So no call that takes the session is
//! possible inside them: a flag of the thread refuses it. That also keeps handlers from polling and from sending
//! requests through another bundle.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use transport_lapi::AnyAdapter;
use transport_lapi::adapter::AdapterError;
use transport_lapi::bootstrap::control::{Control, MessageCounts, Vocabulary};
use transport_lapi::config::{ConfigError, Settings};
use transport_lapi::wireup::{self, Client, Joined, WireupError};
use transport_lapi::{
    Amsend, Context, LapiError, Options, SessionGuard, Source, Step, TaskId, Tasks,
};

use crate::PACKETS;
use crate::arrival::{arrive, arrive_packed};
use crate::error::Error;
use crate::packet::{self, Header};
use crate::state::{State, on_loss};

/// The name by which AM-2 joins.
const CLIENT: &str = "am2";

thread_local! {
    /// Whether this thread runs code of the user inside a call.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Sets the flag of this thread while it runs a handler.
pub(crate) struct Inside(());

impl Inside {
    pub fn enter() -> Self {
        INSIDE.set(true);
        Self(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

/// Whether this thread runs a handler.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// What all bundles of a task share.
pub(crate) struct Core {
    pub context: Context<State>,
    /// Distinguishes the handles of endpoints of different cores.
    pub id: u64,
    /// Whether AM-2 was terminated. Stored and read with the session's lock held, except where a lock is impossible;
    /// nothing else hangs on its order.
    terminated: AtomicBool,
    /// The connection to the launcher, which lasts as long as the task is part of the job.
    control: Option<Control>,
}

impl Core {
    pub fn task(&self) -> TaskId {
        self.context.task()
    }

    pub fn num_tasks(&self) -> TaskId {
        self.context.num_tasks() as TaskId
    }

    /// Takes the session's lock, for a call of the user.
    pub fn session(&self) -> Result<SessionGuard<'_, State>, Error> {
        if is_inside() {
            return Err(Error::InHandler { task: self.task() });
        }
        let session = self.session_even_then()?;
        self.check_open().map(|()| session)
    }

    /// Fails if AM-2 was terminated.
    #[inline]
    pub fn check_open(&self) -> Result<(), Error> {
        match self.is_terminated() {
            true => Err(Error::Terminated { task: self.task() }),
            false => Ok(()),
        }
    }

    /// Takes the session's lock, to end what has begun, also after AM-2 was terminated.
    pub fn session_even_then(&self) -> Result<SessionGuard<'_, State>, Error> {
        self.context.session().map_err(|cause| self.failed(cause))
    }

    pub fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Relaxed)
    }

    /// The error for a failure of the transport.
    pub fn failed(&self, cause: LapiError) -> Error {
        Error::Transport { task: self.task(), cause }
    }

    /// Makes one round of progress: judges what has arrived. Nothing here needs [`Context::attend`]: AM-2 makes no
    /// continuations and answers no inquiries.
    #[inline]
    pub fn advance(&self, session: &mut SessionGuard<'_, State>) -> Result<(), Error> {
        if session.progress().map_err(|cause| self.failed(cause))? == 0 {
            session.notice_losses().map_err(|cause| self.failed(cause))?;
        }
        match session.state.first_error.take() {
            None => Ok(()),
            Some((origin, violation)) => Err(Error::Peer { origin, violation }),
        }
    }

    /// The first step of [`crate::Bundle::leave`]: tells the launcher.
    pub fn begin_to_leave(&self) {
        if let Some(control) = &self.control {
            control.leaving(MessageCounts::default());
        }
    }

    /// The last step of [`crate::Bundle::leave`].
    pub fn leave(&self) -> Result<(), Error> {
        self.context.gfence().map_err(|cause| self.failed(cause))?;
        if let Some(control) = &self.control {
            control.finished();
        }
        Ok(())
    }

    /// Frees endpoints, and tells those whose requests wait there.
    pub fn free(&self, numbers: impl Iterator<Item = u16>) {
        // A thread that is inside a handler must not wait for the session; then the endpoints last as long as the core.
        if is_inside() {
            return;
        }
        let Ok(mut session) = self.session_even_then() else { return };
        numbers.for_each(|number| session.state.free_port(number));
        while let Some((to, header, args)) = session.state.outgoing.pop_front() {
            // Whoever cannot be reached has lost this task, or the task is lost.
            let _ = send(&mut session, to, &header, args.words(), &[]);
        }
    }
}

/// Sends a packet of AM-2 and its payload, of which only what has to wait is copied. Never blocks.
pub(crate) fn send(
    session: &mut SessionGuard<'_, State>,
    to: TaskId,
    header: &Header,
    args: &[u32],
    payload: &[u8],
) -> Result<(), LapiError> {
    let send = |word, data: &[u8]| session.try_amsend_bytes(to, PACKETS, word, data);
    if packet::with_packed(header, args, payload, send) == Some(true) {
        return Ok(());
    }
    session.amsend_bytes(to, PACKETS, header.encode(args).bytes(), payload)
}

/// [`send`] of a payload that is shared with the caller of AM-2: it is sent from where it lies.
pub(crate) fn send_shared(
    session: &mut SessionGuard<'_, State>,
    to: TaskId,
    header: &Header,
    args: &[u32],
    payload: &Arc<Vec<u8>>,
) -> Result<(), LapiError> {
    if payload.is_empty() {
        return send(session, to, header, args, &[]);
    }
    let packet = header.encode(args);
    let source = Source::Layout(Arc::<Vec<u8>>::clone(payload));
    session.amsend(Amsend::new(to, PACKETS, packet.bytes(), source)).map(drop)
}

/// Whether sending failed because the target is lost, which its sender learns otherwise.
pub(crate) fn is_loss(cause: &LapiError) -> bool {
    matches!(cause, LapiError::Adapter(AdapterError::PeerLost { .. }))
}

/// Why [`Am::join`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// A setting is not legal.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The task could not join its job.
    #[error(transparent)]
    Wireup(#[from] WireupError),
    /// The context could not be used.
    #[error(transparent)]
    Start(#[from] Error),
}

/// A task's use of AM-2 (AM_Init). A clone is a further AM_Init: AM-2 is terminated when the last clone is dropped or
/// [terminated](Am::terminate). Then all endpoints are freed, and calls of bundles that are left fail with
/// [`Error::Terminated`].
pub struct Am(Arc<Owner>);

/// Terminates AM-2 when it is dropped.
struct Owner(Arc<Core>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.terminated.store(true, Ordering::Relaxed);
        self.0.free(0..=u16::MAX);
        if !is_inside() {
            // Threads that wait see that their wait is over.
            self.0.session_even_then().iter().for_each(|session| session.wake());
        }
        if !std::thread::panicking() && !self.0.context.is_fork() {
            self.0.control.iter().for_each(Control::withdraw);
        }
    }
}

impl Clone for Am {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl Am {
    /// Joins the job that the environment describes, or makes a job of this task alone (AMX_SPMDStartup). Blocks until
    /// every task of the job has joined. Other clients of the transport, such as `mpj`, may join beside it in the same
    /// process, in the same order on all tasks.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join() -> Result<Self, JoinError> {
        let settings = Settings::from_env()?;
        let Joined { mut contexts, control, processors, .. } =
            wireup::connect(&settings, Client::new(CLIENT))?;
        let Settings { wait, spin, .. } = settings;
        let options = Options { processors, wait, spin, ..Options::default() };
        control.iter().for_each(|launcher| launcher.vocabulary(Vocabulary::of_client(CLIENT)));
        Ok(Self::start(contexts.swap_remove(0), control, options)?)
    }

    /// Makes a job whose tasks are threads of this process. Returns the use of each task, in the order of the tasks.
    ///
    /// # Errors
    /// [`JoinError::Wireup`] for a number of tasks that is not possible.
    pub fn in_process(num_tasks: usize) -> Result<Vec<Self>, JoinError> {
        let tasks = wireup::in_process(num_tasks, 1).map_err(WireupError::from)?;
        let start = |adapter| Self::init(adapter, Options::default()).map_err(JoinError::from);
        tasks.into_iter().flatten().map(start).collect()
    }
}

impl Am {
    /// Begins to use AM-2 over an adapter that is connected to its peers (AM_Init). Every task of the job does it once.
    ///
    /// # Errors
    /// [`Error::Transport`] in a fork of the process that made the adapter.
    pub fn init(adapter: impl Into<AnyAdapter>, options: Options) -> Result<Self, Error> {
        let adapter = adapter.into();
        Self::start(adapter, None, options)
    }

    fn start(
        adapter: AnyAdapter,
        control: Option<Control>,
        options: Options,
    ) -> Result<Self, Error> {
        static CORES: AtomicU64 = AtomicU64::new(0);
        let state = State::new(adapter.endpoint().task, &Tasks::of(&*adapter));
        let core = Core {
            context: Context::init(adapter, state, options),
            id: CORES.fetch_add(1, Ordering::Relaxed),
            terminated: AtomicBool::new(false),
            control,
        };
        let mut session = core.session_even_then()?;
        let set = session.addr_set(PACKETS.into(), arrive);
        set.and_then(|()| session.addr_set_short(PACKETS.into(), arrive_packed))
            .map_err(|cause| core.failed(cause))?;
        session.on_loss(on_loss);
        drop(session);
        Ok(Self(Arc::new(Owner(Arc::new(core)))))
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.0
    }

    /// Returns the number of this task.
    pub fn task(&self) -> TaskId {
        self.core().task()
    }

    /// Returns the number of tasks of the job.
    pub fn num_tasks(&self) -> usize {
        self.core().context.num_tasks()
    }

    /// Returns the lengths of payloads, ascending, above which medium messages without arguments are sent in another
    /// way; the first one is the longest that fits into the packet with the header. Each argument takes 4 bytes of that
    /// room, an odd number of them 4 more, and the offset of a long message 8.
    ///
    /// # Errors
    /// [`Error::Terminated`], [`Error::InHandler`].
    pub fn steps(&self) -> Result<Vec<Step>, Error> {
        Ok({
            let core = self.core();
            core.session()?.steps(core.context.task(), packet::FIXED)
        })
    }

    /// Ends this use of AM-2 (AM_Terminate), like dropping it. Returns whether it was the last one, so that AM-2 is
    /// terminated now. Call [`crate::Bundle::leave`] first, or messages that are still queued may be lost.
    pub fn terminate(self) -> bool {
        Arc::into_inner(self.0).is_some()
    }
}
