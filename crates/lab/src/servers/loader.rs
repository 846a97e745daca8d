//! The loader fills a server: one connection, batches of 512 SETs, one batch under way at a time.

use anyhow::{Context, Result};

use crate::clock;
use crate::progress;
use crate::rng::Rng;
use crate::servers::client::Connection;
use crate::servers::keys::{Key, Ttl, encode_set};

const BATCH: usize = 512;
/// "Long" times to live: none falls due during any experiment.
const LONG_TTL_S: (u64, u64) = (3_600, 7_200);

/// Loading is planned for at least this many keys a second.
const SLOWEST_LOAD_PER_S: f64 = 150_000.0;

/// The seconds that loading so many keys may take.
pub(crate) fn load_s(keys: u64) -> f64 {
    keys as f64 / SLOWEST_LOAD_PER_S
}

/// A time to live that outlasts the experiment, spread so that deadlines differ.
pub(crate) fn long_ttl(rng: &mut Rng) -> Ttl {
    Ttl::Ex(long_ttl_s(rng))
}

/// The same in seconds.
pub(crate) fn long_ttl_s(rng: &mut Rng) -> u64 {
    rng.between(LONG_TTL_S.0, LONG_TTL_S.1)
}

/// Sends every entry; returns the seconds that it took.
pub(crate) fn load(
    connection: &mut Connection,
    entries: impl Iterator<Item = (Key, Ttl)>,
    what: &'static str,
) -> Result<f64> {
    let start = clock::mono_ns();
    progress::say(what);
    let mut entries = entries.peekable();
    let mut requests = Vec::new();
    while entries.peek().is_some() {
        let mut waiting = 0;
        for (key, ttl) in entries.by_ref().take(BATCH) {
            encode_set(&mut requests, key, ttl);
            waiting += 1;
        }
        connection.send(&requests)?;
        let answered = connection.expect_replies(waiting);
        answered.with_context(|| format!("failed {what}"))?;
        requests.clear();
    }
    Ok((clock::mono_ns() - start) as f64 / 1e9)
}
