//! Changes of settings while the server runs: by CONFIG SET, by ACL, and by a file that is read
//! again.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;

use super::server::Server;
use crate::clients::registry::Client;
use crate::config::{ConfigFile, ConfigKey, Settings, read, rewritten};
use crate::loop_handle::inbox::{InboxItem, Unblocking};
use crate::process::log;
use crate::process::replace::replace_file;
use crate::process::system::raise_open_files;
use crate::users::{Denial, DenialContext, SetUserError, User, Users};

/// A key, and its new value.
pub(crate) type Change<'a> = (&'static ConfigKey, &'a str);

/// Why settings are not changed.
#[derive(Debug)]
pub(crate) struct Refused {
    /// The key that cannot have its new value; without one it is about users.
    pub(crate) key: Option<&'static ConfigKey>,
    pub(crate) why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.key.map_or("user", |key| key.name);
        write!(f, "{name}: {}", self.why)
    }
}

impl Server {
    /// Sets keys, and then changes what no key sets: the users. All or nothing. `applied` sees the
    /// settings before anybody else does.
    pub(crate) fn change_settings(
        &self,
        changes: &[Change<'_>],
        change_users: impl FnOnce(&mut Settings) -> Result<(), SetUserError>,
        applied: impl FnOnce(&Settings),
    ) -> Result<(), Refused> {
        let refused = |key: Option<&'static ConfigKey>| move |why| Refused { key, why };
        self.config.change(
            |settings| {
                for (key, value) in changes {
                    (key.set)(settings, value).map_err(refused(Some(key)))?;
                }
                change_users(settings)
                    .map_err(|why| why.to_string())
                    .map_err(refused(None))?;
                let changed = |name| changes.iter().find(|(key, _)| key.name == name);
                if let Some((key, _)) = changed("expired-stream") {
                    settings
                        .check_expired_streams()
                        .map_err(refused(Some(key)))?;
                }
                if let Some((key, _)) = changed("maxclients") {
                    self.allow(settings.max_clients)
                        .map_err(refused(Some(key)))?;
                }
                // Nothing can fail behind this: new terms are in force at once.
                let tls = changes.iter().find(|(key, _)| key.name.starts_with("tls-"));
                tls.map_or(Ok(()), |(key, _)| {
                    let now_s = self.clock.now().wall_ms() / 1_000;
                    let renewed = self.tls_terms.renew(settings, now_s);
                    renewed
                        .map_err(|why| format!("{why:#}"))
                        .map_err(refused(Some(key)))
                })
            },
            |settings| {
                applied(settings);
                crate::config::engine::apply(settings, &self.keyspace);
                let records = self.keyspace.records();
                self.log.follow(settings, records, &self.loops);
                log::set_level(settings.log.level);
            },
        )?;
        // A shorter time-out must not wait for the end of a long sleep.
        self.nudge_all();
        Ok(())
    }

    /// Writes the settings in force into their file. Its lines and remarks that say the same stay.
    pub(crate) fn rewrite_file(&self, file: &ConfigFile) -> Result<(), String> {
        let mut said = file.said.lock();
        let old = match file.text() {
            Err(why) if why.kind() == ErrorKind::NotFound => Ok(String::new()),
            old => old,
        };
        let old = old.map_err(|why| why.to_string())?;
        let together = |wrong: Vec<String>| wrong.join("; ");
        let new = rewritten(&old, &self.config.current()).map_err(together)?;
        // What a link leads to is replaced, and not the link.
        let target = file.path().canonicalize();
        let target = target.unwrap_or_else(|_| file.path().to_owned());
        replace_file(&target, new.as_bytes()).map_err(|why| why.to_string())?;
        *said = read(&new).map_err(together)?;
        Ok(())
    }

    /// Raises the system's limit of open files to what this number of clients needs.
    fn allow(&self, clients: usize) -> Result<(), String> {
        let fit = raise_open_files(clients, self.own_files).connections;
        match fit >= clients {
            true => Ok(()),
            false => Err(format!(
                "The operating system is not able to handle the specified number of clients, try with {fit}"
            )),
        }
    }

    /// Closes clients whose user is gone, or who listen to what theirs may not hear any more, and
    /// tells those who wait for what it may not have. The client `own` is not closed.
    pub(crate) fn users_changed(&self, users: &Users, own: Option<u64>) {
        for client in self.clients.snapshot() {
            let (user, listens) = {
                let facts = client.facts.lock();
                (Arc::clone(&facts.user), facts.is_subscriber())
            };
            let handle = &self.loops[client.owner];
            match users.get(&user) {
                None if Some(client.id) == own => {}
                None => {
                    if client.kill() {
                        handle.post(InboxItem::Close(client.target()));
                    }
                }
                Some(user) if user.is_unlimited() => {}
                Some(user) => {
                    if let Some(why) = self.ended_wait(&client, user) {
                        handle.post(InboxItem::Unblocked(
                            client.target(),
                            Unblocking::Denied(why),
                        ));
                    }
                    if listens {
                        handle.post(InboxItem::UserChanged(client.target()));
                    }
                }
            }
        }
    }

    /// Ends a client's wait for what its user may not do any more. Nobody serves it from then on.
    /// Returns what it is told.
    fn ended_wait(&self, client: &Client, user: &User) -> Option<String> {
        let ticket = client.waiting.lock().clone()?;
        let row = tidewheel_keyspace::resolve(ticket.args()).ok()?;
        let place = self.place(ticket.db());
        let denied = user.check(row, ticket.args(), place).err()?;
        if !ticket.end() {
            return None;
        }
        if let Some((reason, object)) = denied.noted(row, ticket.args()) {
            let (now, mut line) = (self.clock.now(), Vec::new());
            client.describe(now.tick, &mut line);
            let what = (reason, DenialContext::TopLevel);
            let denial = Denial::new(what, object, &user.name, line, now.wall_ms());
            self.denials.add(denial, self.config.current().denials_max);
        }
        Some(format!("NOPERM {}", user.explain(denied, row, None)))
    }
}
