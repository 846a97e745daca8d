//! Loads the snapshot file.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use tidewheel_keyspace::{Fields, Seat, Time};

use super::anchor::{self, Anchor};
use crate::scripts::Scripts;
use crate::scripts::libraries::Table;
use crate::state::server::Server;

/// Loads the snapshot file, if there is one. Nobody else uses the server yet.
pub(crate) fn load(server: &Server) -> anyhow::Result<()> {
    let path = server.snapshots.path();
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(why).context(format!("cannot open {}", path.display())),
    };
    let began_ns = server.clock.monotonic_ns();
    let time = server.clock.now();
    let mut seat = server.keyspace.seat();
    let loaded = load_from(
        server,
        &mut seat,
        time,
        &|fields| offset_of(fields, time),
        Stays::default(),
        &mut file,
    );
    let keys = loaded.with_context(|| {
        format!(
            "cannot load {}: move the file away to start without it",
            path.display()
        )
    })?;
    server.snapshots.loaded.store(keys, Ordering::Relaxed);
    let ms = (server.clock.monotonic_ns() - began_ns) / 1_000_000;
    tracing::info!(keys, ms, "loaded {}", path.display());
    Ok(())
}

/// What becomes of that which is there before a file is loaded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stays {
    /// Libraries stay that the file does not have. Otherwise the file's replace all.
    pub(crate) libraries: bool,
    /// Keys and libraries of the file may have the names of some that are there, and replace these.
    pub(crate) replaced: bool,
}

/// Loads the bytes of a snapshot. If it was `just_taken`, no time has passed since.
pub(crate) fn load_bytes(
    server: &Server,
    seat: &mut Seat,
    time: Time,
    (stays, just_taken): (Stays, bool),
    mut bytes: &[u8],
) -> anyhow::Result<()> {
    let engine = server.keyspace.engine_time(time);
    let offset = |fields: &Fields| match just_taken {
        true => engine.wall_offset_ms,
        false => offset_of(fields, engine),
    };
    load_from(server, seat, time, &offset, stays, &mut bytes).map(|_| ())
}

fn load_from(
    server: &Server,
    seat: &mut Seat,
    time: Time,
    wall_offset_ms: &dyn Fn(&Fields) -> i64,
    stays: Stays,
    from: &mut dyn Read,
) -> anyhow::Result<u64> {
    let keyspace = &server.keyspace;
    let loaded = keyspace.load(seat, time, wall_offset_ms, stays.replaced, from)?;
    load_functions(server, &loaded.functions, stays)?;
    Ok(loaded.keys)
}

/// Loads libraries of functions.
fn load_functions(server: &Server, codes: &[Vec<u8>], stays: Stays) -> anyhow::Result<()> {
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
fn offset_of(fields: &Fields, time: Time) -> i64 {
    let field = fields
        .iter()
        .find(|(name, _)| name == anchor::FIELD.as_bytes());
    let anchor = field.and_then(|(_, text)| Anchor::read(text));
    anchor.map_or(time.wall_offset_ms, |anchor| anchor.wall_offset_ms(time))
}
