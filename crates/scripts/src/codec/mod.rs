//! The libraries that turn values into bytes and back.

pub(crate) mod bits;
pub(crate) mod json;
pub(crate) mod msgpack;
pub(crate) mod structs;
