//! Finds the numbers of nodes along each dimension that make a grid as even as possible.
//!
//! Among all ways to write the number of nodes as a product of the given number of factors, the best has the smallest
//! largest factor; among those with the same largest factor, the one with the smallest second factor, and so on. The
//! search is exact: it tries divisors from the root upwards, and remembers the answer for each quotient.

use std::collections::HashMap;

use super::TopologyError;

/// Fills in the entries of `dims` that are 0, so that the product of all entries is `nodes`: MPI_Dims_create (MPI-4.1
/// section 8.5.2). Other entries stay. The new entries do not increase and are as close to each other as possible: the
/// largest is as small as it can be, then the second, and so on.
///
/// # Errors
/// [`TopologyError::NoNodes`] if `nodes` is 0, [`TopologyError::KeptDimension`] if the product of the entries that are
/// not 0 does not divide `nodes`, [`TopologyError::NoFreeDimension`] if it is less than `nodes` and no entry is 0.
/// `dims` is then unchanged.
///
/// ```
/// use mpicore::topology::dims_create;
/// let mut dims = [0, 3, 0];
/// dims_create(12, &mut dims)?;
/// assert_eq!(dims, [2, 3, 2]);
/// # Ok::<(), mpicore::topology::TopologyError>(())
/// ```
pub fn dims_create(nodes: u32, dims: &mut [u32]) -> Result<(), TopologyError> {
    if nodes == 0 {
        return Err(TopologyError::NoNodes);
    }
    let mut left = nodes;
    for (dimension, &length) in dims.iter().enumerate().filter(|(_, length)| **length > 0) {
        if left % length != 0 {
            return Err(TopologyError::KeptDimension { dimension, length, left, nodes });
        }
        left /= length;
    }
    let free = dims.iter().filter(|length| **length == 0).count();
    if free == 0 && left > 1 {
        return Err(TopologyError::NoFreeDimension { room: nodes / left, nodes });
    }
    let factors = Factors::of(left).most_even(left, free);
    let entries = dims.iter_mut().filter(|length| **length == 0);
    entries.zip(factors).for_each(|(entry, factor)| *entry = factor);
    Ok(())
}

/// A search for the most even factors of a number.
struct Factors {
    /// The divisors of the number in ascending order; the root of a square occurs twice.
    divisors: Vec<u32>,
    /// Results of [`smallest_largest`](Self::smallest_largest).
    known: HashMap<(u32, usize), u32>,
}

impl Factors {
    fn of(number: u32) -> Self {
        let small = (1..).take_while(|&divisor| divisor <= number / divisor);
        let small: Vec<_> = small.filter(|divisor| number % divisor == 0).collect();
        let large = small.iter().rev().map(|divisor| number / divisor);
        Self { divisors: small.iter().copied().chain(large).collect(), known: HashMap::new() }
    }

    /// Returns the most even `count` factors of `number`, the largest first.
    fn most_even(mut self, mut number: u32, count: usize) -> Vec<u32> {
        let next = |left: usize| {
            let factor = self.smallest_largest(number, left);
            number /= factor;
            factor
        };
        (1..=count).rev().map(next).collect()
    }

    /// Returns the smallest number that can be the largest of `count` factors of `number`, which divides the number of
    /// this search.
    fn smallest_largest(&mut self, number: u32, count: usize) -> u32 {
        if count <= 1 || number == 1 {
            return number;
        }
        if let Some(&known) = self.known.get(&(number, count)) {
            return known;
        }
        let power = u32::try_from(count).unwrap_or(u32::MAX);
        let is_below_root = |divisor: &u32| divisor.saturating_pow(power) < number;
        let mut at = self.divisors.partition_point(is_below_root);
        // Ends at `number` at the latest, since the other factors are then 1.
        while !self.can_be_largest(self.divisors[at], number, count) {
            at += 1;
        }
        let found = self.divisors[at];
        self.known.insert((number, count), found);
        found
    }

    /// Returns whether a divisor of this search's number can be the largest of `count` factors of `number`.
    fn can_be_largest(&mut self, divisor: u32, number: u32, count: usize) -> bool {
        number % divisor == 0 && self.smallest_largest(number / divisor, count - 1) <= divisor
    }
}
