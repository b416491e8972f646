//! Error handlers (MPI-5.0 section 9.3): who gets the error of a function, and what then happens.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use mpicore::job;

use crate::abi::*;
use crate::call::{Fault, Outcome, Subject, mpi, mpi_anytime, out};
use crate::comm::Comm;
use crate::error::code::described;
use crate::handles::OBJECTS;
use crate::process;
use crate::process::session::Session;

/// What happens when a call on an object fails.
#[derive(Clone)]
pub(crate) enum Handler {
    /// MPI_ERRORS_ARE_FATAL, which nobody has set.
    Initial,
    /// MPI_ERRORS_ARE_FATAL.
    Fatal,
    /// MPI_ERRORS_ABORT.
    Abort,
    /// MPI_ERRORS_RETURN.
    Return,
    /// A function of the program gets the error.
    User(Arc<User>),
}

/// An error handler that a program has made. It lives as long as an object has it, or the program has a handle.
pub(crate) struct User {
    function: Function,
    known: Mutex<Known>,
}

/// How the program knows an error handler.
struct Known {
    /// The handle; of no use while `times` is 0.
    handle: usize,
    /// How often the program has got the handle, and so how often it frees it.
    times: usize,
}

/// The function of an error handler, by the kind of objects for which it is.
#[derive(Clone, Copy, Debug)]
enum Function {
    Comm(MPI_Comm_errhandler_function),
    File(MPI_File_errhandler_function),
    Session(MPI_Session_errhandler_function),
    Win(MPI_Win_errhandler_function),
}

/// A kind of objects that have error handlers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Comm,
    File,
    Session,
    Win,
}

/// The error handler of an object, which may change at any time.
pub(crate) struct Place(Mutex<Handler>);

impl Place {
    /// Makes the place of a new object.
    pub const fn new(handler: Handler) -> Self {
        Self(Mutex::new(handler))
    }

    /// Returns the handler.
    pub fn get(&self) -> Handler {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the handler.
    pub fn set(&self, handler: Handler) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = handler;
    }
}

/// The error handler of MPI_FILE_NULL, which new files get.
pub(crate) static FILES: Place = Place::new(Handler::Return);

impl Handler {
    /// Returns the handle, which the program frees.
    pub fn handle(&self) -> Outcome<MPI_Errhandler> {
        let user = match self {
            Self::Initial | Self::Fatal => return Ok(MPI_ERRORS_ARE_FATAL),
            Self::Abort => return Ok(MPI_ERRORS_ABORT),
            Self::Return => return Ok(MPI_ERRORS_RETURN),
            Self::User(user) => user,
        };
        let mut known = user.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.times == 0 {
            known.handle = OBJECTS.insert(Arc::clone(user))?;
        }
        known.times += 1;
        Ok(MPI_Errhandler(known.handle))
    }
}

impl Function {
    fn kind(self) -> Kind {
        match self {
            Self::Comm(_) => Kind::Comm,
            Self::File(_) => Kind::File,
            Self::Session(_) => Kind::Session,
            Self::Win(_) => Kind::Win,
        }
    }

    /// Calls the function, while nothing is locked.
    fn call(self, comm: MPI_Comm, subject: Subject, mut code: c_int) {
        let code = &raw mut code;
        // SAFETY: FC1: the program gave a function of this type. It gets places that live until it returns.
        unsafe {
            match (self, subject) {
                (Self::Comm(function), _) => {
                    let mut comm = comm;
                    function(&raw mut comm, code);
                }
                (Self::File(function), subject) => {
                    let file = if let Subject::File(file) = subject { file } else { MPI_FILE_NULL };
                    let mut file = file;
                    function(&raw mut file, code);
                }
                (Self::Session(function), Subject::Session(mut session)) => {
                    function(&raw mut session, code);
                }
                (Self::Win(function), Subject::Win(mut win)) => function(&raw mut win, code),
                // An object has handlers of its kind only.
                (Self::Session(_) | Self::Win(_), _) => {}
            }
        }
    }
}

/// Passes the error of a function to the error handler that is responsible, and returns the code for the caller.
#[cold]
#[inline(never)]
pub(crate) fn fail(name: &'static str, subject: Subject, fault: Fault) -> c_int {
    raise(name, subject, &fault);
    fault.returned()
}

/// Calls the error handler that is responsible.
///
/// The errors of communicators, files, sessions and windows are their own. Errors without an object go to the handler of
/// MPI_COMM_SELF; if the program has set none there, to that of MPI_COMM_WORLD, as versions of MPI before 4.0 say.
/// Without communicators they are fatal. The error of a request whose communicator was freed goes to the handler of
/// that communicator, which gets MPI_COMM_NULL.
fn raise(name: &'static str, subject: Subject, fault: &Fault) {
    let subject = fault.window().map_or(subject, Subject::Win);
    let named = match subject {
        Subject::Comm(comm) => comm.find().ok().map(|comm| Arc::clone(&comm)),
        Subject::None | Subject::Win(_) | Subject::File(_) | Subject::Session(_) => None,
    };
    let comm = fault.comm().cloned().or(named);
    let (handler, comm) = match (comm, subject, process::running()) {
        _ if fault.handler().is_some() => {
            (fault.handler().cloned().unwrap_or(Handler::Initial), None)
        }
        (Some(comm), ..) => (comm.handler.get(), Some(comm)),
        (None, Subject::File(file), _) => {
            (file.find().map_or_else(|_| FILES.get(), |file| file.handler.get()), None)
        }
        (None, Subject::Session(session), _) if session.find().is_ok() => {
            (session.find().map_or(Handler::Initial, |session| session.handler.get()), None)
        }
        (None, Subject::Win(win), _) if win.find().is_ok() => {
            (win.find().map_or(Handler::Initial, |win| win.handler.get()), None)
        }
        (None, _, Some(running)) => match running.own.handler.get() {
            Handler::Initial => (running.world.handler.get(), None),
            set => (set, None),
        },
        (None, _, None) => (Handler::Initial, None),
    };
    match handler {
        Handler::Return => {}
        Handler::User(user) => {
            let of = comm.map_or(MPI_COMM_SELF, |comm| comm.live_handle());
            user.function.call(of, subject, fault.code());
        }
        Handler::Initial | Handler::Fatal | Handler::Abort => end(name, comm.as_deref(), fault),
    }
}

/// Ends the job because of an error. The launcher's report shows the message; without a launcher it goes to standard
/// error, since nobody else could show it.
fn end(name: &str, comm: Option<&Comm>, fault: &Fault) -> ! {
    let place = comm.map_or_else(String::new, |comm| {
        format!(" on {}, rank {}", comm.title(), comm.core.rank())
    });
    let message = format!("{name} failed{place}: {} ({})", fault.text(), described(fault.code()));
    if !job::complain(&message) {
        let _ = rustix::io::write(rustix::stdio::stderr(), format!("{message}\n").as_bytes());
    }
    job::abort(fault.code())
}

impl MPI_Errhandler {
    /// Returns the handler, which must be one for this kind of objects.
    ///
    /// # Errors
    /// MPI_ERR_ERRHANDLER.
    pub fn find(self, kind: Kind) -> Outcome<Handler> {
        let user = match self {
            MPI_ERRORS_ARE_FATAL => return Ok(Handler::Fatal),
            MPI_ERRORS_ABORT => return Ok(Handler::Abort),
            MPI_ERRORS_RETURN => return Ok(Handler::Return),
            MPI_Errhandler(handle) => OBJECTS.hold::<Arc<User>>(handle),
        };
        let user = user.map_err(|fault| fault.about("errhandler"))?;
        let own = user.function.kind();
        if own != kind {
            let text = format!("the error handler is one for {own:?} objects, not for {kind:?}");
            return Err(Fault::argument(MPI_ERR_ERRHANDLER, "errhandler", text));
        }
        Ok(Handler::User(Arc::clone(&user)))
    }
}

/// Makes an error handler of a function.
unsafe fn create(function: Option<Function>, errhandler: *mut MPI_Errhandler) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::place(errhandler, "errhandler") }?;
    let function = function.ok_or_else(|| out::null("the function"))?;
    let known = Mutex::new(Known { handle: 0, times: 0 });
    *place = Handler::User(Arc::new(User { function, known })).handle()?;
    Ok(())
}

/// Sets the error handler of a communicator.
fn set_on_comm(comm: MPI_Comm, errhandler: MPI_Errhandler) -> Outcome {
    let comm = comm.find()?;
    comm.handler.set(errhandler.find(Kind::Comm)?);
    Ok(())
}

/// Returns the error handler of a communicator.
unsafe fn get_of_comm(comm: MPI_Comm, errhandler: *mut MPI_Errhandler) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::place(errhandler, "errhandler") }?;
    *place = comm.find()?.handler.get().handle()?;
    Ok(())
}

/// Calls `use_place` with the place of the error handler of a file.
fn of_file<R>(file: MPI_File, use_place: impl FnOnce(&Place) -> R) -> Outcome<R> {
    match file {
        MPI_FILE_NULL => Ok(use_place(&FILES)),
        _ => Ok(use_place(&file.find()?.handler)),
    }
}

mpi! {
    fn MPI_Comm_set_errhandler(comm: MPI_Comm, errhandler: MPI_Errhandler) -> c_int {
        set_on_comm(comm, errhandler)
    }

    fn MPI_Errhandler_set(comm: MPI_Comm, errhandler: MPI_Errhandler) -> c_int {
        set_on_comm(comm, errhandler)
    }

    fn MPI_Comm_get_errhandler(comm: MPI_Comm, errhandler: *mut MPI_Errhandler) -> c_int {
        get_of_comm(comm, errhandler)
    }

    fn MPI_Errhandler_get(comm: MPI_Comm, errhandler: *mut MPI_Errhandler) -> c_int {
        get_of_comm(comm, errhandler)
    }

    fn MPI_Comm_call_errhandler(comm: MPI_Comm, errorcode: c_int) -> c_int {
        comm.find()?;
        Err(Fault::asked(errorcode))
    }

    fn MPI_File_set_errhandler(file: MPI_File, errhandler: MPI_Errhandler) -> c_int {
        let handler = errhandler.find(Kind::File)?;
        of_file(file, |place| place.set(handler))
    }

    fn MPI_File_get_errhandler(file: MPI_File, errhandler: *mut MPI_Errhandler) -> c_int {
        let place = out::place(errhandler, "errhandler")?;
        *place = of_file(file, Place::get)?.handle()?;
        Ok(())
    }

    fn MPI_File_call_errhandler(fh: MPI_File, errorcode: c_int) -> c_int {
        of_file(fh, |_| ())?;
        Err(Fault::asked(errorcode))
    }

    fn MPI_Win_set_errhandler(win: MPI_Win, errhandler: MPI_Errhandler) -> c_int {
        win.find()?.handler.set(errhandler.find(Kind::Win)?);
        Ok(())
    }

    fn MPI_Win_get_errhandler(win: MPI_Win, errhandler: *mut MPI_Errhandler) -> c_int {
        let place = out::place(errhandler, "errhandler")?;
        *place = win.find()?.handler.get().handle()?;
        Ok(())
    }

    fn MPI_Win_call_errhandler(win: MPI_Win, errorcode: c_int) -> c_int {
        win.find()?;
        Err(Fault::asked(errorcode))
    }
}

mpi_anytime! {
    fn MPI_Comm_create_errhandler(
        comm_errhandler_fn: Option<MPI_Comm_errhandler_function>, errhandler: *mut MPI_Errhandler
    ) -> c_int {
        create(comm_errhandler_fn.map(Function::Comm), errhandler)
    }

    fn MPI_Errhandler_create(handler_fn: Option<MPI_Handler_function>, errhandler: *mut MPI_Errhandler) -> c_int {
        create(handler_fn.map(Function::Comm), errhandler)
    }

    fn MPI_File_create_errhandler(
        file_errhandler_fn: Option<MPI_File_errhandler_function>, errhandler: *mut MPI_Errhandler
    ) -> c_int {
        create(file_errhandler_fn.map(Function::File), errhandler)
    }

    fn MPI_Session_create_errhandler(
        session_errhandler_fn: Option<MPI_Session_errhandler_function>, errhandler: *mut MPI_Errhandler
    ) -> c_int {
        create(session_errhandler_fn.map(Function::Session), errhandler)
    }

    fn MPI_Win_create_errhandler(
        win_errhandler_fn: Option<MPI_Win_errhandler_function>, errhandler: *mut MPI_Errhandler
    ) -> c_int {
        create(win_errhandler_fn.map(Function::Win), errhandler)
    }

    // The standard's handlers are never freed, but programs free what MPI_Comm_get_errhandler returns.
    fn MPI_Errhandler_free(errhandler: *mut MPI_Errhandler) -> c_int {
        let place = out::place(errhandler, "errhandler")?;
        if !matches!(*place, MPI_ERRORS_ARE_FATAL | MPI_ERRORS_ABORT | MPI_ERRORS_RETURN) {
            let MPI_Errhandler(handle) = *place;
            let user = OBJECTS.hold::<Arc<User>>(handle).map_err(|fault| fault.about("errhandler"))?;
            let mut known = user.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.times = known.times.saturating_sub(1);
            if known.times == 0 {
                OBJECTS.free::<Arc<User>>(handle)?;
            }
        }
        *place = MPI_ERRHANDLER_NULL;
        Ok(())
    }

    fn MPI_Session_set_errhandler(session: MPI_Session, errhandler: MPI_Errhandler) -> c_int {
        session.find()?.handler.set(errhandler.find(Kind::Session)?);
        Ok(())
    }

    fn MPI_Session_get_errhandler(session: MPI_Session, errhandler: *mut MPI_Errhandler) -> c_int {
        let place = out::place(errhandler, "errhandler")?;
        *place = session.find()?.handler.get().handle()?;
        Ok(())
    }

    fn MPI_Session_call_errhandler(session: MPI_Session, errorcode: c_int) -> c_int {
        session.find()?;
        Err(Fault::asked(errorcode))
    }
}

/// Sessions and error handlers are shared among threads.
const _: fn() = || {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<(Arc<User>, Arc<Session>)>();
};
