//! Tasks and claims as parameters and rows.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::shape::claim::{Claim, Fence, Verdict};
use crate::shape::dead::DeadLetter;
use crate::shape::look::{Look, State};
use crate::shape::sum::{letter_error, sum};
use crate::shape::task::{Due, Priority, Task};
use crate::shape::terms::Terms;
use crate::shape::timestamp::Timestamp;

/// A due time, as two parameters of which one is null.
#[derive(Debug, Clone, Copy)]
pub(super) struct When {
    pub(super) wait: Option<i64>,
    pub(super) at: Option<i64>,
}

impl When {
    pub(super) fn of(due: Due) -> Self {
        match due {
            Due::After(wait) => Self {
                wait: Some(micros(wait)),
                at: None,
            },
            Due::At(_) => Self {
                wait: None,
                at: Some(signed(due.at(Timestamp(0)).0)),
            },
        }
    }
}

/// A task as parameters.
#[derive(Debug)]
pub(super) struct Order {
    id: String,
    when: When,
    payload: Vec<u8>,
    priority: i16,
    every: Option<i64>,
    terms: Option<String>,
    checksum: i64,
    queue: String,
    unique_for: Option<i64>,
}

impl Order {
    pub(super) fn of(task: Task) -> Self {
        let terms = task.terms.text();
        let checksum = sum(&task.id, &task.payload, &[], &terms).cast_signed();
        Self {
            checksum,
            terms: text(terms),
            id: task.id,
            when: When::of(task.due),
            payload: task.payload,
            priority: i16::from(task.priority.level()),
            every: task.terms.every().map(micros),
            unique_for: task.terms.unique_for.map(micros),
            queue: task.terms.queue,
        }
    }

    pub(super) fn parameters<'a>(&'a self, space: &'a String) -> [&'a (dyn ToSql + Sync); 11] {
        let When { wait, at } = &self.when;
        [
            space,
            &self.id,
            wait,
            at,
            &self.payload,
            &self.priority,
            &self.every,
            &self.terms,
            &self.checksum,
            &self.queue,
            &self.unique_for,
        ]
    }
}

/// Many tasks as parameters: a column each.
#[derive(Debug, Default)]
pub(super) struct Orders {
    ids: Vec<String>,
    waits: Vec<Option<i64>>,
    ats: Vec<Option<i64>>,
    payloads: Vec<Vec<u8>>,
    priorities: Vec<i16>,
    periods: Vec<Option<i64>>,
    terms: Vec<Option<String>>,
    checksums: Vec<i64>,
    queues: Vec<String>,
    unique: Vec<Option<i64>>,
}

impl Orders {
    pub(super) fn of(tasks: impl IntoIterator<Item = Task>) -> Self {
        let mut orders = Self::default();
        for order in tasks.into_iter().map(Order::of) {
            orders.ids.push(order.id);
            orders.waits.push(order.when.wait);
            orders.ats.push(order.when.at);
            orders.payloads.push(order.payload);
            orders.priorities.push(order.priority);
            orders.periods.push(order.every);
            orders.terms.push(order.terms);
            orders.checksums.push(order.checksum);
            orders.queues.push(order.queue);
            orders.unique.push(order.unique_for);
        }
        orders
    }

    /// The number of those that are to be unique.
    pub(super) fn unique(&self) -> usize {
        self.unique.iter().flatten().count()
    }

    pub(super) fn parameters<'a>(&'a self, space: &'a String) -> [&'a (dyn ToSql + Sync); 11] {
        [
            space,
            &self.ids,
            &self.waits,
            &self.ats,
            &self.payloads,
            &self.priorities,
            &self.periods,
            &self.terms,
            &self.checksums,
            &self.queues,
            &self.unique,
        ]
    }
}

/// The due times of tasks, by their ids.
pub(super) fn dues(rows: &[Row]) -> HashMap<String, Timestamp> {
    let due = |row: &Row| (row.get(0), Timestamp(number(row, 1)));
    rows.iter().map(due).collect()
}

/// Claims as parameters.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) ids: Vec<String>,
    pub(super) fences: Vec<i64>,
}

impl Named {
    pub(super) fn one(claim: &Claim) -> Self {
        Self {
            ids: vec![id(claim)],
            fences: vec![signed(claim.fence.0)],
        }
    }

    pub(super) fn of(claims: &[Arc<Claim>]) -> Self {
        Self {
            ids: claims.iter().map(|claim| id(claim)).collect(),
            fences: claims.iter().map(|claim| signed(claim.fence.0)).collect(),
        }
    }
}

/// A claim's id; the empty one, which no task has, where a text cannot say it.
fn id(claim: &Claim) -> String {
    if claim.id.contains('\0') {
        return String::new();
    }
    claim.id.clone()
}

/// The verdicts about claims that are extended, from rows of fences: the same for two equal claims.
pub(super) fn extended(claims: &[Arc<Claim>], rows: &[Row]) -> Vec<Verdict> {
    let rows_by_fence: HashMap<u64, bool> = rows.iter().map(fence_row).collect();
    let verdict = |claim: &Arc<Claim>| verdict(rows_by_fence.get(&claim.fence.0).copied());
    claims.iter().map(verdict).collect()
}

/// The verdicts about claims, from rows of fences. A claim that has no row is refused, and so is
/// the second of two equal claims.
pub(super) fn verdicts(claims: &[Arc<Claim>], rows: &[Row]) -> Vec<Verdict> {
    let mut rows_by_fence: HashMap<u64, bool> = rows.iter().map(fence_row).collect();
    let verdict = |claim: &Arc<Claim>| verdict(rows_by_fence.remove(&claim.fence.0));
    claims.iter().map(verdict).collect()
}

/// A fence, and whether its claim was the task's and could be changed.
fn fence_row(row: &Row) -> (u64, bool) {
    (number(row, 0), row.get(1))
}

/// The verdict of a row, if there was one.
pub(super) fn verdict(current: Option<bool>) -> Verdict {
    match current {
        Some(true) => Verdict::Accepted,
        Some(false) => Verdict::Busy,
        None => Verdict::Refused,
    }
}

pub(super) fn claim(row: &Row, lease: Duration) -> Claim {
    let due = Timestamp(number(row, 1));
    let mut claim = Claim::new(row.get::<_, String>(0), due, Fence(number(row, 7)), lease);
    claim.began = Timestamp(number(row, 2));
    claim.payload = row.get(3);
    claim.priority = Priority::of_level(row.get::<_, i16>(4).try_into().unwrap_or(1));
    let every: Option<i64> = row.get(5);
    let every = every.map(|us| Duration::from_micros(us.cast_unsigned()));
    let terms: Option<&str> = row.get(9);
    claim.terms = Terms::read(every, terms);
    claim.attempt = row.get::<_, i32>(6).try_into().unwrap_or(u32::MAX);
    claim.lost = row.get::<_, i32>(10).try_into().unwrap_or(0);
    claim.doubtful = row.get::<_, i16>(11) > 0;
    let checksum: i64 = row.get(8);
    claim.is_damaged = !is_whole(&claim.id, &claim.payload, terms, checksum);
    claim
}

/// True if a row is as it was written.
pub(super) fn is_whole(id: &str, payload: &[u8], terms: Option<&str>, checksum: i64) -> bool {
    sum(id, payload, &[], terms.unwrap_or_default()) == checksum.cast_unsigned()
}

pub(super) fn letter(row: &Row) -> DeadLetter {
    let attempts = row.get::<_, i32>(2).try_into().unwrap_or(u32::MAX);
    let (id, payload): (String, Vec<u8>) = (row.get(0), row.get(1));
    let error = letter_error(row.get(3), is_whole(&id, &payload, row.get(5), row.get(6)));
    let mut letter = DeadLetter::new(id, attempts, error);
    letter.payload = payload;
    letter.died = Timestamp(number(row, 4));
    letter.terms = Terms::read(None, row.get(5));
    letter
}

/// A row of looks; the error of a task or a letter that is not as it was written says so.
pub(super) fn look(row: &Row) -> Look {
    let due = Timestamp(number(row, 3));
    let mut look = Look::new(row.get::<_, String>(1), due, row.get(9));
    look.state = match row.get::<_, i16>(0) {
        1 => State::Done,
        2 => State::Dead,
        _ if row.get::<_, Option<bool>>(5) == Some(true) => State::Claimed,
        _ => State::Pending,
    };
    look.priority = Priority::of_level(row.get::<_, i16>(10).try_into().unwrap_or(1));
    let every: Option<i64> = row.get(11);
    let every = every.map(|us| Duration::from_micros(us.cast_unsigned()));
    let terms: Option<&str> = row.get(12);
    look.terms = Terms::read(every, terms);
    look.terms.queue = row.get(2);
    look.attempt = row.get::<_, i32>(4).try_into().unwrap_or(u32::MAX);
    (look.progress, look.result, look.error) = (row.get(6), row.get(7), row.get(8));
    // A result has none.
    let checksum: Option<i64> = row.get(13);
    let is_whole =
        checksum.is_none_or(|checksum| is_whole(&look.id, &look.payload, terms, checksum));
    // Nobody claims what has another priority.
    let is_whole = is_whole && (0..=2).contains(&row.get::<_, i16>(10));
    look.error = match look.error {
        Some(error) => Some(letter_error(error, is_whole)),
        None => (!is_whole).then(|| "it is damaged, or no task of ours".to_owned()),
    };
    look
}

/// A text, null if it is empty.
pub(super) fn text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// A number that is not negative, from a column that could have others.
pub(super) fn number(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).try_into().unwrap_or(0)
}

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A duration in microseconds, rounded up. A tenth of what the type can say is left for sums.
pub(super) fn micros(duration: Duration) -> i64 {
    let us = i64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(i64::MAX);
    us.min(i64::MAX / 10)
}
