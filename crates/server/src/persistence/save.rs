//! Writes the snapshot file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidewheel_keyspace::{Exclusive, Saved, Time};

use super::anchor::{self, Anchor};
use crate::state::server::Server;

/// The version of the protocol's server that the file names: readers take their rules from it.
const NAMED_VERSION: &str = "7.0.0";

/// Writes all data to the snapshot file, while nobody else uses the keyspace.
///
/// # Errors
///
/// If the file cannot be written. Then the old one, if there is one, is still there.
pub(crate) fn save(server: &Server, alone: &Exclusive<'_>, time: Time) -> io::Result<Saved> {
    let saved = replace(&server.snapshots.folder, &server.snapshots.name, |file| {
        save_to(server, alone, time, file)
    });
    let snapshots = &server.snapshots;
    snapshots.failed.store(saved.is_err(), Ordering::Relaxed);
    match &saved {
        Ok(saved) => {
            let changes = server.keyspace.stats(time).changes;
            snapshots.changes.store(changes, Ordering::Relaxed);
            let now_s = time.wall_ms() / 1000;
            snapshots.last_s.store(now_s, Ordering::Relaxed);
            snapshots.written.fetch_add(1, Ordering::Relaxed);
            tell(saved, &snapshots.path());
        }
        Err(why) => {
            tracing::error!("cannot save to {}: {why}", snapshots.path().display());
        }
    }
    saved
}

fn tell(saved: &Saved, path: &Path) {
    tracing::info!(
        keys = saved.keys,
        bytes = saved.bytes,
        "saved to {}",
        path.display()
    );
    if saved.with_member_deadlines > 0 {
        tracing::warn!(
            "{} keys have members with deadlines, which other servers do not read: those members would live for \
             ever there",
            saved.with_member_deadlines
        );
    }
}

fn save_to(
    server: &Server,
    alone: &Exclusive<'_>,
    time: Time,
    to: &mut dyn Write,
) -> io::Result<Saved> {
    let libraries: Vec<_> = (server.libraries).look(|table| table.all().map(Arc::clone).collect());
    let codes = libraries.iter().map(|library| &*library.code);
    let seconds = (time.wall_ms() / 1000).to_string();
    let used = server.keyspace.used_memory().to_string();
    let anchor = Anchor::now(time).text();
    let fields = [
        ("redis-ver", NAMED_VERSION),
        ("redis-bits", "64"),
        ("ctime", &seconds),
        ("used-mem", &used),
        ("tidewheel-ver", env!("CARGO_PKG_VERSION")),
        (anchor::FIELD, &anchor),
    ];
    server.keyspace.save(alone, time, &fields, codes, to)
}

/// Writes a file beside the old one of that name, and puts it in its place when it is on disk.
fn replace(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<Saved>,
) -> io::Result<Saved> {
    fs::create_dir_all(folder)?;
    let beside = folder.join(format!("{name}.{}.new", std::process::id()));
    // What stands there is of a server that was killed, or a trap: a link, or a pipe.
    let _ = fs::remove_file(&beside);
    let written = File::create_new(&beside).and_then(|mut file| {
        let saved = write(&mut file)?;
        file.sync_all()?;
        fs::rename(&beside, folder.join(name))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_old_one_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("tidewheel-save-{}", std::process::id()));
        let saved = |text: &'static [u8]| {
            replace(&folder, "file", |file| {
                file.write_all(text)?;
                Ok(Saved::default())
            })
        };
        saved(b"first").expect("a file");
        saved(b"second").expect("a file");
        let failed = replace(&folder, "file", |file| {
            file.write_all(b"third")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.expect_err("full").kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(folder.join("file")).expect("a file"), b"second");
        let names = fs::read_dir(&folder).expect("a folder").count();
        fs::remove_dir_all(&folder).expect("it is there");
        assert_eq!(names, 1);
    }
}
