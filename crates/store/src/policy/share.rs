//! Probation's share of the capacity, which adapts to where hits would be won.

use super::rate::Rate;

/// Probation's share of the capacity is counted in parts of this.
const WHOLE: u16 = 1024;
/// Probation's least share: 0.7 %.
const MIN_SHARE: u32 = 7;
/// Probation's largest share while the main region makes better use of the room, and what it starts
/// with: 8 %.
const MAX_SHARE: u32 = 82;
/// The share that probation may have beyond that when it makes better use of it: 68 %.
const MAX_EXTRA: u32 = 700;
/// From this share on, entries that are hit on probation stay there: 29 %.
const WIDE: u32 = 300;
/// The least share becomes three times as large, as the extra share grows: a queue of two or three
/// entries sees no hits, so that the rate of hits alone would not let it grow.
const MAX_LEAST_SHARE: u32 = 20;
/// The growth of the extra share for one part more of the least share.
const EXTRA_PER_LEAST: u32 = 5;
/// The extra share is counted more finely: in parts of [`WHOLE`] times this.
const FINE: u32 = 1024;
/// Entries by which the extra share grows or shrinks at a time.
const EXTRA_STEP: u32 = 4;
/// Probation's extra share grows while at least this percentage of the marginal hits is
/// probation's.
const GROWING_PERCENT: u32 = 25;
/// The extra share shrinks while less than this percentage of the marginal hits is probation's.
const SHRINKING_PERCENT: u32 = 15;
/// Outcomes after which the rate of marginal hits fades: a sixteenth of the entries, but within
/// these limits. So a shard learns as fast as a whole cache.
const MARGINAL_WINDOW: (usize, usize) = (64, 8192);
/// Only the part of probation beyond its share and one part in this many of the whole (0.2 %) moves
/// to the main region because probation shrinks.
const LEEWAY_PART: u64 = 512;
/// Probation's share is its entries' rate of being hit, times this.
const SHARE_PER_HIT_RATE: u32 = 2;
/// Outcomes after which the rate of hits on probation fades: the number of entries, but within
/// these limits.
const PROBATION_WINDOW: (usize, usize) = (64, 4096);

/// The share of the capacity that probation may have.
#[derive(Debug)]
pub(super) struct Share {
    /// The weight of which probation has a share: that of all entries, or the capacity if that is
    /// less.
    pub(super) whole: u64,
    /// Probation's share of it, in parts of [`WHOLE`].
    part: u32,
    /// The share that probation may have beyond [`MAX_SHARE`], in parts of [`WHOLE`] times
    /// [`FINE`].
    extra: u32,
    /// Of the *marginal* hits, which a region would win or lose with a little more or less room:
    /// which are probation's.
    marginal: Rate,
    /// Of the entries whose turn on probation came: which had been hit.
    hit_on_probation: Rate,
}

impl Share {
    pub(super) fn new() -> Self {
        Self {
            whole: 0,
            part: MAX_SHARE,
            extra: 0,
            marginal: Rate::default(),
            hit_on_probation: Rate::default(),
        }
    }

    /// The weight that probation may have. When it has more, the turn of its oldest entry has come.
    #[inline]
    pub(super) fn weight(&self) -> u64 {
        let product = u128::from(self.whole) * u128::from(self.part);
        // A part is less than the whole.
        let weight = (product / u128::from(WHOLE)) as u64;
        weight.max(1)
    }

    /// The weight beyond which probation's oldest entries go to the main region though nobody has
    /// hit them. It is a little more than the share. The share goes up and down by less than that
    /// all the time; if probation followed it down, each time some entries would get a place in the
    /// main region that they have not earned.
    #[inline]
    pub(super) fn spilling_weight(&self) -> u64 {
        self.weight() + self.whole / LEEWAY_PART
    }

    /// The turn of an entry on probation has come, of `entries` in both regions. Adapts the share.
    #[inline]
    pub(super) fn count_turn(&mut self, was_hit: bool, entries: usize) {
        let (least, most) = PROBATION_WINDOW;
        let window = entries.clamp(least, most) as u32;
        self.hit_on_probation.count(was_hit, window);
        if let Some(rate) = self.hit_on_probation.of(WHOLE) {
            let extra = self.extra / FINE;
            let least = (MIN_SHARE + extra / EXTRA_PER_LEAST).min(MAX_LEAST_SHARE);
            self.part = (rate * SHARE_PER_HIT_RATE).clamp(least, MAX_SHARE + extra);
        }
    }

    /// Counts a hit that probation would have had with a little more room. Probation may grow, if
    /// the main region `has_room`; else it shrinks.
    pub(super) fn count_probations_hit(&mut self, has_room: bool, entries: usize) {
        self.marginal.count(true, marginal_window(entries));
        if !has_room {
            self.extra = self.extra.saturating_sub(step(entries));
        } else if self.marginal.reaches(GROWING_PERCENT) {
            self.extra = (self.extra + step(entries)).min(MAX_EXTRA * FINE);
        }
    }

    /// Counts a hit that the main region would have lost with a little less room. Probation may
    /// shrink.
    pub(super) fn count_mains_hit(&mut self, entries: usize) {
        self.marginal.count(false, marginal_window(entries));
        if self.marginal.is_below(SHRINKING_PERCENT) {
            self.extra = self.extra.saturating_sub(step(entries));
        }
    }

    /// Of the entries whose turn on probation came: which had been hit.
    pub(super) fn hit_on_probation(&self) -> Rate {
        self.hit_on_probation
    }

    /// Returns whether probation is so large that entries which are hit there should stay.
    pub(super) fn is_wide(&self) -> bool {
        self.part >= WIDE
    }
}

/// Outcomes after which the rate of marginal hits of so many entries fades.
fn marginal_window(entries: usize) -> u32 {
    let (least, most) = MARGINAL_WINDOW;
    (entries / 16).clamp(least, most) as u32
}

/// Returns how much the extra share of so many entries changes at a time.
fn step(entries: usize) -> u32 {
    let entries = u32::try_from(entries).unwrap_or(u32::MAX);
    (EXTRA_STEP * u32::from(WHOLE) * FINE).div_ceil(entries.max(PROBATION_WINDOW.0 as u32))
}

#[cfg(test)]
impl Share {
    /// Returns whether probation has its least share.
    pub(super) fn is_least(&self) -> bool {
        self.part == MIN_SHARE
    }

    /// Returns whether probation may have more than its largest usual share.
    pub(super) fn has_extra(&self) -> bool {
        self.extra > 0
    }
}
