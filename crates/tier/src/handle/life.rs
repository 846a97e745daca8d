//! A value's life in both tiers, and the result of a loader.

use std::time::Duration;

/// The life of a value, and its other properties when it is stored.
///
/// ```
/// use std::time::Duration;
/// use tidewheel_tier::Life;
///
/// let price = Life::ttl(Duration::from_secs(60))
///     .fresh_for(Duration::from_secs(45))
///     .stale_for(Duration::from_secs(600))
///     .tag("prices");
/// # let _ = price;
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Life {
    pub(crate) ttl: Option<Duration>,
    pub(crate) fresh_for: Option<Duration>,
    pub(crate) stale_for: Option<Duration>,
    pub(crate) tags: Vec<String>,
}

impl Life {
    /// A life as the tier was configured.
    #[must_use]
    pub fn configured() -> Self {
        Self::default()
    }

    /// A life of so much time, less the tier's jitter. Zero: the value is for those who wait for
    /// it, and not stored.
    #[must_use]
    pub fn ttl(ttl: Duration) -> Self {
        Self {
            ttl: Some(ttl),
            ..Self::default()
        }
    }

    /// The soft deadline, in all processes: from then on one of them loads it again, and the others
    /// answer the old value.
    #[must_use]
    pub fn fresh_for(mut self, fresh_for: Duration) -> Self {
        self.fresh_for = Some(fresh_for);
        self
    }

    /// Keeps it for so long after its end for the case that a loader fails, in any process.
    #[must_use]
    pub fn stale_for(mut self, stale_for: Duration) -> Self {
        self.stale_for = Some(stale_for);
        self
    }

    /// A tag by which it can be invalidated together with others. A value with more than 32, or
    /// with one of more than 65,535 bytes, is not stored. The empty tag is none.
    ///
    /// The engine keeps the version of each tag for 30 days, in some 100 bytes: tags are for
    /// thousands, not one for each session.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        let tag = tag.into();
        if !tag.is_empty() && !self.tags.contains(&tag) {
            self.tags.push(tag);
        }
        self
    }
}

/// A value with a life of its own, from a loader. Plain values convert into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given<V> {
    /// The value.
    pub value: V,
    /// The life of the value.
    pub life: Life,
}

impl<V> Given<V> {
    /// A value with its life.
    #[must_use]
    pub fn new(value: V, life: Life) -> Self {
        Self { value, life }
    }
}

impl<V> From<V> for Given<V> {
    fn from(value: V) -> Self {
        Self::new(value, Life::configured())
    }
}
