//! Recorded accesses: the keys that were asked for, in order.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use lzma_rust2::XzReader;

use crate::rng;

/// Requests of one trace at most: 2 GiB of keys.
const MAX_REQUESTS: usize = 1 << 28;
/// The endings under which a trace is looked for.
const ENDINGS: [&str; 4] = ["txt.xz", "lis.xz", "txt", "lis"];

/// The way in which a line names keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// One decimal key.
    Keys,
    /// `start count ignored request`: `count` consecutive blocks from `start`.
    Blocks,
}

/// Reads the trace `name` of a folder. Keys are mixed, so that no cache gains from their pattern.
pub(super) fn load(folder: &Path, name: &str) -> Result<Vec<u64>> {
    let path = find(folder, name)?;
    let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    let text = path.to_string_lossy();
    let format = match text.trim_end_matches(".xz") {
        text if text.ends_with(".lis") => Format::Blocks,
        _ => Format::Keys,
    };
    let reader: Box<dyn Read> = if text.ends_with(".xz") {
        Box::new(XzReader::new(BufReader::new(file), true))
    } else {
        Box::new(file)
    };
    read(BufReader::new(reader), format).with_context(|| format!("cannot read {}", path.display()))
}

fn find(folder: &Path, name: &str) -> Result<PathBuf> {
    let paths = ENDINGS.map(|ending| folder.join(format!("{name}.{ending}")));
    match paths.into_iter().find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => {
            let (folder, endings) = (folder.display(), ENDINGS.join(", ."));
            bail!("no trace {name} in {folder} (looked for .{endings})")
        }
    }
}

fn read(reader: impl BufRead, format: Format) -> Result<Vec<u64>> {
    let mut keys = Vec::new();
    for (number, line) in (1..).zip(reader.lines()) {
        let line = line?;
        let found = numbers(&line, format);
        let wrong = || format!("line {number} is not what the format says: {line:?}");
        let (start, count) = found.with_context(wrong)?;
        let room = MAX_REQUESTS - keys.len();
        ensure!(count <= room, "more than {MAX_REQUESTS} at line {number}");
        keys.extend((0..count as u64).map(|offset| rng::mix(start.wrapping_add(offset))));
    }
    Ok(keys)
}

/// The first key of a line and how many follow from it; an empty line names none.
fn numbers(line: &str, format: Format) -> Option<(u64, usize)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    match (fields.as_slice(), format) {
        ([], _) => Some((0, 0)),
        ([start, count, ..], Format::Blocks) => Some((start.parse().ok()?, count.parse().ok()?)),
        ([_], Format::Blocks) => None,
        ([start, ..], _) => Some((start.parse().ok()?, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_counted_out() {
        let keys = read("7 3 0 0\n\n9 1 0 1\n".as_bytes(), Format::Blocks).expect("reads");
        assert_eq!(keys, [7, 8, 9, 9].map(rng::mix));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        let error = read("1\nx\n".as_bytes(), Format::Keys).expect_err("x is no key");
        assert!(error.to_string().contains("line 2"), "{error}");
        let many = format!("1 {} 0 0\n", u64::MAX);
        assert!(read(many.as_bytes(), Format::Blocks).is_err());
    }
}
