//! CLIENT: lists, closes, pauses and unblocks clients, and changes a client's own state.

use std::sync::Arc;

use tidewheel_keyspace::CommandError;
use tidewheel_resp::{Args, parse_i64};

use super::client_filter::Filter;
use super::session::{NAME, is_plain};
use super::{HandlerResult, error};
use crate::clients::checks;
use crate::clients::connection::{Connection, Replies};
use crate::clients::registry::Client;
use crate::commands::turn::{CommandStep, Turn};
use crate::loop_handle::inbox::{InboxItem, Unblocking};

const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

const BAD_ID: &str = "ERR client-id should be greater than 0";

impl Turn<'_> {
    pub(super) fn client_id(&mut self, conn: &Connection) -> HandlerResult {
        self.out.integer(id_as_integer(conn.client.id));
        Ok(CommandStep::Done)
    }

    pub(super) fn client_get_name(&mut self, conn: &Connection) -> HandlerResult {
        let facts = conn.client.facts.lock();
        if facts.names.own.is_empty() {
            self.out.null();
        } else {
            self.out.bulk(&facts.names.own);
        }
        Ok(CommandStep::Done)
    }

    pub(super) fn client_set_name(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        if !is_plain(&args[2]) {
            return Err(error(NAME));
        }
        conn.client.facts.lock().names.own = args[2].to_vec();
        self.done()
    }

    pub(super) fn client_set_info(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        let attribute = args[2].to_ascii_lowercase();
        if attribute != b"lib-name" && attribute != b"lib-ver" {
            let name = String::from_utf8_lossy(&args[2]).into_owned();
            return Err(CommandError::quoting(format!(
                "ERR Unrecognized option '{name}'"
            )));
        }
        if !is_plain(&args[3]) {
            let name = String::from_utf8_lossy(&attribute).into_owned();
            return Err(CommandError::quoting(format!(
                "ERR {name} cannot contain spaces, newlines or special characters."
            )));
        }
        {
            let mut facts = conn.client.facts.lock();
            if attribute == b"lib-name" {
                facts.names.lib = args[3].to_vec();
            } else {
                facts.names.lib_version = args[3].to_vec();
            }
        }
        self.done()
    }

    pub(super) fn client_info(&mut self, conn: &Connection) -> HandlerResult {
        self.publish_running(conn);
        let mut line = Vec::new();
        conn.client.describe(self.state.time.tick, &mut line);
        line.push(b'\n');
        self.out.verbatim("txt", &line);
        Ok(CommandStep::Done)
    }

    pub(super) fn client_list(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        let databases = self.state.server.keyspace.databases();
        let users = Arc::clone(&self.state.settings.users);
        let filter = Filter::parse(
            args,
            (databases, &users),
            (0, "ERR Invalid client ID"),
            false,
        )?;
        let mut clients: Vec<Arc<Client>> = match &filter.ids[..] {
            [] => self.state.server.clients.snapshot(),
            ids => {
                let named = ids.iter().map(|id| self.state.server.clients.get(*id));
                named.flatten().collect()
            }
        };
        clients.retain(|client| {
            let is_me = filter.skip_me && client.id == conn.client.id;
            !is_me && filter.matches(client, self.state.time.tick)
        });
        self.publish_running(conn);
        let mut lines = Vec::new();
        for client in clients {
            client.describe(self.state.time.tick, &mut lines);
            lines.push(b'\n');
            // Who names a client with a long name many times could ask for any amount.
            if !self.out.admits(lines.len()) {
                break;
            }
        }
        self.out.verbatim("txt", &lines);
        Ok(CommandStep::Done)
    }

    pub(super) fn client_kill(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        let old_form = args.len() == 3;
        let databases = self.state.server.keyspace.databases();
        let users = Arc::clone(&self.state.settings.users);
        let filter = match old_form {
            true => Filter::of_address(&args[2]),
            false => Filter::parse(args, (databases, &users), (1, BAD_ID), true)?,
        };
        let mut killed = 0;
        let mut myself = false;
        for client in self.state.server.clients.snapshot() {
            if !filter.matches(&client, self.state.time.tick)
                || (filter.skip_me && client.id == conn.client.id)
            {
                continue;
            }
            killed += 1;
            if client.id == conn.client.id {
                // The reply is sent first.
                myself = true;
            } else if client.kill() {
                self.state.server.loops[client.owner].post(InboxItem::Close(client.target()));
            }
        }
        match (old_form, killed) {
            (false, _) => self.out.integer(killed),
            (true, 0) => return Err(error("ERR No such client")),
            (true, _) => self.out.ok(),
        }
        Ok(if myself {
            CommandStep::Close
        } else {
            CommandStep::Done
        })
    }

    pub(super) fn client_no_evict(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        conn.client.facts.lock().no_evict = on_or_off(&args[2])?;
        self.done()
    }

    pub(super) fn client_no_touch(
        &mut self,
        conn: &mut Connection,
        args: Args<'_>,
    ) -> HandlerResult {
        conn.session.no_touch = on_or_off(&args[2])?;
        self.done()
    }

    pub(super) fn client_reply(&mut self, conn: &mut Connection, args: Args<'_>) -> HandlerResult {
        match args[2].to_ascii_lowercase().as_slice() {
            b"on" => {
                conn.replies = Replies::On;
                conn.set(checks::MUTED, false);
                self.out.ok();
            }
            b"off" => {
                conn.replies = Replies::Off;
                conn.set(checks::MUTED, true);
            }
            b"skip" if conn.replies == Replies::Off => {}
            b"skip" => {
                conn.replies = Replies::SkipThisAndNext;
                conn.set(checks::MUTED, true);
            }
            _ => return Err(CommandError::SYNTAX),
        }
        Ok(CommandStep::Done)
    }

    pub(super) fn client_pause(&mut self, conn: &mut Connection, args: Args<'_>) -> HandlerResult {
        let all = match args.get(3).map(<[u8]>::to_ascii_lowercase) {
            _ if args.len() > 4 => return Err(CommandError::SYNTAX),
            None => true,
            Some(mode) if mode == b"all" => true,
            Some(mode) if mode == b"write" => false,
            Some(_) => return Err(error("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        };
        let ms = parse_i64(&args[2])
            .ok_or_else(|| error("ERR timeout is not an integer or out of range"))?;
        if ms.checked_add(self.state.time.wall_ms()).is_none() {
            return Err(error("ERR timeout is out of range"));
        }
        let ms = u64::try_from(ms).map_err(|_| error("ERR timeout is negative"))?;
        // The tick is rounded down, so the next one is the first that is not too early.
        let until = self
            .state
            .time
            .tick
            .saturating_add(ms)
            .saturating_add(u64::from(ms > 0));
        // Commands that run on other loops are finished before the answer. Those that come after it
        // wait.
        let server = Arc::clone(&self.state.server);
        let no_long = match server.keyspace.without_long_commands() {
            Ok(no_long) => no_long,
            Err(blocked) => return Ok(self.park_or_refuse(conn, &blocked)),
        };
        let begun = no_long.alone(&mut self.state.seat).map(|_alone| {
            server.pause.start(all, until);
            server.pause_changed();
        });
        match begun {
            Ok(()) => self.done(),
            Err(blocked) => Ok(self.park_or_refuse(conn, &blocked)),
        }
    }

    pub(super) fn client_unblock(&mut self, args: Args<'_>) -> HandlerResult {
        let with_error = match args.get(3).map(<[u8]>::to_ascii_lowercase).as_deref() {
            _ if args.len() > 4 => return Err(CommandError::SYNTAX),
            None | Some(b"timeout") => false,
            Some(b"error") => true,
            Some(_) => {
                return Err(error(
                    "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
                ));
            }
        };
        let id = parse_i64(&args[2]).ok_or(CommandError::NOT_AN_INTEGER)?;
        let id = u64::try_from(id).ok();
        let client = id.and_then(|id| self.state.server.clients.get(id));
        let state = &mut *self.state;
        let (keyspace, seat) = (&state.server.keyspace, &mut state.seat);
        let ended = client.filter(|client| {
            let ticket = client.waiting.lock().clone();
            // One that a pause holds back will be served.
            ticket.is_some_and(|ticket| !keyspace.holds_back(seat, &ticket) && ticket.end())
        });
        if let Some(client) = &ended {
            let how = match with_error {
                true => Unblocking::Error(UNBLOCKED),
                false => Unblocking::TimeOut,
            };
            self.state.server.loops[client.owner].post(InboxItem::Unblocked(client.target(), how));
        }
        self.out.integer(ended.is_some().into());
        Ok(CommandStep::Done)
    }

    pub(super) fn client_unpause(&mut self, conn: &mut Connection) -> HandlerResult {
        if self.in_transaction {
            // Waiting clients are served at its end.
            self.state.server.pause.end();
            self.state.server.pause_changed();
        } else {
            if let Err(blocked) = self.state.end_pause(|_| true) {
                return Ok(self.park_or_refuse(conn, &blocked));
            }
        }
        self.done()
    }
}

fn on_or_off(word: &[u8]) -> Result<bool, CommandError> {
    match word.to_ascii_lowercase().as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(CommandError::SYNTAX),
    }
}

fn id_as_integer(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}
