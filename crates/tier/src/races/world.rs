//! The world of a race: the engine, the network, the messages on their way, and the truth.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::core::faults::{Fault, fault};
use crate::core::invalidation_stream::{InvalidationStream, Owners, Source};
use crate::core::server::ServerId;
use crate::embedded::{Changed, Model};
use crate::engine::{EngineError, Look, Looked};

/// A request runs at the engine; its answer goes where it came from. `true`: the connection broke
/// instead.
pub(super) type Request = Box<dyn FnOnce(&mut World, bool) -> Reply + Send>;

/// An answer runs when it arrives.
pub(super) type Reply = Box<dyn FnOnce() + Send>;

/// A message on its way on a watching connection.
pub(super) enum StreamMessage {
    Changed(Vec<Vec<u8>>),
    Flushed,
    /// An answer to a heartbeat that was sent then, with what the engine says of its slots.
    Heard(tidewheel_time::Moment, u64),
}

/// A process's end of its watching connections.
pub(super) struct Wire {
    pub(super) stream: Option<Arc<InvalidationStream>>,
    /// The messages by source: `None` while it is broken.
    pub(super) messages: HashMap<Source, VecDeque<StreamMessage>>,
    /// The broken ones that the process has not noticed yet.
    pub(super) broken: Vec<Source>,
    pub(super) epoch: u64,
    /// The server to which its data connection leads; `None`: the owner, at any time.
    pub(super) data: Option<Source>,
}

pub(super) struct World {
    pub(super) model: Model,
    /// The contents of servers that were the owner before. They do not know that they are not.
    pub(super) deposed: HashMap<Source, Model>,
    /// The one of them that still takes writes.
    pub(super) still: Option<Source>,
    /// The contents of a replica.
    pub(super) replica: Model,
    pub(super) requests: Vec<Request>,
    pub(super) replies: Vec<Reply>,
    pub(super) wires: Vec<Wire>,
    pub(super) now_ms: u64,
    /// The source of everything, the one that is named to processes, and how often that has
    /// changed.
    pub(super) owner: Source,
    pub(super) named: Source,
    pub(super) epoch: u64,
    /// The time at which each version of a value ends in the engine, at the latest.
    pub(super) ends: HashMap<u64, u64>,
}

impl World {
    pub(super) fn new(processes: usize) -> Self {
        let wire = || Wire {
            stream: None,
            messages: HashMap::new(),
            broken: Vec::new(),
            epoch: 0,
            data: None,
        };
        Self {
            deposed: HashMap::new(),
            still: None,
            model: Model::default(),
            replica: Model::default(),
            requests: Vec::new(),
            replies: Vec::new(),
            wires: (0..processes).map(|_| wire()).collect(),
            now_ms: 1,
            owner: 0,
            named: 0,
            epoch: 0,
            ends: HashMap::new(),
        }
    }

    /// Runs a command, and sends messages of its changes.
    pub(super) fn command<T>(
        &mut self,
        command: impl FnOnce(&mut Model, u64) -> (T, Changed),
    ) -> T {
        let (answer, changed) = command(&mut self.model, self.now_ms);
        self.tell(self.owner, changed);
        answer
    }

    /// Runs a command on the server that a data connection leads to, and tells who that is.
    pub(super) fn command_at<T>(
        &mut self,
        at: Option<Source>,
        command: impl FnOnce(&mut Model, u64) -> (T, Changed),
    ) -> (T, ServerId) {
        let now = self.now_ms;
        match at.and_then(|at| Some((self.deposed.get_mut(&at)?, at))) {
            Some((model, at)) => {
                let (answer, changed) = command(model, now);
                if self.still == Some(at) {
                    self.tell(at, changed);
                }
                (answer, server(at))
            }
            None => (self.command(command), server(self.owner)),
        }
    }

    /// True if a process's data connection leads to a server that takes writes. If not, the process
    /// connects again.
    pub(super) fn takes_writes(&mut self, process: usize, at: Option<Source>) -> bool {
        let takes = at.is_none_or(|at| at == self.owner || self.still == Some(at));
        if !takes {
            self.join_data_of(process);
        }
        takes
    }

    /// All data connections lead to the owner that is named now.
    pub(super) fn join_data(&mut self) {
        (0..self.wires.len()).for_each(|process| self.join_data_of(process));
    }

    pub(super) fn join_data_of(&mut self, process: usize) {
        self.wires[process].data = Some(self.named);
    }

    /// A replica that has everything takes over; the owner before stays up.
    pub(super) fn hand_over(&mut self) {
        self.deposed.insert(self.owner, self.model.clone());
        self.owner += 1;
        self.name();
    }

    /// A replica takes over that lacks the last writes. The owner before does not know, and nobody
    /// is told.
    pub(super) fn promote(&mut self) {
        self.deposed.insert(self.owner, self.model.clone());
        self.still = Some(self.owner);
        self.model = self.replica.clone();
        self.owner += 1;
    }

    /// Names the owner: from now on, who asks is told of it.
    pub(super) fn name(&mut self) {
        self.named = self.owner;
        self.epoch += 1;
    }

    /// The owner before becomes a replica, and its connections break.
    pub(super) fn demote(&mut self) {
        self.still = None;
        let owner = self.owner;
        for wire in &mut self.wires {
            let old: Vec<_> = wire.messages.keys().copied().collect();
            for source in old.into_iter().filter(|source| *source != owner) {
                wire.messages.remove(&source);
                wire.broken.push(source);
            }
        }
    }

    /// Messages of a server's changes go to those who are connected to it. Several may be one
    /// message.
    fn tell(&mut self, server: Source, changed: Changed) {
        if changed.is_empty() {
            return;
        }
        for wire in &mut self.wires {
            let Some(messages) = wire.messages.get_mut(&server) else {
                continue;
            };
            match messages.back_mut() {
                Some(StreamMessage::Changed(keys)) => keys.extend(changed.iter().cloned()),
                _ => messages.push_back(StreamMessage::Changed(changed.clone())),
            }
        }
    }

    pub(super) fn flush(&mut self) {
        self.model.flush();
        let owner = self.owner;
        for wire in &mut self.wires {
            if let Some(messages) = wire.messages.get_mut(&owner) {
                messages.push_back(StreamMessage::Flushed);
            }
        }
    }

    /// A look, by the rules or with a planted fault.
    pub(super) fn look(&mut self, at: Option<Source>, look: &Look) -> Looked {
        if fault!(H10) {
            let now = self.now_ms;
            let mut old = look.clone();
            old.lease = None;
            let mut lag = self.replica.look(now, &old).0;
            lag.server = Some(server(self.owner));
            if lag.value.is_some() {
                return lag;
            }
        }
        let (looked, server) = self.command_at(at, |model, now| model.look(now, look));
        Looked {
            server: Some(server),
            ..looked
        }
    }

    /// Sends a heartbeat on a process's connection to the owner that it knows, if that is whole.
    pub(super) fn beat(&mut self, process: usize) {
        let (epoch, wire) = (self.epoch, &mut self.wires[process]);
        let Some(stream) = wire.stream.clone() else {
            return;
        };
        // The answer tells who owns what, as the engine knows at that moment.
        for messages in wire.messages.values_mut() {
            messages.push_back(StreamMessage::Heard(stream.now(), epoch));
        }
    }

    /// Delivers the next message on one of a process's connections.
    pub(super) fn deliver_word(&mut self, process: usize, nth: usize) -> Option<Delivery> {
        let wire = &mut self.wires[process];
        let mut sources: Vec<_> = wire
            .messages
            .iter()
            .filter(|(_, messages)| !messages.is_empty())
            .map(|(source, _)| *source)
            .collect();
        sources.sort_unstable();
        let source = *sources.get(nth % sources.len().max(1))?;
        let message = wire.messages.get_mut(&source)?.pop_front()?;
        let stream = wire.stream.clone()?;
        Some((stream, source, message))
    }

    /// A process's connections break; it does not know yet.
    pub(super) fn break_wire(&mut self, process: usize) {
        let wire = &mut self.wires[process];
        wire.broken
            .extend(wire.messages.drain().map(|(source, _)| source));
    }

    /// A process notices what has broken.
    pub(super) fn notice(&mut self, process: usize) -> Vec<(Arc<InvalidationStream>, Source)> {
        let wire = &mut self.wires[process];
        let Some(stream) = wire.stream.clone() else {
            return Vec::new();
        };
        let broken = std::mem::take(&mut wire.broken);
        broken
            .into_iter()
            .map(|source| (Arc::clone(&stream), source))
            .collect()
    }

    /// A process that has noticed connects to the owner that is named now.
    pub(super) fn connect(&mut self, process: usize) -> Option<(Arc<InvalidationStream>, Source)> {
        let (owner, epoch) = (self.named, self.epoch);
        let wire = &mut self.wires[process];
        if !wire.broken.is_empty() || wire.messages.contains_key(&owner) {
            return None;
        }
        wire.messages.insert(owner, VecDeque::new());
        wire.epoch = epoch;
        Some((wire.stream.clone()?, owner))
    }
}

/// The delivery of one message, outside of the world's lock.
pub(super) type Delivery = (Arc<InvalidationStream>, Source, StreamMessage);

/// An owner's own name.
pub(super) fn server(source: Source) -> ServerId {
    ServerId::of(&source.to_be_bytes())
}

/// The owner of everything.
pub(super) fn owners(source: Source) -> Owners {
    Owners::One(source)
}

/// The answer of a broken connection.
pub(super) fn away() -> EngineError {
    EngineError::Away("the connection broke".into())
}

/// True if a fault is planted that only the test's engine knows.
pub(super) fn is_split(fault: Option<Fault>) -> bool {
    fault == Some(Fault::H5)
}
