//! Placement over made-up machines.

use super::*;

/// `sockets` of `cores` of `threads`, numbered as Linux does: first all first threads.
fn machine(sockets: usize, cores: usize, threads: usize) -> Vec<(usize, (usize, usize))> {
    let all = sockets * cores;
    (0..all * threads).map(|cpu| (cpu, (cpu % all / cores, cpu % all))).collect()
}

fn topology(sockets: usize, cores: usize, threads: usize) -> Topology {
    Topology::new(machine(sockets, cores, threads))
}

fn seats(
    topology: &Topology,
    bind_to: BindTo,
    map_by: Option<MapBy>,
    ranks: usize,
) -> Vec<Vec<usize>> {
    let placement = topology.place(Binding::new(Some(bind_to), map_by, false), ranks);
    placement.seats.into_iter().map(|seat| seat.expect("bound").processors).collect()
}

#[test]
fn a_core_has_all_its_threads() {
    let smt = topology(1, 4, 2);
    assert_eq!(seats(&smt, BindTo::Core, None, 3), [[0, 4], [1, 5], [2, 6]]);
    assert_eq!(seats(&smt, BindTo::Hwthread, None, 3), [[0], [1], [2]]);
}

#[test]
fn hardware_threads_fill_one_core_after_the_other() {
    let smt = topology(1, 2, 2);
    let by = Some(MapBy::Hwthread);
    assert_eq!(seats(&smt, BindTo::Hwthread, by, 4), [[0], [2], [1], [3]]);
    assert_eq!(seats(&smt, BindTo::Core, by, 4), [[0, 2], [0, 2], [1, 3], [1, 3]]);
}

#[test]
fn cores_are_gone_over_before_second_threads() {
    let smt = topology(1, 2, 2);
    assert_eq!(seats(&smt, BindTo::Hwthread, None, 5), [[0], [1], [2], [3], [0]]);
}

#[test]
fn sockets_take_turns() {
    let two = topology(2, 3, 1);
    let by = Some(MapBy::Socket);
    assert_eq!(seats(&two, BindTo::Core, by, 6), [[0], [3], [1], [4], [2], [5]]);
    assert_eq!(seats(&two, BindTo::Core, Some(MapBy::Core), 4), [[0], [1], [2], [3]]);
    assert_eq!(seats(&two, BindTo::Socket, by, 3), [[0, 1, 2], [3, 4, 5], [0, 1, 2]]);
}

/// A container was given processors 1, 5, 6 of a machine with two sockets of four cores, and the
/// second thread (13) of the core of 5.
#[test]
fn a_set_with_holes_is_all_there_is() {
    let holes = [1, 5, 6, 13];
    let usable = machine(2, 4, 2).into_iter().filter(|(cpu, _)| holes.contains(cpu));
    let topology = Topology::new(usable);
    assert_eq!(seats(&topology, BindTo::Core, None, 3), [vec![1], vec![5, 13], vec![6]]);
    let by_socket = seats(&topology, BindTo::Core, Some(MapBy::Socket), 3);
    assert_eq!(by_socket, [vec![1], vec![5, 13], vec![6]]);
    assert_eq!(seats(&topology, BindTo::Socket, Some(MapBy::Socket), 2)[1], [5, 6, 13]);
}

#[test]
fn sockets_of_different_sizes_take_turns_while_they_can() {
    let usable = machine(2, 3, 1).into_iter().filter(|(cpu, _)| ![1, 2].contains(cpu));
    let topology = Topology::new(usable);
    let seats = seats(&topology, BindTo::Core, Some(MapBy::Socket), 4);
    assert_eq!(seats, [[0], [3], [4], [5]]);
}

#[test]
fn more_ranks_than_cores_go_round_and_are_noted_once() {
    let four = topology(1, 4, 1);
    let core = Binding::new(Some(BindTo::Core), None, false);
    assert_eq!(four.place(core, 4).note(), None);
    let round = four.place(core, 6);
    assert_eq!(round.seats[5], round.seats[1]);
    let note = round.note().expect("shared");
    assert_eq!(note, "6 ranks are bound to 4 cores, so some share one");
    assert_eq!(four.place(Binding::new(None, None, false), 6).note(), None);
    let one = topology(1, 1, 1).place(core, 2).note().expect("shared");
    assert_eq!(one, "2 ranks are bound to 1 core, so some share one");
    // An order over hardware threads asks for two ranks per core.
    let threads = Binding::new(Some(BindTo::Core), Some(MapBy::Hwthread), false);
    assert_eq!(topology(1, 2, 2).place(threads, 4).note(), None);
    assert!(topology(1, 2, 2).place(threads, 5).note().is_some());
}

/// Where each of these ranks is bound if nothing is asked for; nothing where it is not.
fn unasked(topology: &Topology, ranks: usize) -> (Vec<Vec<usize>>, Vec<Option<usize>>) {
    let placement = topology.place(Binding::new(None, None, false), ranks);
    assert_eq!(placement.note(), None);
    let homes = (0..ranks).map(|rank| placement.home(rank)).collect();
    let processors = |seat: Option<Seat>| seat.map(|seat| seat.processors).unwrap_or_default();
    (placement.seats.into_iter().map(processors).collect(), homes)
}

#[test]
fn ranks_divide_the_processors_evenly() {
    let bound = |topology: &Topology, ranks| {
        let (bound, homes) = unasked(topology, ranks);
        assert_eq!(homes, vec![None; ranks]);
        bound
    };
    let smt = topology(1, 4, 2);
    assert_eq!(bound(&smt, 1), [[0; 0]], "a single rank may use all");
    assert_eq!(bound(&smt, 2), [[0, 1, 4, 5], [2, 3, 6, 7]]);
    assert_eq!(bound(&smt, 3), [vec![0, 4], vec![1, 5], vec![2, 3, 6, 7]], "no core is cut");
    assert_eq!(bound(&smt, 4), [[0, 4], [1, 5], [2, 6], [3, 7]]);
    assert_eq!(bound(&smt, 8)[..3], [[0], [4], [1]], "neighbours on one core");
    assert_eq!(bound(&topology(1, 2, 2), 3), [vec![0], vec![2], vec![1, 3]]);
    assert_eq!(bound(&topology(2, 2, 1), 2), [[0, 1], [2, 3]], "a socket each");
    assert_eq!(bound(&topology(1, 2, 1), 2), [[0], [1]]);
    for ranks in 2..=16 {
        let bound = bound(&topology(2, 4, 2), ranks);
        let mut all = bound.concat();
        all.sort_unstable();
        assert_eq!(all, (0..16).collect::<Vec<_>>(), "{ranks} ranks leave none, and share none");
        let sizes = bound.iter().map(Vec::len);
        let (least, most) = (sizes.clone().min(), sizes.max());
        assert!(most <= least.map(|least| least + 2), "{bound:?}: by at most a core");
    }
}

#[test]
fn more_ranks_than_processors_are_not_bound() {
    let on = |cpu| Some(cpu);
    let two = topology(1, 2, 1);
    assert_eq!(unasked(&two, 4), (vec![vec![]; 4], vec![on(0), on(0), on(1), on(1)]));
    let homes = unasked(&topology(1, 2, 2), 8).1;
    assert_eq!(homes[1..6], [on(0), on(2), on(2), on(1), on(1)]);
    for ranks in [3, 5] {
        assert_eq!(unasked(&two, ranks), (vec![vec![]; ranks], vec![None; ranks]));
    }
    let placement = |ranks| two.place(Binding::new(None, None, true), ranks);
    assert_eq!(placement(4).words(2), "not bound, at home on processor 1");
    assert_eq!((placement(4).total(), placement(2).total()), (None, Some(2)));
    assert_eq!(placement(2).words(1), "bound to processor 1, its share");
    assert_eq!(placement(3).words(2), "not bound");
}

#[test]
fn an_order_alone_binds_to_what_it_goes_over() {
    let meant = |bind, map| Binding::new(bind, map, false).bind_to;
    assert_eq!(meant(None, None), None);
    assert_eq!(meant(None, Some(MapBy::Socket)), Some(BindTo::Core));
    assert_eq!(meant(None, Some(MapBy::Hwthread)), Some(BindTo::Hwthread));
    assert_eq!(meant(Some(BindTo::None), Some(MapBy::Core)), Some(BindTo::None));
}

#[test]
fn the_ranks_have_what_their_seats_come_to() {
    let smt = topology(1, 2, 2);
    let total = |bind, ranks| smt.place(Binding::new(Some(bind), None, false), ranks).total();
    assert_eq!(total(BindTo::None, 4), None);
    assert_eq!(total(BindTo::Core, 1), Some(2));
    assert_eq!(total(BindTo::Core, 5), Some(4));
    assert_eq!(total(BindTo::Hwthread, 3), Some(3));
}

#[test]
fn a_seat_in_words() {
    let words = |bind| topology(2, 2, 2).place(Binding::new(Some(bind), None, true), 3).words(2);
    assert_eq!(words(BindTo::None), "not bound");
    assert_eq!(words(BindTo::Core), "bound to processors 2,6, a core of socket 1");
    assert_eq!(words(BindTo::Hwthread), "bound to processor 2, a hardware thread of socket 1");
    assert_eq!(words(BindTo::Socket), "bound to processors 2-3,6-7, all of socket 1");
}

#[test]
fn the_kernels_lists_begin_with_a_number() {
    assert_eq!(first_number("3,7-9\n"), Some(3));
    assert_eq!(first_number("12\n"), Some(12));
    assert_eq!(first_number("-1\n"), None);
    assert_eq!(first_number(""), None);
}

#[test]
fn this_machine_has_a_processor() {
    let here = Topology::here().expect("the system tells");
    assert!(!here.cores.is_empty() && here.cores.iter().all(|core| !core.threads.is_empty()));
}
