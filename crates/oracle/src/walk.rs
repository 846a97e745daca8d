//! A scan that goes on while things change: what is there all the time is seen exactly once.

use std::collections::BTreeMap;

use crate::model::{Model, Place};

/// A scan of a collection, or of all keys.
pub(crate) struct Walk {
    db: u32,
    /// The collection and its generation; `None` for keys.
    of: Option<(Place, &'static str, u64)>,
    cursor: Vec<u8>,
    /// What has been there since it began, with its generation, and how often it was seen.
    stays: BTreeMap<Vec<u8>, (u64, u32)>,
}

impl Walk {
    /// Begins: with the members of a collection, or with the keys if there is none.
    pub(crate) fn new(model: &Model, key: &[u8]) -> Self {
        let place = (model.db(), key.to_vec());
        let of = model
            .look(&place)
            .filter(|(name, _)| ["hash", "set", "zset"].contains(name))
            .map(|(name, generation)| (place, name, generation));
        let stays = there(model, model.db(), of.as_ref());
        let stays = stays
            .into_iter()
            .map(|(name, generation)| (name, (generation, 0)));
        Self {
            db: model.db(),
            of,
            cursor: b"0".to_vec(),
            stays: stays.collect(),
        }
    }

    /// What to ask next.
    pub(crate) fn words(&self, count: u8) -> Vec<Vec<u8>> {
        let mut words = match &self.of {
            None => vec![b"SCAN".to_vec()],
            Some(((_, key), name, _)) => {
                let command = match *name {
                    "hash" => "HSCAN",
                    "set" => "SSCAN",
                    _ => "ZSCAN",
                };
                vec![command.into(), key.clone()]
            }
        };
        let count = (1 + count % 8).to_string();
        words.extend([self.cursor.clone(), b"COUNT".to_vec(), count.into_bytes()]);
        words
    }

    /// How many elements of a page belong to one member.
    pub(crate) fn width(&self) -> usize {
        match &self.of {
            Some((_, "hash" | "zset", _)) => 2,
            _ => 1,
        }
    }

    /// Takes a page. `None` at the end.
    pub(crate) fn goes_on(mut self, cursor: Vec<u8>, found: &[Vec<u8>]) -> Option<Self> {
        for name in found {
            if let Some((_, seen)) = self.stays.get_mut(name) {
                *seen += 1;
            }
        }
        if cursor == b"0" {
            let wrong: Vec<_> = self
                .stays
                .iter()
                .filter(|(_, (_, seen))| *seen != 1)
                .collect();
            assert!(wrong.is_empty(), "not seen once: {wrong:?}");
            return None;
        }
        self.cursor = cursor;
        Some(self)
    }

    /// Forgets what is not there any more. `None` if the walk is over because its subject is
    /// another one now.
    pub(crate) fn still(mut self, model: &Model) -> Option<Self> {
        let is_same = match &self.of {
            None => true,
            Some((place, name, generation)) => model.look(place) == Some((*name, *generation)),
        };
        if model.db() != self.db || !is_same {
            return None;
        }
        let now = there(model, self.db, self.of.as_ref());
        self.stays
            .retain(|name, (generation, _)| now.get(name) == Some(generation));
        Some(self)
    }
}

/// What a scan would show, with generations.
fn there(
    model: &Model,
    db: u32,
    of: Option<&(Place, &'static str, u64)>,
) -> BTreeMap<Vec<u8>, u64> {
    match of {
        Some((place, ..)) => model
            .names_of(place)
            .into_iter()
            .map(|name| (name, 0))
            .collect(),
        None => {
            let here = model.places().into_iter().filter(|place| place.0 == db);
            let generation =
                |place: &Place| model.look(place).map_or(0, |(_, generation)| generation);
            here.map(|place| (place.1.clone(), generation(&place)))
                .collect()
        }
    }
}
