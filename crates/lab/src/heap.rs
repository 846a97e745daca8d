//! Counts the bytes that this process has allocated and not freed, as requested.
//!
//! The counting costs two atomic additions per allocation. Caches that allocate an entry pay for
//! that where others do not, so runs that compare throughput or latency are built with the feature
//! `plain-alloc`, which leaves the counting out.

#[cfg(not(feature = "plain-alloc"))]
#[global_allocator]
static ALLOCATOR: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

/// True if bytes are counted in this build.
pub(crate) const COUNTED: bool = cfg!(not(feature = "plain-alloc"));

/// Bytes that are allocated now; 0 at all times where they are not counted.
pub(crate) fn allocated() -> isize {
    let stats = stats_alloc::INSTRUMENTED_SYSTEM.stats();
    stats.bytes_allocated.wrapping_sub(stats.bytes_deallocated) as isize
}

/// The same, `None` where they are not counted.
pub(crate) fn counted() -> Option<isize> {
    COUNTED.then(allocated)
}

#[cfg(all(test, not(feature = "plain-alloc")))]
mod tests {
    use super::*;

    #[test]
    fn a_block_counts_until_it_is_freed() {
        const BLOCK: usize = 256 << 20;
        let before = allocated();
        let block: Vec<u8> = std::hint::black_box(Vec::with_capacity(BLOCK));
        let held = allocated() - before;
        drop(block);
        let left = allocated() - before;
        // Other tests allocate meanwhile, but nothing of this size.
        assert!(held > left + (BLOCK / 2) as isize, "{held}, then {left}");
    }
}
