//! The default hasher, under names of its own: what is behind it may change without notice.

use std::fmt;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::{FoldHasher, RandomState};

/// The default hasher of keys: fast, and with a seed of its own for each cache or scheduler. The
/// `S` of `Cache<K, V, S>` and `Scheduler<K, V, S>` that need not be written.
///
/// The hash of a key differs from one process to the next, and may differ between versions of this
/// crate. It is foldhash now: enough against keys that collide by accident. Where strangers choose
/// the keys and can measure the time of lookups, take [`std::hash::RandomState`].
#[derive(Debug, Clone, Default)]
pub struct DefaultHashBuilder(RandomState);

/// The [`Hasher`] that [`DefaultHashBuilder`] builds.
#[derive(Clone)]
pub struct DefaultHasher(FoldHasher<'static>);

impl fmt::Debug for DefaultHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DefaultHasher")
    }
}

impl BuildHasher for DefaultHashBuilder {
    type Hasher = DefaultHasher;

    #[inline(always)]
    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher(self.0.build_hasher())
    }
}

/// Hands everything on, number by number: they are hashed faster than their bytes.
macro_rules! hands_on {
    ($($write:ident($number:ty)),*) => {
        $(
            #[inline(always)]
            fn $write(&mut self, number: $number) {
                self.0.$write(number);
            }
        )*
    };
}

impl Hasher for DefaultHasher {
    #[inline(always)]
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    hands_on!(
        write_u8(u8),
        write_u16(u16),
        write_u32(u32),
        write_u64(u64),
        write_u128(u128)
    );
    hands_on!(
        write_i8(i8),
        write_i16(i16),
        write_i32(i32),
        write_i64(i64),
        write_i128(i128)
    );
    hands_on!(write_usize(usize), write_isize(isize));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that went through `write` as bytes would hash otherwise than by the hasher behind,
    /// and slower.
    #[test]
    fn everything_is_hashed_as_by_the_hasher_behind() {
        let ours = DefaultHashBuilder::default();
        macro_rules! same {
            ($($value:expr),*) => {
                $(assert_eq!(ours.hash_one($value), ours.0.hash_one($value));)*
            };
        }
        same!(1u8, 2u16, 3u32, 4u64, 5u128, 6usize);
        same!(-1i8, -2i16, -3i32, -4i64, -5i128, -6isize);
        same!(
            "tea",
            "a text of more than sixteen bytes",
            [1u8, 2, 3],
            (1u64, "a", 'b')
        );
    }
}
