//! ROLE, WAIT and WAITAOF: a server without replicas says so.

use tidewheel_keyspace::CommandError;
use tidewheel_resp::{Args, parse_i64};

use super::{HandlerResult, error};
use crate::clients::connection::{Connection, LogWait};
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

    /// Answers when all that has changed so far is on disk. Until then the command is tried again
    /// whenever more is.
    pub(super) fn wait_aof(&mut self, conn: &mut Connection, args: Args<'_>) -> HandlerResult {
        let local = parse_i64(&args[1]).filter(|local| (0..=1).contains(local));
        let local =
            local.ok_or_else(|| error("ERR value is out of range, value must between 0 and 1"))?;
        let replicas = parse_i64(&args[2]).filter(|replicas| *replicas >= 0);
        replicas.ok_or_else(|| error("ERR value is out of range, must be positive"))?;
        let timeout = check_timeout(&args[3])?;
        let server = &self.state.server;
        if local > 0 && !server.log.is_on() {
            return Err(error(
                "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
            ));
        }
        let now = self.state.time.tick;
        let mut wait = conn.log_wait.take().unwrap_or_else(|| LogWait {
            records: server.keyspace.records(),
            until: (timeout > 0).then(|| now.saturating_add(timeout)),
            is_due: false,
        });
        // From here on the loop is told when more is on disk.
        self.state.handle().await_log();
        let is_synced = server.log.is_on() && server.log.on_disk() >= wait.records;
        let is_over = wait.until.is_some_and(|until| until <= now);
        if local == 0 || is_synced || is_over || self.in_transaction {
            self.out.array(2);
            self.out.integer(is_synced.into());
            self.out.integer(0);
            return Ok(CommandStep::Done);
        }
        server.log.want(wait.records);
        wait.is_due = false;
        conn.log_wait = Some(wait);
        self.state.log_waits.insert(conn.target());
        Ok(CommandStep::WaitsForLog)
    }
}

/// A timeout in milliseconds; 0 is none.
fn check_timeout(timeout: &[u8]) -> Result<u64, CommandError> {
    let timeout = parse_i64(timeout);
    let timeout = timeout.ok_or_else(|| error("ERR timeout is not an integer or out of range"))?;
    u64::try_from(timeout).map_err(|_| error("ERR timeout is negative"))
}
