//! The syntax of a command. A row writes it as text; clients get a tree.

use std::borrow::Cow;

/// One element of a command's syntax.
///
/// A row writes its elements with spaces between them:
///
/// | written | means |
/// |---|---|
/// | `value` | any bytes; `count:int`, `min:float`, `glob:pattern`, `at:time` are what they say |
/// | `key`, `source:key`, `destination:key1` | a key of key specification 0 or 1 |
/// | `REPLACE`, `change=CH` | a literal word, whose name is the word or another one |
/// | `COUNT count:int` | an element behind a literal word |
/// | `unit(M\|KM)` | one of several; a single one is `unit(M\|)` |
/// | `limit(offset:int count:int)` | several in a row |
/// | `[element]` | may be left out |
/// | `element...` | may be repeated |
/// | `element@6.2.0` | came with that version, later than the command |
#[derive(Debug, Clone)]
pub struct Argument {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its type.
    pub kind: ArgumentKind,
    /// The literal word before it, or instead of it for a pure token.
    pub token: Option<&'static str>,
    /// The number of the key specification that it belongs to.
    pub key_spec: Option<u32>,
    /// The version that introduced it, if later than the command.
    pub since: Option<&'static str>,
    /// True if it may be left out.
    pub optional: bool,
    /// True if it may be repeated.
    pub multiple: bool,
    /// Its alternatives (`OneOf`) or its parts (`Block`).
    pub parts: Vec<Self>,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the protocol's type of its name")]
pub enum ArgumentKind {
    Block,
    Double,
    Integer,
    Key,
    OneOf,
    Pattern,
    PureToken,
    String,
    UnixTime,
}

impl ArgumentKind {
    /// The name that COMMAND DOCS uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Double => "double",
            Self::Integer => "integer",
            Self::Key => "key",
            Self::OneOf => "oneof",
            Self::Pattern => "pattern",
            Self::PureToken => "pure-token",
            Self::String => "string",
            Self::UnixTime => "unix-time",
        }
    }
}

/// Reads a row's syntax. The text is ours, and a test reads all of it.
pub(super) fn read(text: &'static str) -> Vec<Argument> {
    let mut reader = SyntaxReader { rest: text };
    let all = reader.list(' ');
    assert!(
        reader.rest.is_empty(),
        "left: {:?} of {text:?}",
        reader.rest
    );
    all
}

/// Reads a syntax; has the text that is left.
struct SyntaxReader {
    rest: &'static str,
}

impl SyntaxReader {
    fn takes(&mut self, what: &str) -> bool {
        let left = self.rest.strip_prefix(what);
        self.rest = left.unwrap_or(self.rest);
        left.is_some()
    }

    /// Reads the text before the first of these.
    fn until(&mut self, ends: &[char]) -> &'static str {
        let at = self.rest.find(ends).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(at);
        self.rest = rest;
        word
    }

    /// Elements with that between them.
    fn list(&mut self, between: char) -> Vec<Argument> {
        let mut all = Vec::new();
        while !self.rest.is_empty() && !self.rest.starts_with([')', ']']) {
            all.push(self.element());
            if !self.takes(between.encode_utf8(&mut [0; 4])) {
                break;
            }
        }
        all
    }

    fn element(&mut self) -> Argument {
        if self.takes("[") {
            let mut element = self.element();
            assert!(self.takes("]"), "not closed at {:?}", self.rest);
            element.optional = true;
            return element;
        }
        let word = self.word();
        let mut element = if is_token(word) && self.rest.starts_with(' ') && !self.before_word() {
            self.rest = &self.rest[1..];
            let body = self.word();
            Argument {
                token: Some(word),
                ..self.body(body)
            }
        } else {
            self.body(word)
        };
        element.multiple = self.takes("...");
        if self.takes("@") {
            element.since = Some(self.until(&[' ', ')', ']', '|']));
        }
        element
    }

    fn word(&mut self) -> &'static str {
        let at = self.rest.find("...").unwrap_or(self.rest.len());
        let word = self.rest[..at].find([' ', ')', ']', '|', '(', '@']);
        let (word, rest) = self.rest.split_at(word.unwrap_or(at));
        self.rest = rest;
        word
    }

    /// True if another literal word follows, or an element that may be left out.
    fn before_word(&self) -> bool {
        let next = &self.rest[1..];
        next.starts_with('[') || is_token(Self { rest: next }.word())
    }

    /// The element that this word begins.
    fn body(&mut self, word: &'static str) -> Argument {
        let (name, kind) = word.split_once(':').unwrap_or((word, ""));
        let mut element = Argument {
            name: name.into(),
            kind: ArgumentKind::String,
            token: None,
            key_spec: None,
            since: None,
            optional: false,
            multiple: false,
            parts: Vec::new(),
        };
        element.kind = match kind {
            "" if word == "key" => {
                element.key_spec = Some(0);
                ArgumentKind::Key
            }
            "" => ArgumentKind::String,
            "int" => ArgumentKind::Integer,
            "float" => ArgumentKind::Double,
            "pattern" => ArgumentKind::Pattern,
            "time" => ArgumentKind::UnixTime,
            key => {
                let number = key.strip_prefix("key").expect("a kind");
                element.key_spec = Some(match number {
                    "" => 0,
                    number => number.parse().expect("a number"),
                });
                ArgumentKind::Key
            }
        };
        if let Some((name, token)) = word.split_once('=') {
            element.kind = ArgumentKind::PureToken;
            (element.name, element.token) = (name.into(), Some(token));
        } else if is_token(word) {
            element.kind = ArgumentKind::PureToken;
            (element.name, element.token) = (word.to_ascii_lowercase().into(), Some(word));
        } else if self.takes("(") {
            self.parts(&mut element);
        }
        element
    }

    /// Reads the parts in brackets behind a name.
    fn parts(&mut self, element: &mut Argument) {
        let start = self.rest;
        element.kind = ArgumentKind::OneOf;
        element.parts = self.list('|');
        if self.rest.starts_with(' ') {
            self.rest = start;
            element.kind = ArgumentKind::Block;
            element.parts = self.list(' ');
        } else if element.parts.len() == 1 && !start[..start.len() - self.rest.len()].ends_with('|')
        {
            element.kind = ArgumentKind::Block;
        }
        assert!(self.takes(")"), "not closed at {:?}", self.rest);
    }
}

/// True if a word stands for itself.
fn is_token(word: &str) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    word.bytes().any(|byte| byte.is_ascii_uppercase()) && word.bytes().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes an element as a row does.
    fn write(element: &Argument) -> String {
        let mut text = String::new();
        let parts: Vec<_> = element.parts.iter().map(write).collect();
        if let Some(token) = element.token
            && element.kind != ArgumentKind::PureToken
        {
            text = format!("{token} ");
        }
        text.push_str(&match element.kind {
            ArgumentKind::Block => format!("{}({})", element.name, parts.join(" ")),
            ArgumentKind::OneOf => format!("{}({})", element.name, parts.join("|")),
            kind => format!("{}:{}", element.name, kind.name()),
        });
        text.push_str(if element.multiple { "..." } else { "" });
        match element.optional {
            true => format!("[{text}]"),
            false => text,
        }
    }

    fn written(text: &'static str) -> String {
        let all: Vec<_> = read(text).iter().map(write).collect();
        all.join(" ")
    }

    #[test]
    fn elements_are_read_as_they_are_written() {
        for (text, expected) in [
            ("", ""),
            ("key value", "key:key value:string"),
            ("[COUNT count:int [ANY]]", "not closed"),
            (
                "count(COUNT n:int [ANY])",
                "count(COUNT n:integer [any:pure-token])",
            ),
            ("[unit(BYTE|BIT)]", "[unit(byte:pure-token|bit:pure-token)]"),
            ("unit(BIT|)", "unit(bit:pure-token)"),
            ("a... b:pattern...@1.0.0", "a:string... b:pattern..."),
            (
                "where(LEFT|RIGHT) at:time",
                "where(left:pure-token|right:pure-token) at:unix-time",
            ),
        ] {
            if expected == "not closed" {
                let refused = std::panic::catch_unwind(|| read(text));
                assert!(refused.is_err(), "{text}");
                continue;
            }
            assert_eq!(written(text), expected, "{text}");
        }
        assert_eq!(read("a@1.2.3")[0].since, Some("1.2.3"));
        assert_eq!(read("to:key1")[0].key_spec, Some(1));
        assert_eq!(read("change=CH")[0].token, Some("CH"));
    }
}
