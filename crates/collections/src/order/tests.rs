//! Random operations against a sorted vector, compared after every step.

use super::Order;

/// Members by id: the score of each. Equal scores are ordered by id.
struct Model {
    scores: Vec<f64>,
    sorted: Vec<u32>,
    order: Order,
}

fn next(random: &mut u64) -> u64 {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    *random
}

impl Model {
    fn new() -> Self {
        Self {
            scores: Vec::new(),
            sorted: Vec::new(),
            order: Order::new(),
        }
    }

    fn key(&self, id: u32) -> (f64, u32) {
        (self.scores[id as usize], id)
    }

    fn rank(&self, id: u32) -> usize {
        let key = self.key(id);
        let rank = self.sorted.partition_point(|other| self.key(*other) < key);
        let before = |score: f64, other| {
            let own = self.scores[other as usize];
            assert!(score == own, "a stale score");
            (own, other) < key
        };
        assert_eq!(self.order.rank(before), rank);
        rank
    }

    fn insert(&mut self, score: f64) {
        let id = self.scores.len() as u32;
        self.scores.push(score);
        let rank = self.rank(id);
        self.sorted.insert(rank, id);
        let scores = &self.scores;
        self.order.insert(id, score, |_, other| {
            (scores[other as usize], other) < (score, id)
        });
    }

    fn remove(&mut self, rank: usize) {
        let id = self.sorted.remove(rank);
        let (scores, score) = (&self.scores, self.scores[id as usize]);
        let removed = self.order.remove(id, |_, other| {
            other != id && (scores[other as usize], other) < (score, id)
        });
        assert!(removed);
    }

    /// The member moves: the same score and place, another id that sorts alike.
    fn replace(&mut self, rank: usize) {
        let old = self.sorted[rank];
        let score = self.scores[old as usize];
        if self
            .sorted
            .iter()
            .filter(|id| self.scores[**id as usize] == score)
            .count()
            > 1
        {
            return;
        }
        let new = self.scores.len() as u32;
        self.scores.push(score);
        self.sorted[rank] = new;
        let scores = &self.scores;
        self.order.replace(old, new, score, |_, other| {
            other != old && scores[other as usize] < score
        });
    }

    fn remove_run(&mut self, rank: usize, max: usize) {
        let mut removed = Vec::new();
        self.order.remove_run(rank, max, &mut removed);
        assert!(removed.len() <= max && (removed.is_empty() == (rank >= self.sorted.len())));
        let expected: Vec<u32> = self.sorted.drain(rank..rank + removed.len()).collect();
        assert_eq!(removed, expected);
    }

    fn compare(&self) {
        assert_eq!(self.order.len(), self.sorted.len());
        assert_eq!(self.order.first(), self.sorted.first().copied());
        assert_eq!(self.order.last(), self.sorted.last().copied());
        assert!(
            self.order
                .forward(0, |_| ())
                .eq(self.sorted.iter().copied())
        );
        let precedes = |a, b| self.key(a).0 <= self.key(b).0;
        self.order.validate(|id| self.scores[id as usize], precedes);
        let len = self.sorted.len();
        for rank in [0, len / 3, len / 2, len.saturating_sub(1), len] {
            assert_eq!(self.order.at(rank), self.sorted.get(rank).copied());
            let tail = &self.sorted[rank..];
            assert!(self.order.forward(rank, |_| ()).eq(tail.iter().copied()));
            if rank < len {
                let head = self.sorted[..=rank].iter().rev().copied();
                assert!(self.order.backward(rank, |_| ()).eq(head));
            }
        }
    }
}

#[test]
fn the_tree_behaves_like_a_sorted_vector() {
    for seed in 1..=40u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut model = Model::new();
        // Few different scores, or many; growing, then shrinking.
        let scores = [3, 200, u64::MAX][seed as usize % 3];
        for step in 0..3_000 {
            let shrinks = step / 1_000 % 2 == 1 || step > 2_700;
            let len = model.sorted.len();
            let rank = next(&mut random) as usize % len.max(1);
            match next(&mut random) % 16 {
                0..10 if !shrinks => model.insert((next(&mut random) % scores) as f64),
                10 if len > 0 => model.replace(rank),
                11 => model.remove_run(rank, 1 + next(&mut random) as usize % 9),
                _ if shrinks && len > 0 && next(&mut random).is_multiple_of(64) => {
                    model.remove_run(rank, 500);
                }
                _ if len > 0 => model.remove(rank),
                _ => {}
            }
            if step % 7 == 0 {
                model.compare();
            }
        }
        while !model.sorted.is_empty() {
            model.remove_run(0, 1_000);
        }
        model.compare();
        assert!(
            model.order.bytes() < 1024,
            "seed {seed}: memory is held by nothing"
        );
    }
}

#[test]
fn members_may_come_in_order() {
    for direction in [1.0, -1.0] {
        let mut model = Model::new();
        for i in 0..3_000 {
            model.insert(direction * f64::from(i));
            if i % 10 == 0 {
                model.compare();
            }
        }
    }
}
