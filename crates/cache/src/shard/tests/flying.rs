//! Loads: who leads one, who waits for it, and what it comes to.

use std::sync::Arc;
use std::task::Waker;

use super::calls::Says;
use super::truth::{Answer, Flight as Flying, Negative as Remembered, Phase, Told};
use super::world::{BACKOFF, World};
use crate::removal::RemovalCause;
use crate::shard::flight::{self, Ending, Flight, Negative, WaitEnd};
use crate::shard::loading::{Claim, Claimant, Landing};
use crate::shard::tags::LentTags;

/// A caller that leads a load.
pub(super) struct Lead<'r> {
    key: Arc<u32>,
    flight: Arc<Flight<u64>>,
    number: usize,
    tags: Option<LentTags<'r>>,
    tag: Option<(usize, u32)>,
}

/// A caller that waits for one.
pub(super) struct Wait {
    key: Arc<u32>,
    flight: Arc<Flight<u64>>,
    number: usize,
    id: u64,
}

impl World<'_> {
    pub(super) fn claim(&mut self, key: u32, absent: bool) {
        let shared = Arc::new(key);
        let by = Claimant {
            hash: self.hash(key),
            key: &shared,
            absent,
            blocks: false,
        };
        let tags = &self.rules.tags;
        let claim = self.shard.claim::<&str>(tags, &by, self.now());
        if self.truth.latches.contains(&key) {
            // The latch is this thread's own; or there is a value.
            return;
        }
        let in_progress = self.truth.table.get(&key).copied();
        let is_answered = match self.truth.live(key) {
            Some(entry) => in_progress.is_some() || !self.truth.is_due(entry),
            None => self.truth.answer(key, absent) != Answer::Nothing,
        };
        let phase = in_progress.map(|number| self.truth.flights[number].phase);
        match claim.expect("nobody waits for itself") {
            Claim::Again => assert!(is_answered, "{key} has no answer"),
            Claim::Lead(flight, tags) => {
                assert!(
                    !is_answered && phase != Some(Phase::Running),
                    "two load {key}"
                );
                let tag = self.truth.live(key).and_then(|entry| entry.tag);
                assert_eq!(
                    tags.is_some(),
                    tag.is_some(),
                    "tags of what is loaded again"
                );
                flight.suspend();
                let number = in_progress.unwrap_or(self.truth.flights.len());
                if in_progress.is_none() {
                    self.truth.flights.push(Flying {
                        phase: Phase::Running,
                        waiting: 0,
                    });
                    self.truth.table.insert(key, number);
                }
                self.truth.flights[number].phase = Phase::Running;
                self.leads.push(Lead {
                    key: shared,
                    flight,
                    number,
                    tags,
                    tag,
                });
            }
            Claim::Join(flight) => {
                assert!(
                    !is_answered && phase == Some(Phase::Running),
                    "{key} is not loaded"
                );
                let number = in_progress.expect("there is one");
                self.truth.flights[number].waiting += 1;
                self.waits.push(Wait {
                    key: shared,
                    flight,
                    number,
                    id: 0,
                });
            }
        }
    }

    pub(super) fn land(&mut self, at: usize, says: Says) {
        if at >= self.leads.len() {
            return;
        }
        let Lead {
            key: shared,
            flight,
            number,
            tags,
            tag,
        } = self.leads.swap_remove(at);
        let key = *shared;
        let (hash, now) = (self.hash(key), self.now());
        let is_overtaken = !self.truth.is_current(tag);
        let stands = self.truth.table.get(&key) == Some(&number);
        let is_awaited = self.truth.flights[number].waiting > 0;
        if let Says::Nothing = says {
            drop(shared);
            let keys = &mut self.shard.effects.garbage.keys;
            let wake = self
                .shard
                .flights
                .vacate(hash.0, &flight, flight::Phase::Running, keys);
            flight.wake(wake);
            if stands && is_awaited {
                self.truth.flights[number].phase = Phase::Vacant;
            } else {
                self.lands(key, number, None);
            }
            return;
        }
        let counts = stands && !is_overtaken;
        self.lands(key, number, None);
        if counts {
            self.truth.negatives.remove(&key);
        }
        let landing = Landing {
            hash,
            flight: &flight,
            tags: tags.as_ref(),
        };
        let ttl = self.rules.config.negative_ttl;
        let (told, ending) = match says {
            Says::Value(new) => {
                let (value, prepared, entry) = self.prepared(new);
                if counts {
                    self.truth.stores(key, entry);
                }
                let mut loaded = Some(value);
                let back = self
                    .shard
                    .land_value(&landing, shared, &mut loaded, &prepared, false);
                assert_eq!(back.is_none(), counts, "what is superseded is not stored");
                (Told::Value(value), Ending::Value(value))
            }
            Says::Private => {
                if counts {
                    self.truth.removes(key, RemovalCause::Removed);
                }
                self.shard.land_private(&landing, &shared, now);
                (Told::Private, Ending::Private)
            }
            _ => {
                let is_absent = matches!(says, Says::Absent);
                let negative = match is_absent {
                    true => Negative::Absent,
                    false => Negative::error(&Arc::new("down")),
                };
                if counts {
                    match is_absent {
                        true => self.truth.removes(key, RemovalCause::Removed),
                        false => self.truth.is_put_off(key, BACKOFF),
                    }
                    if let Some(ttl) = ttl {
                        let what = if is_absent {
                            Remembered::Absent
                        } else {
                            Remembered::Failed
                        };
                        let until = self.truth.tick + ttl.as_millis() as u64;
                        self.truth.negatives.insert(key, (what, until));
                    }
                }
                self.shard
                    .land_negative(&landing, shared, &negative, ttl, now);
                (Told::Negative, Ending::Negative(negative))
            }
        };
        let tells = is_awaited && !is_overtaken;
        assert_eq!(flight.is_awaited(), is_awaited, "somebody waits");
        flight.end(tells.then_some(ending));
        self.truth.flights[number].phase = Phase::Over(tells.then_some(told));
    }

    /// A load leaves the table.
    fn lands(&mut self, key: u32, number: usize, told: Option<Told>) {
        self.truth.flights[number].phase = Phase::Over(told);
        if self.truth.table.get(&key) == Some(&number) {
            self.truth.table.remove(&key);
        }
    }

    /// All look that wait for the same load as the one at `at`.
    pub(super) fn poll(&mut self, at: usize) {
        let Some(number) = self.waits.get(at).map(|wait| wait.number) else {
            return;
        };
        let phase = self.truth.flights[number].phase;
        let (waits, others) = std::mem::take(&mut self.waits)
            .into_iter()
            .partition(|wait| wait.number == number);
        let waits: Vec<Wait> = waits;
        self.waits = others;
        let mut leads = 0;
        for mut wait in waits {
            match wait.flight.poll(&mut wait.id, Waker::noop()) {
                None => {
                    assert!(!matches!(phase, Phase::Over(_)), "it is over");
                    self.waits.push(wait);
                    continue;
                }
                Some(WaitEnd::Lead) => {
                    assert!(phase == Phase::Vacant, "two load {}", wait.key);
                    leads += 1;
                    wait.flight.suspend();
                    let Wait {
                        key,
                        flight,
                        number,
                        ..
                    } = wait;
                    self.leads.push(Lead {
                        key,
                        flight,
                        number,
                        tags: None,
                        tag: None,
                    });
                }
                Some(WaitEnd::Over) => {
                    let told = wait.flight.ending().map(|ending| match ending {
                        Ending::Value(value) => Told::Value(*value),
                        Ending::Negative(_) => Told::Negative,
                        Ending::Private => Told::Private,
                    });
                    assert_eq!(Phase::Over(told), phase, "what {} has come to", wait.key);
                }
            }
            self.truth.flights[number].waiting -= 1;
        }
        assert_eq!(
            leads,
            usize::from(phase == Phase::Vacant),
            "one of those who wait leads"
        );
        if leads == 1 {
            self.truth.flights[number].phase = Phase::Running;
        }
    }

    pub(super) fn stop_waiting(&mut self, at: usize) {
        if at >= self.waits.len() {
            return;
        }
        let wait = self.waits.swap_remove(at);
        let key = *wait.key;
        let flying = &mut self.truth.flights[wait.number];
        flying.waiting -= 1;
        let is_last = flying.waiting == 0 && flying.phase == Phase::Vacant;
        let stands = self.truth.table.get(&key) == Some(&wait.number);
        let mut is_over = false;
        if wait.flight.cancel_wait(wait.id) {
            let keys = &mut self.shard.effects.garbage.keys;
            let hash = self.rules.hash(&key);
            let wake = self
                .shard
                .flights
                .vacate(hash.0, &wait.flight, flight::Phase::Vacant, keys);
            // Nobody leads what was superseded: those who wait look again.
            is_over = is_last || !stands;
            wait.flight.wake(wake);
        }
        assert!(is_over || !is_last, "a flight without anybody");
        if is_over {
            self.lands(key, wait.number, None);
        }
    }
}
