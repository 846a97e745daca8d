//! Attributes that few entries have. A page gets a column for an attribute once one of its entries
//! needs it.

use super::attributes::Attributes;
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

    /// Returns whether an entry may have the attribute.
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
    weight_less_one: Column<u32>,
    /// From when on the entry is no longer fresh: of [`Soft`].
    soft: Column<u64>,
    /// The caller's label.
    pub(crate) label: Column<u64>,
    /// The deadline that sliding may not pass; 0 for none.
    limit: Column<u64>,
    /// Two more numbers of the caller's.
    notes: [Column<u64>; 2],
    /// The time for which the caller keeps the entry beyond the end that its readers see.
    pub(crate) grace: Column<u64>,
}

// Here, not where they are called: so they are compiled once, and not with each type of key and
// value.
impl Columns {
    pub(crate) fn read(&self, at: usize, deadline: Option<u64>) -> Attributes {
        Attributes {
            deadline,
            weight: self.weight(at),
            soft: self.soft(at),
            label: self.label.get(at),
            limit: Some(self.limit.get(at)).filter(|limit| *limit != 0),
            notes: self.notes(at),
            grace: self.grace.get(at),
        }
    }

    /// Writes all but the deadline and the version. `len` is the number of places.
    pub(crate) fn write(&mut self, at: usize, attributes: &Attributes, len: usize) {
        let Attributes {
            weight,
            soft,
            label,
            limit,
            notes,
            grace,
            deadline: _,
        } = *attributes;
        self.weight_less_one.set(at, weight.wrapping_sub(1), len);
        self.set_soft(at, soft, len);
        self.label.set(at, label, len);
        self.limit.set(at, limit.unwrap_or(0), len);
        self.set_notes(at, notes, len);
        self.grace.set(at, grace, len);
    }

    #[inline(never)]
    pub(crate) fn set_version(&mut self, at: usize, version: u64, len: usize) {
        self.version.set(at, version, len);
    }

    pub(crate) fn weight(&self, at: usize) -> u32 {
        self.weight_less_one.get(at).wrapping_add(1)
    }

    pub(crate) fn soft(&self, at: usize) -> Soft {
        Soft::from_raw(self.soft.get(at))
    }

    #[inline(never)]
    pub(crate) fn set_soft(&mut self, at: usize, soft: Soft, len: usize) {
        self.soft.set(at, soft.raw(), len);
    }

    pub(crate) fn notes(&self, at: usize) -> [u64; 2] {
        [self.notes[0].get(at), self.notes[1].get(at)]
    }

    #[inline(never)]
    pub(crate) fn set_notes(&mut self, at: usize, notes: [u64; 2], len: usize) {
        self.notes[0].set(at, notes[0], len);
        self.notes[1].set(at, notes[1], len);
    }

    #[inline(never)]
    pub(crate) fn set_limit(&mut self, at: usize, limit: Option<u64>, len: usize) {
        self.limit.set(at, limit.unwrap_or(0), len);
    }

    #[inline(never)]
    pub(crate) fn set_grace(&mut self, at: usize, grace: u64, len: usize) {
        self.grace.set(at, grace, len);
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.version.bytes()
            + self.weight_less_one.bytes()
            + self.soft.bytes()
            + self.label.bytes()
            + self.limit.bytes()
            + self.notes[0].bytes()
            + self.notes[1].bytes()
            + self.grace.bytes()
    }
}
