//! The rows of one rank, and the exchange that a product with a vector needs.
//!
//! A rank has consecutive rows of the matrix and the same elements of each vector. For a product it needs, besides its
//! own elements, those of other ranks whose columns occur in its rows: the remote elements. These never change, so the
//! ranks tell each other once which they are, and every product exchanges only these elements by one all-to-all.
//!
//! - RW1: a vector for a product begins with the rank's own elements. The remote ones follow in the order of their
//!   columns, which is also the order of their ranks. The columns of `matrix` are indices of such a vector.

use std::ops::Range;

use mpj::{Communicator, Error, Op, Partition};

use super::csr::Csr;
use super::partition::part;

/// The rows of one rank.
pub struct Rows<'a> {
    comm: &'a Communicator,
    /// Number of own rows (RW1).
    own: usize,
    matrix: Csr,
    /// The indices of the own elements that other ranks need, in the order of these ranks.
    wanted: Vec<usize>,
    sent: Partition,
    received: Partition,
}

/// Iterates over the rows of each rank.
pub fn division(rows: usize, ranks: usize) -> impl Iterator<Item = Range<usize>> {
    (0..ranks).map(move |rank| part(rows, ranks, rank))
}

impl<'a> Rows<'a> {
    /// Gives every rank its rows of the matrix of `rows` rows that rank 0 has. Collective.
    pub fn scatter(
        comm: &'a Communicator,
        rows: usize,
        whole: Option<&Csr>,
    ) -> Result<Self, Error> {
        let (blocks, mine) = (row_blocks(rows, comm), part(rows, comm.size(), comm.rank()));
        let all: Vec<usize> = whole.map_or(Vec::new(), |whole| {
            (0..rows).map(|row| whole.entries(row..row + 1).len()).collect()
        });
        let mut lengths = vec![0; mine.len()];
        comm.scatterv(&all, &blocks, &mut lengths, 0)?;

        let counts = division(rows, comm.size())
            .map(|rows| whole.map_or(0, |whole| whole.entries(rows).len()));
        let blocks = Partition::packed(counts);
        let entries = lengths.iter().sum();
        let (mut columns, mut values) = (vec![0; entries], vec![0.0; entries]);
        let (all_columns, all_values) =
            whole.map_or((&[][..], &[][..]), |whole| (whole.columns(), whole.values()));
        comm.scatterv(all_columns, &blocks, &mut columns, 0)?;
        comm.scatterv(all_values, &blocks, &mut values, 0)?;
        Self::agree(comm, rows, Csr::from_rows(&lengths, columns, values))
    }

    /// Determines which elements this rank needs, and learns which of its elements other ranks need.
    fn agree(comm: &'a Communicator, rows: usize, mut matrix: Csr) -> Result<Self, Error> {
        let mine = part(rows, comm.size(), comm.rank());
        let own = mine.len();
        let is_own = |column: u32| mine.contains(&(column as usize));
        let mut remote: Vec<u32> =
            matrix.columns().iter().copied().filter(|column| !is_own(*column)).collect();
        remote.sort_unstable();
        remote.dedup();

        let before = |end: usize| remote.partition_point(|column| (*column as usize) < end);
        let needed: Vec<usize> =
            division(rows, comm.size()).map(|rows| before(rows.end) - before(rows.start)).collect();
        let mut asked = vec![0; comm.size()];
        comm.all_to_all(&needed, &mut asked)?;
        let (sent, received) = (Partition::packed(asked), Partition::packed(needed));
        let mut wanted = vec![0; sent.end()];
        comm.all_to_allv(&remote, &received, &mut wanted, &sent)?;
        let wanted = wanted.into_iter().map(|column| column as usize - mine.start).collect();

        matrix.renumber(|column| match remote.binary_search(&column) {
            Ok(place) => (own + place) as u32,
            Err(_) => column - mine.start as u32,
        });
        Ok(Self { comm, own, matrix, wanted, sent, received })
    }

    /// Returns the number of rows of this rank.
    pub fn own(&self) -> usize {
        self.own
    }

    /// Returns the number of elements of other ranks that this rank needs for a product.
    pub fn remote(&self) -> usize {
        self.received.end()
    }

    /// Multiplies the matrix with a vector. Collective. Replaces the elements after the rank's own ones (RW1).
    pub fn multiply(&self, vector: &mut [f64], product: &mut [f64]) -> Result<(), Error> {
        let (own, remote) = vector.split_at_mut(self.own);
        let packed: Vec<f64> = self.wanted.iter().map(|place| own[*place]).collect();
        self.comm.all_to_allv(&packed, &self.sent, remote, &self.received)?;
        self.matrix.multiply(vector, product);
        Ok(())
    }

    /// Returns the inner product of two vectors, with the same bits on all ranks. Collective.
    pub fn dot(&self, left: &[f64], right: &[f64]) -> Result<f64, Error> {
        let mut sum: f64 = left.iter().zip(right).map(|(left, right)| left * right).sum();
        self.comm.all_reduce(&mut sum, Op::Sum)?;
        Ok(sum)
    }
}

/// Returns the rows of each rank as blocks of a vector.
pub fn row_blocks(rows: usize, comm: &Communicator) -> Partition {
    Partition::packed(division(rows, comm.size()).map(|rows| rows.len()))
}
