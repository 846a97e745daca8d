//! CLIENT TRACKING, CACHING, TRACKINGINFO and GETREDIR: caches of clients, and what keeps them
//! right.

use tidewheel_keyspace::{CommandError, PREFIX_BYTES_MAX, PREFIXES_MAX, PrefixError, TrackingMode};
use tidewheel_resp::{Args, parse_i64};

use super::{HandlerResult, error};
use crate::clients::checks;
use crate::clients::connection::Connection;
use crate::clients::tracking::{TrackedReads, Tracking};
use crate::commands::turn::{CommandStep, Turn};

/// The options of CLIENT TRACKING.
#[derive(Debug, Default)]
struct TrackingOptions {
    redirect: u64,
    broadcast: bool,
    opt_in: bool,
    opt_out: bool,
    no_loop: bool,
    prefixes: Vec<Box<[u8]>>,
}

impl Turn<'_> {
    pub(super) fn client_tracking(
        &mut self,
        conn: &mut Connection,
        args: Args<'_>,
    ) -> HandlerResult {
        let options = self.tracking_options(args)?;
        match args[2].to_ascii_lowercase().as_slice() {
            b"on" => self.begin_tracking(conn, options)?,
            b"off" => self.end_tracking(conn),
            _ => return Err(CommandError::SYNTAX),
        }
        self.done()
    }

    fn tracking_options(&self, args: Args<'_>) -> Result<TrackingOptions, CommandError> {
        let mut options = TrackingOptions::default();
        let mut words = args.from(3).into_iter();
        while let Some(word) = words.next() {
            match word.to_ascii_lowercase().as_slice() {
                b"redirect" => {
                    let id = words.next().ok_or(CommandError::SYNTAX)?;
                    if options.redirect != 0 {
                        return Err(error(
                            "ERR A client can only redirect to a single other client",
                        ));
                    }
                    let id = parse_i64(id).ok_or(CommandError::NOT_AN_INTEGER)?;
                    let client = u64::try_from(id).ok();
                    let client = client.and_then(|id| self.state.server.clients.get(id));
                    let client = client.ok_or_else(|| {
                        error("ERR The client ID you want redirect to does not exist")
                    })?;
                    options.redirect = client.id;
                }
                b"prefix" => {
                    let prefix = words.next().ok_or(CommandError::SYNTAX)?;
                    options.prefixes.push(prefix.into());
                }
                b"bcast" => options.broadcast = true,
                b"optin" => options.opt_in = true,
                b"optout" => options.opt_out = true,
                b"noloop" => options.no_loop = true,
                _ => return Err(CommandError::SYNTAX),
            }
        }
        Ok(options)
    }

    fn begin_tracking(
        &mut self,
        conn: &mut Connection,
        options: TrackingOptions,
    ) -> Result<(), CommandError> {
        let before = conn.tracking.as_deref();
        if !options.broadcast && !options.prefixes.is_empty() {
            return Err(error("ERR PREFIX option requires BCAST mode to be enabled"));
        }
        if before.is_some_and(|before| before.broadcast != options.broadcast) {
            return Err(error(
                "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then \
                 re-enabling it with a different mode.",
            ));
        }
        if options.broadcast && (options.opt_in || options.opt_out) {
            return Err(error("ERR OPTIN and OPTOUT are not compatible with BCAST"));
        }
        let reads = match (options.opt_in, options.opt_out) {
            (false, false) => TrackedReads::All,
            (true, false) => TrackedReads::OptIn,
            (false, true) => TrackedReads::OptOut,
            (true, true) => {
                return Err(error(
                    "ERR You can't specify both OPTIN mode and OPTOUT mode",
                ));
            }
        };
        let switches = |before: &Tracking| {
            options.opt_in && before.reads == TrackedReads::OptOut
                || options.opt_out && before.reads == TrackedReads::OptIn
        };
        if before.is_some_and(switches) {
            return Err(error(
                "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then \
                 re-enabling it with a different mode.",
            ));
        }
        let Some(waiter) = conn.session.waiter else {
            return Err(CommandError::NOT_HERE);
        };
        let mut prefixes = options.prefixes;
        if options.broadcast && prefixes.is_empty() && before.is_none() {
            prefixes.push(Box::default());
        }
        let mode = TrackingMode {
            no_loop: options.no_loop,
            prefixes: options.broadcast.then_some(prefixes),
        };
        let keyspace = &self.state.server.keyspace;
        keyspace.track(waiter, mode).map_err(|why| refused(&why))?;
        conn.tracking = Some(Box::new(Tracking {
            redirect: options.redirect,
            broadcast: options.broadcast,
            reads,
            no_loop: options.no_loop,
            broken: false,
        }));
        conn.set(checks::CACHING, false);
        conn.tracking_changed();
        Ok(())
    }

    /// Tracks nothing any more.
    pub(super) fn end_tracking(&mut self, conn: &mut Connection) {
        if conn.tracking.take().is_some()
            && let Some(waiter) = conn.session.waiter
        {
            self.state.server.keyspace.untrack(waiter);
        }
        conn.set(checks::CACHING, false);
        conn.tracking_changed();
    }

    pub(super) fn client_caching(
        &mut self,
        conn: &mut Connection,
        args: Args<'_>,
    ) -> HandlerResult {
        let Some(tracking) = &conn.tracking else {
            return Err(error(
                "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT \
                 mode enabled",
            ));
        };
        match args[2].to_ascii_lowercase().as_slice() {
            b"yes" if tracking.reads == TrackedReads::OptIn => {}
            b"yes" => {
                return Err(error(
                    "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.",
                ));
            }
            b"no" if tracking.reads == TrackedReads::OptOut => {}
            b"no" => {
                return Err(error(
                    "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.",
                ));
            }
            _ => return Err(CommandError::SYNTAX),
        }
        conn.set(checks::CACHING, true);
        conn.tracking_changed();
        self.done()
    }

    pub(super) fn client_tracking_info(&mut self, conn: &Connection) -> HandlerResult {
        let tracking = conn.tracking.as_deref();
        let caching = conn.checks & checks::CACHING != 0;
        let is = |of: fn(&Tracking) -> bool| tracking.is_some_and(of);
        let opts_in = is(|of| of.reads == TrackedReads::OptIn);
        let opts_out = is(|of| of.reads == TrackedReads::OptOut);
        let flags = [
            ("off", tracking.is_none()),
            ("on", tracking.is_some()),
            ("bcast", is(|of| of.broadcast)),
            ("optin", opts_in),
            ("caching-yes", opts_in && caching),
            ("optout", opts_out),
            ("caching-no", opts_out && caching),
            ("noloop", is(|of| of.no_loop)),
            ("broken_redirect", is(|of| of.broken)),
        ];
        let set = flags.iter().filter(|(_, is)| *is);
        self.out.map(3);
        self.out.bulk(b"flags");
        self.out.set(set.clone().count());
        set.for_each(|(name, _)| self.out.bulk(name.as_bytes()));
        self.out.bulk(b"redirect");
        self.out.integer(redirect(conn));
        self.out.bulk(b"prefixes");
        let waiter = conn.session.waiter;
        let prefixes = waiter.map(|waiter| self.state.server.keyspace.tracked_prefixes(waiter));
        let prefixes = prefixes.unwrap_or_default();
        self.out.array(prefixes.len());
        prefixes.iter().for_each(|prefix| self.out.bulk(prefix));
        Ok(CommandStep::Done)
    }

    pub(super) fn client_get_redirect(&mut self, conn: &Connection) -> HandlerResult {
        self.out.integer(redirect(conn));
        Ok(CommandStep::Done)
    }
}

/// Returns the client that is told instead; 0 for none, −1 without tracking.
fn redirect(conn: &Connection) -> i64 {
    let redirect = conn.tracking.as_ref().map(|tracking| tracking.redirect);
    redirect.map_or(-1, |id| i64::try_from(id).unwrap_or(i64::MAX))
}

/// Returns the error reply for prefixes that are refused.
fn refused(why: &PrefixError) -> CommandError {
    let (prefix, other, which) = match why {
        PrefixError::Existing(prefix, other) => (prefix, other, "an existing prefix"),
        PrefixError::Provided(prefix, other) => (prefix, other, "another provided prefix"),
        _ => {
            let text = format!(
                "ERR too many prefixes for one client: at most {PREFIXES_MAX}, of {PREFIX_BYTES_MAX} bytes together"
            );
            return CommandError::quoting(text);
        }
    };
    let [prefix, other] = [prefix, other].map(|bytes| String::from_utf8_lossy(bytes));
    CommandError::quoting(format!(
        "ERR Prefix '{prefix}' overlaps with {which} '{other}'. Prefixes for a single client must not overlap."
    ))
}
