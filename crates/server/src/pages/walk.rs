//! A bounded walk over the keys of a database, by SCAN, as a user may do it.

use super::ask::{Asker, NoAnswer};
use super::desk::Desk;
use super::parts::{bytes, items};

/// Keys of one step. Others are served between two.
const STEP: &[u8] = b"500";

/// The most keys of a walk.
const KEYS_MAX: usize = 50_000;

/// The longest time of a walk.
const TIME_NS: u64 = 300_000_000;

/// A walk on its way.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    desk: &'a Desk,
    began_ns: u64,
    /// Where it is; `0` at the end.
    pub(super) cursor: Vec<u8>,
    /// Keys so far.
    pub(super) looked: usize,
    has_begun: bool,
    _place: tokio::sync::SemaphorePermit<'a>,
}

impl<'a> Walk<'a> {
    /// Begins at a place where another one has ended, or at the start.
    pub(super) fn begin(desk: &'a Desk, cursor: Option<&[u8]>) -> Result<Self, NoAnswer> {
        let busy = |_| NoAnswer::Fails("others look at keys just now; try again".to_owned());
        Ok(Self {
            desk,
            began_ns: desk.server.clock.monotonic_ns(),
            cursor: cursor.unwrap_or(b"0").to_vec(),
            looked: 0,
            has_begun: false,
            _place: desk.walks.try_acquire().map_err(busy)?,
        })
    }

    /// The keys of the next step; none at the end, or when it has lasted long enough.
    pub(super) async fn step(
        &mut self,
        asker: &mut Asker,
    ) -> Result<Option<Vec<Vec<u8>>>, NoAnswer> {
        let lasts_ns = self.desk.server.clock.monotonic_ns() - self.began_ns;
        let is_at_end = self.has_begun && self.cursor == b"0";
        if is_at_end || self.looked >= KEYS_MAX || lasts_ns >= TIME_NS {
            return Ok(None);
        }
        self.has_begun = true;
        let reply = asker.ask(&[b"SCAN", &self.cursor, b"COUNT", STEP]).await?;
        let [cursor, keys] = items(&reply) else {
            return Err(NoAnswer::Fails(format!("an unexpected reply: {reply:?}")));
        };
        self.cursor = bytes(cursor).to_vec();
        let keys: Vec<Vec<u8>> = items(keys).iter().map(|key| bytes(key).to_vec()).collect();
        self.looked += keys.len();
        Ok(Some(keys))
    }
}
