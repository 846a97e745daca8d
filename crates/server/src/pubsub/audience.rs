//! The receivers of a message.

use std::sync::Arc;

use crate::loop_handle::LoopHandle;
use crate::loop_handle::inbox::Target;

/// Clients, by loop. They are sorted, so that leaving a big audience takes no scan.
#[derive(Debug, Default)]
pub(crate) struct Audience {
    loops: Vec<(usize, Arc<Vec<Target>>)>,
}

impl Audience {
    pub(crate) fn add(&mut self, owner: usize, target: Target) {
        let at = match self.loops.iter().position(|(known, _)| *known == owner) {
            Some(at) => at,
            None => {
                // Most names have one listener: no room for more until there are.
                self.loops.reserve_exact(1);
                self.loops.push((owner, Arc::new(Vec::with_capacity(1))));
                self.loops.len() - 1
            }
        };
        // Copied only while messages to the old audience are on their way.
        let targets = Arc::make_mut(&mut self.loops[at].1);
        if let Err(index) = targets.binary_search(&target) {
            targets.insert(index, target);
        }
    }

    pub(crate) fn remove(&mut self, owner: usize, target: Target) {
        let Some(at) = self.loops.iter().position(|(known, _)| *known == owner) else {
            return;
        };
        let targets = Arc::make_mut(&mut self.loops[at].1);
        if let Ok(index) = targets.binary_search(&target) {
            targets.remove(index);
        }
        if targets.is_empty() {
            self.loops.swap_remove(at);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.loops.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.loops.iter().map(|(_, targets)| targets.len()).sum()
    }

    /// Hands a message to the loops of all of them. Returns how many they are.
    pub(crate) fn deliver(&self, loops: &[LoopHandle], message: &[u8]) -> usize {
        for (owner, targets) in &self.loops {
            loops[*owner].deliver(targets, message);
        }
        self.len()
    }
}
