//! Publish and subscribe: each client's subscriptions, and the delivery of messages.

pub(crate) mod audience;
pub(crate) mod hub;
mod subscribers;
pub(crate) mod subscriptions;
