//! The simulated disk does what disks do.

use std::collections::BTreeSet;

use crate::simulated::{Disk, Faults};
use crate::{File, Folder};

const LENGTH: usize = 10_000;

fn read(disk: &Disk, name: &str) -> Option<Vec<u8>> {
    let file = disk.open(name).ok()?;
    let mut bytes = vec![0; file.len().expect("a length") as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += file
            .read_at(filled as u64, &mut bytes[filled..])
            .expect("bytes");
    }
    Some(bytes)
}

/// What is left of a file whose first half was synced, and how the folder looks.
fn crashed(seed: u64) -> (Option<Vec<u8>>, Vec<String>) {
    let disk = Disk::new(seed);
    let file = disk.create_new("file").expect("a file");
    file.write_at(0, &[1; LENGTH / 2]).expect("room");
    file.sync_data().expect("a disk");
    disk.sync().expect("a disk");
    file.write_at(LENGTH as u64 / 2, &[2; LENGTH / 2])
        .expect("room");
    disk.create_new("other").expect("a file");
    disk.rename("file", "renamed").expect("it is there");
    disk.crash();
    let bytes = read(&disk, "file").or_else(|| read(&disk, "renamed"));
    (bytes, disk.list().expect("names"))
}

#[test]
fn what_was_synced_stays_and_anything_happens_to_the_rest() {
    let (mut lengths, mut tails, mut folders) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for seed in 0..500 {
        let (bytes, names) = crashed(seed);
        let bytes = bytes.expect("one of its names is there");
        assert_eq!(bytes[..LENGTH / 2], [1; LENGTH / 2], "seed {seed}");
        lengths.insert(bytes.len());
        tails.extend(bytes.get(LENGTH - 1).copied());
        folders.insert(names.join(" "));
        assert_eq!(crashed(seed), (Some(bytes), names), "the seed repeats it");
    }
    assert!(lengths.contains(&(LENGTH / 2)) && lengths.contains(&LENGTH));
    assert!(
        tails.contains(&0) && tails.contains(&2) && tails.len() > 3,
        "{tails:?}"
    );
    let all: Vec<&str> = folders.iter().map(|names| &names[..]).collect();
    assert_eq!(all, ["file", "file other", "other renamed", "renamed"]);
}

#[test]
fn a_sync_behind_one_that_failed_succeeds_without_what_that_has_dropped() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..100 {
        let disk = Disk::new(seed);
        let file = disk.create_new("file").expect("a file");
        disk.sync().expect("a disk");
        file.write_at(0, &[1; 10]).expect("room");
        disk.set_faults(Faults {
            failed_syncs: 1,
            ..Faults::default()
        });
        file.sync_data().expect_err("it fails");
        disk.set_faults(Faults::default());
        file.sync_data().expect("it believes that all is well");
        assert_eq!(read(&disk, "file").expect("it is there"), [1; 10]);
        disk.crash();
        match read(&disk, "file").expect("it is there") == [1; 10] {
            true => kept += 1,
            false => lost += 1,
        }
    }
    assert!(kept > 10 && lost > 10, "{kept} kept, {lost} lost");
}
