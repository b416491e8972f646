//! Tests of the catalogue: sizes, ranks and buffers.

use super::*;

fn of(benchmark: Benchmark, extent: &Extent) -> Vec<Configuration> {
    benchmark.configurations(extent).0
}

#[test]
fn sizes_stand_around_every_threshold() {
    let extent = Extent { thresholds: vec![300, 8192], ..Extent::default() };
    let sizes = &of(Benchmark::Latency, &extent)[0].order.sizes;
    for expected in [0, 1, 8, 300, 301, 8192, 8193, 16 << 20] {
        assert!(sizes.contains(&expected), "{expected} in {sizes:?}");
    }
    assert!(sizes.is_sorted());
}

#[test]
fn sizes_that_were_asked_for_are_taken_as_they_are() {
    let extent = Extent { thresholds: vec![300], sizes: vec![5, 7], ..Extent::default() };
    assert_eq!(of(Benchmark::Latency, &extent)[0].order.sizes, [5, 7]);
}

#[test]
fn collective_calls_have_the_same_sizes_on_all_numbers_of_ranks() {
    for (quick, sizes) in [(false, &[8, 1 << 10, 1 << 16, 1 << 20][..]), (true, &[8, 1 << 16])] {
        let all = of(Benchmark::Collectives, &Extent { quick, ..Extent::default() });
        let ranks: Vec<_> = all.iter().map(|configuration| configuration.ranks).collect();
        assert_eq!(ranks, [2, 4, 8]);
        assert!(all.iter().all(|configuration| configuration.order.sizes == sizes));
    }
}

#[test]
fn too_few_ranks_are_refused_by_name() {
    let extent = Extent { ranks: vec![1, 3], ..Extent::default() };
    let (configurations, refused) = Benchmark::Latency.configurations(&extent);
    assert_eq!(refused, ["latency has 2 to 256 ranks, not --np 1"]);
    assert_eq!(configurations.len(), 1);
    assert_eq!(configurations[0].ranks, 3);
}

#[test]
fn ranks_are_shared_out_among_hosts() {
    let over = |hosts, ranks: &[usize], benchmark: Benchmark| {
        let extent = Extent { hosts, ranks: ranks.to_vec(), ..Extent::default() };
        let (configurations, refused) = benchmark.configurations(&extent);
        (configurations.iter().map(|it| it.ranks).collect::<Vec<_>>(), refused)
    };
    assert_eq!(over(2, &[], Benchmark::Latency), (vec![2], vec![]));
    assert_eq!(over(2, &[], Benchmark::Collectives), (vec![4], vec![]));
    assert_eq!(over(2, &[], Benchmark::Matrix), (vec![2, 4], vec![]));
    assert_eq!(over(3, &[3, 6], Benchmark::Collectives), (vec![3, 6], vec![]));
    let (configurations, refused) = over(2, &[2, 3, 4], Benchmark::Rate);
    assert_eq!(configurations, [2]);
    assert_eq!(refused.len(), 2);
    assert!(refused[0].contains("no multiple") && refused[1].contains("so --np 2"), "{refused:?}");
}

#[test]
fn every_kind_of_buffers_is_a_configuration_of_what_has_messages() {
    let buffers = vec![Buffers::Cold, Buffers::Rewritten];
    let extent = Extent { ranks: vec![2], buffers, ..Extent::default() };
    let of = |benchmark: Benchmark| {
        let all = benchmark.configurations(&extent).0;
        let names = all.iter().map(|it| (it.name(), it.order.programs.len()));
        names.collect::<Vec<_>>()
    };
    let name = |name: &str, programs: usize| (name.to_owned(), programs);
    assert_eq!(of(Benchmark::Latency), [name("latency-cold", 1), name("latency", 1)]);
    assert_eq!(of(Benchmark::Matrix), [name("matrix-cold", 5), name("matrix", 1)]);
    assert_eq!(of(Benchmark::Wakeup), [name("wakeup", 1)]);
}

#[test]
fn matrices_by_number_of_ranks() {
    let own: Vec<_> = of(Benchmark::Matrix, &Extent::default())
        .into_iter()
        .map(|configuration| (configuration.ranks, configuration.order.programs.len()))
        .collect();
    assert_eq!(own, [(1, 2), (2, 5), (4, 1)]);
    let asked = Extent { ranks: vec![4], ..Extent::default() };
    assert!(of(Benchmark::Matrix, &asked)[0].order.programs.contains(&Program::Cannon));
}

#[test]
fn the_transport_has_two_ranks_and_unchanged_buffers_unless_others_are_asked_for() {
    let own = of(Benchmark::Lapi, &Extent::default());
    assert_eq!(own.iter().map(Configuration::name).collect::<Vec<_>>(), ["lapi-unchanged"]);
    assert_eq!((own[0].ranks, own[0].order.programs.len()), (2, 7));
    let extent = Extent { thresholds: vec![288], ..Extent::default() };
    let sizes = &of(Benchmark::Lapi, &extent)[0].order.sizes;
    for expected in [8, 288, 289, 4 << 20] {
        assert!(sizes.contains(&expected), "{expected} in {sizes:?}");
    }
    let (ranks, buffers) = (vec![2, 4], vec![Buffers::Cold, Buffers::Rewritten]);
    let extent = Extent { ranks, buffers, ..Extent::default() };
    let (configurations, refused) = Benchmark::Lapi.configurations(&extent);
    assert_eq!(refused, ["lapi has 2 to 2 ranks, not --np 4", "lapi has no --buffers cold"]);
    let pami = of(Benchmark::Pami, &Extent::default());
    assert!(pami[0].order.programs.contains(&Program::Contexts));
    let am2 = of(Benchmark::Am2, &extent);
    assert_eq!((am2.len(), am2[0].name(), am2[0].ranks), (1, "am2".to_owned(), 2));
    assert_eq!(configurations.iter().map(Configuration::name).collect::<Vec<_>>(), ["lapi"]);
}
