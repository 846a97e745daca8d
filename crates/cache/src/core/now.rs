//! Reads the clock for readers, and for callers who hold no shard. A change of a shard gets the
//! time from [its hold](crate::core::change), and a driver from [its step](crate::drive::step).

use std::time::Duration;

use tidewheel_time::{Moment, NEVER};

use crate::cell::ShardCell;
use crate::core::inner::Inner;
use crate::shard::Shard;
use crate::sync::ReadGuard;
use crate::time::Bound;

impl<K, V, S> Inner<K, V, S> {
    /// The time at which a call begins that holds no shard.
    pub(crate) fn now(&self) -> Moment {
        self.time.now()
    }

    /// Locks a shard for reading, and reads the clock under the lock.
    pub(crate) fn read_now<'a>(
        &self,
        cell: &'a ShardCell<K, V>,
    ) -> (ReadGuard<'a, Shard<K, V>>, Moment) {
        let shard = self.read(cell);
        let now = self.time.now();
        (shard, now)
    }

    /// The time, for a look at an entry. Where none has a deadline, the clock is not read.
    #[inline(always)]
    pub(crate) fn time_in(&self, cell: &ShardCell<K, V>) -> Bound {
        if cell.has_deadlines() {
            self.bound()
        } else {
            Bound::NONE
        }
    }

    /// A time that engine time has not passed, for a look at an entry.
    #[inline(always)]
    pub(crate) fn bound(&self) -> Bound {
        self.time.bound()
    }

    /// Returns the tick at which the earliest shard needs the driver.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        let shards = self.shards.iter();
        let next = shards.map(|cell| cell.next_deadline.get()).min();
        next.filter(|next| *next != NEVER)
    }

    /// Returns the time until a tick.
    pub(crate) fn until(&self, tick: u64) -> Duration {
        self.time.now().until(tick)
    }

    /// Returns for how long the earliest deadline has been waiting for the driver.
    pub(crate) fn overdue(&self) -> Duration {
        let next = self.next_deadline();
        let ticks = next.map_or(0, |next| self.time.now().tick().saturating_sub(next));
        Duration::from_millis(ticks)
    }
}
