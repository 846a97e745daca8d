//! A log of which a sync has failed, step by step.

use crate::simulated::{Disk, Faults};
use crate::{Error, File, Folder, Log, Moment, base_name};

fn open(disk: &Disk) -> Log<Disk> {
    let opened = Log::open(disk.clone()).expect("no damage");
    opened.begin_writing(b"").expect("a log")
}

fn append(log: &mut Log<Disk>, payload: &[u8]) -> Result<u64, Error> {
    log.append(Moment::default(), payload)
}

/// A log with one frame that is on disk and one that a failed sync may have lost.
fn poisoned(disk: &Disk) -> Log<Disk> {
    let mut log = open(disk);
    append(&mut log, b"safe").expect("room");
    log.sync().expect("a disk");
    append(&mut log, b"lost").expect("room");
    let fails = Faults {
        failed_syncs: 1,
        ..Faults::default()
    };
    disk.set_faults(fails);
    assert!(matches!(log.sync(), Err(Error::Failed(_))));
    disk.set_faults(Faults::default());
    log
}

fn payloads(disk: &Disk) -> Vec<Vec<u8>> {
    let mut opened = Log::open(disk.clone()).expect("no damage");
    let mut found = Vec::new();
    while let Some(frame) = opened.next_frame().expect("no damage") {
        found.push(frame.payload.to_owned());
    }
    found
}

#[test]
fn it_takes_nothing_until_a_new_base_is_in_force() {
    let disk = Disk::new(1);
    let mut log = poisoned(&disk);
    let safe = log.synced();
    assert!(safe > 0 && safe < log.written());
    assert!(matches!(
        log.sync(),
        Err(Error::Poisoned | Error::Failed(_))
    ));
    assert!(matches!(append(&mut log, b"refused"), Err(Error::Poisoned)));
    let segment = log.roll().expect("a segment");
    append(&mut log, b"behind a hole").expect("room");
    assert!(matches!(log.sync(), Err(Error::Poisoned)));
    assert_eq!(log.synced(), safe);
    let base = disk.create_new(&base_name(segment)).expect("a file");
    base.sync_data().expect("a disk");
    log.rebase(segment).expect("a base");
    assert_eq!(log.synced(), log.written());
    drop(log);
    disk.crash();
    assert_eq!(payloads(&disk), [b"behind a hole"]);
}

/// Each try to get rid of a poisoned log left a whole snapshot, until the disk was full.
#[test]
fn a_base_that_is_not_put_in_force_leaves_no_file() {
    let disk = Disk::new(1);
    let mut log = poisoned(&disk);
    let in_force = log.first_segment();
    let segment = log.roll().expect("a segment");
    disk.create_new(&base_name(segment)).expect("a file");
    log.drop_base(segment);
    let names = disk.list().expect("a folder");
    assert!(!names.contains(&base_name(segment)), "{names:?}");
    disk.create_new(&base_name(in_force)).expect("a file");
    log.drop_base(in_force);
    let names = disk.list().expect("a folder");
    assert!(names.contains(&base_name(in_force)), "it is in force");
}

#[test]
fn what_is_behind_a_hole_is_not_read_with_the_old_base() {
    for seed in 0..50 {
        let disk = Disk::new(seed);
        let mut log = poisoned(&disk);
        for payload in [b"one", b"two"] {
            log.roll().expect("a segment");
            append(&mut log, payload).expect("room");
            let _ = log.sync();
        }
        drop(log);
        disk.crash();
        let found = payloads(&disk);
        let all = [b"safe".to_vec(), b"lost".to_vec()];
        assert!(
            !found.is_empty() && all[..found.len()] == found,
            "seed {seed}: {found:?}"
        );
        assert_eq!(open(&disk).segment(), 2);
    }
}

/// A process removed the last segment behind a hole, and was killed before that was on disk. The
/// next one saw two segments and removed the last of these.
#[test]
fn a_removal_that_is_not_on_disk_leaves_no_gap() {
    for seed in 0..40 {
        for operations in 0..30 {
            let disk = Disk::new(seed);
            let mut log = poisoned(&disk);
            log.roll().expect("a segment");
            log.roll().expect("a segment");
            drop(log);
            disk.remove("segment-3").expect("it is there");
            disk.kill();
            disk.cut_power_after(operations);
            let _ = Log::open(disk.clone()).and_then(|opened| opened.begin_writing(b""));
            disk.crash();
            assert_eq!(payloads(&disk)[0], b"safe");
        }
    }
}

/// The system tells of a failure only once: who syncs next must hear of it too.
#[test]
fn a_roll_hears_of_the_failure_of_a_sync_that_is_still_to_be_reported() {
    let disk = Disk::new(1);
    let mut log = open(&disk);
    append(&mut log, b"lost").expect("room");
    let aside = log.begin_sync();
    disk.set_faults(Faults {
        failed_syncs: 1,
        ..Faults::default()
    });
    let done = aside.run();
    disk.set_faults(Faults::default());
    assert!(matches!(log.roll(), Err(Error::Failed(_))));
    assert!(matches!(log.end_sync(done), Err(Error::Failed(_))));
    assert_eq!(log.synced(), 0);
    assert_eq!(log.roll().expect("a segment"), 2);
}

#[test]
fn a_full_disk_takes_frames_again_when_there_is_room() {
    let disk = Disk::new(1);
    let mut log = open(&disk);
    let end = append(&mut log, b"one").expect("room");
    disk.set_faults(Faults {
        capacity: Some(0),
        ..Faults::default()
    });
    assert!(matches!(append(&mut log, b"two"), Err(Error::Full(_))));
    assert_eq!(log.written(), end);
    log.sync().expect("what was written can be synced");
    assert!(matches!(log.roll(), Err(Error::Full(_))));
    disk.set_faults(Faults::default());
    append(&mut log, b"three").expect("room");
    log.sync().expect("a disk");
    drop(log);
    disk.crash();
    assert_eq!(payloads(&disk), [&b"one"[..], b"three"]);
}
