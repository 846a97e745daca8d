//! Measures the memory that is held over time under times to live, and the hits that the dead cost,
//! both in virtual time.

use anyhow::Result;

use self::cell::Cell;
use self::mix::MIXES;
use crate::outcome::Outcome;
use crate::progress;
use crate::runner::Basics;

mod cell;
mod course;
mod figures;
mod limit;
mod mix;
mod ours;
mod strategy;
mod table;

/// Options of `study ttl-memory`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Mixes of times to live (default all).
    #[arg(long, value_delimiter = ',', value_name = "MIX,…")]
    mixes: Vec<String>,
    /// Hours of virtual time (default 12, quick 1).
    #[arg(long, value_parser = positive)]
    hours: Option<f64>,
    /// Times as many requests and keys as the mixes have here, which is a hundredth of production
    /// or less.
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    scale: f64,
    /// Limits, as shares of the objects that are alive on average.
    #[arg(long, value_delimiter = ',', value_name = "SHARE,…", value_parser = positive)]
    #[arg(default_values_t = [0.1, 0.5, 1.0])]
    limits: Vec<f64>,
    #[command(flatten)]
    basics: Basics,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number: &f64| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| "it is a number above 0".to_owned())
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let Basics { seed, quick } = args.basics;
    let hours = args.hours.unwrap_or(if quick { 1.0 } else { 12.0 });
    let mut outcome = Outcome::default();
    let all = MIXES.iter().map(|mix| mix.name.clone());
    let names = match args.mixes.is_empty() {
        true => all.collect(),
        false => args.mixes.clone(),
    };
    for name in names {
        progress::say(format!("{name}: requests"));
        let cell = Cell::new(&name, hours, args.scale, seed)?;
        let reports = figures::held(&cell, seed)?;
        outcome.push(&format!("ttl-memory: {name}"), reports);
        for &share in &args.limits {
            let (title, reports) = figures::limited(&cell, share)?;
            outcome.push(&format!("ttl-memory limit: {title}"), reports);
        }
    }
    let note = "virtual time; bytes of keys and values, not of the structures around them";
    outcome.notes.push(note.to_owned());
    if quick {
        outcome.note_quick();
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::figures::{CURVE_POINTS, Subject};
    use super::limit::Policy;
    use super::*;

    fn args(mixes: &[&str]) -> Args {
        Args {
            mixes: mixes.iter().map(|name| (*name).to_owned()).collect(),
            hours: Some(0.25),
            scale: 0.2,
            limits: vec![0.5],
            basics: Basics {
                seed: 1,
                quick: false,
            },
        }
    }

    fn value(outcome: &Outcome, subject: &str, key: &str) -> Option<f64> {
        let mut reports = outcome.reports.iter();
        let report = reports.find(|report| report.subject == subject)?;
        report.figures.value(key)
    }

    #[test]
    fn a_mix_gives_a_report_for_every_strategy_and_policy() {
        let outcome = run(&args(&["seconds"])).expect("runs");
        let subjects = Subject::value_variants().len() + Policy::value_variants().len();
        assert_eq!(outcome.reports.len(), subjects);
        let ours = value(&outcome, "tidewheel", "held_over_live").expect("a ratio");
        assert!((ours - 1.0).abs() < 1e-9, "{ours}");
        let lazy = value(&outcome, "lazy", "held_over_live").expect("a ratio");
        assert!(lazy > 2.0, "{lazy}");
        for report in &outcome.reports {
            assert!(!report.notes.is_empty());
            for curve in report.curves.values() {
                assert!((2..=CURVE_POINTS).contains(&curve.points.len()));
            }
        }
        let again = run(&args(&["seconds"])).expect("runs");
        for (one, other) in outcome.reports.iter().zip(&again.reports) {
            assert_eq!((&one.figures, &one.curves), (&other.figures, &other.curves));
        }
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        run(&args(&["unheard-of"])).expect_err("no mix");
        let mut large = args(&["seconds"]);
        large.scale = 1e9;
        run(&large).expect_err("too many requests");
        assert!(
            ["0", "-1", "inf", "NaN", "x"]
                .iter()
                .all(|it| positive(it).is_err())
        );
    }
}
