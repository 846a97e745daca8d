//! SLOWLOG: the calls that took long.

use tidewheel_keyspace::CommandError;
use tidewheel_resp::{Args, parse_i64};

use super::{HandlerResult, error};
use crate::commands::turn::{CommandStep, Turn};

/// The number of entries that SLOWLOG GET answers by default.
const COUNT: usize = 10;

impl Turn<'_> {
    pub(super) fn slow_log_get(&mut self, args: Args<'_>) -> HandlerResult {
        let entries = self.state.server.slow_log.newest(count(args)?);
        self.out.array(entries.len());
        for (number, entry) in entries {
            let out = &mut self.out;
            out.array(6);
            out.integer(i64::try_from(number).unwrap_or(i64::MAX));
            out.integer(entry.at_s);
            out.integer(i64::try_from(entry.took_us).unwrap_or(i64::MAX));
            out.array(entry.args.len());
            for arg in &entry.args {
                out.bulk(arg);
            }
            out.bulk(entry.peer.as_bytes());
            out.bulk(&entry.name);
        }
        Ok(CommandStep::Done)
    }

    pub(super) fn slow_log_len(&mut self) -> HandlerResult {
        let len = self.state.server.slow_log.len();
        self.out.integer(i64::try_from(len).unwrap_or(i64::MAX));
        Ok(CommandStep::Done)
    }

    pub(super) fn slow_log_reset(&mut self) -> HandlerResult {
        self.state.server.slow_log.reset();
        self.done()
    }
}

/// Returns the number of entries that were asked for; -1 means all.
fn count(args: Args<'_>) -> Result<usize, CommandError> {
    if args.len() > 3 {
        let name = String::from_utf8_lossy(&args[1]);
        return Err(CommandError::quoting(format!(
            "ERR unknown subcommand or wrong number of arguments for '{name}'. Try SLOWLOG HELP."
        )));
    }
    match args.get(2).map(parse_i64) {
        None => Ok(COUNT),
        Some(Some(-1)) => Ok(usize::MAX),
        Some(number) => number
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(|| error("ERR count should be greater than or equal to -1")),
    }
}
