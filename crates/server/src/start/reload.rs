//! Reads the file of settings again, for SIGHUP.

use std::sync::Arc;

use crate::config::{FileChanges, Settings};
use crate::persistence::log;
use crate::state::server::Server;

/// Reads the file again, and applies lines that have changed, all or none.
pub(crate) fn reload(server: &Server) {
    let Some(file) = &server.config.file else {
        tracing::info!("there is no file of settings to read again (SIGHUP)");
        return;
    };
    let path = file.path().display();
    let mut said = file.said.lock();
    let new = match file.read() {
        Ok(new) => new,
        Err(wrong) => {
            wrong
                .iter()
                .for_each(|why| tracing::error!("{path}: {why}"));
            tracing::error!("{path} is wrong: no setting was changed");
            return;
        }
    };
    let changes = FileChanges::of(file, &said, &new, &server.config.current());
    let live = changes.live.iter();
    let live: Vec<_> = live.map(|(key, value)| (*key, value.as_str())).collect();
    let mut new_users = None;
    let change_users = |settings: &mut Settings| {
        let mut users = Arc::clone(&settings.users);
        changes.change_users(&new, settings, Arc::make_mut(&mut users))?;
        settings.users = users;
        new_users = Some(Arc::clone(&settings.users));
        Ok(())
    };
    let time = server.clock.now();
    let applied = |settings: &Settings| log::record_changes(server, &live, settings, time);
    let changed = server.change_settings(&live, change_users, applied);
    if let Err(refused) = changed {
        tracing::error!("{path}: {refused}: no setting was changed");
        return;
    }
    if let Some(users) = new_users.filter(|_| !changes.users.is_empty()) {
        server.users_changed(&users, None);
    }
    *said = new;
    tell(&changes, &path.to_string());
}

/// Says what came of it.
fn tell(changes: &FileChanges, path: &str) {
    let live = changes.live.iter().map(|(key, _)| key.name);
    let live: Vec<&str> = live.collect();
    tracing::info!(
        changed = live.join(", "),
        users = changes.users.len(),
        "read {path} again (SIGHUP)"
    );
    if !changes.at_start.is_empty() {
        let names = changes.at_start.join(", ");
        tracing::warn!("{path}: these are read at the start only, so restart for them: {names}");
    }
    if !changes.overruled.is_empty() {
        let names = changes.overruled.join(", ");
        tracing::warn!("{path}: a flag or the environment has set these otherwise: {names}");
    }
}
