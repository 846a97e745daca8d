//! Replies become numbers. What has another shape than expected is an error in words.

use std::collections::BTreeMap;
use std::time::Duration;

use tidewheel_resp::Reply;

use super::text::{name, plain};

/// What a question has brought, or why it has brought nothing, in words.
pub(super) type Answer<T> = Result<T, String>;

/// The fields of INFO that are kept; others are forgotten, whatever a server sends.
#[rustfmt::skip] // A line for each group.
const FIELDS: &[&str] = &[
    "redis_version", "tidewheel_version", "server_time_usec", "uptime_in_seconds",
    "connected_clients", "blocked_clients", "used_memory", "maxmemory", "used_cpu_sys", "used_cpu_user",
    "total_commands_processed", "keyspace_hits", "keyspace_misses", "expired_keys", "evicted_keys",
    "expiry_frozen", "lateness_p50_us", "lateness_p99_us", "lateness_max_us", "lateness_histogram_us",
    "backlog_shards", "backlog_ms", "next_deadline_ms",
    "loading", "loading_loaded_perc", "rdb_changes_since_last_save", "rdb_bgsave_in_progress", "rdb_last_save_time",
    "rdb_last_bgsave_status", "rdb_saves", "aof_enabled", "aof_last_write_status", "aof_current_size",
];

/// The longest value of a field.
const VALUE_MAX: usize = 1 << 10;

/// Rows that are kept of a table.
const ROWS_MAX: usize = 500;

/// Windows of the forecast, from now to the last; the keys without a deadline come last.
pub(super) const WINDOWS: [&str; 8] = [
    "due now",
    "in 1 s",
    "to 10 s",
    "to 1 min",
    "to 1 h",
    "to 1 day",
    "later",
    "no deadline",
];

/// Keys of each of the windows.
pub(super) type Forecast = [u64; WINDOWS.len()];

/// The counters of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Info {
    fields: BTreeMap<&'static str, String>,
    /// Keys of all databases.
    pub(super) keys: f64,
}

/// One prefix of the forecast.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prefix {
    pub(super) name: String,
    pub(super) keys: u64,
    pub(super) next: Duration,
    pub(super) last: Duration,
}

/// An entry of the slow log.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slow {
    pub(super) at_s: i64,
    pub(super) took: Duration,
    pub(super) call: String,
}

/// The times of all commands, at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Commands {
    pub(super) at_us: f64,
    /// Most calls first.
    pub(super) rows: Vec<CommandRow>,
}

/// The times of one command.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CommandRow {
    pub(super) name: String,
    pub(super) calls: f64,
    pub(super) mean_us: f64,
    pub(super) failed: f64,
    /// Percentiles as the server names them, in microseconds.
    pub(super) within_us: Vec<(String, f64)>,
}

impl Info {
    /// Reads what INFO says.
    pub(super) fn of(text: &str) -> Self {
        let mut info = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            if let Some(field) = FIELDS.iter().find(|field| **field == name) {
                let value = value.chars().take(VALUE_MAX).collect();
                info.fields.insert(field, value);
            } else if is_database(name) {
                info.keys += number_of(value, "keys");
            }
        }
        info
    }

    /// A field as it is.
    pub(super) fn text(&self, field: &str) -> Option<&str> {
        debug_assert!(FIELDS.contains(&field), "{field} is not kept");
        self.fields.get(field).map(String::as_str)
    }

    /// A field that is a number.
    pub(super) fn number(&self, field: &str) -> Option<f64> {
        let number = self.text(field)?.parse::<f64>().ok();
        number.filter(|number| number.is_finite())
    }

    /// How much a counter has grown since an earlier reading; nothing after a reset.
    pub(super) fn grown(&self, before: &Self, field: &str) -> Option<f64> {
        let grown = self.number(field)? - before.number(field)?;
        (grown >= 0.0).then_some(grown)
    }

    /// How much a counter grows in a second.
    pub(super) fn rate(&self, before: &Self, field: &str) -> Option<f64> {
        let seconds = self.grown(before, "server_time_usec")? / 1e6;
        let grown = self.grown(before, field)?;
        (seconds > 0.0).then(|| grown / seconds)
    }

    /// Within which time this part of the keys was removed that were removed since an earlier
    /// reading: a power of two of microseconds.
    pub(super) fn late_since(&self, before: &Self, part: f64) -> Option<Duration> {
        let now = self.late()?;
        let then = before.late()?;
        // Numbers include those before them, and the last one all.
        let earlier = |us: u64| {
            let at = then.iter().rev().find(|(power, _)| *power <= us);
            at.map_or(0, |(_, keys)| *keys)
        };
        let left: Vec<(u64, u64)> = (now.iter())
            .map(|(us, keys)| Some((*us, keys.checked_sub(earlier(*us))?)))
            .collect::<Option<_>>()?;
        let all = left.last()?.1 as f64;
        let (us, _) = left.iter().find(|(_, keys)| *keys as f64 >= all * part)?;
        (all > 0.0).then(|| Duration::from_micros(*us))
    }

    /// Powers of two of microseconds, and how many keys were removed within them.
    fn late(&self) -> Option<Vec<(u64, u64)>> {
        let buckets = self.text("lateness_histogram_us")?.split(',');
        let bucket = |bucket: &str| {
            let (us, keys) = bucket.split_once('=')?;
            Some((us.parse().ok()?, keys.parse().ok()?))
        };
        buckets.map(bucket).collect()
    }
}

/// True for `db0`, `db1` and so on.
fn is_database(name: &str) -> bool {
    let number = name.strip_prefix("db").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number of `a=1,b=2`; 0 if there is none.
fn number_of(pairs: &str, name: &str) -> f64 {
    let mut pairs = pairs.split(',').filter_map(|pair| pair.split_once('='));
    let value = pairs.find(|(own, _)| *own == name);
    let number = value.and_then(|(_, value)| value.parse::<f64>().ok());
    number.filter(|number| number.is_finite()).unwrap_or(0.0)
}

/// Reads INFO.
pub(super) fn info(reply: &Reply) -> Answer<Info> {
    Ok(Info::of(&info_text(reply)?))
}

fn info_text(reply: &Reply) -> Answer<String> {
    match reply {
        Reply::Bulk(bytes) | Reply::Verbatim(_, bytes) => {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
        _ => Err(odd()),
    }
}

/// Reads EXPIRY FORECAST.
pub(super) fn forecast(reply: &Reply) -> Answer<Forecast> {
    let Reply::Map(pairs) = reply else {
        return Err(odd());
    };
    let mut windows = Forecast::default();
    for (name, keys) in pairs {
        let window = match bytes(name) {
            b"due, and not removed yet" => 0,
            b"within 1 s" => 1,
            b"1 s to 10 s" => 2,
            b"10 s to 1 min" => 3,
            b"1 min to 10 min" | b"10 min to 1 h" => 4,
            b"1 h to 6 h" | b"6 h to 1 day" => 5,
            b"without a deadline" => 7,
            b"all with a deadline" => continue,
            _ => 6,
        };
        windows[window] = windows[window].saturating_add(whole(keys));
    }
    Ok(windows)
}

/// Reads EXPIRY FORECAST BY PREFIX.
pub(super) fn prefixes(reply: &Reply) -> Answer<Vec<Prefix>> {
    let Reply::Map(pairs) = reply else {
        return Err(odd());
    };
    let row = |(prefix, facts): &(Reply, Reply)| {
        let fact = |name: &[u8]| match facts {
            Reply::Map(facts) => facts.iter().find(|(own, _)| bytes(own) == name),
            _ => None,
        };
        let ms = |name: &[u8]| fact(name).map_or(0, |(_, ms)| whole(ms));
        Prefix {
            name: name(bytes(prefix)),
            keys: ms(b"keys"),
            next: Duration::from_millis(ms(b"next-ms")),
            last: Duration::from_millis(ms(b"last-ms")),
        }
    };
    Ok(pairs.iter().take(ROWS_MAX).map(row).collect())
}

/// Reads SLOWLOG GET, the newest first.
pub(super) fn slow(reply: &Reply) -> Answer<Vec<Slow>> {
    let Reply::Array(entries) = reply else {
        return Err(odd());
    };
    let entry = |entry: &Reply| {
        let Reply::Array(facts) = entry else {
            return Err(odd());
        };
        let [_, Reply::Integer(at_s), us, Reply::Array(words), ..] = &facts[..] else {
            return Err(odd());
        };
        // More than a line has.
        let words = words.iter().take(32).map(|word| name(bytes(word)));
        Ok(Slow {
            at_s: *at_s,
            took: Duration::from_micros(whole(us)),
            call: words.collect::<Vec<_>>().join(" "),
        })
    };
    entries.iter().take(ROWS_MAX).map(entry).collect()
}

/// Reads INFO commandstats and latencystats.
pub(super) fn commands(reply: &Reply) -> Answer<Commands> {
    let text = info_text(reply)?;
    let mut rows = BTreeMap::<&str, CommandRow>::new();
    for (field, facts) in text.lines().filter_map(|line| line.split_once(':')) {
        let name = (field.strip_prefix("cmdstat_"))
            .or_else(|| field.strip_prefix("latency_percentiles_usec_"));
        let Some(name) = name.filter(|name| rows.len() < ROWS_MAX || rows.contains_key(name))
        else {
            continue;
        };
        let row = rows.entry(name).or_default();
        if field.starts_with("cmdstat_") {
            row.name = plain(name);
            row.calls = number_of(facts, "calls");
            row.mean_us = number_of(facts, "usec_per_call");
            row.failed = number_of(facts, "failed_calls") + number_of(facts, "rejected_calls");
        } else {
            let pairs = facts.split(',').filter_map(|pair| pair.split_once('='));
            let pairs = pairs.map(|(name, _)| (plain(name), number_of(facts, name)));
            row.within_us = pairs.take(3).collect();
        }
    }
    let mut rows: Vec<CommandRow> = rows
        .into_values()
        .filter(|row| !row.name.is_empty())
        .collect();
    rows.sort_by(|a, b| b.calls.total_cmp(&a.calls));
    Ok(Commands {
        at_us: Info::of(&text).number("server_time_usec").unwrap_or(0.0),
        rows,
    })
}

fn bytes(reply: &Reply) -> &[u8] {
    match reply {
        Reply::Bulk(bytes) | Reply::Verbatim(_, bytes) => bytes,
        Reply::Simple(text) => text.as_bytes(),
        _ => b"",
    }
}

/// A number that is not negative; 0 for anything else.
fn whole(reply: &Reply) -> u64 {
    match reply {
        Reply::Integer(number) => u64::try_from(*number).unwrap_or(0),
        _ => 0,
    }
}

fn odd() -> String {
    "the reply has another form than expected".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, Reply)]) -> Reply {
        let pair = |(name, value): &(&str, Reply)| (bulk(name), value.clone());
        Reply::Map(pairs.iter().map(pair).collect())
    }

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn windows_of_the_server_fall_into_eight() {
        let keys = Reply::Integer;
        let reply = map(&[
            ("due, and not removed yet", keys(1)),
            ("within 1 s", keys(2)),
            ("1 s to 10 s", keys(3)),
            ("10 s to 1 min", keys(4)),
            ("1 min to 10 min", keys(5)),
            ("10 min to 1 h", keys(6)),
            ("1 h to 6 h", keys(7)),
            ("6 h to 1 day", keys(8)),
            ("1 day to 7 days", keys(9)),
            ("after 10 years", keys(10)),
            ("all with a deadline", keys(55)),
            ("without a deadline", keys(11)),
        ]);
        assert_eq!(forecast(&reply), Ok([1, 2, 3, 4, 11, 15, 19, 11]));
    }

    #[test]
    fn rates_are_those_between_two_readings() {
        let then = Info::of("server_time_usec:1000000\r\nexpired_keys:10\r\nevicted_keys:5\r\n");
        let now = Info::of("server_time_usec:3000000\r\nexpired_keys:30\r\nevicted_keys:0\r\n");
        assert_eq!(now.rate(&then, "expired_keys"), Some(10.0));
        assert_eq!(now.rate(&then, "evicted_keys"), None, "it was reset");
        assert_eq!(now.rate(&now, "expired_keys"), None, "no time has passed");
    }

    #[test]
    fn lateness_is_that_of_the_keys_between_two_readings() {
        let of = |text: &str| Info::of(&format!("lateness_histogram_us:{text}\r\n"));
        let (then, now) = (of("1=100,2=100"), of("1=100,2=100,4=104,8=110"));
        assert_eq!(now.late_since(&then, 0.4), Some(Duration::from_micros(4)));
        assert_eq!(now.late_since(&then, 0.99), Some(Duration::from_micros(8)));
        assert_eq!(now.late_since(&now, 0.5), None, "no key has left");
        assert_eq!(then.late_since(&now, 0.5), None, "it was reset");
        assert_eq!(of("x").late_since(&then, 0.5), None);
    }

    #[test]
    fn commands_have_calls_and_percentiles() {
        let text = "# Commandstats\r\n\
            cmdstat_get:calls=5,usec=9,usec_per_call=1.80,rejected_calls=1,failed_calls=2\r\n\
            cmdstat_set:calls=7,usec=9,usec_per_call=1.80,rejected_calls=0,failed_calls=0\r\n\
            latency_percentiles_usec_get:p50=1.003,p99=2.007,p99.9=4.015\r\n";
        let read = commands(&bulk(text)).expect("commands");
        assert_eq!(
            (read.rows[0].name.as_str(), read.rows[0].calls),
            ("set", 7.0)
        );
        let get = &read.rows[1];
        assert_eq!((get.failed, get.mean_us), (3.0, 1.8));
        assert_eq!(get.within_us[2], ("p99.9".to_owned(), 4.015));
    }

    #[test]
    fn replies_of_another_shape_are_errors_or_nothing() {
        let nested = Reply::Array(vec![Reply::Array(vec![Reply::Null; 6])]);
        for reply in [
            Reply::Null,
            Reply::Integer(1),
            nested,
            Reply::Double(f64::NAN),
        ] {
            assert!(
                info(&reply).is_err() && commands(&reply).is_err(),
                "{reply:?}"
            );
            assert!(
                forecast(&reply).is_err() && prefixes(&reply).is_err(),
                "{reply:?}"
            );
            assert!(slow(&reply).is_err(), "{reply:?}");
        }
        let odd = map(&[
            ("p:", Reply::Null),
            ("q:", Reply::Map(vec![(Reply::Null, Reply::Null)])),
        ]);
        assert_eq!(prefixes(&odd).map(|rows| rows[1].keys), Ok(0));
        let huge = map(&[
            ("within 1 s", Reply::Integer(i64::MAX)),
            ("x", Reply::Integer(i64::MIN)),
        ]);
        assert_eq!(forecast(&huge).map(|windows| windows[6]), Ok(0));
        let info = Info::of(
            "uptime_in_seconds:NaN\r\nmaxmemory:inf\r\nunknown:1\r\n:\r\ndb0:keys=inf\r\n",
        );
        assert_eq!((info.number("uptime_in_seconds"), info.keys), (None, 0.0));
    }
}
