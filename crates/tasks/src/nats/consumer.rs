//! There is one consumer for each priority of each queue. One that a stranger has deleted is made
//! anew.
//!
//! A new consumer delivers what the one before it had delivered, and counts from one again. So the
//! first delivery of a message that is older than the consumer may be the second one, which must
//! begin with a record. While it is in doubt which consumer there is, all do.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::{Value, json};

use super::subjects::{Subjects, line};
use super::text::parsed;
use super::wire::{Wire, code};
use crate::shape::error::StoreError;
use crate::shape::task::Priority;
use crate::shape::timestamp::Timestamp;

/// The clocks of two nodes, of which one made the consumer and the other one kept a message, differ
/// by this at most.
const CLOCKS: Duration = Duration::from_secs(1);

/// A consumer.
#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) name: String,
    config: Value,
    filter: String,
    /// The time of its creation, in microseconds since 1970; 0 if that is not known yet.
    made: AtomicU64,
    in_doubt: AtomicBool,
    /// The consumer was deleted, and nobody was told.
    lost: AtomicBool,
}

/// "Consumer not found".
const NOT_FOUND: u64 = 10014;

/// "Maximum consumers limit reached".
const NO_ROOM: u64 = 10026;

/// The time for which an answer about a consumer is waited for.
const PATIENCE: Duration = Duration::from_millis(250);

impl Consumer {
    pub(super) fn of(
        subjects: &Subjects,
        queue: &str,
        priority: Priority,
        lease: Duration,
    ) -> Self {
        let name = format!("p{}", line(priority, queue));
        let filter = subjects.handed_all(priority, queue);
        let config = json!({
            "durable_name": name,
            "name": name,
            "ack_policy": "explicit",
            "ack_wait": u64::try_from(lease.as_nanos()).unwrap_or(u64::MAX),
            "max_deliver": -1,
            "max_ack_pending": -1,
            "filter_subject": filter,
        });
        Self {
            name,
            config,
            filter,
            made: AtomicU64::new(0),
            in_doubt: AtomicBool::new(true),
            lost: AtomicBool::new(false),
        }
    }

    /// Makes it unless it is there. Refused if the server has no room for more.
    pub(super) async fn make(&self, wire: &Wire) -> Result<(), StoreError> {
        let (stream, name, filter) = (&wire.stream, &self.name, &self.filter);
        let what = format!("CONSUMER.CREATE.{stream}.{name}.{filter}");
        let config = json!({ "stream_name": stream, "config": self.config });
        let answer = wire.ask(&what, config).await?;
        match answer.get("error") {
            None => self.learn(&answer),
            Some(error) if code(error) == NO_ROOM => Err(StoreError::refused(
                "the server makes no more consumers, and a queue has three",
            )),
            Some(error) => Err(StoreError::engine(error)),
        }
    }

    /// Takes in what the server says about it.
    fn learn(&self, answer: &Value) -> Result<(), StoreError> {
        let made = answer["created"].as_str().and_then(parsed);
        let made = made.ok_or_else(|| StoreError::engine("a consumer without a time"))?;
        let before = self.made.swap(made.0, Relaxed);
        if before != 0 && before != made.0 {
            self.lost.store(true, Relaxed);
        }
        self.in_doubt.store(false, Relaxed);
        Ok(())
    }

    /// The consumer may be another one by now.
    pub(super) fn doubt(&self) {
        self.in_doubt.store(true, Relaxed);
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.in_doubt.load(Relaxed)
    }

    /// Looks whether it is still the same, and makes it if it is not there.
    pub(super) async fn look(&self, wire: &Wire) -> Result<(), StoreError> {
        let what = format!("CONSUMER.INFO.{}.{}", wire.stream, self.name);
        let answer = tokio::time::timeout(PATIENCE, wire.ask(&what, Value::Null)).await;
        let answer = answer.map_err(|_| StoreError::TimedOut)??;
        match code(&answer["error"]) {
            NOT_FOUND => self.make(wire).await,
            _ => self.learn(&answer),
        }
    }

    /// True if it was lost since the last call.
    pub(super) fn take_lost(&self) -> bool {
        self.lost.swap(false, Relaxed)
    }

    /// True if another consumer may have delivered what was kept at that time.
    pub(super) fn may_be_younger(&self, kept: Timestamp) -> bool {
        self.is_in_doubt() || kept < Timestamp(self.made.load(Relaxed)).plus(CLOCKS)
    }
}
