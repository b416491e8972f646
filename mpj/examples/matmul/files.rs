//! The matrices of a job: read from files or made up, checked before any rank starts to work; and the output file of
//! the product.
//!
//! `main.rs` uses it on rank 0. All errors in the input are found here, before more memory is allocated than the length
//! of the file justifies.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::grid::Shape;
use super::local::Element;
use super::matrix::Matrix;
use super::npy::{self, Dtype, Header, NpyError};

/// Largest matrix, in bytes.
const LIMIT: u64 = 16 << 30;

/// Why a job cannot start, or its product cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{}: {reason}", path.display())]
    Npy {
        path: PathBuf,
        #[source]
        reason: NpyError,
    },
    #[error("{}: not a regular file", path.display())]
    NotRegular { path: PathBuf },
    #[error("{}: array of shape {shape:?}: expected a matrix, which has two dimensions", path.display())]
    NotMatrix { path: PathBuf, shape: Vec<usize> },
    #[error(
        "{} has {a_type} values and {} has {b_type}: expected the same type in both",
        a.display(),
        b.display()
    )]
    Types { a: PathBuf, b: PathBuf, a_type: Dtype, b_type: Dtype },
    #[error(
        "{} is {} x {} and {} is {} x {}: expected as many rows in the second as the first has columns",
        a.display(), a_extents.0, a_extents.1, b.display(), b_extents.0, b_extents.1
    )]
    Extents { a: PathBuf, b: PathBuf, a_extents: (usize, usize), b_extents: (usize, usize) },
    #[error("a matrix of {rows} x {cols} {dtype} values: expected at most {LIMIT} bytes")]
    TooLarge { rows: usize, cols: usize, dtype: Dtype },
    #[error("{}: cannot write: {reason}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        reason: io::Error,
    },
}

/// The two factors of a product.
pub struct Factors<T> {
    pub a: Matrix<T>,
    pub b: Matrix<T>,
}

/// The factors of a product, in the type that the files or the options give.
pub enum Input {
    F32(Factors<f32>),
    F64(Factors<f64>),
}

impl Input {
    /// Reads the factors from two files.
    pub fn read(a: &Path, b: &Path) -> Result<Self, FileError> {
        let (a, b) = (NpyFile::open(a)?, NpyFile::open(b)?);
        let dtype = a.agree(&b)?;
        Ok(match dtype {
            Dtype::F32 => Self::F32(Factors { a: a.matrix()?, b: b.matrix()? }),
            Dtype::F64 => Self::F64(Factors { a: a.matrix()?, b: b.matrix()? }),
        })
    }

    /// Makes up two square factors.
    pub fn seeded(size: usize, dtype: Dtype) -> Result<Self, FileError> {
        limit(size, size, dtype)?;
        Ok(match dtype {
            Dtype::F32 => Self::F32(seeded(size)),
            Dtype::F64 => Self::F64(seeded(size)),
        })
    }

    /// Returns the type of the values and the extents of the product.
    pub fn plan(&self) -> (Dtype, Shape) {
        match self {
            Self::F32(factors) => (Dtype::F32, factors.shape()),
            Self::F64(factors) => (Dtype::F64, factors.shape()),
        }
    }
}

fn seeded<T: Element>(size: usize) -> Factors<T> {
    Factors { a: Matrix::seeded(size, size, 1), b: Matrix::seeded(size, size, 2) }
}

impl<T: Element> Factors<T> {
    fn shape(&self) -> Shape {
        Shape { m: self.a.rows(), k: self.a.cols(), n: self.b.cols() }
    }
}

/// Refuses a matrix that is larger than [`LIMIT`].
fn limit(rows: usize, cols: usize, dtype: Dtype) -> Result<(), FileError> {
    let bytes = rows.checked_mul(cols).and_then(|count| count.checked_mul(dtype.size()));
    match bytes {
        Some(bytes) if bytes as u64 <= LIMIT => Ok(()),
        _ => Err(FileError::TooLarge { rows, cols, dtype }),
    }
}

/// An open file whose header describes a matrix.
struct NpyFile {
    path: PathBuf,
    header: Header,
    rows: usize,
    cols: usize,
    reader: BufReader<File>,
}

impl NpyFile {
    fn open(path: &Path) -> Result<Self, FileError> {
        let path = path.to_owned();
        let (reader, header) = match Self::open_any(&path) {
            Ok(Some(opened)) => opened,
            Ok(None) => return Err(FileError::NotRegular { path }),
            Err(reason) => return Err(FileError::Npy { path, reason }),
        };
        match header.shape[..] {
            [rows, cols] => Ok(Self { path, header, rows, cols, reader }),
            _ => Err(FileError::NotMatrix { path, shape: header.shape }),
        }
    }

    /// Opens an array of any dimensions. Returns `None` for anything but a regular file, which would have no length to
    /// check, and might block.
    fn open_any(path: &Path) -> Result<Option<(BufReader<File>, Header)>, NpyError> {
        if !fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut reader = BufReader::new(file);
        let header = npy::read_header(&mut reader, length)?;
        Ok(Some((reader, header)))
    }

    /// Checks that this file times `other` is a product, and returns its type.
    fn agree(&self, other: &Self) -> Result<Dtype, FileError> {
        let (a_type, b_type) = (self.header.dtype, other.header.dtype);
        let (a, b) = (self.path.clone(), other.path.clone());
        if a_type != b_type {
            return Err(FileError::Types { a, b, a_type, b_type });
        }
        let (a_extents, b_extents) = ((self.rows, self.cols), (other.rows, other.cols));
        if self.cols != other.rows {
            return Err(FileError::Extents { a, b, a_extents, b_extents });
        }
        for (rows, cols) in [a_extents, b_extents, (self.rows, other.cols)] {
            limit(rows, cols, a_type)?;
        }
        Ok(a_type)
    }

    fn matrix<T: Element>(mut self) -> Result<Matrix<T>, FileError> {
        let values = npy::read_values(&mut self.reader, &self.header)
            .map_err(|reason| FileError::Npy { path: self.path, reason })?;
        Ok(if self.header.fortran_order {
            Matrix::from_columns(self.rows, self.cols, &values)
        } else {
            Matrix::from_rows(self.rows, self.cols, values)
        })
    }
}

/// Checks that [`write`] can work, so that no rank computes in vain.
pub fn check_writable(path: &Path) -> Result<(), FileError> {
    // The final rename must not replace a device or a directory.
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(FileError::NotRegular { path: path.to_owned() });
    }
    let partial = partial(path);
    File::create_new(&partial)
        .and_then(|_| fs::remove_file(&partial))
        .map_err(|reason| FileError::Write { path: path.to_owned(), reason })
}

/// Writes a matrix. The file appears under its name only when it is complete.
pub fn write<T: Element>(path: &Path, matrix: &Matrix<T>) -> Result<(), FileError> {
    let partial = partial(path);
    let written = write_values(&partial, matrix).and_then(|()| fs::rename(&partial, path));
    written.map_err(|reason| {
        // The first error is the one that matters.
        let _ = fs::remove_file(&partial);
        FileError::Write { path: path.to_owned(), reason }
    })
}

fn write_values<T: Element>(path: &Path, matrix: &Matrix<T>) -> io::Result<()> {
    let mut writer = BufWriter::new(File::create_new(path)?);
    npy::write(&mut writer, &[matrix.rows(), matrix.cols()], matrix.values())?;
    writer.flush()
}

/// Returns a name for a file in the same directory that no other process uses.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    PathBuf::from(name)
}
