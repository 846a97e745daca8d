//! Where figures come from: what all lines of a table share, and a warning where they do not.

use serde_json::Value;

use super::data::distinct;
use super::words::NOISE;
use crate::machine::describe as machine;
use crate::report::Report;
use crate::stats;
use crate::table;

/// Percent of a core that other programs may take before a reader is told.
const LOUD_PERCENT: f64 = 10.0;
const MOST_NAMED: usize = 4;

/// The machines of some lines, each with how many are its.
pub(super) fn machines<'a>(runs: impl Iterator<Item = &'a Report>) -> Vec<(String, usize)> {
    let all: Vec<String> = runs.map(|run| machine(&run.machine)).collect();
    let count = |name: &String| all.iter().filter(|other| *other == name).count();
    distinct(all.iter())
        .into_iter()
        .map(|name| (name.clone(), count(name)))
        .collect()
}

/// Parameters that are equal in all lines, as `name value`; those in `known` are left out.
pub(super) fn shared<'a>(
    runs: impl Iterator<Item = &'a Report> + Clone,
    known: &[String],
) -> Vec<String> {
    keys(runs.clone())
        .into_iter()
        .filter_map(|key| match values(runs.clone(), key).as_slice() {
            [value] if *value != "null" => Some(format!("{} {value}", key.replace('_', " "))),
            _ => None,
        })
        .filter(|said| !known.contains(said))
        .collect()
}

/// What a reader of one table must not overlook.
pub(super) fn warnings(runs: &[&Report]) -> Vec<String> {
    let mut warnings = Vec::new();
    let machines = machines(runs.iter().copied());
    if machines.len() > 1 {
        let said: Vec<String> = machines
            .iter()
            .map(|(name, _)| {
                let own = runs.iter().filter(|run| machine(&run.machine) == *name);
                let subjects = distinct(own.map(|run| run.subject.as_str()));
                format!("{} on {name}", subjects.join(", "))
            })
            .collect();
        warnings.push(format!(
            "Figures of different machines: {}.",
            said.join("; ")
        ));
    }
    for subject in distinct(runs.iter().map(|run| run.subject.as_str())) {
        let own = || runs.iter().copied().filter(|run| run.subject == subject);
        let versions = distinct(own().map(|run| run.version.as_str()));
        if versions.len() > 1 {
            let versions = versions.join(", ");
            warnings.push(format!(
                "Figures of different versions of {subject}: {versions}."
            ));
        }
        for key in keys(own()) {
            let values = values(own(), key);
            if values.len() > 1 && key != "seed" {
                let values = values.join(", ");
                let key = key.replace('_', " ");
                warnings.push(format!("Runs of {subject} differ in {key}: {values}."));
            }
        }
    }
    warnings.extend(noise(runs));
    warnings
}

/// Parameters in which subjects differ, each always in the same way.
pub(super) fn differences(runs: &[&Report]) -> Vec<String> {
    let all = || runs.iter().copied();
    keys(all())
        .into_iter()
        .filter_map(|key| {
            let values = values(all(), key);
            if values.len() < 2 || key == "seed" {
                return None;
            }
            let said: Vec<String> = values
                .iter()
                .map(|value| {
                    let own = all().filter(|run| text(run.params.get(key)) == *value);
                    let subjects = distinct(own.map(|run| run.subject.as_str()));
                    let value = if value == "null" { "none" } else { value };
                    format!("{value} for {}", subjects.join(", "))
                })
                .collect();
            Some(format!("{}: {}.", key.replace('_', " "), said.join("; ")))
        })
        .collect()
}

fn noise(runs: &[&Report]) -> Option<String> {
    let mut loud: Vec<(f64, &Report)> = runs
        .iter()
        .filter_map(|run| Some((run.figures.value(NOISE)?, *run)))
        .filter(|(percent, _)| *percent > LOUD_PERCENT)
        .collect();
    loud.sort_by(|a, b| b.0.total_cmp(&a.0));
    let percents: Vec<f64> = loud.iter().map(|(percent, _)| *percent).collect();
    let median = stats::median(&percents)?;
    let named: Vec<String> = loud
        .iter()
        .take(MOST_NAMED)
        .map(|(percent, run)| {
            format!(
                "{} run {}: {} %",
                run.subject,
                run.run,
                table::number(percent.round())
            )
        })
        .collect();
    Some(format!(
        "The machine was busy: during {} of {} runs other programs took more than {LOUD_PERCENT} % of a core \
         (in the median {} %; {}{}).",
        loud.len(),
        runs.len(),
        table::number(median.round()),
        named.join(", "),
        if loud.len() > MOST_NAMED { ", …" } else { "" },
    ))
}

/// Names of parameters. One that holds objects is a record of what happened, not a setting.
fn keys<'a>(runs: impl Iterator<Item = &'a Report>) -> Vec<&'a str> {
    let is_record = |value: &Value| match value {
        Value::Array(items) => items.iter().any(Value::is_object),
        other => other.is_object(),
    };
    let settings = runs.flat_map(|run| run.params.iter());
    let settings = settings.filter(|(_, value)| !is_record(value));
    distinct(settings.map(|(key, _)| key.as_str()))
}

fn values<'a>(runs: impl Iterator<Item = &'a Report>, key: &str) -> Vec<String> {
    distinct(runs.map(|run| text(run.params.get(key))))
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "null".to_owned(),
        Some(Value::String(text)) => text.clone(),
        // A whole number is whole, however it was written.
        Some(Value::Number(number)) if number.is_f64() => number
            .as_f64()
            .map_or_else(String::new, |number| number.to_string()),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(subject: &str, params: Value, noise: f64) -> Report {
        let mut report = Report::new("x", None, params);
        report.subject = subject.to_owned();
        report.figures.push(NOISE, "noise", noise);
        report
    }

    #[test]
    fn what_all_share_is_told_once_and_what_differs_is_told_of_whom() {
        let a = run(
            "a",
            json!({"keys": 7.0, "ttl": "entry", "seed": 1, "log": [{}]}),
            1.0,
        );
        let b = run(
            "b",
            json!({"keys": 7.0, "ttl": "cache", "seed": 2, "log": [{"a": 1}]}),
            2.0,
        );
        let runs = [&a, &b];
        assert_eq!(shared(runs.into_iter(), &[]), ["keys 7"]);
        assert_eq!(
            shared(runs.into_iter(), &["keys 7".to_owned()]),
            Vec::<String>::new()
        );
        assert_eq!(differences(&runs), ["ttl: entry for a; cache for b."]);
        assert_eq!(warnings(&runs), Vec::<String>::new());
    }

    #[test]
    fn other_machines_versions_sizes_and_noise_are_warned_of() {
        let a = run("a", json!({"keys": 7}), 1.0);
        let mut b = run("a", json!({"keys": 8}), 42.0);
        b.machine = json!({"cpu": "M2", "cores": 10, "memory_mib": null});
        b.version = "9".to_owned();
        let warnings = warnings(&[&a, &b]).join(" ");
        for part in [
            "M2, 10 cores",
            "versions of a",
            "keys: 7, 8",
            "1 of 2 runs",
            "a run 1: 42 %",
        ] {
            assert!(warnings.contains(part), "{part}: {warnings}");
        }
    }
}
