//! A store that may be read without its lock: what its owner does for that.

use std::sync::Arc;

use super::store::TypedStore;
use crate::shared::{Lens, Roots, are_listed, has_room, is_full, is_possible, look_again};

/// Where readers without a lock begin. When it is dropped, they find nothing any more.
#[derive(Debug)]
pub(super) struct Published {
    roots: Arc<Roots>,
    /// True if they are led to what is stored.
    leads: bool,
}

impl Drop for Published {
    fn drop(&mut self) {
        self.roots.clear();
    }
}

impl<K, V> TypedStore<K, V> {
    /// An empty store that may be read without its lock, if that is possible: for keys and values
    /// that are numbers, `bool`, `char`, or arrays of numbers of one of the usual lengths, where
    /// the system can make other threads' stores visible (`membarrier` of Linux).
    ///
    /// Whoever changes it says so: [`begin_change`](Self::begin_change) and
    /// [`end_change`](Self::end_change).
    #[must_use]
    pub fn published() -> Self {
        Self::published_if(are_listed::<K, V>())
    }

    /// As [`published`](Self::published), for types of your own. Zeros need not be one of their
    /// values: a copy that may be of several writes never becomes a value.
    ///
    /// An entry is then stored only between [`begin_change`](Self::begin_change) and
    /// [`end_change`](Self::end_change), or the store panics.
    #[cfg(feature = "bytemuck")]
    #[must_use]
    pub fn published_by_copy() -> Self
    where
        K: bytemuck::NoUninit + Send + Sync,
        V: bytemuck::NoUninit + Send + Sync,
    {
        // No padding, no pointer and no drop is what the trait says. Readers get copies, so the
        // types are `Send`.
        Self::published_if(true)
    }

    fn published_if(plain: bool) -> Self {
        let mut store = Self::new();
        if plain && is_possible() {
            store.publish(Published {
                roots: Arc::default(),
                leads: !is_full(),
            });
        }
        store
    }

    /// From now on entries and index lie on pages of 2 MiB where the system allows (`madvise` of
    /// Linux; elsewhere nothing changes). All stores of the process share them, in blocks of 8 to
    /// 64 KiB. A page without blocks goes back to the system, but for one of them.
    pub fn use_huge_pages(&mut self) {
        self.index.use_huge_pages();
        self.slots.use_huge_pages();
    }

    /// While too much waits for readers that stand still, they are led to nothing: what comes is
    /// freed as usual.
    #[cold]
    pub(super) fn withdraw_if_full(&mut self) {
        if let Some(published) = self.published.as_mut().filter(|published| published.leads) {
            if is_full() {
                published.leads = false;
                published.roots.clear();
                self.index.unshare();
                self.slots.unshare();
            }
        }
    }

    /// Leads readers again after that, if there is room for what they keep waiting. A change has
    /// begun.
    #[cold]
    #[inline(never)]
    fn lead_again(&mut self) {
        // Such stores retire nothing. So without this nobody might.
        look_again();
        if has_room() {
            if let Some(mut published) = self.published.take() {
                published.leads = true;
                self.publish(published);
            }
        }
    }

    fn publish(&mut self, published: Published) {
        if published.leads {
            self.index.share(&published.roots);
            self.slots.share(&published.roots);
        }
        self.published = Some(published);
    }

    /// Returns the lens that reads the store without its lock, if that is possible.
    #[must_use]
    pub fn lens(&self) -> Option<Lens<K, V>> {
        self.published
            .as_ref()
            .map(|published| Lens::of(&published.roots))
    }

    /// From now on, and to [`end_change`](Self::end_change), readers without a lock see nothing.
    ///
    /// They may have been led to nothing since a thread stood still. Once there is room for what
    /// they keep waiting, this leads them to what is stored again: that is a visit of each page of
    /// entries and of each segment of the index. What had waited for that thread is freed first.
    #[inline(always)]
    pub fn begin_change(&mut self) {
        if let Some(published) = &self.published {
            published.roots.begin();
            if !published.leads {
                self.lead_again();
            }
        }
    }

    /// Readers without a lock see what was changed. Without it they go on to see nothing.
    #[inline(always)]
    pub fn end_change(&mut self) {
        if let Some(Published { roots, .. }) = &self.published {
            roots.end();
        }
    }

    /// Takes all out, and leaves an empty store, which has the same lens and the same kind of
    /// pages.
    #[must_use]
    pub fn take_all(&mut self) -> Self {
        let mut taken = std::mem::take(self);
        if taken.slots.uses_huge_pages() {
            self.use_huge_pages();
        }
        if let Some(mut published) = taken.published.take() {
            published.roots.clear();
            taken.index.unshare();
            taken.slots.unshare();
            published.leads = !is_full();
            self.publish(published);
        }
        taken
    }
}
