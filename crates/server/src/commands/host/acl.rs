//! ACL: users, and what they may do.

use std::sync::Arc;

use tidewheel_keyspace::rows::all_rows;
use tidewheel_keyspace::{CATEGORIES, Command, CommandError};
use tidewheel_resp::{Args, Writer, parse_i64};

use super::{HandlerResult, error};
use crate::clients::connection::Connection;
use crate::commands::turn::{CommandStep, Turn};
use crate::config::{open_regular, read_users};
use crate::process::replace::replace_file;
use crate::users::{self, DEFAULT, Selector, Users};

/// The bits of a password by default, and the most.
const PASSWORD_BITS: i64 = 256;
const PASSWORD_BITS_MAX: i64 = 4_096;

/// The number of entries that ACL LOG answers by default.
const SHOWN: i64 = 10;

const NO_FILE: &str = "ERR This instance is not configured to use an ACL file. You may want to \
                       specify users via the ACL SETUSER command and then issue a CONFIG REWRITE \
                       (assuming you have a configuration file set) in order to store users in the \
                       configuration.";

impl Turn<'_> {
    pub(super) fn acl_set_user(&mut self, conn: &mut Connection, args: Args<'_>) -> HandlerResult {
        let rules = users::merge_selectors(args.from(3))
            .map_err(|word| quoting(&format!("{}.", users::unmatched(&word))))?;
        self.change_users(conn, |users, all_channels| {
            let rules = rules.iter().map(Vec::as_slice);
            let set = users.set(&args[2], rules, all_channels);
            set.map_err(|why| quoting(&why.to_string()))
        })?;
        self.done()
    }

    pub(super) fn acl_del_user(&mut self, conn: &mut Connection, args: Args<'_>) -> HandlerResult {
        let names = args.from(2);
        if names.iter().any(|name| name == DEFAULT) {
            return Err(error("ERR The 'default' user cannot be removed"));
        }
        let removed = self.change_users(conn, |users, _| {
            Ok(names.iter().filter(|name| users.remove(name)).count())
        })?;
        self.out.integer(removed as i64);
        Ok(self.last_step(conn))
    }

    pub(super) fn acl_load(&mut self, conn: &mut Connection) -> HandlerResult {
        let settings = self.state.server.config.current();
        if settings.user_file.is_empty() {
            return Err(error(NO_FILE));
        }
        let server = Arc::clone(&self.state.server);
        // What is saved between the two would be lost.
        let alone = server.users_file.lock();
        let read = read_users(&settings, open_regular).map_err(|why| {
            quoting(&format!(
                "{why} WARNING: ACL errors detected, no change to the previously active ACL rules \
                 was performed"
            ))
        })?;
        let (users, ()) = self.new_users(|users, _| {
            *users = Users::clone(&read);
            Ok(())
        })?;
        drop(alone);
        self.users_changed(conn, &users);
        self.out.ok();
        Ok(self.last_step(conn))
    }

    pub(super) fn acl_save(&mut self) -> HandlerResult {
        let server = Arc::clone(&self.state.server);
        let _alone = server.users_file.lock();
        let settings = server.config.current();
        if settings.user_file.is_empty() {
            return Err(error(NO_FILE));
        }
        let lines = users::as_lines(&settings.users);
        let file = settings.user_path();
        if let Err(why) = replace_file(&file, &lines) {
            tracing::error!(file = %file.display(), %why, "the users were not saved");
            return Err(error(
                "ERR There was an error trying to save the ACLs. Please check the server logs for \
                 more information",
            ));
        }
        self.done()
    }

    /// Changes the table of users. Clients whose user is gone, or who listen to what theirs may not
    /// hear any more, are closed; those who wait for what it may not have are told.
    fn change_users<R>(
        &mut self,
        conn: &mut Connection,
        change: impl FnOnce(&mut Users, bool) -> Result<R, CommandError>,
    ) -> Result<R, CommandError> {
        let (users, outcome) = self.new_users(change)?;
        self.users_changed(conn, &users);
        Ok(outcome)
    }

    /// Changes the table only, and returns it.
    fn new_users<R>(
        &self,
        change: impl FnOnce(&mut Users, bool) -> Result<R, CommandError>,
    ) -> Result<(Arc<Users>, R), CommandError> {
        let mut outcome = None;
        self.state.server.config.change(
            |settings| {
                let users = Arc::make_mut(&mut settings.users);
                let changed = change(users, settings.all_channels)?;
                outcome = Some((Arc::clone(&settings.users), changed));
                Ok::<_, CommandError>(())
            },
            |_| {},
        )?;
        outcome.ok_or_else(|| error("ERR nothing was changed"))
    }

    /// What follows after the table has become this one. Another may be in force already: who was
    /// removed from this one is closed all the same.
    fn users_changed(&mut self, conn: &mut Connection, users: &Users) {
        let server = Arc::clone(&self.state.server);
        self.follow_users(conn);
        // Others follow when they step aside: then no command begins by the rights of before.
        // Beside a long command they may, until their turns end.
        server.keyspace.wait_for_commands(&mut self.state.seat);
        server.users_changed(users, Some(conn.client.id));
    }

    /// What follows after a change of the table: a client whose own user is gone is closed.
    fn last_step(&self, conn: &Connection) -> CommandStep {
        match self.state.settings.users.get(&conn.user.name) {
            Some(_) => CommandStep::Done,
            None => CommandStep::Close,
        }
    }

    pub(super) fn acl_get_user(&mut self, args: Args<'_>) -> HandlerResult {
        let settings = self.state.server.config.current();
        let Some(user) = settings.users.get(&args[2]) else {
            self.out.null();
            return Ok(CommandStep::Done);
        };
        let out = &mut *self.out;
        out.map(7);
        out.bulk(b"flags");
        let flags = user.flags();
        out.set(flags.len());
        flags.iter().for_each(|flag| out.bulk(flag.as_bytes()));
        out.bulk(b"passwords");
        let passwords = user.passwords();
        out.array(passwords.len());
        passwords.for_each(|password| out.bulk(password.as_bytes()));
        let (own, others) = user.parts();
        write_selector(own, out);
        out.bulk(b"selectors");
        out.array(others.len());
        for other in others {
            out.map(4);
            write_selector(other, out);
        }
        Ok(CommandStep::Done)
    }

    pub(super) fn acl_list(&mut self) -> HandlerResult {
        let settings = self.state.server.config.current();
        let lines = users::as_lines(&settings.users);
        self.out.array(settings.users.iter().len());
        let lines = lines.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        lines.for_each(|line| self.out.bulk(line));
        Ok(CommandStep::Done)
    }

    pub(super) fn acl_users(&mut self) -> HandlerResult {
        let settings = self.state.server.config.current();
        let users = settings.users.iter();
        self.out.array(users.len());
        users.for_each(|user| self.out.bulk(&user.name));
        Ok(CommandStep::Done)
    }

    pub(super) fn acl_who_am_i(&mut self, conn: &Connection) -> HandlerResult {
        self.out.bulk(&conn.user.name);
        Ok(CommandStep::Done)
    }

    pub(super) fn acl_cat(&mut self, args: Args<'_>) -> HandlerResult {
        let Some(wanted) = args.get(2) else {
            self.out.array(CATEGORIES.len());
            let names = CATEGORIES.iter().map(|name| &name.as_bytes()[1..]);
            names.for_each(|name| self.out.bulk(name));
            return Ok(CommandStep::Done);
        };
        at_most(args, 3)?;
        let is = |name: &&&str| name.as_bytes()[1..].eq_ignore_ascii_case(wanted);
        let category = CATEGORIES.iter().find(is).ok_or_else(|| {
            let shown = String::from_utf8_lossy(&wanted[..wanted.len().min(128)]);
            quoting(&format!("Unknown category '{shown}'"))
        })?;
        let rows = all_rows().iter();
        let rows = rows.filter(|row| row.all_categories().any(|name| name == *category));
        let names: Vec<_> = rows.map(|row| row.name).collect();
        self.out.array(names.len());
        names.iter().for_each(|name| self.out.bulk(name.as_bytes()));
        Ok(CommandStep::Done)
    }

    pub(super) fn acl_gen_pass(&mut self, args: Args<'_>) -> HandlerResult {
        at_most(args, 3)?;
        let bits = match args.get(2).map(parse_i64) {
            None => PASSWORD_BITS,
            Some(bits) => bits.ok_or(CommandError::NOT_AN_INTEGER)?,
        };
        if !(1..=PASSWORD_BITS_MAX).contains(&bits) {
            return Err(quoting(&format!(
                "ACL GENPASS argument must be the number of bits for the output password, a \
                 positive number up to {PASSWORD_BITS_MAX}"
            )));
        }
        let digits = usize::try_from(bits).unwrap_or_default().div_ceil(4);
        let mut bytes = vec![0; digits.div_ceil(2)];
        getrandom::fill(&mut bytes).map_err(|why| quoting(&why.to_string()))?;
        let mut text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        text.truncate(digits);
        self.out.bulk(text.as_bytes());
        Ok(CommandStep::Done)
    }

    pub(super) fn acl_dry_run(&mut self, conn: &Connection, args: Args<'_>) -> HandlerResult {
        let settings = self.state.server.config.current();
        let user = settings.users.get(&args[2]);
        let user = user.ok_or_else(|| quoted("User", &args[2], "not found"))?;
        let call = args.from(3);
        let row: &'static Command = super::script::named_by(call)
            .ok_or_else(|| quoted("Command", &call[0], "not found"))?;
        if !row.check_arity(call.len()) {
            return Err(quoting(&format!(
                "wrong number of arguments for '{}' command",
                row.name
            )));
        }
        match user.check(row, call, self.state.server.place(conn.session.db)) {
            Ok(()) => self.out.ok(),
            Err(denied) => {
                let object = call.get(denied.at);
                let why = user.explain(denied, row, object);
                self.out.bulk(why.as_bytes());
            }
        }
        Ok(CommandStep::Done)
    }

    pub(super) fn acl_log(&mut self, args: Args<'_>) -> HandlerResult {
        at_most(args, 3)?;
        let server = Arc::clone(&self.state.server);
        if args
            .get(2)
            .is_some_and(|word| word.eq_ignore_ascii_case(b"reset"))
        {
            server.denials.forget();
            return self.done();
        }
        let count = match args.get(2).map(parse_i64) {
            None => SHOWN,
            Some(count) => count.ok_or(CommandError::NOT_AN_INTEGER)?.max(0),
        };
        let now_ms = self.state.time.wall_ms();
        let out = &mut *self.out;
        let entries = server
            .denials
            .newest(usize::try_from(count).unwrap_or_default());
        out.array(entries.len());
        for entry in entries {
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            out.map(10);
            out.bulk(b"count");
            out.integer(number(entry.count));
            for (name, text) in [
                ("reason", entry.reason.name().as_bytes()),
                ("context", entry.context.name().as_bytes()),
                ("object", &entry.object),
                ("username", &entry.user),
            ] {
                out.bulk(name.as_bytes());
                out.bulk(text);
            }
            out.bulk(b"age-seconds");
            out.double((now_ms - entry.at_ms) as f64 / 1_000.0);
            out.bulk(b"client-info");
            out.bulk(&entry.client);
            for (name, value) in [
                ("entry-id", number(entry.id)),
                ("timestamp-created", entry.first_ms),
                ("timestamp-last-updated", entry.at_ms),
            ] {
                out.bulk(name.as_bytes());
                out.integer(value);
            }
        }
        Ok(CommandStep::Done)
    }
}

fn write_selector(selector: &Selector, out: &mut Writer) {
    for (name, rules) in ["commands", "keys", "channels", "databases"]
        .iter()
        .zip(selector.parts())
    {
        out.bulk(name.as_bytes());
        out.bulk(&rules);
    }
}

fn at_most(args: Args<'_>, most: usize) -> Result<(), CommandError> {
    if args.len() <= most {
        return Ok(());
    }
    let name = String::from_utf8_lossy(&args[1]);
    Err(quoting(&format!(
        "unknown subcommand or wrong number of arguments for '{name}'. Try ACL HELP."
    )))
}

fn quoted(what: &str, name: &[u8], why: &str) -> CommandError {
    quoting(&format!("{what} '{}' {why}", String::from_utf8_lossy(name)))
}

fn quoting(text: &str) -> CommandError {
    CommandError::quoting(format!("ERR {text}"))
}
