//! Finds the numbers of nodes along each dimension that make a grid as even as possible.
//!
//! Among all ways to write the number of nodes as a product of the given number of factors, the best has the smallest
//! difference between the largest factor and the smallest one. Of several such, it is the one with the smallest largest
//! factor, then with the smallest second one, and so on. The search is exact. It tries divisors as smallest factors, from
//! the root downwards, as long as they can improve the result, and for each of them divisors as largest factors, from the
//! root upwards. It remembers the answer for each quotient.

use std::collections::HashMap;

use super::TopologyError;

/// Fills in the entries of `dims` that are 0, so that the product of all entries is `nodes`: MPI_Dims_create (MPI-4.1
/// section 8.5.2). Other entries stay. The new entries do not increase and are as close to each other as possible: the
/// difference between the first and the last one is as small as it can be, then the first one, then the second, and so
/// on.
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
    /// The smallest and the largest factor that are allowed.
    least: u32,
    most: u32,
    /// Results of [`smallest_largest`](Self::smallest_largest) for these.
    known: HashMap<(u32, usize), Option<u32>>,
}

impl Factors {
    fn of(number: u32) -> Self {
        let small = (1..).take_while(|&divisor| divisor <= number / divisor);
        let small: Vec<_> = small.filter(|divisor| number % divisor == 0).collect();
        let large = small.iter().rev().map(|divisor| number / divisor);
        let divisors = small.iter().copied().chain(large).collect();
        Self { divisors, least: 1, most: u32::MAX, known: HashMap::new() }
    }

    /// Returns the most even `count` factors of `number`, the largest first.
    fn most_even(mut self, mut number: u32, count: usize) -> Vec<u32> {
        let largest = self.smallest_largest(number, count).expect("every number has factors");
        let mut best = (largest - 1, 1);
        // No largest factor is below the root, and no smallest one above.
        let root = self.place_of_root(number, count);
        for at in (0..=root).rev() {
            let least = self.divisors[at];
            if self.divisors[root].saturating_sub(least) > best.0 {
                break;
            }
            self.allow(least, least.saturating_add(best.0));
            // Of equal differences, the one with the smaller factors counts.
            if let Some(largest) = self.smallest_largest(number, count) {
                best = best.min((largest - least, least));
            }
        }
        self.allow(best.1, best.0 + best.1);
        let next = |left: usize| {
            let factor = self.smallest_largest(number, left)?;
            number /= factor;
            Some(factor)
        };
        (1..=count).rev().map_while(next).collect()
    }

    /// Allows the factors from `least` to `most`.
    fn allow(&mut self, least: u32, most: u32) {
        (self.least, self.most) = (least, most);
        self.known.clear();
    }

    /// Returns the place of the first divisor that is not less than the root of `number` of this order.
    fn place_of_root(&self, number: u32, order: usize) -> usize {
        let power = u32::try_from(order).unwrap_or(u32::MAX);
        self.divisors.partition_point(|divisor| divisor.saturating_pow(power) < number)
    }

    /// Returns the smallest number that can be the largest of `count` factors of `number`, which divides the number of
    /// this search; `None` if it does not have so many factors that are allowed.
    fn smallest_largest(&mut self, number: u32, count: usize) -> Option<u32> {
        let power = |factor: u32| factor.saturating_pow(u32::try_from(count).unwrap_or(u32::MAX));
        if power(self.least) > number || power(self.most) < number {
            return None;
        }
        if count <= 1 || number == 1 {
            return Some(number);
        }
        if let Some(&known) = self.known.get(&(number, count)) {
            return known;
        }
        let mut found = None;
        for at in self.place_of_root(number, count)..self.divisors.len() {
            let divisor = self.divisors[at];
            if divisor > self.most.min(number) || self.can_be_largest(divisor, number, count) {
                found = (divisor <= self.most.min(number)).then_some(divisor);
                break;
            }
        }
        self.known.insert((number, count), found);
        found
    }

    /// Returns whether a divisor of this search's number can be the largest of `count` factors of `number`.
    fn can_be_largest(&mut self, divisor: u32, number: u32, count: usize) -> bool {
        let others = |search: &mut Self| search.smallest_largest(number / divisor, count - 1);
        number % divisor == 0 && others(self).is_some_and(|largest| largest <= divisor)
    }
}
