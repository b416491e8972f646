//! `conjugate_gradient`'s reader of Matrix Market files, on valid, damaged and arbitrary files.

use proptest::prelude::*;

use csr::Csr;
use matrix_market::read;

#[allow(dead_code, reason = "the program uses more of it")]
#[path = "../../../mpj/examples/conjugate_gradient/csr.rs"]
mod csr;
#[path = "../../../mpj/examples/conjugate_gradient/matrix_market.rs"]
mod matrix_market;

const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";
const SYMMETRIC: &str = "%%matrixmarket Matrix COORDINATE Real Symmetric\n";

/// The error of a file.
fn refusal(text: &str) -> String {
    read(text.as_bytes()).expect_err("the file is damaged").to_string()
}

#[test]
fn reads_entries_in_any_order() {
    let text = format!("{GENERAL}% note\n\n2 2 4\n2 1 3\n1 2 2.5\n%\n2 1 1e0\n1 1 -1\n\n% end\n");
    let expected = Csr::from_rows(&[2, 1], vec![0, 1, 0], vec![-1.0, 2.5, 4.0]);
    assert_eq!(read(text.as_bytes()).expect("a valid file"), expected);
    assert_eq!(expected.asymmetry(), Some((0, 1)));
}

#[test]
fn mirrors_symmetric_matrices() {
    let text = format!("{SYMMETRIC}3 3 3\n1 1 2\n3 1 5\n3 3 1\n");
    let matrix = read(text.as_bytes()).expect("a valid file");
    assert_eq!(matrix.asymmetry(), None);
    let mut product = [0.0; 3];
    matrix.multiply(&[1.0, 10.0, 100.0], &mut product);
    assert_eq!(product, [502.0, 0.0, 105.0]);
}

#[test]
fn poisson_is_symmetric_and_has_five_entries_inside() {
    let matrix = Csr::poisson(3);
    assert_eq!((matrix.rows(), matrix.asymmetry()), (9, None));
    let inside: Vec<_> = matrix.row(4).collect();
    assert_eq!(inside, [(1, -1.0), (3, -1.0), (4, 4.0), (5, -1.0), (7, -1.0)]);
    assert_eq!(matrix.values().len(), 9 + 24);
}

#[test]
fn names_the_line_that_is_wrong() {
    assert!(refusal("").starts_with("line 1: not a Matrix Market file"));
    assert!(refusal("1 1 1\n").starts_with("line 1: not a Matrix Market file"));
    let banner = |words: &str| refusal(&format!("%%MatrixMarket {words}\n1 1 0\n"));
    assert!(banner("vector coordinate real general").contains("\"vector\" where"));
    assert!(banner("matrix array real general").contains("expected: coordinate"));
    assert!(banner("matrix coordinate complex general").contains("\"complex\" where"));
    assert!(banner("matrix coordinate real hermitian").contains("expected: general, symmetric"));

    let general = |rest: &str| refusal(&format!("{GENERAL}{rest}"));
    assert!(general("% note\n").starts_with("line 3: the file ends where the numbers of rows"));
    assert!(general("2 2\n").starts_with("line 2: \"2 2\": expected the numbers of rows"));
    assert!(general("2 3 1\n").starts_with("line 2: a matrix of 2 x 3: expected a square one"));
    assert!(general("0 0 0\n").starts_with("line 2: a matrix of 0 x 0: "));
    assert!(general("2 2 1\n\n3 1 1\n").starts_with("line 4: entry at row 3, column 1 of"));
    assert!(general("2 2 1\n1 0 1\n").starts_with("line 3: entry at row 1, column 0 of"));
    assert!(general("2 2 2\n1 1 1\n").starts_with("line 4: the file ends where an entry"));
    assert!(general("2 2 1\n1 1 1\n2 2 1\n").starts_with("line 4: more than the 1 entries"));
    for entry in ["1 1", "1 1 1 1", "1 1 nan", "1 1 1e999", "-1 1 1", "a b c"] {
        let reason = format!("line 3: {entry:?}: expected an entry");
        assert!(general(&format!("2 2 1\n{entry}\n")).starts_with(&reason), "{entry}");
    }
    let above = refusal(&format!("{SYMMETRIC}2 2 1\n1 2 1\n"));
    assert_eq!(above, "line 3: entry at row 1, column 2 above the diagonal of a symmetric matrix");
    let latin = read(&b"%%MatrixMarket matrix coordinate real general\n% \xff\n"[..]);
    assert!(latin.expect_err("no UTF-8").to_string().starts_with("line 2: cannot read: "));
}

#[test]
fn promises_of_files_take_no_memory() {
    let text = format!("{GENERAL}2 2 {}\n1 1 1\n", usize::MAX);
    assert!(refusal(&text).starts_with("line 4: the file ends"));
    assert!(refusal(&format!("{GENERAL}{0} {0} 1\n", 1_u64 << 40)).starts_with("line 2: a matrix"));
}

proptest! {
    #[test]
    fn arbitrary_files_are_read_or_refused(lines in prop::collection::vec("[-%0-9. e]{0,8}", 0..8)) {
        let text = format!("{GENERAL}{}\n", lines.join("\n"));
        if let Ok(matrix) = read(text.as_bytes()) {
            prop_assert!((1..=1 << 24).contains(&matrix.rows()));
        }
    }
}
