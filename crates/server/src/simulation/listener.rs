//! A client that listens to the events of all keys, and its position in each key's events.

use std::collections::BTreeMap;

use tidewheel_oracle::Place;

use super::attempt::Event;
use super::client::Client;
use super::model::Model;

/// A client that hears of everything.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) client: Client,
    heard: BTreeMap<Place, Places>,
}

impl Listener {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            heard: BTreeMap::new(),
        }
    }

    /// Compares what has arrived with what has happened. Returns the names of the events.
    pub(super) fn listen(&mut self, model: &mut Model, tick: u64) -> Result<Vec<String>, String> {
        let talker = model.talkers.entry(self.client.id).or_default();
        let mut names = Vec::new();
        for event in self.client.check(talker)? {
            let (name, what) = read_event(&event)?;
            self.hear(model, tick, &name, &what)?;
            names.push(what);
        }
        Ok(names)
    }

    fn hear(
        &mut self,
        model: &mut Model,
        tick: u64,
        name: &Place,
        what: &str,
    ) -> Result<(), String> {
        let places = self.heard.entry(name.clone()).or_default();
        let at = places.last();
        // Keys go without being asked for. What is owed already is not the latest entry's.
        if matches!(what, "expired" | "evicted") {
            match places.next(model.events_of(name), what).1 {
                Certainty::Owed => {}
                Certainty::Possible => model.doubt(name, what, tick),
                Certainty::Unknown => model.goes(name, what, tick),
            }
        }
        *places = places.next(model.events_of(name), what).0;
        if places.0.is_empty() {
            let all = model.events_of(name);
            let near = &all[at.saturating_sub(3)..all.len().min(at + 3)];
            let (db, key) = (name.0, name.1.escape_ascii());
            let count = all.len();
            return Err(format!(
                "{what} of {db} {key} after {at} of {count}: {near:?}"
            ));
        }
        Ok(())
    }

    /// All has come to rest: whether it has heard everything.
    pub(super) fn check_complete(&self, model: &Model) -> Result<(), String> {
        for (name, events) in &model.events {
            let places = self.heard.get(name).cloned().unwrap_or_default();
            if let Some(missing) = places.missing(events) {
                return Err(format!("{name:?}: {missing:?} never came"));
            }
        }
        Ok(())
    }
}

/// The key and what happened to it.
fn read_event(message: &[Vec<u8>]) -> Result<(Place, String), String> {
    let channel = String::from_utf8_lossy(&message[message.len() - 2]);
    let what = String::from_utf8_lossy(&message[message.len() - 1]);
    let parts = channel
        .strip_prefix("__keyspace@")
        .and_then(|rest| rest.split_once("__:"));
    let (db, key) = parts.ok_or_else(|| format!("an event on {channel}"))?;
    let db = db.parse().map_err(|_| format!("an event on {channel}"))?;
    Ok(((db, key.as_bytes().to_vec()), what.into_owned()))
}

/// The numbers of a key's events that a listener may have seen. Some events may have been left out,
/// so several numbers may fit.
#[derive(Debug, Clone)]
struct Places(Vec<usize>);

impl Default for Places {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl Places {
    /// The places after one more event, and how certain the match is. There are none if the events
    /// so far do not explain it.
    fn next(&self, events: &[Event], what: &str) -> (Self, Certainty) {
        let mut next = Vec::new();
        let mut certainty = Certainty::Unknown;
        for place in &self.0 {
            for (i, event) in events.iter().enumerate().skip(*place) {
                if event.names.contains(&what) {
                    if !next.contains(&(i + 1)) {
                        next.push(i + 1);
                    }
                    certainty = certainty.max(Certainty::of(event));
                }
                if !event.optional {
                    break;
                }
            }
        }
        (Self(next), certainty)
    }

    /// An event that has to come yet.
    fn missing<'a>(&self, events: &'a [Event]) -> Option<&'a Event> {
        events[self.last()..].iter().find(|event| !event.optional)
    }

    fn last(&self) -> usize {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

/// The match between an event that has come and the events that the model expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    /// None of them does.
    Unknown,
    /// One that may have been left out does.
    Possible,
    /// One that had to come does.
    Owed,
}

impl Certainty {
    fn of(event: &Event) -> Self {
        if event.optional {
            Self::Possible
        } else {
            Self::Owed
        }
    }
}
