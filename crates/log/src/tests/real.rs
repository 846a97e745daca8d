//! The log in a folder of the operating system.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::{File as _, Folder, Log, LogReader, Moment, OpenError, Opened, RealFolder, base_name};

/// A folder that is gone when the test ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tidewheel-log-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn folder(&self) -> RealFolder {
        RealFolder::new(&self.0.join("data/log")).expect("a folder")
    }

    fn open(&self) -> Opened<RealFolder> {
        Log::open(self.folder()).expect("a log")
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn payloads(opened: &mut Opened<RealFolder>) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while let Some(frame) = opened.next_frame().expect("no damage") {
        found.push(frame.payload.to_owned());
    }
    found
}

#[test]
fn what_was_appended_comes_back_in_order() {
    let temporary = Temporary::new("order");
    let moment = Moment {
        tick: 1 << 40,
        wall_ms: -5,
        boot_us: 77,
    };
    let long = vec![7; 1_000_003];
    {
        let mut log = temporary.open().begin_writing(b"rows 1").expect("a log");
        assert_eq!((log.written(), log.synced()), (0, 0));
        log.append(moment, b"one").expect("room");
        log.append(Moment::default(), b"").expect("room");
        log.roll().expect("a segment");
        assert_eq!(log.synced(), log.written());
        let end = log.append(Moment::default(), &long).expect("room");
        assert!(log.synced() < end);
        log.sync().expect("a disk");
        assert_eq!(log.synced(), end);
    }
    let mut opened = temporary.open();
    let first = opened.next_frame().expect("no damage").expect("a frame");
    assert_eq!(
        (first.moment, first.payload, first.text),
        (moment, &b"one"[..], &b"rows 1"[..])
    );
    assert_eq!(payloads(&mut opened), [Vec::new(), long]);
    assert_eq!((opened.base(), opened.cut()), (None, 0));
    let log = opened.begin_writing(b"rows 2").expect("a log");
    assert_eq!(log.segment(), 3);
}

#[test]
fn a_base_replaces_the_segments_in_front_of_it() {
    let temporary = Temporary::new("base");
    let mut log = temporary.open().begin_writing(b"").expect("a log");
    log.append(Moment::default(), b"old").expect("room");
    let segment = log.roll().expect("a segment");
    log.append(Moment::default(), b"new").expect("room");
    assert!(log.rebase(segment).is_err(), "there is no base yet");
    for stray in ["base-1.rdb", "manifest.new"] {
        log.folder().create_new(stray).expect("a file");
    }
    let base = log
        .folder()
        .create_new(&base_name(segment))
        .expect("a file");
    base.sync_data().expect("a disk");
    log.rebase(segment).expect("a base");
    let mut names = log.folder().list().expect("names");
    names.sort();
    assert_eq!(names, ["base-2.rdb", "lock", "manifest", "segment-2"]);
    drop(log);
    let mut opened = temporary.open();
    assert_eq!(opened.base().as_deref(), Some("base-2.rdb"));
    assert_eq!(payloads(&mut opened), [b"new"]);
}

#[test]
fn a_sync_runs_beside_appends_on_another_thread() {
    let temporary = Temporary::new("thread");
    let mut log = temporary.open().begin_writing(b"").expect("a log");
    let covered = log.append(Moment::default(), b"one").expect("room");
    let sync = log.begin_sync();
    let done = std::thread::scope(|scope| {
        let running = scope.spawn(|| sync.run());
        log.append(Moment::default(), b"two").expect("room");
        running.join().expect("no panic")
    });
    log.end_sync(done).expect("a disk");
    assert_eq!(log.synced(), covered);
    let late = log.begin_sync();
    log.roll().expect("a segment");
    let end = log.append(Moment::default(), b"three").expect("room");
    log.end_sync(late.run()).expect("a disk");
    assert!(log.synced() < end);
}

#[test]
fn two_logs_never_have_one_folder() {
    let temporary = Temporary::new("lock");
    let log = temporary.open().begin_writing(b"").expect("a log");
    assert!(matches!(
        Log::open(temporary.folder()),
        Err(OpenError::Locked)
    ));
    drop(log);
    temporary.open();
}

#[test]
fn links_and_pipes_at_our_names_are_refused() {
    let temporary = Temporary::new("links");
    let folder = temporary.folder();
    let at = |name: &str| temporary.0.join("data/log").join(name);
    drop(temporary.open().begin_writing(b"").expect("a log"));
    let victim = temporary.0.join("victim");
    fs::write(&victim, "precious").expect("a file");
    for name in ["manifest.new", "segment-2"] {
        std::os::unix::fs::symlink(&victim, at(name)).expect("a link");
        assert!(folder.open(name).is_err(), "{name}");
        assert!(folder.create_new(name).is_err(), "{name}");
    }
    assert!(matches!(Log::open(folder), Err(OpenError::Io { .. })));
    fs::remove_file(at("segment-2")).expect("a link");
    drop(temporary.open().begin_writing(b"").expect("a log"));
    assert_eq!(fs::read(&victim).expect("a file"), b"precious");
}

#[test]
fn ids_differ() {
    let folder = Temporary::new("ids").folder();
    assert_ne!(folder.random(), folder.random());
}

#[test]
fn a_log_is_read_while_it_is_written_and_nothing_is_made() {
    let temporary = Temporary::new("reader");
    let path = temporary.0.join("data/log");
    let reader = || LogReader::new(RealFolder::read_only(&path));
    assert!(reader().is_err() && !temporary.0.exists());
    drop(temporary.folder());
    assert!(matches!(reader(), Err(OpenError::Missing { .. })));

    let mut log = temporary.open().begin_writing(b"rows 1").expect("a log");
    log.append(Moment::default(), b"one").expect("room");
    log.append(Moment::default(), b"two").expect("room");
    let names = fs::read_dir(&path).expect("a folder").count();
    let segment = path.join("segment-1");
    let whole = fs::read(&segment).expect("a file");
    // As if the second frame were half written.
    fs::write(&segment, &whole[..whole.len() - 8]).expect("a file");
    let mut read = reader().expect("a log");
    let frame = read.next_frame().expect("no damage").expect("a frame");
    assert_eq!((frame.payload, frame.text), (&b"one"[..], &b"rows 1"[..]));
    assert_eq!(read.next_frame().expect("no damage"), None);
    assert_eq!((read.cut(), read.base()), (56, None));
    assert_eq!(fs::read_dir(&path).expect("a folder").count(), names);
    fs::write(&segment, &whole).expect("a file");
    log.append(Moment::default(), b"three").expect("room");
    let mut read = reader().expect("a log");
    let mut frames = 0;
    while read.next_frame().expect("no damage").is_some() {
        frames += 1;
    }
    assert_eq!((frames, read.cut()), (3, 0));
}

/// A sync of a file whose name was removed succeeded, and its bytes counted as on disk.
#[test]
fn what_is_in_a_removed_folder_is_not_on_disk_and_a_base_in_a_new_one_mends_that() {
    let temporary = Temporary::new("removed");
    a_new_folder_mends(&temporary, || fs::remove_dir_all(&temporary.0));
}

/// The log went on in the moved folder, where no start looks for it.
#[test]
fn what_is_in_a_moved_folder_is_not_on_disk_and_a_base_in_a_new_one_mends_that() {
    let (temporary, away) = (Temporary::new("moved"), Temporary::new("away"));
    a_new_folder_mends(&temporary, || fs::rename(&temporary.0, &away.0));
}

fn a_new_folder_mends(temporary: &Temporary, lose: impl FnOnce() -> io::Result<()>) {
    let mut log = temporary.open().begin_writing(b"").expect("a log");
    log.append(Moment::default(), b"one").expect("room");
    log.sync().expect("a disk");
    lose().expect("ours");
    log.append(Moment::default(), b"two")
        .expect("the file is open still");
    log.sync().expect_err("its name is gone");
    assert!(log.is_poisoned());
    log.roll().expect_err("there is no folder");

    let folder = temporary.folder();
    let segment = log.roll().expect("a segment");
    let base = folder.create_new(&base_name(segment)).expect("a base");
    base.sync_data().expect("a disk");
    log.rebase(segment).expect("a folder");
    let end = log.append(Moment::default(), b"three").expect("room");
    log.sync().expect("a disk");
    assert_eq!(log.synced(), end);
    drop(log);
    assert_eq!(payloads(&mut temporary.open()), [b"three"]);
}
