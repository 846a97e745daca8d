//! Engine time from clock time: freeze, resume and shift every deadline by changing one offset.

/// Maps a clock that only runs forward to engine time.
///
/// Deadlines are engine ticks. Freezing stops engine time, so nothing expires ("the origin is down");
/// resuming goes on where it stopped, so every deadline has moved by the pause. Each is O(1), whatever
/// the number of timers.
///
/// ```
/// use tidewheel_timer::Timeline;
///
/// let mut time = Timeline::new();
/// assert_eq!(time.now(1_000), 1_000);
/// time.freeze(1_000);
/// assert_eq!(time.now(5_000), 1_000);
/// time.resume(5_000);
/// assert_eq!(time.now(5_010), 1_010);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Engine time is clock time minus this.
    behind: u64,
    /// What the clock read at the freeze.
    frozen_at: Option<u64>,
}

impl Timeline {
    /// Engine time that equals clock time.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            behind: 0,
            frozen_at: None,
        }
    }

    /// Engine time at a clock reading, in the clock's ticks. Saturates at 0.
    #[must_use]
    pub fn now(&self, clock: u64) -> u64 {
        self.frozen_at.unwrap_or(clock).saturating_sub(self.behind)
    }

    /// Stops engine time. Does nothing when it is stopped already.
    pub fn freeze(&mut self, clock: u64) {
        self.frozen_at.get_or_insert(clock);
    }

    /// Lets engine time go on from where it stopped. Returns how long it stood still, in ticks: 0 if it
    /// did not, or if the clock reads earlier than at the freeze.
    pub fn resume(&mut self, clock: u64) -> u64 {
        let Some(frozen_at) = self.frozen_at.take() else {
            return 0;
        };
        let pause = clock.saturating_sub(frozen_at);
        self.behind = self.behind.saturating_add(pause);
        pause
    }

    /// Moves every deadline `ticks` later, by holding engine time back; frozen or not.
    pub fn shift(&mut self, ticks: u64) {
        self.behind = self.behind.saturating_add(ticks);
    }

    /// Whether engine time stands still.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen_at.is_some()
    }
}
