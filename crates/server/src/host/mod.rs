//! The commands that concern connections and the server itself.

mod client;
mod configuration;
mod info;
mod pubsub;
mod session;

use std::time::Duration;

use tidewheel_keyspace::{CommandError, Host, lookup, write_help};
use tidewheel_resp::{Args, parse_f64};

use crate::config::DebugAccess;
use crate::connection::Connection;
use crate::server::Stop;
use crate::turn::{Step, Turn};

/// The longest DEBUG SLEEP, in seconds: a loop that sleeps serves nobody.
const SLEEP_MAX_S: f64 = 3_600.0;

type Outcome = Result<Step, CommandError>;

impl Turn<'_> {
    /// Runs one of these commands.
    pub(crate) fn host(&mut self, conn: &mut Connection, host: Host, args: Args<'_>) -> Step {
        let mark = self.out.mark();
        self.run_host(conn, host, args).unwrap_or_else(|why| {
            self.out.truncate(mark);
            why.write(self.out);
            Step::Done
        })
    }

    fn run_host(&mut self, conn: &mut Connection, host: Host, args: Args<'_>) -> Outcome {
        match host {
            Host::Auth => self.auth(conn, args),
            Host::Hello => self.hello(conn, args),
            Host::Reset => Ok(self.reset(conn)),
            Host::Quit => {
                self.out.ok();
                Ok(Step::Close)
            }
            Host::Ping => self.ping(conn, args),
            Host::Echo => {
                self.out.bulk(&args[1]);
                Ok(Step::Done)
            }
            Host::ClientGetName => self.client_get_name(conn),
            Host::ClientId => self.client_id(conn),
            Host::ClientInfo => self.client_info(conn),
            Host::ClientKill => self.client_kill(conn, args),
            Host::ClientList => self.client_list(conn, args),
            Host::ClientNoEvict => self.client_no_evict(conn, args),
            Host::ClientNoTouch => self.client_no_touch(conn, args),
            Host::ClientPause => self.client_pause(args),
            Host::ClientReply => self.client_reply(conn, args),
            Host::ClientSetInfo => self.client_set_info(conn, args),
            Host::ClientSetName => self.client_set_name(conn, args),
            Host::ClientUnpause => self.client_unpause(),
            Host::ConfigGet => self.config_get(args),
            Host::ConfigResetStat => self.config_reset_stat(),
            Host::ConfigSet => self.config_set(args),
            Host::Info => self.info(args),
            Host::Subscribe => self.subscribe(conn, crate::subscriptions::Kind::Channel, args),
            Host::PSubscribe => self.subscribe(conn, crate::subscriptions::Kind::Pattern, args),
            Host::Unsubscribe => self.unsubscribe(conn, crate::subscriptions::Kind::Channel, args),
            Host::PUnsubscribe => self.unsubscribe(conn, crate::subscriptions::Kind::Pattern, args),
            Host::Publish => self.publish(conn, args),
            Host::PubSubChannels => self.pubsub_channels(args),
            Host::PubSubNumPat => self.pubsub_num_pat(),
            Host::PubSubNumSub => self.pubsub_num_sub(args),
            Host::Shutdown => self.shutdown(args),
            Host::FunctionFlush => self.function_flush(args),
            Host::DebugSleep => self.debug_sleep(conn, args),
            Host::DebugSetActiveExpire => self.debug_set_active_expire(conn, args),
            Host::DebugHelp => self.debug_help(conn, args),
        }
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
        if conn.checks & crate::checks::SUBSCRIBER != 0 {
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
