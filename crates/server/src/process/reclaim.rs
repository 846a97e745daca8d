//! A thread that frees big memory, so that no event loop is delayed by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// The most pieces that may wait. The caller drops any more itself.
const QUEUE_MAX: usize = 1024;

/// The most bytes of buffers that may wait, unless one buffer has more. The caller drops any more
/// itself, so that unused memory does not pile up.
const WAITING_MAX: usize = 16 << 20;

/// The least bytes of a buffer that is handed over.
pub(crate) const BUFFER_MIN: usize = 1 << 20;

/// Something whose drop takes time.
pub(crate) type Waste = Box<dyn Send>;

/// The sender to the thread that frees memory.
#[derive(Clone)]
pub(crate) struct Reclaimer {
    queue: SyncSender<Waste>,
    progress: Arc<ReclaimProgress>,
}

/// Counts of the pieces that were handed over and of those that are freed, for INFO.
#[derive(Debug, Default)]
struct ReclaimProgress {
    given: AtomicU64,
    dropped: AtomicU64,
    /// Bytes of the buffers that wait.
    waiting: AtomicUsize,
}

/// A buffer that waits.
struct QueuedBuffer {
    bytes: Vec<u8>,
    progress: Arc<ReclaimProgress>,
}

impl Drop for QueuedBuffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes).capacity();
        self.progress.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Reclaimer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reclaimer")
    }
}

impl Reclaimer {
    /// Starts the thread. It ends when the last giver is gone.
    pub(crate) fn start() -> std::io::Result<(Self, JoinHandle<()>)> {
        let (give, take) = sync_channel(QUEUE_MAX);
        let thread = std::thread::Builder::new().name("reclaim".to_owned());
        let progress = Arc::new(ReclaimProgress::default());
        let counted = Arc::clone(&progress);
        let thread = thread.spawn(move || run(&take, &counted.dropped))?;
        let queue = give;
        Ok((Self { queue, progress }, thread))
    }

    /// Returns a reclaimer without a thread: everything is dropped where it is given.
    #[cfg(test)]
    pub(crate) fn at_once() -> Self {
        let (queue, nobody) = sync_channel(1);
        drop(nobody);
        let progress = Arc::default();
        Self { queue, progress }
    }

    /// Has `waste` dropped elsewhere, or drops it here when too much is waiting already.
    pub(crate) fn drop_later(&self, waste: Waste) {
        // Counted first, so that no more is ever dropped than was given.
        self.progress.given.fetch_add(1, Ordering::Relaxed);
        // A full queue gives the piece back inside the error, which drops it.
        if self.queue.try_send(waste).is_err() {
            self.progress.dropped.fetch_add(1, Ordering::Release);
        }
    }

    /// Pieces that wait or are being dropped.
    pub(crate) fn pending(&self) -> u64 {
        let dropped = self.dropped();
        self.progress
            .given
            .load(Ordering::Relaxed)
            .saturating_sub(dropped)
    }

    /// Pieces dropped since the start.
    pub(crate) fn dropped(&self) -> u64 {
        self.progress.dropped.load(Ordering::Acquire)
    }

    /// Drops a buffer, elsewhere if it is big.
    pub(crate) fn drop_buffer(&self, bytes: Vec<u8>) {
        let waiting = &self.progress.waiting;
        let before = waiting.load(Ordering::Relaxed);
        let fits = before == 0 || before.saturating_add(bytes.capacity()) <= WAITING_MAX;
        if bytes.capacity() >= BUFFER_MIN && fits {
            waiting.fetch_add(bytes.capacity(), Ordering::Relaxed);
            let progress = Arc::clone(&self.progress);
            self.drop_later(Box::new(QueuedBuffer { bytes, progress }));
        }
    }
}

fn run(waste: &Receiver<Waste>, dropped: &AtomicU64) {
    for piece in waste {
        drop(piece);
        dropped.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When hundreds of clients were closed at once, all their outputs waited for this thread.
    #[test]
    fn buffers_that_wait_hold_no_more_than_their_share() {
        let (queue, take) = sync_channel(QUEUE_MAX);
        let progress = Arc::default();
        let reclaimer = Reclaimer { queue, progress };
        let waiting = || reclaimer.progress.waiting.load(Ordering::Relaxed);
        reclaimer.drop_buffer(Vec::with_capacity(WAITING_MAX * 2));
        assert_eq!(waiting(), WAITING_MAX * 2, "one always fits");
        drop(take.recv());
        for _ in 0..100 {
            reclaimer.drop_buffer(Vec::with_capacity(1 << 20));
        }
        assert_eq!((waiting(), reclaimer.pending()), (WAITING_MAX, 17));
        for piece in take.try_iter() {
            drop(piece);
        }
        assert_eq!(waiting(), 0);
    }
}
