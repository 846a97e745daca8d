//! Lists and counts: the messages of a state are read page by page.

use std::collections::BTreeMap;

use super::Inner;
use super::generation::is_task;
use super::looks::{finished, task};
use super::subjects::id_of;
use super::wire::Kept;
use crate::shape::counts::Counts;
use crate::shape::error::StoreError;
use crate::shape::look::{Look, PAGE_BYTES, State};
use crate::shape::timestamp::Timestamp;

/// Messages that are asked for at once.
const PAGE: usize = 256;

/// Messages of a state that are counted.
const COUNT_MAX: usize = 100_000;

impl Inner {
    pub(super) async fn list(
        &self,
        state: State,
        queue: Option<String>,
        after: Option<String>,
        most: usize,
    ) -> Result<Vec<Look>, StoreError> {
        let mut from = 1;
        if let Some(after) = after {
            let kept = self.wire.last(&self.subjects.one_of(state, &after)).await?;
            let kept = kept.ok_or_else(|| StoreError::refused("what it comes after has gone"))?;
            from = kept.sequence + 1;
        }
        let now = self.about_now().await?;
        let (mut looks, mut bytes) = (Vec::new(), 0);
        while looks.len() < most && bytes < PAGE_BYTES {
            let page = self
                .wire
                .page(&self.subjects.all_of(state), from, PAGE)
                .await?;
            let Some(last) = page.last() else {
                break;
            };
            from = last.sequence + 1;
            for kept in page {
                let sequence = kept.sequence;
                let Some(look) = self.look_of(state, kept, now) else {
                    continue;
                };
                let is_its = queue
                    .as_ref()
                    .is_none_or(|queue| *queue == look.terms.queue);
                let has_room = looks.len() < most && bytes < PAGE_BYTES;
                if has_room && is_its && self.is_there(&look, sequence).await? {
                    bytes += look.bytes();
                    looks.push(look);
                }
            }
        }
        Ok(looks)
    }

    /// A message that was handed over may be there although its task has ended.
    async fn is_there(&self, look: &Look, sequence: u64) -> Result<bool, StoreError> {
        if look.state != State::Claimed {
            return Ok(true);
        }
        let handed = self.handed_over(&look.id).await?;
        Ok(handed.is_some_and(|handed| handed.sequence == sequence))
    }

    pub(super) async fn counts(&self) -> Result<BTreeMap<String, Counts>, StoreError> {
        let now = self.about_now().await?;
        let mut counts = BTreeMap::<String, Counts>::new();
        for state in State::ALL {
            let (mut from, mut read) = (1, 0);
            loop {
                let page = self
                    .wire
                    .page(&self.subjects.all_of(state), from, PAGE)
                    .await?;
                let Some(last) = page.last() else {
                    break;
                };
                (from, read) = (last.sequence + 1, read + page.len());
                if read > COUNT_MAX {
                    return Err(StoreError::refused(
                        "there are more than 100,000 of a state",
                    ));
                }
                for kept in page {
                    if let Some(look) = self.look_of(state, kept, now) {
                        counts.entry(look.terms.queue).or_default().add(state, 1);
                    }
                }
            }
        }
        Ok(counts)
    }

    /// The contents of a message; nothing if its time is over, or it is a blank.
    fn look_of(&self, state: State, kept: Kept, now: Timestamp) -> Option<Look> {
        match state {
            State::Done => {
                let id = id_of(&kept.subject)?;
                finished(kept, now).map(|finished| finished.look(&id))
            }
            State::Dead => Some(self.letter_in(kept).look()),
            _ => {
                let (id, _) = self.subjects.named(&kept.subject);
                is_task(&kept).then(|| task(&id, state, kept))
            }
        }
    }
}
