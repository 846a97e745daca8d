//! CONFIG GET, SET and RESETSTAT.

use tidewheel_keyspace::{CommandError, glob_match};
use tidewheel_resp::Args;

use super::HandlerResult;
use crate::commands::turn::{CommandStep, Turn};
use crate::config::{ChangeTime, ConfigKey, key, keys};
use crate::persistence::log;

impl Turn<'_> {
    pub(super) fn config_get(&mut self, args: Args<'_>) -> HandlerResult {
        let wanted = |name: &str| {
            args.iter()
                .skip(2)
                .any(|pattern| glob_match(&pattern.to_ascii_lowercase(), name.as_bytes()))
        };
        let settings = self.state.server.config.current();
        let both =
            |key: &'static ConfigKey| [Some(key.name), key.old_name()].map(|name| (key, name));
        let names = keys().flat_map(both);
        let found: Vec<(&ConfigKey, &str)> = names
            .filter_map(|(key, name)| name.filter(|name| wanted(name)).map(|name| (key, name)))
            .collect();
        self.out.map(found.len());
        for (key, name) in found {
            self.out.bulk(name.as_bytes());
            self.out.bulk((key.get)(&settings).as_bytes());
        }
        Ok(CommandStep::Done)
    }

    /// Sets all or nothing.
    pub(super) fn config_set(&mut self, args: Args<'_>) -> HandlerResult {
        if !args.len().is_multiple_of(2) {
            return Err(CommandError::fixed(
                "ERR wrong number of arguments for 'config|set' command",
            ));
        }
        let mut changes: Vec<(&'static ConfigKey, &str)> = Vec::new();
        for at in (2..args.len()).step_by(2) {
            let name = String::from_utf8_lossy(&args[at]);
            let Some(key) = key(&name) else {
                return Err(CommandError::quoting(format!(
                    "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
                )));
            };
            if changes.iter().any(|(known, _)| std::ptr::eq(*known, key)) {
                return Err(failed(key, "duplicate parameter"));
            }
            if key.change == ChangeTime::AtStart {
                return Err(failed(key, "can't set immutable config"));
            }
            let Ok(value) = std::str::from_utf8(&args[at + 1]) else {
                return Err(failed(key, "argument must be UTF-8"));
            };
            changes.push((key, value));
        }
        let (server, time) = (&self.state.server, self.state.time);
        server.config.change(
            |settings| {
                for (key, value) in &changes {
                    (key.set)(settings, value).map_err(|why| failed(key, &why))?;
                }
                let more = changes.iter().find(|(key, _)| key.name == "maxclients");
                if let Some((key, _)) = more {
                    allow(key, settings.max_clients, server.own_files)?;
                }
                // Nothing can fail behind this: new terms are in force at once.
                let tls = changes.iter().find(|(key, _)| key.name.starts_with("tls-"));
                tls.map_or(Ok(()), |(key, _)| {
                    let renewed = server.tls_terms.renew(settings);
                    renewed.map_err(|why| failed(key, &format!("{why:#}")))
                })
            },
            |settings| {
                if changes
                    .iter()
                    .any(|(key, _)| key.name.as_bytes() == log::STREAMS)
                {
                    log::record_streams(server, settings, time);
                }
                crate::config::engine::apply(settings, &server.keyspace);
                let records = server.keyspace.records();
                server.log.follow(settings, records, &server.loops);
            },
        )?;
        // A shorter time-out must not wait for the end of a long sleep.
        server.nudge_all();
        self.state.follow_settings();
        self.done()
    }

    pub(super) fn config_reset_stat(&mut self, args: Args<'_>) -> HandlerResult {
        self.publish_counters();
        let totals = self.state.server.totals();
        *self.state.server.stats_base.lock() = totals;
        for handle in self.state.server.loops.iter() {
            handle.command_counts.reset();
        }
        self.state.server.keyspace.reset_stats();
        self.state.server.tls_counts.reset();
        // This call is the first that is counted again.
        let row = tidewheel_keyspace::resolve(args)?;
        let state = &*self.state;
        self.notes
            .counts
            .add(row, || &state.handle().command_counts);
        self.done()
    }
}

/// Raises the system's limit of open files to what this number of clients needs.
fn allow(key: &ConfigKey, clients: usize, own_files: usize) -> Result<(), CommandError> {
    let fit = crate::process::system::raise_open_files(clients, own_files).connections;
    if fit >= clients {
        return Ok(());
    }
    let why = format!(
        "The operating system is not able to handle the specified number of clients, try with {fit}"
    );
    Err(failed(key, &why))
}

fn failed(key: &ConfigKey, why: &str) -> CommandError {
    CommandError::quoting(format!(
        "ERR CONFIG SET failed (possibly related to argument '{}') - {why}",
        key.name
    ))
}
