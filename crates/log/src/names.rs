//! The names of a log's files.

use std::io;

use crate::folder::Folder;

pub(crate) const MANIFEST: &str = "manifest";
/// A manifest that is not in force yet.
pub(crate) const NEW_MANIFEST: &str = "manifest.new";
/// Held by the process that uses the log.
#[cfg(unix)]
pub(crate) const LOCK: &str = "lock";

const SEGMENT: &str = "segment-";
const BASE: (&str, &str) = ("base-", ".rdb");

pub(crate) fn segment_name(number: u64) -> String {
    format!("{SEGMENT}{number}")
}

/// The name of the base that holds everything in front of a segment.
pub fn base_name(segment: u64) -> String {
    format!("{}{segment}{}", BASE.0, BASE.1)
}

pub(crate) fn segment_of(name: &str) -> Option<u64> {
    number(name.strip_prefix(SEGMENT)?)
}

pub(crate) fn base_of(name: &str) -> Option<u64> {
    number(name.strip_prefix(BASE.0)?.strip_suffix(BASE.1)?)
}

/// Reads a number that is written as we write it: `segment-07` is no segment.
pub(crate) fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// The numbers of the segments in a folder, ascending.
pub(crate) fn segments(names: &[String]) -> Vec<u64> {
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| segment_of(name)).collect();
    numbers.sort_unstable();
    numbers
}

/// Removes segments in front of `first`, unfinished manifests, and the bases that `is_old` says.
///
/// What cannot be removed stays until the next time: nothing reads it.
pub(crate) fn sweep<D: Folder>(
    folder: &D,
    first: u64,
    is_old: impl Fn(u64) -> bool,
) -> io::Result<()> {
    for name in folder.list()? {
        let is_left = name == NEW_MANIFEST
            || segment_of(&name).is_some_and(|number| number < first)
            || base_of(&name).is_some_and(&is_old);
        if is_left {
            let _ = folder.remove(&name);
        }
    }
    Ok(())
}
