//! The caches that share a driver which is a task: each is a future in one swarm, as long as
//! somebody polls that.
//!
//! Most programs have none. `#[inline]` says that it is compiled with those that have, and not with
//! this crate.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::panic::resume_unwind;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use crate::core::inner::Inner;
use crate::core::parties::{Kind, Party};
use crate::core::waiting::Waiting;
use crate::drive::background::Background;
use crate::drive::cycle::{AtOnce, InTurns};
use crate::drive::sleeper::Sleeper;
use crate::drive::swarm::{Swarm, Work};
use crate::drive::turns::Pace;
use crate::quiet::forget_quietly;
use crate::sync::{Mutex, lock};

/// A cache as a shared driver sees it.
pub(crate) trait Member: Send + Sync {
    /// A future that drives it, and is at work for it from now on.
    fn work(self: Arc<Self>, sleeper: Sleeper) -> Work<'static>;
}

impl<K, V, S> Member for Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn work(self: Arc<Self>, sleeper: Sleeper) -> Work<'static> {
        let sleep = move |duration| sleeper.sleep(duration);
        Box::pin(self.drive_as_task(Pace::SHARED, sleep))
    }
}

impl<K, V, S> Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Drives the cache as a task, which is at work for it from this call on, though nobody has
    /// polled it: it may have been spawned. Not where threads do it, whose alarm it would take
    /// over.
    pub(crate) fn drive_as_task<T, F>(
        self: Arc<Self>,
        pace: Pace,
        sleep: T,
    ) -> impl Future<Output = ()> + use<T, F, K, V, S>
    where
        T: Fn(Duration) -> F,
        F: Future<Output = ()>,
    {
        let drives = !self.requests.has_threads();
        let party = drives.then(|| Party::join(&self, Kind::Task));
        async move {
            // It leaves last.
            let party = party;
            if party.is_none() {
                return;
            }
            let at_helm = self.requests.helm.take().await;
            let background = Background::new(&*self, pace);
            if pace.is_shared() {
                self.drive::<_, _, InTurns>(background, pace, sleep).await;
            } else {
                self.drive::<_, _, AtOnce>(background, pace, sleep).await;
            }
            drop(at_helm);
            drop(party);
        }
    }
}

/// The caches of one shared driver.
pub(crate) struct Roster {
    state: Mutex<State>,
    /// Who polls it.
    pollers: Waiting,
}

struct State {
    members: Vec<Weak<dyn Member>>,
    /// The futures that drive them, polled or not.
    seats: Vec<Arc<Seat>>,
    /// How many members there are when those that are gone are looked for.
    full_at: usize,
    /// Whether nobody joins any more.
    over: bool,
}

/// Where newcomers wait for one future's next poll. Each is driven by it already: if the last
/// handle goes meanwhile, that is the future's to see.
struct Seat {
    sleeper: Sleeper,
    /// `None` once the future is no more.
    newcomers: Mutex<Option<Vec<Work<'static>>>>,
}

/// A future that drives all members, from when it is made until it is dropped.
pub(crate) struct Driving {
    roster: Arc<Roster>,
    seat: Arc<Seat>,
}

/// Members that a roster has before it looks for those that are gone.
const FULL_AT_FIRST: usize = 32;

impl Roster {
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                members: Vec::new(),
                seats: Vec::new(),
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
        let seats = state.seats.clone();
        drop(state);
        for seat in seats {
            seat.take_in(Arc::clone(member) as _);
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
    /// list that is read here, or sees this seat, and not both.
    #[inline]
    pub(crate) fn begin(self: Arc<Self>, sleeper: Sleeper) -> Driving {
        let seat = Arc::new(Seat {
            sleeper,
            newcomers: Mutex::new(Some(Vec::new())),
        });
        let mut state = lock(&self.state);
        state.seats.push(Arc::clone(&seat));
        let members: Vec<_> = state.members.iter().filter_map(Weak::upgrade).collect();
        drop(state);
        for member in members {
            seat.take_in(member);
        }
        Driving { roster: self, seat }
    }

    #[inline]
    fn leave(&self, seat: &Arc<Seat>) {
        let mut state = lock(&self.state);
        state.seats.retain(|other| !Arc::ptr_eq(other, seat));
    }
}

impl Seat {
    #[inline]
    fn take_in(&self, member: Arc<dyn Member>) {
        let work = member.work(self.sleeper.clone());
        let mut newcomers = lock(&self.newcomers);
        let refused = match &mut *newcomers {
            Some(newcomers) => {
                newcomers.push(work);
                None
            }
            None => Some(work),
        };
        drop(newcomers);
        // Not under the lock: it may be the last at work for its cache.
        drop(refused);
    }

    #[inline]
    fn newcomers(&self) -> Vec<Work<'static>> {
        let mut newcomers = lock(&self.newcomers);
        newcomers.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Ends the work for those who were never driven.
    #[inline]
    fn close(&self) {
        let newcomers = lock(&self.newcomers).take();
        drop(newcomers);
    }
}

impl Driving {
    /// Drives all members, until they are closed and nobody joins any more.
    #[inline]
    pub(crate) async fn run(self) {
        let mut swarm = Swarm::new();
        let mut place = self.roster.pollers.place();
        poll_fn(|context| {
            // First known, then a look: who joins is seen, or wakes this.
            place.wait(context.waker());
            let over = self.roster.is_over();
            for work in self.seat.newcomers() {
                swarm.push(work);
            }
            swarm.poll(context.waker());
            // Without a timer no cache can go on.
            if let Some(panic) = self.seat.sleeper.take_panic() {
                resume_unwind(panic);
            }
            if over && swarm.len() == 0 {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Driving {
    #[inline]
    fn drop(&mut self) {
        self.roster.leave(&self.seat);
        self.seat.close();
        // Of a timer that was dropped with this.
        if let Some(panic) = self.seat.sleeper.take_panic() {
            forget_quietly(panic);
        }
    }
}

impl State {
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
