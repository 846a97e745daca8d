//! Drawn scripts: commands whose replies decide which of the others run.
//!
//! A script is written in three ways: as one word of a line, as Lua, whose first comment has the
//! word again, and as [`Script::run`], which does without Lua what Lua does.
//!
//! The word is a row of statements with `;` between them: `call,SET,=K1,=A1;?try,INCR,n;list`. A
//! statement is `call` or `try` and a command. `?` before it means: only if the last reply was
//! something; `!`: only if it was nothing. `=K1` is the first key of the call, `=A1` its first
//! argument, `=L` the last reply, `=x0d0a` are bytes. `half` ends the script with an error. The
//! last word says what is returned: `list`, all replies; `last`, the last one; or `nothing`.

use tidewheel_keyspace::{Command, resolve, rows::Flags};
use tidewheel_resp::{Args, Reply};

use crate::hex::{digits, unhex};

type Bytes = Vec<u8>;

/// The comment that has the word.
const MARK: &str = "-- oracle ";

/// What comes before the replies so far, if a script ends half-way.
const HALF: &str = "HALF ";

/// What stands for a last reply that is no text.
const NONE: &[u8] = b"none";

const READ_ONLY: &str = "ERR Write commands are not allowed from read-only scripts.";

const NO_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Bytes of a string that an error tells.
const TOLD: usize = 20;

/// What all scripts begin with.
const PRELUDE: &str = "
local r, last = {}, false
local function text()
  return type(last) == 'string' and #last > 0 and last or 'none'
end
local function hex(byte)
  return string.format('%02x', string.byte(byte))
end
local function tell(v)
  if type(v) == 'number' then return string.format('%.0f', v) end
  if type(v) == 'string' then return '$' .. #v .. ':' .. string.gsub(string.sub(v, 1, 20), '.', hex) end
  if type(v) ~= 'table' then return '_' end
  if v.ok then return '+' .. v.ok end
  if v.err then return '-' .. v.err end
  local all = {}
  for i, each in ipairs(v) do all[i] = tell(each) end
  return '[' .. table.concat(all, ' ') .. ']'
end
local function half()
  error({err = 'HALF ' .. tell(r)})
end
local function keep(v, ends)
  r[#r + 1], last = v, v
  if ends and type(v) == 'table' and v.err then half() end
end
";

/// A script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub(crate) statements: Vec<Statement>,
    pub(crate) end: End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Whether it runs only if the last reply was something, or only if it was nothing.
    pub(crate) only_if: Option<bool>,
    pub(crate) act: Act,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// A command, and whether its error ends the script.
    Call(Vec<Word>, bool),
    /// The script ends with an error.
    Half,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Text(Bytes),
    /// A key or an argument of the call, counted from 0.
    Key(usize),
    Argument(usize),
    /// The last reply.
    Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    List,
    Last,
    Nothing,
}

/// What the call of a script gives it.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The keys that it declares.
    pub keys: &'a [Bytes],
    /// Its other arguments.
    pub args: &'a [Bytes],
    /// It may change nothing.
    pub reads: bool,
    /// It may not begin to add anything: there is no memory. What has begun to change data goes on.
    pub full: bool,
}

impl<'a> Given<'a> {
    /// The words behind the name of the script in a call, which begin with the number of keys.
    pub fn of(words: &'a [Bytes], reads: bool) -> Option<Self> {
        let number = std::str::from_utf8(words.first()?).ok()?.parse().ok()?;
        let (keys, args) = words[1..].split_at_checked(number)?;
        let full = false;
        Some(Self {
            keys,
            args,
            reads,
            full,
        })
    }
}

impl Script {
    /// The script that a text of Lua was made of.
    pub fn of(lua: &[u8]) -> Option<Self> {
        let lua = String::from_utf8_lossy(lua);
        let word = lua.lines().find_map(|line| line.strip_prefix(MARK))?;
        Self::parse(word)
    }

    /// The Lua of a script, with its words spelled out.
    pub(crate) fn spell(mut self, spell: impl Fn(&str) -> Bytes) -> String {
        for statement in &mut self.statements {
            let Act::Call(words, _) = &mut statement.act else {
                continue;
            };
            for word in words {
                if let Word::Text(text) = word {
                    *text = spell(&String::from_utf8_lossy(text));
                }
            }
        }
        self.lua()
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        let mut parts: Vec<&str> = word.split(';').collect();
        let end = match parts.pop()? {
            "list" => End::List,
            "last" => End::Last,
            "nothing" => End::Nothing,
            _ => return None,
        };
        let statements = parts
            .into_iter()
            .map(Statement::parse)
            .collect::<Option<_>>();
        Some(Self {
            statements: statements?,
            end,
        })
    }

    pub(crate) fn word(&self) -> String {
        let end = match self.end {
            End::List => "list",
            End::Last => "last",
            End::Nothing => "nothing",
        };
        let statements = self.statements.iter().map(Statement::word);
        statements.map(|word| word + ";").collect::<String>() + end
    }

    /// The text of a script.
    pub(crate) fn lua(&self) -> String {
        let mut lua = format!("{MARK}{}{PRELUDE}", self.word());
        for (at, statement) in self.statements.iter().enumerate() {
            let act = match &statement.act {
                Act::Half => "half()".to_owned(),
                Act::Call(words, ends) => {
                    let words: Vec<String> = words.iter().map(Word::lua).collect();
                    let words = words.join(", ");
                    match (at, ends) {
                        // Nothing has happened before that an error might hide.
                        (0, true) => format!("keep(redis.call({words}))"),
                        _ => format!("keep(redis.pcall({words}), {ends})"),
                    }
                }
            };
            lua += &match statement.only_if {
                None => format!("{act}\n"),
                Some(true) => format!("if last then {act} end\n"),
                Some(false) => format!("if not last then {act} end\n"),
            };
        }
        lua + match self.end {
            End::List => "return r\n",
            End::Last => "return last\n",
            End::Nothing => "",
        }
    }

    /// The first words of its commands.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        let calls = self
            .statements
            .iter()
            .filter_map(|statement| match &statement.act {
                Act::Call(words, _) => words.first(),
                Act::Half => None,
            });
        calls.filter_map(|word| match word {
            Word::Text(text) => Some(text.as_slice()),
            _ => None,
        })
    }

    /// The keys that it declares and those that its commands name.
    pub fn keys(&self, given: Given<'_>) -> Vec<Bytes> {
        let mut keys = given.keys.to_vec();
        for statement in &self.statements {
            if let Act::Call(words, _) = &statement.act {
                let words: Vec<Bytes> = words.iter().map(|word| word.bytes(given, None)).collect();
                keys.extend(keys_of(&words));
            }
        }
        keys
    }

    /// Does what Lua does with a script: what it answers, without the place of an error. `call`
    /// runs a command.
    pub fn run(&self, given: Given<'_>, call: &mut dyn FnMut(&[Bytes]) -> Reply) -> Reply {
        let mut replies: Vec<Reply> = Vec::new();
        let mut wrote = false;
        for (at, statement) in self.statements.iter().enumerate() {
            let last = replies.last();
            let is_something = !matches!(last, None | Some(Reply::Null));
            if statement
                .only_if
                .is_some_and(|wanted| wanted != is_something)
            {
                continue;
            }
            let Act::Call(words, ends) = &statement.act else {
                return half(replies);
            };
            let words: Vec<Bytes> = words.iter().map(|word| word.bytes(given, last)).collect();
            let reply = if given.reads && has_flag(&words, Flags::WRITE) {
                Reply::Error(READ_ONLY.to_owned())
            } else if given.full && !wrote && has_flag(&words, Flags::DENYOOM) {
                Reply::Error(NO_MEMORY.to_owned())
            } else {
                wrote |= has_flag(&words, Flags::WRITE);
                converted(call(&words))
            };
            let is_error = matches!(reply, Reply::Error(_));
            replies.push(reply);
            if is_error && *ends {
                return match at {
                    0 => replies.remove(0),
                    _ => half(replies),
                };
            }
        }
        match self.end {
            End::List => Reply::Array(replies),
            End::Last => replies.pop().unwrap_or(Reply::Null),
            End::Nothing => Reply::Null,
        }
    }
}

impl Statement {
    fn parse(part: &str) -> Option<Self> {
        let (only_if, rest) = match part.split_at_checked(1)? {
            ("?", rest) => (Some(true), rest),
            ("!", rest) => (Some(false), rest),
            _ => (None, part),
        };
        let mut words = rest.split(',');
        let act = match words.next()? {
            "half" => Act::Half,
            kind @ ("call" | "try") => {
                let words = words.map(Word::parse).collect::<Option<_>>()?;
                Act::Call(words, kind == "call")
            }
            _ => return None,
        };
        Some(Self { only_if, act })
    }

    fn word(&self) -> String {
        let only_if = self
            .only_if
            .map_or("", |if_any| if if_any { "?" } else { "!" });
        let act = match &self.act {
            Act::Half => "half".to_owned(),
            Act::Call(words, ends) => {
                let kind = if *ends { "call" } else { "try" };
                let words = words.iter().map(|word| ",".to_owned() + &word.word());
                kind.to_owned() + &words.collect::<String>()
            }
        };
        only_if.to_owned() + &act
    }
}

impl Word {
    fn parse(text: &str) -> Option<Self> {
        let place = |digits: &str| digits.parse::<usize>().ok()?.checked_sub(1);
        match text.strip_prefix('=') {
            None => Some(Self::Text(text.as_bytes().to_vec())),
            Some("L") => Some(Self::Last),
            Some(coded) => match coded.split_at_checked(1)? {
                ("K", digits) => Some(Self::Key(place(digits)?)),
                ("A", digits) => Some(Self::Argument(place(digits)?)),
                ("x", digits) => Some(Self::Text(unhex(digits))),
                _ => None,
            },
        }
    }

    fn word(&self) -> String {
        match self {
            Self::Key(at) => format!("=K{}", at + 1),
            Self::Argument(at) => format!("=A{}", at + 1),
            Self::Last => "=L".to_owned(),
            Self::Text(text) => {
                let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b",;=".contains(byte);
                match !text.is_empty() && text.iter().all(is_plain) {
                    true => String::from_utf8_lossy(text).into_owned(),
                    false => "=x".to_owned() + &digits(text),
                }
            }
        }
    }

    fn lua(&self) -> String {
        match self {
            Self::Key(at) => format!("KEYS[{}]", at + 1),
            Self::Argument(at) => format!("ARGV[{}]", at + 1),
            Self::Last => "text()".to_owned(),
            Self::Text(text) => {
                let quoted = text.iter().map(|byte| match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b':' | b'-' | b'.' => char::from(*byte).to_string(),
                    byte => format!("\\{byte:03}"),
                });
                format!("'{}'", quoted.collect::<String>())
            }
        }
    }

    fn bytes(&self, given: Given<'_>, last: Option<&Reply>) -> Bytes {
        match self {
            Self::Text(text) => text.clone(),
            Self::Key(at) => given.keys[*at].clone(),
            Self::Argument(at) => given.args[*at].clone(),
            Self::Last => match last {
                Some(Reply::Bulk(text)) if !text.is_empty() => text.clone(),
                _ => NONE.to_vec(),
            },
        }
    }
}

/// The keys of a command.
fn keys_of(words: &[Bytes]) -> Vec<Bytes> {
    with_row(words, |row, args| {
        let keys = row.keys.positions(args).filter_map(|at| args.get(at));
        keys.map(<[u8]>::to_vec).collect()
    })
}

fn has_flag(words: &[Bytes], flag: Flags) -> bool {
    with_row(words, |row, _| row.flags.has(flag))
}

fn with_row<T: Default>(words: &[Bytes], look: impl FnOnce(&Command, Args<'_>) -> T) -> T {
    let slices: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let args = Args::from_slices(&slices);
    resolve(args).map_or_else(|_| T::default(), |row| look(row, args))
}

/// A reply that has been Lua's: its numbers are floating.
fn converted(reply: Reply) -> Reply {
    match reply {
        Reply::Integer(number) => Reply::Integer(number as f64 as i64),
        Reply::Array(items) => Reply::Array(items.into_iter().map(converted).collect()),
        other => other,
    }
}

/// The error of a script that has ended half-way.
fn half(replies: Vec<Reply>) -> Reply {
    Reply::Error(HALF.to_owned() + &tell(&Reply::Array(replies)))
}

fn tell(reply: &Reply) -> String {
    match reply {
        Reply::Integer(number) => format!("{:.0}", *number as f64),
        Reply::Bulk(text) => {
            let shown = &text[..text.len().min(TOLD)];
            format!("${}:{}", text.len(), digits(shown))
        }
        Reply::Simple(text) => format!("+{text}"),
        Reply::Error(text) => format!("-{text}"),
        Reply::Array(items) => {
            let items: Vec<String> = items.iter().map(tell).collect();
            format!("[{}]", items.join(" "))
        }
        _ => "_".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use tidewheel_resp::Reply;

    use super::{Given, Script};

    #[test]
    fn a_script_ends_at_an_error_that_it_does_not_catch() {
        let run = |word: &str, replies: &[Reply]| {
            let script = Script::parse(word).expect("a script");
            let (keys, args) = ([b"k".to_vec()], [b"a".to_vec()]);
            let given = Given {
                keys: &keys,
                args: &args,
                reads: false,
                full: false,
            };
            let (mut ran, mut replies) = (Vec::new(), replies.iter().cloned());
            let reply = script.run(given, &mut |words| {
                ran.push(String::from_utf8(words.join(&b' ')).expect("text"));
                replies.next().expect("a reply")
            });
            (ran.join(", "), reply)
        };
        let error = Reply::Error("WRONG".to_owned());
        let word = "call,GET,=K1;?try,SET,=K1,=L;!call,SET,=K1,=A1;call,GET,x;list";
        let text = |text: &str| Reply::Bulk(text.into());
        let ok = Reply::Simple("OK".to_owned());
        let (ran, reply) = run(word, &[text("v"), ok.clone(), text("w")]);
        assert_eq!(ran, "GET k, SET k v, GET x");
        assert_eq!(reply, Reply::Array(vec![text("v"), ok.clone(), text("w")]));
        let (ran, reply) = run(word, &[Reply::Null, ok, error.clone()]);
        assert_eq!(ran, "GET k, SET k a, GET x");
        assert_eq!(reply, Reply::Error("HALF [_ +OK -WRONG]".to_owned()));
        assert_eq!(run(word, std::slice::from_ref(&error)).1, error);
        let (_, reply) = run("try,GET,k;half;list", &[error]);
        assert_eq!(reply, Reply::Error("HALF [-WRONG]".to_owned()));
    }
}
