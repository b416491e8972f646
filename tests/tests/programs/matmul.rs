//! Jobs of `matmul`: products against those that NumPy has computed, and input that it has to refuse.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::npy_format::npy::{self, Dtype};
use super::{BACKENDS, RANKS, job, output, refusal, value};

const SAMPLES: [&str; 6] = ["odd_f8", "tall_f4", "fortran_f8", "row_f4", "empty_f8", "version2_f8"];

/// A matrix that NumPy has written, `name` without its ending.
fn sample(name: &str) -> String {
    let folder = mpj_harness::workspace().join("tests/data");
    text(&folder.join(format!("{name}.npy"))).to_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the folder of the workspace has a printable name")
}

/// Type, shape and values of an array in C order.
fn read(path: &str) -> (Dtype, Vec<usize>, Vec<f64>) {
    let mut file = File::open(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let length = file.metadata().expect("an open file has a length").len();
    let header = npy::read_header(&mut file, length).expect("a valid header");
    assert!(!header.fortran_order, "{path}");
    let values = match header.dtype {
        Dtype::F32 => npy::read_values::<f32>(&mut file, &header)
            .expect("valid values")
            .into_iter()
            .map(f64::from)
            .collect(),
        Dtype::F64 => npy::read_values::<f64>(&mut file, &header).expect("valid values"),
    };
    (header.dtype, header.shape, values)
}

/// Checks a product against the one that NumPy computed.
fn assert_same_product(found: &str, expected: &str, context: &str) {
    let (found, expected) = (read(found), read(expected));
    assert_eq!((found.0, &found.1), (expected.0, &expected.1), "{context}");
    // The factors lie between -1 and 1 and have at most 64 columns: 64 roundings, twice.
    let tolerance = match expected.0 {
        Dtype::F32 => 128.0 * f64::from(f32::EPSILON),
        Dtype::F64 => 128.0 * f64::EPSILON,
    };
    for (found, expected) in found.2.iter().zip(&expected.2) {
        assert!((found - expected).abs() <= tolerance, "{context}: {found} and {expected}");
    }
}

/// A folder that is removed at the end of the test, and the names of files in it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file with the given bytes.
    fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a file can be written to a temporary folder");
        text(&path).to_owned()
    }
}

#[test]
fn multiplies_like_numpy() {
    let folder = Folder::new();
    let out = folder.path("c.npy");
    for name in SAMPLES {
        let [a, b, c] = ["a", "b", "c"].map(|part| sample(&format!("{name}.{part}")));
        for ranks in RANKS {
            for backend in BACKENDS {
                let context = format!("{name}, {ranks} ranks, {backend}");
                let printed =
                    output(ranks, backend, "matmul", &["--a", &a, "--b", &b, "--out", text(&out)]);
                assert!(printed.contains(": verified"), "{context}: {printed}");
                assert_same_product(text(&out), &c, &context);
                fs::remove_file(&out).expect("the product was written");
            }
        }
    }
}

#[test]
fn every_algorithm_gives_the_same_product() {
    let folder = Folder::new();
    let out = folder.path("c.npy");
    let [a, b, c] = ["a", "b", "c"].map(|part| sample(&format!("tall_f4.{part}")));
    let kinds =
        [(4, "cannon"), (9, "cannon"), (4, "summa"), (6, "summa"), (5, "ring"), (8, "ring")];
    for (ranks, algorithm) in kinds {
        let args = ["--a", &a, "--b", &b, "--out", text(&out), "--algorithm", algorithm];
        let printed = output(ranks, "auto", "matmul", &args);
        assert!(printed.to_lowercase().contains(algorithm), "{printed}");
        assert_same_product(text(&out), &c, &printed);
    }
}

#[test]
fn multiplies_made_up_matrices() {
    for (ranks, dtype) in [(1, "f32"), (2, "f64"), (3, "f32"), (4, "f64")] {
        let args = ["--size", "100", "--dtype", dtype];
        let printed = output(ranks, "auto", "matmul", &args);
        let head = format!("matmul: 100 x 100 times 100 x 100, {dtype}, ");
        assert!(printed.starts_with(&head), "{printed}");
        assert!(value(&printed, "residual").ends_with(": verified"), "{printed}");
        for label in ["distribute", "multiply", "communication", "gather", "one rank"] {
            assert!(value(&printed, label).starts_with(|first: char| first.is_ascii_digit()));
        }
    }
}

#[test]
fn refuses_options_that_do_not_go_together() {
    let [a, b] = ["odd_f8.a", "odd_f8.b"].map(sample);
    refusal(4, "matmul", &[], "not provided:\n  <--a <A.npy>|--size <N>>");
    refusal(4, "matmul", &["--a", &a], "not provided:\n  --b <B.npy>");
    refusal(4, "matmul", &["--a", &a, "--b", &b, "--size", "3"], "cannot be used with");
    refusal(
        3,
        "matmul",
        &["--size", "8", "--algorithm", "cannon"],
        "a square number of ranks, not 3",
    );
    refusal(2, "matmul", &["--size", "50000"], "50000 x 50000 f64 values: expected at most");
}

#[test]
fn refuses_files_that_do_not_multiply() {
    let [a, b, f4] = ["odd_f8.a", "odd_f8.b", "row_f4.b"].map(sample);
    let message = format!("{b} is 5 x 3 and {a} is 7 x 5: expected as many rows");
    refusal(4, "matmul", &["--a", &b, "--b", &a], &message);
    let message = format!("{a} has f64 values and {f4} has f32: expected the same type");
    refusal(3, "matmul", &["--a", &a, "--b", &f4], &message);

    let folder = Folder::new();
    let mut bytes = Vec::new();
    npy::write(&mut bytes, &[4], &[0.0_f64; 4]).expect("a vector takes all bytes");
    let vector = folder.file("vector.npy", &bytes);
    let message = format!("{vector}: array of shape [4]: expected a matrix");
    refusal(2, "matmul", &["--a", &vector, "--b", &b], &message);

    // Files of 128 bytes whose product would not fit any memory.
    let wide = 1_usize << 40;
    let (mut tall, mut flat) = (Vec::new(), Vec::new());
    npy::write::<f64>(&mut tall, &[wide, 0], &[]).expect("a vector takes all bytes");
    npy::write::<f64>(&mut flat, &[0, wide], &[]).expect("a vector takes all bytes");
    let (tall, flat) = (folder.file("tall.npy", &tall), folder.file("flat.npy", &flat));
    let message = format!("{wide} x {wide} f64 values: expected at most");
    refusal(2, "matmul", &["--a", &tall, "--b", &flat], &message);
}

#[test]
fn refuses_damaged_files() {
    let folder = Folder::new();
    let (a, b) = (sample("odd_f8.a"), sample("odd_f8.b"));
    let sound = fs::read(&a).expect("the sample is there");
    let replaced = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = sound.windows(from.len()).position(|window| window == from.as_bytes());
        let mut bytes = sound.clone();
        bytes[at.expect("the header has this text")..][..to.len()].copy_from_slice(to.as_bytes());
        bytes
    };
    let damaged = [
        (Vec::new(), "not a NumPy file"),
        (b"PK\x03\x04 an archive of arrays".to_vec(), "not a NumPy file"),
        (sound[..100].to_vec(), "header ends after 90 bytes: expected 118"),
        (sound[..sound.len() - 1].to_vec(), "file of 407 bytes: expected 408"),
        ([&sound[..], &[0]].concat(), "file of 409 bytes: expected 408"),
        (replaced("<f8", ">f8"), "values of type '>f8': expected '<f4' or '<f8'"),
        (replaced("(7, 5)", "(7; 5)"), "malformed header at its byte"),
        (replaced("(7, 5)", "(8, 5)"), "file of 408 bytes: expected 448"),
        (replaced("NUMPY\x01", "NUMPY\x03"), "format version 3.0: expected 1.0 or 2.0"),
    ];
    for (bytes, reason) in damaged {
        let file = folder.file("damaged.npy", &bytes);
        refusal(3, "matmul", &["--a", &file, "--b", &b], &format!("{file}: {reason}"));
        refusal(2, "matmul", &["--a", &b, "--b", &file], &format!("{file}: {reason}"));
    }
}

#[test]
fn refuses_what_is_no_file() {
    let (a, b) = (sample("odd_f8.a"), sample("odd_f8.b"));
    refusal(
        4,
        "matmul",
        &["--a", &a, "--b", "absent.npy"],
        "absent.npy: cannot read: No such file",
    );
    refusal(2, "matmul", &["--a", "/dev/zero", "--b", &b], "/dev/zero: not a regular file");
    let out = ["--a", &a, "--b", &b, "--out"];
    refusal(2, "matmul", &[&out[..], &["/dev/null"]].concat(), "/dev/null: not a regular file");
    let nowhere = "absent/folder/c.npy";
    refusal(3, "matmul", &[&out[..], &[nowhere]].concat(), "absent/folder/c.npy: cannot write: ");
}

#[test]
fn a_refused_job_leaves_the_old_product() {
    let folder = Folder::new();
    let out = folder.file("c.npy", b"an older product");
    let outcome = job(2, "auto", "matmul", &["--a", "absent.npy", "--b", &out, "--out", &out]);
    assert_eq!(outcome.code, 2, "{outcome:?}");
    assert_eq!(fs::read(&out).expect("it is still there"), b"an older product");
    let names = fs::read_dir(folder.0.path()).expect("the folder is still there");
    assert_eq!(names.count(), 1, "nothing half written stays behind");
}
