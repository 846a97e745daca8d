//! SAVE, BGSAVE, LASTSAVE, SHUTDOWN, DEBUG RELOAD.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidewheel_keyspace::{CommandError, Exclusive};
use tidewheel_resp::Args;

use super::{HandlerResult, error};
use crate::clients::connection::Connection;
use crate::commands::turn::{CommandStep, Turn};
use crate::persistence::{self, Stays};
use crate::state::log::Trouble;
use crate::state::server::{Server, StopReason};

/// The reply to a command whose file could not be written. The log has the reason.
const NOT_SAVED: CommandError =
    CommandError::fixed("ERR the snapshot was not written: see the log");

/// The reply to SHUTDOWN while the log lacks what was acknowledged.
const NOT_LOGGED: CommandError = CommandError::fixed(
    "ERR the log cannot be written, and lacks the last changes: see the server's log, or say NOSAVE or FORCE",
);

const IN_PROGRESS: CommandError = CommandError::fixed("ERR Background save already in progress");

const NOT_IN_PROGRESS: CommandError =
    CommandError::fixed("ERR Background saving is currently not in progress or scheduled");

const NOT_LOADED: CommandError =
    CommandError::fixed("ERR Error trying to load the RDB dump, check server logs.");

/// What DEBUG RELOAD leaves out, and whether what is loaded replaces what is there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReloadOptions {
    pub(super) nosave: bool,
    pub(super) noflush: bool,
    pub(super) merge: bool,
}

impl Turn<'_> {
    pub(super) fn last_save(&mut self) -> HandlerResult {
        let seconds = self.state.server.snapshots.last_s.load(Ordering::Relaxed);
        self.out.integer(seconds);
        Ok(CommandStep::Done)
    }

    pub(super) fn save_in_background(
        &mut self,
        conn: &mut Connection,
        args: Args<'_>,
    ) -> HandlerResult {
        let option = args.get(1).map(<[u8]>::to_ascii_lowercase);
        let background = self.state.server.snapshots.background();
        match (option.as_deref(), background) {
            _ if args.len() > 2 => Err(CommandError::SYNTAX),
            (Some(b"cancel"), None) => Err(NOT_IN_PROGRESS),
            (Some(b"cancel"), Some(background)) => {
                background.course.cancel();
                self.out.simple("Background saving cancelled");
                Ok(CommandStep::Done)
            }
            // Nothing is there that it would have to wait for.
            (None | Some(b"schedule"), None) => self.begin_snapshot(conn),
            (None | Some(b"schedule"), Some(_)) => Err(IN_PROGRESS),
            _ => Err(CommandError::SYNTAX),
        }
    }

    pub(super) fn rewrite_log(&mut self, conn: &mut Connection) -> HandlerResult {
        let server = Arc::clone(&self.state.server);
        if !server.log.is_on() {
            return Err(error("ERR there is no log: see appendonly"));
        }
        if server.log.is_rewriting.load(Ordering::Relaxed) {
            return Err(error(
                "ERR Background append only file rewriting already in progress",
            ));
        }
        if server.snapshots.background().is_some() {
            return Err(IN_PROGRESS);
        }
        let (time, shared) = (self.state.time, Arc::clone(&server));
        let begun = self.alone(conn, |_, alone| {
            persistence::log::rewrite(&shared, alone, time)
        });
        match begun {
            Ok(Ok(())) => {
                self.out
                    .simple("Background append only file rewriting started");
                Ok(CommandStep::Done)
            }
            Ok(Err(_)) => Err(NOT_SAVED),
            Err(waits) => Ok(waits),
        }
    }

    fn begin_snapshot(&mut self, conn: &mut Connection) -> HandlerResult {
        let snapshots = &self.state.server.snapshots;
        if let Err(why) = persistence::claim(snapshots) {
            snapshots.note_failure(&why);
            return Err(NOT_SAVED);
        }
        let (time, shared) = (self.state.time, Arc::clone(&self.state.server));
        let begun = self.alone(conn, |_, alone| persistence::begin(&shared, alone, time));
        match begun {
            Ok(Ok(())) => {
                self.out.simple("Background saving started");
                Ok(CommandStep::Done)
            }
            Ok(Err(_)) => Err(NOT_SAVED),
            Err(waits) => Ok(waits),
        }
    }

    pub(super) fn save(&mut self, conn: &mut Connection) -> HandlerResult {
        if self.state.server.snapshots.background().is_some() {
            return Err(IN_PROGRESS);
        }
        match self.write_snapshot(conn)? {
            Some(waits) => Ok(waits),
            None => self.done(),
        }
    }

    /// Writes the snapshot file. Returns what becomes of the command if it has to wait.
    fn write_snapshot(
        &mut self,
        conn: &mut Connection,
    ) -> Result<Option<CommandStep>, CommandError> {
        let time = self.state.time;
        let saved = self.alone(conn, |server, alone| persistence::save(server, alone, time));
        match saved {
            Ok(Ok(_)) => Ok(None),
            Ok(Err(_)) => Err(NOT_SAVED),
            Err(waits) => Ok(Some(waits)),
        }
    }

    /// Runs what needs the whole keyspace. If it cannot begin yet: what becomes of the command.
    fn alone<R>(
        &mut self,
        conn: &mut Connection,
        run: impl FnOnce(&Server, &Exclusive<'_>) -> R,
    ) -> Result<R, CommandStep> {
        let server = Arc::clone(&self.state.server);
        let no_long = match server.keyspace.without_long_commands() {
            Ok(no_long) => no_long,
            Err(blocked) => return Err(self.park_or_refuse(conn, &blocked)),
        };
        let alone = no_long.alone(&mut self.state.seat);
        let ran = alone.map(|alone| run(&server, &alone));
        drop(no_long);
        self.state.refresh_time();
        ran.map_err(|blocked| self.park_or_refuse(conn, &blocked))
    }

    pub(super) fn shutdown(&mut self, conn: &mut Connection, args: Args<'_>) -> HandlerResult {
        let (mut save, mut nosave, mut abort, mut force) = (false, false, false, false);
        for option in args.iter().skip(1) {
            match option.to_ascii_lowercase().as_slice() {
                b"save" => save = true,
                b"nosave" => nosave = true,
                // Nothing is ever waited for: that is the way it stops anyway.
                b"now" => {}
                b"force" => force = true,
                b"abort" => abort = true,
                _ => return Err(CommandError::SYNTAX),
            }
        }
        if (abort && args.len() > 2) || (save && nosave) {
            return Err(CommandError::SYNTAX);
        }
        if abort {
            return Err(error("ERR No shutdown in progress."));
        }
        let saves = save || (!nosave && self.state.settings.save_points.are_any());
        let log = &self.state.server.log;
        if !nosave && !force && log.is_on() && log.trouble() != Trouble::None {
            return Err(NOT_LOGGED);
        }
        // What is in the log is not lost without a snapshot that nobody has asked for.
        let force = force || (!save && log.is_on());
        // While the old snapshot is loaded, there is nothing that could take its place.
        if !saves || self.state.server.is_loading() {
            self.state.server.ask_to_stop(StopReason::Command);
            return Ok(CommandStep::Close);
        }
        let time = self.state.time;
        let saved = self.alone(conn, |server, alone| {
            let saved = persistence::save_and_pause(server, alone, time, force);
            if saved.is_ok() || force {
                server.ask_to_stop(StopReason::Command);
            }
            saved
        });
        match saved {
            Ok(Err(_)) if !force => Err(NOT_SAVED),
            Ok(_) => Ok(CommandStep::Close),
            Err(waits) => Ok(waits),
        }
    }

    /// Saves all data, empties all databases, and loads the file.
    pub(super) fn reload(
        &mut self,
        conn: &mut Connection,
        options: ReloadOptions,
    ) -> HandlerResult {
        if self.state.server.log.is_on() && (options.nosave || options.noflush) {
            // What the file brings would be in no record.
            return Err(error("ERR not while changes are logged"));
        }
        let time = self.state.time;
        let just_taken = !options.nosave;
        let stays = Stays {
            libraries: options.noflush,
            replaced: options.merge,
        };
        let loaded = self.alone(conn, |server, alone| -> anyhow::Result<_> {
            if just_taken {
                persistence::save(server, alone, time)?;
            }
            let bytes = persistence::read(server)?;
            if !options.noflush {
                persistence::check(server, &bytes)?;
                server.keyspace.clear(alone);
            }
            persistence::load_keys(server, alone, time, (stays, just_taken), &bytes)
        });
        let server = Arc::clone(&self.state.server);
        let loaded = loaded.map(|codes| {
            codes.and_then(|codes| persistence::load_functions(&server, &codes, stays))
        });
        self.state.refresh_time();
        match loaded {
            Ok(Ok(())) => self.done(),
            Ok(Err(why)) => {
                tracing::error!("cannot load the snapshot: {why:#}");
                Err(NOT_LOADED)
            }
            Err(waits) => Ok(waits),
        }
    }
}
