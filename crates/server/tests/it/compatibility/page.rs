//! Writes the generated part of COMPATIBILITY.md: a table for each chapter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::lists::{Chapter, Suite, Unit, differences, public, suites, table};

pub(super) const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../COMPATIBILITY.md");

/// Parts that are made: what stands before and behind each.
const COMMANDS: (&str, &str) = (
    "<!-- commands, made by crates/server/tests/it/compatibility: begin -->\n",
    "<!-- commands: end -->\n",
);
const UNITS: (&str, &str) = (
    "<!-- the suite, made by crates/server/tests/it/compatibility: begin -->\n",
    "<!-- the suite: end -->\n",
);

/// The version whose commands are counted.
const VERSION: (u32, u32) = (7, 2);

/// Reasons of failures that are whole families of commands.
const MISSING: &[&str] = &["ACL", "replication", "modules and cluster"];

/// A word, and what differs.
type Verdict = (String, String);

/// The page as it should be.
pub(super) fn made(page: &str) -> String {
    let page = with(page, COMMANDS, &commands());
    with(&page, UNITS, &units())
}

/// The page with another text between two marks.
fn with(page: &str, (begin, end): (&str, &str), text: &str) -> String {
    let (before, rest) = page.split_once(begin).expect("where a part begins");
    let (_, after) = rest.split_once(end).expect("where a part ends");
    format!("{before}{begin}{text}{end}{after}")
}

/// The list of commands, with their number.
fn commands() -> String {
    let (chapters, verdicts) = (public(), verdicts());
    let of_version = chapters.iter().flat_map(|chapter| &chapter.commands);
    let of_version: Vec<&str> = of_version
        .filter(|(name, since)| version(since) <= VERSION && !name.starts_with("debug|"))
        .map(|(name, _)| name.as_str())
        .collect();
    let all = of_version.len();
    let here = of_version
        .iter()
        .filter(|name| verdicts.contains_key(**name));
    let mut text = format!(
        "Of the {all} commands and subcommands of Redis {}.{}, {} exist.\n",
        VERSION.0,
        VERSION.1,
        here.count()
    );
    for chapter in &chapters {
        write_chapter(chapter, &verdicts, &mut text);
    }
    for name in verdicts.keys() {
        assert!(text.contains(&shown(name)), "{name} belongs to no chapter");
    }
    text
}

/// Returns the verdict on each command that exists.
fn verdicts() -> BTreeMap<&'static str, Verdict> {
    let differences = differences();
    let told = |name: &str| {
        let mut of = differences.iter();
        let found = of.find(|told| told.names.iter().any(|known| known == name));
        found.map_or(("yes".to_owned(), String::new()), |told| {
            (told.word.clone(), told.text.clone())
        })
    };
    table().map(|row| (row.name, told(row.name))).collect()
}

fn write_chapter(chapter: &Chapter, verdicts: &BTreeMap<&'static str, Verdict>, text: &mut String) {
    let public: BTreeSet<&str> = chapter
        .commands
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let own = own_of(&chapter.group);
    let names = public.union(&own).copied();
    let mut rows: BTreeMap<(u8, &str, &str), Vec<&str>> = BTreeMap::new();
    for name in names {
        let (word, difference) = match verdicts.get(name) {
            None => ("no", ""),
            Some((_, difference)) if own.contains(name) => ("own", difference.as_str()),
            Some((word, difference)) => (word.as_str(), difference.as_str()),
        };
        let place = ["yes", "partly", "own", "no"]
            .iter()
            .position(|known| *known == word);
        let place = place.expect("a word that is known") as u8;
        rows.entry((place, difference, word))
            .or_default()
            .push(name);
    }
    if rows.is_empty() {
        return;
    }
    let written = write!(
        text,
        "\n### {}\n\n| command | | what is missing or different |\n|---|---|---|\n",
        chapter.title
    );
    written.expect("a String takes everything");
    for ((_, difference, word), names) in rows {
        let names: Vec<String> = names.into_iter().map(shown).collect();
        let difference = if difference.is_empty() {
            String::new()
        } else {
            format!("{difference} ")
        };
        writeln!(text, "| {} | {word} | {difference}|", names.join(" "))
            .expect("a String takes everything");
    }
}

/// True if a test that failed for this reason needs what does not exist here: it counts for
/// nothing.
fn needs_more(why: &str) -> bool {
    MISSING.contains(&why) || why.starts_with("no `") || why.starts_with("no setting `")
}

/// True if a test asks for what Valkey does unlike Redis, which the server follows.
fn follows_redis(why: &str) -> bool {
    why.starts_with("unlike Redis: ")
}

/// Returns the section on the public test suites.
fn units() -> String {
    let mut text = String::new();
    for suite in suites() {
        write_suite(&suite, &mut text);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn write_suite(suite: &Suite, text: &mut String) {
    let Suite { source, units } = suite;
    let passed: u32 = units.iter().map(|unit| unit.passed).sum();
    let failures = || units.iter().flat_map(|unit| &unit.failed);
    let (failed, others) = (
        failures().count(),
        failures().filter(|(_, why)| !needs_more(why)),
    );
    let others = others.count();
    let share = |failed: usize| {
        let passed = f64::from(passed);
        passed / (passed + failed as f64) * 100.0
    };
    writeln!(
        text,
        "### {source}\n\n{} of the {} eligible tests pass: {:.1} %. {} more were run, and fail for what \
         does not exist; with these it is {:.1} %.\n",
        passed,
        passed as usize + others,
        share(others),
        failed - others,
        share(failed),
    )
    .expect("a String takes everything");
    let unlike = failures().filter(|(_, why)| follows_redis(why)).count();
    if unlike > 0 {
        writeln!(
            text,
            "{unlike} of those that fail ask for what {source} does unlike Redis, which this server \
             follows; of the others {:.1} % pass.\n",
            share(others - unlike),
        )
        .expect("a String takes everything");
    }
    text.push_str("| unit | passed | failed | left out | why they fail |\n|---|---|---|---|---|\n");
    for unit in units {
        let (name, passed, skipped) = (&unit.name, unit.passed, unit.skipped);
        let (failed, why) = (unit.failed.len(), reasons(unit));
        let why = if why.is_empty() { why } else { why + " " };
        writeln!(text, "| {name} | {passed} | {failed} | {skipped} | {why}|")
            .expect("a String takes everything");
    }
    text.push_str("\nEach that fails, but for those that need what does not exist:\n\n");
    for unit in units {
        for (test, why) in named(unit) {
            let test = test.replace('`', "'");
            writeln!(text, "- {}: `{test}`: {why}", unit.name).expect("a String takes everything");
        }
    }
    text.push('\n');
}

/// The tests of a unit that fail although they need nothing that does not exist, once each.
fn named(unit: &Unit) -> BTreeSet<(&str, &str)> {
    let failed = unit.failed.iter();
    let eligible = failed.filter(|(_, why)| !needs_more(why));
    eligible
        .map(|(test, why)| (test.as_str(), why.as_str()))
        .collect()
}

/// Returns the reasons for which tests of a unit fail, most frequent ones first.
fn reasons(unit: &Unit) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, why) in &unit.failed {
        *counts.entry(why).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(why, n)| (usize::MAX - n, *why));
    let told: Vec<String> = counts.iter().map(|(why, n)| format!("{why} {n}")).collect();
    told.join("; ")
}

/// Commands of a group that no public server has.
fn own_of(group: &str) -> BTreeSet<&'static str> {
    let known: BTreeSet<String> = public()
        .into_iter()
        .flat_map(|chapter| chapter.commands)
        .map(|(name, _)| name)
        .collect();
    table()
        .filter(|row| row.group().name() == group && !known.contains(row.name))
        .map(|row| row.name)
        .collect()
}

fn shown(name: &str) -> String {
    format!("`{}`", name.to_ascii_uppercase().replace('|', "\\|"))
}

fn version(text: &str) -> (u32, u32) {
    let mut numbers = text
        .split('.')
        .map(|number| number.parse().expect("a number"));
    let mut next = || numbers.next().expect("two numbers");
    (next(), next())
}
