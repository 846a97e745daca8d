//! Random numbers that a seed repeats.

/// A stream of random numbers (SplitMix64): the same ones for the same seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

/// A type of numbers below which [`Dice`] can stay.
pub trait Number: Copy {
    /// A number below this one, from 64 random bits.
    fn reduce(self, bits: u64) -> Self;
}

macro_rules! numbers {
    ($($of:ty)*) => {
        $(impl Number for $of {
            fn reduce(self, bits: u64) -> Self {
                (bits % self as u64) as Self
            }
        })*
    };
}

numbers!(i32 u64 usize);

impl Dice {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`.
    pub fn below<N: Number>(&mut self, end: N) -> N {
        end.reduce(self.number())
    }

    /// Whether something happens that does so once in `n` times.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of some choices.
    pub fn pick<'t, T>(&mut self, choices: &'t [T]) -> &'t T {
        &choices[self.below(choices.len())]
    }

    /// So many bytes, any of them.
    pub fn fill(&mut self, len: usize) -> Vec<u8> {
        let numbers = std::iter::repeat_with(|| self.number().to_le_bytes());
        numbers.flatten().take(len).collect()
    }

    /// Up to `most` bytes, often with long runs.
    pub fn bytes(&mut self, most: u64) -> Vec<u8> {
        let len = self.below(most + 1) as usize;
        let kind = self.below(3);
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let byte = *self.pick(&[0, 0xff, self.0 as u8]);
            let run = if kind == 0 { 1 } else { self.below(20) };
            bytes.extend((0..run).map(|_| byte));
        }
        bytes.truncate(len);
        bytes
    }
}
