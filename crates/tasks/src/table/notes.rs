//! Notes: what a table keeps beside tasks and letters, as a journal writes it.
//!
//! A note has a key that no task's id can be, since it begins with a zero byte, and bytes. A call
//! that changes a note names its key in `touched`, as one that changes a task names its id.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Table;
use crate::shape::claim::Claim;
use crate::shape::finished::Finished;
use crate::shape::queue::{QueueChange, QueueRules};
use crate::shape::timestamp::Timestamp;

/// The beginning of a queue's key.
const QUEUE: &str = "\0queue/";

/// That of an id that is unique for a while.
const UNIQUE: &str = "\0unique/";

/// That of a result.
const DONE: &str = "\0done/";

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
        let unique = self.unique.forget(now).into_iter();
        let unique = unique.map(|id| Arc::from(format!("{UNIQUE}{id}")));
        let finished = self.finished.forget(now).into_iter();
        let finished = finished.map(|id| Arc::from(format!("{DONE}{id}")));
        self.touched.extend(unique.chain(finished));
    }

    /// Makes an id unique for so long. `false` if it is already.
    pub(super) fn mark(&mut self, id: &Arc<str>, time: Duration, now: Timestamp) -> bool {
        let is_free = self.unique.get(id).is_none_or(|(until, ())| *until <= now);
        if is_free {
            self.unique.put(Arc::clone(id), now.plus(time), ());
            self.touched.push(Arc::from(format!("{UNIQUE}{id}")));
        }
        is_free
    }

    /// Keeps the result of a run, if its task wants that.
    pub(super) fn keep_result(&mut self, id: &Arc<str>, claim: &Claim, now: Timestamp) {
        if let Some(finished) = Finished::of(claim, now) {
            self.finished.put(Arc::clone(id), finished.until, finished);
            self.touched.push(Arc::from(format!("{DONE}{id}")));
        }
    }

    pub(crate) fn queue_rules(&self) -> BTreeMap<String, QueueRules> {
        self.rules.clone()
    }

    /// The bytes of a note, if there is one.
    #[cfg_attr(not(feature = "file"), allow(dead_code))]
    pub(crate) fn note(&self, key: &str) -> Option<Vec<u8>> {
        let text = if let Some(queue) = key.strip_prefix(QUEUE) {
            self.rules.get(queue)?.text()
        } else if let Some(id) = key.strip_prefix(DONE) {
            return self
                .finished
                .get(id)
                .map(|(_, finished)| bytes_of(finished));
        } else {
            let (until, ()) = self.unique.get(key.strip_prefix(UNIQUE)?)?;
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
            self.unique.put(Arc::from(id), Timestamp(until), ());
        }
        if let (Some(id), Some(finished)) = (key.strip_prefix(DONE), finished_of(bytes)) {
            self.finished.put(Arc::from(id), finished.until, finished);
        }
    }
}

/// A result as a note: two times and the queue in a line, then its bytes.
fn bytes_of(finished: &Finished) -> Vec<u8> {
    let Finished { at, until, .. } = finished;
    let line = format!("{} {} {}\n", at.0, until.0, finished.queue);
    [line.as_bytes(), &finished.result].concat()
}

fn finished_of(bytes: &[u8]) -> Option<Finished> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let mut words = str::from_utf8(&bytes[..end]).ok()?.splitn(3, ' ');
    let mut time = || Some(Timestamp(words.next()?.parse().ok()?));
    let (at, until) = (time()?, time()?);
    Some(Finished {
        queue: words.next()?.to_owned(),
        result: bytes[end + 1..].to_vec(),
        at,
        until,
    })
}
