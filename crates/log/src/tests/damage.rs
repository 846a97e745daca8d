//! What is altered on the disk is refused, with its place, or was not promised.

use proptest::prelude::*;

use super::model::frame;
use crate::frame::HEAD;
use crate::names::{MANIFEST, segment_name};
use crate::segment::HEADER;
use crate::simulated::{Dice, Disk};
use crate::{File, Folder, Log, Moment, OpenError, base_name, repair};

/// A disk with a log, and for each segment where its frames begin.
struct Written {
    disk: Disk,
    /// Frame by frame: segment, offset, length of the frame.
    frames: Vec<(u64, u64, u64)>,
    /// So many frames are on disk, and a later one says so.
    witnessed: usize,
}

/// Writes some frames into three segments, the first of them behind a base.
fn write(seed: u64) -> Written {
    let disk = Disk::new(seed);
    let mut dice = Dice::new(seed);
    let mut log = Log::open(disk.clone()).and_then(|opened| opened.begin_writing(b"rows"));
    let log = log.as_mut().expect("a new log");
    let first = log.roll().expect("a segment");
    let base = disk.create_new(&base_name(first)).expect("a file");
    base.sync_data().expect("a disk");
    log.rebase(first).expect("a base");
    let mut frames = Vec::new();
    let mut witnessed = 0;
    let mut synced = 0;
    for segment in 0..3 {
        let mut offset = HEADER;
        for _ in 0..1 + dice.below(12) {
            let (moment, payload) = frame(frames.len() as u64);
            log.append(moment, &payload).expect("room");
            let length = (HEAD + payload.len()).next_multiple_of(8) as u64;
            witnessed = synced;
            frames.push((log.segment(), offset, length));
            offset += length;
            if dice.once_in(4) {
                log.sync().expect("a disk");
                synced = frames.len();
            }
        }
        if segment < 2 {
            log.roll().expect("a segment");
            (synced, witnessed) = (frames.len(), frames.len());
        }
    }
    Written {
        disk,
        frames,
        witnessed,
    }
}

/// Opens a log and reads how many frames it has. They must be right.
fn read(disk: &Disk) -> Result<usize, OpenError> {
    let mut opened = Log::open(disk.clone())?;
    let mut count = 0;
    while let Some(found) = opened.next_frame()? {
        assert_eq!(frame(count), (found.moment, found.payload.to_owned()));
        count += 1;
    }
    Ok(count as usize)
}

#[test]
fn a_flipped_bit_never_passes_for_data_or_for_a_shorter_log() {
    let (mut refused, mut cut) = (0, 0);
    for seed in 0..400 {
        let written = write(seed);
        let mut dice = Dice::new(!seed);
        for _ in 0..20 {
            let disk = written.disk.copy(dice.number());
            let names = [MANIFEST, "segment-2", "segment-3", "segment-4"];
            let name = names[dice.below(4) as usize];
            let bits = 8 * disk.len(name).expect("a file");
            let bit = dice.below(bits);
            disk.flip(name, bit);
            let place = format!("seed {seed}: {name}, bit {bit}");
            match read(&disk) {
                Ok(count) => {
                    assert!(count >= written.witnessed, "{place}: {count} frames");
                    assert!(
                        count < written.frames.len(),
                        "{place}: the flip is not seen"
                    );
                    cut += 1;
                }
                Err(OpenError::Damaged(damage)) => {
                    assert_eq!(damage.file, name, "{place}");
                    assert!(damage.offset <= bit / 8, "{place}: {damage:?}");
                    refused += 1;
                }
                Err(OpenError::UnknownVersion { file, .. }) => assert_eq!(file, name, "{place}"),
                Err(error) => panic!("{place}: {error}"),
            }
            if name == MANIFEST {
                continue;
            }
            // Repaired, it has the frames in front of the altered one.
            let cuts = match repair(&disk) {
                Ok(cuts) => cuts,
                Err(OpenError::UnknownVersion { .. }) => continue,
                Err(error) => panic!("{place}: {error}"),
            };
            let whole = (written.frames.iter())
                .take_while(|(segment, offset, length)| {
                    segment_name(*segment) != name
                        || bit / 8 >= HEADER && offset + length <= bit / 8
                })
                .take_while(|(segment, ..)| segment_name(*segment).as_str() <= name)
                .count();
            assert_eq!(read(&disk).expect("a log"), whole, "{place}: {cuts:?}");
            let kept: u64 = cuts
                .iter()
                .map(|cut| disk.len(&cut.kept_in).expect("it is kept"))
                .sum();
            assert_eq!(
                kept,
                cuts.iter().map(|cut| cut.bytes).sum::<u64>(),
                "{place}"
            );
            assert!(repair(&disk).expect("a log").is_empty());
            let log = Log::open(disk).and_then(|opened| opened.begin_writing(b""));
            (log.expect("a log").append(Moment::default(), b"more")).expect("room");
        }
    }
    assert!(refused > 4_000 && cut > 100, "{refused} refused, {cut} cut");
}

#[test]
fn files_that_are_missing_are_named() {
    for name in [
        MANIFEST,
        "base-2.rdb",
        "segment-2",
        "segment-3",
        "segment-4",
    ] {
        let disk = write(1).disk;
        disk.remove(name).expect("it is there");
        match read(&disk) {
            Err(OpenError::Missing { file, .. }) => assert_eq!(file, name),
            other => panic!("{other:?}"),
        }
        let is_segment = name.starts_with("segment");
        assert_eq!(repair(&disk).is_ok(), is_segment, "{name}");
        assert_eq!(read(&disk).is_ok(), is_segment, "{name}");
    }
}

/// The newest segment passed for one that was never written.
#[test]
fn a_newest_segment_that_was_emptied_is_refused() {
    for len in [0, 1, HEADER - 1] {
        let disk = write(1).disk;
        let file = disk.open("segment-4").expect("it is there");
        file.truncate(len).expect("a file");
        match read(&disk) {
            Err(OpenError::Damaged(damage)) => assert_eq!(damage.file, "segment-4"),
            other => panic!("{other:?}"),
        }
        assert_eq!(repair(&disk).expect("a log").len(), 1, "{len}");
        read(&disk).expect("a log");
    }
}

/// A server that begins to write removes a segment that has no frames, and begins one in its place.
#[test]
fn the_power_may_go_while_the_manifest_names_another_newest_segment() {
    for seed in 0..400 {
        let disk = write(seed).disk;
        let mut lives = 0;
        while lives < 6 {
            disk.cut_power_after(Dice::new(seed + 1_000 * lives).below(60));
            let log = Log::open(disk.clone()).and_then(|opened| opened.begin_writing(b"rows"));
            if let Ok(mut log) = log {
                let _ = log.roll();
            }
            disk.crash();
            read_any(&disk).unwrap_or_else(|error| panic!("seed {seed}, life {lives}: {error}"));
            lives += 1;
        }
    }
}

/// Opens a log, and reads all its frames.
fn read_any(disk: &Disk) -> Result<(), OpenError> {
    let mut opened = Log::open(disk.clone())?;
    while opened.next_frame()?.is_some() {}
    drop(opened);
    Ok(())
}

#[test]
fn a_crash_within_a_repair_leaves_what_can_be_repaired() {
    for seed in 0..300 {
        let written = write(seed);
        let mut dice = Dice::new(seed);
        let disk = written.disk.copy(seed);
        let segment = format!("segment-{}", 2 + dice.below(2));
        disk.flip(
            &segment,
            dice.below(8 * disk.len(&segment).expect("a file")),
        );
        let Err(OpenError::Damaged(_)) = read(&disk) else {
            continue;
        };
        disk.cut_power_after(dice.below(40));
        let first = repair(&disk);
        disk.crash();
        if let Err(error) = repair(&disk) {
            panic!("seed {seed}: {first:?}, then {error}");
        }
        read(&disk).expect("a log");
    }
}

#[test]
fn a_copy_of_a_segment_within_a_payload_holds_no_frames() {
    let disk = Disk::new(1);
    let mut log = Log::open(disk.clone()).and_then(|opened| opened.begin_writing(b""));
    let log = log.as_mut().expect("a new log");
    log.append(Moment::default(), b"one").expect("room");
    log.sync().expect("a disk");
    log.append(Moment::default(), b"two").expect("room");
    let length = disk.len("segment-1").expect("a file");
    let mut copy = vec![0; length as usize];
    let mut filled = 0;
    let file = disk.open("segment-1").expect("a file");
    while filled < copy.len() {
        filled += file
            .read_at(filled as u64, &mut copy[filled..])
            .expect("bytes");
    }
    log.append(Moment::default(), &copy).expect("room");
    // The frame is torn in its head.
    disk.flip("segment-1", 8 * (length + 20));
    disk.kill();
    let mut opened = Log::open(disk).expect("a log");
    let mut count = 0;
    while opened
        .next_frame()
        .expect("a torn end is no damage")
        .is_some()
    {
        count += 1;
    }
    assert_eq!(
        (count, opened.cut()),
        (2, (HEAD as u64 + length).next_multiple_of(8))
    );
}

/// A disk with these bytes as a file, beside a log.
fn with_file(name: &str, bytes: &[u8]) -> Disk {
    let disk = write(7).disk;
    let _ = disk.remove(name);
    let file = disk.create_new(name).expect("a file");
    let mut written = 0;
    while written < bytes.len() {
        written += (file.write_at(written as u64, &bytes[written..])).expect("room");
    }
    disk
}

fn open_whatever(disk: &Disk) {
    if let Ok(mut opened) = Log::open(disk.clone()) {
        while let Ok(Some(_)) = opened.next_frame() {}
    }
    let _ = repair(disk);
    if let Ok(opened) = Log::open(disk.clone()) {
        let _ = opened
            .begin_writing(b"")
            .map(|mut log| log.append(Moment::default(), b"more"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_are_a_segment_or_none(bytes: Vec<u8>, number in 0_u64..6) {
        open_whatever(&with_file(&segment_name(number), &bytes));
    }

    /// The header is right, and so is the marker: what follows is not.
    #[test]
    fn any_bytes_follow_a_marker(bytes in prop::collection::vec(any::<u8>(), 48..200), length in 0_u64..300) {
        let disk = write(7).disk;
        let file = disk.open("segment-4").expect("a file");
        let mut marker = [0; 8];
        let mut filled = 0;
        while filled < 8 {
            filled += file.read_at(24 + filled as u64, &mut marker[filled..]).expect("bytes");
        }
        let end = file.len().expect("a length").next_multiple_of(8);
        let mut frame = [&marker[..], &bytes].concat();
        if length < 250 {
            frame[16..24].copy_from_slice(&length.to_le_bytes());
        }
        file.write_at(end, &frame).expect("room");
        file.write_at(end - 8, &frame).expect("room");
        open_whatever(&disk);
    }

    #[test]
    fn any_bytes_are_a_manifest_or_none(bytes: Vec<u8>) {
        open_whatever(&with_file(MANIFEST, &bytes));
    }

    #[test]
    fn any_lines_are_a_manifest_or_none(base in ".{0,9}", first: u64, last: u64, crc: u32) {
        for base in [&base[..], "none", &base_name(first)] {
            let lines = format!("tidewheel-log manifest 1\nbase {base}\nfirst {first}\nlast {last}\n");
            for crc in [crc, crc32c::crc32c(lines.as_bytes())] {
                let text = format!("{lines}crc32c {crc:08x}\n");
                open_whatever(&with_file(MANIFEST, text.as_bytes()));
            }
        }
    }
}

#[test]
fn numbers_end() {
    let disk = Disk::new(1);
    let text = crate::manifest::Manifest {
        has_base: false,
        first: u64::MAX,
        last: u64::MAX,
    };
    text.store(&disk).expect("a manifest");
    let header = crate::segment::Header::first(&disk, u64::MAX, b"");
    header.create(&disk).expect("a segment");
    let opened = Log::open(disk).expect("a log");
    assert!(opened.begin_writing(b"").is_err());
}
