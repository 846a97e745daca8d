//! Forms of a key: owned, or borrowed and converted only when it is stored.

use std::borrow::ToOwned;
use std::fmt;
use std::hash::Hash;

use equivalent::Equivalent;

/// A key as a caller hands it over: [`OwnedKey`] or [`BorrowedKey`]. There are no other
/// implementations.
pub trait KeyForm<K>: Form {
    /// The type that the key is looked up by.
    #[doc(hidden)]
    type Sought: Hash + Equivalent<K> + ?Sized;
    #[doc(hidden)]
    fn sought(&self) -> &Self::Sought;
    #[doc(hidden)]
    fn into_key(self) -> K;
}

/// A seal: no other crate implements [`KeyForm`].
#[expect(unnameable_types, reason = "a seal")]
pub trait Form {}

/// A key that was handed over.
#[derive(Clone, Copy)]
pub struct OwnedKey<K>(pub(crate) K);

/// A key that was lent. Where nothing is stored under it, nothing is allocated.
pub struct BorrowedKey<'q, Q: ?Sized>(pub(crate) &'q Q);

impl<K> Form for OwnedKey<K> {}
impl<Q: ?Sized> Form for BorrowedKey<'_, Q> {}

impl<K: Hash + Eq> KeyForm<K> for OwnedKey<K> {
    type Sought = K;

    #[inline]
    fn sought(&self) -> &K {
        &self.0
    }

    #[inline]
    fn into_key(self) -> K {
        self.0
    }
}

impl<K, Q> KeyForm<K> for BorrowedKey<'_, Q>
where
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
{
    type Sought = Q;

    #[inline]
    fn sought(&self) -> &Q {
        self.0
    }

    fn into_key(self) -> K {
        self.0.to_owned()
    }
}

impl<Q: ?Sized> Clone for BorrowedKey<'_, Q> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q: ?Sized> Copy for BorrowedKey<'_, Q> {}

impl<K: fmt::Debug> fmt::Debug for OwnedKey<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<Q: fmt::Debug + ?Sized> fmt::Debug for BorrowedKey<'_, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
