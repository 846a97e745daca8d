//! Publish and subscribe: each client's subscriptions, and the delivery of messages.

pub(crate) mod audience;
pub(crate) mod hub;
mod names;
pub(crate) mod subscriptions;
