//! The registry of a shared driver that is a task: it keeps its caches, each of which is a member
//! of one group.
//!
//! Most programs use no such driver. These functions are `#[inline]`, so that they are compiled
//! only into programs that call them.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use crate::core::inner::Inner;
use crate::core::waiting::Waiting;
use crate::core::workers::Driven;
use crate::drive::driving::Driving;
use crate::drive::group::{Group, TaskTimers};
use crate::drive::step::TurnBudget;
use crate::sync::{Mutex, lock};

/// A cache as a shared driver sees it.
pub(crate) trait Member: Send + Sync {
    /// Its driver, which is at work for it from now on.
    fn work(self: Arc<Self>) -> Option<Box<dyn Driven>>;
}

impl<K, V, S> Member for Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn work(self: Arc<Self>) -> Option<Box<dyn Driven>> {
        Some(Box::new(Driving::by_task(self, TurnBudget::SHARED)?))
    }
}

/// The caches of one shared driver.
pub(crate) struct DriverRegistry {
    state: Mutex<RegistryState>,
    /// The tasks that poll drive futures.
    pollers: Arc<Waiting>,
}

struct RegistryState {
    members: Vec<Weak<dyn Member>>,
    /// The queues of the futures that drive them, polled or not.
    queues: Vec<Arc<JoinQueue>>,
    /// The number of members at which those that are gone are pruned.
    full_at: usize,
    /// True if no cache joins any more.
    over: bool,
}

/// The queue of new members that wait for one future's next poll; `None` once the future is no
/// more. Each has its worker guard already, so its cache does not end while it waits here, even if
/// the last handle goes.
struct JoinQueue(Mutex<Option<Vec<Box<dyn Driven>>>>);

/// A future that drives all members, from when it is made until it is dropped.
pub(crate) struct DriveFuture {
    registry: Arc<DriverRegistry>,
    queue: Arc<JoinQueue>,
}

/// Members that a registry has before it looks for those that are gone.
const FULL_AT_FIRST: usize = 32;

impl DriverRegistry {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(RegistryState {
                members: Vec::new(),
                queues: Vec::new(),
                full_at: FULL_AT_FIRST,
                over: false,
            }),
            pollers: Waiting::new(),
        }
    }

    /// A cache joins: whatever futures there are drive it.
    pub(crate) fn join(&self, member: &Arc<impl Member + 'static>) {
        let weak: Weak<dyn Member> = Arc::downgrade(member) as _;
        let mut state = lock(&self.state);
        state.members.push(weak);
        state.prune();
        let queues = state.queues.clone();
        drop(state);
        for queue in queues {
            queue.add(Arc::clone(member) as _);
        }
        self.pollers.wake_all();
    }

    pub(crate) fn end(&self) {
        lock(&self.state).over = true;
        self.pollers.wake_all();
    }

    #[inline]
    fn is_over(&self) -> bool {
        lock(&self.state).over
    }

    /// A future for all members that there are, and those that join. Who joins meanwhile is in the
    /// list that is read here, or sees this queue, and not both.
    #[inline]
    pub(crate) fn begin(self: Arc<Self>) -> DriveFuture {
        let queue = Arc::new(JoinQueue(Mutex::new(Some(Vec::new()))));
        let mut state = lock(&self.state);
        state.queues.push(Arc::clone(&queue));
        let members: Vec<_> = state.members.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        for member in members {
            queue.add(member);
        }
        DriveFuture {
            registry: self,
            queue,
        }
    }
}

impl JoinQueue {
    #[inline]
    fn add(&self, member: Arc<dyn Member>) {
        let work = member.work();
        let mut joined = lock(&self.0);
        let refused = match &mut *joined {
            Some(joined) => {
                joined.extend(work);
                None
            }
            None => work,
        };
        drop(joined);
        // Not under the lock: it may be the last at work for its cache.
        drop(refused);
    }

    #[inline]
    fn joined(&self) -> Vec<Box<dyn Driven>> {
        let mut joined = lock(&self.0);
        joined.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl DriveFuture {
    /// Drives all members, until they are closed and no cache joins any more.
    #[inline]
    pub(crate) async fn run<T: Fn(Duration) -> F, F: Future<Output = ()>>(self, sleep: T) {
        let mut group = Group::new(TaskTimers::new(sleep));
        let mut place = self.registry.pollers.place();
        poll_fn(|context| {
            // The waker is registered before the look: a cache that joins after the look wakes
            // this.
            place.wait(context.waker());
            let over = self.registry.is_over();
            for work in self.queue.joined() {
                group.push(work);
            }
            group.poll(context.waker());
            if over && group.len() == 0 {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

impl Drop for DriveFuture {
    #[inline]
    fn drop(&mut self) {
        let mut state = lock(&self.registry.state);
        state
            .queues
            .retain(|other| !Arc::ptr_eq(other, &self.queue));
        drop(state);
        // The work ends for those who were never driven.
        let joined = lock(&self.queue.0).take();
        drop(joined);
    }
}

impl RegistryState {
    /// Forgets those that are gone, once there are twice as many as after the last time.
    #[inline]
    fn prune(&mut self) {
        if self.members.len() < self.full_at {
            return;
        }
        self.members.retain(|member| member.strong_count() > 0);
        self.full_at = (2 * self.members.len()).max(FULL_AT_FIRST);
    }
}
