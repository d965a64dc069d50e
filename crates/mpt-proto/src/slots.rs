//! Things by their numbers, which are small and have gaps.

use std::ops::{Index, IndexMut};

/// A table of what has a number.
#[derive(Debug)]
pub(crate) struct Slots<T>(Vec<Option<T>>);

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Slots<T> {
    /// Puts something under a number, in the place of what was there.
    pub(crate) fn put(&mut self, number: usize, thing: T) {
        if self.0.len() <= number {
            self.0.resize_with(number + 1, || None);
        }
        self.0[number] = Some(thing);
    }

    /// Takes out what has the number.
    pub(crate) fn take(&mut self, number: usize) -> Option<T> {
        let thing = self.0.get_mut(number)?.take();
        while self.0.last().is_some_and(Option::is_none) {
            self.0.pop();
        }
        thing
    }

    /// Bytes of memory apart from its own size, and from what its things refer to.
    pub(crate) fn memory(&self) -> usize {
        self.0.capacity() * size_of::<Option<T>>()
    }

    /// Gives back memory that nothing is in.
    pub(crate) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    #[inline(always)]
    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        self.0.get(number)?.as_ref()
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.0.get_mut(number)?.as_mut()
    }

    /// What there is, in the order of the numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> + Clone {
        self.0.iter().enumerate().filter_map(|(number, slot)| Some((number, slot.as_ref()?)))
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.0.iter_mut().enumerate().filter_map(|(number, slot)| Some((number, slot.as_mut()?)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Panics if nothing has the number.
impl<T> Index<usize> for Slots<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, number: usize) -> &T {
        self.get(number).expect("a number that is in use")
    }
}

impl<T> IndexMut<usize> for Slots<T> {
    #[inline(always)]
    fn index_mut(&mut self, number: usize) -> &mut T {
        self.get_mut(number).expect("a number that is in use")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_when_others_go() {
        let mut slots = Slots::default();
        [(0, 'a'), (3, 'd'), (1, 'b')]
            .into_iter()
            .for_each(|(number, thing)| slots.put(number, thing));
        assert_eq!(slots.take(1), Some('b'));
        assert_eq!(slots.take(7), None);
        assert_eq!(slots.iter().collect::<Vec<_>>(), [(0, &'a'), (3, &'d')]);
        assert_eq!((slots[3], slots.get(1), slots.get(4)), ('d', None, None));
        assert_eq!((slots.take(3), slots.take(0), slots.is_empty()), (Some('d'), Some('a'), true));
    }
}
