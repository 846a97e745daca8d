//! A new base: what the log says so far, as a snapshot.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::channel;

use tidewheel_keyspace::{
    Exclusive, Saved, Snapshot, SnapshotCourse, SnapshotFailure, SnapshotLimits, Time,
};
use tidewheel_log::{File as _, Folder, base_name};

use super::super::save::{preface, tell};
use super::file::InOrder;
use crate::config::Settings;
use crate::process::system;
use crate::state::log::{BegunBase, LogRequest, Trouble};
use crate::state::preface::Preface;
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
/// If nobody writes the log any more.
pub(crate) fn rewrite(server: &Server, alone: &Exclusive<'_>, time: Time) -> io::Result<()> {
    let limits = SnapshotLimits::of(server.keyspace.used_memory());
    let preface = preface(server, time);
    let (tell_rolled, rolled) = channel();
    server.log.expect_cut(tell_rolled);
    server.keyspace.cut_records(alone, time);
    let snapshot = server.keyspace.begin_snapshot(alone, time, limits);
    server.snapshots.begin(snapshot.course(), time.tick);
    server.log.is_rewriting.store(true, Relaxed);
    let begun = BegunBase {
        snapshot,
        preface,
        rolled,
    };
    let asked = server.log.ask(LogRequest::Write(begun));
    server.nudge_all();
    if !asked {
        server.snapshots.end(time.tick);
        server.log.is_rewriting.store(false, Relaxed);
        return Err(ended());
    }
    Ok(())
}

/// Writes a base, has it put in force, and notes what became of it.
pub(super) fn write<D: Folder>(server: &Server, base: BegunBase, folder: &D) {
    system::go_last();
    let course = base.snapshot.course();
    let rolled = base.rolled.recv().map_err(io::Error::other);
    let segment = rolled.and_then(|rolled| rolled.map_err(io::Error::other));
    let based = segment.and_then(|segment| {
        let saved = write_file(folder, segment, base.snapshot, &base.preface)?;
        let (tell_rebased, rebased) = channel();
        if !server.log.ask(LogRequest::Rebase(segment, tell_rebased)) {
            return Err(ended());
        }
        let rebased = rebased.recv().map_err(io::Error::other)?;
        rebased.map_err(io::Error::other)?;
        Ok((segment, saved))
    });
    conclude(server, &course, based);
}

/// Writes the base that a segment follows, and brings it to disk.
pub(crate) fn write_file<D: Folder>(
    folder: &D,
    segment: u64,
    snapshot: Snapshot,
    preface: &Preface,
) -> io::Result<Saved> {
    let name = base_name(segment);
    // What has its name is of an attempt that has failed.
    let _ = folder.remove(&name);
    let mut to = InOrder::new(folder.create_new(&name)?);
    let number = segment.to_string();
    let fields = preface.fields_of_base(&number);
    let saved = snapshot.write(&fields, preface.codes(), &mut to);
    let saved = saved.and_then(|saved| to.file.sync_data().map(|()| saved));
    saved.inspect_err(|_| {
        // It is in nobody's way: the error that counts is the first one.
        let _ = folder.remove(&name);
    })
}

/// Notes what became of a base.
pub(crate) fn conclude(server: &Server, course: &SnapshotCourse, based: io::Result<(u64, Saved)>) {
    let tick = server.clock.now().tick;
    let log = &server.log;
    if let Some(background) = server.snapshots.background() {
        log.rewrite_ms.store(background.took_ms(tick), Relaxed);
        let held = background.course.peak_held_bytes();
        log.rewrite_held.store(held, Relaxed);
    }
    server.snapshots.end(tick);
    log.is_rewriting.store(false, Relaxed);
    match based {
        Ok((segment, saved)) => {
            log.rewrite_failures.store(0, Relaxed);
            log.rebased(saved.bytes);
            let path = folder(&server.config.current()).join(base_name(segment));
            tell(&saved, &path);
        }
        Err(why) => {
            log.rewrite_failures.fetch_add(1, Relaxed);
            log.rewrite_from.store(tick + RETRY_MS, Relaxed);
            match course.failure() {
                Some(SnapshotFailure::Cancelled) => {
                    tracing::info!("the log's new base was cancelled");
                }
                _ => tracing::error!("cannot write a base of the log: {why}"),
            }
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the log has ended")
}
