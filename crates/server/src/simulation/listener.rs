//! A client that listens to the events of all keys.

use tidewheel_keyspace::Event;

use super::client::Client;
use super::model::Model;

/// A client that hears of everything.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) client: Client,
    /// How many events it has heard.
    heard: usize,
}

impl Listener {
    pub(super) fn new(client: Client) -> Self {
        Self { client, heard: 0 }
    }

    /// Compares what has arrived with what has happened, in the same order.
    pub(super) fn listen(&mut self, model: &mut Model, events: &[Event]) -> Result<(), String> {
        let talker = model.talkers.entry(self.client.id).or_default();
        for message in self.client.check(talker)? {
            let next = events.get(self.heard);
            let is_next = |event: &Event| message.ends_with(&[channel(event), event.name.into()]);
            if !next.is_some_and(is_next) {
                let message = message.join(&b' ');
                return Err(format!("heard {}, not {next:?}", message.escape_ascii()));
            }
            self.heard += 1;
        }
        Ok(())
    }

    /// All has come to rest: whether it has heard everything.
    pub(super) fn check_complete(&self, events: &[Event]) -> Result<(), String> {
        match events.get(self.heard) {
            Some(event) => Err(format!("{event:?} never came")),
            None => Ok(()),
        }
    }
}

/// The channel on which an event comes.
fn channel(event: &Event) -> Vec<u8> {
    let head = format!("__keyspace@{}__:", event.db).into_bytes();
    [&head[..], &event.key].concat()
}
