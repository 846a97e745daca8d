//! Publish and subscribe: what each client listens to, and the way of a message.

mod audience;
pub(crate) mod hub;
pub(crate) mod monitors;
pub(crate) mod subscriptions;
