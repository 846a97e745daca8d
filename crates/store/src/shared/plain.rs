//! Types that may be copied while they are changed: they have no padding, point to nothing, and
//! dropping them does nothing. In stable Rust no type says that of itself, so they are listed. Of
//! others whoever makes a store may say it, by `bytemuck::NoUninit`. Then each store knows, and the
//! compiler does not.
//!
//! A copy may be of several writes, and then is no value. So it becomes one only when it is known
//! that nothing was written meanwhile.

use std::any::TypeId;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, needs_drop};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

/// Returns whether a type is a number, `bool` or `char`, or an array of numbers of one of the usual
/// lengths. The compiler knows the answer, if it optimises. Zeros are a value of each.
#[inline(always)]
pub(crate) fn is_listed<T>() -> bool {
    let of = id::<T>();
    macro_rules! is_one_of {
        ($($one:ty)*) => { false $(|| of == TypeId::of::<$one>())* };
    }
    macro_rules! is_array {
        ($($one:ty: $($len:literal)*;)*) => { false $($(|| of == TypeId::of::<[$one; $len]>())*)* };
    }
    is_one_of!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 bool char)
        || is_array! {
            u8: 2 4 6 8 12 16 20 24 28 32 40 48 56 64 96 128;
            u16: 2 4 8;
            u32: 2 3 4 8 16;
            i32: 2 3 4 8 16;
            f32: 2 3 4 8 16;
            u64: 2 3 4 5 6 7 8 16;
            i64: 2 3 4 5 6 7 8 16;
            f64: 2 3 4 5 6 7 8 16;
        }
}

/// Returns whether key and value are listed, so that every store of them may be read without its
/// lock.
#[inline(always)]
pub(crate) fn are_listed<K, V>() -> bool {
    is_listed::<K>() && is_listed::<V>()
}

/// Returns whether a caller may have declared key and value plain, although they are not both
/// listed. The compiler knows the answer for all other types, so that they do not pay for the
/// question.
#[inline(always)]
pub(crate) fn may_be_told<K, V>() -> bool {
    cfg!(feature = "bytemuck") && !are_listed::<K, V>() && !needs_drop::<(K, V)>()
}

/// A type's identity, though it may borrow.
#[inline(always)]
fn id<T>() -> TypeId {
    trait Named {
        fn id(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<T> Named for PhantomData<T> {
        #[inline(always)]
        fn id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }
    let of = PhantomData::<T>;
    // SAFETY:
    // - Only the lifetime bound changes. `id` uses it for nothing but the identity of the type.
    // - If `T` borrows, that may be the identity of the same type with other lifetimes. No type in
    //   question has any.
    let of = unsafe { std::mem::transmute::<&dyn Named, &(dyn Named + 'static)>(&of) };
    of.id()
}

/// The size of the words in which a value is copied: the largest that its size and its place within
/// its cell allow.
pub(super) const fn word_size(size: usize, offset: usize, align: usize) -> usize {
    let bits = size | offset | align | 8;
    bits & bits.wrapping_neg()
}

/// Does something for each word of a value: `$size` is the size of the words.
macro_rules! by_words {
    ($of:ty, $size:expr, $word:ident => $copy:expr) => {
        match $size {
            1 => by_words!(@ $of, AtomicU8, $word, $copy),
            2 => by_words!(@ $of, AtomicU16, $word, $copy),
            4 => by_words!(@ $of, AtomicU32, $word, $copy),
            _ => by_words!(@ $of, AtomicU64, $word, $copy),
        }
    };
    (@ $of:ty, $atomic:ty, $word:ident, $copy:expr) => {
        for i in 0..size_of::<$of>() / size_of::<$atomic>() {
            let $word = (PhantomData::<$atomic>, i);
            $copy
        }
    };
}

/// An atomic word of a value.
///
/// # Safety
///
/// The value's memory is valid for as long as the reference is used, aligned for `A`, and has at
/// least `i + 1` such words.
#[inline(always)]
unsafe fn word<'a, T, A>(value: *mut T, (_, i): (PhantomData<A>, usize)) -> &'a A {
    // SAFETY: as demanded.
    unsafe { &*value.cast::<A>().add(i) }
}

/// A word in memory that nobody shares. It need not be aligned.
///
/// # Safety
///
/// As of [`word`].
#[inline(always)]
unsafe fn at<T, A>(value: *const T, (_, i): (PhantomData<A>, usize)) -> *mut A {
    // SAFETY: as demanded.
    unsafe { value.cast::<A>().add(i).cast_mut() }
}

/// Copies a value that may be written meanwhile. If it was, the copy may be of several writes, and
/// so no value.
///
/// # Safety
///
/// - `from` is valid and aligned. Its memory was initialised, and all who write it meanwhile do so
///   by [`store`].
/// - `word_size` divides the value's size and its address, and is what [`store`] is told.
#[inline(always)]
pub(super) unsafe fn load<T>(from: *mut T, word_size: usize) -> MaybeUninit<T> {
    let mut value = MaybeUninit::<T>::uninit();
    let to = value.as_mut_ptr();
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if size_of::<T>() >= PAIR {
        // SAFETY: both are valid, and as large.
        unsafe { load_pairs(from, to) };
        return value;
    }
    by_words!(T, word_size, i => {
        // SAFETY: both are valid and have as many words; the copy may be less aligned.
        unsafe { at(to, i).write_unaligned(AtomicWord::read(word(from, i)).into()) }
    });
    value
}

/// Two words of eight bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const PAIR: usize = 16;

/// Copies a value that may be written meanwhile, two words at a time. So callers that move it by
/// vectors need not wait until smaller stores have come together.
///
/// # Safety
///
/// Both are valid, and `T` has at least the size of a pair. All who write `from` meanwhile do so by
/// [`store`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn load_pairs<T>(from: *const T, to: *mut T) {
    let load = |at: usize| {
        let pair: std::arch::x86_64::__m128i;
        // SAFETY:
        // - It reads 16 bytes of the value, and `to` has as many.
        // - It stands for relaxed loads of what `store` writes at once: the processor tears no
        //   aligned word of such a load.
        unsafe {
            std::arch::asm!(
                "movdqu {pair}, xmmword ptr [{from}]",
                pair = out(xmm_reg) pair,
                from = in(reg) from.byte_add(at),
                options(nostack, preserves_flags, readonly),
            );
            to.byte_add(at)
                .cast::<std::arch::x86_64::__m128i>()
                .write_unaligned(pair);
        }
    };
    (0..size_of::<T>() / PAIR).for_each(|i| load(i * PAIR));
    if size_of::<T>() % PAIR > 0 {
        // The last one overlaps with the one before.
        load(size_of::<T>() - PAIR);
    }
}

/// Writes a value that may be read meanwhile by [`load`].
///
/// # Safety
///
/// - `to` is valid and aligned, and only this thread writes it.
/// - `T` is plain. `word_size` divides its size and its address.
#[inline(always)]
pub(super) unsafe fn store<T>(to: *mut T, value: T, word_size: usize) {
    let value = MaybeUninit::new(value);
    let from = value.as_ptr();
    by_words!(T, word_size, i => {
        // SAFETY: both are valid and have as many words; the copy may be less aligned. Plain types
        // have no padding.
        unsafe { AtomicWord::write(word(to, i), at(from, i).read_unaligned().into_inner()) }
    });
}

/// The operations of an atomic of any size that `load` and `store` need.
trait AtomicWord {
    type Word;
    fn read(&self) -> Self::Word;
    fn write(&self, word: Self::Word);
}

macro_rules! atomic_words {
    ($($atomic:ty, $word:ty;)*) => { $(
        impl AtomicWord for $atomic {
            type Word = $word;

            #[inline(always)]
            fn read(&self) -> $word {
                self.load(Relaxed)
            }

            #[inline(always)]
            fn write(&self, word: $word) {
                self.store(word, Relaxed);
            }
        }
    )* };
}
atomic_words! { AtomicU8, u8; AtomicU16, u16; AtomicU32, u32; AtomicU64, u64; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_listed_and_what_points_is_not() {
        assert!(
            is_listed::<u64>() && is_listed::<i128>() && is_listed::<char>() && is_listed::<f32>()
        );
        assert!(!is_listed::<String>() && !is_listed::<&u64>() && !is_listed::<(u8, u64)>());
        assert!(!is_listed::<AtomicU64>() && !is_listed::<()>() && !is_listed::<[String; 2]>());
        assert!(is_listed::<[u8; 32]>() && is_listed::<[f64; 3]>() && !is_listed::<[u8; 31]>());
    }

    #[test]
    fn words_are_as_large_as_size_and_place_allow() {
        assert_eq!(word_size(8, 0, 8), 8);
        assert_eq!(word_size(32, 16, 8), 8, "an array of bytes behind a number");
        assert_eq!(word_size(32, 16, 4), 4);
        assert_eq!(word_size(16, 0, 16), 8);
        assert_eq!(word_size(6, 8, 8), 2);
        assert_eq!(word_size(1, 3, 4), 1);
    }

    #[test]
    fn a_plain_value_comes_back_as_it_was_stored() {
        fn check<T: PartialEq + Copy + Default + std::fmt::Debug>(value: T) {
            let mut place = T::default();
            // SAFETY: it is a local of a plain type.
            let back = unsafe {
                let size = word_size(size_of::<T>(), 0, align_of::<T>());
                store(&raw mut place, value, size);
                load(&raw mut place, size).assume_init()
            };
            assert_eq!((place, back), (value, value));
        }
        check(7_u8);
        check(-7_i16);
        check(u32::MAX - 1);
        check(1.5_f64);
        check(u128::MAX / 3);
        check('ß');
        check(true);
        check([7_u8; 32]);
        check([1.5, 2.5, 3.5]);
    }
}
