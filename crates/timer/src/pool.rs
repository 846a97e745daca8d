//! Chunks of timer records and the pages that they come from.
//!
//! A slot of a wheel is a chain of chunks:
//!
//! ```text
//! slot → [ 7 records, room for 23 more ] → [ 30 records ] → [ 30 records ]
//! ```
//!
//! Why chunks, and not a linked list with one node a record? Filing a record writes behind the one
//! before it, to a cache line that is at hand. Moving and firing a slot's records loads the timers
//! of a chunk at once, since no load waits for another. A chunk is two cache lines (the pair that
//! current x86 cores fetch together) and holds 30 ids, so a record costs 4.27 bytes in a full
//! chunk.
//!
//! Chunks are in pages. New chunks come from the lowest page with room, empty pages go back to the
//! allocator, and [`crate::HierarchicalWheel::maintain`] moves chunks to lower pages.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::bitset::BitSet;

/// "No chunk".
pub(crate) const NIL: u32 = u32::MAX;

/// Chunks a page holds: 8 KiB.
const PAGE_CHUNKS: u32 = 64;

/// Chunks that the first page of a pool begins with. It doubles until it is as large as the others,
/// so that a queue of a few timers costs little.
const FIRST_CHUNKS: u32 = 4;

/// Up to `N` records, as many as two cache lines have room for, and the chain's next (older) chunk.
#[derive(Debug, Clone, Copy)]
#[repr(align(128))]
pub(crate) struct Chunk<R, const N: usize> {
    pub(crate) next: u32,
    len: u16,
    /// The chain that the chunk was made for, as its owner calls it.
    pub(crate) chain: u16,
    records: [R; N],
}

impl<R: Copy + Default, const N: usize> Chunk<R, N> {
    fn empty() -> Self {
        const { assert!(size_of::<Self>() == 128, "two cache lines") };
        Self {
            next: NIL,
            len: 0,
            chain: 0,
            records: [R::default(); N],
        }
    }

    pub(crate) fn records(&self) -> &[R] {
        &self.records[..self.len as usize]
    }
}

#[derive(Debug)]
struct Page<R, const N: usize> {
    chunks: Box<[Chunk<R, N>]>,
    /// Head of the free chunks, linked through `next`.
    free: u32,
    used: u32,
}

/// All chunks of one queue.
#[derive(Debug)]
pub(crate) struct Pool<R, const N: usize> {
    pages: Vec<Option<Page<R, N>>>,
    /// Bit `p`: page `p` has a free chunk.
    open: BitSet,
    /// Bit `p`: there is no page `p`, though `p < pages.len()`.
    holes: BitSet,
    live_pages: usize,
    /// Chunks of all pages, and those in use.
    chunks: usize,
    used: usize,
    /// Memory of freed pages, if frees are deferred.
    freed: Freed<R, N>,
    defers_frees: bool,
}

/// Chunks that a pool no longer needs.
pub(crate) type Freed<R, const N: usize> = Vec<Box<[Chunk<R, N>]>>;

impl<R: Copy + Default, const N: usize> Pool<R, N> {
    pub(crate) const fn new() -> Self {
        Self {
            pages: Vec::new(),
            open: BitSet::new(),
            holes: BitSet::new(),
            live_pages: 0,
            freed: Vec::new(),
            defers_frees: false,
            chunks: 0,
            used: 0,
        }
    }

    /// From now on freed memory waits for [`Pool::take_freed`].
    pub(crate) fn defer_frees(&mut self) {
        self.defers_frees = true;
    }

    pub(crate) fn is_deferring(&self) -> bool {
        self.defers_frees
    }

    #[inline]
    pub(crate) fn has_freed(&self) -> bool {
        !self.freed.is_empty()
    }

    #[inline]
    pub(crate) fn take_freed(&mut self) -> Option<Freed<R, N>> {
        (!self.freed.is_empty()).then(|| core::mem::take(&mut self.freed))
    }

    /// Puts a record at the head of the chain that starts at `head` and is called `chain`.
    #[inline]
    pub(crate) fn push(&mut self, head: &mut u32, chain: u16, record: R) {
        if *head != NIL {
            let chunk = self.chunk_mut(*head);
            if (chunk.len as usize) < N {
                chunk.records[chunk.len as usize] = record;
                chunk.len += 1;
                return;
            }
        }
        self.push_chunk(head, chain, record);
    }

    #[cold]
    fn push_chunk(&mut self, head: &mut u32, chain: u16, record: R) {
        let at = self.allocate();
        let next = *head;
        let chunk = self.chunk_mut(at);
        chunk.next = next;
        chunk.chain = chain;
        chunk.len = 1;
        chunk.records[0] = record;
        *head = at;
    }

    /// Takes at most `limit` (> 0) records from the head chunk of a chain that is not empty.
    #[inline]
    pub(crate) fn pop(&mut self, head: &mut u32, limit: u32) -> Taken<R, N> {
        let at = *head;
        let chunk = self.chunk_mut(at);
        let count = u32::from(chunk.len).min(limit);
        let start = usize::from(chunk.len) - count as usize;
        let mut taken = Taken {
            records: [R::default(); N],
            len: count as usize,
        };
        taken.records[..count as usize]
            .copy_from_slice(&chunk.records[start..start + count as usize]);
        chunk.len -= count as u16;
        if chunk.len == 0 {
            *head = chunk.next;
            self.release(at);
        }
        taken
    }

    #[inline]
    pub(crate) fn chunk(&self, at: u32) -> &Chunk<R, N> {
        let page = self.pages[(at / PAGE_CHUNKS) as usize]
            .as_ref()
            .expect("chunk of a freed page");
        &page.chunks[(at % PAGE_CHUNKS) as usize]
    }

    #[inline]
    fn chunk_mut(&mut self, at: u32) -> &mut Chunk<R, N> {
        let page = self.pages[(at / PAGE_CHUNKS) as usize]
            .as_mut()
            .expect("chunk of a freed page");
        &mut page.chunks[(at % PAGE_CHUNKS) as usize]
    }

    /// The number behind the last chunk's.
    pub(crate) fn end(&self) -> u32 {
        match self.pages.len() {
            // The first page may be smaller than the others.
            1 => self.chunks as u32,
            pages => pages as u32 * PAGE_CHUNKS,
        }
    }

    /// `count` chunks from chunk `from` on; behind the last one comes the first again. None comes
    /// twice. A free chunk has the records that it held last.
    pub(crate) fn chunks_near(
        &self,
        from: u32,
        count: u32,
    ) -> impl Iterator<Item = &Chunk<R, N>> + '_ {
        let end = self.end();
        (0..count.min(end)).filter_map(move |i| {
            let at = (u64::from(from) + u64::from(i)) % u64::from(end);
            let (page, chunk) = (at as u32 / PAGE_CHUNKS, at as u32 % PAGE_CHUNKS);
            let page = self.pages[page as usize].as_ref()?;
            Some(&page.chunks[chunk as usize])
        })
    }

    /// The records of a chain, in the order in which they are taken out.
    pub(crate) fn records_of(&self, head: u32) -> impl Iterator<Item = R> + '_ {
        let chunk = |at: u32| (at != NIL).then_some(at);
        let chunks = core::iter::successors(chunk(head), move |at| chunk(self.chunk(*at).next));
        chunks.flat_map(|at| self.chunk(at).records().iter().rev().copied())
    }

    /// Sets the link that leads to a chunk: `head` when `previous` is `NIL`.
    pub(crate) fn link(&mut self, head: &mut u32, previous: u32, to: u32) {
        if previous == NIL {
            *head = to;
        } else {
            self.chunk_mut(previous).next = to;
        }
    }

    /// Keeps the records of a chunk that `keep` wants; returns how many went.
    pub(crate) fn retain(&mut self, at: u32, mut keep: impl FnMut(R) -> bool) -> u32 {
        let chunk = self.chunk_mut(at);
        // First ask about every record: an answer loads the record's timer, and so the cache misses
        // overlap. Then close the gaps without a branch, since the processor could not predict the
        // answers.
        let mut wanted = [false; N];
        for (wanted, &record) in wanted.iter_mut().zip(chunk.records()) {
            *wanted = keep(record);
        }
        let mut kept = 0;
        for (i, &wanted) in wanted.iter().enumerate().take(chunk.len as usize) {
            chunk.records[kept] = chunk.records[i];
            kept += usize::from(wanted);
        }
        let gone = usize::from(chunk.len) - kept;
        chunk.len = kept as u16;
        gone as u32
    }

    /// Moves the records of `from` into `into`, if all of them fit. Returns whether they did.
    pub(crate) fn merge(&mut self, into: u32, from: u32) -> bool {
        let source = *self.chunk(from);
        let target = self.chunk_mut(into);
        let (have, add) = (target.len as usize, source.len as usize);
        if have + add > N {
            return false;
        }
        target.records[have..have + add].copy_from_slice(source.records());
        target.len += source.len;
        true
    }

    /// Copies a chunk into the lowest page with room if that is a lower page; frees the old place.
    pub(crate) fn lower(&mut self, at: u32) -> Option<u32> {
        let page = at / PAGE_CHUNKS;
        if self.open.first()? >= page {
            return None;
        }
        let copy = *self.chunk(at);
        let to = self.allocate();
        *self.chunk_mut(to) = copy;
        self.release(at);
        Some(to)
    }

    /// Returns whether less than half of the pages' chunks are in use.
    pub(crate) fn is_sparse(&self) -> bool {
        self.live_pages * PAGE_CHUNKS as usize > 2 * self.used + 2 * PAGE_CHUNKS as usize
    }

    pub(crate) fn release(&mut self, at: u32) {
        let index = at / PAGE_CHUNKS;
        let page = self.pages[index as usize]
            .as_mut()
            .expect("chunk of a freed page");
        page.chunks[(at % PAGE_CHUNKS) as usize].next = page.free;
        page.free = at;
        page.used -= 1;
        self.used -= 1;
        if page.used == 0 && self.live_pages > 1 {
            let page = self.pages[index as usize].take();
            if let Some(page) = page.filter(|_| self.defers_frees) {
                self.freed.push(page.chunks);
            }
            self.live_pages -= 1;
            self.chunks -= PAGE_CHUNKS as usize;
            self.open.remove(index);
            self.holes.insert(index);
        } else {
            self.open.insert(index);
        }
    }

    /// Chunks in use.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Heap bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks * size_of::<Chunk<R, N>>()
            + self.pages.capacity() * size_of::<Option<Page<R, N>>>()
            + self.open.bytes()
            + self.holes.bytes()
    }

    fn allocate(&mut self) -> u32 {
        let index = match self.open.first() {
            Some(index) => index,
            None => self.grow_first().unwrap_or_else(|| self.add_page()),
        };
        let page = self.pages[index as usize]
            .as_mut()
            .expect("open page exists");
        let at = page.free;
        page.free = page.chunks[(at % PAGE_CHUNKS) as usize].next;
        page.used += 1;
        self.used += 1;
        if page.free == NIL {
            self.open.remove(index);
        }
        at
    }

    /// Doubles the first page if it is smaller than the others; it has no free chunk.
    #[cold]
    fn grow_first(&mut self) -> Option<u32> {
        let page = self.pages.first_mut()?.as_mut()?;
        let old = page.chunks.len();
        if old == PAGE_CHUNKS as usize {
            return None;
        }
        let mut chunks = vec![Chunk::empty(); 2 * old].into_boxed_slice();
        chunks[..old].copy_from_slice(&page.chunks);
        link_free(&mut chunks[old..], old as u32);
        page.free = old as u32;
        let small = core::mem::replace(&mut page.chunks, chunks);
        if self.defers_frees {
            self.freed.push(small);
        }
        self.chunks += old;
        self.open.insert(0);
        Some(0)
    }

    #[cold]
    fn add_page(&mut self) -> u32 {
        let index = self.holes.first().unwrap_or(self.pages.len() as u32);
        // More pages than this would hold more records than 32-bit ids can name.
        assert!(
            index < u32::MAX / PAGE_CHUNKS,
            "more timer records than ids"
        );
        let count = if self.pages.is_empty() {
            FIRST_CHUNKS
        } else {
            PAGE_CHUNKS
        };
        let base = index * PAGE_CHUNKS;
        let mut chunks = vec![Chunk::empty(); count as usize].into_boxed_slice();
        link_free(&mut chunks, base);
        let page = Some(Page {
            chunks,
            free: base,
            used: 0,
        });
        self.chunks += count as usize;
        if (index as usize) < self.pages.len() {
            self.pages[index as usize] = page;
        } else {
            self.pages.push(page);
        }
        self.holes.remove(index);
        self.live_pages += 1;
        self.open.insert(index);
        index
    }
}

/// Makes a chain of free chunks, the first of which has the number `first`.
fn link_free<R, const N: usize>(chunks: &mut [Chunk<R, N>], first: u32) {
    let Some((_, linked)) = chunks.split_last_mut() else {
        return;
    };
    for (chunk, next) in linked.iter_mut().zip(first + 1..) {
        chunk.next = next;
    }
}

/// Records taken out of a chain.
#[derive(Debug)]
pub(crate) struct Taken<R, const N: usize> {
    records: [R; N],
    len: usize,
}

impl<R, const N: usize> Taken<R, N> {
    pub(crate) fn records(&self) -> &[R] {
        &self.records[..self.len]
    }
}
