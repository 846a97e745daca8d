//! A fault that tests plant, to see that it is found. Without the feature `planted` there is none.

thread_local! {
    static FORGETS_BEFORE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// From now on, snapshots that this thread's changes run into do not keep what was there before.
#[cfg(feature = "planted")]
pub fn plant_forgetting(plants: bool) {
    FORGETS_BEFORE.set(plants);
}

/// True if this thread's changes are not kept from snapshots.
#[inline(always)]
pub(crate) fn forgets_before() -> bool {
    cfg!(feature = "planted") && FORGETS_BEFORE.get()
}
