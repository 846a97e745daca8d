//! What is written in and under pictures: numbers with units, names of files, what is missing.

use super::axis::{Axis, Unit, unit_of_time};
use super::data::distinct;
use super::lines::Line;
use crate::report::Report;
use crate::stats::Spread;
use crate::table;

/// The figure that tells how much of the machine other programs took.
pub(super) const NOISE: &str = "others_cpu_percent";

/// A median with its range, in the unit that suits it.
pub(super) fn said(spread: &Spread, unit: Unit) -> String {
    let (sign, size) = match unit {
        Unit::Time(second) => {
            let (name, size) = unit_of_time(spread.median * second);
            (format!(" {name}"), size / second)
        }
        Unit::Sign(sign) => (sign.to_owned(), 1.0),
        Unit::None => (String::new(), 1.0),
    };
    // A change of unit may leave a last digit that hides a whole number.
    let number = |value: f64| table::number((value / size * 1e9).round() / 1e9);
    let [median, min, max] = [spread.median, spread.min, spread.max].map(number);
    match min == max {
        true => format!("{median}{sign}"),
        false => format!("{median}{sign} ({min}–{max})"),
    }
}

/// A cell's name and how many runs stand behind each point.
pub(super) fn of_runs<'a>(cell: &str, runs: impl Iterator<Item = &'a Report>) -> String {
    let runs: Vec<&Report> = runs.collect();
    let own = |run: &&Report| {
        let twins = runs
            .iter()
            .filter(|r| (&r.cell, &r.subject) == (&run.cell, &run.subject));
        twins.count()
    };
    let counts: Vec<usize> = runs.iter().map(own).collect();
    let least = counts.iter().copied().min().unwrap_or(0);
    let most = counts.iter().copied().max().unwrap_or(0);
    let said = match (least, most) {
        (_, 0 | 1) => "one run each".to_owned(),
        (a, b) if a == b => format!("median and range of {a} runs"),
        (a, b) => format!("median and range of {a} to {b} runs"),
    };
    match cell {
        "" => said,
        cell => format!("{cell} · {said}"),
    }
}

/// A name that is safe on every file system.
pub(super) fn file_name(picture: &str, cell: &str) -> String {
    let mut name = String::new();
    for c in format!("{picture} {cell}").chars() {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
    }
    let name = name.trim_matches('-');
    match name {
        "" => "picture".to_owned(),
        name => name.to_owned(),
    }
}

/// Who is not in a picture.
pub(super) fn missing<'a>(subjects: impl Iterator<Item = &'a str>) -> Option<String> {
    let subjects = distinct(subjects);
    let names = subjects.join(", ");
    (!subjects.is_empty()).then(|| format!("Not in this picture, for want of a value: {names}."))
}

/// What is said when some points have no logarithm.
pub(super) fn off(points: usize) -> Option<String> {
    let said =
        "Zero and less have no place on a logarithmic axis; they are drawn at its end, marked 0.";
    (points > 0).then(|| said.to_owned())
}

/// What a reader must know of lines to see all of them.
pub(super) fn of_lines(lines: &[Line], x: &Axis, y: &Axis) -> Vec<String> {
    let points = lines.iter().flat_map(|line| &line.points);
    let outside = points.filter(|point| x.lacks(point.x) || y.lacks(point.y.median));
    let mut notes: Vec<String> = off(outside.count()).into_iter().collect();
    let mut told: Vec<&str> = Vec::new();
    for line in lines.iter().filter(|line| !line.second) {
        let twin = |other: &&Line| !other.second && other.points == line.points;
        let twins: Vec<&str> = lines
            .iter()
            .filter(twin)
            .map(|twin| twin.name.as_str())
            .collect();
        if twins.len() > 1 && !told.contains(&line.name.as_str()) {
            notes.push(format!("On the same line: {}.", twins.join(", ")));
            told.extend(twins);
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::lines::Point;
    use super::super::look::looks;
    use super::*;

    #[test]
    fn numbers_are_said_in_the_unit_that_suits_the_median() {
        let spread = Spread {
            median: 1_500.0,
            min: 900.0,
            max: 20_000.0,
        };
        assert_eq!(said(&spread, Unit::Time(1e-6)), "1.50 ms (0.900–20)");
        assert_eq!(said(&spread, Unit::Sign(" B")), "1500 B (900–20000)");
    }

    #[test]
    fn any_cell_makes_a_file_name() {
        assert_eq!(
            file_name("held", "10M, as \"it\" ran/../x"),
            "held-10m-as-it-ran-x"
        );
        assert_eq!(file_name("cost-by-n", ""), "cost-by-n");
        assert_eq!(file_name("µ", ""), "picture");
    }

    #[test]
    fn lines_that_hide_each_other_are_named() {
        let line = |name: &str, value: f64| Line {
            name: name.to_owned(),
            look: looks(&["x"])[0].1,
            points: vec![Point {
                x: 1.0,
                y: Spread {
                    median: value,
                    min: value,
                    max: value,
                },
            }],
            second: false,
        };
        let names = [String::new()];
        let axis = || Axis::of_names("", &names);
        let lines = [line("a", 1.0), line("b", 2.0), line("c", 1.0)];
        let notes = of_lines(&lines, &axis(), &axis());
        assert_eq!(notes, ["On the same line: a, c."]);
    }

    #[test]
    fn what_is_missing_is_named_once() {
        assert_eq!(missing([].into_iter()), None);
        let said = missing(["a", "b", "a"].into_iter()).expect("words");
        assert!(said.ends_with(": a, b."), "{said}");
    }
}
