//! Expiry: due entries are removed, or handed back to the caller.

use tidewheel_timer::{BATCH_MAX, Progress, TimerQueue};

use super::entry;
use super::store::{Store, object_number};
use super::value::{Expired, HandedBack};
use crate::slot::Slot;

/// The place of an entry that stays: a key begins behind the header.
const STAYS: (u32, usize, usize) = (0, 0, 0);

impl<O> Store<O> {
    /// Removes the entries whose deadline is at or before `now`, and shows each to `sink`, in the
    /// order of their deadlines. Touches at most `budget` timer records.
    pub fn expire(&mut self, now: u64, budget: u32, sink: impl FnMut(Expired<'_, O>)) -> Progress {
        // Nothing is handed back, and nobody looks at the tag.
        self.expire_others(now, budget, |_| false, sink, &mut Vec::new())
    }

    /// As [`expire`](Self::expire), but an entry whose tag `stays` accepts is not removed: it is
    /// added to `handed`, in the order of deadlines. It counts as fired.
    ///
    /// **An entry that was handed back has no deadline any more.** The caller gives it the next one
    /// with [`set_deadline`](Self::set_deadline), or removes it. If the caller must stop before it
    /// has done so for all of them, it gives the rest the deadline that they had: then the next
    /// call hands them back again. There are at most `budget` of them. Their slots stay valid while
    /// the caller changes and removes entries of the list, each by its own slot; they do not
    /// survive [`maintain`](Self::maintain).
    pub fn expire_or_hand_back(
        &mut self,
        now: u64,
        budget: u32,
        stays: impl Fn(u8) -> bool,
        sink: impl FnMut(Expired<'_, O>),
        handed: &mut Vec<HandedBack>,
    ) -> Progress {
        let stays = |block: &[u8]| stays(entry::tag(block));
        self.expire_others(now, budget, stays, sink, handed)
    }

    #[inline]
    fn expire_others(
        &mut self,
        now: u64,
        budget: u32,
        stays: impl Fn(&[u8]) -> bool,
        mut sink: impl FnMut(Expired<'_, O>),
        handed: &mut Vec<HandedBack>,
    ) -> Progress {
        let Self {
            blocks,
            index,
            wheel,
            objects,
            hasher,
            timed,
            ..
        } = self;
        wheel.advance(blocks, now, budget, |blocks, due| {
            // Where each is in the index, and where its key begins and ends; [`STAYS`] for one that
            // is handed back.
            let mut places = [STAYS; BATCH_MAX];
            // First find all buckets, so that their cache misses overlap; then remove.
            let mut warmth = 0;
            for (place, &id) in places.iter_mut().zip(due) {
                let block = blocks.start(id);
                if stays(block) {
                    handed.push(HandedBack::of(id, block, now));
                    continue;
                }
                let layout = entry::layout(block);
                let (from, to) = (layout.key_at, layout.value_at());
                *place = (hasher.hash(&block[from..to]) as u32, from, to);
                warmth ^= index.touch(place.0);
            }
            std::hint::black_box(warmth);
            *timed -= due.len();
            for (&(place, from, to), &id) in places.iter().zip(due) {
                if (place, from, to) == STAYS {
                    entry::set_deadline(blocks.start_mut(id), None);
                    continue;
                }
                let found = index.remove(place, id);
                debug_assert!(found, "an entry is in the index");
                let block = blocks.start(id);
                let object =
                    entry::is_object(block).then(|| objects.remove(object_number(&block[to..])));
                sink(Expired {
                    key: &block[from..to],
                    deadline: entry::deadline(block).unwrap_or(now),
                    tag: entry::tag(block),
                    object,
                    block,
                });
                blocks.release(id);
            }
        })
    }
}

impl HandedBack {
    #[cold]
    fn of(id: u32, block: &[u8], now: u64) -> Self {
        Self {
            slot: Slot(id),
            deadline: entry::deadline(block).unwrap_or(now),
        }
    }
}
