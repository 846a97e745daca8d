//! EXPIRY FORECAST: what will expire, and when.

use std::collections::HashMap;

use tidewheel_resp::{Protocol, Writer};
use tidewheel_store::Forecast;

use crate::budget::Budget;
use crate::context::Context;
use crate::error::CommandError;
use crate::steps::{ShardCursor, Steps, StepsFn};
use crate::value;

/// Windows of the raw form: what is due, and one for each power of two of milliseconds.
const POWERS: usize = 65;

/// The windows that people read: their ends in milliseconds, and in words.
const ENDS: [(u64, &str); 12] = [
    (0, ""),
    (SECOND, "1 s"),
    (10 * SECOND, "10 s"),
    (MINUTE, "1 min"),
    (10 * MINUTE, "10 min"),
    (HOUR, "1 h"),
    (6 * HOUR, "6 h"),
    (DAY, "1 day"),
    (7 * DAY, "7 days"),
    (30 * DAY, "30 days"),
    (365 * DAY, "1 year"),
    (3650 * DAY, "10 years"),
];

const EDGES: [u64; ENDS.len()] = {
    let mut edges = [0; ENDS.len()];
    let mut i = 0;
    while i < edges.len() {
        edges[i] = ENDS[i].0;
        i += 1;
    }
    edges
};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The cost of a shard's forecast: a look at each slot of its wheel.
const SHARD_COST: usize = 32;

/// Entries that one hold of a shard's lock visits.
const STEP: usize = 256;

/// The most prefixes that are told apart, and the most bytes of one.
const PREFIXES_MAX: usize = 10_000;
const PREFIX_MAX: usize = 256;

/// Prefixes that are answered by default, and the most.
const SHOWN: usize = 20;
const SHOWN_MAX: i64 = 1_000;

const BUCKETS_OUT_OF_RANGE: CommandError =
    CommandError::fixed("ERR buckets must be between 1 and 65");
const COUNT_OUT_OF_RANGE: CommandError =
    CommandError::fixed("ERR COUNT must be between 1 and 1000");
const NO_DELIMITER: CommandError = CommandError::fixed("ERR DELIMITER must not be empty");

/// Three forms:
///
/// - Without an argument, windows for people: `within 1 s: 12 keys`, `1 s to 10 s: 100 keys`, up to
///   the last one that has keys, then all, and those without a deadline. In RESP3 it is a map from
///   the windows to the numbers.
/// - With a number, so many raw windows: `[from, to, keys]` in milliseconds from now, first what is
///   due already, then `[1, 2)`, `[2, 4)`, `[4, 8)` and so on. The last one includes all later keys
///   and says −1 for its end.
/// - `BY PREFIX`: how many keys of each prefix have a deadline, when the next is due, and the last.
///   A prefix ends with the first DELIMITER (`:`). It visits all keys, in steps.
pub(crate) const FORECAST: StepsFn = StepsFn(|ctx| match ctx.args.len() {
    2 => Ok(Box::new(ReadableForecast::default())),
    3 => match usize::try_from(ctx.integer(2)?) {
        Ok(wanted @ 1..=POWERS) => Ok(Box::new(RawForecast {
            wanted,
            place: ShardCursor::default(),
            windows: [0; POWERS],
        })),
        _ => Err(BUCKETS_OUT_OF_RANGE),
    },
    _ if ctx.is(2, "BY") && ctx.is(3, "PREFIX") => Ok(Box::new(by_prefix(ctx)?)),
    _ => Err(CommandError::SYNTAX),
});

/// The raw form on its way.
#[derive(Debug)]
struct RawForecast {
    wanted: usize,
    place: ShardCursor,
    windows: Forecast,
}

impl Steps for RawForecast {
    fn step(&mut self, ctx: &mut Context<'_, '_>, budget: &mut Budget) -> bool {
        let Self { place, windows, .. } = self;
        let (db, now) = (ctx.session.db, ctx.now.tick);
        place.each_shard(ctx, budget, |ctx, budget, _| {
            budget.spend(SHARD_COST);
            ctx.locked().entries(db).forecast(now, windows);
            None
        })
    }

    fn head(&self, out: &mut Writer) {
        let mut windows = self.windows;
        let shown = self.wanted;
        let beyond: u64 = windows[shown..].iter().sum();
        windows[shown - 1] += beyond;
        let edge = |power: usize| 1_i64.checked_shl(power as u32).filter(|&edge| edge > 0);
        out.array(shown);
        for (i, &keys) in windows[..shown].iter().enumerate() {
            let from = i.checked_sub(1).map(edge);
            let to = edge(i).filter(|_| i + 1 < shown);
            out.array(3);
            out.integer(from.map_or(0, |from| from.unwrap_or(i64::MAX)));
            out.integer(to.unwrap_or(-1));
            out.integer(number(keys));
        }
    }
}

/// The form for people on its way.
#[derive(Debug, Default)]
struct ReadableForecast {
    place: ShardCursor,
    windows: [u64; EDGES.len() + 1],
    /// All keys.
    keys: u64,
}

impl Steps for ReadableForecast {
    fn step(&mut self, ctx: &mut Context<'_, '_>, budget: &mut Budget) -> bool {
        let Self {
            place,
            windows,
            keys,
        } = self;
        let (db, now) = (ctx.session.db, ctx.now.tick);
        place.each_shard(ctx, budget, |ctx, budget, _| {
            budget.spend(SHARD_COST);
            let entries = ctx.locked().entries(db);
            entries.spans(now, &EDGES, |span| span.spread(&EDGES, windows));
            *keys += entries.len() as u64;
            None
        })
    }

    fn head(&self, out: &mut Writer) {
        let timed: u64 = self.windows.iter().sum();
        let last = self.windows.iter().rposition(|keys| *keys > 0);
        let shown = last.map_or(0, |last| last + 1);
        let mut lines: Vec<(String, u64)> = self.windows[..shown]
            .iter()
            .enumerate()
            .filter(|(i, keys)| *i > 0 || **keys > 0)
            .map(|(i, keys)| (window_name(i), *keys))
            .collect();
        lines.push(("all with a deadline".to_owned(), timed));
        lines.push((
            "without a deadline".to_owned(),
            self.keys.saturating_sub(timed),
        ));
        match out.protocol() {
            Protocol::Resp3 => out.map(lines.len()),
            Protocol::Resp2 => out.array(lines.len()),
        }
        for (name, keys) in lines {
            match out.protocol() {
                Protocol::Resp3 => {
                    out.bulk(name.as_bytes());
                    out.integer(number(keys));
                }
                Protocol::Resp2 => out.bulk(format!("{name}: {}", counted(keys)).as_bytes()),
            }
        }
    }
}

fn window_name(i: usize) -> String {
    let end = |i: usize| ENDS.get(i).map(|(_, name)| *name);
    match (i, end(i)) {
        (0, _) => "due, and not removed yet".to_owned(),
        (1, Some(to)) => format!("within {to}"),
        (_, Some(to)) => format!("{} to {to}", end(i - 1).unwrap_or_default()),
        (_, None) => format!("after {}", end(i - 1).unwrap_or_default()),
    }
}

/// One prefix's keys with a deadline.
#[derive(Debug, Clone, Copy)]
struct OfPrefix {
    keys: u64,
    next: u64,
    last: u64,
}

impl OfPrefix {
    fn join(&mut self, more: Self) {
        self.keys += more.keys;
        self.next = self.next.min(more.next);
        self.last = self.last.max(more.last);
    }
}

/// The form by prefix on its way.
#[derive(Debug)]
struct PrefixForecast {
    delimiter: Box<[u8]>,
    shown: usize,
    place: ShardCursor,
    prefixes: HashMap<Box<[u8]>, OfPrefix>,
    /// Keys whose prefixes are too many or too long.
    others: Option<OfPrefix>,
    now: u64,
}

fn by_prefix(ctx: &Context<'_, '_>) -> Result<PrefixForecast, CommandError> {
    let mut forecast = PrefixForecast {
        delimiter: b":"[..].into(),
        shown: SHOWN,
        place: ShardCursor::default(),
        prefixes: HashMap::new(),
        others: None,
        now: ctx.now.tick,
    };
    for at in (4..ctx.args.len()).step_by(2) {
        let value = ctx.args.get(at + 1).ok_or(CommandError::SYNTAX)?;
        if ctx.is(at, "DELIMITER") {
            if value.is_empty() {
                return Err(NO_DELIMITER);
            }
            forecast.delimiter = value.into();
        } else if ctx.is(at, "COUNT") {
            let count = ctx.integer(at + 1)?;
            let count = (1..=SHOWN_MAX).contains(&count).then_some(count as usize);
            forecast.shown = count.ok_or(COUNT_OUT_OF_RANGE)?;
        } else {
            return Err(CommandError::SYNTAX);
        }
    }
    Ok(forecast)
}

impl PrefixForecast {
    fn add(&mut self, key: &[u8], deadline: u64) {
        let one = OfPrefix {
            keys: 1,
            next: deadline,
            last: deadline,
        };
        let windows = key.windows(self.delimiter.len()).take(PREFIX_MAX);
        let end = windows
            .into_iter()
            .position(|part| part == &*self.delimiter);
        let prefix = end.map_or(&b""[..], |end| &key[..end + self.delimiter.len()]);
        if let Some(known) = self.prefixes.get_mut(prefix) {
            known.join(one);
        } else if self.prefixes.len() < PREFIXES_MAX {
            self.prefixes.insert(prefix.into(), one);
        } else {
            self.others
                .get_or_insert(OfPrefix { keys: 0, ..one })
                .join(one);
        }
    }
}

impl Steps for PrefixForecast {
    fn step(&mut self, ctx: &mut Context<'_, '_>, budget: &mut Budget) -> bool {
        let (db, mut place) = (ctx.session.db, self.place);
        let done = place.each_shard(ctx, budget, |ctx, budget, cursor| {
            let entries = ctx.locked().entries(db);
            entries.scan(cursor, STEP, |slot| {
                budget.spend(1);
                if let Some(deadline) = value::own_deadline(entries, slot) {
                    self.add(entries.key(slot), deadline);
                }
            })
        });
        self.place = place;
        done
    }

    fn head(&self, out: &mut Writer) {
        let named = self
            .prefixes
            .iter()
            .map(|(prefix, of)| (shown(prefix), *of));
        let others = self.others.map(|of| ("(others)".to_owned(), of));
        let mut lines: Vec<(String, OfPrefix)> = named.chain(others).collect();
        lines.sort_by(|a, b| b.1.keys.cmp(&a.1.keys).then_with(|| a.0.cmp(&b.0)));
        lines.truncate(self.shown);
        let ms = |deadline: u64| deadline.saturating_sub(self.now);
        match out.protocol() {
            Protocol::Resp3 => out.map(lines.len()),
            Protocol::Resp2 => out.array(lines.len()),
        }
        for (name, of) in lines {
            let (next, last) = (ms(of.next), ms(of.last));
            match out.protocol() {
                Protocol::Resp3 => {
                    out.bulk(name.as_bytes());
                    out.map(3);
                    for (what, value) in [("keys", of.keys), ("next-ms", next), ("last-ms", last)] {
                        out.bulk(what.as_bytes());
                        out.integer(number(value));
                    }
                }
                Protocol::Resp2 => {
                    let (keys, next, last) = (counted(of.keys), time(next), time(last));
                    let text = format!("{name}: {keys}, the next in {next}, the last in {last}");
                    out.bulk(text.as_bytes());
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        self.prefixes.len() * (PREFIX_MAX / 4 + size_of::<OfPrefix>())
    }
}

fn shown(prefix: &[u8]) -> String {
    match prefix {
        b"" => "(no prefix)".to_owned(),
        prefix => String::from_utf8_lossy(prefix).into_owned(),
    }
}

fn counted(keys: u64) -> String {
    match keys {
        1 => "1 key".to_owned(),
        keys => format!("{keys} keys"),
    }
}

/// A time as people say it, with three digits at most behind the point.
fn time(ms: u64) -> String {
    let units = [(DAY, "days"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")];
    match units.iter().find(|(of, _)| ms >= *of) {
        Some((of, name)) => format!("{:.1} {name}", ms as f64 / *of as f64),
        None => format!("{ms} ms"),
    }
}

fn number(keys: u64) -> i64 {
    i64::try_from(keys).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_follow_each_other_and_have_names() {
        assert!(EDGES.is_sorted_by(|a, b| a < b));
        let names: Vec<_> = (0..=EDGES.len()).map(window_name).collect();
        assert_eq!(names[1..4], ["within 1 s", "1 s to 10 s", "10 s to 1 min"]);
        assert_eq!(names.last().map(String::as_str), Some("after 10 years"));
    }

    #[test]
    fn times_are_said_in_the_greatest_unit() {
        let said: Vec<_> = [0, 999, 1_500, 90_000, 5_400_000, 172_800_000]
            .map(time)
            .to_vec();
        assert_eq!(
            said,
            ["0 ms", "999 ms", "1.5 s", "1.5 min", "1.5 h", "2.0 days"]
        );
    }
}
