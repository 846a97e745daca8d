//! The layered wheel as it is often drawn: 60 seconds, 60 minutes, 24 hours, 7 days.
//!
//! A deadline is rounded up to its second and filed by how far it lies ahead: in the seconds below
//! a minute, in the minutes below an hour, and so on. Every second the hand of the seconds moves
//! and what lies in its slot is due; when the hand of a higher wheel moves, what lies in its slot
//! is filed again, which puts it lower. What lies beyond seven days waits in the wheel of days,
//! round after round. Ticks are absolute: a call that comes late makes up for every second that was
//! missed.
//!
//! A deadline that is set costs O(1) and each is moved three times at most in a week. It is found
//! up to a second late. Memory is eight bytes a record and the slack of the slots; a record that
//! was cancelled or moved stays until its slot comes or such records outnumber the others. The
//! price of the drawing: all of a second falls due at once, which a budget divides, and all of an
//! hour moves within one call, which none does. Kafka's purgatory and many schedulers have wheels
//! that hand down so.

use tidewheel_timer::Timer;

use super::{Entries, Expiry, Left};

const SECOND_MS: u64 = 1_000;
/// Slots of each wheel and the seconds that one of them spans.
const LEVELS: [(usize, u64); 4] = [(60, 1), (60, 60), (24, 3_600), (7, 86_400)];
/// Seconds ahead that a record can tell in 32 bits; what lies further is met there and filed again.
const HORIZON_S: u64 = 1 << 31;
/// Stale records that are tolerated whatever the number of the others.
const STALE_FLOOR: usize = 1_024;

/// An entry and the low bits of the second for which it is registered.
#[derive(Clone, Copy, Debug)]
struct Record {
    id: u32,
    second: u32,
}

/// Wheels of seconds, minutes, hours and days.
#[derive(Debug)]
pub(super) struct MixedRadixWheel {
    levels: [Vec<Vec<Record>>; LEVELS.len()],
    /// Records of seconds that have come.
    due: Vec<Record>,
    /// The second at which the hands stand.
    second: u64,
    records: usize,
    stale: usize,
}

impl MixedRadixWheel {
    pub(super) fn new(now_ms: u64) -> Self {
        Self {
            levels: LEVELS.map(|(slots, _)| vec![Vec::new(); slots]),
            due: Vec::new(),
            second: now_ms / SECOND_MS,
            records: 0,
            stale: 0,
        }
    }

    /// The second at whose start a deadline has passed, within what a record can tell.
    fn second_of(&self, deadline_ms: u64) -> u64 {
        let last = self.second.saturating_add(HORIZON_S - 1);
        deadline_ms.div_ceil(SECOND_MS).clamp(self.second, last)
    }

    fn file(&mut self, second: u64, record: Record) {
        let Some(ahead) = second.checked_sub(self.second).filter(|&ahead| ahead > 0) else {
            self.due.push(record);
            return;
        };
        let reaches = |&(slots, span): &(usize, u64)| ahead < slots as u64 * span;
        let level = LEVELS.iter().position(reaches).unwrap_or(LEVELS.len() - 1);
        let (slots, span) = LEVELS[level];
        self.levels[level][(second / span) as usize % slots].push(record);
    }

    /// Moves the hands by a second.
    fn tick(&mut self) {
        self.second += 1;
        // In whatever order: what is handed down lies less than that slot's span ahead, so it is
        // filed lower, and never into a slot that is handed down at the same moment.
        for (level, (slots, span)) in LEVELS.into_iter().enumerate().skip(1) {
            if self.second.is_multiple_of(span) {
                let slot = (self.second / span) as usize % slots;
                // Taken out as a whole: what goes round comes back into this very slot.
                for record in std::mem::take(&mut self.levels[level][slot]) {
                    let ahead = record.second.wrapping_sub(self.second as u32);
                    self.file(self.second + u64::from(ahead), record);
                }
            }
        }
        let slot = &mut self.levels[0][self.second as usize % LEVELS[0].0];
        self.due.append(&mut std::mem::take(slot));
    }

    /// Hands out what is due until `left` is used up.
    fn fire<E: Entries>(&mut self, entries: &mut E, left: &mut u32, due: &mut Vec<u32>) {
        while *left > 0
            && let Some(record) = self.due.pop()
        {
            *left -= 1;
            self.records -= 1;
            let timer = entries.timer(record.id);
            let timer = timer.filter(|timer| timer.registration == record.second);
            match timer {
                Some(timer) if timer.deadline > self.second.saturating_mul(SECOND_MS) => {
                    self.register(entries, record.id, timer.deadline);
                }
                Some(_) => {
                    entries.clear(record.id);
                    due.push(record.id);
                }
                None => self.stale = self.stale.saturating_sub(1),
            }
        }
        if self.due.is_empty() {
            // A full second's memory is not kept for an empty one.
            self.due = Vec::new();
        }
    }

    fn register<E: Entries>(&mut self, entries: &mut E, id: u32, deadline_ms: u64) {
        let second = self.second_of(deadline_ms);
        let record = Record {
            id,
            second: second as u32,
        };
        entries.set_registration(id, record.second);
        self.records += 1;
        self.file(second, record);
    }

    /// Drops stale records once they outnumber the others: O(1) for each, all told.
    fn compact<E: Entries>(&mut self, entries: &E) {
        if self.stale <= self.records / 2 + STALE_FLOOR {
            return;
        }
        let slots = self.levels.iter_mut().flatten().chain([&mut self.due]);
        self.records = 0;
        for slot in slots {
            slot.retain(|record| {
                let timer = entries.timer(record.id);
                timer.is_some_and(|timer| timer.registration == record.second)
            });
            slot.shrink_to(slot.len() * 2);
            self.records += slot.len();
        }
        self.stale = 0;
    }
}

impl<E: Entries> Expiry<E> for MixedRadixWheel {
    fn insert(&mut self, entries: &mut E, id: u32, deadline_ms: u64, now_ms: u64) {
        self.compact(entries);
        if self.records == 0 {
            self.second = self.second.max(now_ms / SECOND_MS);
        }
        self.register(entries, id, deadline_ms);
    }

    fn reschedule(&mut self, entries: &mut E, id: u32, old: Timer, deadline_ms: u64, _: u64) {
        // Within the same second, the record that is there will do.
        if self.second_of(deadline_ms) as u32 != old.registration {
            self.stale += 1;
            self.compact(entries);
            self.register(entries, id, deadline_ms);
        }
    }

    fn cancel(&mut self, _: &mut E, _: u32, _: Timer) {
        self.stale += 1;
    }

    fn advance(&mut self, entries: &mut E, now_ms: u64, budget: u32, due: &mut Vec<u32>) -> Left {
        let mut left = budget;
        loop {
            self.fire(entries, &mut left, due);
            if !self.due.is_empty() {
                return Left::Backlog;
            }
            if self.second >= now_ms / SECOND_MS {
                return Left::Nothing;
            }
            if self.records == 0 {
                self.second = now_ms / SECOND_MS;
                return Left::Nothing;
            }
            self.tick();
        }
    }

    fn wake(&self) -> Option<u64> {
        if !self.due.is_empty() {
            return Some(self.second.saturating_mul(SECOND_MS));
        }
        let next = self.second.saturating_add(1).saturating_mul(SECOND_MS);
        (self.records > 0).then_some(next)
    }

    fn bytes(&self) -> usize {
        let slots = self.levels.iter().flatten().chain([&self.due]);
        let records: usize = slots.map(Vec::capacity).sum();
        let slots: usize = self.levels.iter().map(Vec::capacity).sum();
        records * size_of::<Record>() + slots * size_of::<Vec<Record>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::expiry::strategies::deadlines::Deadlines;

    const MINUTE_MS: u64 = 60 * SECOND_MS;
    const HOUR_MS: u64 = 60 * MINUTE_MS;

    /// Follows one timer of the mixed-radix wheel: level and time of each change, then when it was
    /// found.
    fn walk(deadline: u64) -> (Vec<(usize, u64)>, u64) {
        let mut entries = Deadlines::new(1);
        let mut wheel = MixedRadixWheel::new(0);
        entries.set(0, deadline);
        wheel.insert(&mut entries, 0, deadline, 0);
        let mut steps: Vec<(usize, u64)> = Vec::new();
        let mut now = 0;
        loop {
            let mut levels = wheel.levels.iter();
            let level = levels.position(|slots| slots.iter().any(|slot| !slot.is_empty()));
            let level = level.expect("one timer, one record");
            if steps.last().is_none_or(|last| last.0 != level) {
                steps.push((level, now));
            }
            now = Expiry::<Deadlines>::wake(&wheel).expect("it is pending");
            let mut due = Vec::new();
            let left = wheel.advance(&mut entries, now, u32::MAX, &mut due);
            assert_eq!(left, Left::Nothing);
            if !due.is_empty() {
                return (steps, now);
            }
        }
    }

    #[test]
    fn a_timer_of_7100_s_walks_through_hours_minutes_and_seconds() {
        let (steps, found) = walk(7_100 * SECOND_MS);
        // 3,500 s are left when its hour comes, 20 s when its minute does.
        assert_eq!(steps, [(2, 0), (1, HOUR_MS), (0, HOUR_MS + 58 * MINUTE_MS)]);
        assert_eq!(found, 7_100 * SECOND_MS);
    }
}
