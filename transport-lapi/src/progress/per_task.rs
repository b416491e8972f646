//! A value for each task of a job, which takes no memory for the tasks that this one has nothing to do with. Send queues,
//! messages that arrive and clients' state per task are kept so.
//!
//! In a job of at most [`SMALL`] tasks at its start, as every job of one host has, the values lie in an array by task. In a
//! larger job only those of the own host do; another task has a value once somebody asks for it in order to change it,
//! and a hash table tells where. Until then it reads as unused. If the numbers of the tasks of the own host do not follow
//! one another, they count as others. So do, in a job of any size, tasks that are started later than this one.
//!
//! So `PerTask<T>` takes, in bytes and without the spare room of growing arrays:
//!
//! - `size_of::<T>()` for each task of a small job that does not start later, or for each of the own host;
//! - `size_of::<(TaskId, T)>() + 9` for each other task that has a value.

use std::ops::{Index, IndexMut, Range};

use rustc_hash::FxHashMap;

use crate::adapter::{Adapter, Parts, TaskId};

/// Most tasks of a job in which each has a value from the beginning.
pub(crate) const SMALL: usize = 256;

/// The tasks of a job, and those of them that are near.
#[derive(Debug, Clone)]
pub struct Tasks {
    number: usize,
    near: Range<TaskId>,
    /// How many there are without those that are started later.
    at_first: usize,
}

impl Tasks {
    /// Returns those of the job that an adapter is connected to.
    pub fn of(adapter: &dyn Adapter) -> Self {
        let (number, Parts { near, hosts, .. }) = (adapter.endpoint().num_tasks, adapter.parts());
        let are_all_here = hosts.is_none() && near.start == 0 && !near.is_empty();
        let at_first = if are_all_here { near.len() } else { number };
        Self { number, near, at_first }
    }

    /// Returns those of a job of `number` tasks which are all near.
    pub fn all_near(number: usize) -> Self {
        Self { number, near: 0..number as TaskId, at_first: number }
    }

    /// Returns their number.
    pub fn number(&self) -> usize {
        self.number
    }
}

/// See the head of this file.
#[derive(Debug)]
pub struct PerTask<T> {
    /// The values of all tasks of a small job, without those that are started later.
    small: Vec<T>,
    number: usize,
    large: Option<Box<Large<T>>>,
}

/// The values in a job that is not small, or of tasks that are started later.
#[derive(Debug)]
struct Large<T> {
    number: usize,
    first: TaskId,
    /// Those of the near tasks, from the first one on.
    near: Vec<T>,
    /// Those of other tasks.
    far: Vec<(TaskId, T)>,
    /// Where they lie.
    places: FxHashMap<TaskId, u32>,
    unused: T,
    copy: fn(&T) -> T,
}

impl<T> PerTask<T> {
    /// Makes values that are unused: copies of `unused` by `copy`.
    pub fn new(tasks: &Tasks, unused: T, copy: fn(&T) -> T) -> Self {
        let Tasks { number, near, at_first } = tasks.clone();
        let copies = |number| std::iter::repeat_with(|| copy(&unused)).take(number).collect();
        let is_small = at_first <= SMALL;
        let small = if is_small { copies(at_first) } else { Vec::new() };
        if small.len() == number {
            return Self { small, number, large: None };
        }
        let (far, places) = (Vec::new(), FxHashMap::default());
        let (first, near) = (near.start, if is_small { Vec::new() } else { copies(near.len()) });
        let large = Box::new(Large { number, first, near, far, places, unused, copy });
        Self { small, number, large: Some(large) }
    }

    /// Returns the number of tasks of the job.
    #[inline(always)]
    pub fn num_tasks(&self) -> usize {
        self.number
    }

    /// Returns the value of `task`, if there is such a task.
    #[inline(always)]
    pub fn get(&self, task: usize) -> Option<&T> {
        self.small.get(task).or_else(|| Large::get(&self.large, task))
    }

    /// Returns the value of `task`, if there is such a task, to be changed.
    #[inline(always)]
    pub fn get_mut(&mut self, task: usize) -> Option<&mut T> {
        self.small.get_mut(task).or_else(|| Large::get_mut(&mut self.large, task))
    }

    /// Returns the number of tasks that have a value. It never shrinks.
    #[inline]
    pub fn in_use(&self) -> usize {
        let large = self.large.as_ref().map_or(0, |large| large.near.len() + large.far.len());
        self.small.len() + large
    }

    /// Returns the task at a place among those that have a value; none beyond the last one. It keeps its place.
    #[inline]
    pub fn task_at(&self, place: usize) -> Option<TaskId> {
        let Some(place) = place.checked_sub(self.small.len()) else {
            return Some(place as TaskId);
        };
        let large = self.large.as_ref()?;
        match place.checked_sub(large.near.len()) {
            None => Some(large.first + place as TaskId),
            Some(place) => large.far.get(place).map(|(task, _)| *task),
        }
    }

    /// Returns the tasks that have a value, and their values.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, &T)> {
        let large = self.large.as_ref();
        let near = large.into_iter().flat_map(|large| (large.first..).zip(&large.near));
        let far =
            large.into_iter().flat_map(|large| &large.far).map(|(task, value)| (*task, value));
        (0..).zip(&self.small).chain(near).chain(far)
    }
}

impl<T> Large<T> {
    #[cold]
    #[inline(never)]
    fn get(large: &Option<Box<Self>>, task: usize) -> Option<&T> {
        let large = large.as_ref().filter(|large| task < large.number)?;
        let task = task as TaskId;
        let near = large.near.get(task.wrapping_sub(large.first) as usize);
        let far = || large.places.get(&task).map(|place| &large.far[*place as usize].1);
        near.or_else(far).or(Some(&large.unused))
    }

    #[cold]
    #[inline(never)]
    fn get_mut(large: &mut Option<Box<Self>>, task: usize) -> Option<&mut T> {
        let large = large.as_mut().filter(|large| task < large.number)?;
        let Self { first, near, far, places, unused, copy, .. } = &mut **large;
        let task = task as TaskId;
        let place = task.wrapping_sub(*first) as usize;
        if place < near.len() {
            return Some(&mut near[place]);
        }
        let next = far.len() as u32;
        let place = *places.entry(task).or_insert(next);
        if place == next {
            far.push((task, copy(unused)));
        }
        Some(&mut far[place as usize].1)
    }
}

/// # Panics
/// If the job has no such task.
impl<T> Index<TaskId> for PerTask<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, task: TaskId) -> &T {
        self.get(task as usize).expect("tasks are numbered below the job's size")
    }
}

/// # Panics
/// If the job has no such task.
impl<T> IndexMut<TaskId> for PerTask<T> {
    #[inline(always)]
    fn index_mut(&mut self, task: TaskId) -> &mut T {
        self.get_mut(task as usize).expect("tasks are numbered below the job's size")
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(number: usize, near: Range<TaskId>) -> PerTask<u64> {
        PerTask::new(&Tasks { number, near, at_first: number }, 7, Clone::clone)
    }

    #[test]
    fn tasks_that_are_started_later_have_values_once_these_were_changed() {
        for (number, at_first, in_use) in [(9, 3, 3), (SMALL + 1, SMALL, SMALL), (600, 300, 300)] {
            let tasks = Tasks { number, near: 0..at_first as TaskId, at_first };
            let mut values = PerTask::new(&tasks, 7, u32::clone);
            let last = number as TaskId - 1;
            assert_eq!((values.num_tasks(), values.in_use(), values[last]), (number, in_use, 7));
            values[last] += 1;
            values[1] += 2;
            assert_eq!((values.in_use(), values[last], values[1]), (in_use + 1, 8, 9));
            let places = [0, in_use - 1, in_use, in_use + 1].map(|place| values.task_at(place));
            assert_eq!(places, [Some(0), Some(in_use as TaskId - 1), Some(last), None]);
            assert!(values.get(number).is_none() && values.get_mut(number).is_none());
            let changed: Vec<_> = values.iter().filter(|(_, value)| **value != 7).collect();
            assert_eq!(changed, [(1, &9), (last, &8)]);
        }
    }

    #[test]
    fn only_tasks_that_were_changed_have_values() {
        let mut values = numbers(100_000, 200..300);
        assert_eq!((values.num_tasks(), values.in_use(), values[99_999]), (100_000, 100, 7));
        for task in [4, 250, 99_999, 4] {
            values[task] += 1;
        }
        assert_eq!(
            (values.in_use(), values.task_at(100), values.task_at(101)),
            (102, Some(4), Some(99_999))
        );
        assert_eq!((values.task_at(0), values.task_at(102)), (Some(200), None));
        assert_eq!((values[4], values[250], values[5]), (9, 8, 7));
        assert!(values.get(100_000).is_none() && values.get_mut(100_000).is_none());
        let changed: Vec<_> = values.iter().filter(|(_, value)| **value != 7).collect();
        assert_eq!(changed, [(250, &8), (4, &9), (99_999, &8)]);
    }

    #[test]
    fn all_tasks_of_a_small_job_have_values() {
        let mut values = numbers(SMALL, 0..0);
        assert_eq!(
            (values.in_use(), values.task_at(255), values.task_at(256)),
            (256, Some(255), None)
        );
        values[255] = 1;
        assert!(values[255] == 1 && values.get(256).is_none() && values.get_mut(256).is_none());
        assert!(values.iter().map(|(task, _)| task).eq(0..256));
    }

    proptest! {
        #[test]
        fn each_task_has_its_own_value(
            number in 1_usize..600,
            near in (0_u32..600, 0_u32..600),
            changes in prop::collection::vec(0_u32..600, 0..40),
        ) {
            let end = near.1.min(number as u32);
            let mut values = numbers(number, near.0.min(end)..end);
            let mut expected = vec![7; number];
            for (nth, task) in (100..).zip(changes) {
                let exists = (task as usize) < number;
                prop_assert_eq!(values.get_mut(task as usize).map(|value| *value = nth).is_some(), exists);
                expected.get_mut(task as usize).into_iter().for_each(|value| *value = nth);
            }
            let found: Vec<u64> = (0..number as u32).map(|task| values[task]).collect();
            prop_assert_eq!(&found, &expected);
            let mut seen = vec![0; number];
            for (place, (task, value)) in values.iter().enumerate() {
                prop_assert_eq!((values.task_at(place), *value), (Some(task), expected[task as usize]));
                seen[task as usize] += 1;
            }
            prop_assert!(seen.iter().all(|times| *times <= 1));
            prop_assert_eq!(seen.iter().sum::<usize>(), values.in_use());
        }
    }
}
