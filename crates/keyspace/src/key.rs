//! A key of a call.

/// A key and where it belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) hash: u64,
    pub(crate) shard: usize,
}

/// The place and the time of a change of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'b> {
    pub(crate) key: Key<'b>,
    pub(crate) db: u32,
    pub(crate) tick: u64,
}
