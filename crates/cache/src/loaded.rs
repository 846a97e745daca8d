//! A loader's result: a value with its lifetime, or an absence.

use std::time::Duration;

use crate::lifetime::Lifetime;

/// A value with a lifetime of its own, as the loader of
/// [`Fetch::load_with`](crate::Fetch::load_with) returns it. Plain values convert
/// into it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded<V> {
    /// The value.
    pub value: V,
    /// The lifetime of the value.
    pub lifetime: Lifetime,
    pub(crate) kind: LoadedKind,
}

/// The treatment of a value that was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadedKind {
    /// The value is stored.
    New,
    /// The value is the old one, whose entry lives on.
    Unchanged,
    /// The value is only for the caller whose loader returned it.
    Private,
}

impl<V> Loaded<V> {
    /// A value with its lifetime.
    #[must_use]
    pub fn new(value: V, lifetime: Lifetime) -> Self {
        Self::of_kind(value, lifetime, LoadedKind::New)
    }

    /// The old value that the loader was given, which has not changed: HTTP's "304 Not Modified".
    /// The entry stays as it is, and lives on for this lifetime, from now on.
    ///
    /// ```
    /// use std::time::Duration;
    /// # fn main() -> Result<(), tidewheel::BuildError> {
    /// use tidewheel::{Cache, Lifetime, Loaded};
    ///
    /// #[derive(Clone)]
    /// struct Page { etag: u64, text: String }
    ///
    /// fn ask(_: &str, etag: Option<u64>) -> (u16, u64) { (if etag == Some(7) { 304 } else { 200 }, 7) }
    /// let cache = Cache::<String, Page>::builder().max_capacity(9).no_default_ttl().stale_on_error(Duration::MAX).build()?;
    /// let minute = Lifetime::ttl(Duration::from_secs(60));
    /// let page = cache.fetch_by_ref("/").load_with_old(|old: Option<Page>| {
    ///     let (status, etag) = ask("/", old.as_ref().map(|old| old.etag));
    ///     match old {
    ///         Some(old) if status == 304 => Loaded::unchanged(old, minute),
    ///         _ => Loaded::new(Page { etag, text: "<p>".into() }, minute),
    ///     }
    /// });
    /// assert_eq!(page.value.etag, 7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Nobody else sees a change: no event tells that a value was replaced, nothing counts as
    /// inserted, and the [version](crate::Cache::version) stays. So do the tags, unless the
    /// lifetime names others. Those who wait get the value. If the entry has left while the loader
    /// ran, the value is stored again; but not if the key was written or removed, or its tag
    /// invalidated: then it is for the callers alone, as any value of a superseded load.
    ///
    /// It is for a loader that was given the old value:
    /// [`Fetch::load_with_old`](crate::Fetch::load_with_old),
    /// [`Builder::refresh_with_old`](crate::Builder::refresh_with_old) and their async forms.
    /// Elsewhere, and where there was no old value, it is as [`Loaded::new`].
    #[doc(
        alias = "not_modified",
        alias = "304",
        alias = "etag",
        alias = "revalidate"
    )]
    #[must_use]
    pub fn unchanged(old: V, lifetime: Lifetime) -> Self {
        Self::of_kind(old, lifetime, LoadedKind::Unchanged)
    }

    /// A value for one caller alone, such as an HTTP answer with `no-store`: the one whose loader
    /// returns it. It is not stored, and what was there before goes. Those who have waited for it
    /// do not get it: each runs its own loader, beside the others, and what that returns is not
    /// stored either.
    ///
    /// From a refresher it is no value for anybody: the old one goes. Where there is no loader, as
    /// in a [`Compute`](crate::Compute), it is a value with a time to live of zero.
    #[must_use]
    pub fn private(value: V) -> Self {
        let lifetime = Lifetime::ttl(Duration::ZERO).stale_for(Duration::ZERO);
        Self::of_kind(value, lifetime, LoadedKind::Private)
    }

    fn of_kind(value: V, lifetime: Lifetime, kind: LoadedKind) -> Self {
        Self {
            value,
            lifetime,
            kind,
        }
    }
}

impl<V> From<V> for Loaded<V> {
    fn from(value: V) -> Self {
        Self::of_kind(value, Lifetime::default(), LoadedKind::New)
    }
}

/// An origin's answer for a key: a value, or an absence and how long it is remembered.
///
/// A loader or refresher that returns it says with each answer what
/// [`Builder::negative_ttl`](crate::Builder::negative_ttl) says for all: HTTP's `max-age` of a 404.
///
/// ```
/// use std::time::Duration;
/// use tidewheel::{Cache, Presence};
///
/// # fn main() -> Result<(), tidewheel::BuildError> {
/// let cache = Cache::<String, String>::builder()
///     .max_capacity(1000)
///     .time_to_live(Duration::from_secs(60))
///     .negative_ttl(Duration::from_secs(1))
///     .build()?;
/// for _ in 0..3 {
///     let absent = || Presence::AbsentFor(Duration::from_secs(600));
///     let page = cache.fetch_by_ref("/nowhere").load_with(absent);
///     assert_eq!(page.value, None);
/// }
/// assert_eq!(cache.stats().loads, 1);
/// # Ok(())
/// # }
/// ```
///
/// Absences are remembered by caches that were built with
/// [`negative_ttl`](crate::Builder::negative_ttl) or [`error_ttl`](crate::Builder::error_ttl)
/// alone: `negative_ttl(Duration::ZERO)` is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Presence<V> {
    /// The origin has a value.
    Present(Loaded<V>),
    /// The origin has none, which is remembered for
    /// [`Builder::negative_ttl`](crate::Builder::negative_ttl).
    Absent,
    /// The origin has none, which is remembered for so long; zero: not at all.
    AbsentFor(Duration),
}

impl<V> From<Loaded<V>> for Presence<V> {
    fn from(loaded: Loaded<V>) -> Self {
        Self::Present(loaded)
    }
}

impl<V> From<Option<Loaded<V>>> for Presence<V> {
    fn from(loaded: Option<Loaded<V>>) -> Self {
        loaded.map_or(Self::Absent, Self::Present)
    }
}
