//! What a server is asked, by which right, and what becomes of the reply.

use std::time::Duration;

use tidewheel_resp::Reply;

use super::reading::{self, Answer, Commands, Forecast, Info, Prefix, Slow};
use super::text::plain;

/// What has become known.
#[derive(Debug)]
pub(super) enum News {
    Numbers(Answer<Info>),
    Forecast(Answer<Forecast>),
    Prefixes(Answer<Vec<Prefix>>),
    Slow(Answer<Vec<Slow>>),
    Commands(Answer<Commands>),
    /// These questions cost the server more, and are asked again after this time.
    Every(Costly, Duration),
    /// There is no connection, for this reason.
    Lost(String),
    /// The server lets nobody in who says this.
    Denied(String),
}

/// The questions whose cost grows with what a server holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Costly {
    Forecast,
    Prefixes,
}

/// A question.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) words: &'static [&'static [u8]],
    /// The rule of ACL SETUSER that gives the right to ask.
    right: &'static str,
    read: fn(Answer<&Reply>) -> News,
    pub(super) costly: Option<Costly>,
}

pub(super) const NUMBERS: Question = Question {
    words: &[
        b"INFO",
        b"server",
        b"clients",
        b"memory",
        b"persistence",
        b"stats",
        b"cpu",
        b"expiry",
        b"keyspace",
    ],
    right: "+info",
    read: |reply| News::Numbers(reply.and_then(reading::info)),
    costly: None,
};

pub(super) const FORECAST: Question = Question {
    words: &[b"EXPIRY", b"FORECAST"],
    right: "+expiry|forecast",
    read: |reply| News::Forecast(reply.and_then(reading::forecast)),
    costly: Some(Costly::Forecast),
};

pub(super) const PREFIXES: Question = Question {
    words: &[b"EXPIRY", b"FORECAST", b"BY", b"PREFIX", b"COUNT", b"20"],
    right: "+expiry|forecast",
    read: |reply| News::Prefixes(reply.and_then(reading::prefixes)),
    costly: Some(Costly::Prefixes),
};

pub(super) const SLOW: Question = Question {
    words: &[b"SLOWLOG", b"GET", b"20"],
    right: "+slowlog|get",
    read: |reply| News::Slow(reply.and_then(reading::slow)),
    costly: None,
};

pub(super) const COMMANDS: Question = Question {
    words: &[b"INFO", b"server", b"commandstats", b"latencystats"],
    right: "+info",
    read: |reply| News::Commands(reply.and_then(reading::commands)),
    costly: None,
};

impl Question {
    /// What a reply tells.
    pub(super) fn news(&self, reply: &Reply) -> News {
        (self.read)(match reply {
            Reply::Error(why) => Err(self.refusal(why)),
            reply => Ok(reply),
        })
    }

    /// An error in words.
    fn refusal(&self, why: &str) -> String {
        if why.starts_with("NOPERM") {
            // Prefixes tell of all keys, and need a right to all of them as well.
            let right = match why.contains("access a key") {
                true => "%R~*",
                false => self.right,
            };
            return format!("this user lacks the right {right}");
        }
        refusal(why)
    }
}

/// An error that has nothing to do with what was asked, in words.
pub(super) fn refusal(why: &str) -> String {
    let code = why.split(' ').next().unwrap_or_default();
    match code {
        "NOAUTH" => "a password is needed: set TIDEWHEEL_PASSWORD, or use --askpass".to_owned(),
        "WRONGPASS" => "the user or the password is wrong".to_owned(),
        "LOADING" => "the server loads its data".to_owned(),
        "DENIED" => "the server is in protected mode: it serves its own machine only".to_owned(),
        _ => plain(why.strip_prefix("ERR ").unwrap_or(why)),
    }
}
