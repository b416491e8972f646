//! Who is behind a wait in the end.

use super::*;

#[test]
fn a_rank_that_waited_itself_passes_the_blame_on() {
    // Rank 2 computes for 3 s. Rank 1 waits for it, computes for 1 s and sends to rank 0.
    let ranks = vec![
        vec![recv(0, 4, 1, 1)],
        vec![recv(0, 3, 2, 2), send(4, 5, 0, 1)],
        vec![send(3, 4, 1, 2)],
    ];
    let profile = Profile::of(&trace(ranks));
    assert_eq!(charges(&profile.direct), [(0, 1, 4), (1, 2, 3)]);
    assert_eq!(charges(&profile.causes), [(0, 1, 1), (0, 2, 3), (1, 2, 3)]);
    let caused: Vec<u64> = profile.ranks.iter().map(|rank| rank.caused / S).collect();
    assert_eq!(caused, [0, 1, 6]);
}

#[test]
fn a_delay_is_followed_over_ranks_and_iterations() {
    // In each iteration a rank computes for 1 s and exchanges messages with its neighbours. Rank 3 computes for 4 s once.
    // A rank that is n away waits n iterations later, while its neighbour computes.
    let mut simulation = simulation::Stencil::new(4);
    for iteration in 0..6 {
        simulation.compute(&[1, 1, 1, if iteration == 1 { 4 } else { 1 }]);
        simulation.exchange();
    }
    let profile = Profile::of(&simulation.trace());
    assert_eq!(charges(&profile.direct), [(0, 1, 3), (1, 2, 3), (2, 3, 3)]);
    assert_eq!(charges(&profile.causes), [(0, 3, 3), (1, 3, 3), (2, 3, 3)]);
}

#[test]
fn only_what_happened_since_two_ranks_met_counts() {
    // Rank 0 computes longer first, rank 1 then.
    let ranks = vec![
        vec![collective(5, 6, 0), collective(7, 9, 1)],
        vec![collective(1, 6, 0), collective(8, 9, 1)],
    ];
    let profile = Profile::of(&trace(ranks));
    assert_eq!(charges(&profile.causes), [(0, 1, 1), (1, 0, 4)]);
}

#[test]
fn a_rank_that_is_slow_in_its_calls_is_the_cause() {
    // Rank 1 writes a file before it sends.
    let ranks =
        vec![vec![recv(1, 5, 1, 1)], vec![call("write", Kind::File, 1, 4), send(4, 5, 0, 1)]];
    let profile = Profile::of(&trace(ranks));
    assert_eq!(charges(&profile.causes), [(0, 1, 3)]);
}

#[test]
fn a_wait_has_several_causes() {
    // Rank 1 waits 2 s for rank 2, and computes 2 s longer than rank 0 besides.
    let ranks = vec![
        vec![collective(0, 1, 0), recv(2, 6, 1, 1)],
        vec![collective(0, 1, 0), recv(1, 3, 2, 2), send(6, 7, 0, 1)],
        vec![collective(0, 1, 0), send(3, 4, 1, 2)],
    ];
    let profile = Profile::of(&trace(ranks));
    assert_eq!(charges(&profile.causes), [(0, 1, 2), (0, 2, 2), (1, 2, 2)]);
}
