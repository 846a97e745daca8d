//! Timer structures that no product uses, kept for two reasons.
//!
//! 1. *The comparison.* [`HashedWheel`] and [`IndexedHeap`] are the two classic structures; the
//!    laboratory measures the hierarchical wheel against them, on the same operations.
//! 2. *The oracle.* The heap is exact and simple: it fires in the order of the deadlines and keeps
//!    no dead records. Tests compare the wheel with it.
//!
//! Both pass the same model tests as the hierarchical wheel.

mod hashed;
mod heap;

pub use self::hashed::HashedWheel;
pub use self::heap::IndexedHeap;
