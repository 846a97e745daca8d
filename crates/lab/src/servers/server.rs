//! Asks the server under test for its name and its contents.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tidewheel_resp::Reply;

use crate::report::Report;
use crate::servers::client::Connection;

/// The server of one run: where it listens on this machine, and its process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) port: u16,
    pub(crate) pid: u32,
}

/// A server's facts about itself.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    name: String,
    version: String,
    allocator: Option<String>,
}

impl Facts {
    /// An empty report of this server.
    pub(crate) fn report(&self, workload: &str, params: Value) -> Report {
        let mut report = Report::new(workload, params).of(&self.name, &self.version);
        report.server = Some(json!({
            "name": self.name,
            "version": self.version,
            "mem_allocator": self.allocator,
        }));
        report
    }
}

/// Connects and asks.
pub(crate) fn meet(target: Target) -> Result<(Connection, Facts)> {
    let mut connection = Connection::open(target.port)?;
    // Some servers have no INFO.
    let server = info(&mut connection, "server").unwrap_or_default();
    let unnamed = if server.is_empty() { "" } else { "redis" };
    let name = server.get("server_name").map_or(unnamed, String::as_str);
    let name = name.to_owned();
    let version = server.get(&format!("{name}_version"));
    let version = version.or_else(|| server.get("redis_version"));
    let version = version.cloned().unwrap_or_default();
    // Valkey and Redis 8 tell the allocator among the memory figures only.
    let memory = info(&mut connection, "memory").unwrap_or_default();
    let allocator = memory.get("mem_allocator");
    let allocator = allocator.or_else(|| server.get("mem_allocator")).cloned();
    let facts = Facts {
        name,
        version,
        allocator,
    };
    Ok((connection, facts))
}

/// Reads one section of INFO, by field.
fn info(connection: &mut Connection, section: &str) -> Result<BTreeMap<String, String>> {
    match connection.call(&["INFO", section])? {
        Reply::Bulk(text) => Ok(parse_info(&String::from_utf8_lossy(&text))),
        other => bail!("INFO was answered with {other:?}"),
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
