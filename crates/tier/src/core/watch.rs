//! A watch says for how long an entry may be believed.

use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};

use tidewheel_time::{Moment, Readings};

use super::faults::fault;
use super::server::ServerId;

/// The watch is over, for good.
const ENDED: u64 = 0;

/// The watch has begun, and nothing has been heard yet.
const BEGUN: u64 = 1;

/// An unbroken time during which a connection tells of every change in a primary.
///
/// All entries that were read during it share this one number: the time until which they may be
/// believed. A watch that has ended never begins again; its successor is another object, so no
/// entry can be taken for one that was read later.
///
/// The number is kept twice: by the stream's clock, and as a tick of the first tier's, which looks
/// at each hit whether it has come.
#[derive(Debug)]
pub(crate) struct Watch {
    until: AtomicU64,
    tick: AtomicU64,
    /// The server whose changes are told; `None` if it is no connection's watch.
    server: Option<ServerId>,
}

impl Watch {
    /// A watch of a server that has just begun: believed once its first heartbeat is answered.
    pub(crate) fn begin(server: ServerId) -> Arc<Self> {
        Self::of(Moment(BEGUN), 0, Some(server))
    }

    /// A watch that is never believed.
    pub(crate) fn never() -> Arc<Self> {
        Self::of(Moment(ENDED), 0, None)
    }

    fn of(until: Moment, tick: u64, server: Option<ServerId>) -> Arc<Self> {
        Arc::new(Self {
            until: AtomicU64::new(until.0),
            tick: AtomicU64::new(tick),
            server,
        })
    }

    /// A watch that nothing ends but [`end`](Self::end).
    pub(crate) fn forever() -> Arc<Self> {
        Self::of(Moment(u64::MAX), u64::MAX, None)
    }

    /// True if answers of this server may be kept under the watch. Where no connection watches, any
    /// server's may.
    pub(crate) fn is_of(&self, server: Option<ServerId>) -> bool {
        fault!(H13) || self.server.is_none() || self.server == server
    }

    /// The first tier's tick until which it is believed.
    #[inline]
    pub(crate) fn tick(&self) -> u64 {
        self.tick.load(Acquire)
    }

    /// True if entries that were read during it may be believed now. The clock is read exactly only
    /// near the end.
    #[inline]
    pub(crate) fn is_believed(&self, clock: &Readings) -> bool {
        let until = self.until.load(Acquire);
        if until <= BEGUN {
            return false;
        }
        let (low, high) = clock.bounds();
        high.0 < until || (low.0 < until && clock.now().0 < until)
    }

    /// Extends it: it is believed until then, unless it has ended or is believed for longer.
    ///
    /// Only the holder of the stream's lock extends or ends a watch.
    pub(crate) fn extend(&self, until: Moment, tick: u64) {
        let longer = |old| (old != ENDED && until.0 > old).then_some(until.0);
        if self.until.fetch_update(AcqRel, Acquire, longer).is_ok() {
            self.tick.fetch_max(tick, AcqRel);
        }
    }

    /// Ends it: nothing that was read during it is believed any more.
    pub(crate) fn end(&self) {
        self.until.store(ENDED, Release);
        self.tick.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidewheel_time::ManualClock;

    use super::*;

    #[test]
    fn a_watch_is_believed_until_its_time_and_never_again_once_ended() {
        let clock = ManualClock::new();
        let readings = Readings::given(Box::new(clock.clone()));
        let watch = Watch::begin(ServerId::of(b""));
        assert!(!watch.is_believed(&readings), "nothing was heard");
        watch.extend(Moment(2_000_000), 2);
        watch.extend(Moment(1_000_000), 1);
        assert!(watch.is_believed(&readings));
        assert_eq!(watch.tick(), 2);
        clock.advance(Duration::from_millis(2));
        assert!(!watch.is_believed(&readings));
        watch.extend(Moment(9_000_000), 9);
        watch.end();
        watch.extend(Moment(9_000_000), 9);
        assert!(!watch.is_believed(&readings));
        assert_eq!(watch.tick(), 0);
    }
}
