//! Numbered places for things under way: gets, departures, messages that wait.

/// A list of places, the free ones of which are used again.
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

    /// Takes a place and returns its number.
    pub fn insert(&mut self, item: T) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() as u32 - 1
        });
        self.places[number as usize] = Some(item);
        number
    }

    /// What is at a place.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number as usize)?.as_mut()
    }

    /// Empties a place without moving what is there.
    pub fn clear(&mut self, number: u32) {
        if let Some(place @ Some(_)) = self.places.get_mut(number as usize) {
            *place = None;
            self.free.push(number);
        }
    }

    /// Takes out what is at a place.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let item = self.places.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(item)
    }

    /// The numbers of the items of a kind.
    pub fn numbers(&self, is_one: impl Fn(&T) -> bool) -> Vec<u32> {
        let taken = self.places.iter().zip(0..);
        let of_kind = |(place, number): (&Option<T>, u32)| {
            place.as_ref().is_some_and(&is_one).then_some(number)
        };
        taken.filter_map(of_kind).collect()
    }

    /// How many places are taken.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
