//! Questions to the server under test: who it is, what it holds, what it may be told to do.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::{Value, json};
use tidewheel_resp::Reply;

use crate::proc;
use crate::report::Report;
use crate::servers::client::{Address, Connection};

const NOTIFY: &str = "notify-keyspace-events";

/// What every workload takes.
#[derive(Clone, Debug, clap::Args, Serialize)]
#[group(skip)]
pub(crate) struct Basics {
    /// Seed of keys, deadlines and times to live.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// A small run of a few seconds.
    #[arg(long)]
    pub(crate) quick: bool,
}

/// How to reach the server of one run, and its process where that can be watched.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: Address,
    /// `None`: ask the server; `Some(0)`: do not watch.
    pub(crate) pid: Option<u32>,
    /// Whether keys that are already there may be deleted.
    pub(crate) flush: bool,
}

/// What a server says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Its process on this machine.
    pub(crate) pid: Option<u32>,
    fields: BTreeMap<String, String>,
}

/// The lines of INFO that go into a report.
const REPORTED: [&str; 9] = [
    "server_name",
    "redis_version",
    "valkey_version",
    "tidewheel_version",
    "mem_allocator",
    "multiplexing_api",
    "io_threads_active",
    "server_threads",
    "gcc_version",
];

impl Facts {
    /// An empty report of this server.
    pub(crate) fn report(&self, workload: &str, params: Value) -> Report {
        let mut report = Report::new(workload, params).of(&self.name, &self.version);
        report.server = Some(json!({
            "name": self.name,
            "version": self.version,
            "pid_watched": self.pid.is_some(),
            "info": self.fields,
        }));
        report
    }
}

/// Connects and asks; refuses a server that holds keys unless they may be flushed.
pub(crate) fn meet(target: &Target) -> Result<(Connection, Facts)> {
    let mut connection = Connection::open(&target.address)?;
    let facts = facts(&mut connection, target)?;
    let held = dbsize(&mut connection)?;
    if held > 0 && !target.flush {
        bail!("the server holds {held} keys, which would be deleted: pass --flush if they may");
    }
    connection.call(&["FLUSHALL"])?;
    Ok((connection, facts))
}

fn facts(connection: &mut Connection, target: &Target) -> Result<Facts> {
    let mut info = info(connection, "server")?;
    // Valkey and Redis 8 tell the allocator among the memory figures only.
    if let Ok(mut memory) = self::info(connection, "memory") {
        info.extend(memory.remove_entry("mem_allocator"));
    }
    let name = info
        .get("server_name")
        .map_or("redis", String::as_str)
        .to_owned();
    let version = info.get(&format!("{name}_version"));
    let version = version.or_else(|| info.get("redis_version"));
    let version = version.cloned().unwrap_or_default();
    let is_local = ["127.0.0.1", "localhost", "::1"].contains(&target.address.host.as_str());
    let told = info.get("process_id").filter(|_| is_local);
    let pid = target.pid.or_else(|| told?.parse().ok());
    // Of process 0 nothing is told either.
    let pid = pid.filter(|&pid| proc::rss_bytes(pid).is_some());
    info.retain(|name, _| REPORTED.contains(&name.as_str()));
    Ok(Facts {
        name,
        version,
        pid,
        fields: info,
    })
}

/// One section of INFO, by field.
pub(crate) fn info(connection: &mut Connection, section: &str) -> Result<BTreeMap<String, String>> {
    let text = text(&connection.call(&["INFO", section])?);
    Ok(parse_info(
        &text.context("INFO was not answered with text")?,
    ))
}

/// The text of a status or a bulk.
fn text(reply: &Reply) -> Option<String> {
    match reply {
        Reply::Simple(text) => Some(text.clone()),
        Reply::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}

fn parse_info(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.trim_end().split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A number from INFO; `None` where the server does not tell it.
pub(crate) fn info_number(connection: &mut Connection, section: &str, field: &str) -> Option<f64> {
    info(connection, section).ok()?.get(field)?.parse().ok()
}

pub(crate) fn dbsize(connection: &mut Connection) -> Result<u64> {
    match connection.call(&["DBSIZE"])? {
        Reply::Integer(count) => u64::try_from(count).context("DBSIZE was negative"),
        other => bail!("DBSIZE was answered with {other:?}"),
    }
}

/// Keyspace events for `expired`, switched on; the setting that was there is put back.
#[derive(Debug)]
pub(crate) struct ExpiredEvents {
    connection: Connection,
    before: String,
}

impl ExpiredEvents {
    pub(crate) fn enable(address: &Address) -> Result<Self> {
        let mut connection = Connection::open(address)?;
        let before = match connection.call(&["CONFIG", "GET", NOTIFY])? {
            Reply::Array(items) => items.get(1).and_then(text).unwrap_or_default(),
            other => bail!("CONFIG GET was answered with {other:?}"),
        };
        connection.call(&["CONFIG", "SET", NOTIFY, "Ex"])?;
        Ok(Self { connection, before })
    }
}

impl Drop for ExpiredEvents {
    fn drop(&mut self) {
        let before = self.before.as_str();
        if let Err(error) = self.connection.call(&["CONFIG", "SET", NOTIFY, before]) {
            eprintln!("could not put {NOTIFY} back to {before:?}: {error:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read_by_field_and_comments_are_not() {
        let text = "# Server\r\nredis_version:7.0.15\r\nos:Linux: 6\r\n\r\nodd line\r\n";
        let info = parse_info(text);
        assert_eq!(info.len(), 2);
        assert_eq!(info["redis_version"], "7.0.15");
        assert_eq!(info["os"], "Linux: 6");
    }
}
