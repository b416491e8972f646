//! `mpjrun --trace` and `--profile` of programs in Rust: what is shown of their calls, messages and parts.

use std::collections::BTreeMap;
use std::time::Duration;

use mpj_harness::{Outcome, Shown, example, launch};
use tempfile::TempDir;
use tracing_subscriber::layer::SubscriberExt;

const RANKS: usize = 4;

/// Runs an example program with a trace.
fn traced(program: &str, options: &[&str], args: &[&str]) -> (Outcome, Shown) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("trace");
    let job = launch(example(program)).ranks(RANKS).options(["--trace"]).options([&file]);
    let outcome = job.options(options).args(args).run();
    (outcome, Shown::read(&file))
}

#[test]
fn calls_messages_and_parts_are_shown() {
    let steps = 5;
    for check in ["--check", "--check=no"] {
        let (outcome, shown) = traced("uneven", &[check], &["--steps", "5", "--cells", "10"]);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(outcome.stderr.contains("calls; open it at"), "{outcome:?}");
        assert_eq!(shown.tracks[1..], ["rank 0", "rank 1", "rank 2", "rank 3"]);
        for (name, count) in [
            ("init", RANKS),
            ("step", RANKS * steps),
            // One that checks the outcome comes at the end.
            ("allreduce", RANKS * (steps + 1)),
            ("finish", RANKS),
        ] {
            assert_eq!(shown.calls(name), count, "{check}, {name}: {:?}", shown.calls);
        }
        assert!(shown.calls("sendrecv") > 0, "{:?}", shown.calls);
        assert!(shown.messages.values().all(|ends| *ends == 2), "{:?}", shown.messages);
        // Each pair of neighbours exchanges two messages in a step.
        assert_eq!(shown.messages.len(), (RANKS - 1) * 2 * steps, "{check}: {:?}", shown.calls);
    }
}

#[test]
fn requests_that_are_waited_for_belong_to_their_messages() {
    for program in ["nbody", "laplace", "sort", "pipeline"] {
        let (outcome, shown) = traced(program, &[], &[]);
        assert_eq!(outcome.code, 0, "{program}: {outcome:?}");
        assert!(shown.messages.values().all(|ends| *ends == 2), "{program}: {:?}", shown.messages);
    }
    let (_, shown) = traced("nbody", &[], &["--bodies", "64", "--steps", "2"]);
    assert!(shown.calls("isend") > 0 && shown.calls("irecv") > 0, "{:?}", shown.calls);
    assert!(!shown.messages.is_empty() && shown.calls("wait") > 0, "{:?}", shown.calls);
}

/// A rank of the job in the test below.
#[test]
#[ignore = "a rank of the next test"]
fn ends_requests_in_every_way() {
    let world = mpj::init().expect("a job");
    let other = 1 - world.rank();
    let receive = |tag| world.irecv(vec![0_u8; 8], other, tag).expect("a receive");
    let send = |tag| world.send(&[7_u8; 8], other, tag).expect("a receiver");
    let mut receives = [0, 1, 2, 3, 4, 5].map(receive);
    send(0);
    while mpj::test_any(&mut receives).expect("it is legal").is_none() {}
    send(1);
    while mpj::test_some(&mut receives).expect("it is legal").is_empty() {}
    send(2);
    mpj::wait_any(&mut receives).expect("it comes").expect("it is one of these");
    send(3);
    mpj::wait_some(&mut receives).expect("it comes");
    (4..6).for_each(send);
    mpj::wait_all(&mut receives).expect("they come");
    let [mut tested, mut all, waited] = [6, 7, 8].map(receive);
    (6..10).for_each(send);
    while tested.test().expect("it is legal").is_none() {}
    while !mpj::test_all([&mut all]).expect("it is legal") {}
    waited.wait().expect("it comes");
    while world.iprobe(other, 9).expect("it is legal").is_none() {}
    let found = loop {
        if let Some(found) = world.improbe(other, 9).expect("it is legal") {
            break found;
        }
    };
    found.recv_vec::<u8>().expect("it is there");
    let mut parts = [0_u32; 4];
    world.all_gather(&[1_u32, 2], &mut parts).expect("all are here");
    world.finish().expect("all have come");
}

/// A rank of the job in the test below.
#[test]
#[ignore = "a rank of the next test"]
fn has_rounds_phases_and_queues() {
    let world = mpj::init().expect("a job");
    let (rank, other) = (world.rank(), world.rank() ^ 1);
    let many = vec![1_u8; 4 << 20];
    if rank % 2 == 0 {
        world.send(&many, other, 1).expect("a receiver");
        let send = |tag| world.isend(vec![0_u8], other, tag).expect("a receiver");
        let mut sends: Vec<_> = (100..140).map(send).collect();
        world.send(&[0_u8], other, 2).expect("a receiver");
        mpj::wait_all(&mut sends).expect("they are received");
    } else {
        world.recv(&mut vec![0_u8; 4 << 20], other, 1).expect("it comes");
        // What comes before it is unexpected then.
        world.recv(&mut [0_u8], other, 2).expect("it comes");
        for tag in 100..140 {
            world.recv(&mut [0_u8], other, tag).expect("it is here");
        }
    }
    let mut sum = 1_u32;
    world.all_reduce(&mut sum, mpj::Op::Sum).expect("all come");
    world.barrier().expect("all come");
    world.finish().expect("all come");
}

/// A rank of the job in the test below: the second one has 64 MiB for half a second.
#[test]
#[ignore = "a rank of the next test"]
fn occupies_memory() {
    let world = mpj::init().expect("a job");
    let many = (world.rank() == 1).then(|| vec![1_u8; 64 << 20]);
    std::thread::sleep(Duration::from_millis(500));
    drop(std::hint::black_box(many));
    world.finish().expect("all come");
}

#[test]
fn memory_is_shown() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("trace");
    let test = std::env::current_exe().expect("a test knows its own path");
    let job = launch(&test).ranks(2).options(["--trace"]).options([&file]);
    job.args(["occupies_memory", "--exact", "--include-ignored"]).expect(0);
    let counters = Shown::read(&file).counters;
    let [first, second] = [0, 1].map(|rank| {
        let memory = counters.get(&(format!("rank {rank}"), "memory".to_owned()));
        memory.and_then(|values| values.iter().max()).copied().expect("a rank occupies memory")
    });
    assert!(first > 1 << 20 && second > first + (56 << 20), "{first} {second}");
}

#[test]
fn parts_of_calls_are_shown_on_request_and_queues_always() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("trace");
    let test = std::env::current_exe().expect("a test knows its own path");
    for (backend, details) in [("auto", &[][..]), ("rendezvous", &["--trace-details"])] {
        let job = launch(&test).ranks(RANKS).options(["--backend", backend, "--trace"]);
        let job = job.options([&file]).options(details);
        job.args(["has_rounds_phases_and_queues", "--exact", "--include-ignored"]).expect(0);
        let shown = Shown::read(&file);
        let has_details = !details.is_empty();
        // Two rounds of four ranks in each of two calls; where calls are checked, there are more.
        let rounds = shown.calls("round");
        assert!(if has_details { rounds >= RANKS * 2 * 2 } else { rounds == 0 }, "{rounds}");
        let phases = ["rendezvous: data", "rendezvous: until answered"].map(|it| shown.calls(it));
        let are_shown = |number| if has_details { number >= RANKS / 2 * 42 } else { number == 0 };
        assert!(phases.into_iter().all(are_shown), "{phases:?}");
        assert_eq!(shown.calls("allreduce"), RANKS);
        let counter = |rank: u32, name: &str| {
            let key = (format!("rank {rank}"), name.to_owned());
            shown.counters.get(&key).cloned().unwrap_or_default()
        };
        let unexpected = counter(1, "unexpected messages");
        assert!(unexpected.iter().any(|number| *number >= 20), "{:?}", shown.counters);
        // The data of a rendezvous are at the sender.
        let bytes = counter(1, "bytes of unexpected messages");
        assert!(has_details || bytes.iter().any(|bytes| *bytes >= 20), "{:?}", shown.counters);
    }
}

#[test]
fn the_protocol_of_each_send_is_shown() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("trace");
    let test = std::env::current_exe().expect("a test knows its own path");
    // Each second rank sends one long message and one short one, and starts 40 short ones.
    let senders = RANKS / 2;
    for (backend, long, short) in [
        ("auto", "rendezvous", "eager"),
        ("eager", "eager", "eager"),
        ("rendezvous", "rendezvous", "rendezvous"),
    ] {
        let job = launch(&test).ranks(RANKS).options(["--backend", backend, "--trace"]);
        // Where the protocol is chosen for each message, the long one finds too little memory to come early.
        let limit = if backend == "auto" { "1M" } else { "64M" };
        let job = job.options([&file]).env("MPJ_EARLY_LIMIT", limit);
        job.args(["has_rounds_phases_and_queues", "--exact", "--include-ignored"]).expect(0);
        let mut expected = BTreeMap::new();
        for (name, protocol, sends) in [("send", long, 1), ("send", short, 1), ("isend", short, 40)]
        {
            let key = (name.to_owned(), protocol.to_owned());
            *expected.entry(key).or_insert(0) += senders * sends;
        }
        assert_eq!(Shown::read(&file).protocols, expected, "{backend}");
    }
}

#[test]
fn lists_of_requests_and_the_places_of_waits_are_shown() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("page.html");
    let option = format!("--profile={}", file.display());
    let test = std::env::current_exe().expect("a test knows its own path");
    let job = launch(test).ranks(2).options([&option]);
    job.args(["ends_requests_in_every_way", "--exact", "--include-ignored"]).expect(0);
    let page = std::fs::read_to_string(&file).expect("it was written");
    for name in ["wait", "wait_any", "wait_some", "wait_all", "test", "test_any", "test_some"] {
        assert!(page.contains(&format!("{name} at tests/tests/traces.rs:")), "{name}: {page}");
    }
    for name in ["test_all", "iprobe", "improbe", "allgather"] {
        assert!(page.contains(&format!("{name} at tests/tests/traces.rs:")), "{name}: {page}");
    }
}

/// A rank of the job in the test below.
#[test]
#[ignore = "a rank of the next test"]
fn enters_spans() {
    let subscriber = tracing_subscriber::registry().with(mpj::SpanLayer);
    tracing::subscriber::set_global_default(subscriber).expect("the first one");
    let world = mpj::init().expect("a job");
    let outer = tracing::info_span!("assemble");
    for _ in 0..3 {
        let _outer = outer.enter();
        tracing::info_span!("exchange", step = 1).in_scope(|| world.barrier().expect("all come"));
    }
    let _again = outer.enter();
    world.finish().expect("all come");
}

#[test]
fn spans_of_the_crate_tracing_are_shown() {
    let folder = TempDir::new().expect("a folder");
    let [trace, page] = ["trace", "page.html"].map(|name| folder.path().join(name));
    let profile = format!("--profile={}", page.display());
    let test = std::env::current_exe().expect("a test knows its own path");
    let job = launch(test).ranks(2).options(["--trace"]).options([&trace]).options([profile]);
    job.args(["enters_spans", "--exact", "--include-ignored"]).expect(0);
    let shown = Shown::read(&trace);
    let calls = ["assemble", "exchange", "barrier"].map(|name| shown.calls(name));
    assert_eq!(calls, [2 * 4, 2 * 3, 2 * 3], "{:?}", shown.calls);
    let page = std::fs::read_to_string(&page).expect("it was written");
    assert!(page.contains("exchange at tests/tests/traces.rs:"), "{page}");
}

#[test]
fn a_profile_names_ranks_and_lines() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("page.html");
    let option = format!("--profile={}", file.display());
    let job = launch(example("uneven")).ranks(RANKS).options([&option]);
    let said = job.args(["--steps", "5", "--cells", "10"]).expect(0).stderr;
    for words in ["mpjrun: 4 ranks, ", "made others wait", "allreduce", "has the whole profile"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let page = std::fs::read_to_string(&file).expect("it was written");
    for words in
        ["allreduce at mpj/examples/uneven.rs:", "step at mpj/examples/uneven.rs:", "finish"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[test]
fn what_finds_no_memory_is_said() {
    let (outcome, shown) = traced("ring", &["--trace-memory", "1M"], &["--laps", "7000"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stderr.contains("later calls are missing"), "{outcome:?}");
    assert!(shown.tracks[1].starts_with("rank 0 (without its last "), "{:?}", shown.tracks);
}

#[test]
fn the_newest_calls_are_kept_with_their_messages() {
    let options = ["--trace-memory", "1M", "--trace-newest"];
    let (outcome, shown) = traced("ring", &options, &["--laps", "7000"]);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stderr.contains("earlier calls are missing"), "{outcome:?}");
    assert!(shown.tracks[1].starts_with("rank 0 (without its first "), "{:?}", shown.tracks);
    assert_eq!((shown.calls("finish"), shown.calls("init")), (RANKS, 0), "{:?}", shown.calls);
    assert!(shown.messages.len() > 1000, "{}", shown.messages.len());
    assert!(shown.messages.values().all(|ends| *ends == 2), "{:?}", shown.messages);
}

#[test]
fn a_job_that_cannot_start_keeps_earlier_files() {
    let folder = TempDir::new().expect("a folder");
    let [trace, page] = ["trace", "page.html"].map(|name| folder.path().join(name));
    for file in [&trace, &page] {
        std::fs::write(file, "earlier").expect("there is room");
    }
    let profile = format!("--profile={}", page.display());
    let job = launch(folder.path().join("absent")).ranks(2).options(["--trace"]).options([&trace]);
    job.options([profile]).expect(127).says("program not found");
    for file in [trace, page] {
        assert_eq!(std::fs::read(file).expect("it stays"), b"earlier");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_refused_first() {
    let job = launch("true").ranks(1).options(["--trace", "/absent/file"]);
    job.expect(2).says("mpjrun: --trace /absent/file: No such file or directory");
}
