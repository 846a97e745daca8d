//! A new base: what the log says so far, as a snapshot.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, channel};

use tidewheel_keyspace::{Exclusive, Snapshot, SnapshotFailure, SnapshotLimits, Time};
use tidewheel_log::base_name;

use super::super::save::{Preface, tell};
use crate::config::Settings;
use crate::process::system;
use crate::state::log::{LogRequest, Rolled, Trouble};
use crate::state::server::Server;

/// After a failure no base is tried for so long.
const RETRY_MS: u64 = 5_000;

/// The folder of the log.
pub(crate) fn folder(settings: &Settings) -> PathBuf {
    PathBuf::from(&settings.folder).join(&settings.log_folder)
}

/// True if a new base is due: the log has grown enough, or a sync has failed.
pub(crate) fn is_due(server: &Server, settings: &Settings, tick: u64) -> bool {
    let log = &server.log;
    if !log.is_on() || tick < log.rewrite_from.load(Relaxed) {
        return false;
    }
    let (bytes, base) = (log.bytes.load(Relaxed), log.base_bytes.load(Relaxed));
    let percent = settings.rewrite_percentage;
    // The percentage is of the base: at 100 the log is as long as the base.
    let has_grown = percent > 0
        && bytes >= settings.rewrite_min_size
        && u128::from(bytes) * 100 >= u128::from(base) * u128::from(percent);
    has_grown || log.trouble() == Trouble::NotSynced
}

/// Begins a new base. There is one snapshot at a time: the caller has made sure.
///
/// # Errors
///
/// If no thread can be started.
pub(crate) fn rewrite(server: &Arc<Server>, alone: &Exclusive<'_>, time: Time) -> io::Result<()> {
    let limits = SnapshotLimits::of(server.keyspace.used_memory());
    let preface = Preface::of(server, time);
    let (tell_rolled, rolled) = channel();
    server.log.expect_cut(tell_rolled);
    server.keyspace.cut_records(alone);
    let snapshot = server.keyspace.begin_snapshot(alone, time, limits);
    server.snapshots.begin(snapshot.course(), time.tick);
    server.log.is_rewriting.store(true, Relaxed);
    let thread = {
        let server = Arc::clone(server);
        move || conclude(&server, snapshot, &preface, &rolled)
    };
    let spawned = std::thread::Builder::new().name("log-base".to_owned());
    let spawned = spawned.spawn(thread);
    if let Err(why) = &spawned {
        server.snapshots.end(time.tick);
        server.log.is_rewriting.store(false, Relaxed);
        tracing::error!("cannot start a thread for a base of the log: {why}");
    }
    server.log.wake();
    server.nudge_all();
    spawned.map(drop)
}

/// Writes a base, and notes what became of it.
fn conclude(server: &Server, snapshot: Snapshot, preface: &Preface, rolled: &Receiver<Rolled>) {
    system::go_last();
    let course = snapshot.course();
    let based = write(server, snapshot, preface, rolled);
    let tick = server.clock.now().tick;
    let log = &server.log;
    server.snapshots.end(tick);
    log.is_rewriting.store(false, Relaxed);
    log.rewrite_failed.store(based.is_err(), Relaxed);
    match based {
        Ok(()) => {}
        Err(why) => {
            log.rewrite_from.store(tick + RETRY_MS, Relaxed);
            match course.failure() {
                Some(SnapshotFailure::Cancelled) => {
                    tracing::info!("the log's new base was cancelled")
                }
                _ => tracing::error!("cannot write a base of the log: {why}"),
            }
        }
    }
}

fn write(
    server: &Server,
    snapshot: Snapshot,
    preface: &Preface,
    rolled: &Receiver<Rolled>,
) -> io::Result<()> {
    let segment = rolled.recv().map_err(io::Error::other)?;
    let segment = segment.map_err(io::Error::other)?;
    let path = folder(&server.config.current()).join(base_name(segment));
    // What has its name is of an attempt that has failed.
    let _ = fs::remove_file(&path);
    let mut file = File::create_new(&path)?;
    let saved = snapshot.write(&preface.fields(), preface.codes(), &mut file);
    let saved = saved.and_then(|saved| file.sync_all().map(|()| saved));
    let saved = saved.inspect_err(|_| {
        // It is in nobody's way: the error that counts is the first one.
        let _ = fs::remove_file(&path);
    })?;
    let (tell_rebased, rebased) = channel();
    if !server.log.ask(LogRequest::Rebase(segment, tell_rebased)) {
        return Err(io::Error::other("the log has ended"));
    }
    let rebased = rebased.recv().map_err(io::Error::other)?;
    rebased.map_err(io::Error::other)?;
    server.log.rebased(saved.bytes);
    tell(&saved, &path);
    Ok(())
}
