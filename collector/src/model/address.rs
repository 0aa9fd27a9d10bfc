//! The interval map: which object's range holds an address.

use std::collections::BTreeMap;

/// A range and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent<T> {
    /// The first address.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// What it stands for.
    pub value: T,
}

/// Ranges that do not overlap.
#[derive(Debug)]
pub struct AddressMap<T> {
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for AddressMap<T> {
    fn default() -> Self {
        Self {
            ranges: BTreeMap::new(),
        }
    }
}

impl<T: Copy> AddressMap<T> {
    /// Puts a range in. What it overlaps is older: it goes, whole, and is given back. A range without bytes is not kept.
    pub fn insert(&mut self, start: u64, bytes: u64, value: T) -> Vec<Extent<T>> {
        let end = start.saturating_add(bytes);
        if end == start {
            return Vec::new();
        }
        let overlapped: Vec<Extent<T>> = self
            .ranges
            .range(..end)
            .rev()
            .take_while(|(_, (other_end, _))| *other_end > start)
            .map(|(&start, &(end, value))| Extent { start, end, value })
            .collect();
        for extent in &overlapped {
            self.ranges.remove(&extent.start);
        }
        self.ranges.insert(start, (end, value));
        overlapped
    }

    /// The range that holds an address.
    pub fn find(&self, address: u64) -> Option<Extent<T>> {
        let (&start, &(end, value)) = self.ranges.range(..=address).next_back()?;
        (address < end).then_some(Extent { start, end, value })
    }

    /// What the range that holds an address stands for, to be changed.
    pub fn find_mut(&mut self, address: u64) -> Option<&mut T> {
        let (_, (end, value)) = self.ranges.range_mut(..=address).next_back()?;
        (address < *end).then_some(value)
    }

    /// Takes out the range that starts exactly here.
    pub fn remove(&mut self, start: u64) -> Option<Extent<T>> {
        let (end, value) = self.ranges.remove(&start)?;
        Some(Extent { start, end, value })
    }

    /// All ranges by address.
    pub fn iter(&self) -> impl Iterator<Item = Extent<T>> + '_ {
        self.ranges
            .iter()
            .map(|(&start, &(end, value))| Extent { start, end, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_range_at_the_end_of_memory_is_held() {
        let mut map = AddressMap::default();
        map.insert(u64::MAX - 8, 100, 1);
        assert_eq!(map.find(u64::MAX - 1).map(|extent| extent.value), Some(1));
    }

    proptest! {
        /// Against a plain list, under inserts and removals in a small space so that ranges meet.
        #[test]
        fn it_answers_as_a_list_would(operations in prop::collection::vec((0u64..60, 0u64..12, any::<bool>()), 1..120)) {
            let mut map = AddressMap::default();
            let mut list: Vec<Extent<usize>> = Vec::new();
            for (number, (start, bytes, insert)) in operations.into_iter().enumerate() {
                if insert {
                    let mut gone = map.insert(start, bytes, number);
                    let mut expected = Vec::new();
                    if bytes > 0 {
                        list.retain(|extent| {
                            let overlaps = extent.start < start + bytes && start < extent.end;
                            if overlaps {
                                expected.push(*extent);
                            }
                            !overlaps
                        });
                        list.push(Extent { start, end: start + bytes, value: number });
                    }
                    gone.sort_by_key(|extent| extent.start);
                    expected.sort_by_key(|extent| extent.start);
                    prop_assert_eq!(gone, expected);
                } else {
                    let position = list.iter().position(|extent| extent.start == start);
                    prop_assert_eq!(map.remove(start), position.map(|position| list.swap_remove(position)));
                }
                list.sort_by_key(|extent| extent.start);
                prop_assert_eq!(map.iter().collect::<Vec<_>>(), list.clone());
                for address in 0..80 {
                    let expected = list.iter().copied().find(|extent| extent.start <= address && address < extent.end);
                    prop_assert_eq!(map.find(address), expected);
                }
            }
        }
    }
}
