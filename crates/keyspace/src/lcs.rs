//! The longest common subsequence of two strings (Wagner and Fischer 1974, with one bit a cell).
//!
//! The length needs one row of the table. The path back needs to know at each cell only whether the
//! cell above is greater than the one to the left: one bit, where the usual table keeps 32.

/// A run of bytes that both strings have: `len` bytes from `a` in one and from `b` in the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommonRun {
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) len: usize,
}

/// Bytes of the table that the classical algorithm needs, by which the public protocol limits the
/// command; `None` if it does not fit the address space.
pub(crate) fn table_bytes(a: usize, b: usize) -> Option<usize> {
    a.checked_add(1)?
        .checked_mul(b.checked_add(1)?)?
        .checked_mul(4)
}

/// The length of the longest common subsequence. Time a × b, memory b.
pub(crate) fn length(a: &[u8], b: &[u8]) -> usize {
    fill(a, b, |_, _| {})
}

/// The runs of one longest common subsequence, from the end to the start, and its length. Time a ×
/// b, memory a × b bits.
pub(crate) fn runs(a: &[u8], b: &[u8]) -> (Vec<CommonRun>, usize) {
    let mut above_is_greater = vec![0_u64; (a.len() * b.len()).div_ceil(64)];
    let len = fill(a, b, |cell, greater| {
        above_is_greater[cell / 64] |= u64::from(greater) << (cell % 64);
    });
    let mut runs: Vec<CommonRun> = Vec::new();
    let (mut i, mut j) = (a.len(), b.len());
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            (i, j) = (i - 1, j - 1);
            match runs.last_mut() {
                Some(run) if run.a == i + 1 && run.b == j + 1 => {
                    *run = CommonRun {
                        a: i,
                        b: j,
                        len: run.len + 1,
                    };
                }
                _ => runs.push(CommonRun { a: i, b: j, len: 1 }),
            }
        } else {
            let cell = (i - 1) * b.len() + j - 1;
            if above_is_greater[cell / 64] >> (cell % 64) & 1 == 1 {
                i -= 1;
            } else {
                j -= 1;
            }
        }
    }
    (runs, len)
}

/// Fills the table row by row, telling `visit` of each cell where the bytes differ.
fn fill(a: &[u8], b: &[u8], mut visit: impl FnMut(usize, bool)) -> usize {
    let mut row = vec![0_u32; b.len() + 1];
    for (i, x) in a.iter().enumerate() {
        // The cell above and to the left, before this row overwrote it.
        let mut diagonal = 0;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = if x == y {
                diagonal + 1
            } else {
                visit(i * b.len() + j, above > row[j]);
                above.max(row[j])
            };
            diagonal = above;
        }
    }
    row[b.len()] as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(a: &[u8], runs: &[CommonRun]) -> Vec<u8> {
        runs.iter()
            .rev()
            .flat_map(|run| a[run.a..run.a + run.len].to_vec())
            .collect()
    }

    #[test]
    fn the_manuals_example() {
        let (a, b) = (b"ohmytext", b"mynewtext");
        let (runs, len) = runs(a, b);
        assert_eq!(len, 6);
        assert_eq!(length(a, b), 6);
        assert_eq!(text(a, &runs), b"mytext");
        assert_eq!(
            runs,
            [
                CommonRun { a: 4, b: 5, len: 4 },
                CommonRun { a: 2, b: 0, len: 2 }
            ]
        );
    }

    #[test]
    fn table_sizes_that_overflow_are_refused() {
        assert_eq!(table_bytes(1, 2), Some(24));
        assert_eq!(table_bytes(usize::MAX, 1), None);
        assert_eq!(table_bytes(1 << 40, 1 << 40), None);
    }

    fn naive(a: &[u8], b: &[u8]) -> usize {
        match (a, b) {
            ([x, a @ ..], [y, b @ ..]) if x == y => 1 + naive(a, b),
            ([_, rest_a @ ..], [_, rest_b @ ..]) => naive(rest_a, b).max(naive(a, rest_b)),
            _ => 0,
        }
    }

    proptest! {
        #[test]
        fn runs_are_common_ordered_and_longest(a in "[ab]{0,9}", b in "[abc]{0,9}") {
            let (a, b) = (a.as_bytes(), b.as_bytes());
            let (found, len) = runs(a, b);
            prop_assert_eq!(len, naive(a, b));
            prop_assert_eq!(length(a, b), len);
            prop_assert_eq!(found.iter().map(|run| run.len).sum::<usize>(), len);
            let (mut i, mut j) = (a.len(), b.len());
            for run in found {
                prop_assert_eq!(&a[run.a..run.a + run.len], &b[run.b..run.b + run.len]);
                prop_assert!(run.a + run.len <= i && run.b + run.len <= j);
                (i, j) = (run.a, run.b);
            }
        }
    }
}
