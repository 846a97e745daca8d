//! This reads the pages of a redb file without redb, and finds the whole ones in a file that redb
//! refuses.
//!
//! Such a file is a tree of pages. Each pointer to a page has the page's checksum. A page
//! that has this checksum is what the pointer's transaction wrote: no older state of the page, and
//! nothing else.
//!
//! 1. The header has two slots, one for each of the last two transactions. A slot points at the
//!    root of the tables' tree.
//! 2. The tables' tree has a row for each table, which points at the root of the table's tree.
//! 3. The table's tree has the rows. A leaf has rows, a branch has pointers.
//!
//! A page may not be as its pointer says.
//!
//! - If the page with the pointer is whole, then this page is damaged. If one byte is, the checksum
//!   tells which and what it was. If everything in it is whole, it is another page, or an older
//!   state of this one, and is not read. If not, what is whole in it counts.
//! - If the page with the pointer is damaged too, the pointer may be what is wrong. Then the page
//!   that has the checksum is looked for in the whole file. If none has it, the checksum may be
//!   what is wrong. Then the page is taken if everything in it is whole.
//!
//! The format is redb's file format 3: see "redb: design"
//! (<https://github.com/cberner/redb/blob/master/docs/design.md>).

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use twox_hash::XxHash3_128;

const HEADER: u64 = 320;
const SLOTS: [usize; 2] = [64, 192];
const LEAF: u8 = 1;
const BRANCH: u8 = 2;

/// Levels of a tree: more than any file has.
const LEVELS_MAX: u32 = 32;

/// Bytes whose checksum is computed to put one byte of a page right: enough for all bytes of a page
/// of 4,096.
const BYTES_PER_PAGE: u64 = 1 << 32;

/// The same for all pages of a file: some seconds.
const BYTES_PER_FILE: u64 = 1 << 35;

/// The position of a page, and its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pointer {
    page: u64,
    checksum: u128,
}

impl Pointer {
    /// Reads a pointer from 24 bytes.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (page, rest) = bytes.split_first_chunk()?;
        let checksum = rest.first_chunk()?;
        Some(Self {
            page: u64::from_le_bytes(*page),
            checksum: u128::from_le_bytes(*checksum),
        })
    }
}

/// Gets a row, and whether its page is what was written.
pub(super) type Give<'a> = dyn FnMut(&[u8], &[u8], bool) + 'a;

/// The rows of a tree: their widths, and whether one is certainly what was written.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) key: Option<usize>,
    pub(super) value: Option<usize>,
    pub(super) is_whole: fn(&[u8], &[u8]) -> bool,
}

/// A table as the tables' tree has it.
#[derive(Clone, Copy)]
pub(super) struct Table {
    pub(super) rows: u64,
    pub(super) root: Option<Pointer>,
}

impl Table {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (rows, rest) = bytes.get(1..)?.split_first_chunk()?;
        let (has_root, rest) = rest.split_first()?;
        let root = Pointer::read(rest)?;
        Some(Self {
            rows: u64::from_le_bytes(*rows),
            root: (*has_root != 0).then_some(root),
        })
    }
}

enum Node {
    Leaf(Vec<(Vec<u8>, Vec<u8>)>),
    Branch(Vec<Pointer>),
}

/// An open file.
pub(super) struct Pages {
    file: File,
    len: u64,
    page_size: u64,
    region_header: u64,
    region: u64,
    /// The roots of the tables' trees, the newer first, and whether they are certain.
    pub(super) roots: Vec<(Pointer, bool)>,
    /// Pages that may still be read: the pointers of a file that somebody made up may have no end.
    budget: u64,
    /// Bytes whose checksum may still be computed to put pages right.
    mending: u64,
    /// Pages that were put right, or could not be, by their checksum.
    mended: HashMap<u128, Option<Vec<u8>>>,
    /// Pages that were not as their pointer says, so far.
    pub(super) damaged: u64,
    /// The positions of pages by checksum, for each pair of row widths.
    known: HashMap<(Option<usize>, Option<usize>), HashMap<u128, u64>>,
}

impl Pages {
    /// `None` if it has no slot that is whole: it is no file of redb's, or too much is missing.
    pub(super) fn open(mut file: File) -> io::Result<Option<Self>> {
        let len = file.seek(SeekFrom::End(0))?;
        let mut header = [0; HEADER as usize];
        if len < HEADER {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut header)?;
        let number = |at: usize| {
            header[at..]
                .first_chunk()
                .map_or(0, |n| u64::from(u32::from_le_bytes(*n)))
        };
        let (page_size, region_header, region_pages) = (number(12), number(16), number(20));
        // One page size is in use; with another, pages are looked for by their checksums.
        let page_size = if page_size == 4096 { page_size } else { 4096 };
        let mut slots: Vec<(bool, u64, Pointer)> = Vec::new();
        for at in SLOTS {
            let slot = &header[at..at + 128];
            let (fields, checksum) = slot.split_at(112);
            let is_whole = XxHash3_128::oneshot(fields).to_le_bytes() == checksum;
            let transaction = fields[104..]
                .first_chunk()
                .map_or(0, |n| u64::from_le_bytes(*n));
            slots.extend(Pointer::read(&fields[8..]).map(|root| (is_whole, transaction, root)));
        }
        if slots.iter().all(|(is_whole, ..)| !is_whole) {
            return Ok(None);
        }
        slots.sort_by_key(|(is_whole, transaction, _)| (*is_whole, *transaction));
        Ok(Some(Self {
            file,
            len,
            page_size,
            region_header: region_header * page_size,
            region: (region_header + region_pages) * page_size,
            roots: slots
                .into_iter()
                .rev()
                .map(|(is_whole, _, root)| (root, is_whole))
                .collect(),
            budget: 0,
            mending: BYTES_PER_FILE,
            mended: HashMap::new(),
            damaged: 0,
            known: HashMap::new(),
        }))
    }

    /// Gives the rows of a tree, and whether the page of each is what was written. If not, the row
    /// may be anything. `is_certain` says whether the pointer is.
    pub(super) fn rows(
        &mut self,
        root: Pointer,
        is_certain: bool,
        rows: Rows,
        give: &mut Give<'_>,
    ) -> io::Result<()> {
        self.budget = self.len / self.page_size;
        self.walk(root, is_certain, rows, LEVELS_MAX, give)
    }

    fn walk(
        &mut self,
        at: Pointer,
        is_certain: bool,
        rows: Rows,
        levels: u32,
        give: &mut Give<'_>,
    ) -> io::Result<()> {
        let (Some(budget), Some(levels)) = (self.budget.checked_sub(1), levels.checked_sub(1))
        else {
            self.damaged += 1;
            return Ok(());
        };
        self.budget = budget;
        let mut page = self.page(at.page)?;
        let mut is_whole = checksum(&page, rows) == Some(at.checksum);
        if !is_whole {
            self.damaged += 1;
            let right = match is_certain {
                true => self.mend(&page, at.checksum, rows),
                false => self.find(at.checksum, rows)?,
            };
            is_whole = right.is_some() || !is_certain && self.is_consistent(&page, rows)?;
            page = right.unwrap_or(page);
        }
        if !is_whole && (!is_certain || self.is_consistent(&page, rows)?) {
            return Ok(());
        }
        match parse(&page, rows) {
            Some(Node::Leaf(found)) => {
                for (key, value) in &found {
                    give(key, value, is_whole);
                }
            }
            Some(Node::Branch(children)) => {
                for child in children {
                    self.walk(child, is_whole, rows, levels, give)?;
                }
            }
            None => {}
        }
        Ok(())
    }

    /// The bytes of a page; none if it does not lie in the file.
    fn page(&mut self, number: u64) -> io::Result<Vec<u8>> {
        let (order, region) = (number >> 59, (number >> 20) & 0xF_FFFF);
        let index = number & (0xF_FFFF >> order);
        let size = self.page_size << order;
        let before = self.page_size + region * self.region + self.region_header;
        self.read(before.saturating_add(index.saturating_mul(size)), size)
    }

    /// Reads so many bytes, or as many as there are.
    fn read(&mut self, at: u64, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if at < self.len {
            self.file.seek(SeekFrom::Start(at))?;
            (&self.file).take(most).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// The page of a checksum, wherever it is.
    fn find(&mut self, wanted: u128, rows: Rows) -> io::Result<Option<Vec<u8>>> {
        let at = self.known(rows)?.get(&wanted).copied();
        at.map(|at| self.extent(at, rows)).transpose()
    }

    /// The positions of this file's pages by checksum.
    fn known(&mut self, rows: Rows) -> io::Result<&HashMap<u128, u64>> {
        let widths = (rows.key, rows.value);
        if !self.known.contains_key(&widths) {
            let mut known = HashMap::new();
            for at in (0..self.len).step_by(self.page_size as usize) {
                let page = self.extent(at, rows)?;
                known.extend(checksum(&page, rows).map(|checksum| (checksum, at)));
            }
            self.known.insert(widths, known);
        }
        Ok(&self.known[&widths])
    }

    /// A page of unknown length.
    fn extent(&mut self, at: u64, rows: Rows) -> io::Result<Vec<u8>> {
        let page = self.read(at, self.page_size)?;
        match end(&page, rows) {
            Some(end) if end > page.len() => self.read(at, end as u64),
            _ => Ok(page),
        }
    }

    /// True if everything in a page is whole.
    fn is_consistent(&mut self, page: &[u8], rows: Rows) -> io::Result<bool> {
        match parse(page, rows) {
            Some(Node::Leaf(found)) => {
                let mut found = found.iter();
                Ok(found.all(|(key, value)| (rows.is_whole)(key, value)))
            }
            Some(Node::Branch(children)) => {
                let known = self.known(rows)?;
                Ok(children
                    .iter()
                    .all(|child| known.contains_key(&child.checksum)))
            }
            None => Ok(false),
        }
    }

    /// Puts a page right of which one byte is wrong: the page has its checksum then.
    fn mend(&mut self, page: &[u8], wanted: u128, rows: Rows) -> Option<Vec<u8>> {
        if let Some(known) = self.mended.get(&wanted) {
            return known.clone();
        }
        let budget = BYTES_PER_PAGE.min(self.mending);
        let (mended, left) = with_one_byte_changed(page, wanted, rows, budget);
        self.mending -= budget - left;
        self.mended.insert(wanted, mended.clone());
        mended
    }
}

/// The page that has a checksum and differs in one byte, and how much is left of a budget of bytes.
fn with_one_byte_changed(
    page: &[u8],
    wanted: u128,
    rows: Rows,
    mut budget: u64,
) -> (Option<Vec<u8>>, u64) {
    let mut page = page.to_vec();
    // Most often one bit is wrong.
    let bits = (0..8).map(|bit| 1u8 << bit);
    let others = (1..=u8::MAX).filter(|change| change.count_ones() > 1);
    for change in bits.chain(others) {
        for at in 0..page.len() {
            page[at] ^= change;
            let end = end(&page, rows).filter(|end| *end <= page.len());
            let cost = end.unwrap_or(1) as u64;
            if cost > budget {
                return (None, budget);
            }
            budget -= cost;
            if end.is_some_and(|end| XxHash3_128::oneshot(&page[..end]) == wanted) {
                return (Some(page), budget);
            }
            page[at] ^= change;
        }
    }
    (None, budget)
}

/// Rows of a leaf, or pointers of a branch less one, as the page says.
fn entries(page: &[u8]) -> Option<usize> {
    let count = page.get(2..)?.first_chunk()?;
    Some(usize::from(u16::from_le_bytes(*count)))
}

fn offset(page: &[u8], at: usize) -> Option<usize> {
    let bytes = page.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes) as usize)
}

/// The bounds of the keys and values of a leaf, or of the keys of a branch.
struct Ends<'a> {
    page: &'a [u8],
    table: usize,
    start: usize,
    width: Option<usize>,
}

impl Ends<'_> {
    fn end(&self, n: usize) -> Option<usize> {
        match self.width {
            Some(width) => Some(self.start + width * (n + 1)),
            None => offset(self.page, self.table + 4 * n),
        }
    }

    fn bytes(&self, n: usize) -> Option<&[u8]> {
        let start = match n.checked_sub(1) {
            Some(before) => self.end(before)?,
            None => self.start,
        };
        self.page.get(start..self.end(n)?)
    }
}

fn leaf(page: &[u8], rows: Rows, n: usize) -> Option<(Ends<'_>, Ends<'_>)> {
    let of_keys = if rows.key.is_none() { 4 * n } else { 0 };
    let of_values = if rows.value.is_none() { 4 * n } else { 0 };
    let keys = Ends {
        page,
        table: 4,
        start: 4 + of_keys + of_values,
        width: rows.key,
    };
    let values = Ends {
        page,
        table: 4 + of_keys,
        start: keys.end(n.checked_sub(1)?)?,
        width: rows.value,
    };
    Some((keys, values))
}

/// The end of the bytes of a page that its checksum covers.
fn end(page: &[u8], rows: Rows) -> Option<usize> {
    let n = entries(page)?;
    let last = n.checked_sub(1)?;
    match *page.first()? {
        LEAF => leaf(page, rows, n)?.1.end(last),
        BRANCH => {
            let table = 8 + 24 * (n + 1);
            let start = if rows.key.is_none() {
                table + 4 * n
            } else {
                table
            };
            let width = rows.key;
            Ends {
                page,
                table,
                start,
                width,
            }
            .end(last)
        }
        _ => None,
    }
}

fn checksum(page: &[u8], rows: Rows) -> Option<u128> {
    let end = end(page, rows)?;
    page.get(..end).map(XxHash3_128::oneshot)
}

/// Reads a page, as far as it can be read.
fn parse(page: &[u8], rows: Rows) -> Option<Node> {
    let n = entries(page)?;
    match *page.first()? {
        LEAF => {
            let (keys, values) = leaf(page, rows, n)?;
            let row = |n| Some((keys.bytes(n)?.to_vec(), values.bytes(n)?.to_vec()));
            Some(Node::Leaf((0..n).filter_map(row).collect()))
        }
        BRANCH => {
            let pages = 8 + 16 * (n + 1);
            let pointer = |n: usize| {
                let checksum = page.get(8 + 16 * n..)?.first_chunk()?;
                let number = page.get(pages + 8 * n..)?.first_chunk()?;
                Some(Pointer {
                    page: u64::from_le_bytes(*number),
                    checksum: u128::from_le_bytes(*checksum),
                })
            };
            Some(Node::Branch((0..=n).filter_map(pointer).collect()))
        }
        _ => None,
    }
}
