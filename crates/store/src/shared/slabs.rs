//! Blocks on huge pages: slabs are cut into blocks, and go back when they are empty.
//!
//! An example: a page of slots takes 24 KiB, so 12 units. The oldest slab with a run of 12 vacant
//! units gives them. When the last block of a slab is given back, so is the slab.
//!
//! The process has one set of slabs, and not each cache. So small caches share slabs, and a process
//! has one that is nearly empty, at most. And memory that waits in limbo does not have to know its
//! cache, which may be gone: a block's address tells its slab.
//!
//! The oldest slab is taken first, so that the youngest ones become empty when a cache shrinks:
//! segments of the index move to another block when they become smaller, and entries move to the
//! pages that were there first. One slab that was begun and is empty again is kept while others are
//! in use. Otherwise a cache whose size goes up and down by a block could cost a huge page, which
//! the system fills with zeros, each time.
//!
//! Still, a few blocks may stay in each of many slabs. So a slab that was half full, and of which
//! less than a quarter is left, is *thin*: the system gets its vacant small pages back, and is
//! asked for no huge page there, until it is half full again.
//!
//! Slabs are kept by the length of their longest run, in steps of a quarter. These are also the
//! steps that segments grow by. A search takes no longer when there are more slabs; but for the
//! number of the slab that a block lies in, which is found in O(log n).

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use tidewheel_timer::BitSet;

use super::slab::{SLAB_BYTES, Slab};
use super::units::{UNITS, Units};

/// Bytes of a unit. Most blocks are a multiple of it.
const UNIT: usize = SLAB_BYTES / UNITS;

/// Units of the smallest block and of the largest.
const LEAST: usize = 4;
const MOST: usize = 32;

/// Steps from one to the other.
const CLASSES: usize = class(MOST) + 1;

/// The step that a number of units reaches.
const fn class(units: usize) -> usize {
    let units = if units > MOST { MOST } else { units };
    let octave = (units / LEAST).ilog2() as usize;
    octave * 4 + (units >> octave) - LEAST
}

/// The step from which on there is room for so many units.
const fn class_with_room(units: usize) -> usize {
    let class = class(units);
    let reached = (LEAST + class % 4) << (class / 4);
    if reached < units { class + 1 } else { class }
}

/// Units in use above which a slab is whole, and below which it becomes thin.
const WHOLE: usize = UNITS / 2;
const THIN: usize = UNITS / 4;

#[derive(Clone, Copy, PartialEq, Eq)]
enum SlabStage {
    /// It is filled for the first time.
    Begun,
    Whole,
    Thin,
}

struct Used {
    slab: Slab,
    units: Units,
    /// Where it is filed; `None` if it is too full for any block, or kept in reserve.
    class: Option<usize>,
    stage: SlabStage,
}

impl Used {
    fn take(&mut self, count: usize) -> NonNull<u8> {
        let unit = self.units.take(count).expect("it has room");
        if self.units.count() > WHOLE && self.stage != SlabStage::Whole {
            if self.stage == SlabStage::Thin {
                self.slab.ask_for_huge_page(true);
            }
            self.stage = SlabStage::Whole;
        }
        self.slab.at(unit * UNIT)
    }

    fn give(&mut self, unit: usize, count: usize) {
        self.units.give(unit, count);
        match self.stage {
            SlabStage::Whole if self.units.count() < THIN => {
                self.stage = SlabStage::Thin;
                self.slab.ask_for_huge_page(false);
                self.discard(|_| true);
            }
            SlabStage::Thin => self.discard(|run| run.contains(&unit)),
            SlabStage::Begun | SlabStage::Whole => {}
        }
    }

    /// The system gets runs of vacant units back.
    fn discard(&self, chosen: impl Fn(&Range<usize>) -> bool) {
        for run in self.units.vacant().filter(chosen) {
            // SAFETY: these units are vacant, and stay so while the slabs are locked.
            unsafe { self.slab.discard(run.start * UNIT..run.end * UNIT) }
        }
    }
}

pub(super) struct Slabs {
    /// By number. Numbers of slabs that went are given again, lowest first.
    slabs: Vec<Option<Used>>,
    holes: BitSet,
    numbers: BTreeMap<usize, u32>,
    /// Slabs whose longest run is of this step.
    by_room: [BitSet; CLASSES],
    /// The empty one that is kept.
    spare: Option<u32>,
}

static SLABS: Mutex<Slabs> = Mutex::new(Slabs::new());

/// Memory of a slab; `None` if the block is too small or too large, or there are no slabs.
pub(super) fn take(layout: Layout) -> Option<NonNull<u8>> {
    if !suits(layout) {
        return None;
    }
    let mut slabs = SLABS.lock().unwrap_or_else(PoisonError::into_inner);
    slabs.take(layout.size())
}

/// Gives back what [`take`] returned for a block of this size.
pub(super) fn give(at: NonNull<u8>, bytes: usize) {
    let mut slabs = SLABS.lock().unwrap_or_else(PoisonError::into_inner);
    let empty = slabs.give(at.as_ptr().addr(), bytes);
    drop(slabs);
    // The system takes its time.
    drop(empty);
}

fn suits(layout: Layout) -> bool {
    (LEAST * UNIT..=MOST * UNIT).contains(&layout.size()) && layout.align() <= UNIT
}

impl Slabs {
    const fn new() -> Self {
        Self {
            slabs: Vec::new(),
            holes: BitSet::new(),
            numbers: BTreeMap::new(),
            by_room: [const { BitSet::new() }; CLASSES],
            spare: None,
        }
    }

    fn take(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let count = bytes.div_ceil(UNIT);
        let number = match self.with_room(count).or_else(|| self.spare.take()) {
            Some(number) => number,
            None => self.add()?,
        };
        let at = self.used(number).take(count);
        self.file(number);
        Some(at)
    }

    /// Returns slabs that are empty now and not kept.
    fn give(&mut self, address: usize, bytes: usize) -> [Option<Slab>; 2] {
        let start = address - address % SLAB_BYTES;
        let number = *self.numbers.get(&start).expect("blocks lie in slabs");
        let used = self.used(number);
        used.give((address - start) / UNIT, bytes.div_ceil(UNIT));
        if used.units.count() > 0 {
            self.file(number);
            return [None, None];
        }
        self.unfile(number);
        self.vacated(number)
    }

    fn vacated(&mut self, number: u32) -> [Option<Slab>; 2] {
        let spare = self.spare;
        if self.numbers.len() == 1 + usize::from(spare.is_some()) {
            // No other one is in use.
            self.spare = None;
            return [
                Some(self.remove(number)),
                spare.map(|spare| self.remove(spare)),
            ];
        }
        if spare.is_some() || self.used(number).stage != SlabStage::Begun {
            return [Some(self.remove(number)), None];
        }
        self.spare = Some(number);
        [None, None]
    }

    /// The oldest slab that has a run of so many units.
    fn with_room(&self, count: usize) -> Option<u32> {
        let enough = &self.by_room[class_with_room(count)..];
        enough.iter().filter_map(BitSet::first).min()
    }

    fn add(&mut self) -> Option<u32> {
        let used = Used {
            slab: Slab::new()?,
            units: Units::new(),
            class: None,
            stage: SlabStage::Begun,
        };
        let number = self.holes.first().unwrap_or(self.slabs.len() as u32);
        self.numbers.insert(used.slab.address(), number);
        if let Some(hole) = self.slabs.get_mut(number as usize) {
            self.holes.remove(number);
            *hole = Some(used);
        } else {
            self.slabs.push(Some(used));
        }
        Some(number)
    }

    fn remove(&mut self, number: u32) -> Slab {
        let used = self.slabs[number as usize].take().expect("it is there");
        self.numbers.remove(&used.slab.address());
        self.holes.insert(number);
        used.slab
    }

    fn used(&mut self, number: u32) -> &mut Used {
        self.slabs[number as usize].as_mut().expect("it is there")
    }

    /// Files a slab by its longest run.
    fn file(&mut self, number: u32) {
        self.unfile(number);
        let used = self.used(number);
        let longest = used.units.longest();
        used.class = (longest >= LEAST).then(|| class(longest));
        if let Some(class) = used.class {
            self.by_room[class].insert(number);
        }
    }

    fn unfile(&mut self, number: u32) {
        if let Some(class) = self.used(number).class.take() {
            self.by_room[class].remove(number);
        }
    }
}

#[cfg(all(test, any(target_os = "linux", miri)))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const KIB: usize = 1024;

    fn slabs_of(slabs: &Slabs) -> usize {
        slabs.numbers.len()
    }

    #[test]
    fn a_class_has_room_for_whatever_looks_for_it_there() {
        for count in LEAST..=MOST {
            assert!(class_with_room(count) < CLASSES);
            for longest in LEAST..=UNITS {
                let is_found = class(longest) >= class_with_room(count);
                assert!(
                    !is_found || longest >= count,
                    "{count} units in a run of {longest}"
                );
                // At most a quarter is in vain.
                assert!(
                    is_found || longest < count + count / 4,
                    "{count} of {longest}"
                );
            }
        }
    }

    #[test]
    fn small_and_large_and_aligned_blocks_are_not_for_slabs() {
        let suits = |bytes, align| suits(Layout::from_size_align(bytes, align).unwrap());
        assert!(suits(8 * KIB, 64) && suits(64 * KIB, 2048));
        assert!(!suits(8 * KIB - 1, 8) && !suits(64 * KIB + 1, 8) && !suits(8 * KIB, 4096));
    }

    fn give_all(slabs: &mut Slabs, blocks: impl Iterator<Item = NonNull<u8>>) {
        for block in blocks {
            slabs.give(block.as_ptr().addr(), 62 * KIB);
        }
    }

    fn take_some(slabs: &mut Slabs, count: usize) -> Vec<NonNull<u8>> {
        (0..count).map(|_| slabs.take(62 * KIB).unwrap()).collect()
    }

    #[test]
    fn slabs_go_back_when_they_are_empty() {
        let mut slabs = Slabs::new();
        let mut blocks = take_some(&mut slabs, 33 * 4);
        for in_use in (0..4).rev() {
            assert_eq!(slabs_of(&slabs), in_use + 1);
            give_all(&mut slabs, blocks.drain(in_use * 33..));
            assert_eq!(slabs_of(&slabs), in_use);
        }
        // And numbers are given again.
        let again = take_some(&mut slabs, 1);
        assert_eq!((slabs.slabs.len(), slabs_of(&slabs)), (4, 1));
        give_all(&mut slabs, again.into_iter());
    }

    #[test]
    fn a_slab_that_was_begun_is_kept_while_another_one_is_in_use() {
        let mut slabs = Slabs::new();
        let blocks = take_some(&mut slabs, 33);
        for _ in 0..3 {
            let next = take_some(&mut slabs, 1);
            assert_eq!((slabs_of(&slabs), slabs.spare), (2, None));
            give_all(&mut slabs, next.into_iter());
            assert_eq!((slabs_of(&slabs), slabs.spare), (2, Some(1)));
        }
        give_all(&mut slabs, blocks.into_iter());
        assert_eq!((slabs_of(&slabs), slabs.spare), (0, None));
    }

    #[test]
    fn a_slab_is_thin_when_little_is_left_until_it_is_half_full_again() {
        let mut slabs = Slabs::new();
        let bytes = 32 * KIB;
        let mut blocks: Vec<NonNull<u8>> = Vec::new();
        let fill = |slabs: &mut Slabs, blocks: &mut Vec<NonNull<u8>>, count: usize| {
            while blocks.len() < count {
                let block = slabs.take(bytes).unwrap();
                // SAFETY: it was taken just now, and nobody else has it.
                unsafe { block.write_bytes(blocks.len() as u8, bytes) };
                blocks.push(block);
            }
        };
        let thin = |slabs: &mut Slabs, blocks: &mut Vec<NonNull<u8>>, count: usize| {
            for block in blocks.drain(count..) {
                slabs.give(block.as_ptr().addr(), bytes);
            }
        };
        fill(&mut slabs, &mut blocks, 30);
        thin(&mut slabs, &mut blocks, 5);
        assert!(
            slabs.used(0).stage == SlabStage::Begun,
            "it was never half full"
        );
        fill(&mut slabs, &mut blocks, 33);
        thin(&mut slabs, &mut blocks, 16);
        assert!(slabs.used(0).stage == SlabStage::Whole);
        thin(&mut slabs, &mut blocks, 15);
        assert!(slabs.used(0).stage == SlabStage::Thin);
        thin(&mut slabs, &mut blocks, 3);
        fill(&mut slabs, &mut blocks, 32);
        assert!(slabs.used(0).stage == SlabStage::Thin);
        fill(&mut slabs, &mut blocks, 33);
        assert!(slabs.used(0).stage == SlabStage::Whole);
        for (block, number) in blocks.iter().zip(0..) {
            // SAFETY: it was written, and is still taken.
            let byte = unsafe { block.add(bytes - 1).read() };
            assert_eq!(byte, number, "what is in use is not discarded");
        }
        thin(&mut slabs, &mut blocks, 0);
        assert_eq!(slabs_of(&slabs), 0);
    }

    /// Against a map of what is taken: blocks do not overlap, the oldest slab with room is taken,
    /// and nothing stays.
    #[test]
    fn blocks_come_and_go_as_in_a_model() {
        let mut slabs = Slabs::new();
        let mut blocks: BTreeMap<usize, usize> = BTreeMap::new();
        let mut random = 0x1234_5678_9abc_def1_u64;
        let mut draw = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random as usize % below
        };
        for turn in 0..if cfg!(miri) { 300 } else { 30_000 } {
            let is_growing = turn / 1000 % 2 == 0;
            if blocks.is_empty() || draw(5) < if is_growing { 3 } else { 2 } {
                let bytes = LEAST * UNIT + draw((MOST - LEAST) * UNIT + 1);
                let at = slabs.take(bytes).unwrap();
                let address = at.as_ptr().addr();
                assert_eq!(address % UNIT, 0);
                assert!(
                    address % SLAB_BYTES + bytes <= SLAB_BYTES,
                    "it crosses a border"
                );
                let before = blocks.range(..=address).next_back();
                assert!(before.is_none_or(|(start, bytes)| start + bytes <= address));
                let after = blocks.range(address..).next();
                assert!(after.is_none_or(|(start, _)| address + bytes <= *start));
                // SAFETY: it was taken just now, and nobody else has it.
                unsafe { at.write_bytes(7, bytes) };
                blocks.insert(address, bytes);
            } else {
                let nth = draw(blocks.len());
                let (&address, &bytes) = blocks.iter().nth(nth).unwrap();
                blocks.remove(&address);
                slabs.give(address, bytes);
            }
            let starts = blocks.keys().map(|at| at / SLAB_BYTES);
            let in_use = starts.collect::<std::collections::BTreeSet<_>>().len();
            assert!(
                (in_use..=in_use + 1).contains(&slabs_of(&slabs)),
                "turn {turn}"
            );
        }
        for (address, bytes) in std::mem::take(&mut blocks) {
            slabs.give(address, bytes);
        }
        assert_eq!((slabs_of(&slabs), slabs.spare), (0, None));
    }
}
