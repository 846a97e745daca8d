//! The commands that concern connections and the server itself.

mod client;
mod configuration;
mod graph;
mod handlers;
mod info;
mod latency;
mod monitor;
mod pubsub;
mod session;
mod slow_log;
pub(super) mod transaction;

use std::time::Duration;

use tidewheel_keyspace::{Command, CommandError, lookup, write_help};
use tidewheel_resp::{Args, parse_f64};

use crate::clients::connection::Connection;
use crate::commands::turn::{Step, Turn};
use crate::config::DebugAccess;
use crate::state::server::Stop;

/// The longest DEBUG SLEEP, in seconds: a loop that sleeps serves nobody.
const SLEEP_MAX_S: f64 = 3_600.0;

type Outcome = Result<Step, CommandError>;

impl Turn<'_> {
    /// Runs one of these commands.
    #[inline]
    pub(crate) fn host(&mut self, conn: &mut Connection, row: &Command, args: Args<'_>) -> Step {
        let mark = self.out.mark();
        let outcome = match handlers::handler(row.name) {
            Some(run) => run(self, conn, args),
            None => Err(CommandError::NOT_HERE),
        };
        outcome.unwrap_or_else(|why| {
            self.out.truncate(mark);
            why.write(self.out);
            Step::Done
        })
    }

    fn done(&mut self) -> Outcome {
        self.out.ok();
        Ok(Step::Done)
    }

    fn ping(&mut self, conn: &Connection, args: Args<'_>) -> Outcome {
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
        Ok(Step::Done)
    }

    fn echo(&mut self, args: Args<'_>) -> Outcome {
        self.out.bulk(&args[1]);
        Ok(Step::Done)
    }

    fn quit(&mut self) -> Outcome {
        self.out.ok();
        Ok(Step::Close)
    }

    fn shutdown(&mut self, args: Args<'_>) -> Outcome {
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
        self.server.ask_to_stop(Stop::Command);
        Ok(Step::Close)
    }

    fn function_flush(&mut self, args: Args<'_>) -> Outcome {
        let known = match args.get(2) {
            None => true,
            Some(mode) => {
                args.len() == 3
                    && (mode.eq_ignore_ascii_case(b"async") || mode.eq_ignore_ascii_case(b"sync"))
            }
        };
        if !known {
            return Err(error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
        }
        // There are no functions, so all of them are gone.
        self.done()
    }

    fn may_debug(&self, conn: &Connection) -> Result<(), CommandError> {
        let allowed = match self.settings.debug_access {
            DebugAccess::Yes => true,
            DebugAccess::Local => conn.client.peer.ip().is_loopback(),
            DebugAccess::No => false,
        };
        if allowed {
            return Ok(());
        }
        Err(error(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", \
             you can run it from a local connection, otherwise you need to set this option in the \
             configuration file, and then restart the server.",
        ))
    }

    fn debug_help(&mut self, conn: &Connection, args: Args<'_>) -> Outcome {
        self.may_debug(conn)?;
        let debug = lookup(&args[0]).ok_or(CommandError::NOT_HERE)?;
        write_help(debug.subcommands, self.out);
        Ok(Step::Done)
    }

    fn debug_sleep(&mut self, conn: &Connection, args: Args<'_>) -> Outcome {
        self.may_debug(conn)?;
        let seconds = parse_f64(&args[2]).ok_or(CommandError::NOT_A_FLOAT)?;
        if !(0.0..=SLEEP_MAX_S).contains(&seconds) {
            return Err(error("ERR sleep for 0 to 3600 seconds"));
        }
        // A loop that sleeps uses no keys, so it leaves the gate: others that want all keys need not wait.
        self.seat.leave();
        self.server.clock.sleep(Duration::from_secs_f64(seconds));
        self.seat.enter();
        self.done()
    }

    fn debug_set_active_expire(&mut self, conn: &Connection, args: Args<'_>) -> Outcome {
        self.may_debug(conn)?;
        let enabled = match &args[2] {
            b"0" => false,
            b"1" => true,
            _ => return Err(error("ERR give 0 or 1")),
        };
        self.server.keyspace.set_active_expire(enabled);
        self.done()
    }
}

fn error(text: &'static str) -> CommandError {
    CommandError::fixed(text)
}
