//! `maxmemory`: evicts a little in each turn while the limit is exceeded, after it was lowered or
//! after a command.
//!
//! If no key may be evicted, an attempt visits every shard in vain. So the next attempt is in the
//! next tick at the earliest. A turn before that tick puts its attempt off, and the loop sleeps no
//! longer than until the tick.

/// Decides in which turns a loop evicts.
#[derive(Debug, Default)]
pub(super) struct Shrinking {
    /// Another attempt would bring the limit nearer, or the limit was changed.
    goes_on: bool,
    /// The tick of the last attempt after which another one would have been in vain.
    in_vain_at: u64,
    /// A turn of that tick wanted to try again.
    put_off: bool,
}

impl Shrinking {
    /// Notes that the limit was changed.
    pub(super) fn limit_changed(&mut self) {
        self.goes_on = true;
    }

    /// Returns true if the next turn evicts again, so the loop must not sleep.
    pub(super) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Returns the tick for which an attempt was put off.
    pub(super) fn next_attempt(&self) -> Option<u64> {
        self.put_off.then_some(self.in_vain_at + 1)
    }

    /// Returns true if this turn must evict. `exceeded`: more than the limit is used, and the
    /// policy allows evictions.
    #[inline]
    pub(super) fn is_due(&mut self, exceeded: bool, now: u64) -> bool {
        self.put_off = exceeded && !self.goes_on && now <= self.in_vain_at;
        (self.goes_on || exceeded) && !self.put_off
    }

    /// Notes an attempt. `goes_on`: another one would bring the limit nearer.
    pub(super) fn attempted(&mut self, goes_on: bool, now: u64) {
        self.goes_on = goes_on;
        if !goes_on {
            self.in_vain_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_nothing_can_be_evicted_only_one_turn_of_each_tick_tries() {
        let mut shrinking = Shrinking::default();
        assert!(shrinking.is_due(true, 7));
        shrinking.attempted(false, 7);
        assert_eq!(shrinking.next_attempt(), None, "nobody wakes for nothing");
        assert!(!shrinking.is_due(true, 7));
        assert_eq!(shrinking.next_attempt(), Some(8));
        assert!(shrinking.is_due(true, 8));
        shrinking.attempted(false, 8);
        assert_eq!(shrinking.next_attempt(), None);
    }

    #[test]
    fn while_something_can_be_evicted_every_turn_tries() {
        let mut shrinking = Shrinking::default();
        assert!(!shrinking.is_due(false, 7));
        shrinking.limit_changed();
        for goes_on in [true, false] {
            assert!(shrinking.goes_on() && shrinking.is_due(true, 7));
            shrinking.attempted(goes_on, 7);
        }
        assert!(!shrinking.goes_on());
    }

    #[test]
    fn after_a_change_of_the_limit_the_next_turn_tries_to_evict() {
        let mut shrinking = Shrinking::default();
        shrinking.attempted(false, 7);
        shrinking.limit_changed();
        assert!(shrinking.is_due(false, 7) && shrinking.is_due(true, 7));
    }
}
