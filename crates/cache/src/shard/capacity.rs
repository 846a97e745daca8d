//! One capacity for all shards: weight is lent to them in portions.
//!
//! A shard may hold as much weight as it was lent. It borrows when it grows and gives back what it
//! has not used for long; when nothing is left to lend, it evicts. So no shard has a share of its
//! own by which an entry could be refused: an entry heavier than what its shard was lent takes from
//! the others.
//!
//! The capacity may change. When it shrinks, the difference is a *debt*: shards give weight back
//! until the debt is settled, and nothing is lent before that. So lent and free weight together are
//! always the capacity plus the debt.

use crate::sync::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// The number of portions in a shard's even share.
const PORTIONS: u64 = 16;

/// The cache's capacity: what of it is not lent.
pub(crate) struct Account {
    is_bounded: bool,
    shards: u64,
    capacity: AtomicU64,
    free: AtomicU64,
    debt: AtomicU64,
    portion: AtomicU64,
}

impl Account {
    /// `None` for no bound.
    pub(crate) fn new(capacity: Option<u64>, shards: usize) -> Self {
        let shards = shards as u64;
        Self {
            is_bounded: capacity.is_some(),
            shards,
            capacity: AtomicU64::new(capacity.unwrap_or(u64::MAX)),
            free: AtomicU64::new(capacity.unwrap_or(u64::MAX)),
            debt: AtomicU64::new(0),
            portion: AtomicU64::new(portion(capacity.unwrap_or(0), shards)),
        }
    }

    #[inline]
    pub(crate) fn capacity(&self) -> Option<u64> {
        self.is_bounded.then(|| self.capacity.load(Relaxed))
    }

    /// Changes the capacity of a bounded cache. If it has shrunk, there is a [debt](Self::debt)
    /// from now on.
    pub(crate) fn set_capacity(&self, capacity: u64) {
        let old = self.capacity.swap(capacity, Relaxed);
        self.portion.store(portion(capacity, self.shards), Relaxed);
        if capacity >= old {
            self.give_back(capacity - old);
            return;
        }
        self.debt.fetch_add(old - capacity, SeqCst);
        self.settle();
    }

    /// Settles the debt with free weight. Nothing is lent as long as there is a debt.
    fn settle(&self) {
        while self.debt() > 0 {
            let unlent = take(&self.free, self.debt());
            let settled = take(&self.debt, unlent);
            if unlent == settled {
                return;
            }
            // Another thread has settled it meanwhile.
            self.free.fetch_add(unlent - settled, SeqCst);
        }
    }

    /// Returns the weight that shards must still give back after the capacity shrank.
    pub(crate) fn debt(&self) -> u64 {
        self.debt.load(SeqCst)
    }

    /// Returns the weight that is lent to no shard.
    pub(crate) fn free(&self) -> u64 {
        self.free.load(Relaxed)
    }

    /// Returns the weight that each shard is lent at first.
    pub(crate) fn first_loan(&self) -> u64 {
        if self.is_bounded { 0 } else { u64::MAX }
    }

    /// Returns whether a shard may borrow now.
    #[inline]
    pub(crate) fn may_lend(&self) -> bool {
        self.free.load(Relaxed) > 0 && self.debt() == 0
    }

    /// Borrows `need`, or a portion if that is more; returns what could be had, which may be less.
    pub(crate) fn borrow(&self, need: u64) -> u64 {
        if !self.may_lend() {
            return 0;
        }
        let want = need.max(self.portion.load(Relaxed));
        take(&self.free, want)
    }

    /// Returns the part of a loan that a shard should give back when it uses `used` of it: all that
    /// it does not use, as long as there is a debt.
    pub(crate) fn surplus(&self, lent: u64, used: u64) -> u64 {
        if !self.is_bounded {
            return 0;
        }
        let debt = self.debt();
        if debt > 0 {
            return debt.min(lent.saturating_sub(used));
        }
        let portion = self.portion.load(Relaxed);
        let keep = used + portion;
        if lent > keep + portion {
            lent - keep
        } else {
            0
        }
    }

    /// Takes back what a shard does not need.
    pub(crate) fn give_back(&self, weight: u64) {
        self.free.fetch_add(weight, SeqCst);
        // After that. A thread that shrinks the capacity adds the debt and then looks at what is
        // free: one of the two settles it.
        self.settle();
    }
}

fn portion(capacity: u64, shards: u64) -> u64 {
    (capacity / (shards * PORTIONS)).max(1)
}

/// Takes as much as there is, up to `want`.
fn take(from: &AtomicU64, want: u64) -> u64 {
    let mut got = 0;
    let _ = from.fetch_update(SeqCst, SeqCst, |left| {
        got = left.min(want);
        Some(left - got)
    });
    got
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

    /// Weight that was given back just as the capacity shrank was lent again, and the cache stayed
    /// too large.
    #[test]
    fn nothing_is_free_while_there_is_a_debt_even_if_weight_is_given_back_meanwhile() {
        for _ in 0..200 {
            let account = Account::new(Some(1000), 4);
            let lent = account.borrow(1000);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| (0..25).for_each(|_| account.give_back(20)));
                }
                scope.spawn(|| [900, 500, 700, 100].map(|size| account.set_capacity(size)));
            });
            assert_eq!((lent, account.free(), account.debt()), (1000, 100, 0));
        }
    }

    #[test]
    fn what_is_given_back_pays_first_for_a_capacity_that_has_shrunk() {
        let account = Account::new(Some(1000), 4);
        let lent = account.borrow(900);
        account.set_capacity(300);
        assert_eq!((lent, account.free(), account.debt()), (900, 0, 600));
        account.give_back(650);
        assert_eq!((account.free(), account.debt()), (50, 0));
        account.set_capacity(100);
        assert_eq!((account.free(), account.debt()), (0, 150));
        account.set_capacity(1100);
        assert_eq!((account.free(), account.debt()), (850, 0));
    }
}
