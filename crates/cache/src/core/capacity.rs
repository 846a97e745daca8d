//! One capacity for all shards: weight is lent to them in portions.
//!
//! A shard may hold as much weight as it was lent. It borrows when it grows and gives back what it has
//! not used for long; when nothing is left to lend, it evicts. So no shard has a share of its own by
//! which an entry could be refused: an entry heavier than what its shard was lent takes from the others.

use crate::sync::{AtomicU64, Ordering::Relaxed};

/// Of how many portions a shard's even share consists.
const PORTIONS: u64 = 16;

/// The cache's capacity: what of it is not lent.
#[derive(Debug)]
pub(crate) struct Account {
    capacity: Option<u64>,
    free: AtomicU64,
    portion: u64,
}

impl Account {
    /// `None` for no bound.
    pub(crate) fn new(capacity: Option<u64>, shards: usize) -> Self {
        Self {
            capacity,
            free: AtomicU64::new(capacity.unwrap_or(u64::MAX)),
            portion: (capacity.unwrap_or(0) / (shards as u64 * PORTIONS)).max(1),
        }
    }

    pub(crate) fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    /// What is lent to nobody.
    pub(crate) fn free(&self) -> u64 {
        self.free.load(Relaxed)
    }

    /// What a shard is lent to begin with.
    pub(crate) fn first_loan(&self) -> u64 {
        match self.capacity {
            Some(_) => 0,
            None => u64::MAX,
        }
    }

    /// Borrows `need`, or a portion if that is more; returns what could be had, which may be less.
    pub(crate) fn borrow(&self, need: u64) -> u64 {
        if self.free.load(Relaxed) == 0 {
            return 0;
        }
        let want = need.max(self.portion);
        let mut got = 0;
        let _ = self.free.fetch_update(Relaxed, Relaxed, |free| {
            got = free.min(want);
            Some(free - got)
        });
        got
    }

    /// How much of a loan is worth giving back, when so much of it is used.
    pub(crate) fn surplus(&self, lent: u64, used: u64) -> u64 {
        if self.capacity.is_none() {
            return 0;
        }
        let keep = used + self.portion;
        if lent > keep + self.portion {
            lent - keep
        } else {
            0
        }
    }

    /// Takes back what a shard does not need.
    pub(crate) fn give_back(&self, weight: u64) {
        self.free.fetch_add(weight, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lent_never_exceeds_the_capacity() {
        let account = Account::new(Some(1000), 4);
        let lent: Vec<u64> = (0..200).map(|_| account.borrow(7)).collect();
        assert_eq!(lent.iter().sum::<u64>(), 1000);
        assert_eq!(account.borrow(1), 0);
        account.give_back(10);
        assert_eq!(account.borrow(100), 10);
    }
}
