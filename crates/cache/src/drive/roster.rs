//! The caches that share a driver which is a task: each is a future in one swarm, as long as somebody polls that.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use crate::core::inner::Inner;
use crate::core::parties::{Kind, Party};
use crate::core::waiting::Waiting;
use crate::drive::cycle::Role;
use crate::drive::swarm::{Swarm, Work};
use crate::drive::turns::Pace;
use crate::sync::{Mutex, lock};

/// The runtime's timer, whatever its type.
pub(crate) type Sleeper = Arc<dyn Fn(Duration) -> Work<'static> + Send + Sync>;

/// A cache as a shared driver sees it.
pub(crate) trait Member: Send + Sync {
    /// A future that drives it.
    fn work(self: Arc<Self>, sleep: Sleeper) -> Work<'static>;
}

impl<K, V, S> Member for Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn work(self: Arc<Self>, sleep: Sleeper) -> Work<'static> {
        Box::pin(self.drive_as_task(Pace::SHARED, move |duration| sleep(duration)))
    }
}

impl<K, V, S> Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Drives the cache as a task, which is at work for it from its first poll on; not where threads do it, whose
    /// alarm it would take over.
    pub(crate) async fn drive_as_task<F: Future<Output = ()>>(
        self: Arc<Self>,
        pace: Pace,
        sleep: impl Fn(Duration) -> F,
    ) {
        if self.requests.has_threads() {
            return;
        }
        let _party = Party::join(Arc::clone(&self) as _, Kind::Task);
        self.drive(Role::Whole, pace, sleep).await;
    }
}

/// The caches of one shared driver.
pub(crate) struct Roster {
    state: Mutex<State>,
    /// Who polls it.
    pollers: Waiting,
}

struct State {
    /// By number, in the order in which they joined.
    members: BTreeMap<u64, Weak<dyn Member>>,
    next: u64,
    /// How many members there are when those that are gone are looked for.
    full_at: usize,
    /// Whether nobody joins any more.
    over: bool,
}

/// Members that a roster has before it looks for those that are gone.
const FULL_AT_FIRST: usize = 32;

impl std::fmt::Debug for Roster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Roster")
    }
}

impl Roster {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                members: BTreeMap::new(),
                next: 0,
                full_at: FULL_AT_FIRST,
                over: false,
            }),
            pollers: Waiting::new(),
        }
    }

    pub(crate) fn join(&self, member: Weak<dyn Member>) {
        let mut state = lock(&self.state);
        let number = state.next;
        state.next += 1;
        state.members.insert(number, member);
        state.prune();
        drop(state);
        self.pollers.wake_all();
    }

    pub(crate) fn end(&self) {
        lock(&self.state).over = true;
        self.pollers.wake_all();
    }

    /// Drives all members, until they are closed and nobody joins any more.
    pub(crate) async fn drive(&self, sleep: Sleeper) {
        let mut swarm = Swarm::new();
        let mut place = self.pollers.place();
        let mut seen = 0;
        poll_fn(|context| {
            // First known, then a look: who joins is seen, or wakes this.
            place.wait(context.waker());
            let (newcomers, over) = self.newcomers(&mut seen);
            for member in newcomers {
                swarm.push(member.work(Arc::clone(&sleep)));
            }
            swarm.poll(context.waker());
            if over && swarm.len() == 0 {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    /// Those who joined since the last look, and whether they are the last.
    fn newcomers(&self, seen: &mut u64) -> (Vec<Arc<dyn Member>>, bool) {
        let state = lock(&self.state);
        let newcomers = state
            .members
            .range(*seen..)
            .filter_map(|(_, member)| member.upgrade());
        let newcomers = newcomers.collect();
        *seen = state.next;
        (newcomers, state.over)
    }
}

impl State {
    /// Forgets those that are gone, once there are twice as many as after the last time.
    fn prune(&mut self) {
        if self.members.len() < self.full_at {
            return;
        }
        self.members.retain(|_, member| member.strong_count() > 0);
        self.full_at = (2 * self.members.len()).max(FULL_AT_FIRST);
    }
}
