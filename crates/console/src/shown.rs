//! Tasks as they are shown, on the page and in a terminal: as JSON.

use serde_json::{Value, json};
use tidewheel_tasks::{Counts, Look, QueueRules, Rate, Rhythm, State, Stats, Terms};

/// Characters of a payload that are shown.
const PAYLOAD_SHOWN: usize = 1000;

/// A task. Times are microseconds since 1970.
#[must_use]
pub fn task(task: &Look) -> Value {
    let note = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(text);
    let mut shown = json!({
        "id": task.id,
        "state": format!("{:?}", task.state).to_lowercase(),
        "due_us": task.due.0,
        "priority": format!("{:?}", task.priority).to_lowercase(),
        "attempt": task.attempt,
        "progress": note(&task.progress),
        "result": note(&task.result),
        "error": task.error,
    });
    add(&mut shown, terms(&task.terms));
    add(&mut shown, payload(&task.payload));
    shown
}

/// A task that is a dead letter.
#[must_use]
pub fn letter(letter: &Look) -> Value {
    let mut shown = json!({
        "id": letter.id,
        "died_us": letter.due.0,
        "attempts": letter.attempt,
        "error": letter.error,
    });
    add(&mut shown, terms(&letter.terms));
    add(&mut shown, payload(&letter.payload));
    shown
}

/// A state, by the name that it is shown with.
#[must_use]
pub fn state(name: &str) -> Option<State> {
    Some(match name {
        "pending" => State::Pending,
        "claimed" => State::Claimed,
        "done" => State::Done,
        "dead" => State::Dead,
        _ => return None,
    })
}

/// How much a queue has.
#[must_use]
pub fn counts(counts: &Counts) -> Value {
    json!({
        "pending": counts.pending,
        "claimed": counts.claimed,
        "done": counts.done,
        "dead": counts.dead,
    })
}

/// A queue's rules.
#[must_use]
pub fn rules(rules: &QueueRules) -> Value {
    let limit = rules.limit.map(
        |Rate { times, period }| json!({ "times": times, "period_ms": period.as_millis() as u64 }),
    );
    json!({ "paused": rules.paused, "limit": limit })
}

/// A worker's numbers.
#[must_use]
pub fn stats(name: &str, stats: &Stats) -> Value {
    json!({
        "name": name,
        "held": stats.held,
        "running": stats.running,
        "ran": stats.ran,
        "done": stats.done,
        "retried": stats.retried,
        "dead": stats.dead,
        "panicked": stats.panicked,
        "refused": stats.refused,
        "errors": stats.errors,
        "late_p50_us": stats.lateness.p50.as_micros() as u64,
        "late_p99_us": stats.lateness.p99.as_micros() as u64,
        "late_max_us": stats.lateness.max.as_micros() as u64,
        "skewed": stats.skewed,
    })
}

fn terms(terms: &Terms) -> Value {
    let rhythm = terms.rhythm.as_ref().map(|rhythm| match rhythm {
        Rhythm::Every(period) => format!("every {period:?}"),
        Rhythm::Cron(cron) => format!("{} ({})", cron.expression(), cron.zone()),
        _ => "again".to_owned(),
    });
    json!({ "queue": terms.queue, "rhythm": rhythm })
}

fn payload(bytes: &[u8]) -> Value {
    json!({ "bytes": bytes.len(), "payload": text(bytes) })
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().take(PAYLOAD_SHOWN).collect()
}

/// Adds the members of an object to another one.
fn add(to: &mut Value, more: Value) {
    if let (Value::Object(to), Value::Object(more)) = (to, more) {
        to.extend(more);
    }
}
