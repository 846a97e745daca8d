//! Reports put in order: experiments, their cells, their subjects, the runs of each.

use crate::report::{Absent, Curve, Figure, Report};
use crate::stats::{self, Spread};

/// All reports of one experiment.
#[derive(Debug)]
pub(super) struct Experiment<'a> {
    pub(super) name: &'a str,
    pub(super) subjects: Vec<&'a str>,
    pub(super) cells: Vec<Cell<'a>>,
}

/// All reports of one table.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    pub(super) name: &'a str,
    pub(super) runs: Vec<&'a Report>,
}

/// Experiments, cells and subjects in the order in which they first occur.
pub(super) fn experiments(reports: &[Report]) -> Vec<Experiment<'_>> {
    distinct(reports.iter().map(|report| report.workload.as_str()))
        .into_iter()
        .map(|name| {
            let runs: Vec<&Report> = reports.iter().filter(|r| r.workload == name).collect();
            let cell = |name| Cell {
                name,
                runs: runs.iter().copied().filter(|r| r.cell == name).collect(),
            };
            Experiment {
                name,
                subjects: distinct(runs.iter().map(|r| r.subject.as_str())),
                cells: distinct(runs.iter().map(|r| r.cell.as_str()))
                    .into_iter()
                    .map(cell)
                    .collect(),
            }
        })
        .collect()
}

/// Each once, in the order in which they first occur.
pub(super) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

impl<'a> Experiment<'a> {
    pub(super) fn runs(&self) -> impl Iterator<Item = &'a Report> {
        self.cells.iter().flat_map(|cell| cell.runs.iter().copied())
    }
}

impl<'a> Cell<'a> {
    pub(super) fn subjects(&self) -> Vec<&'a str> {
        distinct(self.runs.iter().map(|report| report.subject.as_str()))
    }

    pub(super) fn of<'b>(&'b self, subject: &'b str) -> impl Iterator<Item = &'a Report> + 'b {
        let own = move |report: &&Report| report.subject == subject;
        self.runs.iter().copied().filter(own)
    }

    /// Figures in the order in which they first occur.
    pub(super) fn figures(&self) -> Vec<&'a Figure> {
        let mut figures: Vec<&Figure> = Vec::new();
        for figure in self.runs.iter().flat_map(|report| report.figures.iter()) {
            if !figures.iter().any(|known| known.key == figure.key) {
                figures.push(figure);
            }
        }
        figures
    }

    pub(super) fn spread(&self, subject: &str, key: &str) -> Option<Spread> {
        spread(self.of(subject), key)
    }

    /// Why a figure has no value.
    pub(super) fn absent(&self, subject: &str, key: &str) -> Absent {
        self.of(subject)
            .flat_map(|report| report.figures.iter())
            .find(|figure| figure.key == key)
            .map_or(Absent::Nothing, |figure| figure.absent)
    }

    /// The curve of the run in the middle by the first figure that all runs have, else of the middle run.
    pub(super) fn curve(&self, subject: &str, key: &str) -> Option<&'a Curve> {
        let curve = |report: &&'a Report| report.curves.iter().find(|curve| curve.key == key);
        let mut runs: Vec<&Report> = self.of(subject).filter(|r| curve(r).is_some()).collect();
        let first = runs.first()?.figures.iter().find(|figure| {
            runs.iter()
                .all(|run| run.figures.value(&figure.key).is_some())
        });
        if let Some(first) = first {
            let value = |run: &Report| run.figures.value(&first.key).unwrap_or(0.0);
            runs.sort_by(|a, b| value(a).total_cmp(&value(b)));
        }
        curve(runs.get((runs.len() - 1) / 2)?)
    }
}

/// Median and range of one figure over some runs.
pub(super) fn spread<'a>(runs: impl Iterator<Item = &'a Report>, key: &str) -> Option<Spread> {
    let values: Vec<f64> = runs.filter_map(|run| run.figures.value(key)).collect();
    stats::spread(&values)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(cell: &str, subject: &str, a: Option<f64>) -> Report {
        let mut report = Report::new("x", None, json!({}));
        (report.cell, report.subject) = (cell.to_owned(), subject.to_owned());
        report.figures.push("none", "none", None);
        report.figures.push("a", "A", a);
        report.curves.push(Curve {
            key: "c".to_owned(),
            label: "C".to_owned(),
            axes: ["x".to_owned(), "y".to_owned()],
            points: vec![[a.unwrap_or(-1.0), 0.0]],
        });
        report
    }

    #[test]
    fn reports_are_grouped_in_their_order() {
        let reports = [
            report("2", "b", Some(1.0)),
            report("1", "a", Some(2.0)),
            report("2", "a", None),
            report("2", "b", Some(5.0)),
        ];
        let experiments = experiments(&reports);
        assert_eq!(experiments.len(), 1);
        assert_eq!(experiments[0].subjects, ["b", "a"]);
        let cell = &experiments[0].cells[0];
        assert_eq!((cell.name, cell.runs.len()), ("2", 3));
        assert_eq!(cell.spread("b", "a").map(|spread| spread.median), Some(3.0));
        assert_eq!(cell.spread("a", "a"), None);
    }

    #[test]
    fn a_curve_is_the_middle_run_s() {
        let reports = [3.0, 1.0, 2.0].map(|a| report("", "s", Some(a)));
        let experiments = experiments(&reports);
        let curve = experiments[0].cells[0].curve("s", "c").expect("a curve");
        assert_eq!(curve.points, [[2.0, 0.0]]);
        assert_eq!(experiments[0].cells[0].curve("s", "d"), None);
    }
}
