//! The DEBUG subcommands that concern the server. The keyspace has those that inspect values.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidewheel_keyspace::{CommandError, glob_match, lookup, write_help};
use tidewheel_resp::{Args, Protocol, parse_f64};

use super::persistence::ReloadOptions;
use super::{HandlerResult, error};
use crate::clients::connection::Connection;
use crate::commands::turn::{CommandStep, Turn};

/// The longest DEBUG SLEEP, in seconds: a loop that sleeps serves nobody.
const SLEEP_MAX_S: f64 = 3_600.0;

/// Bytes of a message that DEBUG LOG writes.
const MESSAGE_MAX: usize = 4 << 10;

/// The first size that no element of a list can have.
const PACKED_MAX: u64 = 1 << 32;

/// The attribute that DEBUG PROTOCOL puts before a reply, which only RESP3 has.
const ATTRIBUTE: &[u8] = b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n";

/// The number that DEBUG PROTOCOL shows.
const DOUBLE: f64 = 3_141.0 / 1_000.0;

fn check(conn: &Connection) -> Result<(), CommandError> {
    match conn.session.may_debug {
        true => Ok(()),
        false => Err(CommandError::DEBUG_REFUSED),
    }
}

impl Turn<'_> {
    pub(super) fn debug_help(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        check(conn)?;
        let debug = lookup(&args[0]).ok_or(CommandError::NOT_HERE)?;
        write_help(debug, self.out);
        Ok(CommandStep::Done)
    }

    pub(super) fn debug_sleep(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        check(conn)?;
        let seconds = parse_f64(&args[2]).ok_or(CommandError::NOT_A_FLOAT)?;
        if !(0.0..=SLEEP_MAX_S).contains(&seconds) {
            return Err(error("ERR sleep for 0 to 3600 seconds"));
        }
        // A loop that sleeps uses no keys, so it leaves the gate: others that want all keys need
        // not wait. In a transaction or a script it has locks.
        let leaves = !self.in_transaction;
        if leaves {
            self.state.seat.leave();
        }
        self.state
            .server
            .clock
            .sleep(Duration::from_secs_f64(seconds));
        if leaves {
            self.state.seat.enter();
        }
        self.done()
    }

    pub(super) fn debug_set_active_expire(
        &mut self,
        conn: &Connection,
        args: Args<'_>,
    ) -> HandlerResult {
        check(conn)?;
        self.state
            .server
            .keyspace
            .set_active_expire(switch(&args[2])?);
        self.done()
    }

    pub(super) fn debug_pause_cron(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        check(conn)?;
        switch(&args[2])?;
        self.done()
    }

    pub(super) fn debug_skip_checksums(
        &mut self,
        conn: &Connection,
        args: Args<'_>,
    ) -> HandlerResult {
        check(conn)?;
        let skips = &self.state.server.keyspace.rules().skip_checksums;
        skips.store(switch(&args[2])?, Ordering::Relaxed);
        self.done()
    }

    pub(super) fn debug_allow_in_scripts(
        &mut self,
        conn: &Connection,
        args: Args<'_>,
    ) -> HandlerResult {
        check(conn)?;
        let allowed = switch(&args[2])?;
        (self.state.server.scripts_debug).store(allowed, Ordering::Relaxed);
        self.done()
    }

    pub(super) fn debug_error(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        check(conn)?;
        self.out.error(&String::from_utf8_lossy(&args[2]));
        Ok(CommandStep::Done)
    }

    pub(super) fn debug_log(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        check(conn)?;
        let message = &args[2][..args[2].len().min(MESSAGE_MAX)];
        tracing::warn!("DEBUG LOG: {}", String::from_utf8_lossy(message));
        self.done()
    }

    pub(super) fn debug_string_match(
        &mut self,
        conn: &Connection,
        args: Args<'_>,
    ) -> HandlerResult {
        check(conn)?;
        self.out.integer(glob_match(&args[2], &args[3]).into());
        Ok(CommandStep::Done)
    }

    pub(super) fn debug_packed_threshold(
        &mut self,
        conn: &Connection,
        args: Args<'_>,
    ) -> HandlerResult {
        check(conn)?;
        let size = std::str::from_utf8(&args[2]).ok();
        match size.and_then(crate::config::memory) {
            Some(..PACKED_MAX) => self.done(),
            _ => Err(error(
                "ERR argument must be a memory value bigger than 1 and smaller than 4gb",
            )),
        }
    }

    pub(super) fn debug_reload(&mut self, conn: &mut Connection, args: Args<'_>) -> HandlerResult {
        check(conn)?;
        let mut options = ReloadOptions::default();
        for option in args.from(2).iter() {
            match option.to_ascii_lowercase().as_slice() {
                b"nosave" => options.nosave = true,
                b"noflush" => options.noflush = true,
                b"merge" => options.merge = true,
                _ => return Err(CommandError::SYNTAX),
            }
        }
        self.reload(conn, options)
    }

    pub(super) fn debug_load_aof(&mut self, conn: &Connection) -> HandlerResult {
        check(conn)?;
        Err(error(
            "ERR a log is loaded when the server starts, and never again",
        ))
    }

    pub(super) fn debug_protocol(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        check(conn)?;
        let resp3 = conn.protocol == Protocol::Resp3;
        let out = &mut *self.out;
        match args[2].to_ascii_lowercase().as_slice() {
            b"string" => out.bulk(b"Hello World"),
            b"integer" => out.integer(12_345),
            b"double" => out.double(DOUBLE),
            b"null" => out.null(),
            b"array" => {
                out.array(3);
                (0..3).for_each(|i| out.integer(i));
            }
            b"set" => {
                out.set(3);
                (0..3).for_each(|i| out.integer(i));
            }
            b"map" => {
                out.map(3);
                for i in 0..3 {
                    out.integer(i);
                    out.boolean(i == 1);
                }
            }
            b"attrib" => {
                if resp3 {
                    out.raw(ATTRIBUTE);
                }
                out.bulk(b"Some real reply following the attribute");
            }
            b"push" if !resp3 => return Err(error("ERR RESP2 is not supported by this command")),
            b"push" => {
                out.push(2);
                out.bulk(b"server-cpu-usage");
                out.integer(42);
                out.bulk(b"Some real reply following the push reply");
            }
            b"true" => out.boolean(true),
            b"false" => out.boolean(false),
            b"verbatim" => out.verbatim("txt", b"This is a verbatim\nstring"),
            b"bignum" => out.big_number("1234567999999999999999999999999999999"),
            _ => return Err(error(WRONG_TYPE_NAME)),
        }
        Ok(CommandStep::Done)
    }
}

const WRONG_TYPE_NAME: &str = "ERR Wrong protocol type name. Please use one of the following: \
     string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false";

/// Reads a switch: on (1) or off (0).
fn switch(text: &[u8]) -> Result<bool, CommandError> {
    match text {
        b"0" => Ok(false),
        b"1" => Ok(true),
        _ => Err(error("ERR give 0 or 1")),
    }
}
