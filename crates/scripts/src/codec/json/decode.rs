//! Reading JSON.

use mlua::{Lua, LuaString, Table, Value};

use super::Settings;
use crate::error::raise;
use crate::state::State;

/// Reads the one value that a text is.
pub(super) fn value(lua: &Lua, state: &State, text: &[u8]) -> mlua::Result<Value> {
    // UTF-16 and UTF-32 have a zero in the first two bytes, whatever the text is.
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(raise(lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let settings = state.json.get();
    let mut decoder = Decoder {
        lua,
        state,
        settings,
        text,
        at: 0,
        scratch: Vec::new(),
    };
    let (token, at) = decoder.token()?;
    let value = decoder.value(token, at)?;
    match decoder.token()? {
        (Token::End, _) => Ok(value),
        (token, at) => Err(decoder.unexpected("the end", &token, at)),
    }
}

enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String(LuaString),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    /// No token, and why.
    Wrong(&'static str),
}

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String(_) => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Wrong(why) => why,
        }
    }
}

/// A table that is not at its end.
enum Open {
    Array { table: Table, len: u64 },
    Object { table: Table, key: LuaString },
}

struct Decoder<'a> {
    lua: &'a Lua,
    state: &'a State,
    settings: Settings,
    text: &'a [u8],
    at: usize,
    /// The string being read.
    scratch: Vec<u8>,
}

impl Decoder<'_> {
    /// Reads a value whose first token was read.
    fn value(&mut self, token: Token, at: usize) -> mlua::Result<Value> {
        // Tables that are not at their end, the innermost last.
        let mut open: Vec<Open> = Vec::new();
        let (mut token, mut at) = (token, at);
        loop {
            self.state.step(1)?;
            let mut value = match token {
                Token::String(text) => Value::String(text),
                Token::Number(number) => Value::Number(number),
                Token::Boolean(value) => Value::Boolean(value),
                Token::Null => Value::NULL,
                Token::ObjectBegin => {
                    let table = self.deeper(open.len() + 1)?;
                    match self.token()? {
                        (Token::ObjectEnd, _) => Value::Table(table),
                        (first, at_first) => {
                            let key = self.key(first, at_first)?;
                            open.push(Open::Object { table, key });
                            (token, at) = self.token()?;
                            continue;
                        }
                    }
                }
                Token::ArrayBegin => {
                    let table = self.deeper(open.len() + 1)?;
                    match self.token()? {
                        (Token::ArrayEnd, _) => Value::Table(table),
                        first => {
                            open.push(Open::Array { table, len: 0 });
                            (token, at) = first;
                            continue;
                        }
                    }
                }
                other => return Err(self.unexpected("value", &other, at)),
            };
            // The value is whole. It may be the last one of its table, and that of another.
            loop {
                match open.last_mut() {
                    None => return Ok(value),
                    Some(Open::Array { table, len }) => {
                        *len += 1;
                        table.raw_set(*len, value)?;
                        match self.token()? {
                            (Token::Comma, _) => break,
                            (Token::ArrayEnd, _) => {}
                            (other, at) => {
                                return Err(self.unexpected("comma or array end", &other, at));
                            }
                        }
                    }
                    Some(Open::Object { table, key }) => {
                        table.raw_set(&*key, value)?;
                        match self.token()? {
                            (Token::Comma, _) => {
                                let (next, at) = self.token()?;
                                *key = self.key(next, at)?;
                                break;
                            }
                            (Token::ObjectEnd, _) => {}
                            (other, at) => {
                                return Err(self.unexpected("comma or object end", &other, at));
                            }
                        }
                    }
                }
                value = match open.pop() {
                    Some(Open::Array { table, .. } | Open::Object { table, .. }) => {
                        Value::Table(table)
                    }
                    None => Value::Nil,
                };
            }
            (token, at) = self.token()?;
        }
    }

    /// The key that a token is, and the colon behind it.
    fn key(&mut self, token: Token, at: usize) -> mlua::Result<LuaString> {
        let key = match token {
            Token::String(key) => key,
            other => return Err(self.unexpected("object key string", &other, at)),
        };
        match self.token()? {
            (Token::Colon, _) => Ok(key),
            (other, at) => Err(self.unexpected("colon", &other, at)),
        }
    }

    fn deeper(&self, depth: usize) -> mlua::Result<Table> {
        if depth > self.settings.decode_depth {
            let at = self.at;
            let text = format!("Found too many nested data structures ({depth}) at character {at}");
            return Err(raise(self.lua, text));
        }
        self.lua.create_table()
    }

    /// The next token, and the place where it begins. The end is at the first zero, too.
    fn token(&mut self) -> mlua::Result<(Token, usize)> {
        let blanks = self.text[self.at..]
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
            .count();
        self.at += blanks;
        self.state.step(blanks / 16)?;
        let at = self.at;
        let Some(&byte) = self.text.get(at) else {
            return Ok((Token::End, at));
        };
        let single = match byte {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            // A text ends with its first zero.
            0 => return Ok((Token::End, at)),
            b'"' => {
                self.at += 1;
                return self.string(at);
            }
            _ => return Ok((self.word(at), at)),
        };
        self.at += 1;
        Ok((single, at))
    }

    /// A number, a truth value, or null.
    fn word(&mut self, at: usize) -> Token {
        let rest = &self.text[at..];
        for (word, token) in [
            (&b"true"[..], Token::Boolean(true)),
            (b"false", Token::Boolean(false)),
            (b"null", Token::Null),
        ] {
            if rest.starts_with(word) {
                self.at += word.len();
                return token;
            }
        }
        let invalid = self.settings.decode_invalid;
        match rest[0] {
            b'-' | b'0'..=b'9' => {
                if !invalid && is_invalid(rest) {
                    return Token::Wrong("invalid number");
                }
            }
            b'+' | b'i' | b'I' | b'n' | b'N' if invalid && is_invalid(rest) => {}
            _ => return Token::Wrong("invalid token"),
        }
        match number(rest) {
            Some((number, len)) => {
                self.at += len;
                Token::Number(number)
            }
            None => Token::Wrong("invalid number"),
        }
    }

    fn string(&mut self, begin: usize) -> mlua::Result<(Token, usize)> {
        self.scratch.clear();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .iter()
                .take_while(|byte| !matches!(byte, b'"' | b'\\' | 0))
                .count();
            self.state.step(plain / 16 + 1)?;
            self.scratch.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.at += 1;
                    let text = self.lua.create_string(&self.scratch)?;
                    return Ok((Token::String(text), begin));
                }
                Some(b'\\') => {
                    if let Err(why) = self.escape() {
                        return Ok((Token::Wrong(why), self.at));
                    }
                }
                _ => return Ok((Token::Wrong("unexpected end of string"), self.at)),
            }
        }
    }

    fn escape(&mut self) -> Result<(), &'static str> {
        let rest = &self.text[self.at..];
        let byte = match rest.get(1) {
            Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let (letter, len) = letter(rest).ok_or("invalid unicode escape code")?;
                let mut bytes = [0; 4];
                let bytes = letter.encode_utf8(&mut bytes);
                self.scratch.extend_from_slice(bytes.as_bytes());
                self.at += len;
                return Ok(());
            }
            _ => return Err("invalid escape code"),
        };
        self.scratch.push(byte);
        self.at += 2;
        Ok(())
    }

    fn unexpected(&self, expected: &str, found: &Token, at: usize) -> mlua::Error {
        let (found, at) = (found.name(), at + 1);
        let text = format!("Expected {expected} but found {found} at character {at}");
        raise(self.lua, text)
    }
}

/// The letter of `\uXXXX`, or of two such that are a pair, and their length.
fn letter(text: &[u8]) -> Option<(char, usize)> {
    let unit = |text: &[u8]| {
        let digits = text.strip_prefix(b"\\u")?.get(..4)?;
        let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let high = unit(text)?;
    if let Some(letter) = char::from_u32(high) {
        return Some((letter, 6));
    }
    let low = unit(text.get(6..)?)?;
    if !(0xD800..0xDC00).contains(&high) || !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    let code = 0x1_0000 + ((high & 0x3FF) << 10 | (low & 0x3FF));
    Some((char::from_u32(code)?, 12))
}

/// Whether a number is one that JSON does not have: with a plus, a leading zero, in hexadecimal,
/// infinite, or none.
fn is_invalid(text: &[u8]) -> bool {
    let digits = match text {
        [b'+', ..] => return true,
        [b'-', rest @ ..] => rest,
        rest => rest,
    };
    match digits {
        [b'0', next, ..] => matches!(next | 32, b'x') || next.is_ascii_digit(),
        [b'0'] => false,
        [b'0'..=b'9', ..] => false,
        _ => starts_with(digits, b"inf") || starts_with(digits, b"nan"),
    }
}

fn starts_with(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// The longest number at the start of a text, as C reads it, and its length.
pub(crate) fn number(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let negative = text.first() == Some(&b'-');
    let digits = &text[sign..];
    let signed = |value: f64| if negative { -value } else { value };
    for (word, value) in [
        (&b"infinity"[..], f64::INFINITY),
        (b"inf", f64::INFINITY),
        (b"nan", f64::NAN),
    ] {
        if starts_with(digits, word) {
            return Some((signed(value), sign + word.len()));
        }
    }
    if let [b'0', b'x' | b'X', hexadecimal @ ..] = digits {
        let is_part = |byte: &&u8| byte.is_ascii_hexdigit();
        let whole = hexadecimal.iter().take_while(is_part).count();
        let mut end = whole;
        if hexadecimal.get(whole) == Some(&b'.') {
            let behind = hexadecimal[whole + 1..].iter().take_while(is_part).count();
            if whole + behind > 0 {
                end = whole + 1 + behind;
            }
        }
        if end > 0 {
            end += exponent(&hexadecimal[end..], b'p');
            let value = tidewheel_resp::parse_f64_wide(&digits[..2 + end])?;
            return Some((signed(value), sign + 2 + end));
        }
    }
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let whole = digits.iter().take_while(is_digit).count();
    let mut end = whole;
    if digits.get(whole) == Some(&b'.') {
        let behind = digits[whole + 1..].iter().take_while(is_digit).count();
        if whole + behind == 0 {
            return None;
        }
        end = whole + 1 + behind;
    }
    if end == 0 {
        return None;
    }
    end += exponent(&digits[end..], b'e');
    let value = std::str::from_utf8(&digits[..end]).ok()?.parse().ok()?;
    Some((signed(value), sign + end))
}

/// The length of an exponent, 0 if there is none.
fn exponent(text: &[u8], mark: u8) -> usize {
    if text.first().map(u8::to_ascii_lowercase) != Some(mark) {
        return 0;
    }
    let sign = usize::from(matches!(text.get(1), Some(b'-' | b'+')));
    let digits = text[1 + sign..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if digits == 0 { 0 } else { 1 + sign + digits }
}
