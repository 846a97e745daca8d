//! The elements of SORT, their weights, and their order.

use std::cmp::Ordering;
use std::ops::Range;

use super::options::SortOptions;

/// The weight by which an element is ordered.
#[derive(Debug, Clone)]
pub(super) enum Weight {
    Itself,
    Number(f64),
    /// A text that is kept with the elements; one that does not exist comes first.
    Text(Option<Range<usize>>),
}

/// All elements, in one piece of memory.
#[derive(Debug, Default)]
pub(super) struct SortItems {
    bytes: Vec<u8>,
    elements: Vec<Range<usize>>,
    pub(super) weights: Vec<Weight>,
    /// True if they are read from the last to the first.
    pub(super) reversed: bool,
    /// The numbers of the elements, in their order; empty if that is their own.
    order: Vec<u32>,
}

impl SortItems {
    pub(super) fn push(&mut self, element: &[u8]) {
        let kept = self.keep(element);
        self.elements.push(kept);
    }

    /// Keeps bytes with the elements.
    pub(super) fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    pub(super) fn len(&self) -> usize {
        self.elements.len()
    }

    pub(super) fn element(&self, i: usize) -> &[u8] {
        &self.bytes[self.elements[i].clone()]
    }

    /// The element at a place of the order.
    pub(super) fn ordered(&self, i: usize) -> &[u8] {
        match self.order.get(i) {
            Some(number) => self.element(*number as usize),
            None if self.reversed => self.element(self.len() - 1 - i),
            None => self.element(i),
        }
    }

    /// Orders the elements if they are to be sorted. Returns the places that LIMIT keeps.
    pub(super) fn arrange(&mut self, options: &SortOptions<'_>) -> Range<usize> {
        let range = limited(self.len(), options);
        if options.sorts {
            let mut order: Vec<u32> = (0..self.len() as u32).collect();
            let compare = |a: &u32, b: &u32| {
                let ordering = self.compare(*a as usize, *b as usize);
                if options.descending {
                    ordering.reverse()
                } else {
                    ordering
                }
            };
            // Those behind the limit need no order among themselves.
            if range.end < order.len() && range.end > 0 {
                order.select_nth_unstable_by(range.end - 1, compare);
            }
            order[..range.end].sort_unstable_by(compare);
            self.order = order;
        }
        range
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let by_element = || self.element(a).cmp(self.element(b));
        match (&self.weights[a], &self.weights[b]) {
            (Weight::Number(x), Weight::Number(y)) => x
                .partial_cmp(y)
                .unwrap_or(Ordering::Equal)
                .then_with(by_element),
            (Weight::Text(x), Weight::Text(y)) => {
                let text = |range: &Option<Range<usize>>| range.clone().map(|at| &self.bytes[at]);
                text(x).cmp(&text(y)).then(a.cmp(&b))
            }
            _ => by_element(),
        }
    }
}

fn limited(len: usize, options: &SortOptions<'_>) -> Range<usize> {
    let start = usize::try_from(options.offset).unwrap_or(0).min(len);
    let end = match usize::try_from(options.count) {
        Ok(count) => start.saturating_add(count).min(len),
        Err(_) => len,
    };
    start..end
}
