//! Many futures in one: those that were woken are polled, the others cost nothing.
//!
//! Each future has a waker of its own. It puts the future's place into a list and wakes whoever
//! polls the swarm.
//!
//! No wake-up is lost: the poller first says how it is woken and then takes the list; whoever wakes
//! a future first puts it into the list and then reads whom to wake. Both are under one lock. A
//! future is in the list once at most, so the list is no longer than there are futures (and those
//! that have ended since).

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::quiet::forget_quietly;
use crate::sync::{AtomicBool, Mutex, Ordering::SeqCst, lock};

/// A future that has nothing to say in the end.
pub(crate) type Work<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Futures of one poller.
pub(crate) struct Swarm<'a> {
    places: Vec<Option<Place<'a>>>,
    free: Vec<usize>,
    woken: Arc<Woken>,
}

struct Place<'a> {
    work: Work<'a>,
    bell: Arc<Bell>,
    waker: Waker,
}

/// Who is to be polled, and by whom.
struct Woken(Mutex<List>);

struct List {
    bells: Vec<Arc<Bell>>,
    poller: Option<Waker>,
    /// Whether the swarm is no more: the list stays empty.
    over: bool,
}

/// What wakes one future.
struct Bell {
    place: usize,
    rung: AtomicBool,
    woken: Arc<Woken>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.rung.swap(true, SeqCst) {
            let woken = Arc::clone(&self.woken);
            woken.wake(self);
        }
    }
}

impl Woken {
    /// Has the poller poll a future.
    fn wake(&self, bell: Arc<Bell>) {
        let mut list = lock(&self.0);
        if list.over {
            return;
        }
        list.bells.push(bell);
        let poller = list.poller.clone();
        drop(list);
        if let Some(poller) = poller {
            poller.wake();
        }
    }
}

impl<'a> Swarm<'a> {
    pub(crate) fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            woken: Arc::new(Woken(Mutex::new(List {
                bells: Vec::new(),
                poller: None,
                over: false,
            }))),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether a future was woken and not polled since.
    #[cfg(feature = "system")]
    pub(crate) fn is_woken(&self) -> bool {
        !lock(&self.woken.0).bells.is_empty()
    }

    /// Adds a future, to be polled soon.
    pub(crate) fn push(&mut self, work: Work<'a>) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        let bell = Arc::new(Bell {
            place,
            rung: AtomicBool::new(false),
            woken: Arc::clone(&self.woken),
        });
        let waker = Waker::from(Arc::clone(&bell));
        Arc::clone(&bell).wake();
        self.places[place] = Some(Place { work, bell, waker });
    }

    /// Polls each future that was woken, once. A panic ends the future that it comes from.
    pub(crate) fn poll(&mut self, poller: &Waker) {
        for bell in self.take_woken(poller) {
            let Some(Some(place)) = self.places.get_mut(bell.place) else {
                continue;
            };
            if !Arc::ptr_eq(&place.bell, &bell) {
                // Another one has its place now.
                continue;
            }
            // From here on it can be woken again.
            bell.rung.store(false, SeqCst);
            let mut context = Context::from_waker(&place.waker);
            let polled = catch_unwind(AssertUnwindSafe(|| place.work.as_mut().poll(&mut context)));
            match polled {
                Ok(Poll::Pending) => continue,
                Ok(Poll::Ready(())) => {}
                Err(panic) => forget_quietly(panic),
            }
            self.end(bell.place);
        }
    }

    fn take_woken(&self, poller: &Waker) -> Vec<Arc<Bell>> {
        let mut list = lock(&self.woken.0);
        let known = list.poller.as_ref();
        let old = if known.is_some_and(|known| known.will_wake(poller)) {
            None
        } else {
            list.poller.replace(poller.clone())
        };
        let bells = std::mem::take(&mut list.bells);
        drop(list);
        drop(old);
        bells
    }

    fn end(&mut self, place: usize) {
        let ended = self.places[place].take();
        self.free.push(place);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(ended))) {
            forget_quietly(panic);
        }
    }
}

impl Drop for Swarm<'_> {
    fn drop(&mut self) {
        for place in 0..self.places.len() {
            self.end(place);
        }
        let mut list = lock(&self.woken.0);
        list.over = true;
        // The bells know the list, which knows them.
        let left = (list.poller.take(), std::mem::take(&mut list.bells));
        drop(list);
        drop(left);
    }
}
