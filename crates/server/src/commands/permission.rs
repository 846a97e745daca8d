//! May the connection's user run this? Says why not, and notes it.

use tidewheel_keyspace::{Command, CommandError};
use tidewheel_resp::Args;

use crate::clients::connection::Connection;
use crate::commands::turn::Turn;
use crate::users::{Denial, DenialContext, Reason};

impl Turn<'_> {
    /// Looks the client's user up again, if the users have changed.
    #[inline]
    pub(crate) fn follow_users(&mut self, conn: &mut Connection) {
        self.state.follow_settings();
        conn.follow_users(&self.state.settings.users);
    }

    /// Returns why the connection's user may not run a call, and notes it.
    #[cold]
    pub(crate) fn denied(
        &self,
        conn: &Connection,
        (row, args): (&'static Command, Args<'_>),
        (context, db): (DenialContext, u32),
    ) -> Option<CommandError> {
        let denied = conn
            .user
            .check(row, args, self.state.server.place(db))
            .err()?;
        let why = conn.user.explain(denied, row, None);
        let Some((reason, object)) = denied.noted(row, args) else {
            return Some(CommandError::quoting(format!("ERR {why}")));
        };
        self.note(conn, (reason, context), object, &conn.user.name);
        Some(CommandError::quoting(match context {
            DenialContext::Script => format!("NOPERM ACL failure in script: {why}"),
            DenialContext::TopLevel | DenialContext::Transaction => format!("NOPERM {why}"),
        }))
    }

    /// Notes that something was denied to the user of that name.
    pub(crate) fn note_denial(
        &self,
        conn: &Connection,
        reason: Reason,
        object: &[u8],
        user: &[u8],
    ) {
        let context = match conn.queue.is_some() || self.in_transaction {
            true => DenialContext::Transaction,
            false => DenialContext::TopLevel,
        };
        self.note(conn, (reason, context), object, user);
    }

    fn note(&self, conn: &Connection, what: (Reason, DenialContext), object: &[u8], user: &[u8]) {
        let mut client = Vec::new();
        // It says which command it is.
        self.publish_running(conn);
        conn.client.describe(self.state.time.tick, &mut client);
        let now_ms = self.state.time.wall_ms();
        let denial = Denial::new(what, object, user, client, now_ms);
        let max = self.state.settings.denials_max;
        self.state.server.denials.add(denial, max);
    }
}
