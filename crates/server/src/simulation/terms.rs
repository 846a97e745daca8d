//! Draws the settings of an episode's server: each limit is on in some episodes, alone or with
//! others.

use tidewheel_keyspace::{NotifyFlags, Policy};
use tidewheel_oracle::Dice;

use crate::config::{OutputLimit, Settings};

/// The settings that are drawn for an episode.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Terms {
    pub(super) shards: usize,
    /// Clients ask for passwords, and take them away.
    pub(super) passwords: bool,
    /// The seconds that a client may be silent; 0 = for ever.
    pub(super) timeout_s: u64,
    /// `maxmemory`; 0 = none.
    pub(super) max_memory: u64,
    pub(super) victims: Victims,
    /// Output that a client may leave unread; 0 = no limit.
    pub(super) output_max: u64,
    /// Commands with a few arguments run on a thread of their own.
    pub(super) long: bool,
}

/// The keys that may be evicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Victims {
    #[default]
    None,
    WithDeadline,
    All,
}

impl Terms {
    pub(super) fn roll(dice: &mut Dice) -> Self {
        let mut terms = Self {
            shards: 1 << dice.below(4),
            ..Self::default()
        };
        terms.passwords = dice.once_in(4);
        if dice.once_in(4) {
            terms.timeout_s = 1;
        }
        if dice.once_in(4) {
            terms.max_memory = 5_000;
            terms.victims = [
                Victims::None,
                Victims::WithDeadline,
                Victims::All,
                Victims::All,
            ][dice.below(4)];
        }
        if dice.once_in(4) {
            terms.output_max = 20_000;
        }
        terms.long = dice.once_in(4);
        terms
    }

    pub(super) fn settings(&self) -> Settings {
        let limit = OutputLimit {
            hard: self.output_max,
            soft: 0,
            soft_seconds: 0,
        };
        let mut settings = Settings {
            shards: self.shards,
            databases: 3,
            notify: NotifyFlags::parse(b"KA").expect("two classes"),
            timeout_s: self.timeout_s,
            max_memory: self.max_memory,
            max_memory_policy: self.victims.policy(),
            ..Settings::default()
        };
        settings.output_limits.normal = limit;
        settings.output_limits.pubsub = limit;
        settings
    }
}

impl Victims {
    fn policy(self) -> Policy {
        match self {
            Self::None => Policy::NoEviction,
            Self::WithDeadline => Policy::VolatileLru,
            Self::All => Policy::AllKeysLru,
        }
    }

    pub(super) fn include(self, deadline: Option<u64>) -> bool {
        match self {
            Self::None => false,
            Self::WithDeadline => deadline.is_some(),
            Self::All => true,
        }
    }
}
