//! Publish and subscribe: what each client listens to, and the way of a message.

pub(crate) mod audience;
pub(crate) mod hub;
mod names;
pub(crate) mod subscriptions;
