//! A line of text for each key of a file.
//!
//! Five columns, with tabs between them: database, type, key, deadline, value. Nothing in a column
//! is a tab.

use std::io::{BufWriter, IsTerminal as _, Read, Write};
use std::path::Path;

use tidewheel_keyspace::{SnapshotItem, SnapshotKey, SnapshotReader, SnapshotValues};

use super::{Outcome, Trouble, text};

pub(super) fn run(path: &Path, whole: bool, out: &mut dyn Write) -> Outcome {
    // A bar would stand between the lines.
    let source = super::open(path, !std::io::stdout().is_terminal())?;
    dump(source, whole, out)
}

fn dump(mut source: impl Read, whole: bool, out: &mut dyn Write) -> Outcome {
    let mut reader = SnapshotReader::new(&mut source)?;
    let values = SnapshotValues::new(super::seed());
    let mut out = BufWriter::with_capacity(64 << 10, out);
    // What was found before an error is printed, too.
    let printed = print(&mut reader, &values, whole, &mut out);
    out.flush().map_err(Trouble::Output)?;
    printed
}

fn print(
    reader: &mut SnapshotReader<'_>,
    values: &SnapshotValues,
    whole: bool,
    out: &mut dyn Write,
) -> Outcome {
    while let Some(item) = reader.read_next()? {
        if let SnapshotItem::Key(key) = item {
            let line = line(&key, values, whole)?;
            out.write_all(line.as_bytes()).map_err(Trouble::Output)?;
        }
    }
    Ok(())
}

fn line(key: &SnapshotKey<'_>, values: &SnapshotValues, whole: bool) -> Result<String, Trouble> {
    let (kind, value) = match key.is_known() {
        true => {
            let value = values.read(key)?;
            (value.type_name().to_owned(), text::value(&value, whole))
        }
        false => (
            format!("type-{}", key.kind),
            format!("a module's, at byte {}", key.at),
        ),
    };
    let deadline = key.wall_ms.map_or("none".to_owned(), text::time);
    let name = text::quoted(&key.key, true);
    Ok(format!("{}\t{kind}\t{name}\t{deadline}\t{value}\n", key.db))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::sample::{FILE, of_module};

    fn dumped(file: &[u8], whole: bool) -> (Vec<String>, Outcome) {
        let mut out = Vec::new();
        let outcome = dump(file, whole, &mut out);
        let text = String::from_utf8(out).expect("text");
        (text.lines().map(str::to_owned).collect(), outcome)
    }

    #[test]
    fn each_key_has_a_line() {
        let (lines, outcome) = dumped(FILE, false);
        assert!(outcome.is_ok());
        let expected = [
            "0\tstring\t\"tea\\x00\\t\"\t5000-01-01T00:00:00.123Z\t\"hot\"",
            "0\tstring\t\"n\"\t1970-01-01T00:00:01.000Z\t\"-7\"",
            "0\tlist\t\"l\"\tnone\t[\"a\", \"b\"]",
            "3\thash\t\"h\"\tnone\t[\"f\": \"v\" until 5000-01-01T00:00:00.123Z]",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn long_keys_are_whole_and_long_values_if_they_are_asked_for() {
        let mut file = b"REDIS0010\x00\x80\x00\x01\x00\x00".to_vec();
        file.extend([b'k'; 65_536]);
        file.extend(b"\x41\x00");
        file.extend([b'v'; 256]);
        file.extend(b"\xff\0\0\0\0\0\0\0\0");
        for (whole, len) in [(false, 65_536 + 103), (true, 65_536 + 275)] {
            let (lines, outcome) = dumped(&file, whole);
            assert!(outcome.is_ok());
            assert!(lines[0].contains(&"k".repeat(65_536)));
            assert_eq!(lines[0].len(), len);
        }
    }

    #[test]
    fn a_long_collection_says_how_long_it_is() {
        let mut file = b"REDIS0010\x01\x01l\x40\xc8".to_vec();
        for i in 0..200_u8 {
            file.extend([2, b'a' + i % 26, b'x']);
        }
        file.extend(b"\xff\0\0\0\0\0\0\0\0");
        let (lines, outcome) = dumped(&file, false);
        assert!(outcome.is_ok());
        assert!(lines[0].ends_with(", ... 200 in all]"), "{}", lines[0]);
        assert!(dumped(&file, true).0[0].ends_with("\"rx\"]"));
    }

    #[test]
    fn a_module_s_value_is_named_and_the_rest_follows() {
        let (lines, outcome) = dumped(&of_module(), false);
        assert!(outcome.is_ok());
        assert_eq!(lines[0], "0\ttype-7\t\"m\"\tnone\ta module's, at byte 9");
        assert_eq!(lines[2], "0\tstring\t\"k\"\tnone\t\"v\"");
    }

    #[test]
    fn what_stands_before_the_end_of_a_cut_file_is_printed() {
        let (lines, outcome) = dumped(&FILE[..FILE.len() - 9], false);
        assert_eq!(lines.len(), 4);
        assert!(outcome.is_err());
        for cut in 0..FILE.len() {
            assert!(dumped(&FILE[..cut], true).1.is_err());
        }
    }
}
