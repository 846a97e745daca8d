//! What is on disk becomes the data.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Context as _;
use tidewheel_keyspace::{Fields, NotifyFlags, Record, RecordReader, Seat, Time};
use tidewheel_log::{File as _, Folder, Log, Moment, Opened, RealFolder, base_name};

use super::super::anchor::{self, Anchor};
use super::super::load;
use super::super::save::preface;
use super::super::watched::Watched;
use super::file::InOrder;
use super::rewrite::folder;
use super::{STREAMS, boot_of, header, moment, record_streams};
use crate::config::{ExpiredStreams, engine};
use crate::state::preface::{EXPIRED_STREAMS, LOG, SEGMENT};
use crate::state::server::{Server, StopReason};
use crate::time::clock::ORIGIN_TICK;

/// What has become of a recovery.
pub(crate) enum Recovered<D: Folder> {
    /// The data is there, and the log may be written.
    Log(Log<D>),
    /// The server is to stop before all is loaded.
    Stopped(StopReason),
}

/// Where the engine's time stood, and when that was.
#[derive(Debug)]
struct Mark {
    tick: u64,
    at: Anchor,
}

/// Makes the data of the log in its folder. If there is no log yet, of the snapshot, and begins a
/// log with it. Clients may be there, and are refused.
pub(crate) fn recover(
    server: &Arc<Server>,
    stops: &dyn Fn() -> Option<StopReason>,
) -> anyhow::Result<Recovered<RealFolder>> {
    let path = folder(&server.config.current());
    refuse_foreign(&path)?;
    if !path.join("manifest").exists() {
        let beside = Path::new(&server.config.current().folder).to_owned();
        refuse_foreign(&beside)?;
        refuse_foreign(&beside.join("appendonlydir"))?;
    }
    super::super::save::make_folder(Path::new(&server.config.current().folder))?;
    fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    let folder = RealFolder::new(&path).with_context(|| explain(&path))?;
    recover_from(server, stops, folder, &path)
}

/// The same of a folder that is there, and has this path.
pub(crate) fn recover_from<D: Folder>(
    server: &Arc<Server>,
    stops: &dyn Fn() -> Option<StopReason>,
    folder: D,
    path: &Path,
) -> anyhow::Result<Recovered<D>> {
    let opened = Log::open(folder);
    let mut opened = opened.with_context(|| explain(path))?;
    let base = opened.base();
    let mut reader = Replay::new(server);
    if let Some(base) = &base
        && let Some(why) = reader.load_base(opened.folder(), path, base, stops)?
    {
        return Ok(Recovered::Stopped(why));
    }
    reader.begin();
    let replayed = reader.replay(&mut opened, stops);
    let stopped = replayed.with_context(|| explain(path))?;
    if let Some(why) = stopped {
        return Ok(Recovered::Stopped(why));
    }
    if let Some(mark) = &reader.mark {
        refuse_newer_snapshot(server, mark, path)?;
    }
    let is_new = base.is_none() && reader.frames == 0;
    let cut = opened.cut();
    reader.end(cut);
    if is_new && let Some(why) = load(server, stops)? {
        return Ok(Recovered::Stopped(why));
    }
    let log = opened.begin_writing(header(&server.clock).as_bytes());
    let mut log = log.with_context(|| explain(path))?;
    let mut seat = server.keyspace.seat();
    let is_empty = server.keys() == 0 && server.libraries.look(|table| table.all().count()) == 0;
    if is_new && !is_empty {
        first_base(server, &mut seat, &mut log, path)?;
    }
    note_beginning(server, &mut log).with_context(|| explain(path))?;
    server.keyspace.start_recording(&seat.exclusive());
    let settings = server.config.current();
    if reader.streams != settings.expired_streams {
        record_streams(server, &settings, server.clock.now());
    }
    Ok(Recovered::Log(log))
}

fn explain(path: &Path) -> String {
    format!("cannot load the log in {}", path.display())
}

/// A snapshot that a server without the log has saved since has what the log has not. Nobody would
/// load it, and the next snapshot would take its place.
fn refuse_newer_snapshot(server: &Server, mark: &Mark, path: &Path) -> anyhow::Result<()> {
    let fields = load::fields(&server.snapshots);
    let field = |name: &str| {
        let found = fields.iter().find(|(of, _)| of == name.as_bytes());
        found.map(|(_, text)| &text[..])
    };
    let log = &server.config.current().log_folder;
    let is_newer = Anchor::of_snapshot(field).is_some_and(|saved| mark.at.until(&saved) > 0);
    anyhow::ensure!(
        !is_newer || field(LOG) == Some(log.as_bytes()),
        "{snapshot} is newer than the log in {path}, and not all of it is there: move {path} away to start with the \
         snapshot, or move the snapshot away to start with the log",
        snapshot = server.snapshots.path().display(),
        path = path.display()
    );
    Ok(())
}

/// The log of another server is not to be passed over in silence: not in the folder of the log,
/// and not where the other server has it, if there is no log yet.
fn refuse_foreign(path: &Path) -> anyhow::Result<()> {
    let Ok(names) = fs::read_dir(path) else {
        return Ok(());
    };
    for name in names {
        let name = name?.file_name();
        anyhow::ensure!(
            !name.to_string_lossy().contains(".aof"),
            "{} has the log of another server ({}): load it there, save a snapshot, move that log away, and start with \
             the snapshot",
            path.display(),
            name.to_string_lossy()
        );
    }
    Ok(())
}

/// The number of the segment that a base says it is in front of.
fn segment_of(fields: &Fields) -> Option<u64> {
    let text = field_of(fields, SEGMENT)?;
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A field of a base.
fn field_of<'a>(fields: &'a Fields, name: &str) -> Option<&'a [u8]> {
    let found = fields.iter().find(|(of, _)| of == name.as_bytes());
    found.map(|(_, text)| &text[..])
}

/// The streams of expired keys that a base or a record names.
fn streams_of(text: &[u8]) -> anyhow::Result<ExpiredStreams> {
    let streams = ExpiredStreams::parse(&String::from_utf8_lossy(text), u32::MAX.into());
    streams.map_err(|why| anyhow::anyhow!("no streams of expired keys: {why}"))
}

/// Writes what was loaded from a snapshot as the base of a new log.
fn first_base<D: Folder>(
    server: &Server,
    seat: &mut Seat,
    log: &mut Log<D>,
    path: &Path,
) -> anyhow::Result<()> {
    let time = server.clock.now();
    let preface = preface(server, time);
    let segment = log.roll()?;
    let (folder, name) = (log.folder(), base_name(segment));
    let mut write = || -> std::io::Result<u64> {
        let mut to = InOrder::new(folder.create_new(&name)?);
        let alone = seat.exclusive();
        let number = segment.to_string();
        let (fields, codes) = (preface.fields_of_base(&number), preface.codes());
        let keyspace = &server.keyspace;
        let saved = keyspace.save(&alone, time, &fields, codes, &mut to)?;
        to.file.sync_data()?;
        Ok(saved.bytes)
    };
    let bytes = write().with_context(|| format!("cannot write {}", path.join(&name).display()))?;
    server.log.base_bytes.store(bytes, Relaxed);
    log.rebase(segment)?;
    Ok(())
}

/// From here on the next start counts the time that has passed. It would otherwise count from the
/// last frame of the server before, and if the machine has started since, by the wall clock once
/// more: what clients have seen dead by then could live again.
fn note_beginning<D: Folder>(
    server: &Server,
    log: &mut Log<D>,
) -> Result<(), tidewheel_log::Error> {
    log.append(moment(server), &[])?;
    log.sync()
}

/// The moment that a base shows, as its fields say it: its tick is engine time. `None` if it is no
/// base of a log.
pub(crate) fn moment_of_base(fields: &Fields) -> Option<Time> {
    let mark = Mark::of(fields)?;
    Some(Time {
        tick: mark.tick,
        micros: 0,
        wall_offset_ms: mark.wall_offset_ms(),
    })
}

/// A moment before all that there is: nothing is dead then.
pub(crate) fn beginning() -> Time {
    Time {
        tick: ORIGIN_TICK,
        micros: 0,
        wall_offset_ms: 0,
    }
}

struct Replay<'s> {
    server: &'s Arc<Server>,
    seat: Seat,
    /// Where engine time has come to.
    mark: Option<Mark>,
    /// Where what expires goes, as the log says.
    streams: ExpiredStreams,
    keys: u64,
    frames: u64,
    records: u64,
    bytes: u64,
    began_ns: u64,
}

impl<'s> Replay<'s> {
    fn new(server: &'s Arc<Server>) -> Self {
        Self {
            seat: server.keyspace.seat(),
            mark: None,
            streams: ExpiredStreams::default(),
            keys: 0,
            frames: 0,
            records: 0,
            bytes: 0,
            began_ns: server.clock.monotonic_ns(),
            server,
        }
    }

    /// Loads the base. Its deadlines are engine time as its writer counted it.
    fn load_base<D: Folder>(
        &mut self,
        folder: &D,
        path: &Path,
        name: &str,
        stops: &dyn Fn() -> Option<StopReason>,
    ) -> anyhow::Result<Option<StopReason>> {
        let server = self.server;
        let shown = path.join(name);
        let file = folder.open(name);
        let file = file.with_context(|| format!("cannot open {}", shown.display()))?;
        let len = file.len()?;
        server
            .loading
            .begin(server.clock.now().wall_ms() / 1000, len);
        let mut file = Watched::new(InOrder::new(file), server, stops);
        let offset = |fields: &Fields| Mark::of(fields).map_or(0, |mark| mark.wall_offset_ms());
        let keyspace = &server.keyspace;
        let rules = load::rules(server);
        let loaded = keyspace.load_beside(&mut self.seat, beginning(), &offset, rules, &mut file);
        if file.stopped.is_some() {
            return Ok(file.stopped);
        }
        let loaded = loaded.with_context(|| format!("cannot load {}", shown.display()))?;
        let mark = Mark::of(&loaded.fields);
        let mark = mark.with_context(|| format!("{} is no base of a log", shown.display()))?;
        anyhow::ensure!(
            segment_of(&loaded.fields).is_some_and(|segment| base_name(segment) == name),
            "{} is the base of another segment",
            shown.display()
        );
        self.mark = Some(mark);
        if let Some(text) = field_of(&loaded.fields, EXPIRED_STREAMS) {
            self.streams = streams_of(text)?;
        }
        self.keys = loaded.keys;
        server.log.base_bytes.store(len, Relaxed);
        load::load_functions(server, &loaded.functions, load::Stays::default())
            .map(|()| None)
            .with_context(|| format!("cannot load {}", shown.display()))
    }

    /// Prepares the keyspace: nothing is removed because time passes, nothing is refused because
    /// a limit is lower than it was, and nobody is told.
    fn begin(&mut self) {
        let keyspace = &self.server.keyspace;
        keyspace.set_expired_streams(&self.streams.0);
        keyspace.set_replays(&self.seat.exclusive(), true);
        keyspace.set_notify_flags(NotifyFlags::NONE);
        keyspace.rules().proto_max_bulk_len.store(u64::MAX, Relaxed);
        keyspace.rules().maxmemory.store(0, Relaxed);
    }

    fn replay<D: Folder>(
        &mut self,
        opened: &mut Opened<D>,
        stops: &dyn Fn() -> Option<StopReason>,
    ) -> anyhow::Result<Option<StopReason>> {
        while let Some(frame) = opened.next_frame()? {
            let place = || format!("segment {}, byte {}", frame.segment, frame.offset);
            let boot = boot_of(frame.text);
            let boot = boot.with_context(|| format!("{}: another version's", place()))?;
            for record in RecordReader::new(frame.payload) {
                let record = record.with_context(place)?;
                self.run(&record).with_context(place)?;
                self.records += 1;
            }
            self.mark = Some(Mark::of_frame(frame.moment, boot));
            self.bytes += frame.payload.len() as u64;
            self.frames += u64::from(!frame.payload.is_empty());
            if let Some(why) = stops() {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    fn run(&mut self, record: &Record<'_>) -> anyhow::Result<()> {
        let words = record.words();
        if words.first() == Some(&&b"FUNCTION"[..]) {
            let codes: Vec<_> = words[1..].iter().map(|code| code.to_vec()).collect();
            return load::load_functions(self.server, &codes, load::Stays::default());
        }
        if let [b"CONFIG", b"SET", STREAMS, text] = words {
            return self.follow_streams(text, record.time());
        }
        let replayed = self.server.keyspace.replay(&mut self.seat, record);
        replayed.map_err(|reply| {
            let command = words.first().map_or(&b""[..], |word| word);
            anyhow::anyhow!(
                "{} cannot be run again: {}",
                command.escape_ascii(),
                reply.trim_ascii_end().escape_ascii()
            )
        })
    }

    /// From here on what expires goes into these streams. What is dead by now in databases that get
    /// one was not to go there.
    fn follow_streams(&mut self, text: &[u8], now: Time) -> anyhow::Result<()> {
        let streams = streams_of(text)?;
        self.expire_silently(now);
        self.server.keyspace.set_expired_streams(&streams.0);
        self.streams = streams;
        Ok(())
    }

    /// Engine time goes on. What had died before the last frame was announced then, and leaves in
    /// silence; but a key that has a stream stays until its event is appended.
    fn end(&mut self, cut: u64) {
        let server = self.server;
        let keyspace = &server.keyspace;
        if let Some(mark) = &self.mark {
            let time = server.clock.now();
            let passed = mark.at.until(&Anchor::new(&server.clock, time));
            let now = mark.tick.saturating_add(passed);
            server.clock.go_on(time.tick, now);
        }
        let time = server.clock.now();
        server.started.store(time.tick, Relaxed);
        let last = self.mark.as_ref().map_or(0, |mark| mark.tick);
        self.expire_silently(Time {
            tick: last,
            micros: 0,
            ..time
        });
        keyspace.set_replays(&self.seat.exclusive(), false);
        // That was not late.
        keyspace.reset_stats();
        engine::apply(&server.config.current(), keyspace);
        server.log.replayed_bytes(self.bytes);
        server.snapshots.loaded.store(self.keys, Relaxed);
        let ms = (server.clock.monotonic_ns() - self.began_ns) / 1_000_000;
        let keys = server.keys();
        let torn = (cut > 0).then_some(cut);
        tracing::info!(keys, records = self.records, ms, torn, "loaded the log");
    }

    /// Removes what is dead in databases that have no stream of it: events wait, and so do passes.
    fn expire_silently(&mut self, until: Time) {
        let keyspace = &self.server.keyspace;
        for shard in 0..keyspace.shards() {
            while keyspace
                .expire(&mut self.seat, shard, until, 1 << 10)
                .backlog
            {}
        }
    }
}

impl Mark {
    /// Of a base.
    fn of(fields: &Fields) -> Option<Self> {
        let field = |name| field_of(fields, name);
        let tick = std::str::from_utf8(field(anchor::TICK)?).ok()?;
        Some(Self {
            tick: tick.parse().ok()?,
            at: Anchor::read(field(anchor::FIELD)?)?,
        })
    }

    fn of_frame(moment: Moment, boot: &str) -> Self {
        Self {
            tick: moment.tick,
            at: Anchor::of(moment.wall_ms, moment.boot_us, boot),
        }
    }

    /// Wall time less engine time.
    fn wall_offset_ms(&self) -> i64 {
        self.at.wall_ms().saturating_sub_unsigned(self.tick)
    }
}
