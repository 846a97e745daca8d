//! Attributes that few entries have. A page gets a column for an attribute once one of its entries needs it.

use super::soft::Soft;

/// One attribute of all entries of a page; takes memory only once an entry has it.
#[derive(Debug, Default)]
pub(crate) struct Column<T>(Option<Box<[T]>>);

impl<T: Copy + Default + PartialEq> Column<T> {
    #[inline]
    pub(crate) fn get(&self, at: usize) -> T {
        match &self.0 {
            Some(cells) => cells[at],
            None => T::default(),
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, at: usize, value: T, len: usize) {
        if self.0.is_none() && value == T::default() {
            return;
        }
        self.0
            .get_or_insert_with(|| vec![T::default(); len].into_boxed_slice())[at] = value;
    }

    /// Whether an entry may have the attribute.
    pub(crate) fn is_present(&self) -> bool {
        self.0.is_some()
    }

    /// The attribute of every place of the page, in order; nothing if no entry has it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.0.iter().flat_map(|cells| cells.iter().copied())
    }

    fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |cells| size_of_val(&**cells))
    }
}

/// The attributes of one page's entries.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// The store's number for the entry's latest change; 0 while nobody has asked for a version.
    pub(crate) version: Column<u64>,
    /// Weight less one, so that the usual weight of 1 takes no memory.
    pub(crate) weight_less_one: Column<u32>,
    /// From when on the entry is no longer fresh.
    pub(crate) soft: Column<Soft>,
    /// The caller's label.
    pub(crate) label: Column<u64>,
    /// The deadline that sliding may not pass; 0 for none.
    pub(crate) limit: Column<u64>,
    /// Two more numbers of the caller's.
    pub(crate) notes: Column<[u64; 2]>,
    /// How long the caller keeps the entry beyond the end that its readers see.
    pub(crate) grace: Column<u64>,
}

impl Columns {
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.version.bytes()
            + self.weight_less_one.bytes()
            + self.soft.bytes()
            + self.label.bytes()
            + self.limit.bytes()
            + self.notes.bytes()
            + self.grace.bytes()
    }
}
