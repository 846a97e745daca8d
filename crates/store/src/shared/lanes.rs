//! Eight numbers that are compared at once, though another thread may be changing one.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// The number of lanes.
pub(crate) const LANES: usize = 8;

/// Eight numbers: half a cache line.
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct Lanes([AtomicU32; LANES]);

impl Lanes {
    #[inline(always)]
    pub(crate) fn get(&self, i: usize) -> u32 {
        self.0[i % LANES].load(Relaxed)
    }

    #[inline(always)]
    pub(crate) fn set(&self, i: usize, number: u32) {
        self.0[i % LANES].store(number, Relaxed);
    }

    /// Returns which lanes are equal to a number: two bits for each, the first one's lowest.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub(crate) fn equal(&self, number: u32) -> u32 {
        use safe_arch::{
            cmp_eq_mask_i32_m128i, m128i, move_mask_i8_m128i, pack_i32_to_i16_m128i,
            set_splat_i32_m128i,
        };
        let wanted = set_splat_i32_m128i(number as i32);
        let [low, high] = self
            .load()
            .map(|four| cmp_eq_mask_i32_m128i(m128i(four), wanted));
        move_mask_i8_m128i(pack_i32_to_i16_m128i(low, high)) as u32
    }

    /// All eight, in two instructions.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    fn load(&self) -> [std::arch::x86_64::__m128i; 2] {
        let (low, high);
        // SAFETY:
        // - It reads these 32 bytes, which are aligned.
        // - It stands for eight relaxed loads: the processor tears no aligned four bytes of such a
        //   load apart.
        unsafe {
            std::arch::asm!(
                "movdqa {low}, xmmword ptr [{from}]",
                "movdqa {high}, xmmword ptr [{from} + 16]",
                low = out(xmm_reg) low,
                high = out(xmm_reg) high,
                from = in(reg) &raw const self.0,
                options(nostack, preserves_flags, readonly),
            );
        }
        [low, high]
    }

    /// Returns which lanes are equal to a number: two bits for each, the first one's lowest.
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    #[inline(always)]
    pub(crate) fn equal(&self, number: u32) -> u32 {
        self.equal_one_by_one(number)
    }

    /// As [`equal`](Self::equal), for processors whose vectors nothing here knows.
    #[cfg(any(test, not(target_arch = "x86_64"), miri))]
    #[inline(always)]
    fn equal_one_by_one(&self, number: u32) -> u32 {
        let bits = |i: usize| u32::from(self.get(i) == number) * (3 << (2 * i));
        (0..LANES).fold(0, |equal, i| equal | bits(i))
    }
}

/// The first of those that are [`equal`](Lanes::equal).
#[inline(always)]
pub(crate) fn first(equal: u32) -> usize {
    // Of eight: that needs no test.
    equal.trailing_zeros() as usize / 2 % LANES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equal_in_all_32_bits_or_not_at_all() {
        let some = [
            0,
            1,
            1 << 8,
            1 << 16,
            1 << 31,
            u32::MAX,
            u32::MAX - 1,
            1 << 15,
        ];
        for rotation in 0..LANES {
            let mut numbers = some;
            numbers.rotate_left(rotation);
            let lanes = Lanes(numbers.map(AtomicU32::new));
            for (i, number) in numbers.into_iter().enumerate() {
                assert_eq!(lanes.equal(number), 3 << (2 * i));
                assert_eq!(first(lanes.equal(number)), i);
                assert_eq!(lanes.equal(number ^ 2), 0);
                assert_eq!(lanes.equal_one_by_one(number), 3 << (2 * i));
            }
        }
        let sevens = Lanes([7; LANES].map(AtomicU32::new));
        assert_eq!(sevens.equal(7), 0xffff);
        assert_eq!(sevens.equal_one_by_one(7), 0xffff);
    }
}
