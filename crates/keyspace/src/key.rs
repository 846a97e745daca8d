//! A key of a call.

/// A key and where it belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) hash: u64,
    pub(crate) shard: usize,
}
