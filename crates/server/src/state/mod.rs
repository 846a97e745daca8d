//! What a loop works with: the server, which all loops share, and its own part of it.

pub(crate) mod loop_state;
pub(crate) mod server;
#[cfg(test)]
pub(crate) mod witness;
