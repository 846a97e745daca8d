//! The listener that the builder was given.

use std::future::Future;
use std::pin::Pin;

use crate::removal::Removal;

/// An async listener's answer to one event.
pub(crate) type ListenerFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The listener that the builder was given.
pub(crate) enum Listener<K, V> {
    Blocking(Box<dyn Fn(Removal<K, V>) + Send + Sync>),
    Async(Box<dyn Fn(Removal<K, V>) -> ListenerFuture + Send + Sync>),
}

impl<K, V> Listener<K, V> {
    pub(crate) fn is_async(&self) -> bool {
        matches!(self, Self::Async(_))
    }
}
