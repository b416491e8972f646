//! The program that measures one-sided operations: it runs, and notices what is wrong.

mod support;

use mpj_bench_programs::{Order, Program};

use support::{Fault, fails, measures, order};

#[test]
fn one_sided_operations_are_measured() {
    let sizes = vec![8, 12, 64];
    let mut points = Vec::new();
    for size in [8, 64] {
        let operations = ["put", "get", "acc", "getacc", "fop", "cas"];
        let operations = &operations[..if size == 8 { 6 } else { 4 }];
        let epochs = ["flush", "lock", "fence", "pscw"];
        let of = |operation| epochs.map(|epoch| format!("rma-{operation}-{epoch}"));
        let others = ["put-ratio", "put-computing", "put-created", "get-created", "acc-created"];
        let names = operations.iter().flat_map(of).chain(others.map(|name| format!("rma-{name}")));
        points.extend(names.map(|name| (name, size)));
    }
    let points: Vec<_> = points.iter().map(|(name, size)| (&**name, *size)).collect();
    measures(2, &Order { sizes, ..order(Program::Rma) }, &points);
}

#[test]
fn wrong_data_are_noticed() {
    fails(2, &order(Program::Rma), Fault::Every, "wrong data after Put of 8 B by Flush");
}

#[test]
fn there_are_two_ranks() {
    fails(3, &order(Program::Rma), Fault::None, "rma has two ranks");
    fails(1, &order(Program::Rma), Fault::None, "rma needs 2 ranks");
}
