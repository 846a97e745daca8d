//! Kin of bug 1: whatever is decided about one state and done to another. A read that moves a
//! deadline decides under one lock and acts under the next.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Cache, Expiry, Ttl};

use super::stage::{Intruder, MINUTE, MS, SHORT, StageClock, Valid, tidewheel};

/// Readings of the clock that one operation may take, and more.
const READINGS: u32 = 8;

/// A value that is read once has ten more milliseconds, unless it is the fresh one.
struct DiesSoonAfterARead;

impl Expiry<u32, &'static str> for DiesSoonAfterARead {
    fn expire_after_create(&self, _: &u32, _: &&'static str) -> Option<Duration> {
        Some(MINUTE)
    }

    fn expire_after_read(
        &self,
        _: &u32,
        value: &&'static str,
        left: Option<Duration>,
    ) -> Option<Duration> {
        if *value == "old" { Some(10 * MS) } else { left }
    }
}

#[test]
fn a_read_of_the_old_value_does_not_move_the_deadline_of_a_fresh_one() {
    for reading in 0..READINGS {
        let clock = StageClock::new();
        let cache: Cache<u32, &'static str> =
            tidewheel(&clock).expire_after(DiesSoonAfterARead).valid();
        cache.insert(1, "old");
        let writer = Arc::new(Mutex::new(None));
        clock.at_reading(reading, {
            let (cache, writer) = (cache.clone(), Arc::clone(&writer));
            move || {
                let intruder =
                    Intruder::enter(move || cache.insert_with_ttl(1, "fresh", 5 * MINUTE));
                let _ = intruder.is_done_within(SHORT);
                *writer.lock().expect("whole") = Some(intruder);
            }
        });
        cache.get(&1);
        let writer = writer.lock().expect("whole").take();
        let Some(writer) = writer else {
            clock.forget();
            continue;
        };
        writer.leave();
        assert_eq!(cache.peek(&1), Some("fresh"), "reading {reading}");
        assert_eq!(
            cache.ttl(&1),
            Ttl::Left(5 * MINUTE),
            "the writer steps in at reading {reading}"
        );
        cache.validate();
    }
}
