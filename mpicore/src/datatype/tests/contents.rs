//! The results of envelopes and contents.

use super::*;

fn envelope(datatype: &Datatype) -> (Combiner, [usize; 4]) {
    let Envelope { combiner, integers, addresses, counts, datatypes } = datatype.envelope();
    (combiner, [integers, addresses, counts, datatypes])
}

/// Returns integers, addresses and large counts.
fn numbers(datatype: &Datatype) -> (Vec<i64>, Vec<isize>, Vec<i64>) {
    let Contents { integers, addresses, counts, .. } = datatype.contents();
    (integers, addresses, counts)
}

#[test]
fn contents_are_the_arguments() {
    let old = Datatype::named(ElementKind::I32, "MPI_INTEGER");
    assert_eq!(envelope(&old), (Combiner::Named, [0; 4]));
    assert_eq!(envelope(&old.dup().unwrap()), (Combiner::Dup, [0, 0, 0, 1]));
    let vector = Datatype::vector(2, 3, -4, &old).unwrap();
    assert_eq!(envelope(&vector), (Combiner::Vector, [3, 0, 0, 1]));
    assert_eq!(numbers(&vector), (vec![2, 3, -4], vec![], vec![]));
    assert_eq!(vector.contents().datatypes[0].name(), Some("MPI_INTEGER"));
    let hvector = Datatype::hvector(2, 3, 40, &old).unwrap();
    assert_eq!(numbers(&hvector), (vec![2, 3], vec![40], vec![]));
    let indexed = Datatype::indexed(&[1, 2], &[9, 5], &old).unwrap();
    assert_eq!(numbers(&indexed), (vec![2, 1, 2, 9, 5], vec![], vec![]));
    let hindexed = Datatype::hindexed(&[1, 2], &[9, 5], &old).unwrap();
    assert_eq!(numbers(&hindexed), (vec![2, 1, 2], vec![9, 5], vec![]));
    let block = Datatype::indexed_block(3, &[9, 5], &old).unwrap();
    assert_eq!(numbers(&block), (vec![2, 3, 9, 5], vec![], vec![]));
    let block = Datatype::hindexed_block(3, &[9, 25], &old).unwrap();
    assert_eq!(numbers(&block), (vec![2, 3], vec![9, 25], vec![]));
    assert_eq!(numbers(&old.resized(-1, 7).unwrap()), (vec![], vec![-1, 7], vec![]));
    let record = Datatype::create_struct(&[1, 2], &[0, 8], &[old.clone(), vector]).unwrap();
    assert_eq!(envelope(&record), (Combiner::Struct, [3, 2, 0, 2]));
    assert_eq!(numbers(&record), (vec![2, 1, 2], vec![0, 8], vec![]));
    assert_eq!(numbers(&record.with_large_counts()), (vec![], vec![], vec![2, 1, 2, 0, 8]));
}

#[test]
fn contents_of_arrays_are_the_arguments() {
    let part = Datatype::subarray(&[4, 5], &[2, 3], &[1, 0], Order::Fortran, &int()).unwrap();
    assert_eq!(numbers(&part), (vec![2, 4, 5, 2, 3, 1, 0, 15], vec![], vec![]));
    let large = (vec![2, 15], vec![], vec![4, 5, 2, 3, 1, 0]);
    assert_eq!(numbers(&part.with_large_counts()), large);
    let distributions = [Distribution::Block(None), Distribution::Cyclic(Some(3))];
    let part = Datatype::darray(6, 4, &[8, 9], &distributions, &[2, 3], Order::C, &int()).unwrap();
    assert_eq!(numbers(&part).0, [6, 4, 2, 8, 9, 17, 18, 19, 3, 2, 3, 12]);
    assert_eq!(envelope(&part), (Combiner::Darray, [12, 0, 0, 1]));
    assert_eq!(envelope(&part.with_large_counts()), (Combiner::Darray, [10, 0, 2, 1]));
}
