//! The keyspace's time, and all arithmetic on times to live.

use tidewheel_resp::Writer;
use tidewheel_time::{Engine, Timeline};

/// A point in time, which the owner of the clock takes once per batch of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time {
    /// The monotonic clock in milliseconds, rounded down.
    pub tick: u64,
    /// Microseconds since that tick began, below 1000.
    pub micros: u32,
    /// Wall time in milliseconds since the epoch, less `tick`.
    pub wall_offset_ms: i64,
}

impl Time {
    /// Wall time in milliseconds since the epoch.
    #[must_use]
    pub fn wall_ms(&self) -> i64 {
        self.wall_offset_ms.saturating_add_unsigned(self.tick)
    }

    /// Writes what TIME replies: seconds of Unix time, and microseconds within the second.
    pub fn write(&self, out: &mut Writer) {
        let wall_ms = self.wall_ms().max(0);
        let micros = wall_ms % 1000 * 1000 + i64::from(self.micros);
        let mut buffer = itoa::Buffer::new();
        out.array(2);
        out.bulk(buffer.format(wall_ms / 1000).as_bytes());
        out.bulk(buffer.format(micros).as_bytes());
    }

    /// `ns` nanoseconds later, rounded down to microseconds.
    pub(crate) fn after(self, ns: u64) -> Self {
        let micros = u64::from(self.micros) + ns / 1000;
        Self {
            tick: self.tick.saturating_add(micros / 1000),
            micros: (micros % 1000) as u32,
            ..self
        }
    }
}

/// A point in time as the entries see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Engine time: deadlines are compared with this.
    pub(crate) tick: u64,
    /// Microseconds since the tick began; 0 while engine time stands still. A whole word, since it
    /// is copied with its neighbours: half a word that was just written would have to reach the
    /// cache first.
    pub(crate) micros: u64,
    /// The clock, which never stands still.
    pub(crate) time: Time,
}

/// The unit of a time in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
}

/// The origin that a time in a command counts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeOrigin {
    Now,
    Epoch,
}

impl Now {
    /// A point in time as the entries of a timeline see it.
    #[inline(always)]
    pub(crate) fn of(timeline: &Timeline, time: Time) -> Self {
        let (tick, micros) = match timeline.at(time.tick) {
            Engine::Runs(tick) => (tick, time.micros.into()),
            Engine::Stands(tick) => (tick, 0),
        };
        Self { tick, micros, time }
    }

    /// A point in time of a clock that shows engine time.
    pub(crate) fn of_engine(time: Time) -> Self {
        Self {
            tick: time.tick,
            micros: time.micros.into(),
            time,
        }
    }

    /// The deadline that a wall time in milliseconds means, whatever it is.
    pub(crate) fn deadline_of_wall(&self, wall_ms: i64) -> u64 {
        let deadline = self.deadline(wall_ms, Unit::Milliseconds, TimeOrigin::Epoch);
        deadline.unwrap_or(u64::MAX - 1)
    }

    /// Lets it be that tick at least: somebody has acted then where this is about to act. Wall time
    /// follows, so that both still name the same moment.
    #[cold]
    #[inline(never)]
    pub(crate) fn raise(&mut self, tick: u64) {
        if let Some(ahead @ 1..) = tick.checked_sub(self.tick) {
            self.tick = tick;
            self.micros = 0;
            self.time.tick = self.time.tick.saturating_add(ahead);
            self.time.micros = 0;
        }
    }

    /// Wall time in microseconds.
    pub(crate) fn wall_us(&self) -> i64 {
        let micros = i64::try_from(self.micros).unwrap_or(0);
        self.wall_ms().saturating_mul(1_000).saturating_add(micros)
    }

    /// Wall time in milliseconds.
    pub(crate) fn wall_ms(&self) -> i64 {
        self.time.wall_ms()
    }

    /// True if a deadline has been reached.
    #[inline]
    pub(crate) fn reached(&self, deadline: u64) -> bool {
        self.tick >= deadline
    }

    /// The deadline that a command's number means. It may lie in the past. `None` if it cannot be
    /// expressed in milliseconds, which the public protocol calls an invalid expire time.
    ///
    /// Relative deadlines are rounded up: the clock's tick is rounded down, so `tick + ttl` would
    /// fall up to a millisecond before the time to live has passed.
    #[inline]
    pub(crate) fn deadline(&self, number: i64, unit: Unit, base: TimeOrigin) -> Option<u64> {
        let ms = match unit {
            Unit::Seconds => number.checked_mul(1000)?,
            Unit::Milliseconds => number,
        };
        // A time before engine time began is in the past.
        let deadline = match base {
            TimeOrigin::Now => {
                // The wall time must be expressible, since EXPIRETIME and snapshots speak it.
                self.wall_ms().max(0).checked_add(ms)?;
                let rest = u64::from(ms > 0 && self.micros > 0);
                self.tick.saturating_add_signed(ms).saturating_add(rest)
            }
            TimeOrigin::Epoch => {
                let ahead = i128::from(ms) - i128::from(self.wall_ms());
                let deadline = i128::from(self.tick) + ahead;
                u64::try_from(deadline.max(0)).unwrap_or(u64::MAX)
            }
        };
        Some(deadline.min(u64::MAX - 1))
    }

    /// As [`deadline`](Self::deadline), for commands that refuse numbers below 1.
    #[inline]
    pub(crate) fn positive_deadline(
        &self,
        number: i64,
        unit: Unit,
        base: TimeOrigin,
    ) -> Option<u64> {
        if number <= 0 {
            None
        } else {
            self.deadline(number, unit, base)
        }
    }

    /// Whole milliseconds left, rounded down; 0 from less than a millisecond before the deadline
    /// on.
    pub(crate) fn remaining_ms(&self, deadline: u64) -> i64 {
        let left = deadline
            .saturating_sub(self.tick)
            .saturating_sub(u64::from(self.micros > 0));
        i64::try_from(left).unwrap_or(i64::MAX)
    }

    /// The deadline as wall time in milliseconds.
    pub(crate) fn wall_of(&self, deadline: u64) -> i64 {
        let ahead = i128::from(deadline) - i128::from(self.tick);
        let wall = i128::from(self.wall_ms()) + ahead;
        i64::try_from(wall.max(0)).unwrap_or(i64::MAX)
    }

    /// Microseconds since a deadline that has been reached.
    pub(crate) fn lateness_us(&self, deadline: u64) -> u64 {
        self.tick
            .saturating_sub(deadline)
            .saturating_mul(1000)
            .saturating_add(self.micros)
    }
}

/// Milliseconds as seconds, rounded to the nearest, as TTL and EXPIRETIME report them.
pub(crate) fn rounded_seconds(ms: i64) -> i64 {
    ms / 1000 + i64::from(ms % 1000 >= 500)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WALL: i64 = 1_700_000_000_000;

    fn at(tick: u64, micros: u32) -> Now {
        let time = Time {
            tick,
            micros,
            wall_offset_ms: WALL - tick as i64,
        };
        let micros = micros.into();
        Now { tick, micros, time }
    }

    #[test]
    fn extremes_are_refused_not_wrapped() {
        let now = at(1 << 40, 0);
        for (number, unit, base, valid) in [
            (i64::MAX, Unit::Seconds, TimeOrigin::Now, false),
            (i64::MAX, Unit::Seconds, TimeOrigin::Epoch, false),
            (i64::MIN, Unit::Seconds, TimeOrigin::Now, false),
            (i64::MAX / 1000, Unit::Seconds, TimeOrigin::Now, false),
            (i64::MAX / 1000, Unit::Seconds, TimeOrigin::Epoch, true),
            (i64::MAX, Unit::Milliseconds, TimeOrigin::Now, false),
            (i64::MAX - WALL, Unit::Milliseconds, TimeOrigin::Now, true),
            (
                i64::MAX - WALL + 1,
                Unit::Milliseconds,
                TimeOrigin::Now,
                false,
            ),
            (i64::MAX, Unit::Milliseconds, TimeOrigin::Epoch, true),
            (i64::MIN, Unit::Milliseconds, TimeOrigin::Epoch, true),
            (i64::MIN, Unit::Milliseconds, TimeOrigin::Now, true),
        ] {
            let deadline = now.deadline(number, unit, base);
            assert_eq!(deadline.is_some(), valid, "{number} {unit:?} {base:?}");
            if let Some(deadline) = deadline {
                assert_eq!(now.reached(deadline), number < 0);
            }
        }
        assert_eq!(
            now.positive_deadline(0, Unit::Seconds, TimeOrigin::Now),
            None
        );
        assert_eq!(
            now.positive_deadline(-1, Unit::Seconds, TimeOrigin::Epoch),
            None
        );
        assert_eq!(
            now.deadline(0, Unit::Seconds, TimeOrigin::Now),
            Some(1 << 40)
        );
    }

    #[test]
    fn seconds_round_to_the_nearest() {
        for (ms, s) in [
            (0, 0),
            (499, 0),
            (500, 1),
            (1499, 1),
            (1500, 2),
            (i64::MAX, i64::MAX / 1000 + 1),
        ] {
            assert_eq!(rounded_seconds(ms), s);
        }
    }

    #[test]
    fn while_engine_time_stands_still_the_wall_clock_goes_on() {
        let line = Timeline::new();
        let time = |tick| Time {
            tick,
            micros: 7,
            wall_offset_ms: 0,
        };
        line.freeze(|| 1000);
        let now = Now::of(&line, time(5000));
        assert_eq!(
            (now.tick, now.micros, now.time.tick, now.wall_ms()),
            (1000, 0, 5000, 5000)
        );
        line.resume(|| 5000);
        let now = Now::of(&line, time(5010));
        assert_eq!((now.tick, now.micros), (1010, 7));
    }

    proptest! {
        #[test]
        fn a_relative_deadline_is_never_early_and_less_than_two_ticks_late(
            tick in (1_u64 << 40)..(1 << 50), micros in 0_u32..1000, ttl in 1_i64..1 << 40,
        ) {
            let now = at(tick, micros);
            let deadline = now.deadline(ttl, Unit::Milliseconds, TimeOrigin::Now).expect("valid");
            let asked_us = u128::from(tick) * 1000 + u128::from(micros) + ttl as u128 * 1000;
            let given_us = u128::from(deadline) * 1000;
            prop_assert!(given_us >= asked_us);
            prop_assert!(given_us < asked_us + 1000);
            prop_assert_eq!(now.remaining_ms(deadline), ttl);
        }

        #[test]
        fn an_absolute_deadline_reads_back_exactly(
            tick in (1_u64 << 40)..(1 << 50), micros in 0_u32..1000, wall in 1_i64..i64::MAX,
        ) {
            let now = at(tick, micros);
            let deadline = now.deadline(wall, Unit::Milliseconds, TimeOrigin::Epoch).expect("valid");
            prop_assert_eq!(now.reached(deadline), wall <= WALL);
            if deadline > 0 {
                prop_assert_eq!(now.wall_of(deadline), wall);
            }
        }

        #[test]
        fn no_number_panics(
            number in any::<i64>(), tick in any::<u64>(), wall in any::<i64>(), deadline in any::<u64>(),
            micros in 0_u32..1000,
        ) {
            let time = Time { tick, micros, wall_offset_ms: wall };
            let now = Now { tick, micros: micros.into(), time };
            for unit in [Unit::Seconds, Unit::Milliseconds] {
                for base in [TimeOrigin::Now, TimeOrigin::Epoch] {
                    if let Some(deadline) = now.deadline(number, unit, base) {
                        prop_assert!(now.remaining_ms(deadline) >= 0);
                        prop_assert!(now.wall_of(deadline) >= 0);
                    }
                }
            }
            prop_assert!(now.remaining_ms(deadline) >= 0);
            prop_assert!(now.wall_of(deadline) >= 0);
            now.lateness_us(deadline);
            let _ = Time { tick, micros, wall_offset_ms: wall }.wall_ms();
        }
    }
}
