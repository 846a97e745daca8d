//! Summaries of a few numbers: medians, ranges, quantiles.

/// The median with the least and the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// `None` for no numbers. NaN is not expected and sorts last.
pub(crate) fn spread(values: &[f64]) -> Option<Spread> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (&min, &max) = (sorted.first()?, sorted.last()?);
    let middle = sorted.len() / 2;
    let median = match sorted.len() % 2 {
        1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    };
    Some(Spread { median, min, max })
}

pub(crate) fn median(values: &[f64]) -> Option<f64> {
    spread(values).map(|spread| spread.median)
}

pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The smallest value that at least `quantile` of all do not exceed (nearest rank).
/// `sorted` is ascending.
pub(crate) fn quantile<T: Copy>(sorted: &[T], quantile: f64) -> Option<T> {
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    let at = rank.clamp(1, sorted.len().max(1)) - 1;
    sorted.get(at).copied()
}

/// The same of values `0, 1, 2, …` that occurred so many times each, among `all`; `None` when the
/// counts do not reach so far.
pub(crate) fn quantile_of_counts(counts: &[u64], all: u64, quantile: f64) -> Option<f64> {
    let rank = ((quantile * all as f64).ceil() as u64).max(1);
    let mut sum = 0;
    counts.iter().enumerate().find_map(|(value, count)| {
        sum += count;
        (sum >= rank).then_some(value as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        let spread = spread(&[4.0, 1.0, 3.0, 2.0]).expect("numbers");
        assert_eq!([spread.median, spread.min, spread.max], [2.5, 1.0, 4.0]);
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[]), None);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let sorted: Vec<i64> = (1..=1_000).collect();
        assert_eq!(quantile(&sorted, 0.5), Some(500));
        assert_eq!(quantile(&sorted, 0.99), Some(990));
        assert_eq!(quantile(&sorted, 1.0), Some(1_000));
        assert_eq!(quantile(&sorted, 0.0), Some(1));
        assert_eq!(quantile::<i64>(&[], 0.5), None);
        assert_eq!(quantile(&[7], 0.999), Some(7));
    }
}
