//! The commands about connections and the server itself.

mod acl;
mod client;
mod client_filter;
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
mod persistence;
mod pubsub;
mod replication;
pub(super) mod script;
mod session;
mod slow_log;
mod tracking;
pub(super) mod transaction;

use tidewheel_keyspace::{Command, CommandError};
use tidewheel_resp::Args;

use crate::clients::connection::Connection;
use crate::commands::turn::{CommandStep, Turn};

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
}

fn error(text: &'static str) -> CommandError {
    CommandError::fixed(text)
}
