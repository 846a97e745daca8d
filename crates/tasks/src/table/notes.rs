//! Notes: what a table keeps beside tasks and letters, as a journal writes it.
//!
//! A note has a key that no task's id can be, since it begins with a zero byte, and bytes. A call
//! that changes a note names its key in `touched`, as one that changes a task names its id.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Table;
use crate::shape::queue::{QueueChange, QueueRules};

/// The beginning of a queue's key.
const QUEUE: &str = "\0queue/";

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

    pub(crate) fn queue_rules(&self) -> BTreeMap<String, QueueRules> {
        self.rules.clone()
    }

    /// True if a key is that of a note.
    pub(crate) fn is_note(key: &str) -> bool {
        key.starts_with('\0')
    }

    /// The bytes of a note, if there is one.
    pub(crate) fn note(&self, key: &str) -> Option<Vec<u8>> {
        let rules = self.rules.get(key.strip_prefix(QUEUE)?)?;
        Some(rules.text().into_bytes())
    }

    /// Puts a note back that a journal has kept. What another version has written is left alone.
    pub(crate) fn restore_note(&mut self, key: &str, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        if let Some(queue) = key.strip_prefix(QUEUE) {
            self.rules.insert(queue.to_owned(), QueueRules::read(&text));
        }
    }
}
