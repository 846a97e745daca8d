//! The last hour: a row of numbers for each second.
//!
//! The numbers are those of INFO, read from the same counters. There is no user behind this: who
//! reads it must show that it may run INFO.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tidewheel_keyspace::{Stats, Time};
use tokio::time::{MissedTickBehavior, interval};

use crate::counters::metrics::LoopTally;
use crate::process::system::{self, Cpu};
use crate::state::server::Server;

/// Seconds that are kept.
const SECONDS: usize = 3_600;

/// Powers of two of microseconds by which lateness is counted; the last has all above, too.
const POWERS: usize = 24;

/// All numbers of a row.
const WIDTH: usize = COLUMNS.len() + POWERS;

type Row = [f64; WIDTH];

/// What a row is made of.
struct Reading {
    time: Time,
    stats: Stats,
    totals: LoopTally,
    cpu: Cpu,
    resident: u64,
    clients: usize,
    memory_max: u64,
}

/// A number's name, and where it comes from.
type Column = (&'static str, fn(&Reading) -> f64);

#[rustfmt::skip] // A line for each.
const COLUMNS: &[Column] = &[
    ("time_ms", |of| of.time.wall_ms() as f64),
    ("tick", |of| of.time.tick as f64),
    ("commands", |of| of.totals.commands as f64),
    ("input_bytes", |of| of.totals.input_bytes as f64),
    ("output_bytes", |of| of.totals.output_bytes as f64),
    ("connections", |of| of.totals.connections as f64),
    ("errors", |of| of.totals.errors as f64),
    ("turns", |of| of.totals.turns as f64),
    ("busy_us", |of| of.totals.busy_us as f64),
    ("cpu_s", |of| of.cpu.user + of.cpu.system),
    ("hits", |of| of.stats.hits as f64),
    ("misses", |of| of.stats.misses as f64),
    ("expired", |of| of.stats.expired as f64),
    ("expired_members", |of| of.stats.expired_members as f64),
    ("evicted", |of| of.stats.evicted as f64),
    ("changes", |of| of.stats.changes as f64),
    ("keys", |of| of.stats.databases.iter().map(|db| db.keys).sum::<u64>() as f64),
    ("keys_with_deadline", |of| of.stats.databases.iter().map(|db| db.expires).sum::<u64>() as f64),
    ("keys_with_timed_members", |of| {
        of.stats.databases.iter().map(|db| db.with_timed_members).sum::<u64>() as f64
    }),
    ("memory", |of| of.stats.used_memory as f64),
    ("memory_max", |of| of.memory_max as f64),
    ("resident", |of| of.resident as f64),
    ("clients", |of| of.clients as f64),
    ("backlog_ms", |of| of.stats.backlog_ms as f64),
    ("backlog_shards", |of| of.stats.backlog_shards as f64),
    ("frozen", |of| f64::from(u8::from(of.stats.frozen))),
    ("events_pending", |of| of.stats.events_pending as f64),
    ("events_dropped", |of| of.stats.events_dropped as f64),
    ("lateness_max_us", |of| of.stats.lateness_us.max as f64),
];

impl Reading {
    /// Reads all counters.
    fn of(server: &Server) -> Self {
        let time = server.clock.now();
        Self {
            time,
            stats: server.keyspace.stats(time),
            totals: server.totals().since(&server.stats_base.lock()),
            cpu: system::cpu_seconds().unwrap_or(Cpu {
                user: 0.0,
                system: 0.0,
            }),
            resident: system::resident_bytes().unwrap_or(0),
            clients: server.clients.len(),
            memory_max: server.config.current().max_memory,
        }
    }

    /// Makes a row of it.
    fn row(&self) -> Row {
        let mut row = [0.0; WIDTH];
        for (number, (_, of)) in row.iter_mut().zip(COLUMNS) {
            *number = of(self);
        }
        for (power, count) in self.stats.lateness_us_by_power.iter().enumerate() {
            row[COLUMNS.len() + power.min(POWERS - 1)] += *count as f64;
        }
        row
    }
}

/// The rows of the last hour. There is always one.
#[derive(Debug)]
pub(super) struct Hour {
    rows: VecDeque<Row>,
}

impl Hour {
    /// Begins with the present second.
    pub(super) fn new(server: &Server) -> Self {
        Self {
            rows: VecDeque::from([Reading::of(server).row()]),
        }
    }

    /// Adds a row, and drops the one that is an hour old.
    fn add(&mut self, row: Row) {
        if self.rows.len() == SECONDS {
            self.rows.pop_front();
        }
        self.rows.push_back(row);
    }

    /// The newest row: numbers by name, and the lateness by powers of two of microseconds.
    pub(super) fn newest(&self) -> Value {
        let Some(row) = self.rows.back() else {
            return Value::Null;
        };
        let (named, late) = row.split_at(COLUMNS.len());
        let names = COLUMNS.iter().map(|(name, _)| (*name).to_owned());
        let mut numbers: Map<String, Value> = names.zip(named.iter().map(|n| json!(n))).collect();
        numbers.insert("late_us_by_power".to_owned(), json!(late));
        Value::Object(numbers)
    }

    /// One row of each `every`, the newest among them, as JSON: names, and rows of numbers. The
    /// last numbers of a row are the lateness by powers of two of microseconds.
    pub(super) fn write(&self, every: usize) -> String {
        let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
        let mut text = format!("{{\"names\":{},\"rows\":[", json!(names));
        let skipped = (self.rows.len() - 1) % every;
        for (i, row) in self.rows.iter().skip(skipped).step_by(every).enumerate() {
            text.push_str(if i > 0 { ",[" } else { "[" });
            for (column, number) in row.iter().enumerate() {
                let comma = if column > 0 { "," } else { "" };
                let written = write!(text, "{comma}{number}");
                debug_assert!(written.is_ok(), "a String takes everything");
            }
            text.push(']');
        }
        text.push_str("]}");
        text
    }
}

/// Adds a row each second, for ever.
pub(super) async fn fill(hour: &Mutex<Hour>, server: &Server) {
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    // The first tick is now, and that row is there.
    seconds.tick().await;
    loop {
        seconds.tick().await;
        let row = Reading::of(server).row();
        hour.lock().add(row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept_and_every_nth_row_is_told_with_the_newest() {
        let row = |second: usize| {
            let mut row = [0.5; WIDTH];
            row[0] = second as f64;
            row
        };
        let mut hour = Hour {
            rows: VecDeque::from([row(0)]),
        };
        for second in 1..SECONDS + 10 {
            hour.add(row(second));
        }
        assert_eq!(hour.rows.len(), SECONDS);
        for every in [1, 7, 60, SECONDS * 2] {
            let told: Value = serde_json::from_str(&hour.write(every)).expect("JSON");
            let rows = told["rows"].as_array().expect("rows");
            assert_eq!(rows.len(), SECONDS.div_ceil(every));
            let last = rows.last().expect("the newest");
            assert_eq!(last[0], json!(SECONDS + 9));
            assert_eq!(last.as_array().map(Vec::len), Some(WIDTH));
        }
        assert_eq!(hour.newest()["tick"], json!(0.5));
    }
}
