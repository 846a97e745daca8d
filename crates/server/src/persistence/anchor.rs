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

const US_PER_MS: u64 = 1_000;

/// The moment at which a tick began.
///
/// In each process ticks begin with the wall clock's milliseconds. So between two of these moments
/// are whole milliseconds, also if they are of two processes, and rounding to them takes away
/// nothing but the inexactness of the readings. With less than microseconds kept, a key's time to
/// live would change by up to a millisecond with each restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anchor {
    wall_ms: i64,
    /// Microseconds since the start of the machine, and which start it was.
    boot: Option<(u64, String)>,
}

impl Anchor {
    /// Of a time that this clock has shown.
    pub(crate) fn new(clock: &Clock, time: Time) -> Self {
        Self {
            wall_ms: time.wall_ms(),
            boot: clock.tick_to_boot_us(time.tick).zip(clock.boot_id()),
        }
    }

    pub(super) fn of(wall_ms: i64, boot_us: u64, boot: &str) -> Self {
        let boot = (!boot.is_empty()).then(|| (boot_us, boot.to_owned()));
        Self { wall_ms, boot }
    }

    pub(super) fn wall_ms(&self) -> i64 {
        self.wall_ms
    }

    /// As the file's field says it.
    pub(super) fn text(&self) -> String {
        match &self.boot {
            Some((us, id)) => {
                let (ms, us) = (us / US_PER_MS, us % US_PER_MS);
                format!("{} {ms}.{us:03} {id}", self.wall_ms)
            }
            None => self.wall_ms.to_string(),
        }
    }

    /// Reads the field. `None` if it says nothing.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(text).ok()?.split(' ');
        let wall_ms = words.next()?.parse().ok()?;
        let boot = words.next().and_then(read_us);
        let boot = boot.zip(words.next().map(str::to_owned));
        Some(Self { wall_ms, boot })
    }

    /// When a snapshot was taken, by what it says of itself. Those of other servers say the second.
    pub(super) fn of_snapshot<'f>(field: impl Fn(&str) -> Option<&'f [u8]>) -> Option<Self> {
        if let Some(anchor) = field(FIELD).and_then(Self::read) {
            return Some(anchor);
        }
        let seconds = std::str::from_utf8(field("ctime")?).ok()?;
        let seconds: i64 = seconds.parse().ok()?;
        Some(Self::of(seconds.checked_mul(1_000)?, 0, ""))
    }

    /// Milliseconds from this moment to a later one; 0 if it is not later.
    pub(super) fn until(&self, later: &Self) -> u64 {
        if let (Some((from, was)), Some((to, is))) = (&self.boot, &later.boot)
            && was == is
        {
            return (to.saturating_sub(*from) + US_PER_MS / 2) / US_PER_MS;
        }
        u64::try_from(later.wall_ms.saturating_sub(self.wall_ms)).unwrap_or(0)
    }

    /// Wall time less engine time by which the deadlines of the file are read at a tick of engine
    /// time, so that what was left then, less what has passed, is left now.
    pub(super) fn offset_at(&self, now: &Self, tick: u64) -> i64 {
        let written_at = tick.saturating_sub(self.until(now));
        self.wall_ms.saturating_sub_unsigned(written_at)
    }
}

/// Reads milliseconds that may have three decimals.
fn read_us(ms: &str) -> Option<u64> {
    let (ms, us) = ms.split_once('.').unwrap_or((ms, "000"));
    let us = us
        .parse()
        .ok()
        .filter(|of| us.len() == 3 && *of < US_PER_MS)?;
    ms.parse::<u64>()
        .ok()?
        .checked_mul(US_PER_MS)?
        .checked_add(us)
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
        for boot in [None, Some((77_005, "a-b"))] {
            let anchor = anchor(-5, boot);
            assert_eq!(Anchor::read(anchor.text().as_bytes()), Some(anchor));
        }
        let older = Anchor::read(b"-5 77 a-b");
        assert_eq!(older, Some(anchor(-5, Some((77_000, "a-b")))));
        for text in [&b""[..], b"x", b"\xff 1 a"] {
            assert_eq!(Anchor::read(text), None);
        }
    }

    #[test]
    fn a_step_of_the_wall_clock_does_not_count_while_the_machine_runs() {
        let hour = 3_600_000;
        let written = anchor(1_000_000, Some((500_000, "one")));
        let tick = 1 << 40;
        for wall_ms in [1_000_250, 1_000_250 + hour, 1_000_250 - hour] {
            let now = anchor(wall_ms, Some((749_993, "one")));
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

    /// Each restart took the time from two clocks at two moments, in whole milliseconds: deadlines
    /// moved by up to one each time, and by more if the thread lost its core in between.
    #[test]
    fn engine_time_goes_on_where_it_was_over_a_thousand_restarts() {
        let (mut clock, mut tick) = (Clock::start(), 0);
        let began_ns = clock.tick_to_monotonic_ns(clock.now().tick + 1);
        let began = clock.now().tick + 1;
        for i in 0..1_000_u64 {
            let time = clock.now();
            let was = Anchor::new(&clock, time);
            tick = time.tick;
            (0..i * 7).for_each(|_| std::hint::spin_loop());
            clock = Clock::start();
            let time = clock.now();
            let passed = was.until(&Anchor::new(&clock, time));
            clock.go_on(time.tick, tick + passed);
        }
        let is_ns = clock.tick_to_monotonic_ns(began);
        let off = is_ns.abs_diff(began_ns);
        assert!(off < 500_000, "tick {tick} is {off} ns off");
    }
}
