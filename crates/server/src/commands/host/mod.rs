//! The commands about connections and the server itself.

mod client;
mod configuration;
mod debug;
mod function;
mod graph;
mod handlers;
mod info;
mod latency;
mod lolwut;
mod memory;
mod monitor;
mod parts;
mod pubsub;
mod replication;
mod script;
mod session;
mod slow_log;
mod tracking;
pub(super) mod transaction;

use tidewheel_keyspace::{Command, CommandError};
use tidewheel_resp::Args;

use crate::clients::connection::Connection;
use crate::commands::turn::{CommandStep, Turn};
use crate::state::server::StopReason;

type HandlerResult = Result<CommandStep, CommandError>;

impl Turn<'_> {
    /// Runs one of these commands.
    #[inline]
    pub(crate) fn host(
        &mut self,
        conn: &mut Connection,
        row: &Command,
        args: Args<'_>,
    ) -> CommandStep {
        // Such a command may change who is told of events, and of which.
        self.state.server.publish_events();
        let mark = self.out.mark();
        let outcome = match handlers::HANDLERS[usize::from(row.number)] {
            Some(run) => run(self, conn, args),
            None => Err(CommandError::NOT_HERE),
        };
        outcome.unwrap_or_else(|why| {
            self.out.truncate(mark);
            why.write(self.out);
            CommandStep::Done
        })
    }

    fn done(&mut self) -> HandlerResult {
        self.out.ok();
        Ok(CommandStep::Done)
    }

    fn ping(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        if args.len() > 2 {
            return Err(error("ERR wrong number of arguments for 'ping' command"));
        }
        let message = args.get(1);
        if conn.checks & crate::clients::checks::SUBSCRIBER != 0 {
            self.out.array(2);
            self.out.bulk(b"pong");
            self.out.bulk(message.unwrap_or_default());
        } else if let Some(message) = message {
            self.out.bulk(message);
        } else {
            self.out.simple("PONG");
        }
        Ok(CommandStep::Done)
    }

    fn echo(&mut self, args: Args<'_>) -> HandlerResult {
        self.out.bulk(&args[1]);
        Ok(CommandStep::Done)
    }

    fn quit(&mut self) -> HandlerResult {
        self.out.ok();
        Ok(CommandStep::Close)
    }

    fn shutdown(&mut self, args: Args<'_>) -> HandlerResult {
        let (mut save, mut nosave, mut abort) = (false, false, false);
        for option in args.iter().skip(1) {
            match option.to_ascii_lowercase().as_slice() {
                b"save" => save = true,
                b"nosave" => nosave = true,
                // Nothing is ever waited for, so both are the way it stops anyway.
                b"now" | b"force" => {}
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
        if save {
            return Err(error(
                "ERR this server writes no snapshots: use SHUTDOWN NOSAVE",
            ));
        }
        self.state.server.ask_to_stop(StopReason::Command);
        Ok(CommandStep::Close)
    }
}

fn error(text: &'static str) -> CommandError {
    CommandError::fixed(text)
}
