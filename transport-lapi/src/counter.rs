//! The counters of one task: LAPI_Setcntr, LAPI_Getcntr, and the arithmetic of LAPI_Waitcntr.
//!
//! A counter is identified by its index in the task's table. Tasks that make their counters in the same order know each
//! other's indices.

use crate::error::LapiError;

/// Identifies a counter of one task: its index in the task's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CounterId(pub u32);

impl CounterId {
    /// How the counter is written in a packet: its index plus one.
    pub(crate) fn on_wire(counter: Option<Self>) -> u32 {
        counter.map_or(0, |counter| counter.0.saturating_add(1))
    }
}

/// The table of counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    values: Vec<i64>,
}

impl Counters {
    /// Adds a counter with value 0.
    pub fn add(&mut self) -> CounterId {
        self.values.push(0);
        CounterId(self.values.len() as u32 - 1)
    }

    /// The value, to read or to set.
    pub fn value(&mut self, id: CounterId) -> Result<&mut i64, LapiError> {
        let count = self.values.len();
        let unknown = LapiError::CntrNull { index: id.0, count };
        self.values.get_mut(id.0 as usize).ok_or(unknown)
    }

    /// Adds one to the counter with this number in a packet (its index plus one; 0 stands for none). Returns whether it
    /// exists.
    pub fn count_on_wire(&mut self, on_wire: u32) -> bool {
        let Some(index) = on_wire.checked_sub(1) else {
            return true;
        };
        match self.values.get_mut(index as usize) {
            Some(value) => *value = value.saturating_add(1),
            None => return false,
        }
        true
    }

    /// If the counter has reached `value`, subtracts it and returns the remainder.
    pub fn take(&mut self, id: CounterId, value: i64) -> Result<Option<i64>, LapiError> {
        let current = self.value(id)?;
        if *current < value {
            return Ok(None);
        }
        *current -= value;
        Ok(Some(*current))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_subtracts_and_keeps_the_surplus() {
        let mut counters = Counters::default();
        let id = counters.add();
        *counters.value(id).unwrap() = 5;
        assert_eq!(counters.take(id, 3).unwrap(), Some(2));
        assert_eq!(counters.take(id, 3).unwrap(), None);
        assert_eq!(*counters.value(id).unwrap(), 2);
    }

    #[test]
    fn unknown_counters_are_named() {
        let mut counters = Counters::default();
        let error = counters.take(CounterId(3), 1).unwrap_err();
        assert!(matches!(error, LapiError::CntrNull { index: 3, count: 0 }));
        assert!(!counters.count_on_wire(1));
        assert!(counters.count_on_wire(0));
    }
}
