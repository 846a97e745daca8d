//! The limit of a queue: so many runs in each period. Here, and nowhere else, a run gets its slot.
//!
//! Suppose that a queue may begin 3 in each second, and that 8 tasks are due at 10.0 s. The first 3
//! have the slot 10.0 s, the next 3 that of 11.0 s, the others that of 12.0 s. If a worker claims
//! 10 s ahead, it gets all of them at once, each with its slot as due time. A store keeps for each
//! period that is not over how many slots it has given away.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::shape::error::StoreError;
use crate::shape::timestamp::Timestamp;

/// The range of periods.
const PERIOD_MIN: Duration = Duration::from_millis(100);
const PERIOD_MAX: Duration = Duration::from_secs(7 * 86_400);

/// The greatest number of runs in a period.
const TIMES_MAX: u32 = 1_000_000;

/// Slots are given for so many periods ahead, at most.
const PERIODS_AHEAD: u64 = 1000;

/// At most so many runs in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Runs in a period: 1 to 1,000,000.
    pub times: u32,
    /// The period: a tenth of a second to a week, in whole milliseconds.
    pub period: Duration,
}

impl Rate {
    /// So many runs in each `period`.
    #[must_use]
    pub fn new(times: u32, period: Duration) -> Self {
        Self { times, period }
    }

    pub(crate) fn check(self) -> Result<(), StoreError> {
        let is_whole = self.period.subsec_nanos().is_multiple_of(1_000_000);
        let is_period = (PERIOD_MIN..=PERIOD_MAX).contains(&self.period) && is_whole;
        if !is_period || self.times == 0 || self.times > TIMES_MAX {
            return Err(StoreError::refused(
                "a limit is 1 to 1,000,000 in whole milliseconds, from 100 ms to a week",
            ));
        }
        Ok(())
    }

    fn us(self) -> u64 {
        u64::try_from(self.period.as_micros())
            .unwrap_or(u64::MAX)
            .max(1)
    }

    /// The number of the period of a time, counted from 1970.
    fn number(self, at: Timestamp) -> u64 {
        at.0 / self.us()
    }

    fn start(self, number: u64) -> Timestamp {
        Timestamp(number.saturating_mul(self.us()))
    }

    /// How far ahead slots are given, if that is asked for until `until`.
    fn horizon(self, now: Timestamp, until: Timestamp) -> Timestamp {
        until.min(self.start(self.number(now).saturating_add(PERIODS_AHEAD)))
    }

    pub(crate) fn text(self) -> String {
        format!("{} {}", self.times, self.period.as_millis())
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let (times, ms) = text.split_once(' ')?;
        Some(Self::new(
            times.parse().ok()?,
            Duration::from_millis(ms.parse().ok()?),
        ))
    }
}

/// The slots of a queue that were given away, by the number of their period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spent {
    rate: Rate,
    slots: BTreeMap<u64, u32>,
}

impl Spent {
    pub(crate) fn new(rate: Rate) -> Self {
        let slots = BTreeMap::new();
        Self { rate, slots }
    }

    /// The same under another limit, perhaps. Periods of another length begin anew.
    pub(crate) fn under(mut self, rate: Rate) -> Self {
        if self.rate.period != rate.period {
            self.slots.clear();
        }
        self.rate = rate;
        self
    }

    /// The time of a run that is due at `due`: the first for which there is a slot. `None` if there
    /// is none until `until`.
    pub(crate) fn slot(
        &mut self,
        due: Timestamp,
        now: Timestamp,
        until: Timestamp,
    ) -> Option<Timestamp> {
        let Self { rate, slots } = self;
        slots.retain(|number, _| *number >= rate.number(now));
        let (at, end) = (due.max(now), rate.horizon(now, until));
        let mut number = rate.number(at);
        loop {
            let slot = at.max(rate.start(number));
            if slot > end {
                return None;
            }
            let used = slots.entry(number).or_default();
            if *used < rate.times {
                *used += 1;
                return Some(slot);
            }
            number += 1;
        }
    }

    /// The number of slots that there are until `until`.
    pub(crate) fn free(&self, now: Timestamp, until: Timestamp) -> usize {
        let rate = self.rate;
        let (first, last) = (rate.number(now), rate.number(rate.horizon(now, until)));
        let all = (last + 1 - first.min(last)).saturating_mul(rate.times.into());
        let slots = self.slots.range(first..=last.max(first));
        let used = slots
            .map(|(_, used)| u64::from((*used).min(rate.times)))
            .sum();
        usize::try_from(all.saturating_sub(used)).unwrap_or(usize::MAX)
    }

    /// The time at which there may be a slot again that lies within `ahead`, if there is none now.
    #[cfg(feature = "nats")]
    pub(crate) fn again(&self, now: Timestamp, ahead: Duration) -> Timestamp {
        let end = self.rate.horizon(now, now.plus(ahead));
        self.rate.start(self.rate.number(end) + 1).minus(ahead)
    }

    /// A run that had this slot was given back.
    pub(crate) fn give_back(&mut self, slot: Timestamp) {
        if let Some(used) = self.slots.get_mut(&self.rate.number(slot)) {
            *used = used.saturating_sub(1);
        }
    }

    /// The text by which a store keeps it: the period in milliseconds, and each number and its
    /// slots.
    #[cfg(any(feature = "postgres", feature = "nats"))]
    pub(crate) fn text(&self) -> String {
        let slots = self
            .slots
            .iter()
            .map(|(number, used)| format!(" {number}={used}"));
        format!(
            "{}{}",
            self.rate.period.as_millis(),
            slots.collect::<String>()
        )
    }

    /// Reads such a text, under the limit as it is now. What cannot be read is left out.
    #[cfg(any(feature = "postgres", feature = "nats"))]
    pub(crate) fn read(text: &str, rate: Rate) -> Self {
        let mut words = text.split(' ');
        let ms = words.next().and_then(|ms| ms.parse().ok()).unwrap_or(0);
        let slot = |word: &str| {
            let (number, used) = word.split_once('=')?;
            Some((number.parse().ok()?, used.parse().ok()?))
        };
        let slots = words.filter_map(slot).collect();
        let before = Rate::new(rate.times, Duration::from_millis(ms));
        Self {
            rate: before,
            slots,
        }
        .under(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Timestamp = |s| Timestamp(s * 1_000_000);

    fn rate(times: u32) -> Rate {
        Rate::new(times, Duration::from_secs(1))
    }

    #[test]
    fn runs_get_the_first_slots_there_are_from_their_time_on() {
        let mut spent = Spent::new(rate(3));
        let mut slots: Vec<_> = (0..8).map(|_| spent.slot(S(5), S(10), S(20))).collect();
        let expected = [10, 10, 10, 11, 11, 11, 12, 12].map(|s| Some(S(s)));
        assert_eq!(slots, expected);
        // One that is due later keeps its time within a period that has room.
        let at = Timestamp(12_300_000);
        assert_eq!(spent.slot(at, S(10), S(20)), Some(at));
        assert_eq!(spent.slot(at, S(10), S(20)), Some(S(13)));
        assert_eq!(spent.free(S(10), S(13)), 2);
        spent.give_back(S(11));
        assert_eq!(spent.free(S(10), S(13)), 3);
        slots = (0..4).map(|_| spent.slot(S(5), S(10), S(13))).collect();
        assert_eq!(slots, [Some(S(11)), Some(S(13)), Some(S(13)), None]);
        assert_eq!(spent.free(S(10), S(13)), 0);
        // What is over is forgotten.
        assert_eq!(spent.slot(S(5), S(13), S(13)), None);
        assert_eq!(spent.slots.len(), 1);
    }

    #[test]
    fn slots_lie_within_a_thousand_periods() {
        let mut spent = Spent::new(rate(1));
        let many = (0..2000).map_while(|_| spent.slot(S(0), S(0), S(100_000)));
        assert_eq!(many.count(), 1001);
        assert_eq!(spent.free(S(0), S(100_000)), 0);
        assert_eq!(spent.slot(S(50_000), S(0), S(100_000)), None);
    }

    #[cfg(any(feature = "postgres", feature = "nats"))]
    #[test]
    fn what_was_spent_comes_back_from_its_text_and_ends_with_another_period() {
        let mut spent = Spent::new(rate(2));
        for _ in 0..3 {
            spent.slot(S(7), S(7), S(9));
        }
        assert_eq!(spent.text(), "1000 7=2 8=1");
        assert_eq!(Spent::read(&spent.text(), rate(2)), spent);
        assert_eq!(Spent::read("", rate(2)), Spent::new(rate(2)));
        let minute = Rate::new(2, Duration::from_secs(60));
        assert_eq!(Spent::read(&spent.text(), minute), Spent::new(minute));
    }

    #[test]
    fn a_limit_has_a_range() {
        assert!(rate(1).check().is_ok());
        let wrong = [
            rate(0),
            rate(TIMES_MAX + 1),
            Rate::new(1, Duration::from_millis(99)),
            Rate::new(1, Duration::from_micros(200_001)),
            Rate::new(1, PERIOD_MAX + PERIOD_MIN),
        ];
        assert!(wrong.iter().all(|rate| rate.check().is_err()));
        assert_eq!(Rate::read(&rate(7).text()), Some(rate(7)));
    }
}
