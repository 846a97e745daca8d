//! ROLE, WAIT and WAITAOF: a server without replicas and without an append-only file says so.

use tidewheel_keyspace::CommandError;
use tidewheel_resp::{Args, parse_i64};

use super::{HandlerResult, error};
use crate::commands::turn::{CommandStep, Turn};

impl Turn<'_> {
    pub(super) fn role(&mut self) -> HandlerResult {
        self.out.array(3);
        self.out.bulk(b"master");
        self.out.integer(0);
        self.out.array(0);
        Ok(CommandStep::Done)
    }

    /// Answers WAIT at once, because no replica will ever confirm anything.
    pub(super) fn wait(&mut self, args: Args<'_>) -> HandlerResult {
        parse_i64(&args[1]).ok_or(CommandError::NOT_AN_INTEGER)?;
        check_timeout(&args[2])?;
        self.out.integer(0);
        Ok(CommandStep::Done)
    }

    pub(super) fn wait_aof(&mut self, args: Args<'_>) -> HandlerResult {
        let local = parse_i64(&args[1]).filter(|local| (0..=1).contains(local));
        let local =
            local.ok_or_else(|| error("ERR value is out of range, value must between 0 and 1"))?;
        let replicas = parse_i64(&args[2]).filter(|replicas| *replicas >= 0);
        replicas.ok_or_else(|| error("ERR value is out of range, must be positive"))?;
        check_timeout(&args[3])?;
        if local > 0 {
            return Err(error(
                "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
            ));
        }
        self.out.array(2);
        self.out.integer(0);
        self.out.integer(0);
        Ok(CommandStep::Done)
    }
}

fn check_timeout(timeout: &[u8]) -> Result<(), CommandError> {
    match parse_i64(timeout) {
        None => Err(error("ERR timeout is not an integer or out of range")),
        Some(..0) => Err(error("ERR timeout is negative")),
        Some(_) => Ok(()),
    }
}
