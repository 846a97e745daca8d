//! The part of COMPATIBILITY.md that is made: a table for each chapter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::lists::{Chapter, differences, public, table};

pub(super) const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../COMPATIBILITY.md");

const BEGIN: &str = "<!-- made by crates/server/tests/it/compatibility: begin -->\n";
const END: &str = "<!-- made by crates/server/tests/it/compatibility: end -->\n";

/// The version whose commands are counted.
const VERSION: (u32, u32) = (7, 2);

/// A word, and what differs.
type Verdict = (String, String);

/// The page with another list of commands.
pub(super) fn with_commands(page: &str, commands: &str) -> String {
    let (before, rest) = page.split_once(BEGIN).expect("where the list begins");
    let (_, after) = rest.split_once(END).expect("where the list ends");
    format!("{before}{BEGIN}{commands}{END}{after}")
}

/// The list of commands, with their number.
pub(super) fn commands() -> String {
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

/// What is said of each command that exists.
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

/// Commands of a group that no public server has.
fn own_of(group: &str) -> BTreeSet<&'static str> {
    let known: BTreeSet<String> = public()
        .into_iter()
        .flat_map(|chapter| chapter.commands)
        .map(|(name, _)| name)
        .collect();
    table()
        .filter(|row| row.group.name() == group && !known.contains(row.name))
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
