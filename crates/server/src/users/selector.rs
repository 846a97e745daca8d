//! A selector allows commands, in databases, on keys, on channels.

use tidewheel_keyspace::rows::KeySpec;
use tidewheel_keyspace::{Command, KeyUse};
use tidewheel_resp::{Args, parse_i64};

use super::commands::AllowedCommands;
use super::databases::{Databases, Place};
use super::denials::Reason;
use super::patterns::{ChannelPatterns, KeyPattern, KeyPatterns};
use super::rule_error::RuleError;

/// The part of a call that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DeniedPart {
    Database,
    Command,
    /// Keys that no argument names, which SORT reads for an option.
    OtherKeys(&'static str),
    Key,
    Channel,
}

/// Why a call is not allowed. Of two, the greater one came closer to being allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Denied {
    pub(crate) part: DeniedPart,
    /// The position of that argument; 0 for the command, or the selected database.
    pub(crate) at: usize,
}

impl Denied {
    /// Its entry in ACL LOG: the reason, and the command, the key, the channel or the database.
    /// `None` for what it has not.
    pub(crate) fn noted<'a>(self, row: &Command, args: Args<'a>) -> Option<(Reason, &'a [u8])> {
        let argument = args.get(self.at).unwrap_or_default();
        Some(match self.part {
            DeniedPart::Database if self.at == 0 => (Reason::Database, row.name.as_bytes()),
            DeniedPart::Database => (Reason::Database, argument),
            DeniedPart::Command => (Reason::Command, row.name.as_bytes()),
            DeniedPart::Key => (Reason::Key, argument),
            DeniedPart::Channel => (Reason::Channel, argument),
            DeniedPart::OtherKeys(_) => return None,
        })
    }
}

/// A call, and what it uses.
pub(super) struct Use<'a> {
    row: &'static Command,
    args: Args<'a>,
    keys: Vec<KeyUse>,
    place: Place,
}

impl<'a> Use<'a> {
    pub(super) fn new(row: &'static Command, args: Args<'a>, place: Place) -> Self {
        let keys = row.uses_of_keys(args).collect();
        Self {
            row,
            args,
            keys,
            place,
        }
    }

    fn argument(&self, at: usize) -> &'a [u8] {
        self.args.get(at).unwrap_or_default()
    }

    /// The channels that it names, and whether they are patterns.
    fn channels(&self) -> (std::ops::Range<usize>, bool) {
        let end = self.args.len();
        match self.row.name {
            "subscribe" | "ssubscribe" => (1..end, false),
            "psubscribe" => (1..end, true),
            "publish" | "spublish" => (1..end.min(2), false),
            _ => (0..0, false),
        }
    }

    /// The arguments that name databases: their positions, and the databases. If one is wrong, the
    /// command itself refuses the call, and there are none.
    fn databases(&self) -> Vec<(usize, u32)> {
        let positions = match self.row.name {
            "select" => vec![1],
            "swapdb" => vec![1, 2],
            "move" => vec![2],
            "copy" => self.copied_to(),
            _ => Vec::new(),
        };
        let read = |at: usize| {
            let db = u32::try_from(parse_i64(self.argument(at))?).ok()?;
            ((db as usize) < self.place.databases).then_some((at, db))
        };
        let all: Option<_> = positions.into_iter().map(read).collect();
        all.unwrap_or_default()
    }

    /// The positions of the databases behind the options `DB` of COPY; none if it is none of its
    /// calls.
    fn copied_to(&self) -> Vec<usize> {
        let (mut positions, mut at) = (Vec::new(), 3);
        while at < self.args.len() {
            let is = |word: &[u8]| self.argument(at).eq_ignore_ascii_case(word);
            match () {
                () if is(b"replace") => {}
                () if is(b"db") => {
                    at += 1;
                    positions.push(at);
                }
                () => return Vec::new(),
            }
            at += 1;
        }
        positions
    }

    /// True if it is about what the selected database has, or may be: a script's keys may be none.
    fn is_about_data(&self) -> bool {
        let is_about = |name: &str| matches!(name, "@keyspace" | "@read" | "@write");
        self.row.keys != KeySpec::NONE || self.row.all_categories().any(is_about)
    }

    /// True if it is about all databases.
    fn is_about_all(&self) -> bool {
        matches!(
            self.row.name,
            "flushall" | "expiry|freeze" | "expiry|resume"
        )
    }

    /// The option with which SORT reads keys that no argument names.
    fn reads_others(&self) -> Option<&'static str> {
        if !self.row.reaches_others() {
            return None;
        }
        let is = |at: usize, word: &[u8]| self.argument(at).eq_ignore_ascii_case(word);
        (2..self.args.len().saturating_sub(1)).find_map(|at| match () {
            () if is(at, b"by") && self.argument(at + 1).contains(&b'*') => Some("BY"),
            () if is(at, b"get") => Some("GET"),
            () => None,
        })
    }
}

/// What is allowed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selector {
    commands: AllowedCommands,
    keys: KeyPatterns,
    channels: ChannelPatterns,
    databases: Databases,
}

impl Selector {
    /// Allows nothing: no command, though in all databases.
    pub(super) const NONE: Self = Self {
        commands: AllowedCommands::NONE,
        keys: KeyPatterns::NONE,
        channels: ChannelPatterns::NONE,
        databases: Databases::All,
    };

    /// Follows a rule.
    pub(super) fn change(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            _ if is("allkeys") || is("~*") => self.keys = KeyPatterns::All,
            _ if is("resetkeys") => self.keys = KeyPatterns::NONE,
            _ if is("allchannels") || is("&*") => self.channels = ChannelPatterns::All,
            _ if is("resetchannels") => self.channels = ChannelPatterns::NONE,
            _ if is("alldbs") => self.databases = Databases::All,
            _ if is("resetdbs") => self.databases = Databases::NONE,
            [b'd' | b'D', b'b' | b'B', b'=', list @ ..] => self.databases = Databases::read(list)?,
            _ if is("allcommands") || is("+@all") => self.commands.allow_all(),
            _ if is("nocommands") || is("-@all") => self.commands = AllowedCommands::NONE,
            [b'~' | b'%', ..] => {
                self.keys.add(key_pattern(rule)?)?;
            }
            [b'&', pattern @ ..] => {
                self.channels.add(plain(pattern)?)?;
            }
            [b'+', what @ ..] => self.commands.change(true, what)?,
            [b'-', what @ ..] => self.commands.change(false, what)?,
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    pub(super) fn allows_everything(&self) -> bool {
        self.keys == KeyPatterns::All
            && self.channels == ChannelPatterns::All
            && self.databases == Databases::All
            && self.commands.are_all()
    }

    /// Compares a call with it.
    pub(super) fn check(&self, call: &Use<'_>) -> Result<(), Denied> {
        let denied = |part, at| Err(Denied { part, at });
        if self.databases != Databases::All
            && let Some(at) = self.denied_database(call)
        {
            return denied(DeniedPart::Database, at);
        }
        if !self.commands.allow(call.row, call.args) {
            return denied(DeniedPart::Command, 0);
        }
        for used in &call.keys {
            if !self.keys.allow(call.argument(used.at), *used) {
                return denied(DeniedPart::Key, used.at);
            }
        }
        if let Some(option) = call.reads_others()
            && !self.keys.allow_reading_all()
        {
            return denied(DeniedPart::OtherKeys(option), 0);
        }
        // It shows the beginnings of all keys.
        let by_prefix = call.row.name == "expiry|forecast" && call.args.len() > 3;
        if by_prefix && !self.keys.allow_reading_all() {
            return denied(DeniedPart::Key, 3);
        }
        let (channels, are_patterns) = call.channels();
        for at in channels {
            let name = call.argument(at);
            let allowed = match are_patterns {
                true => self.channels.allow_pattern(name),
                false => self.channels.allow(name),
            };
            if !allowed {
                return denied(DeniedPart::Channel, at);
            }
        }
        Ok(())
    }

    /// The position of the argument that names a database which is not allowed; 0 for the selected
    /// one, or for all.
    #[cold]
    fn denied_database(&self, call: &Use<'_>) -> Option<usize> {
        let named = call.databases();
        if let Some((at, _)) = named.iter().find(|(_, db)| !self.databases.allow(*db)) {
            return Some(*at);
        }
        let is_allowed = match () {
            () if call.is_about_all() => self.databases.allow_each_of(call.place.databases),
            // They are about those that they name.
            () if matches!(call.row.name, "select" | "swapdb") => true,
            () if call.is_about_data() => self.databases.allow(call.place.db),
            () => true,
        };
        (!is_allowed).then_some(0)
    }

    /// True if a client may listen to a channel, or to a pattern of channels.
    pub(super) fn may_listen(&self, name: &[u8], is_pattern: bool) -> bool {
        match is_pattern {
            true => self.channels.allow_pattern(name),
            false => self.channels.allow(name),
        }
    }

    /// The rules that make it: those about commands, keys, channels, and databases.
    pub(crate) fn parts(&self) -> [Vec<u8>; 4] {
        let join = |rules: Vec<Vec<u8>>| rules.join(&b' ');
        [
            self.commands.rules().into_bytes(),
            join(self.keys.rules()),
            join(self.channels.rules()),
            self.databases.rule().into_bytes(),
        ]
    }

    /// All rules that make it.
    pub(super) fn rules(&self) -> Vec<u8> {
        let mut rules = self.keys.rules();
        if self.channels != ChannelPatterns::All {
            rules.push(b"resetchannels".to_vec());
        }
        rules.extend(self.channels.rules());
        match self.databases.rule() {
            _ if self.databases == Databases::All => {}
            none if none.is_empty() => rules.push(b"resetdbs".to_vec()),
            these => rules.push(these.into_bytes()),
        }
        rules.push(self.commands.rules().into_bytes());
        rules.join(&b' ')
    }
}

/// Reads `~pattern`, `%R~pattern`, `%W~pattern` or `%RW~pattern`.
fn key_pattern(rule: &[u8]) -> Result<KeyPattern, RuleError> {
    let Some(rest) = rule.strip_prefix(b"%") else {
        return Ok(KeyPattern {
            reads: true,
            writes: true,
            pattern: plain(&rule[1..])?.to_vec(),
        });
    };
    let mut parts = rest.splitn(2, |byte| *byte == b'~');
    let letters = parts.next().unwrap_or_default();
    let pattern = parts.next().unwrap_or_default();
    let (reads, writes) = match letters.to_ascii_uppercase().as_slice() {
        b"R" => (true, false),
        b"W" => (false, true),
        b"RW" | b"WR" => (true, true),
        _ => return Err(RuleError::Syntax),
    };
    Ok(KeyPattern {
        reads,
        writes,
        pattern: plain(pattern)?.to_vec(),
    })
}

/// A text that a line of a file can hold.
pub(super) fn plain(text: &[u8]) -> Result<&[u8], RuleError> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b);
    match text.iter().any(is_space) {
        true => Err(RuleError::Syntax),
        false => Ok(text),
    }
}
