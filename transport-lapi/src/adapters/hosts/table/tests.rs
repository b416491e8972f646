//! What a writer stores is what readers find, over a file and in one process, and files that are no tables are refused.

use std::thread;

use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create};

use super::*;

const SECRET_OF_TEST: [u8; SECRET_BYTES] = *b"0123456789abcdef0123456789abcdef";

fn plan() -> HostPlan {
    let names = ["north", "south"].map(str::to_owned).to_vec();
    HostPlan { names, host_of: vec![0, 1, 1, 0, 1] }
}

fn table_of(host: usize) -> (TableWriter, JobTable) {
    let (writer, fd) = TableWriter::create("t", &plan(), host, 2, SECRET_OF_TEST).expect("memory");
    let table = JobTable::open(fd).expect("a table");
    (writer, table)
}

#[test]
fn readers_find_what_was_planned() {
    let (writer, table) = table_of(1);
    for table in [&table, writer.table()] {
        assert_eq!((table.num_tasks(), table.num_hosts(), table.contexts()), (5, 2, 2));
        assert_eq!((table.host(), table.secret()), (1, SECRET_OF_TEST));
        assert_eq!([0, 1].map(|host| table.host_name(host)), ["north", "south"]);
        assert_eq!(table.local_tasks(), [1, 2, 4]);
        let places = [0, 1, 2, 3, 4].map(|task| (table.place(task), table.local_place(task)));
        let expected = [(0, None), (0, Some(0)), (1, Some(1)), (1, None), (2, Some(2))];
        assert_eq!(places, expected);
    }
    assert_eq!((plan().tasks_of(0), plan().tasks_of(1)), (vec![0, 3], vec![1, 2, 4]));
}

#[test]
fn addresses_are_known_once_they_are_complete() {
    let (writer, table) = table_of(0);
    let waiting = thread::spawn(move || {
        table.wait_for_addresses(2).expect("nobody is lost");
        let addresses = [(0, 0), (0, 1), (4, 1), (4, 0), (5, 0), (0, 2)];
        addresses.map(|(task, context)| table.address(task, context))
    });
    let long = [7; MAX_ADDRESS];
    writer.set_address(0, 0, b"here").unwrap();
    writer.set_address(0, 1, b"").unwrap();
    writer.set_address(4, 1, &long).unwrap();
    assert_eq!(writer.table().address(0, 0), None, "not before all are there");
    writer.complete(1);
    assert_eq!(writer.table().address(0, 1), None, "not before all of this context are there");
    writer.complete(2);
    let found = waiting.join().expect("the wait ends");
    let expected = [Some(b"here".to_vec()), None, Some(long.to_vec()), None, None, None];
    assert_eq!(found, expected);
}

#[test]
fn the_largest_job_has_a_table() {
    let host_of: Vec<u32> = (0..MAX_TASKS as u32).map(|task| task / 256).collect();
    let names = (0..MAX_TASKS / 256).map(|host| format!("node{host}")).collect();
    let plan = HostPlan { names, host_of };
    let (host, contexts) = (MAX_TASKS / 256 - 1, MAX_CONTEXTS);
    let (writer, fd) =
        TableWriter::create("t", &plan, host, contexts, SECRET_OF_TEST).expect("memory");
    let last = MAX_TASKS as TaskId - 1;
    writer.set_address(last, contexts - 1, b"there").expect("it has this endpoint");
    writer.declare_lost(last);
    writer.complete(contexts);
    let table = JobTable::open(fd).expect("a table");
    assert_eq!(table.address(last, contexts - 1).as_deref(), Some(&b"there"[..]));
    assert_eq!((table.local_place(last), table.is_lost(last)), (Some(255), true));
    assert_eq!(table.local_tasks().len(), 256);
    let more = HostPlan { host_of: vec![0; MAX_TASKS + 1], names: vec!["a".to_owned()] };
    let error = TableWriter::in_process(&more, 0, 1, SECRET_OF_TEST).err().expect("too many");
    assert!(matches!(error, AdapterError::TaskCount { asked: 1_048_577 }), "{error}");
}

#[test]
fn addresses_that_do_not_fit_are_refused() {
    let (writer, _) = table_of(0);
    let refused = |task, context, len| {
        let refused = writer.set_address(task, context, &vec![0; len]);
        matches!(refused, Err(AdapterError::BadAddress { .. }))
    };
    assert!(refused(5, 0, 4) && refused(0, 5, 4) && refused(0, 0, MAX_ADDRESS + 1));
    assert!(!refused(0, 0, 4));
    writer.complete(1);
    assert!(refused(0, 0, 4), "nobody changes what others may have read");
    assert!(!refused(0, 1, 4), "those of further clients come later");
}

#[test]
fn a_loss_is_known_and_ends_the_wait_for_addresses() {
    let (writer, table) = table_of(0);
    assert_eq!((table.losses(), table.is_lost(3)), (0, false));
    writer.declare_lost(3);
    writer.declare_lost(3);
    assert_eq!((table.losses(), table.is_lost(3), table.is_lost(2)), (2, true, false));
    let lost = table.wait_for_addresses(1).expect_err("they never come");
    assert!(matches!(lost, AdapterError::PeerLost { task: 3 }), "{lost}");
}

#[test]
fn readers_cannot_write() {
    let (_writer, fd) = TableWriter::create("t", &plan(), 0, 1, SECRET_OF_TEST).expect("memory");
    assert!(rustix::io::pwrite(&fd, &[0; 4], 0).is_err());
}

#[test]
fn other_files_are_refused_by_name() {
    let file = |words: &[u32], seals| {
        let fd = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("memfd");
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        if !bytes.is_empty() {
            fallocate(&fd, FallocateFlags::empty(), 0, bytes.len() as u64).expect("memory");
        }
        rustix::io::pwrite(&fd, &bytes, 0).expect("memory");
        fcntl_add_seals(&fd, seals).expect("seals");
        JobTable::open(fd).err().expect("refused").to_string()
    };
    let whole = SealFlags::SHRINK | SealFlags::GROW;
    let mut words: Vec<u32> = table_of(0).0.table().words.all().iter().map(load).collect();
    assert!(file(&words, SealFlags::GROW).contains("is not sealed"));
    assert!(file(&[], whole).contains("too short"));
    assert!(file(&[0; 40], whole).contains("no job table of version"));
    assert!(file(&words[..words.len() - 1], whole).contains("words instead of"));
    words[FACTS - 1] = 2;
    assert!(file(&words, whole).contains("names a host 2"));
    words[3] = 6;
    assert!(file(&words, whole).contains("cannot have 6 hosts"));
    words[2] = u32::MAX;
    assert!(file(&words, whole).contains("1 to 1048576 ranks"));
}

#[test]
fn long_names_are_cut_between_characters() {
    let name = "ä".repeat(MAX_HOST_NAME);
    let plan = HostPlan { names: vec![name], host_of: vec![0] };
    let writer = TableWriter::in_process(&plan, 0, 1, SECRET_OF_TEST).expect("a plan");
    assert_eq!(writer.into_table().host_name(0), "ä".repeat(MAX_HOST_NAME / 2));
}
