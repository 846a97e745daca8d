//! What the shards of a cache share: the rules, the clock, the listener, those who work for it.
//! Here a shard is locked, and here is done what a change leaves to do after unlocking.
//!
//! # One look-up, step by step
//!
//! 1. The key's hash is mixed. The top bits choose the shard, the low 32 bits are the place.
//! 2. The thread takes the shard's reader lock, whose word has a cache line of its own. The index
//!    compares eight places at once. The first that is equal names a slot; nearly always it is the
//!    key's.
//! 3. The coarse clock is read, and then the slot: so its cache line is on its way meanwhile. A
//!    shard of which no entry has a deadline says so beside its lock, and then no clock is read.
//! 4. The key is compared, and the deadline with the clock. Within 50 ms of the deadline the exact
//!    clock is read.
//! 5. The policy counts a hit, unless the count is at its maximum. The value is cloned. The thread
//!    counts in a stripe of its own, whose number is in a thread-local that takes one instruction
//!    to read.
//!
//! An entry that is not in its home bucket, may be over, has attributes, or slides takes a longer
//! way from step 2 or 4 on, compiled apart (`read_closely`). So the usual way is straight and
//! short. Each of its instructions counts twice in a large cache: a processor looks some 400
//! instructions ahead, and so fetches what the next look-up needs while it waits for this one, if
//! they are few enough. Two cache lines of the data are touched: the bucket of the index, and the
//! slot.
//!
//! # A look without the lock
//!
//! Numbers, `bool`, `char`, and arrays of numbers of the usual lengths, are read without the
//! shard's lock, where the kernel knows `membarrier` (Linux). So are other types for which
//! `Builder::read_by_copy` was called. The store's module `shared` has what this takes, and its
//! invariants.
//!
//! 1. The thread *pins* itself: it makes a counter odd, on a cache line of its own. Memory that is
//!    unlinked meanwhile waits in limbo until the counter has moved on.
//! 2. It reads the shard's sequence number. A holder of the lock makes that odd at the beginning of
//!    a change, and even at the end.
//! 3. It goes from the shard's roots to the bucket, by one multiplication, and on behind a full one
//!    by the detour. It reads the clock while it waits for the bucket, goes on to the slot, and
//!    copies key and value, word by word (on x86-64 two words at a time).
//! 4. If the sequence number is another one by now, or anything else is unusual (an attribute, a
//!    deadline that is near, nine full buckets in a row), the lock's way begins from the start. It
//!    is the whole truth; this is a short cut.
//!
//! # One insertion, step by step
//!
//! 1. The weigher and the `Expiry` run. Jitter and bounds are applied to the TTL, which becomes a
//!    deadline.
//! 2. The thread takes the shard's writer lock. If the key has a latch, it waits for that. If the
//!    key is being loaded, the insertion supersedes the load.
//! 3. The entry is stored. If the shard now holds more than it was lent, it borrows; then it
//!    removes what is due; then it evicts. If it is known beforehand that only an eviction makes
//!    room, both are one step: the new entry takes the victim's slot, with its timer. The wheel is
//!    told only if the new entry ends before the tick at which the victim is registered. What left
//!    goes to the outbox if there is a listener, and else to the garbage.
//! 4. The published deadline is lowered, and the lock released. The garbage is dropped. A driver
//!    that would sleep too long is woken.
//!
//! Where only the time to live has a part in an entry's attributes, the first step is a test, and
//! what overwrites a value that nobody drops or is told of is compiled into `insert`. The system's
//! clock is then read under the lock: the shard has asked for the memory that the insertion reads,
//! which comes meanwhile. What the next eviction will read is known when one ends, and is asked for
//! then. Small shards ask for nothing.
//!
//! `get_many` and `insert_many` take 16 keys at a time: they ask for the index's cache lines of
//! all, then for the slots', and then read or store one after the other, with one reading of the
//! clock.

pub(crate) mod delivery;
pub(crate) mod hooks;
pub(crate) mod inner;
pub(crate) mod insert;
mod loans;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
pub(crate) mod read;
pub(crate) mod reentrancy;
pub(crate) mod refreshes;
pub(crate) mod requests;
pub(crate) mod waiting;
pub(crate) mod workers;
