//! Jobs of `laplace`, `heat`, `conjugate_gradient`, `nbody` and `sort`: their results, and input that they refuse.

use std::fs;

use super::{RANKS, job, output, refusal, value};

/// How the line begins in which each job prints the result of its check.
const CHECKED: &str = ": verified";

#[test]
fn laplace_is_the_same_to_the_last_bit_for_any_number_of_ranks() {
    let args = ["--size", "66", "--iterations", "57"];
    let figures = |output: &str| {
        ["iterations", "residual", "centre", "checksum", "error"]
            .map(|label| value(output, label).to_owned())
    };
    let alone = figures(&output(1, "auto", "laplace", &args));
    assert_eq!((&*alone[0], &*alone[4]), ("57", "0.000e0: verified"));
    for (ranks, backend) in
        [(2, "eager"), (3, "auto"), (4, "rendezvous"), (7, "auto"), (9, "eager")]
    {
        let together = figures(&output(ranks, backend, "laplace", &args));
        assert_eq!(together, alone, "{ranks} ranks, {backend}");
    }
    let shorter = ["--size", "66", "--iterations", "56"];
    assert_ne!(figures(&output(3, "auto", "laplace", &shorter))[3], alone[3]);
}

#[test]
fn laplace_finds_the_solution() {
    for size in ["14", "15"] {
        let args = ["--size", size, "--iterations", "20000", "--tolerance", "1e-13"];
        let output = output(4, "auto", "laplace", &args);
        assert!(value(&output, "tolerance").ends_with(", reached"), "{output}");
        let centre = value(&output, "centre").split(',').next().and_then(|text| text.parse().ok());
        assert!(centre.is_some_and(|centre: f64| (centre - 0.25).abs() < 1e-10), "{output}");
    }
}

#[test]
fn laplace_refuses_ranks_without_points() {
    // One row for each rank is the minimum.
    output(5, "auto", "laplace", &["--size", "7", "--iterations", "3"]);
    let reason = "laplace: 3 x 1 ranks share 2 x 2 inner points";
    refusal(3, "laplace", &["--size", "4"], reason);
}

#[test]
fn heat_is_the_same_to_the_last_bit_for_any_number_of_ranks() {
    let args = ["--rows", "17", "--columns", "23", "--steps", "40"];
    let total = |output: &str| value(output, "total").to_owned();
    let alone = output(1, "auto", "heat", &args);
    for (ranks, backend) in [(2, "eager"), (3, "auto"), (4, "rendezvous"), (9, "eager")] {
        let together = output(ranks, backend, "heat", &args);
        assert!(value(&together, "error").ends_with(CHECKED), "{together}");
        assert_eq!(total(&together), total(&alone), "{ranks} ranks, {backend}");
    }
    // Blocks of one cell, whose neighbours on both sides are the same rank.
    let printed = output(4, "auto", "heat", &["--rows", "2", "--columns", "2", "--steps", "5"]);
    assert!(value(&printed, "error").ends_with(CHECKED), "{printed}");
    refusal(4, "heat", &["--rows", "1"], "heat: 2 x 2 ranks share 1 x 600 cells");
}

#[test]
fn conjugate_gradient_solves_on_any_number_of_ranks() {
    for ranks in RANKS {
        for grid in ["2", "13"] {
            let printed = output(ranks, "auto", "conjugate_gradient", &["--grid", grid]);
            assert!(value(&printed, "residual").ends_with(CHECKED), "{printed}");
        }
    }
    let few = ["--grid", "13", "--iterations", "3"];
    let outcome = job(2, "auto", "conjugate_gradient", &few);
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("conjugate_gradient: not solved"), "{outcome:?}");
}

#[test]
fn conjugate_gradient_reads_files_and_says_what_is_wrong_with_them() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("a.mtx");
    let file = path.to_str().expect("temporary folders have printable names");
    let write = |text: &str| fs::write(&path, text).expect("the folder takes a file");

    let real = "%%MatrixMarket matrix coordinate real";
    write(&format!("{real} symmetric\n% a comment\n3 3 4\n1 1 2\n2 2 3\n3 3 4\n3 1 -1.5e0\n"));
    for ranks in [1, 2, 5] {
        let printed = output(ranks, "auto", "conjugate_gradient", &["--matrix", file]);
        let head = format!("conjugate_gradient: 3 equations, 5 entries, {ranks} ranks");
        assert!(printed.starts_with(&head), "{printed}");
        assert!(value(&printed, "residual").ends_with(CHECKED), "{printed}");
    }
    let refused = |text: &str, message: &str| {
        write(text);
        refusal(3, "conjugate_gradient", &["--matrix", file], message);
    };
    refused(&format!("{real} general\n2 2 1\n1 x 3\n"), "a.mtx: line 3: \"1 x 3\": expected");
    let mirrored = "a.mtx: not symmetric at row 1, column 2";
    refused(&format!("{real} general\n2 2 3\n1 1 1\n2 2 1\n1 2 0.5\n"), mirrored);
    let indefinite = format!("{real} general\n2 2 2\n1 1 -1\n2 2 -1\n");
    refused(&indefinite, "the matrix is not positive definite");
    refusal(2, "conjugate_gradient", &["--matrix", "absent.mtx"], "absent.mtx: cannot read: No");
}

#[test]
fn nbody_adds_the_forces_of_all_bodies() {
    for (ranks, backend) in
        [(1, "auto"), (2, "eager"), (3, "rendezvous"), (4, "auto"), (7, "auto"), (9, "auto")]
    {
        // Five bodies leave ranks without any.
        for bodies in ["5", "100"] {
            let printed = output(ranks, backend, "nbody", &["--bodies", bodies, "--steps", "3"]);
            assert!(value(&printed, "error").ends_with(CHECKED), "{printed}");
            let momentum = value(&printed, "momentum").split(',').next().map(str::parse::<f64>);
            assert!(
                momentum.is_some_and(|found| found.is_ok_and(|size| size < 1e-12)),
                "{printed}"
            );
        }
    }
    refusal(2, "nbody", &["--step", "0"], "expected a positive number");
}

#[test]
fn sort_sorts_keys_of_any_kind() {
    for ranks in RANKS {
        for (keys, distinct) in [("0", "0"), ("5", "0"), ("5000", "0"), ("5000", "3"), ("700", "1")]
        {
            let args = ["--keys", keys, "--distinct", distinct];
            let printed = output(ranks, "auto", "sort", &args);
            assert!(
                printed.starts_with(&format!("sort: {keys} keys, {ranks} ranks\n")),
                "{printed}"
            );
            assert!(value(&printed, "error").ends_with(CHECKED), "{printed}");
        }
    }
}

#[test]
fn sort_divides_different_keys_evenly() {
    for ranks in [4, 9] {
        let printed = output(ranks, "auto", "sort", &["--keys", "20000"]);
        let part = value(&printed, "largest part").split_whitespace().nth(2).map(str::parse::<f64>);
        assert!(part.is_some_and(|part| part.is_ok_and(|part| part < 2.0)), "{printed}");
    }
}
