//! Runs one script against every timer queue.

/// Turns a script into a module with one test per queue. The script gets a function that makes an
/// empty queue which stands at the tick that it is given.
macro_rules! every_queue {
    ($($(#[$doc:meta])* fn $name:ident($make:ident) $script:block)+) => {$(
        $(#[$doc])*
        mod $name {
            use super::*;

            fn script<Q: TimerQueue>($make: impl Fn(u64) -> Q) $script

            #[test]
            fn hierarchical_wheel() {
                script(HierarchicalWheel::new);
            }

            #[test]
            fn hashed_wheel_of_64() {
                script(|now| HashedWheel::new(64, now));
            }

            #[test]
            fn hashed_wheel_of_4096() {
                script(|now| HashedWheel::new(4096, now));
            }

            #[test]
            fn binary_heap() {
                script(IndexedHeap::<2>::new);
            }

            #[test]
            fn quaternary_heap() {
                script(IndexedHeap::<4>::new);
            }
        }
    )+};
}
