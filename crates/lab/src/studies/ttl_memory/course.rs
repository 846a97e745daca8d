//! The events of a cache without a limit: the requests, resolved once for all strategies.
//!
//! Without a limit every strategy answers alike, since none shows an object whose time is over. So
//! hits and misses can be settled first, and the strategies differ only in what they hold
//! meanwhile.
//!
//! **Invariant: an object is alive while now is before its deadline**, here and in every strategy.

use std::collections::HashMap;

use crate::hit_ratios::bounds::{Event, Hasher, Object, RequestKind};

/// Time between two samples of the memory held.
pub(super) const SAMPLE_MS: u64 = 1_000;

/// One request: a read, or a write whatever is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// The time since the beginning; requests are in the order of time.
    pub(super) at_ms: u64,
    pub(super) key: u64,
    pub(super) writes: bool,
    /// The object that is stored, by a read if nothing was there.
    pub(super) object: Object,
}

/// All events, and the memory that they take at least.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) events: Vec<Event>,
    /// Bytes alive at every sample, from 0 to the end.
    pub(super) live: Vec<u64>,
    /// Objects alive, on average.
    pub(super) live_objects_mean: f64,
    pub(super) gets: u64,
    pub(super) hits: u64,
}

/// An object from its storing to its death or replacement.
#[derive(Clone, Copy, Debug)]
struct Life {
    object: Object,
    from_ms: u64,
    until_ms: u64,
}

impl Course {
    /// Resolves requests; time goes on to `end_ms` after the last of them.
    pub(super) fn of(requests: &[Request], end_ms: u64) -> Self {
        let mut course = Self {
            events: Vec::with_capacity(requests.len()),
            live: Vec::new(),
            live_objects_mean: 0.0,
            gets: 0,
            hits: 0,
        };
        let lives = course.resolve(requests);
        let samples = (end_ms / SAMPLE_MS) as usize + 1;
        let objects = levels(&lives, samples, |_| 1);
        course.live_objects_mean = objects.iter().sum::<u64>() as f64 / samples as f64;
        course.live = levels(&lives, samples, |life| u64::from(life.object.bytes));
        course
    }

    /// Settles what each request finds. Returns the objects that there were.
    fn resolve(&mut self, requests: &[Request]) -> Vec<Life> {
        let mut lives: Vec<Life> = Vec::new();
        let mut latest: HashMap<u64, usize, Hasher> = HashMap::default();
        for request in requests {
            let Request { at_ms, key, .. } = *request;
            let mut push = |what| self.events.push(Event { at_ms, key, what });
            let alive = latest.get(&key).map(|&life| &mut lives[life]);
            let alive = alive.filter(|life| life.until_ms > at_ms);
            self.gets += u64::from(!request.writes);
            match alive {
                Some(life) if request.writes => life.until_ms = at_ms,
                Some(life) => {
                    self.hits += 1;
                    push(RequestKind::Hit(life.object));
                    continue;
                }
                None if request.writes => {}
                None => push(RequestKind::Miss),
            }
            let object = request.object;
            push(RequestKind::Store(object));
            latest.insert(key, lives.len());
            lives.push(Life {
                object,
                from_ms: at_ms,
                until_ms: object.deadline_ms,
            });
        }
        lives
    }
}

/// The sum over the lives at each sample that have begun and not ended.
fn levels(lives: &[Life], samples: usize, size: impl Fn(&Life) -> u64) -> Vec<u64> {
    let mut changes = vec![0_i64; samples + 1];
    let sample_after = |ms: u64| (ms.div_ceil(SAMPLE_MS) as usize).min(samples);
    for life in lives {
        let size = size(life).cast_signed();
        changes[sample_after(life.from_ms)] += size;
        changes[sample_after(life.until_ms)] -= size;
    }
    let mut level = 0;
    let sum = |change: &i64| {
        level += change;
        level.cast_unsigned()
    };
    changes[..samples].iter().map(sum).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn set(at_ms: u64, key: u64, bytes: u32, ttl_ms: u64) -> Request {
        request(at_ms, key, true, object(at_ms, bytes, ttl_ms))
    }

    /// A read; what was missing is an object of a byte and a minute.
    pub(in super::super) fn get(at_ms: u64, key: u64) -> Request {
        request(at_ms, key, false, object(at_ms, 1, 60_000))
    }

    fn request(at_ms: u64, key: u64, writes: bool, object: Object) -> Request {
        Request {
            at_ms,
            key,
            writes,
            object,
        }
    }

    fn object(at_ms: u64, bytes: u32, ttl_ms: u64) -> Object {
        let deadline_ms = at_ms + ttl_ms;
        Object { bytes, deadline_ms }
    }

    #[test]
    fn a_small_course_by_hand() {
        let requests = [
            set(0, 1, 100, 3_000),
            set(500, 2, 10, 60_000),
            get(2_500, 1),
            set(4_000, 2, 20, 60_000),
            get(4_500, 3),
            set(5_500, 2, 4, 1_000),
        ];
        let course = Course::of(&requests, 7_000);
        // Key 1 dies at 3 s; key 2 is replaced at 4 s and 5.5 s, and dies at 6.5 s; key 3 is
        // fetched at 4.5 s.
        assert_eq!(course.live, [100, 110, 110, 10, 20, 21, 5, 1]);
        assert_eq!((course.gets, course.hits), (2, 1));
        let events: Vec<RequestKind> = course.events.iter().map(|event| event.what).collect();
        let expected = [
            RequestKind::Hit(object(0, 100, 3_000)),
            RequestKind::Store(object(4_000, 20, 60_000)),
            RequestKind::Miss,
            RequestKind::Store(object(4_500, 1, 60_000)),
            RequestKind::Store(object(5_500, 4, 1_000)),
        ];
        assert_eq!(events[2..], expected);
        assert_eq!(course.live_objects_mean, 12.0 / 8.0);
    }
}
