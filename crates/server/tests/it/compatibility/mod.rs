//! COMPATIBILITY.md says of each command of the public servers whether it exists, and of each unit
//! of the public test suites what came of it. Those parts of the page are made here. They come from
//! the table of commands and three lists: the public commands, what differs, and the results of the
//! suites, which `.ci/suite` writes.
//!
//! `TIDEWHEEL_BLESS=1 cargo test -p tidewheel-server --test it compatibility` writes it anew.

mod lists;
mod page;

use std::collections::BTreeSet;

use crate::common::{Reply, Server, text};

use self::lists::{differences, public, suites};
use self::page::{PAGE, made};

#[test]
fn the_page_says_what_the_table_and_the_lists_say() {
    let page = std::fs::read_to_string(PAGE).expect("COMPATIBILITY.md");
    let made = made(&page);
    if std::env::var_os("TIDEWHEEL_BLESS").is_some() {
        std::fs::write(PAGE, made).expect("COMPATIBILITY.md can be written");
        return;
    }
    let differs = page.lines().zip(made.lines()).find(|(old, new)| old != new);
    assert!(
        page == made,
        "run it again with TIDEWHEEL_BLESS=1; the first line that differs: {differs:?}"
    );
}

#[test]
fn the_table_is_what_the_server_knows() {
    let server = Server::start(&[]);
    let Reply::Array(list) = server.client().call(&["COMMAND", "LIST"]) else {
        panic!("COMMAND LIST is an array");
    };
    let known: BTreeSet<String> = list.iter().map(text).collect();
    let rows: BTreeSet<String> = lists::table().map(|row| row.name.to_owned()).collect();
    assert_eq!(known, rows);
}

/// The page says that any other key is an error. Eighteen were, which exist.
#[test]
fn the_page_names_every_setting() {
    let page = std::fs::read_to_string(PAGE).expect("COMPATIBILITY.md");
    let (_, below) = page
        .split_once("### Configuration keys")
        .expect("it is there");
    let (settings, _) = below.split_once("\n## ").expect("more follows");
    let server = Server::start(&[]);
    let Reply::Array(pairs) = server.client().call(&["CONFIG", "GET", "*"]) else {
        panic!("CONFIG GET is an array");
    };
    let names = pairs.chunks(2).map(|pair| text(&pair[0]));
    let is_named = |name: &String| {
        ["`", " no`"]
            .iter()
            .any(|end| settings.contains(&format!("`{name}{end}")))
    };
    let missing: Vec<String> = names.filter(|name| !is_named(name)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn differences_are_of_commands_that_exist_and_are_told_once() {
    let rows: BTreeSet<&str> = lists::table().map(|row| row.name).collect();
    let mut told = BTreeSet::new();
    for name in differences()
        .iter()
        .flat_map(|difference| &difference.names)
    {
        assert!(rows.contains(name.as_str()), "{name} does not exist");
        assert!(told.insert(name.clone()), "{name} is told twice");
    }
    let names: Vec<String> = public()
        .into_iter()
        .flat_map(|chapter| chapter.commands)
        .map(|(name, _)| name)
        .collect();
    let unique: BTreeSet<&String> = names.iter().collect();
    assert_eq!(names.len(), unique.len());
}

#[test]
fn every_failure_of_the_public_suites_has_a_reason() {
    for suite in suites() {
        for unit in suite.units {
            for (test, why) in &unit.failed {
                let told = why != "?" && why != "it does not end";
                assert!(told, "{}, {}: {test}", suite.source, unit.name);
            }
        }
    }
}
