//! What stands behind the question mark of an address.

/// The names and values of a query, as bytes: keys need not be text.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(Vec<u8>, Vec<u8>)>);

impl Query {
    /// Reads a query, as forms write it.
    pub(super) fn of(text: Option<&str>) -> Self {
        let pairs = text.unwrap_or_default().split('&');
        Self(
            pairs
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
        )
    }

    /// The value of a name.
    pub(super) fn bytes(&self, name: &str) -> Option<&[u8]> {
        let pair = self.0.iter().find(|(own, _)| own == name.as_bytes());
        pair.map(|(_, value)| value.as_slice())
    }

    /// The value of a name, if it is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        std::str::from_utf8(self.bytes(name)?).ok()?.parse().ok()
    }
}

/// The bytes that `%41` and `+` stand for.
fn decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'+', _) => bytes.push(b' '),
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                }
                _ => bytes.push(b'%'),
            },
            (other, _) => bytes.push(*other),
        }
    }
    bytes
}

/// The value of a hexadecimal digit.
fn digit(letter: u8) -> Option<u8> {
    let value = char::from(letter).to_digit(16)?;
    u8::try_from(value).ok()
}

/// Bytes as a query takes them.
pub(super) fn encoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                text.push(char::from(*byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back_from_a_query() {
        let all: Vec<u8> = (0..=255).collect();
        let text = format!("db=7&key={}&none", encoded(&all));
        let query = Query::of(Some(&text));
        assert_eq!(query.bytes("key"), Some(all.as_slice()));
        assert_eq!(query.number("db"), Some(7));
        assert_eq!(query.number("key"), None);
        assert_eq!(query.bytes("none"), None);
    }

    #[test]
    fn what_is_no_escape_stands_for_itself() {
        for (text, bytes) in [
            ("%", &b"%"[..]),
            ("%4", b"%4"),
            ("%zz1", b"%zz1"),
            ("a+b%20c", b"a b c"),
            ("%2", b"%2"),
            ("é", "é".as_bytes()),
        ] {
            assert_eq!(decoded(text), bytes, "{text}");
        }
    }
}
