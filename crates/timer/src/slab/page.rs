//! A page of the slab: cells, their generations, and the epochs of their groups.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Cells a page holds: large, so that the table of pages stays in the first-level cache.
pub(super) const PAGE: u32 = 8192;

/// Cells that begin an epoch together. The fewer, the fewer wait for one another; 16 cost 1/8 byte
/// each.
pub(super) const GROUP: u32 = 16;

const CELLS: usize = PAGE as usize;
const GROUPS: usize = (PAGE / GROUP) as usize;

/// The bytes that a page takes.
pub(super) const BYTES: usize = CELLS * size_of::<Cell>() + GROUPS * size_of::<u16>();

/// The generation of a cell's first timer in an epoch.
const FIRST: u8 = 1;

/// The generation of a cell that has had all others.
pub(super) const SPENT: u8 = 0;

/// Low bits that mark a cell without a timer.
pub(super) const FREE: u32 = u32::MAX;

/// Low bits that mark a deadline that is kept in the side map.
pub(super) const FAR: u32 = u32::MAX - 1;

/// "No free cell".
pub(super) const NONE: u16 = u16::MAX;

/// Registration (or next free cell), low bits of the deadline, generation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell([u8; 9]);

impl Cell {
    #[inline]
    pub(super) fn registration(&self) -> u32 {
        u32::from_le_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }

    #[inline]
    pub(super) fn set_registration(&mut self, registration: u32) {
        self.0[..4].copy_from_slice(&registration.to_le_bytes());
    }

    #[inline]
    pub(super) fn low(&self) -> u32 {
        u32::from_le_bytes([self.0[4], self.0[5], self.0[6], self.0[7]])
    }

    #[inline]
    pub(super) fn set_low(&mut self, low: u32) {
        self.0[4..8].copy_from_slice(&low.to_le_bytes());
    }

    #[inline]
    pub(super) fn generation(&self) -> u8 {
        self.0[8]
    }

    #[inline]
    pub(super) fn set_generation(&mut self, generation: u8) {
        self.0[8] = generation;
    }
}

#[derive(Debug)]
pub(super) struct Memory {
    pub(super) cells: Box<[Cell; CELLS]>,
    /// Of each group.
    pub(super) epochs: Box<[u16; GROUPS]>,
}

impl Memory {
    /// All cells are free, each linked to the next.
    pub(super) fn new(epoch: u16) -> Self {
        let mut cell = Cell([0; 9]);
        cell.set_low(FREE);
        cell.set_generation(FIRST);
        let mut cells = boxed(vec![cell; CELLS]);
        for (cell, next) in cells.iter_mut().zip(1..PAGE) {
            cell.set_registration(next);
        }
        cells[CELLS - 1].set_registration(u32::from(NONE));
        let epochs = boxed(vec![epoch; GROUPS]);
        Self { cells, epochs }
    }
}

/// An array that was never on the stack.
fn boxed<T, const N: usize>(items: Vec<T>) -> Box<[T; N]> {
    let array = items.into_boxed_slice().try_into();
    array.unwrap_or_else(|_| unreachable!("as many as were asked for"))
}

#[derive(Debug)]
pub(super) struct Page {
    pub(super) memory: Option<Memory>,
    /// Head of the free cells, linked through their registration.
    pub(super) free: u16,
    pub(super) used: u16,
    /// Where its groups begin when it gets memory.
    pub(super) next_epoch: u32,
}

impl Page {
    /// One without memory.
    pub(super) fn new() -> Self {
        Self {
            memory: None,
            free: NONE,
            used: 0,
            next_epoch: 0,
        }
    }

    /// One that is in use has memory.
    #[inline]
    pub(super) fn memory(&mut self) -> &mut Memory {
        self.memory.as_mut().expect("a page in use has memory")
    }

    /// Puts a cell at the head of the free ones.
    #[inline]
    pub(super) fn free(&mut self, at: u32) {
        let free = u32::from(self.free);
        self.memory().cells[at as usize % CELLS].set_registration(free);
        self.free = at as u16;
    }

    /// Begins an epoch with the group that starts at `first`, if all its names of this one are
    /// spent and there is another. Tells whether it did.
    pub(super) fn renew(&mut self, first: u32) -> bool {
        let memory = self.memory();
        let epoch = &mut memory.epochs[(first / GROUP) as usize];
        let range = first as usize..(first + GROUP) as usize;
        let cells = &mut memory.cells[range];
        let are_spent = cells.iter().all(|cell| cell.generation() == SPENT);
        if !are_spent || *epoch == u16::MAX {
            return false;
        }
        *epoch += 1;
        cells.iter_mut().for_each(|cell| cell.set_generation(FIRST));
        (first..first + GROUP).for_each(|at| self.free(at));
        true
    }
}
