//! CONFIG GET, SET, REWRITE and RESETSTAT.

use tidewheel_keyspace::{CommandError, glob_match};
use tidewheel_resp::Args;

use super::{HandlerResult, error};
use crate::commands::turn::{CommandStep, Turn};
use crate::config::{ChangeTime, ConfigKey, Settings, key, keys};
use crate::persistence::log;
use crate::state::changes::Refused;

/// A key's value as CONFIG GET shows it. Who asks for the folder may be in another one.
fn shown(key: &ConfigKey, settings: &Settings) -> String {
    let value = (key.get)(settings);
    match key.name {
        "dir" => std::path::absolute(&value).map_or(value, |path| path.display().to_string()),
        _ => value,
    }
}

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
            self.out.bulk(shown(key, &settings).as_bytes());
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
        let applied = |settings: &Settings| log::record_changes(server, &changes, settings, time);
        let changed = server.change_settings(&changes, |_| Ok(()), applied);
        changed.map_err(|Refused { key, why }| match key {
            Some(key) => failed(key, &why),
            None => CommandError::quoting(format!("ERR {why}")),
        })?;
        self.state.follow_settings();
        self.done()
    }

    /// Writes the settings in force into the file that the server was started with.
    pub(super) fn config_rewrite(&mut self) -> HandlerResult {
        let server = &self.state.server;
        let file = server.config.file.as_ref();
        let file = file.ok_or(error("ERR The server is running without a config file"))?;
        match server.rewrite_file(file) {
            Ok(()) => {
                tracing::info!(file = %file.path().display(), "wrote the settings into their file");
                self.done()
            }
            Err(why) => {
                tracing::error!(file = %file.path().display(), %why, "the settings were not written");
                Err(CommandError::quoting(format!(
                    "ERR Rewriting config file: {why}"
                )))
            }
        }
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
        self.state.server.scripts.reset_evicted();
        self.state.server.memory_marks.reset(self.state.time);
        // This call is the first that is counted again.
        let row = tidewheel_keyspace::resolve(args)?;
        let state = &*self.state;
        self.notes
            .counts
            .add(row, || &state.handle().command_counts);
        self.done()
    }
}

fn failed(key: &ConfigKey, why: &str) -> CommandError {
    CommandError::quoting(format!(
        "ERR CONFIG SET failed (possibly related to argument '{}') - {why}",
        key.name
    ))
}
