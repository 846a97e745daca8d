//! What several tests use.

#[cfg(any(feature = "nats", feature = "postgres"))]
pub(crate) mod proxy;
pub(crate) mod watched;

use std::sync::Arc;
use std::time::Duration;

use tidewheel_tasks::{ManualClock, MemoryStore};

/// A worker's store falls silent, and what another one schedules meanwhile runs soon after.
#[cfg(any(feature = "nats", feature = "postgres"))]
pub(crate) fn goes_on_after_silence(
    store: impl tidewheel_tasks::TaskStore + Clone,
    direct: &impl tidewheel_tasks::TaskStore,
    proxy: &proxy::Proxy,
) {
    use tidewheel_tasks::{Clock, SystemClock, Task, Worker, wait};
    let clock = SystemClock::new();
    let (told, runs) = std::sync::mpsc::channel();
    let worker = Worker::builder(store.clone()).threads(2);
    let worker = worker.start(move |run| {
        let _ = told.send(run.id().to_owned());
    });
    let worker = worker.expect("a worker");
    wait(direct.schedule(Task::new("before", ""))).expect("scheduled");
    assert_eq!(runs.recv().as_deref(), Ok("before"));
    proxy.silence();
    wait(direct.schedule(Task::new("after", ""))).expect("scheduled");
    let begun = clock.now();
    let own = wait(store.schedule(Task::new("own", "").after(Duration::from_secs(600))));
    assert!(clock.now() - begun < Duration::from_secs(15), "{own:?}");
    let after = runs.recv_timeout(Duration::from_secs(25));
    assert_eq!(after.as_deref(), Ok("after"));
    let stopped = worker.stop(Duration::from_secs(5));
    assert_eq!(stopped.left, 0);
}

pub(crate) const MS: fn(u64) -> Duration = Duration::from_millis;

/// The wall time at which virtual engines begin.
pub(crate) const EPOCH: Duration = Duration::from_secs(1_700_000_000);

/// A clock that is moved by hand, and an engine by its wall time.
pub(crate) fn engine() -> (ManualClock, Arc<MemoryStore>) {
    let clock = ManualClock::new();
    clock.set_wall(EPOCH);
    let store = MemoryStore::with_clock(clock.clone());
    (clock, Arc::new(store))
}

/// Random numbers of a seed.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % end
    }

    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
