//! Other people's caches as subjects, one file each.

mod cached;
mod foyer;
mod mini_moka;
mod moka;
mod papaya;
mod pingora;
mod quick_cache;
mod stretto;
mod ttl_cache;

pub(super) use self::cached::Cached;
pub(super) use self::foyer::Foyer;
pub(super) use self::mini_moka::MiniMoka;
pub(super) use self::moka::Moka;
pub(super) use self::papaya::Papaya;
pub(super) use self::pingora::Pingora;
pub(super) use self::quick_cache::QuickCache;
pub(super) use self::stretto::Stretto;
pub(super) use self::ttl_cache::TtlCache;

/// What a cache without a default TTL, which wants one for every entry, is told for "none".
const FOREVER: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 3_600);
