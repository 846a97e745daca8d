//! Fills a server: one connection, batches of 512 SETs, one batch under way at a time.

use anyhow::{Context, Result};

use crate::clock;
use crate::progress;
use crate::rng::Rng;
use crate::servers::client::Connection;
use crate::servers::keys::{Key, Ttl, encode_set};

pub(crate) const BATCH: usize = 512;
/// "Long" times to live: none falls due during any experiment.
const LONG_TTL_S: (u64, u64) = (3_600, 7_200);

/// A time to live that outlasts the experiment, spread so that deadlines differ.
pub(crate) fn long_ttl(rng: &mut Rng) -> Ttl {
    Ttl::Ex(rng.between(LONG_TTL_S.0, LONG_TTL_S.1))
}

/// Sends every entry; returns the seconds that it took.
pub(crate) fn load(
    connection: &mut Connection,
    entries: impl ExactSizeIterator<Item = (Key, Ttl)>,
    what: &'static str,
) -> Result<f64> {
    let start = clock::mono_ns();
    progress::say(what);
    let mut requests = Vec::new();
    let mut waiting = 0;
    let mut sent = 0_u64;
    let total = entries.len() as u64;
    for (key, ttl) in entries {
        encode_set(&mut requests, key, ttl);
        waiting += 1;
        sent += 1;
        if waiting == BATCH || sent == total {
            connection.send(&requests)?;
            connection
                .expect_replies(waiting)
                .with_context(|| format!("failed {what}"))?;
            requests.clear();
            waiting = 0;
        }
    }
    Ok((clock::mono_ns() - start) as f64 / 1e9)
}
