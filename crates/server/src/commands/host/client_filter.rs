//! The conditions of CLIENT KILL and CLIENT LIST: each option once, the last counts, and each but
//! MAXAGE, IDLE and SKIPME also with NOT- before it.

use std::sync::atomic::Ordering;

use tidewheel_keyspace::CommandError;
use tidewheel_resp::{Args, parse_i64};

use super::error;
use crate::clients::registry::Client;
use crate::users::Users;

/// The letters that the public servers know as a client's flags.
const FLAGS: &[u8] = b"OSMPxbtRBdcuAUreTIiEN";

/// The classes that TYPE knows. No client is a master, a replica or a monitor here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientClass {
    Normal,
    PubSub,
    Nobody,
}

/// What a client is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition<'a> {
    Address(&'a [u8]),
    Local(&'a [u8]),
    Ip(&'a [u8]),
    Name(&'a [u8]),
    Library(&'a [u8]),
    LibraryVersion(&'a [u8]),
    Class(ClientClass),
    /// It has all of these flags.
    Flags(&'a [u8]),
    Database(u32),
    User(&'a [u8]),
    /// Connected for at least so many seconds.
    Age(u64),
    /// Idle for at least so many seconds.
    Idle(u64),
}

/// The conditions of a call. Without any it matches every client.
#[derive(Debug, Default)]
pub(super) struct Filter<'a> {
    pub(super) ids: Vec<u64>,
    not_ids: Vec<u64>,
    /// Each with its option, and whether it is not to hold.
    conditions: Vec<(Vec<u8>, bool, Condition<'a>)>,
    pub(super) skip_me: bool,
}

impl<'a> Filter<'a> {
    /// The one of the old form of CLIENT KILL.
    pub(super) fn of_address(address: &'a [u8]) -> Self {
        Self {
            conditions: vec![(b"addr".to_vec(), false, Condition::Address(address))],
            ..Self::default()
        }
    }

    /// Reads the arguments from the third on. `bad_id` is the refusal of what is no id, or below
    /// the least.
    pub(super) fn parse(
        args: Args<'a>,
        (databases, users): (usize, &Users),
        (least_id, bad_id): (u64, &'static str),
        skip_me: bool,
    ) -> Result<Self, CommandError> {
        let mut filter = Self {
            skip_me,
            ..Self::default()
        };
        let mut at = 2;
        while let Some(option) = args.get(at) {
            let option = option.to_ascii_lowercase();
            let value = args.get(at + 1).ok_or(CommandError::SYNTAX)?;
            at += 2;
            let ids = match option.as_slice() {
                b"id" => &mut filter.ids,
                b"not-id" => &mut filter.not_ids,
                _ => {
                    filter.add(option, value, (databases, users))?;
                    continue;
                }
            };
            let mut number = parse_i64(value);
            loop {
                let id = number.and_then(|number| u64::try_from(number).ok());
                let id = id.filter(|id| *id >= least_id);
                ids.push(id.ok_or_else(|| error(bad_id))?);
                number = args.get(at).and_then(parse_i64);
                if number.is_none() {
                    break;
                }
                at += 1;
            }
        }
        Ok(filter)
    }

    fn add(
        &mut self,
        option: Vec<u8>,
        value: &'a [u8],
        (databases, users): (usize, &Users),
    ) -> Result<(), CommandError> {
        let (name, is_not) = match option.strip_prefix(b"not-") {
            Some(name) => (name, true),
            None => (&option[..], false),
        };
        let condition = match name {
            b"addr" => Condition::Address(value),
            b"laddr" => Condition::Local(value),
            b"ip" => Condition::Ip(value),
            b"name" => Condition::Name(value),
            b"lib-name" => Condition::Library(value),
            b"lib-ver" => Condition::LibraryVersion(value),
            b"type" => Condition::Class(class(value)?),
            b"flags" => Condition::Flags(flags(value, is_not)?),
            b"db" => Condition::Database(database(value, databases, is_not)?),
            b"user" if users.get(value).is_some() => Condition::User(value),
            b"user" => return Err(quoted("No such user", value)),
            b"maxage" if !is_not => Condition::Age(seconds("maxage", value)?),
            b"idle" if !is_not => Condition::Idle(seconds("idle", value)?),
            b"skipme" if !is_not => {
                self.skip_me = match value.to_ascii_lowercase().as_slice() {
                    b"yes" => true,
                    b"no" => false,
                    _ => return Err(CommandError::SYNTAX),
                };
                return Ok(());
            }
            _ => return Err(CommandError::SYNTAX),
        };
        self.conditions.retain(|(known, ..)| *known != option);
        self.conditions.push((option, is_not, condition));
        Ok(())
    }

    /// Returns whether a client is meant. One that was killed is gone, though its loop may not have
    /// closed it yet: only who asks for such clients (`FLAGS A`) sees it.
    pub(super) fn matches(&self, client: &Client, now: u64) -> bool {
        let asks_for_killed = || {
            let mut conditions = self.conditions.iter().map(|(.., condition)| condition);
            conditions.any(
                |condition| matches!(condition, Condition::Flags(flags) if flags.contains(&b'A')),
            )
        };
        (!client.killed.load(Ordering::Relaxed) || asks_for_killed())
            && (self.ids.is_empty() || self.ids.contains(&client.id))
            && !self.not_ids.contains(&client.id)
            && self
                .conditions
                .iter()
                .all(|(_, is_not, condition)| condition.holds(client, now) != *is_not)
    }
}

impl Condition<'_> {
    fn holds(&self, client: &Client, now: u64) -> bool {
        let facts = || client.facts.lock();
        match *self {
            Self::Address(text) => client.peer.to_string().as_bytes() == text,
            Self::Local(text) => client.local.to_string().as_bytes() == text,
            Self::Ip(text) => client.peer.ip().as_bytes() == text,
            Self::Name(name) => facts().names.own == name,
            Self::Library(name) => facts().names.lib == name,
            Self::LibraryVersion(version) => facts().names.lib_version == version,
            Self::Class(class) => class == class_of(client),
            Self::Flags(flags) => {
                let has = client.flags();
                flags.iter().all(|flag| has.as_bytes().contains(flag))
            }
            Self::Database(db) => facts().db == db,
            Self::User(name) => *facts().user == *name,
            Self::Age(least_s) => now.saturating_sub(client.since) / 1_000 >= least_s,
            Self::Idle(least_s) => now.saturating_sub(facts().last_active) / 1_000 >= least_s,
        }
    }
}

fn quoted(what: &str, value: &[u8]) -> CommandError {
    let value = String::from_utf8_lossy(value);
    CommandError::quoting(format!("ERR {what} '{value}'"))
}

fn class(name: &[u8]) -> Result<ClientClass, CommandError> {
    match name.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(ClientClass::Normal),
        b"pubsub" => Ok(ClientClass::PubSub),
        b"master" | b"primary" | b"replica" | b"slave" => Ok(ClientClass::Nobody),
        _ => Err(quoted("Unknown client type", name)),
    }
}

fn class_of(client: &Client) -> ClientClass {
    if client.facts.lock().is_subscriber() {
        ClientClass::PubSub
    } else {
        ClientClass::Normal
    }
}

fn flags(value: &[u8], is_not: bool) -> Result<&[u8], CommandError> {
    if value.iter().all(|flag| FLAGS.contains(flag)) {
        return Ok(value);
    }
    let flags = String::from_utf8_lossy(value);
    let filter = match is_not {
        true => "NOT-FLAGS",
        false => "provided",
    };
    Err(CommandError::quoting(format!(
        "ERR Unknown flags found in the {filter} filter: {flags}"
    )))
}

fn database(value: &[u8], databases: usize, is_not: bool) -> Result<u32, CommandError> {
    let option = if is_not { "NOT-DB" } else { "DB" };
    let number = parse_i64(value).ok_or_else(|| {
        CommandError::quoting(format!("ERR {option} is not an integer or out of range"))
    })?;
    let number = u32::try_from(number).ok();
    let known = number.filter(|number| (*number as usize) < databases);
    known.ok_or_else(|| {
        let last = databases - 1;
        CommandError::quoting(format!(
            "ERR {option} number should be between 0 and {last}"
        ))
    })
}

fn seconds(option: &str, value: &[u8]) -> Result<u64, CommandError> {
    let seconds = parse_i64(value).ok_or_else(|| {
        CommandError::quoting(format!("ERR {option} is not an integer or out of range"))
    })?;
    let positive = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
    positive.ok_or_else(|| CommandError::quoting(format!("ERR {option} should be greater than 0")))
}
