//! Loads the snapshot file.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use tidewheel_keyspace::{
    Exclusive, Fields, Garbage, Hooks, Keyspace, LoadRules, Options, SnapshotItem, SnapshotReader,
    Time,
};

use super::anchor::{self, Anchor};
use super::watched::Watched;
use crate::config::open_regular;
use crate::process::system;
use crate::scripts::Scripts;
use crate::scripts::libraries::Table;
use crate::state::server::{Server, StopReason};
use crate::state::snapshots::Snapshots;
use crate::time::clock::ORIGIN_TICK;

/// Who only asks what a file says of itself reads so many fields at most.
const FIELDS_MAX: usize = 64;

/// Loads the snapshot file, if there is one. Clients may be there, and are refused. If the server
/// is asked to stop before all is loaded, returns why.
pub(crate) fn load(
    server: &Server,
    stops: &dyn Fn() -> Option<StopReason>,
) -> anyhow::Result<Option<StopReason>> {
    let path = server.snapshots.path();
    remove_leftovers(&server.snapshots);
    let Some(file) = open(&path)? else {
        return Ok(None);
    };
    let (time, len) = (server.clock.now(), file.metadata()?.len());
    server.loading.begin(time.wall_ms() / 1000, len);
    let began_ns = server.clock.monotonic_ns();
    let mut file = Watched::new(file, server, stops);
    let mut seat = server.keyspace.seat();
    let now = Anchor::new(&server.clock, time);
    let offset = |fields: &Fields| offset_of(fields, &now, time);
    let loaded = server
        .keyspace
        .load_beside(&mut seat, time, &offset, rules(server), &mut file)
        .map_err(anyhow::Error::from);
    if file.stopped.is_some() {
        tracing::info!("stopped while {} was loaded", path.display());
        return Ok(file.stopped);
    }
    let loaded = loaded.and_then(|loaded| {
        load_functions(server, &loaded.functions, Stays::default())?;
        Ok(loaded)
    });
    let loaded = loaded.with_context(|| {
        format!(
            "cannot load {}: move the file away to start without it",
            path.display()
        )
    })?;
    server
        .snapshots
        .loaded
        .store(loaded.keys, Ordering::Relaxed);
    let ms = (server.clock.monotonic_ns() - began_ns) / 1_000_000;
    let some = |keys| (keys > 0).then_some(keys);
    tracing::info!(
        keys = loaded.keys,
        ms,
        skipped_empty = some(loaded.skipped_empty),
        skipped_unknown = some(loaded.skipped_unknown),
        "loaded {}",
        path.display()
    );
    Ok(None)
}

/// Removes what servers that were killed had begun to write beside the file.
fn remove_leftovers(snapshots: &Snapshots) {
    let Ok(names) = fs::read_dir(&snapshots.folder) else {
        return;
    };
    for name in names.filter_map(Result::ok).map(|entry| entry.file_name()) {
        let process = name.to_str().and_then(|name| snapshots.process_of(name));
        if process.is_some_and(|id| !system::runs(id)) {
            // Who may not remove it may not write another one either, and is told so then.
            let _ = fs::remove_file(snapshots.folder.join(&name));
        }
    }
}

/// Opens the file, if there is one.
fn open(path: &Path) -> anyhow::Result<Option<File>> {
    match open_regular(path) {
        Ok(file) => Ok(Some(file)),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(why).context(format!("cannot open {}", path.display())),
    }
}

/// What the snapshot file says of itself, as far as it can be read. Nothing if there is none.
pub(super) fn fields(snapshots: &Snapshots) -> Fields {
    let mut fields = Fields::new();
    let Ok(Some(mut file)) = open(&snapshots.path()) else {
        return fields;
    };
    let Ok(mut reader) = SnapshotReader::new(&mut file) else {
        return fields;
    };
    while let Ok(Some(SnapshotItem::Field(name, text))) = reader.read_next()
        && fields.len() < FIELDS_MAX
    {
        fields.push((name, text));
    }
    fields
}

/// What the settings in force say of keys that cannot simply be stored.
pub(super) fn rules(server: &Server) -> LoadRules {
    LoadRules {
        replaces: false,
        skips_unknown: server.config.current().load_skip_unknown,
    }
}

/// The things that stay of those that are there before a file is loaded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stays {
    /// Libraries stay that the file does not have. Otherwise the file's replace all.
    pub(crate) libraries: bool,
    /// Keys and libraries of the file may have the names of some that are there, and replace these.
    pub(crate) replaced: bool,
}

/// Loads the keys that the bytes of a snapshot hold, and returns the codes of its libraries. If it
/// was `just_taken`, no time has passed since.
pub(crate) fn load_keys(
    server: &Server,
    alone: &Exclusive<'_>,
    time: Time,
    (stays, just_taken): (Stays, bool),
    mut bytes: &[u8],
) -> anyhow::Result<Vec<Vec<u8>>> {
    let (now, engine) = (
        Anchor::new(&server.clock, time),
        server.keyspace.engine_time(time),
    );
    let offset = |fields: &Fields| match just_taken {
        true => engine.wall_offset_ms,
        false => offset_of(fields, &now, engine),
    };
    let keyspace = &server.keyspace;
    let rules = LoadRules {
        replaces: stays.replaced,
        ..rules(server)
    };
    let loaded = keyspace.load(alone, time, &offset, rules, &mut bytes)?;
    Ok(loaded.functions)
}

/// Loads libraries of functions, whose code runs: so nothing is locked.
pub(crate) fn load_functions(
    server: &Server,
    codes: &[Vec<u8>],
    stays: Stays,
) -> anyhow::Result<()> {
    let (mut scripts, mut table) = (Scripts::default(), Table::default());
    let mut libraries = Vec::new();
    for code in codes {
        let library = scripts.load(server, code, |name| table.has(name), u64::MAX);
        let library = Arc::new(library.map_err(|why| anyhow::anyhow!("{why}"))?);
        let added = table.add(Arc::clone(&library), false);
        added.map_err(|why| anyhow::anyhow!("{why}"))?;
        libraries.push(library);
    }
    let restored = (server.libraries).restore(libraries, !stays.libraries, stays.replaced);
    restored.map_err(|why| anyhow::anyhow!("{why}"))
}

/// Wall time less engine time by which the deadlines of a file are read: its own, if it says when
/// it was written; else they are wall time, as elsewhere.
pub(crate) fn offset_of(fields: &Fields, now: &Anchor, time: Time) -> i64 {
    let field = fields
        .iter()
        .find(|(name, _)| name == anchor::FIELD.as_bytes());
    let anchor = field.and_then(|(_, text)| Anchor::read(text));
    anchor.map_or(time.wall_offset_ms, |anchor| {
        anchor.offset_at(now, time.tick)
    })
}

/// The bytes of the snapshot file.
pub(crate) fn read(server: &Server) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(&server.snapshots.path())?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Loads the bytes of a snapshot into a keyspace that nobody sees, to know whether they can be
/// loaded.
pub(crate) fn check(server: &Server, mut bytes: &[u8]) -> anyhow::Result<()> {
    struct Alone;
    impl Hooks for Alone {
        fn wake(&self, _: usize, _: u64) {}

        fn reclaim(&self, garbage: Garbage) {
            drop(garbage);
        }

        fn stopwatch_ns(&self) -> u64 {
            0
        }
    }
    let options = Options {
        databases: server.keyspace.databases(),
        ..Options::default()
    };
    let keyspace = Keyspace::new(options, Box::new(Alone));
    let time = Time {
        tick: ORIGIN_TICK,
        micros: 0,
        wall_offset_ms: 0,
    };
    // In a thread of its own, since this one has the gate of the other keyspace.
    let load = || {
        let mut seat = keyspace.seat();
        keyspace.load(&seat.exclusive(), time, &|_| 0, rules(server), &mut bytes)
    };
    let loaded = std::thread::scope(|scope| scope.spawn(load).join());
    let loaded = loaded.map_err(|_| anyhow::anyhow!("loading has panicked"))?;
    loaded.map(|_| ()).map_err(anyhow::Error::from)
}
