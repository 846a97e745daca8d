//! What deadlines have done, and who has announced it: nothing early, nothing twice, nothing in
//! silence.

use std::collections::{BTreeMap, BTreeSet};

use super::Bytes;

/// What deadlines have done, and nobody has announced yet.
#[derive(Debug, Default)]
pub struct Deaths {
    /// Keys.
    keys: BTreeMap<Bytes, u64>,
    /// Members, by their key and the event: how many may still be announced.
    members: BTreeMap<(Bytes, &'static str), usize>,
    /// Those of which none was announced yet.
    unheard: BTreeSet<(Bytes, &'static str)>,
    /// Keys whose last member has died, and when they would have died themselves.
    emptied: BTreeMap<Bytes, Vec<Option<i128>>>,
}

impl Deaths {
    /// A key has died.
    pub(super) fn key(&mut self, key: &[u8]) {
        *self.keys.entry(key.to_vec()).or_default() += 1;
        // Its members die with it.
        self.unheard.retain(|(of, _)| of != key);
    }

    /// Members have died, maybe the last ones: then the key's own deadline is told.
    pub(super) fn members(
        &mut self,
        key: &[u8],
        event: &'static str,
        n: usize,
        emptied: Option<Option<i128>>,
    ) {
        if n > 0 {
            *self.members.entry((key.to_vec(), event)).or_default() += n;
            self.unheard.insert((key.to_vec(), event));
        }
        if let Some(own) = emptied {
            self.emptied.entry(key.to_vec()).or_default().push(own);
        }
    }

    /// Finds the death that an event announces. False if there is none.
    pub fn explain(&mut self, key: &[u8], event: &'static str, tick: u64) -> bool {
        match event {
            "expired" => self.explain_key(key, tick.into()),
            "del" => match self.emptied.get_mut(key) {
                Some(all) => all.pop().is_some(),
                None => false,
            },
            event => {
                self.unheard.remove(&(key.to_vec(), event));
                match self.members.get_mut(&(key.to_vec(), event)) {
                    Some(n) if *n > 0 => {
                        *n -= 1;
                        true
                    }
                    _ => false,
                }
            }
        }
    }

    /// A key that nobody has looked at since its members died may have died itself.
    fn explain_key(&mut self, key: &[u8], tick: i128) -> bool {
        if let Some(n) = self.keys.get_mut(key).filter(|n| **n > 0) {
            *n -= 1;
            return true;
        }
        self.unheard.retain(|(of, _)| of != key);
        let Some(all) = self.emptied.get_mut(key) else {
            return false;
        };
        let at = all
            .iter()
            .position(|own| own.is_some_and(|own| own <= tick));
        at.is_some_and(|at| {
            all.remove(at);
            true
        })
    }

    /// All that is due has been removed: there is nothing left to announce.
    pub fn check_all_heard(&self) {
        let keys = self.keys.iter().filter(|(_, n)| **n > 0);
        assert_eq!(
            keys.collect::<Vec<_>>(),
            Vec::new(),
            "keys that died in silence"
        );
        let emptied = self.emptied.iter().filter(|(_, all)| !all.is_empty());
        assert_eq!(
            emptied.collect::<Vec<_>>(),
            Vec::new(),
            "emptied in silence"
        );
        assert_eq!(
            self.unheard,
            BTreeSet::new(),
            "members that died in silence"
        );
    }
}
