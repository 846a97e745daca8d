//! How much time has passed since a file was written.
//!
//! The clock that runs from the start of the machine tells it exactly, also while the machine is
//! suspended, and whatever is done to the wall clock. After a start of the machine, and on another
//! one, the wall clock must do.

use tidewheel_keyspace::Time;

use crate::time::clock::Clock;

/// The field of the file that has it.
pub(super) const FIELD: &str = "tidewheel-anchor";

/// The field with engine time at that moment.
pub(super) const TICK: &str = "tidewheel-tick";

/// The moment at which a file was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor {
    wall_ms: i64,
    /// Milliseconds since the start of the machine, and which start it was.
    boot: Option<(u64, String)>,
}

impl Anchor {
    /// A moment at which the clock has just been read.
    pub(super) fn now(clock: &Clock, time: Time) -> Self {
        Self {
            wall_ms: time.wall_ms(),
            boot: clock.since_boot_ms().zip(clock.boot_id()),
        }
    }

    pub(super) fn of(wall_ms: i64, boot_ms: u64, boot: &str) -> Self {
        let boot = (!boot.is_empty()).then(|| (boot_ms, boot.to_owned()));
        Self { wall_ms, boot }
    }

    pub(super) fn wall_ms(&self) -> i64 {
        self.wall_ms
    }

    /// As the file's field says it.
    pub(super) fn text(&self) -> String {
        match &self.boot {
            Some((ms, id)) => format!("{} {ms} {id}", self.wall_ms),
            None => self.wall_ms.to_string(),
        }
    }

    /// Reads the field. `None` if it says nothing.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(text).ok()?.split(' ');
        let wall_ms = words.next()?.parse().ok()?;
        let boot = words.next().and_then(|ms| ms.parse().ok());
        let boot = boot.zip(words.next().map(str::to_owned));
        Some(Self { wall_ms, boot })
    }

    /// Milliseconds from this moment to a later one; 0 if it is not later.
    pub(super) fn until(&self, later: &Self) -> u64 {
        if let (Some((from, was)), Some((to, is))) = (&self.boot, &later.boot)
            && was == is
        {
            return to.saturating_sub(*from);
        }
        u64::try_from(later.wall_ms.saturating_sub(self.wall_ms)).unwrap_or(0)
    }

    /// Wall time less engine time by which the deadlines of the file are read at `time`, so that
    /// what was left then, less what has passed, is left now.
    pub(super) fn wall_offset_ms(&self, clock: &Clock, time: Time) -> i64 {
        self.offset_at(&Self::now(clock, time), time.tick)
    }

    fn offset_at(&self, now: &Self, tick: u64) -> i64 {
        let written_at = tick.saturating_sub(self.until(now));
        self.wall_ms.saturating_sub_unsigned(written_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(wall_ms: i64, boot: Option<(u64, &str)>) -> Anchor {
        let boot = boot.map(|(ms, id)| (ms, id.to_owned()));
        Anchor { wall_ms, boot }
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        for boot in [None, Some((77, "a-b"))] {
            let anchor = anchor(-5, boot);
            assert_eq!(Anchor::read(anchor.text().as_bytes()), Some(anchor));
        }
        for text in [&b""[..], b"x", b"\xff 1 a"] {
            assert_eq!(Anchor::read(text), None);
        }
    }

    #[test]
    fn a_step_of_the_wall_clock_does_not_count_while_the_machine_runs() {
        let hour = 3_600_000;
        let written = anchor(1_000_000, Some((500, "one")));
        let tick = 1 << 40;
        for wall_ms in [1_000_250, 1_000_250 + hour, 1_000_250 - hour] {
            let now = anchor(wall_ms, Some((750, "one")));
            let offset = written.offset_at(&now, tick);
            // What was due a second after the file was written is due in 750 ms.
            let deadline = 1_001_000 - offset;
            assert_eq!(deadline, (1_i64 << 40) + 750, "at {wall_ms}");
        }
    }

    #[test]
    fn after_a_start_of_the_machine_the_wall_clock_must_do_and_never_goes_back() {
        let written = anchor(1_000_000, Some((500, "one")));
        let tick = 1 << 40;
        for (wall_ms, left) in [(1_000_400, 600), (1_005_000, -4_000), (900_000, 1_000)] {
            for now in [anchor(wall_ms, Some((9_999, "two"))), anchor(wall_ms, None)] {
                let offset = written.offset_at(&now, tick);
                assert_eq!(1_001_000 - offset, (1_i64 << 40) + left, "at {wall_ms}");
            }
        }
    }
}
