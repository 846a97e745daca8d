//! Recorded accesses: what was asked for, in order.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use lzma_rust2::XzReader;
use serde::Deserialize;

use crate::rng;

/// Requests of one trace at most: 2 GiB of keys.
const MAX_REQUESTS: usize = 1 << 28;
/// The endings under which a trace is looked for.
const ENDINGS: [&str; 5] = ["txt.xz", "lis.xz", "txt", "lis", "csv"];

/// How a line names keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// One decimal key.
    Keys,
    /// `start count ignored request`: `count` consecutive blocks from `start`.
    Blocks,
    /// A header line that names the columns, `key` among them.
    Csv,
}

/// Reads the trace `name` of a folder. Keys are mixed, so that no cache gains from their pattern.
pub(super) fn load(folder: &Path, name: &str) -> Result<Vec<u64>> {
    let path = find(folder, name)?;
    let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
    let text = path.to_string_lossy();
    let format = match text.trim_end_matches(".xz") {
        text if text.ends_with(".lis") => Format::Blocks,
        text if text.ends_with(".csv") => Format::Csv,
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
    let mut add = |number: usize, start: u64, count: usize| {
        let room = MAX_REQUESTS - keys.len();
        ensure!(count <= room, "more than {MAX_REQUESTS} at line {number}");
        keys.extend((0..count as u64).map(|offset| rng::mix(start.wrapping_add(offset))));
        Ok(())
    };
    if format == Format::Csv {
        for (number, row) in (2..).zip(csv::Reader::from_reader(reader).deserialize()) {
            let Row { key } = row?;
            add(number, hash(key.as_bytes()), 1)?;
        }
        return Ok(keys);
    }
    for (number, line) in (1..).zip(reader.lines()) {
        let line = line?;
        let found = numbers(&line, format);
        let wrong = || format!("line {number} is not what the format says: {line:?}");
        let (start, count) = found.with_context(wrong)?;
        add(number, start, count)?;
    }
    Ok(keys)
}

/// The column that is read of a table.
#[derive(Debug, Deserialize)]
struct Row {
    key: String,
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

/// FNV-1a: keys of a CSV are text.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
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
    fn a_column_of_a_csv_is_found_by_its_name() {
        let text = "time,key,size\n1,a,2\n2,b,2\n3,a,2\n";
        let keys = read(text.as_bytes(), Format::Csv).expect("reads");
        assert_eq!(keys.len(), 3);
        assert!(keys[0] == keys[2] && keys[0] != keys[1]);
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        let error = read("1\nx\n".as_bytes(), Format::Keys).expect_err("x is no key");
        assert!(error.to_string().contains("line 2"), "{error}");
        let many = format!("1 {} 0 0\n", u64::MAX);
        assert!(read(many.as_bytes(), Format::Blocks).is_err());
        assert!(read("no,columns\n1,2\n".as_bytes(), Format::Csv).is_err());
    }
}
