//! Notes: what a table keeps beside tasks and letters, as a journal writes it.
//!
//! A note has a key that no task's id can be, since it begins with a zero byte, and bytes. A call
//! that changes a note names its key in `touched`, as one that changes a task names its id.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Table;
use crate::shape::queue::{QueueChange, QueueRules};
use crate::shape::timestamp::Timestamp;

/// The beginning of a queue's key.
const QUEUE: &str = "\0queue/";

/// That of an id that is unique for a while.
const UNIQUE: &str = "\0unique/";

impl Table {
    pub(crate) fn change_queue(&mut self, queue: &str, change: QueueChange) {
        let rules = self.rules.remove(queue).unwrap_or_default().after(change);
        if rules.limit.is_none() {
            self.spent.remove(queue);
        }
        if !rules.is_default() {
            self.rules.insert(queue.to_owned(), rules);
        }
        self.touched.push(Arc::from(format!("{QUEUE}{queue}")));
    }

    /// Forgets some notes whose time is over.
    pub(super) fn forget(&mut self, now: Timestamp) {
        let ids = self.unique.forget(now).into_iter();
        let keys = ids.map(|id| Arc::from(format!("{UNIQUE}{id}")));
        self.touched.extend(keys);
    }

    /// Makes an id unique for so long. `false` if it is already.
    pub(super) fn mark(&mut self, id: &Arc<str>, time: Duration, now: Timestamp) -> bool {
        let is_free = self.unique.until(id).is_none_or(|until| until <= now);
        if is_free {
            self.unique.put(Arc::clone(id), now.plus(time));
            self.touched.push(Arc::from(format!("{UNIQUE}{id}")));
        }
        is_free
    }

    pub(crate) fn queue_rules(&self) -> BTreeMap<String, QueueRules> {
        self.rules.clone()
    }

    /// The bytes of a note, if there is one.
    #[cfg_attr(not(feature = "file"), allow(dead_code))]
    pub(crate) fn note(&self, key: &str) -> Option<Vec<u8>> {
        let text = if let Some(queue) = key.strip_prefix(QUEUE) {
            self.rules.get(queue)?.text()
        } else {
            let until = self.unique.until(key.strip_prefix(UNIQUE)?)?;
            until.0.to_string()
        };
        Some(text.into_bytes())
    }

    /// Puts a note back that a journal has kept. What another version has written is left alone.
    #[cfg_attr(not(feature = "file"), allow(dead_code))]
    pub(crate) fn restore_note(&mut self, key: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        if let Some(queue) = key.strip_prefix(QUEUE) {
            self.rules.insert(queue.to_owned(), QueueRules::read(&text));
        }
        if let (Some(id), Ok(until)) = (key.strip_prefix(UNIQUE), text.parse()) {
            self.unique.put(Arc::from(id), Timestamp(until));
        }
    }
}
