//! The rules of queues: a message for each. A store reads them again each half a second.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidewheel_time::{monotonic_nanos, nanos};

use super::Inner;
use super::lines::Line;
use super::subjects::queue_of;
use super::text::{decoded, encoded};
use super::wire::{Letter, Put};
use crate::shape::error::StoreError;
use crate::shape::overtaken::{TRIES, pause_after};
use crate::shape::queue::{QueueChange, QueueRules};
use crate::shape::rate::Rate;

/// Rules that were read are used for so long.
const AGE: Duration = Duration::from_millis(500);

/// The header that has the rules' text.
const RULES: &str = "Tw-Rules";

/// The rules as they were read last.
#[derive(Debug, Default)]
pub(super) struct Rules {
    known: Mutex<BTreeMap<String, QueueRules>>,
    /// The time of that, by the monotonic clock, in nanoseconds; 0 if they were not read yet.
    read: AtomicU64,
}

impl Rules {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, QueueRules>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_paused(&self, queue: &str) -> bool {
        self.known().get(queue).is_some_and(|rules| rules.paused)
    }

    pub(super) fn limit(&self, queue: &str) -> Option<Rate> {
        self.known().get(queue)?.limit
    }

    fn is_young(&self) -> bool {
        let (read, now) = (self.read.load(Relaxed), monotonic_nanos());
        read > 0 && now.saturating_sub(read) < nanos(AGE)
    }
}

impl Inner {
    pub(super) async fn change_queue(
        &self,
        queue: &str,
        change: QueueChange,
    ) -> Result<(), StoreError> {
        let subject = self.subjects.rules(queue);
        for tried in 1..=TRIES {
            let before = self.wire.last(&subject).await?;
            let text = before.as_ref().and_then(|kept| kept.headers.get(RULES));
            let text = text
                .and_then(|text| decoded(text.as_str()))
                .unwrap_or_default();
            let rules = QueueRules::read(&text).after(change);
            let letter = Letter::new(subject.clone()).header(RULES, encoded(&rules.text()));
            let sequence = before.map_or(0, |kept| kept.sequence);
            if let Put::Kept(_) = self.wire.put(letter.expecting(sequence)).await? {
                self.rules.known().insert(queue.to_owned(), rules);
                self.wakes.tell();
                return Ok(());
            }
            tokio::time::sleep(pause_after(tried)).await;
        }
        Err(StoreError::engine("the queue's rules change all the time"))
    }

    /// Reads all rules, as the stream's leader has them: a call for each.
    pub(super) async fn queue_rules(&self) -> Result<BTreeMap<String, QueueRules>, StoreError> {
        let (mut rules, mut from) = (BTreeMap::new(), 1);
        while let Some(kept) = self.wire.next(&self.subjects.rules_all(), from).await? {
            from = kept.sequence + 1;
            let text = kept.headers.get(RULES);
            let text = text.and_then(|text| decoded(text.as_str()));
            let read = QueueRules::read(&text.unwrap_or_default());
            rules.extend(queue_of(&kept.subject).map(|queue| (queue, read)));
        }
        rules.retain(|_, rules| !rules.is_default());
        self.rules.read.store(monotonic_nanos(), Relaxed);
        self.rules.known().clone_from(&rules);
        Ok(rules)
    }

    /// Those of some lines that are not paused. What was fetched of the others stays here for a
    /// while: nobody else may claim it either.
    ///
    /// It does not go back at once, because the server forgets what it has to deliver again when
    /// somebody purges a subject, as each cancel does. It remembers when the lease ends.
    pub(super) async fn open_lines(
        &self,
        lines: Vec<Arc<Line>>,
    ) -> Result<Vec<Arc<Line>>, StoreError> {
        if !self.rules.is_young() {
            self.queue_rules().await?;
        }
        let lines = lines.into_iter();
        Ok(lines
            .filter(|line| !self.rules.is_paused(&line.queue))
            .collect())
    }
}
