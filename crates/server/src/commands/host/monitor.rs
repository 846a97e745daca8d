//! MONITOR: a client that is shown every command.

use std::fmt::Display;

use tidewheel_keyspace::Command;
use tidewheel_keyspace::rows::Flags;
use tidewheel_resp::Args;

use super::{HandlerResult, error};
use crate::clients::checks;
use crate::clients::connection::Connection;
use crate::clients::monitors;
use crate::commands::call;
use crate::commands::turn::{CommandStep, Turn};

impl Turn<'_> {
    /// Makes the client a monitor. A client that is one already gets no answer, as from the public
    /// servers.
    pub(super) fn monitor(&mut self, conn: &mut Connection) -> HandlerResult {
        if self.in_transaction {
            return Err(error("ERR MONITOR isn't allowed for DENY BLOCKING client"));
        }
        if !conn.is_monitor() {
            conn.set(checks::MONITOR, true);
            self.state
                .server
                .monitors
                .add(self.state.index, conn.client.target());
            self.out.ok();
        }
        Ok(CommandStep::Done)
    }

    /// Lines that wait for it arrive before the answer to the command that ends it.
    pub(super) fn end_monitor(&mut self, conn: &mut Connection) {
        if !conn.is_monitor() {
            return;
        }
        self.state
            .server
            .monitors
            .remove(self.state.index, conn.client.target());
        self.append_waiting_messages(conn);
        conn.set(checks::MONITOR, false);
    }

    /// Shows a command that has run to the monitors. Administrators' commands are shown to
    /// nobody.
    #[cold]
    pub(crate) fn show(&mut self, conn: &Connection, row: &Command, args: Args<'_>) {
        if row.flags.has(Flags::ADMIN) || row.flags.has(Flags::SKIP_MONITOR) {
            return;
        }
        let shown = (0..args.len()).map(|at| call::shown(row, args, at));
        self.show_from(conn.session.db, &conn.client.peer.for_monitors(), shown);
    }

    /// Shows a command of this client to the monitors.
    pub(super) fn show_from<'a>(
        &mut self,
        db: u32,
        client: &impl Display,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
    ) {
        let line = monitors::line(self.state.time, db, client, args);
        self.show_line(&line);
    }

    /// Shows a line to the monitors.
    pub(super) fn show_line(&mut self, line: &[u8]) {
        self.tells();
        self.state.server.monitors.show(line);
    }
}
