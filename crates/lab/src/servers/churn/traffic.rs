//! The stream of SETs: new keys without end, each with a time to live of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ledger::Ledger;
use crate::rng::Rng;
use crate::servers::driver::Traffic;
use crate::servers::keys::{Key, Ttl, encode_set};

/// The batch that a connection has under way.
#[derive(Clone, Debug, Default)]
struct Batch {
    first_id: u64,
    px: Vec<u64>,
}

/// Four closed loops of batches, or however many there are.
#[derive(Debug)]
pub(super) struct Load {
    rng: Rng,
    px: (u64, u64),
    pipeline: usize,
    under_way: Vec<Batch>,
    next_id: u64,
    ledger: Arc<Ledger>,
}

impl Load {
    pub(super) fn new(
        rng: Rng,
        px_ms: (u64, u64),
        connections: usize,
        pipeline: usize,
        ledger: Arc<Ledger>,
    ) -> Self {
        Self {
            rng,
            px: px_ms,
            pipeline,
            under_way: vec![Batch::default(); connections],
            next_id: 0,
            ledger,
        }
    }
}

impl Traffic for Load {
    fn fill(&mut self, connection: usize, _: u64, out: &mut Vec<u8>) -> usize {
        let batch = &mut self.under_way[connection];
        batch.first_id = self.next_id;
        batch.px.clear();
        for id in self.next_id..self.next_id + self.pipeline as u64 {
            let px = self.rng.between(self.px.0, self.px.1);
            batch.px.push(px);
            encode_set(out, Key::dying(id), Ttl::Px(px));
        }
        self.next_id += self.pipeline as u64;
        self.pipeline
    }

    fn answered(&mut self, connection: usize, sent_ns: u64, now_ns: u64) {
        let batch = &mut self.under_way[connection];
        for &px in &batch.px {
            self.ledger.book(sent_ns, px);
        }
        let count = batch.px.len() as u64;
        self.ledger.confirmed.fetch_add(count, Ordering::Relaxed);
        // The server may have read the last of the batch as late as now.
        let longest_ns = batch.px.iter().max().unwrap_or(&0) * 1_000_000;
        let last_ns = &self.ledger.last_deadline_ns;
        last_ns.fetch_max(now_ns + longest_ns, Ordering::Relaxed);
        batch.first_id = u64::MAX;
        let oldest = self.under_way.iter().map(|batch| batch.first_id).min();
        let settled = oldest.unwrap_or(u64::MAX).min(self.next_id);
        self.ledger.settled.store(settled, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_settled_while_an_older_batch_is_under_way() {
        let ledger = Arc::new(Ledger::new(0, 100, 50));
        let mut load = Load::new(Rng::new(1), (10, 20), 2, 4, Arc::clone(&ledger));
        let mut out = Vec::new();
        let settled = || ledger.settled.load(Ordering::Relaxed);
        assert_eq!(load.fill(0, 0, &mut out), 4);
        assert_eq!(load.fill(1, 0, &mut out), 4);
        load.answered(1, 0, 1);
        assert_eq!(settled(), 0);
        load.answered(0, 0, 1);
        assert_eq!(settled(), 8);
        load.fill(0, 0, &mut out);
        assert_eq!(settled(), 8);
        assert_eq!(ledger.confirmed.load(Ordering::Relaxed), 8);
    }
}
