//! Numbered slots for unfinished operations: gets, in-flight sends, queued messages.

/// A list of slots that reuses free ones.
pub(crate) struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// The number that the next item gets.
    pub fn next_number(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.places.len() as u32)
    }

    /// Stores an item and returns its number.
    pub fn insert(&mut self, item: T) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[number as usize] = Some(item);
        number
    }

    /// The item with this number, if there is one.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number as usize)?.as_mut()
    }

    /// Takes an item out of its slot.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let item = self.places.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(item)
    }

    /// The numbers of the items that satisfy a predicate.
    pub fn numbers(&self, is_one: impl Fn(&T) -> bool) -> Vec<u32> {
        let taken = self.places.iter().zip(0..);
        let of_kind = |(place, number): (&Option<T>, u32)| {
            place.as_ref().is_some_and(&is_one).then_some(number)
        };
        taken.filter_map(of_kind).collect()
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
