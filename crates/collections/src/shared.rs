//! Bytes that a copy of a collection may share, until one of the two is changed.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Bytes of one's own, or shared with copies. Reading costs a branch; the first change of shared
/// bytes copies them.
#[derive(Debug)]
pub(crate) enum Shared<B> {
    Own(B),
    Shared(Arc<B>),
}

/// Bytes that can be copied into as much memory as they have.
pub(crate) trait Copied: Default {
    fn copied(&self) -> Self;
}

impl Copied for Vec<u8> {
    fn copied(&self) -> Self {
        let mut copy = Self::with_capacity(self.capacity());
        copy.extend_from_slice(self);
        copy
    }
}

impl Copied for Box<[u8]> {
    fn copied(&self) -> Self {
        self.clone()
    }
}

impl<B: Copied> Shared<B> {
    /// Shares the bytes with the one that is returned.
    pub(crate) fn share(&mut self) -> Self {
        if let Self::Own(bytes) = self {
            *self = Self::Shared(Arc::new(std::mem::take(bytes)));
        }
        match self {
            Self::Shared(bytes) => Self::Shared(Arc::clone(bytes)),
            Self::Own(_) => Self::Own(B::default()),
        }
    }
}

impl<B: Copied> Clone for Shared<B> {
    /// Bytes of its own.
    fn clone(&self) -> Self {
        Self::Own((**self).copied())
    }
}

impl<B> Deref for Shared<B> {
    type Target = B;

    #[inline(always)]
    fn deref(&self) -> &B {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl<B: Copied> DerefMut for Shared<B> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut B {
        if let Self::Shared(bytes) = self {
            *self = Self::Own(take(bytes));
        }
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(_) => unreachable!("they are its own now"),
        }
    }
}

/// The bytes, if nobody else has them any more; else a copy.
#[cold]
fn take<B: Copied>(bytes: &mut Arc<B>) -> B {
    match Arc::get_mut(bytes) {
        Some(last) => std::mem::take(last),
        None => bytes.copied(),
    }
}
