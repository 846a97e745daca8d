//! The rate at which something was true lately: a fraction, in which old outcomes fade.

/// Outcomes before a rate is believed.
const ENOUGH: u32 = 32;

/// Counts outcomes; at the end of its window it halves them, so that old ones fade.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    yes: u32,
    all: u32,
}

impl Rate {
    /// Counts one outcome. `window` is at least twice [`ENOUGH`] and at most 2^16.
    pub(super) fn count(&mut self, yes: bool, window: u32) {
        self.all += 1;
        self.yes += u32::from(yes);
        if self.all >= window {
            self.all /= 2;
            self.yes /= 2;
        }
    }

    /// The fraction in parts of `whole`, at most 2^16; `None` before there were enough outcomes.
    pub(super) fn of(self, whole: u16) -> Option<u32> {
        // Windows are at most 2^16 outcomes.
        (self.all >= ENOUGH).then(|| self.yes * u32::from(whole) / self.all)
    }

    /// Returns whether there were enough outcomes, and less than `percent` of them were true. No
    /// division.
    pub(super) fn is_below(self, percent: u32) -> bool {
        self.all >= ENOUGH && self.yes * 100 < self.all * percent
    }

    /// Returns whether there were enough outcomes, and at least `percent` of them were true.
    pub(super) fn reaches(self, percent: u32) -> bool {
        self.all >= ENOUGH && !self.is_below(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_not_believed_early_and_follows_a_change() {
        let mut rate = Rate::default();
        for _ in 1..ENOUGH {
            rate.count(true, 128);
        }
        assert_eq!(rate.of(100), None);
        assert!(!rate.is_below(101) && !rate.reaches(0), "not believed yet");
        rate.count(true, 128);
        assert_eq!(rate.of(100), Some(100));
        assert!(!rate.is_below(100) && rate.reaches(100));
        for _ in 0..4 * 128 {
            rate.count(false, 128);
        }
        assert!(rate.of(100) < Some(10), "{rate:?}");
        assert!(rate.is_below(10), "{rate:?}");
    }
}
