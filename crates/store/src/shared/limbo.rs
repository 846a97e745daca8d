//! Memory waits here until no reader can be in it.
//!
//! An example: a writer unlinks a block and retires it. Reader 3 is pinned: its count is 7, and odd
//! counts are pinned. The block's bag notes "3: 7". When the count of 3 is no longer 7, the block
//! is freed. A reader that pins itself later cannot meet the block, because it was unlinked before.
//!
//! *Later* has to be the same for both. A reader stores its count and then reads a pointer. The
//! collector has stored the pointer, and then reads the count. Without a fence between, each could
//! miss the other's store. A fence in the reader would cost more than its lock. So the collector
//! asks the kernel for one in every running thread of the process (`membarrier`), once for a bag.
//! Where there is no such call, nothing is shared with readers.
//!
//! At most [`BAG_BYTES`] wait in the open bag of a process. Closed ones wait for readers that were
//! pinned, which run no code of users meanwhile. Whoever retires or tidies looks whether they have
//! let go, and so does a store that leads nobody.
//!
//! A reader may stand still: stopped by a debugger, or starved by other threads. When more than
//! [`HELD_BYTES`] wait, limbo is *full* ([`is_full`]): stores lead readers to nothing any more as
//! soon as they free memory, and their new memory is not shared. It is freed as usual. So what
//! waits is bounded by that, and by what was shared then. Once half of it is free, a store that is
//! changed leads readers again.
//!
//! A kernel that had the call may refuse it later, for example under a new filter of system calls.
//! Then limbo is full for ever, and what waits stays.
//!
//! Sources: Fraser, "Practical lock-freedom" (2004), for epochs; Desnoyers et al., "User-Level
//! Implementations of Read-Copy Update" (2012), for the fence by system call.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::memory::BlockMemory;
use super::seats::{SEATS, known_seat, seat};

/// A bag is closed when it holds this much: one fence for it.
const BAG_BYTES: usize = 256 * 1024;

/// Or this many blocks.
const BAG_BLOCKS: usize = 512;

/// When more than this waits in closed bags, limbo is full.
pub(super) const HELD_BYTES: usize = if cfg!(test) { 4 << 20 } else { 64 << 20 };

/// Of one thread: odd while it is pinned.
#[repr(align(128))]
struct Count(AtomicU64);

static COUNTS: [Count; SEATS] = [const { Count(AtomicU64::new(0)) }; SEATS];

/// While it lives, nothing is freed that this thread can reach.
pub(super) struct Pin(&'static Count);

impl Pin {
    /// Pins this thread. `None` if it has no number of its own, or is pinned.
    #[inline(always)]
    pub(super) fn enter() -> Option<Self> {
        match COUNTS.get(known_seat()) {
            Some(own) => Self::at(own),
            None => Self::enter_apart(),
        }
    }

    /// As [`enter`](Self::enter), of a thread that has not asked for its number yet, or has none.
    #[cold]
    #[inline(never)]
    fn enter_apart() -> Option<Self> {
        Self::at(COUNTS.get(seat())?)
    }

    #[inline(always)]
    fn at(own: &'static Count) -> Option<Self> {
        let count = own.0.load(Relaxed);
        if count & 1 == 1 {
            return None;
        }
        // Whoever reads this count, and not the one before it, has to see that the thread had let
        // go: so it is a release.
        own.0.store(count.wrapping_add(1), Release);
        // The collector's system call makes a fence of it.
        if cfg!(miri) {
            fence(Ordering::SeqCst);
        } else {
            compiler_fence(Ordering::SeqCst);
        }
        Some(Self(own))
    }
}

impl Drop for Pin {
    #[inline(always)]
    fn drop(&mut self) {
        let count = self.0.0.load(Relaxed);
        self.0.0.store(count.wrapping_add(1), Release);
    }
}

/// Blocks that were unlinked before one fence, and who was pinned then.
struct Bag {
    blocks: Vec<BlockMemory>,
    bytes: usize,
    pinned: Vec<(usize, u64)>,
}

impl Bag {
    /// Returns whether all threads that were pinned have let go since.
    fn is_free(&mut self) -> bool {
        self.pinned
            .retain(|&(seat, count)| COUNTS[seat].0.load(Acquire) == count);
        self.pinned.is_empty()
    }
}

struct Limbo {
    open: Vec<BlockMemory>,
    bytes: usize,
    closed: VecDeque<Bag>,
}

static LIMBO: Mutex<Limbo> = Mutex::new(Limbo {
    open: Vec::new(),
    bytes: 0,
    closed: VecDeque::new(),
});

/// The number of bytes in closed bags.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// True if the kernel has refused a fence. Then what is retired stays for ever.
static BROKEN: AtomicBool = AtomicBool::new(false);

fn limbo() -> MutexGuard<'static, Limbo> {
    LIMBO.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frees a block when no reader can be in it any more.
///
/// # Safety
///
/// Nothing leads to it any more: a reader that pins itself from now on cannot meet it.
pub(super) unsafe fn retire(memory: BlockMemory) {
    let mut limbo = limbo();
    limbo.bytes += memory.bytes();
    limbo.open.push(memory);
    let is_full = limbo.bytes >= BAG_BYTES || limbo.open.len() >= BAG_BLOCKS;
    if is_full {
        limbo.close();
    }
    let free = limbo.take_free();
    drop(limbo);
    drop(free);
}

/// Frees what waited for a reader that has let go since, unless another thread is at it. Nobody
/// else looks while nothing is retired.
pub(crate) fn look_again() {
    if HELD.load(Relaxed) == 0 {
        return;
    }
    let mut limbo = match LIMBO.try_lock() {
        Ok(limbo) => limbo,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    let free = limbo.take_free();
    drop(limbo);
    drop(free);
}

/// Returns whether so much waits that no more memory should be shared.
pub(crate) fn is_full() -> bool {
    is_broken() || HELD.load(Relaxed) > HELD_BYTES
}

/// Returns whether so little waits that memory may be shared again.
pub(crate) fn has_room() -> bool {
    !is_broken() && HELD.load(Relaxed) <= HELD_BYTES / 2
}

fn is_broken() -> bool {
    BROKEN.load(Relaxed)
}

impl Limbo {
    /// Closes the open bag. Without the fence nobody knows who is pinned: then the bag stays open.
    fn close(&mut self) {
        if is_broken() {
            return;
        }
        if !fence_all() {
            BROKEN.store(true, Relaxed);
            return;
        }
        let pinned = COUNTS.iter().map(|count| count.0.load(Acquire)).enumerate();
        let pinned = pinned.filter(|(_, count)| count & 1 == 1).collect();
        let bag = Bag {
            blocks: std::mem::take(&mut self.open),
            bytes: std::mem::take(&mut self.bytes),
            pinned,
        };
        HELD.fetch_add(bag.bytes, Relaxed);
        self.closed.push_back(bag);
    }

    /// Takes out the bags that nobody can be in, the oldest first, to the first one that somebody
    /// may be in.
    fn take_free(&mut self) -> Vec<BlockMemory> {
        let mut free = Vec::new();
        while self.closed.front_mut().is_some_and(Bag::is_free) {
            let Some(bag) = self.closed.pop_front() else {
                break;
            };
            HELD.fetch_sub(bag.bytes, Relaxed);
            free.extend(bag.blocks);
        }
        free
    }
}

/// Returns whether readers without a lock are possible here. Asks the kernel once.
pub(crate) fn is_possible() -> bool {
    !is_broken() && has_fences()
}

fn has_fences() -> bool {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use std::sync::OnceLock;

        use rustix::thread::{MembarrierCommand, membarrier};
        static POSSIBLE: OnceLock<bool> = OnceLock::new();
        *POSSIBLE.get_or_init(|| {
            membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok() && fence_all()
        })
    }
    #[cfg(any(not(target_os = "linux"), miri))]
    {
        cfg!(miri)
    }
}

/// A fence in every running thread of this process; `false` if there was none.
fn fence_all() -> bool {
    #[cfg(all(test, any(target_os = "linux", miri)))]
    if tests::REFUSES.load(Relaxed) {
        return false;
    }
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::thread::{MembarrierCommand, membarrier};
        membarrier(MembarrierCommand::PrivateExpedited).is_ok()
    }
    #[cfg(any(not(target_os = "linux"), miri))]
    {
        fence(Ordering::SeqCst);
        cfg!(miri)
    }
}

#[cfg(all(test, any(target_os = "linux", miri)))]
pub(super) mod tests {
    use super::*;

    /// Has the kernel refuse fences from now on.
    pub(in crate::shared) static REFUSES: AtomicBool = AtomicBool::new(false);

    /// Returns whether closed bags wait.
    pub(in crate::shared) fn is_waiting() -> bool {
        HELD.load(Relaxed) > 0
    }

    /// Bytes that wait, without the open bag.
    pub(in crate::shared) fn held() -> usize {
        HELD.load(Relaxed)
    }

    /// Blocks that wait.
    pub(in crate::shared) fn waiting() -> usize {
        let limbo = limbo();
        let closed: usize = limbo.closed.iter().map(|bag| bag.blocks.len()).sum();
        limbo.open.len() + closed
    }
}
