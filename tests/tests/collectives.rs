//! Collectives against a plain reference: every two values of their parameters together, and random cases.
//!
//! A case that fails is printed as text: `MPJ_TEST_CASE='collective=scan ranks=3 seed=5' cargo test -p mpj-tests --test
//! collectives the_case_that_is_asked_for` runs it alone. `MPJ_TEST_CASES=20000 MPJ_TEST_SEED=2` runs more cases, and
//! other random ones. `cargo test --release -p mpj-tests --test collectives product -- --ignored` runs all combinations
//! of the parameters that affect messages, and all of those that affect data; the full product would take days.
//! `MPJ_TEST_PART=0 MPJ_TEST_PARTS=10` runs a tenth of them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::thread;

use mpicore::{Communicator, Error};
use mpj_harness::launch;
use mpj_tests::conformance::Numbers;
use mpj_tests::conformance::collective::case::{BACKENDS, PARAMETERS, parameter};
use mpj_tests::conformance::collective::pairwise::pairwise;
use mpj_tests::conformance::collective::play::play;
use mpj_tests::conformance::collective::programs::Program;
use mpj_tests::conformance::collective::reference::Reference;
use mpj_tests::conformance::collective::{Case, job};
use mpj_tests::conformance::network::Network;
use mpj_tests::faults::asked;
use mpjdev::BackendChoice;

const COLLECTIVES: &str = env!("CARGO_BIN_EXE_collectives");

/// How the ranks of random cases and programs are connected.
const NETWORKS: [Network; 6] = [
    Network::Segment,
    Network::Channels,
    Network::OneSided,
    Network::Hosts,
    Network::UnevenHosts,
    Network::DealtHosts,
];
/// Steps of a random program.
const STEPS: usize = 100;
/// Cases of one job of processes.
const PROCESSES_EACH: usize = 30;
/// Cases of the full product that are sorted by jobs together.
const PRODUCT_EACH: usize = 2_000;
/// Cases of one job.
const EACH: usize = 40;

#[path = "collectives/bits.rs"]
mod bits;
#[path = "collectives/errors.rs"]
mod errors;
#[path = "collectives/grids.rs"]
mod grids;
#[path = "collectives/over_hosts.rs"]
mod over_hosts;

/// Plays cases; those with the same number of ranks and the same protocols in one job.
fn play_all(network: Network, cases: impl IntoIterator<Item = Case>) {
    let mut jobs: BTreeMap<(usize, String), Vec<Case>> = BTreeMap::new();
    for case in cases {
        jobs.entry((case.ranks(), format!("{:?}", case.backend()))).or_default().push(case);
    }
    for cases in jobs.values().flat_map(|cases| cases.chunks(EACH)) {
        let (ranks, backend) = (cases[0].ranks(), cases[0].backend());
        let references: Arc<Vec<_>> = Arc::new(cases.iter().copied().map(Reference::new).collect());
        job::run_over(network, ranks, backend, move |world| {
            references.iter().try_for_each(|reference| play(world, reference))
        });
    }
}

/// The cases of one choice of protocols in which every two values meet, or one of so many of them.
fn all_pairs(network: Network, backend: BackendChoice, one_of: usize) {
    static LISTS: OnceLock<Vec<[usize; PARAMETERS]>> = OnceLock::new();
    let lists = LISTS.get_or_init(|| pairwise(Case::values(), 1, Case::settle));
    let cases = lists.iter().zip(0..).map(|(list, seed)| Case::new(*list, seed));
    play_all(network, cases.filter(|case| case.backend() == backend).step_by(one_of));
}

#[test]
fn each_two_values_together_by_auto() {
    all_pairs(Network::Segment, BackendChoice::Auto, 1);
}

#[test]
fn each_two_values_together_on_uneven_hosts() {
    all_pairs(Network::UnevenHosts, BackendChoice::Auto, 1);
}

#[test]
fn each_two_values_together_on_hosts_to_which_ranks_are_dealt() {
    all_pairs(Network::DealtHosts, BackendChoice::Eager, 1);
}

#[test]
fn each_two_values_together_by_eager() {
    all_pairs(Network::Segment, BackendChoice::Eager, 1);
}

#[test]
fn each_two_values_together_by_rendezvous() {
    all_pairs(Network::Segment, BackendChoice::Rendezvous, 1);
}

/// Over channels ranks share no memory, or only those of one host, as over a network. Rendezvous has the network read
/// it.
#[test]
fn some_of_them_over_channels() {
    let network = |backend| match backend {
        BackendChoice::Rendezvous => Network::OneSided,
        BackendChoice::Auto => Network::Hosts,
        _ => Network::Channels,
    };
    BACKENDS.iter().for_each(|&backend| all_pairs(network(backend), backend, 3));
}

/// Over each network in turn.
#[test]
fn cases_of_chance() {
    let (count, seed) = (asked("MPJ_TEST_CASES", 200), asked("MPJ_TEST_SEED", 1));
    let mut numbers = Numbers(seed);
    let cases: Vec<_> = (0..count).map(|_| Case::random(&mut numbers)).collect();
    for (place, network) in NETWORKS.into_iter().enumerate() {
        play_all(network, cases.iter().copied().skip(place).step_by(NETWORKS.len()));
    }
}

/// All combinations of the values of these parameters, one of `MPJ_TEST_PARTS` parts of them. The others are chosen by
/// the number of the combination.
fn product(parameters: &[usize]) {
    let (part, parts) = (asked("MPJ_TEST_PART", 0), asked("MPJ_TEST_PARTS", 1));
    let values = Case::values();
    let total: u64 = parameters.iter().map(|parameter| values[*parameter] as u64).product();
    let mut cases = (part..total).step_by(parts as usize).filter_map(|number| {
        let (mut chance, mut rest) = (Numbers(number), number);
        let mut choices = values.map(|values| chance.below(values));
        for &parameter in parameters {
            let values = values[parameter] as u64;
            choices[parameter] = (rest % values) as usize;
            rest /= values;
        }
        // A case that settling changes equals another one of the product.
        let case = Case::new(choices, 0);
        let is_settled = |parameter: &usize| case.choices()[*parameter] != choices[*parameter];
        (!parameters.iter().any(is_settled)).then_some(case)
    });
    loop {
        let some: Vec<_> = cases.by_ref().take(PRODUCT_EACH).collect();
        if some.is_empty() {
            return;
        }
        play_all(Network::Segment, some);
    }
}

/// The parameters that decide which messages are sent, and how.
#[test]
#[ignore = "takes two minutes where it is optimized"]
fn the_product_of_what_decides_on_messages() {
    use parameter::*;
    product(&[COLLECTIVE, RANK, ROOT, SIZE, PLACE, MODE, BACKEND]);
}

/// The parameters that decide what is done with data.
#[test]
#[ignore = "takes two minutes where it is optimized"]
fn the_product_of_what_decides_on_data() {
    use parameter::*;
    product(&[COLLECTIVE, KIND, OP, PLACE, SEND, RECEIVE]);
}

#[test]
fn the_case_that_is_asked_for() {
    if let Some(text) = transport_lapi::config::inherited("MPJ_TEST_CASE") {
        let text = text.to_str().expect("a case is plain text");
        play_all(
            Network::Segment,
            [text.parse().unwrap_or_else(|why| panic!("MPJ_TEST_CASE: {why}"))],
        );
    }
}

/// The same over a segment that each rank maps for itself.
#[test]
fn cases_of_chance_by_processes() {
    let (count, seed) = (asked("MPJ_TEST_CASES", 120) as usize, asked("MPJ_TEST_SEED", 1));
    let mut numbers = Numbers(!seed);
    let jobs = [(2, "auto"), (3, "rendezvous"), (4, "eager"), (5, "auto")];
    for ((ranks, backend), _) in jobs.iter().cycle().zip(0..count.div_ceil(PROCESSES_EACH)) {
        let cases: Vec<String> = (0..PROCESSES_EACH)
            .map(|_| Case::random(&mut numbers).moved_to(*ranks, BackendChoice::Auto).to_string())
            .collect();
        launch(COLLECTIVES)
            .ranks(*ranks)
            .options(["--backend", backend])
            .args(cases)
            .expect_quiet();
    }
}

/// Random programs, with two threads on each rank that play different ones, over each network in turn.
#[test]
fn random_programs() {
    let (count, first) = (asked("MPJ_TEST_PROGRAMS", 60), asked("MPJ_TEST_SEED", 1));
    for seed in first..first + count {
        let (ranks, backend) = ([2, 3, 5, 8, 4, 1][seed as usize % 6], backend_of(seed));
        let network = NETWORKS[seed as usize / BACKENDS.len() % NETWORKS.len()];
        job::run_over(network, ranks, backend, move |world| {
            let threads = [seed, !seed].map(|seed| (seed, world.dup()));
            thread::scope(|scope| {
                let play = |(seed, over): (u64, Result<Communicator, Error>)| {
                    let over = over.map_err(|error| error.to_string())?;
                    Ok(scope.spawn(move || Program::new(seed, &over).play(STEPS)))
                };
                let threads = threads.map(play).into_iter().collect::<Result<Vec<_>, String>>()?;
                threads.into_iter().try_for_each(|one| one.join().expect("no thread panics"))
            })
        });
    }
}

fn backend_of(seed: u64) -> BackendChoice {
    BACKENDS[seed as usize % BACKENDS.len()]
}

/// The last test of a rank, by its name.
#[test]
#[ignore = "for ranks on several hosts"]
fn zz_a_rank_leaves() {
    assert_ne!(job::leave(), 0, "there are tests for such jobs");
}
