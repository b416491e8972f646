//! Jobs of threads whose network is libfabric over the loopback interface. Where the library is missing, or lacks such a
//! provider, tests say so and are not shown. The software of the provider writes memory, too, as hardware does elsewhere.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use transport_lapi::adapter::{AdapterError, Doorbell, Endpoint, Losses, TaskId};
use transport_lapi::adapters::ofi::{Fabric, OfiAdapter, Peers};
use transport_lapi::config::FabricChoice;

/// The providers of TCP, of newer and of older libraries.
const PROVIDERS: [&str; 2] = ["tcp", "net"];

/// Returns the fabric over the loopback interface, or why there is none.
pub fn fabric() -> Result<&'static Arc<Fabric>, &'static str> {
    static FABRIC: OnceLock<Result<Arc<Fabric>, String>> = OnceLock::new();
    let open = || {
        let mut refused = String::new();
        for provider in PROVIDERS {
            let (provider, domain) = (provider.to_owned(), Some("lo".to_owned()));
            match Fabric::open_with_writes_by_software(&FabricChoice::Named { provider, domain }) {
                Ok(fabric) => return Ok(fabric),
                Err(error) => refused = error.to_string(),
            }
        }
        Err(refused)
    };
    FABRIC.get_or_init(open).as_ref().map_err(String::as_str)
}

/// Makes the adapters of one context, for tasks with these bells.
///
/// # Errors
/// Those of [`OfiAdapter::new`]; [`AdapterError::NoFabric`].
pub fn in_context(
    context: usize,
    bells: Vec<Arc<dyn Doorbell>>,
) -> Result<Vec<OfiAdapter>, AdapterError> {
    with_secrets(context, bells, |_| 7)
}

/// Likewise for tasks that each take another secret for that of the job, of so many equal bytes.
///
/// # Errors
/// As [`in_context`].
pub fn with_secrets(
    context: usize,
    bells: Vec<Arc<dyn Doorbell>>,
    secret: fn(TaskId) -> u8,
) -> Result<Vec<OfiAdapter>, AdapterError> {
    let fabric = fabric().map_err(|reason| AdapterError::NoFabric { reason: reason.to_owned() })?;
    let num_tasks = bells.len();
    let endpoints: Vec<_> = (0..num_tasks).map(|_| fabric.endpoint()).collect::<Result<_, _>>()?;
    let addresses: Arc<[_]> = endpoints.iter().map(|end| end.address().to_vec()).collect();
    let lost = std::iter::repeat_with(AtomicBool::default).take(num_tasks).collect();
    let board = Arc::new(Board { lost, count: AtomicUsize::new(0), bells: bells.clone() });
    let adapter = |((endpoint, bell), task)| {
        let losses = Arc::new(OwnLosses { task, board: board.clone() });
        let me = Endpoint { task, num_tasks, context };
        let secret = [secret(task); 32];
        let directory = Arc::new(Directory { addresses: addresses.clone(), secret });
        OfiAdapter::new(endpoint, me, directory, bell, losses, Duration::from_secs(30))
    };
    endpoints.into_iter().zip(bells).zip(0..).map(adapter).collect()
}

/// The addresses of the endpoints of one context, by task.
struct Directory {
    addresses: Arc<[Vec<u8>]>,
    secret: [u8; 32],
}

impl Peers for Directory {
    fn address(&self, task: TaskId, _: usize) -> Option<Vec<u8>> {
        self.addresses.get(task as usize).cloned()
    }

    fn secret(&self) -> [u8; 32] {
        self.secret
    }

    fn unreachable(&self, task: TaskId, why: &str) {
        panic!("task {task} cannot be reached {why}");
    }
}

/// Which tasks are lost, as a launcher would tell all hosts.
struct Board {
    lost: Vec<AtomicBool>,
    count: AtomicUsize,
    bells: Vec<Arc<dyn Doorbell>>,
}

/// The losses as one task sees and declares them.
struct OwnLosses {
    task: TaskId,
    board: Arc<Board>,
}

impl Losses for OwnLosses {
    fn count(&self) -> usize {
        self.board.count.load(Ordering::Acquire) // SYNC: losses of a fabric of tests
    }

    fn is_lost(&self, task: TaskId) -> bool {
        self.board.lost[task as usize].load(Ordering::Acquire) // SYNC: losses of a fabric of tests
    }

    fn declare(&self) {
        self.board.lost[self.task as usize].store(true, Ordering::Release); // SYNC: losses of a fabric of tests
        self.board.count.fetch_add(1, Ordering::Release); // SYNC: losses of a fabric of tests
        self.board.bells.iter().for_each(|bell| bell.ring());
    }
}
