//! The clients against scripted managers, whose scripts are what real ones were seen to say; and what holds for all.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;
use std::thread::{self, JoinHandle};

use proptest::prelude::*;

use super::*;

/// A manager that expects questions and gives answers. It fails if a question is another one.
fn scripted(script: &'static [(&str, &str)]) -> (OwnedFd, JoinHandle<()>) {
    let (client, mut manager) = UnixStream::pair().expect("a socket pair");
    let play = move || {
        for (question, answer) in script {
            let mut bytes = vec![0; question.len()];
            manager.read_exact(&mut bytes).expect("a question");
            assert_eq!(String::from_utf8_lossy(&bytes), *question);
            // In two parts, as a network may deliver it.
            let (first, second) = answer.split_at(answer.len() / 2);
            for part in [first, second] {
                manager.write_all(part.as_bytes()).expect("the client is there");
            }
        }
    };
    (client.into(), thread::spawn(play))
}

const MPICH: &[(&str, &str)] = &[
    (
        "cmd=init pmi_version=1 pmi_subversion=1\n",
        "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n",
    ),
    ("cmd=get_maxes\n", "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n"),
    ("cmd=get_my_kvsname\n", "cmd=my_kvsname rc=0 kvsname=kvs_1_0\n"),
    (
        "cmd=get kvsname=kvs_1_0 key=PMI_process_mapping\n",
        "cmd=get_result rc=0 value=(vector,(0,1,3),(1,1,1))\n",
    ),
    ("cmd=put kvsname=kvs_1_0 key=mpj-1-x-0 value=.6869\n", "cmd=put_result rc=0\n"),
    ("cmd=barrier_in\n", "cmd=barrier_out tag=0\n"),
    ("cmd=get kvsname=kvs_1_0 key=mpj-0-x-0\n", "cmd=get_result rc=0 value=.00ff\n"),
    ("cmd=get kvsname=kvs_1_0 key=mpj-3-x-0\n", "cmd=get_result rc=1\n"),
    ("cmd=finalize\n", "cmd=finalize_ack rc=0\n"),
];

#[test]
fn mpich_is_spoken_to_as_it_expects() {
    let (socket, manager) = scripted(MPICH);
    let exchange = Exchange::pmi1(socket, 1, 4).expect("joined");
    assert_eq!((exchange.rank(), exchange.size()), (1, 4));
    assert_eq!((exchange.host_of(), exchange.hosts(), exchange.host()), (&[0, 0, 0, 1][..], 2, 0));
    assert_eq!(exchange.ranks_of(0).collect::<Vec<_>>(), [0, 1, 2]);
    exchange.put("x", b"hi").expect("put");
    exchange.fence().expect("a fence");
    assert_eq!(exchange.get(0, "x").expect("put before"), [0, 255]);
    let error = exchange.get(3, "x").expect_err("never put");
    assert!(matches!(&error, ExchangeError::Missing { owner: 3, name, .. } if name == "x"));
    exchange.finalize().expect("left");
    manager.join().expect("the manager is content");
}

const INTEL: &[(&str, &str)] = &[
    (
        "cmd=init pmi_version=1 pmi_subversion=1\n",
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
    ),
    ("cmd=get_maxes\n", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=4096\n"),
    ("cmd=get_my_kvsname\n", "cmd=my_kvsname kvsname=kvs_6936_0\n"),
    (
        "cmd=get kvsname=kvs_6936_0 key=PMI_process_mapping\n",
        "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))\n",
    ),
    (
        "cmd=get kvsname=kvs_6936_0 key=mpj-0-x-0\n",
        "cmd=get_result rc=-1 msg=key_mpj-0-x-0_not_found value=unknown\n",
    ),
    ("cmd=abort exitcode=3 message=it_failed\n", ""),
];

#[test]
fn intel_is_spoken_to_as_it_expects() {
    let (socket, manager) = scripted(INTEL);
    let exchange = Exchange::pmi1(socket, 0, 2).expect("joined");
    assert_eq!(exchange.host_of(), [0, 0]);
    exchange.get(0, "x").expect_err("never put");
    exchange.abort(3, "it failed").expect("sent");
    manager.join().expect("the manager is content");
}

const SLURM: &[(&str, &str)] = &[
    (
        "cmd=init pmi_version=2 pmi_subversion=0\n",
        "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n",
    ),
    (
        "    51cmd=fullinit;pmijobid=7.0;pmirank=1;threaded=FALSE;",
        "   109cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=1;size=2;appnum=-1;debugged=FALSE;\
         pmiverbose=;rc=0;",
    ),
    (
        "    44cmd=info-getjobattr;key=PMI_process_mapping;",
        "    72cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,[(0,2,1)]x1);",
    ),
    ("    38cmd=kvs-put;key=mpj-1-x-0;value=.6869;", "    26cmd=kvs-put-response;rc=0;"),
    ("    14cmd=kvs-fence;", "    28cmd=kvs-fence-response;rc=0;"),
    (
        "    45cmd=kvs-get;jobid=7.0;srcid=-1;key=mpj-0-x-0;",
        "    49cmd=kvs-get-response;rc=0;found=TRUE;value=.00ff;",
    ),
    (
        "    45cmd=kvs-get;jobid=7.0;srcid=-1;key=mpj-0-y-0;",
        "    38cmd=kvs-get-response;rc=0;found=FALSE;",
    ),
    ("    13cmd=finalize;", "    27cmd=finalize-response;rc=0;"),
    ("    48cmd=abort;isworld=TRUE;exitcode=3;msg=it_failed;", ""),
];

#[test]
fn slurm_is_spoken_to_as_it_expects() {
    let (socket, manager) = scripted(SLURM);
    let exchange = Exchange::pmi2(socket, "7.0", 1, 2).expect("joined");
    assert_eq!(exchange.host_of(), [0, 1]);
    exchange.put("x", b"hi").expect("put");
    exchange.fence().expect("a fence");
    assert_eq!(exchange.get(0, "x").expect("put before"), [0, 255]);
    exchange.get(0, "y").expect_err("never put");
    exchange.finalize().expect("left");
    exchange.abort(3, "it failed").expect("sent");
    manager.join().expect("the manager is content");
}

/// The error of a rank that joins a manager with this script.
fn refusal(script: &'static [(&str, &str)], rank: TaskId) -> ExchangeError {
    let (socket, manager) = scripted(script);
    let error = Exchange::pmi1(socket, rank, 2).expect_err("the manager is of no use");
    manager.join().expect("the manager is content");
    error
}

const INIT: &str = "cmd=init pmi_version=1 pmi_subversion=1\n";

#[test]
fn a_manager_that_refuses_is_quoted() {
    let error = refusal(&[(INIT, "cmd=response_to_init rc=-1 pmi_version=2\n")], 0);
    assert!(matches!(error, ExchangeError::Refused { manager: Manager::Pmi1, .. }), "{error}");
    let text = error.to_string();
    let says = "(PMI-1, mpiexec) was to join the job, but refused (cmd=response_to_init rc=-1 pmi_version=2); start the \
                program with mpjrun -n N PROGRAM";
    assert!(text.contains(says), "{text}");
}

#[test]
fn a_manager_that_says_something_else_is_quoted() {
    for answer in ["cmd=maxes rc=0\n", "hello\n", "\n"] {
        let script: &'static _ = Box::leak(Box::new([(INIT, answer)]));
        let error = refusal(script, 0);
        let trimmed = answer.trim();
        assert!(
            matches!(&error, ExchangeError::Unexpected { answer, .. } if answer == trimmed),
            "{error}"
        );
    }
}

#[test]
fn a_manager_that_has_gone_is_named() {
    let error = refusal(&[], 0);
    assert!(matches!(error, ExchangeError::Connection { to: "join the job", .. }), "{error}");
    let error = refusal(&[(INIT, "cmd=respon")], 0);
    let ExchangeError::Connection { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_length_that_is_none_is_an_error() {
    let hello = "cmd=init pmi_version=2 pmi_subversion=0\n";
    let next = "    49cmd=fullinit;pmijobid=j;pmirank=0;threaded=FALSE;";
    for answer in ["cmd=fu", "999999cmd"] {
        let script: &'static _ =
            Box::leak(Box::new([(hello, "cmd=response_to_init rc=0\n"), (next, answer)]));
        let (socket, manager) = scripted(script);
        let error = Exchange::pmi2(socket, "j", 0, 2).expect_err("no answer");
        assert!(matches!(error, ExchangeError::Connection { .. }), "{error}");
        manager.join().expect("the manager is content");
    }
}

#[test]
fn a_place_that_does_not_exist_is_refused() {
    let (socket, _manager) = scripted(MPICH);
    let error = Exchange::pmi1(socket, 4, 4).expect_err("ranks 0 to 3 exist");
    assert!(matches!(error, ExchangeError::Place { rank: 4, size: 4, .. }), "{error}");
    let (socket, _manager) = scripted(MPICH);
    let error = Exchange::pmi1(socket, 3, MAX_TASKS + 1).expect_err("more than a job can have");
    assert!(error.to_string().contains("rank 3 of 1048577, and a job has 1 to 1048576"), "{error}");
}

#[test]
fn a_mapping_that_is_none_is_refused() {
    let [hello, maxes, name, ..] = MPICH else { unreachable!("the script is longer") };
    let mapping = ("cmd=get kvsname=kvs_1_0 key=PMI_process_mapping\n", "cmd=get_result value=?\n");
    let (socket, _manager) = scripted(Box::leak(Box::new([*hello, *maxes, *name, mapping])));
    let error = Exchange::pmi1(socket, 0, 2).expect_err("no mapping");
    assert!(matches!(&error, ExchangeError::Mapping { mapping, .. } if mapping == "?"), "{error}");
}

/// A key-value space in memory, for ranks that are threads.
#[derive(Clone)]
pub(in crate::job::bootstrap) struct InMemory {
    values: Arc<Mutex<HashMap<String, String>>>,
    fence: Arc<Barrier>,
    longest: usize,
    hosts: Option<Vec<u32>>,
}

impl InMemory {
    fn new(ranks: usize, longest: usize) -> Self {
        let fence = Arc::new(Barrier::new(ranks));
        Self { values: Arc::default(), fence, longest, hosts: None }
    }

    /// A space for ranks on these hosts.
    pub(in crate::job::bootstrap) fn on(hosts: &[u32]) -> Self {
        Self { hosts: Some(hosts.to_vec()), ..Self::new(hosts.len(), LONGEST_VALUE) }
    }

    pub(in crate::job::bootstrap) fn join(&self, rank: TaskId, size: usize) -> Exchange {
        let (longest_value, hosts) = (self.longest, self.hosts.clone());
        let job = Job { rank, size, longest_value, mapping: None, hosts };
        Exchange::new(Manager::Pmi1, self.clone(), job).expect("a place")
    }
}

impl KeyValueSpace for InMemory {
    fn put(&mut self, key: &str, value: &str) -> Result<(), ExchangeError> {
        assert!(key.len() < 64 && value.len() < self.longest, "{key}: {}", value.len());
        self.values.lock().expect("no panic").insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn fence(&mut self) -> Result<(), ExchangeError> {
        self.fence.wait();
        Ok(())
    }

    fn get(&mut self, _owner: TaskId, key: &str) -> Result<Option<String>, ExchangeError> {
        Ok(self.values.lock().expect("no panic").get(key).cloned())
    }

    fn abort(&mut self, _code: i32, _why: &str) -> Result<(), ExchangeError> {
        Ok(())
    }

    fn finalize(&mut self) -> Result<(), ExchangeError> {
        Ok(())
    }
}

#[test]
fn without_a_mapping_ranks_tell_each_other_where_they_run() {
    let space = InMemory::new(3, 1024);
    let ranks: Vec<_> = (0..3)
        .map(|rank| {
            let space = space.clone();
            thread::spawn(move || space.join(rank, 3).host_of().to_vec())
        })
        .collect();
    for rank in ranks {
        assert_eq!(rank.join().expect("joined"), [0, 0, 0], "these threads share a host");
    }
}

#[test]
fn what_others_put_is_checked() {
    let space = InMemory::new(1, 1024);
    let exchange = space.join(0, 1);
    for value in ["", "ab", ".a", ".ag", ".é", "+ab"] {
        space.clone().put(&key(0, "x", 0), value).expect("put");
        let error = exchange.get(0, "x").expect_err("no value of ours");
        assert!(matches!(error, ExchangeError::Missing { .. }), "{value:?}: {error}");
    }
    for piece in 0..=MAX_PIECES {
        space.clone().put(&key(0, "x", piece), "+ab").expect("put");
    }
    assert!(exchange.get(0, "x").is_err(), "pieces without end");
}

proptest! {
    #[test]
    fn what_is_put_is_got(
        value in prop::collection::vec(any::<u8>(), 0..=MAX_VALUE), longest in 66_usize..5000,
    ) {
        let exchange = InMemory::new(1, longest).join(0, 1);
        exchange.put("x", &value).expect("put");
        prop_assert_eq!(exchange.get(0, "x").expect("put before"), value);
    }
}
