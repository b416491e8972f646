//! Ranks that meet through a key-value space in memory, and addresses as they put them.

use std::thread;

use proptest::prelude::*;

use super::super::exchange::tests::InMemory;
use super::super::hosts::JobTable;
use super::*;

/// Ranks that are threads meet, as if they ran on these hosts.
fn met<T: Send + 'static>(hosts: &[u32], contexts: usize, part: fn(Membership) -> T) -> Vec<T> {
    let (space, size) = (InMemory::on(hosts), hosts.len());
    let start = |rank| {
        let space = space.clone();
        thread::spawn(move || part(meet(&space.join(rank, size), contexts).expect("they meet")))
    };
    let ranks: Vec<_> = (0..size as TaskId).map(start).collect();
    ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect()
}

fn tasks_of(segment: &OwnedFd) -> usize {
    JobView::open(segment).expect("a segment").tasks()
}

#[test]
fn ranks_of_one_host_share_a_segment_and_have_no_table() {
    // The first rank keeps its descriptor until the others have it.
    let members = met(&[0, 0, 0], 2, |member| member);
    let inode = |member: &Membership| rustix::fs::fstat(&member.segment).expect("a file").st_ino;
    for member in &members {
        assert!(member.table.is_none());
        assert_eq!((member.world.universe, member.contexts, tasks_of(&member.segment)), (3, 2, 3));
        assert_eq!(inode(member), inode(&members[0]));
    }
    assert_eq!(members.iter().map(|member| member.world.task).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn ranks_of_several_hosts_learn_each_others_addresses() {
    let secrets = met(
        &[0, 1, 0],
        2,
        |Membership { world: World { task, .. }, segment, table, control, .. }| {
            assert_eq!(tasks_of(&segment), if task == 1 { 1 } else { 2 });
            let table = JobTable::open(table.expect("there are two hosts")).expect("a table");
            assert_eq!((table.num_tasks(), table.num_hosts(), table.contexts()), (3, 2, 2));
            assert_eq!(
                (table.host(), table.local_tasks().len()),
                ((task % 2) as usize, tasks_of(&segment))
            );
            assert_eq!(table.host_name(1), rustix::system::uname().nodename().to_string_lossy());
            let network = if task == 1 { "net of libfabric 1.17" } else { "tcp of libfabric 2.5" };
            control
                .endpoints(endpoints(network, vec![vec![task as u8], vec![task as u8; 64]]))
                .expect("told");
            table.wait_for_addresses(2).expect("nobody is lost");
            for other in 0..3 {
                assert_eq!(table.address(other, 0), Some(vec![other as u8]));
                assert_eq!(table.address(other, 1), Some(vec![other as u8; 64]));
            }
            table.secret()
        },
    );
    assert!(secrets.iter().all(|secret| *secret == secrets[0] && *secret != [0; SECRET_BYTES]));
}

fn endpoints(network: &str, addresses: Vec<Vec<u8>>) -> Endpoints {
    Endpoints { network: network.to_owned(), client: "c".to_owned(), first: 0, addresses }
}

/// A second client, with a context of its own.
fn further(client: &str, task: TaskId) -> Endpoints {
    let addresses = vec![vec![task as u8, 9]];
    Endpoints {
        client: client.to_owned(),
        first: 1,
        ..endpoints("net of libfabric 1.17", addresses)
    }
}

#[test]
fn further_clients_tell_their_addresses_later() {
    met(&[0, 1], 1, |Membership { world: World { task, .. }, table, control, .. }| {
        let table = JobTable::open(table.expect("there are two hosts")).expect("a table");
        let told = control.endpoints(endpoints("net of libfabric 1.17", vec![vec![7]]));
        told.expect("the first client");
        table.wait_for_addresses(1).expect("nobody is lost");
        assert_eq!(table.address(1 - task, 1), None);
        control.endpoints(further("second", task)).expect("the second client");
        table.wait_for_addresses(2).expect("nobody is lost");
        assert_eq!(table.address(1 - task, 1), Some(vec![(1 - task) as u8, 9]));
    });
}

#[test]
fn ranks_that_join_with_different_clients_say_so() {
    let errors = met(&[0, 1], 1, |Membership { world: World { task, .. }, control, .. }| {
        let client = if task == 0 { "one" } else { "other" };
        control.endpoints(further(client, task)).expect_err("refused").to_string()
    });
    for (task, error) in errors.into_iter().enumerate() {
        let clients = if task == 0 {
            "rank 1 joins the job as other, where rank 0 joins as one"
        } else {
            "rank 0 joins the job as one, where rank 1 joins as other"
        };
        assert!(error.starts_with(clients), "{error}");
    }
}

/// The rank that makes the table of a host says so; the others wait until the manager ends the job.
#[test]
fn ranks_whose_networks_do_not_understand_each_other_say_so() {
    let errors = met(&[0, 1], 1, |Membership { world: World { task, .. }, control, .. }| {
        let network = if task == 1 { "verbs of libfabric 2.5" } else { "net of libfabric 1.17" };
        control.endpoints(endpoints(network, vec![vec![7]])).expect_err("refused").to_string()
    });
    for error in errors {
        let why = "is verbs of libfabric 2.5, and that of host ";
        assert!(
            error.starts_with("rank 1 cannot reach rank 0 on host ") && error.contains(why),
            "{error}"
        );
    }
}

#[test]
fn an_address_that_is_too_long_is_refused() {
    let error =
        encode(3, &endpoints("", vec![vec![1], vec![0; MAX_ADDRESS + 1]])).expect_err("too long");
    assert!(matches!(error, AdapterError::BadAddress { task: 3, context: 1, .. }), "{error}");
}

#[test]
fn an_address_that_is_cut_is_refused() {
    assert_eq!(decode(&[2, 1]), None);
    assert_eq!(decode(&[0, 1, 7]), Some(vec![&[][..], &[7]]));
}

#[test]
fn random_names_differ() {
    let names = [random_name().expect("random bytes"), random_name().expect("random bytes")];
    assert_eq!(names[0].len(), 32);
    assert_ne!(names[0], names[1]);
}

proptest! {
    #[test]
    fn addresses_survive(
        addresses in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..=MAX_ADDRESS), 0..5),
        network in "[a-z]{0,64}",
    ) {
        let bytes = encode(0, &endpoints(&network, addresses.clone())).expect("short enough");
        let read = decode(&bytes).expect("what was written");
        prop_assert_eq!(read[0], network.as_bytes());
        prop_assert_eq!(read[1], b"c");
        prop_assert_eq!(&read[2..], addresses.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
}
