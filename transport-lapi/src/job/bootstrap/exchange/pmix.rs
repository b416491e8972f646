//! A client of PMIx, which `srun --mpi=pmix` and Open MPI's `mpirun` offer.
//!
//! Its protocol is not public, so its library speaks it: `libpmix.so.2`, which is loaded only here. Each rank has a
//! key-value space of its own. The server knows the host of each rank.

mod library;

use library::{Client, Failure};

use super::{ExchangeError, Job, KeyValueSpace, LONGEST_VALUE, Manager};
use crate::adapter::{MAX_TASKS, TaskId};

/// The library's name in every version from 2 on.
const LIBRARY: &str = "libpmix.so.2";

/// A rank's connection to a server of PMIx.
pub(super) struct Pmix {
    client: Client,
}

impl Pmix {
    /// Joins the job that the environment describes to the library. `prefix` is where the server says that its
    /// installation is.
    pub(super) fn join(prefix: Option<&str>) -> Result<(Self, Job), ExchangeError> {
        // Where client and server are of one version they have the most in common.
        let of_server = prefix.map(|prefix| {
            ["lib", "lib64", "lib/openmpi"].map(|folder| format!("{prefix}/{folder}/{LIBRARY}"))
        });
        let mut places: Vec<String> = of_server.into_iter().flatten().collect();
        places.push(LIBRARY.to_owned());
        let client = Client::init(&places).map_err(|source| ExchangeError::Library { source })?;
        let client = client.map_err(refused("join the job"))?;
        let to = "tell the number of ranks";
        let size = client.number(None, c"pmix.job.size").map_err(refused(to))?;
        let size = size.ok_or_else(|| refused(to)(Failure("no answer".to_owned())))? as usize;
        let host = |rank| client.number(Some(rank), c"pmix.nodeid");
        let hosts: Result<Option<Vec<u32>>, _> =
            (0..size.min(MAX_TASKS) as TaskId).map(host).collect();
        let hosts = hosts.map_err(refused("tell the hosts of the ranks"))?;
        let hosts = hosts.map(|hosts| super::mapping::numbered(&hosts));
        let (rank, longest_value) = (client.rank(), LONGEST_VALUE);
        Ok((Self { client }, Job { rank, size, longest_value, mapping: None, hosts }))
    }
}

/// The error for a failure of the library.
fn refused(to: &'static str) -> impl Fn(Failure) -> ExchangeError {
    move |Failure(answer)| ExchangeError::Refused { manager: Manager::Pmix, to, answer }
}

impl KeyValueSpace for Pmix {
    fn put(&mut self, key: &str, value: &str) -> Result<(), ExchangeError> {
        self.client.put(key, value).map_err(refused("keep a value"))
    }

    fn fence(&mut self) -> Result<(), ExchangeError> {
        self.client.fence().map_err(refused("wait for the other ranks"))
    }

    fn get(&mut self, owner: TaskId, key: &str) -> Result<Option<String>, ExchangeError> {
        self.client.text(owner, key).map_err(refused("find a value"))
    }

    fn abort(&mut self, code: i32, why: &str) -> Result<(), ExchangeError> {
        self.client.abort(code, why).map_err(refused("end the job"))
    }

    fn finalize(&mut self) -> Result<(), ExchangeError> {
        self.client.finalize().map_err(refused("let this rank leave"))
    }
}
