//! The engine and the network: what is on its way, and what is true.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::core::faults::{Fault, fault};
use crate::core::plane::{Owners, Plane, Source};
use crate::embedded::{Changed, Model};
use crate::engine::{EngineError, Look, Looked};

/// What a request does at the engine; its answer goes where it came from. `true`: the connection broke instead.
pub(super) type Request = Box<dyn FnOnce(&mut World, bool) -> Reply + Send>;

/// What an answer does when it arrives.
pub(super) type Reply = Box<dyn FnOnce() + Send>;

/// What is on its way on a watching connection.
pub(super) enum Word {
    Changed(Vec<Vec<u8>>),
    Flushed,
    /// An answer to a heartbeat that was sent then, with what the engine says of its slots.
    Heard(tidewheel_time::Moment, u64),
}

/// A process's end of its watching connections.
pub(super) struct Wire {
    pub(super) plane: Option<Arc<Plane>>,
    /// By source: `None` while it is broken.
    pub(super) words: HashMap<Source, VecDeque<Word>>,
    /// The broken ones that the process has not noticed yet.
    pub(super) broken: Vec<Source>,
    pub(super) epoch: u64,
}

pub(super) struct World {
    pub(super) model: Model,
    /// What a replica has.
    pub(super) replica: Model,
    pub(super) requests: Vec<Request>,
    pub(super) replies: Vec<Reply>,
    pub(super) wires: Vec<Wire>,
    pub(super) now_ms: u64,
    /// The source of everything, and how often that has changed.
    pub(super) owner: Source,
    pub(super) epoch: u64,
    /// When each version of a value ends in the engine, at the latest.
    pub(super) ends: HashMap<u64, u64>,
}

impl World {
    pub(super) fn new(processes: usize) -> Self {
        let wire = || Wire {
            plane: None,
            words: HashMap::new(),
            broken: Vec::new(),
            epoch: 0,
        };
        Self {
            model: Model::default(),
            replica: Model::default(),
            requests: Vec::new(),
            replies: Vec::new(),
            wires: (0..processes).map(|_| wire()).collect(),
            now_ms: 1,
            owner: 0,
            epoch: 0,
            ends: HashMap::new(),
        }
    }

    /// Runs a command, and sends word of its changes.
    pub(super) fn command<T>(
        &mut self,
        command: impl FnOnce(&mut Model, u64) -> (T, Changed),
    ) -> T {
        let (answer, changed) = command(&mut self.model, self.now_ms);
        self.tell(changed);
        answer
    }

    /// Word of changes goes to those who are connected to the owner. Several may be one message.
    fn tell(&mut self, changed: Changed) {
        if changed.is_empty() {
            return;
        }
        let owner = self.owner;
        for wire in &mut self.wires {
            let Some(words) = wire.words.get_mut(&owner) else {
                continue;
            };
            match words.back_mut() {
                Some(Word::Changed(keys)) => keys.extend(changed.iter().cloned()),
                _ => words.push_back(Word::Changed(changed.clone())),
            }
        }
    }

    pub(super) fn flush(&mut self) {
        self.model.flush();
        let owner = self.owner;
        for wire in &mut self.wires {
            if let Some(words) = wire.words.get_mut(&owner) {
                words.push_back(Word::Flushed);
            }
        }
    }

    /// A look, by the rules or with a planted fault.
    pub(super) fn look(&mut self, look: &Look) -> Looked {
        if fault!(H10) {
            let now = self.now_ms;
            let mut old = look.clone();
            old.lease = None;
            let lag = self.replica.look(now, &old).0;
            if lag.value.is_some() {
                return lag;
            }
        }
        self.command(|model, now| model.look(now, look))
    }

    /// Sends a heartbeat on a process's connection to the owner that it knows, if that is whole.
    pub(super) fn beat(&mut self, process: usize) {
        let (epoch, wire) = (self.epoch, &mut self.wires[process]);
        let Some(plane) = wire.plane.clone() else {
            return;
        };
        // The answer tells who owns what, as the engine knows at that moment.
        for words in wire.words.values_mut() {
            words.push_back(Word::Heard(plane.now(), epoch));
        }
    }

    /// Delivers the next word on one of a process's connections.
    pub(super) fn deliver_word(&mut self, process: usize, nth: usize) -> Option<Delivery> {
        let wire = &mut self.wires[process];
        let mut sources: Vec<_> = wire
            .words
            .iter()
            .filter(|(_, words)| !words.is_empty())
            .map(|(source, _)| *source)
            .collect();
        sources.sort_unstable();
        let source = *sources.get(nth % sources.len().max(1))?;
        let word = wire.words.get_mut(&source)?.pop_front()?;
        let plane = wire.plane.clone()?;
        Some((plane, source, word))
    }

    /// A process's connections break; it does not know yet.
    pub(super) fn break_wire(&mut self, process: usize) {
        let wire = &mut self.wires[process];
        wire.broken
            .extend(wire.words.drain().map(|(source, _)| source));
    }

    /// A process notices what has broken.
    pub(super) fn notice(&mut self, process: usize) -> Vec<(Arc<Plane>, Source)> {
        let wire = &mut self.wires[process];
        let Some(plane) = wire.plane.clone() else {
            return Vec::new();
        };
        let broken = std::mem::take(&mut wire.broken);
        broken
            .into_iter()
            .map(|source| (Arc::clone(&plane), source))
            .collect()
    }

    /// A process that has noticed connects to the owner that the engine names now.
    pub(super) fn connect(&mut self, process: usize) -> Option<(Arc<Plane>, Source)> {
        let (owner, epoch) = (self.owner, self.epoch);
        let wire = &mut self.wires[process];
        if !wire.broken.is_empty() || wire.words.contains_key(&owner) {
            return None;
        }
        wire.words.insert(owner, VecDeque::new());
        wire.epoch = epoch;
        Some((wire.plane.clone()?, owner))
    }
}

/// What one word does, outside of the world's lock.
pub(super) type Delivery = (Arc<Plane>, Source, Word);

/// Who owns everything.
pub(super) fn owners(source: Source) -> Owners {
    Owners::One(source)
}

/// What a broken connection is answered with.
pub(super) fn away() -> EngineError {
    EngineError::Away("the connection broke".into())
}

/// Whether a fault is planted that only the test's engine knows.
pub(super) fn is_split(fault: Option<Fault>) -> bool {
    fault == Some(Fault::H5)
}
