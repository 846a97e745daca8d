//! Lines: each queue has a consumer for each priority, and a buffer of what it has delivered.
//!
//! The consumers are the list of queues. Whoever schedules the first task of a queue makes them;
//! whoever claims from all queues looks each second which there are.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::json;
use tidewheel_time::{monotonic_nanos, nanos};

use super::Inner;
use super::consumer::Consumer;
use super::pump::{Asked, Buffer, pump};
use super::subjects::{Subjects, queue_of_line};
use crate::shape::error::StoreError;
use crate::shape::task::Priority;
use crate::store::Ask;

/// The interval at which new queues are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// The line of one queue.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) queue: String,
    /// The consumers, by priority.
    pub(super) consumers: [Arc<Consumer>; 3],
    /// The messages that the consumers have delivered.
    pub(super) buffers: [Arc<Buffer>; 3],
    pub(super) asked: Arc<Asked>,
    is_pulled: AtomicBool,
}

impl Line {
    fn of(subjects: &Subjects, queue: &str, lease: Duration) -> Self {
        let consumer = |priority| Arc::new(Consumer::of(subjects, queue, priority, lease));
        Self {
            queue: queue.to_owned(),
            consumers: Priority::ALL.map(consumer),
            buffers: [(); 3].map(|()| Arc::new(Buffer::default())),
            asked: Arc::default(),
            is_pulled: AtomicBool::new(false),
        }
    }
}

/// The lines that this store knows.
#[derive(Debug, Default)]
pub(super) struct Lines {
    known: Mutex<BTreeMap<String, Arc<Line>>>,
    /// The time of the latest look, by the monotonic clock, in nanoseconds; 0 if there was none.
    looked: AtomicU64,
    /// Questions so far: of several queues each is the first once.
    turns: AtomicU64,
}

impl Lines {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Line>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn all(&self) -> Vec<Arc<Line>> {
        self.known().values().cloned().collect()
    }

    fn get(&self, queue: &str) -> Option<Arc<Line>> {
        self.known().get(queue).cloned()
    }

    /// Adds a line, unless another call was quicker.
    fn add(&self, line: Line) -> Arc<Line> {
        let mut known = self.known();
        let entry = known.entry(line.queue.clone());
        Arc::clone(entry.or_insert_with(|| Arc::new(line)))
    }

    /// True if it is time to look for new queues.
    fn is_old(&self) -> bool {
        let (looked, now) = (self.looked.load(Relaxed), monotonic_nanos());
        looked == 0 || now.saturating_sub(looked) >= nanos(LOOK)
    }
}

impl Inner {
    /// The line of a queue, whose consumers are made if need be.
    pub(super) async fn line(&self, queue: &str) -> Result<Arc<Line>, StoreError> {
        if let Some(line) = self.lines.get(queue) {
            return Ok(line);
        }
        let line = Line::of(&self.subjects, queue, self.lease);
        for consumer in &line.consumers {
            consumer.make(&self.wire).await?;
        }
        Ok(self.lines.add(line))
    }

    /// The same, unless the server has no room for its consumers: then no task of it is there.
    async fn line_to_claim(&self, queue: &str) -> Result<Option<Arc<Line>>, StoreError> {
        match self.line(queue).await {
            Err(StoreError::Refused(_)) => Ok(None),
            line => line.map(Some),
        }
    }

    /// The lines that a question is about, another one first each time.
    pub(super) async fn lines_of(&self, ask: &Ask) -> Result<Vec<Arc<Line>>, StoreError> {
        let mut lines = Vec::new();
        if ask.queues.is_empty() {
            if self.lines.is_old() {
                self.look_for_lines().await?;
            }
            lines = self.lines.all();
        } else {
            for queue in &ask.queues {
                lines.extend(self.line_to_claim(queue).await?);
            }
        }
        let turn = self.lines.turns.fetch_add(1, Relaxed);
        let first = turn % (lines.len() as u64).max(1);
        lines.rotate_left(usize::try_from(first).unwrap_or(0));
        Ok(lines)
    }

    /// Takes in the queues that have consumers.
    async fn look_for_lines(&self) -> Result<(), StoreError> {
        let what = format!("CONSUMER.NAMES.{}", self.wire.stream);
        let mut offset = 0;
        loop {
            let answer = self.wire.call(&what, json!({ "offset": offset })).await?;
            let names = answer["consumers"].as_array();
            let names: Vec<_> = names.into_iter().flatten().collect();
            let lines = names
                .iter()
                .filter_map(|name| name.as_str()?.strip_prefix('p'));
            for queue in lines.filter_map(queue_of_line) {
                self.line_to_claim(&queue).await?;
            }
            offset += names.len();
            let total = answer["total"].as_u64().unwrap_or(0);
            if names.is_empty() || offset as u64 >= total {
                break;
            }
        }
        self.lines.looked.store(monotonic_nanos(), Relaxed);
        Ok(())
    }

    /// A worker asks for a line's tasks: they are pulled from now on.
    pub(super) fn pull(&self, line: &Line) {
        line.asked.now();
        if line.is_pulled.swap(true, Relaxed) {
            return;
        }
        for (consumer, buffer) in line.consumers.iter().zip(&line.buffers) {
            let (consumer, buffer) = (Arc::clone(consumer), Arc::downgrade(buffer));
            let told = (Arc::clone(&line.asked), Arc::clone(&self.wakes));
            tokio::spawn(pump(self.wire.clone(), consumer, buffer, told));
        }
    }
}
