//! Writes the snapshot file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use tidewheel_keyspace::{Exclusive, Saved, Snapshot, SnapshotFailure, SnapshotLimits, Time};

use super::anchor::{self, Anchor};
use crate::process::system;
use crate::state::preface::{EXPIRED_STREAMS, LOG, Preface};
use crate::state::server::Server;
use crate::state::snapshots::Snapshots;

/// Writes all data to the snapshot file, while nobody else uses the keyspace. One that is being
/// taken in the background ends without a file.
///
/// # Errors
///
/// If the file cannot be written. Then the old one, if there is one, is still there.
pub(crate) fn save(server: &Server, alone: &Exclusive<'_>, time: Time) -> io::Result<Saved> {
    let snapshots = &server.snapshots;
    if let Some(background) = snapshots.background() {
        background.course.cancel();
    }
    let preface = preface(server, time);
    let write = |file: &mut dyn Write| {
        let keyspace = &server.keyspace;
        keyspace.save(alone, time, &preface.fields(), preface.codes(), file)
    };
    let saved = replace(snapshots, write, || Ok(()));
    let changes = server.keyspace.stats(time).changes;
    conclude(server, &saved, changes, time.wall_ms() / 1000);
    saved
}

/// Saves, since the server is about to stop. If it `must` stop, or if all is saved, nobody changes
/// anything any more: it would be answered, and lost.
///
/// # Errors
///
/// If the file cannot be written.
pub(crate) fn save_and_pause(
    server: &Server,
    alone: &Exclusive<'_>,
    time: Time,
    must: bool,
) -> io::Result<Saved> {
    let saved = save(server, alone, time);
    if saved.is_ok() || must {
        server.pause.start(true, u64::MAX);
        server.pause_changed();
    }
    saved
}

/// Begins to write all data of this moment to the snapshot file. Loops walk over their shards, and
/// a thread writes. There is one at a time: the caller has made sure.
///
/// # Errors
///
/// If no thread can be started.
pub(crate) fn begin(server: &Arc<Server>, alone: &Exclusive<'_>, time: Time) -> io::Result<()> {
    let limits = SnapshotLimits::of(server.keyspace.used_memory());
    let preface = preface(server, time);
    let changes = server.keyspace.stats(time).changes;
    let snapshot = server.keyspace.begin_snapshot(alone, time, limits);
    server.snapshots.begin(snapshot.course(), time.tick);
    let thread = {
        let server = Arc::clone(server);
        move || {
            let ends = Ends(Arc::clone(&server));
            write(&server, snapshot, &preface, changes, time.wall_ms() / 1000);
            drop(ends);
        }
    };
    let spawned = std::thread::Builder::new().name("snapshot".to_owned());
    let spawned = spawned.spawn(thread);
    if let Err(why) = &spawned {
        server.snapshots.end(time.tick);
        let why = format!("cannot start a thread: {why}");
        server.snapshots.note_failure(&io::Error::other(why));
    }
    server.nudge_all();
    spawned.map(drop)
}

/// The snapshot in the background has ended, also by a panic: another one may begin.
struct Ends(Arc<Server>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.snapshots.end(self.0.clock.now().tick);
    }
}

/// Writes a snapshot while loops walk.
fn write(server: &Server, snapshot: Snapshot, preface: &Preface, changes: u64, now_s: i64) {
    system::go_last();
    let snapshots = &server.snapshots;
    let course = snapshot.course();
    let write = |file: &mut dyn Write| snapshot.write(&preface.fields(), preface.codes(), file);
    // SAVE cancels it, and then writes a newer file.
    let may_replace = || match course.failure() {
        Some(why) => Err(io::Error::other(why.to_string())),
        None => Ok(()),
    };
    let saved = replace(snapshots, write, may_replace);
    if course.failure() == Some(SnapshotFailure::Cancelled) {
        tracing::info!("the snapshot was cancelled");
    } else {
        snapshots.note_cost(server.clock.now().tick);
        conclude(server, &saved, changes, now_s);
    }
}

/// Notes and tells what became of a snapshot.
fn conclude(server: &Server, saved: &io::Result<Saved>, changes: u64, now_s: i64) {
    let snapshots = &server.snapshots;
    match saved {
        Ok(saved) => {
            snapshots.note(changes, now_s);
            tell(saved, &snapshots.path());
        }
        Err(why) => snapshots.note_failure(why),
    }
}

pub(super) fn tell(saved: &Saved, path: &Path) {
    tracing::info!(
        keys = saved.keys,
        bytes = saved.bytes,
        "saved to {}",
        path.display()
    );
    if saved.with_member_deadlines > 0 {
        tracing::warn!(
            "{} keys have members with deadlines for which this rdb-version has no word: those members would \
             live for ever on other servers",
            saved.with_member_deadlines
        );
    }
}

/// What a file that shows a moment says of itself, and its libraries of functions.
pub(crate) fn preface(server: &Server, time: Time) -> Preface {
    let format = server.keyspace.rules().file_format();
    let streams = server.config.current().expired_streams.to_string();
    let mut preface = Preface {
        fields: vec![
            ("redis-ver", format.named_server().to_owned()),
            ("redis-bits", "64".to_owned()),
            ("ctime", (time.wall_ms() / 1000).to_string()),
            ("used-mem", server.keyspace.used_memory().to_string()),
            ("tidewheel-ver", env!("CARGO_PKG_VERSION").to_owned()),
            (anchor::FIELD, Anchor::new(&server.clock, time).text()),
            (
                anchor::TICK,
                server.keyspace.engine_time(time).tick.to_string(),
            ),
            (EXPIRED_STREAMS, streams),
        ],
        libraries: (server.libraries).look(|table| table.all().map(Arc::clone).collect()),
    };
    if server.log.is_on() {
        let log = server.config.current().log_folder.clone();
        preface.fields.push((LOG, log));
    }
    preface
}

/// Writes a file beside the old one, and puts it in its place when it is on disk, if it may.
fn replace(
    snapshots: &Snapshots,
    write: impl FnOnce(&mut dyn Write) -> io::Result<Saved>,
    may_replace: impl FnOnce() -> io::Result<()>,
) -> io::Result<Saved> {
    let folder = &snapshots.folder;
    claim(snapshots)?;
    let beside = folder.join(snapshots.name_beside());
    // What stands there is of a server that was killed, or a trap: a link, or a pipe.
    let _ = fs::remove_file(&beside);
    let written = File::create_new(&beside).and_then(|mut file| {
        let saved = write(&mut file)?;
        file.sync_all()?;
        let place = snapshots.place.lock();
        may_replace()?;
        fs::rename(&beside, snapshots.path())?;
        drop(place);
        Ok(saved)
    });
    match written {
        Ok(saved) => {
            // The new name is on disk when its folder is.
            File::open(folder)?.sync_all()?;
            Ok(saved)
        }
        Err(why) => {
            // What is left of it is in nobody's way: the error that counts is the first one.
            let _ = fs::remove_file(&beside);
            Err(why)
        }
    }
}

/// Takes the file for this server. Makes the folder if it is not there.
///
/// # Errors
///
/// If another server has it, or if nothing can be written there.
pub(crate) fn claim(snapshots: &Snapshots) -> io::Result<()> {
    make_folder(&snapshots.folder)?;
    snapshots.claim()
}

/// Makes the folder if it is not there. Then nothing in it is to be committed.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    if !folder.exists() {
        fs::create_dir_all(folder)?;
        fs::write(folder.join(".gitignore"), "*\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("tidewheel-save-{}", std::process::id()));
        let settings = Settings {
            folder: folder.to_string_lossy().into_owned(),
            snapshot_file: "file".to_owned(),
            ..Settings::default()
        };
        let snapshots = Snapshots::new(&settings, 0, 0);
        let saved = |text: &'static [u8]| {
            let write = |file: &mut dyn Write| {
                file.write_all(text)?;
                Ok(Saved::default())
            };
            replace(&snapshots, write, || Ok(()))
        };
        saved(b"first").expect("a file");
        saved(b"second").expect("a file");
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let failed = replace(&snapshots, |_| Err(full()), || Ok(()));
        assert_eq!(failed.expect_err("full").kind(), io::ErrorKind::StorageFull);
        let late = replace(&snapshots, |_| Ok(Saved::default()), || Err(full()));
        assert_eq!(late.expect_err("late").kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(folder.join("file")).expect("a file"), b"second");
        let names = fs::read_dir(&folder).expect("a folder").count();
        fs::remove_dir_all(&folder).expect("it is there");
        assert_eq!(names, 3, "the file, its lock and .gitignore");
    }
}
