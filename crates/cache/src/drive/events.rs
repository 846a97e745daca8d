//! The listener's thread, for one cache of those that it works for.

use std::future::poll_fn;
use std::hash::{BuildHasher, Hash};
use std::task::Poll;

use crate::core::inner::Inner;
use crate::drive::turns::yield_now;
use crate::events::delivery::Delivered;
use crate::sync::Ordering::SeqCst;

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Tells the listener whenever there is something to tell, until the cache is closed and all is
    /// told.
    pub(crate) async fn drive_events(&self, budget: usize) {
        loop {
            let emptied = self.requests.emptied.load(SeqCst);
            // It does not wait for its turn: whoever has it sees that, and wakes this future
            // afterwards.
            let told = self.deliver_some(false, budget);
            if matches!(told, Delivered::Some | Delivered::Again) {
                yield_now().await;
                continue;
            }
            if emptied {
                return;
            }
            self.wait_for_events().await;
        }
    }

    async fn wait_for_events(&self) {
        poll_fn(|context| {
            self.requests.wake_for_events(context.waker());
            let wanted = self.delivery.wanted.load(SeqCst);
            if wanted || self.requests.emptied.load(SeqCst) {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}
