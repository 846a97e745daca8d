//! Claims, also of limited queues: these get slots after they were claimed.
//!
//! The slots that a queue has given away are a text in its row, which is changed only if it is
//! still as it was. A worker that was not the first reads it again. It claims no more than there
//! are slots, and puts back quietly what gets none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidewheel_time::{monotonic_nanos, nanos};

use super::rows::{Named, claim, micros, number, verdicts};
use super::session::StatementName;
use super::{Parameters, PostgresStore};
use crate::shape::claim::{Claim, Verdict};
use crate::shape::error::StoreError;
use crate::shape::queue::QueueRules;
use crate::shape::rate::Spent;
use crate::shape::timestamp::Timestamp;
use crate::store::Ask;

/// The list of limited queues is used for so long.
const AGE: Duration = Duration::from_millis(500);

/// The number of tries to take slots, or to free them.
const TRIES: u32 = 20;

/// The limited queues, as they were read last.
#[derive(Debug, Default)]
pub(super) struct Limited(Mutex<Option<(u64, Vec<String>)>>);

impl Limited {
    fn young(&self) -> Option<Vec<String>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (read, queues) = known.as_ref()?;
        let is_young = monotonic_nanos().saturating_sub(*read) < nanos(AGE);
        is_young.then(|| queues.clone())
    }

    fn learn(&self, queues: Option<Vec<String>>) {
        let queues = queues.map(|queues| (monotonic_nanos(), queues));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = queues;
    }

    /// The list has changed.
    pub(super) fn forget(&self) {
        self.learn(None);
    }
}

/// The limit in a queue's row.
struct State {
    now: Timestamp,
    /// `None` if it is not limited any more.
    spent: Option<Spent>,
    is_paused: bool,
    text: String,
}

impl State {
    /// The slots, if claims may have some.
    fn open(&self) -> Option<&Spent> {
        self.spent.as_ref().filter(|_| !self.is_paused)
    }
}

impl PostgresStore {
    pub(super) async fn claims(&self, ask: &Ask) -> Result<Vec<Claim>, StoreError> {
        let queues = (!ask.queues.is_empty()).then_some(&ask.queues);
        let mut claims = self.claim_of(ask, queues, ask.most, false).await?;
        for queue in self.limited_queues().await.unwrap_or_default() {
            let room = ask.most - claims.len();
            if room > 0 && ask.admits(&queue) {
                // If that fails, it is asked again. What was claimed is not to be lost.
                let more = self.claim_limited(ask, &queue, room).await;
                claims.extend(more.unwrap_or_default());
            }
        }
        Ok(claims)
    }

    async fn claim_of(
        &self,
        ask: &Ask,
        queues: Option<&Vec<String>>,
        most: usize,
        limited: bool,
    ) -> Result<Vec<Claim>, StoreError> {
        let (ahead, lease) = (micros(ask.lookahead), micros(ask.lease));
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let worker = ask.worker.replace('\0', "");
        let parameters: Parameters<'_> = &[
            &self.space,
            &ahead,
            &lease,
            &worker,
            &most,
            &queues,
            &limited,
        ];
        let rows = self.query(StatementName::Claim, parameters).await?;
        Ok(rows.iter().map(|row| claim(row, ask.lease)).collect())
    }

    async fn limited_queues(&self) -> Result<Vec<String>, StoreError> {
        if let Some(queues) = self.limited.young() {
            return Ok(queues);
        }
        let rules = self.rules().await?.into_iter();
        let limited = rules.filter(|(_, rules)| rules.limit.is_some());
        let queues: Vec<_> = limited.map(|(queue, _)| queue).collect();
        self.limited.learn(Some(queues.clone()));
        Ok(queues)
    }

    async fn state(&self, queue: &str) -> Result<State, StoreError> {
        let rows = self
            .query(StatementName::Limit, &[&self.space, &queue])
            .await?;
        let Some(row) = rows.first() else {
            return Ok(State {
                now: Timestamp(0),
                spent: None,
                is_paused: false,
                text: String::new(),
            });
        };
        let (rules, text) = (QueueRules::read(row.get(1)), row.get::<_, String>(2));
        Ok(State {
            now: Timestamp(number(row, 0)),
            spent: rules.limit.map(|rate| Spent::read(&text, rate)),
            is_paused: rules.paused,
            text,
        })
    }

    /// `false` if the slots have changed meanwhile.
    async fn spend(&self, queue: &str, before: &str, spent: &Spent) -> Result<bool, StoreError> {
        let parameters: Parameters<'_> = &[&self.space, &queue, &before, &spent.text()];
        self.changes(StatementName::Spend, parameters).await
    }

    async fn claim_limited(
        &self,
        ask: &Ask,
        queue: &str,
        room: usize,
    ) -> Result<Vec<Claim>, StoreError> {
        let state = self.state(queue).await?;
        let until = state.now.plus(ask.lookahead);
        let free = state.open().map_or(0, |spent| spent.free(state.now, until));
        let most = free.min(room);
        if most == 0 {
            return Ok(Vec::new());
        }
        let queues = vec![queue.to_owned()];
        let mut claims = self.claim_of(ask, Some(&queues), most, true).await?;
        claims.sort_by_key(|claim| (claim.priority, claim.due));
        let with_slots = self.take_slots(ask, state, queue, &mut claims).await;
        // What this fails to put back is claimed again when the lease is over.
        let _ = self.put_back_quietly(claims).await;
        with_slots
    }

    /// The claims that got slots. The others stay where they are.
    async fn take_slots(
        &self,
        ask: &Ask,
        mut state: State,
        queue: &str,
        claims: &mut Vec<Claim>,
    ) -> Result<Vec<Claim>, StoreError> {
        for _ in 0..TRIES {
            let Some(mut spent) = state.open().cloned().filter(|_| !claims.is_empty()) else {
                break;
            };
            let until = state.now.plus(ask.lookahead);
            let slots = claims.iter();
            let slots = slots.map(|claim| spent.slot(claim.due, state.now, until));
            let mut slots = slots.collect::<Vec<_>>().into_iter();
            if self.spend(queue, &state.text, &spent).await? {
                let with_slots = claims.extract_if(.., |claim| {
                    let slot = slots.next().flatten();
                    claim.has_slot = slot.is_some();
                    claim.due = slot.unwrap_or(claim.due);
                    claim.has_slot
                });
                return Ok(with_slots.collect());
            }
            state = self.state(queue).await?;
        }
        Ok(Vec::new())
    }

    /// Puts back claims that got no slot. A row is busy for a moment while another worker looks for
    /// one to claim.
    async fn put_back_quietly(&self, claims: Vec<Claim>) -> Result<(), StoreError> {
        let mut claims: Vec<_> = claims.into_iter().map(Arc::new).collect();
        for _ in 0..TRIES {
            let mut verdicts = self.put_back(&claims, false).await?.into_iter();
            claims.retain(|_| verdicts.next() == Some(Verdict::Busy));
        }
        Ok(())
    }

    /// Puts claims back; others may be told.
    async fn put_back(
        &self,
        claims: &[Arc<Claim>],
        told: bool,
    ) -> Result<Vec<Verdict>, StoreError> {
        if claims.is_empty() {
            return Ok(Vec::new());
        }
        let named = Named::of(claims);
        let parameters: Parameters<'_> = &[&self.space, &named.ids, &named.fences, &told];
        let rows = self.query(StatementName::Release, parameters).await?;
        Ok(verdicts(claims, &rows))
    }

    /// Puts claims back, and frees their slots.
    pub(super) async fn give_back(
        &self,
        claims: &[Arc<Claim>],
    ) -> Result<Vec<Verdict>, StoreError> {
        let verdicts = self.put_back(claims, true).await?;
        let accepted = claims.iter().zip(&verdicts);
        let accepted = accepted.filter(|(_, verdict)| verdict.is_accepted());
        self.free_slots(accepted.map(|(claim, _)| &**claim)).await;
        Ok(verdicts)
    }

    /// The slots of claims that did not run. If that fails, they count as if they had run.
    pub(super) async fn free_slots(&self, claims: impl Iterator<Item = &Claim>) {
        let mut slots: BTreeMap<&str, Vec<Timestamp>> = BTreeMap::new();
        for claim in claims.filter(|claim| claim.has_slot) {
            slots.entry(&claim.terms.queue).or_default().push(claim.due);
        }
        for (queue, slots) in slots {
            let _ = self.free_slots_of(queue, &slots).await;
        }
    }

    async fn free_slots_of(&self, queue: &str, slots: &[Timestamp]) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let state = self.state(queue).await?;
            let Some(mut spent) = state.spent else {
                return Ok(());
            };
            slots.iter().for_each(|slot| spent.give_back(*slot));
            if self.spend(queue, &state.text, &spent).await? {
                return Ok(());
            }
        }
        Ok(())
    }
}
