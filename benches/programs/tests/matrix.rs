//! The programs on matrices and grids: they run on every number of ranks that they can, refuse the
//! others, and notice what is wrong.

mod support;

use mpj_bench_programs::{Order, Program};

use support::{Fault, fails, measures, order};

/// An order that leads to several products.
fn with_products(program: Program, products: &[usize]) -> Order {
    Order { products: products.to_vec(), ..order(program) }
}

#[test]
fn matrices_go_there_and_back() {
    let order = Order { orders: vec![1, 7, 64], ..order(Program::MatrixPingpong) };
    let points = [1, 7, 64].map(|n| [("matrix-f32", n), ("matrix-f64", n)]);
    for ranks in [2, 3] {
        measures(ranks, &order, points.as_flattened());
    }
    fails(1, &order, Fault::None, "matrix-pingpong needs 2 ranks, this job has 1");
}

#[test]
fn cannon_multiplies_on_squares() {
    let order = with_products(Program::Cannon, &[12, 48]);
    let points = [("cannon", 12), ("cannon-share", 12), ("cannon", 48), ("cannon-share", 48)];
    for ranks in [1, 4, 9] {
        measures(ranks, &order, &points);
    }
    for ranks in [2, 3, 8] {
        let text = format!("cannon needs a square number of ranks, this job has {ranks}");
        fails(ranks, &order, Fault::None, &text);
    }
    let order = with_products(Program::Cannon, &[7]);
    fails(4, &order, Fault::None, "cannon on a grid of 2 x 2 ranks needs an N that both divide");
}

#[test]
fn summa_multiplies_on_any_number_of_ranks() {
    // Panels of 1, 12, 4, 64 and 48 columns, depending on the grid.
    let order = with_products(Program::Summa, &[6, 24, 192]);
    let points = [6, 24, 192].map(|n| [("summa", n), ("summa-share", n)]);
    for ranks in [1, 2, 3, 4, 6] {
        measures(ranks, &order, points.as_flattened());
    }
    let order = with_products(Program::Summa, &[8]);
    fails(6, &order, Fault::None, "summa on a grid of 2 x 3 ranks needs an N that both divide");
}

#[test]
fn transposes_on_any_number_of_ranks() {
    // Blocks below, at and above the size of a tile.
    let order = with_products(Program::Transpose, &[12, 48, 120]);
    for ranks in [1, 2, 3, 4, 6] {
        measures(ranks, &order, &[("transpose", 12), ("transpose", 48), ("transpose", 120)]);
    }
    let order = with_products(Program::Transpose, &[8]);
    fails(3, &order, Fault::None, "transpose on 3 ranks needs an N that their number divides");
}

#[test]
fn laplace_relaxes_on_any_number_of_ranks() {
    for ranks in [1, 2, 3, 4, 6] {
        let x = ranks as u64;
        measures(ranks, &order(Program::Laplace), &[("laplace", x), ("laplace-share", x)]);
    }
}

#[test]
fn diffuses_on_any_number_of_ranks() {
    for ranks in [1, 2, 3, 6] {
        let x = ranks as u64;
        measures(ranks, &order(Program::Diffusion), &[("diffusion", x), ("diffusion-share", x)]);
    }
}

#[test]
fn more_ranks_than_planes_are_refused() {
    let text = "diffusion has 64 lines to spread, this job has 65 ranks";
    fails(65, &order(Program::Diffusion), Fault::None, text);
}

#[test]
fn one_plane_per_rank_is_enough() {
    let x = 64;
    measures(64, &order(Program::Diffusion), &[("diffusion", x), ("diffusion-share", x)]);
}

#[test]
fn wrong_matrices_are_noticed() {
    fails(2, &order(Program::MatrixPingpong), Fault::Every, "wrong matrix of N = 12");
    fails(4, &order(Program::Cannon), Fault::Every, "wrong product from cannon of N = 12");
    fails(2, &order(Program::Summa), Fault::Every, "wrong product from summa of N = 12");
    fails(6, &order(Program::Summa), Fault::Every, "wrong product from summa of N = 12");
    fails(3, &order(Program::Transpose), Fault::Every, "wrong transpose of N = 12");
}

#[test]
fn one_wrong_ghost_is_noticed() {
    for program in [Program::Laplace, Program::Diffusion] {
        fails(2, &order(program), Fault::First, "are not those that one rank gets");
        fails(3, &order(program), Fault::First, "are not those that one rank gets");
    }
}
