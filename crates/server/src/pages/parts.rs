//! Replies become JSON; what a user may not ask is told in its place.

use serde_json::{Map, Value, json};
use tidewheel_resp::Reply;

use super::ask::{Asker, NoAnswer};
use super::query::encoded;

/// Letters that are shown of a name.
const SHOWN_MAX: usize = 200;

/// The longest name by which one may ask again: an address must have room for it.
const ASKED_MAX: usize = 3_000;

/// Asks, and makes JSON of the reply: of what `read` makes of it, or `{"no": why}`.
pub(super) async fn part(
    asker: &mut Asker,
    words: &[&[u8]],
    read: impl FnOnce(&Reply) -> Value,
) -> Result<Value, NoAnswer> {
    match asker.ask(words).await {
        Ok(reply) => Ok(read(&reply)),
        Err(NoAnswer::Denied(why) | NoAnswer::Fails(why)) => Ok(json!({ "no": why })),
        Err(NoAnswer::Unknown) => Err(NoAnswer::Unknown),
    }
}

/// A key's or member's name: its text, shortened, and what stands for it in an address.
pub(super) fn name(bytes: &[u8]) -> Value {
    json!({
        "text": text(bytes),
        "id": (bytes.len() <= ASKED_MAX).then(|| encoded(bytes)),
    })
}

/// Bytes as text, shortened. Letters that are not seen are escaped.
pub(super) fn text(bytes: &[u8]) -> String {
    // A letter has four bytes at most.
    let shown = &bytes[..bytes.len().min(4 * SHOWN_MAX)];
    let text = String::from_utf8_lossy(shown);
    let mut letters = text.chars();
    let mut short = String::new();
    for letter in letters.by_ref().take(SHOWN_MAX) {
        match is_unseen(letter) {
            true => short.extend(letter.escape_default()),
            false => short.push(letter),
        }
    }
    if shown.len() < bytes.len() || letters.next().is_some() {
        short.push('…');
    }
    short
}

/// True for control characters, breaks of lines, and those that say which way a text is read.
fn is_unseen(letter: char) -> bool {
    let marks = matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}');
    let turns = matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || marks || turns
}

/// The bytes of a string.
pub(super) fn bytes(reply: &Reply) -> &[u8] {
    match reply {
        Reply::Bulk(bytes) | Reply::Verbatim(_, bytes) => bytes,
        Reply::Simple(text) => text.as_bytes(),
        _ => b"",
    }
}

/// The items of an array.
pub(super) fn items(reply: &Reply) -> &[Reply] {
    match reply {
        Reply::Array(items) => items,
        _ => &[],
    }
}

/// A number, or none.
pub(super) fn integer(reply: &Reply) -> Option<i64> {
    match reply {
        Reply::Integer(number) => Some(*number),
        _ => None,
    }
}

/// A number, a string or an array as JSON.
pub(super) fn plain(reply: &Reply) -> Value {
    match reply {
        Reply::Integer(number) => json!(number),
        Reply::Null => Value::Null,
        Reply::Array(items) => items.iter().map(plain).collect(),
        other => json!(text(bytes(other))),
    }
}

/// The fields of INFO.
pub(super) fn fields(reply: &Reply) -> Value {
    let info = String::from_utf8_lossy(bytes(reply));
    let pairs = info.lines().filter_map(|line| line.split_once(':'));
    let fields: Map<String, Value> = pairs
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    Value::Object(fields)
}

/// The databases of INFO's section of the keyspace, those that have keys.
pub(super) fn databases(reply: &Reply) -> Value {
    let info = String::from_utf8_lossy(bytes(reply));
    info.lines()
        .filter_map(|line| {
            let (number, counts) = line.strip_prefix("db")?.split_once(':')?;
            let mut database =
                Map::from_iter([("db".to_owned(), json!(number.parse::<u64>().ok()?))]);
            for (name, count) in counts.split(',').filter_map(|part| part.split_once('=')) {
                database.insert(name.to_owned(), json!(count.parse::<u64>().ok()?));
            }
            Some(Value::Object(database))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_broken_names_are_shown_in_short() {
        assert_eq!(text(b"tea"), "tea");
        assert_eq!(text(b"\xff<b>"), "\u{fffd}<b>");
        let long = text("é".repeat(1_000).as_bytes());
        assert_eq!(long.chars().count(), SHOWN_MAX + 1);
        assert!(long.ends_with('…'));
        assert_eq!(name(&[b'x'; ASKED_MAX + 1])["id"], Value::Null);
    }

    #[test]
    fn no_name_turns_the_text_behind_it() {
        assert_eq!(text("a\u{202e}b\n\0".as_bytes()), "a\\u{202e}b\\n\\u{0}");
        for letter in [
            '\u{61c}', '\u{200f}', '\u{2028}', '\u{2066}', '\u{9b}', '\u{7f}',
        ] {
            let shown = text(letter.to_string().as_bytes());
            assert_eq!(shown, letter.escape_default().to_string());
        }
        let others = "שלום \\ 'tea' \u{fffd}";
        assert_eq!(text(others.as_bytes()), others);
    }

    #[test]
    fn databases_are_read() {
        let text =
            "# Keyspace\r\ndb0:keys=2,expires=1,avg_ttl=5\r\ndb9:keys=1,expires=0\r\ndbx:1\r\n";
        let read = databases(&Reply::Bulk(text.as_bytes().to_vec()));
        let expected = json!([{"db": 0, "keys": 2, "expires": 1, "avg_ttl": 5}, {"db": 9, "keys": 1, "expires": 0}]);
        assert_eq!(read, expected);
    }
}
