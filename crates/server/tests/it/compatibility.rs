//! COMPATIBILITY.md says of each command of the protocol whether it exists.

use std::collections::BTreeSet;

use crate::common::{Reply, Server, text};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../COMPATIBILITY.md");

/// The commands in the tables' rows whose second cell says one of `words`.
fn rows_that_say(page: &str, words: &[&str]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    // A name may hold an escaped bar, which does not end its cell.
    for line in page.replace("\\|", "\u{0}").lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, commands, word, ..] = cells[..] else {
            continue;
        };
        if words.contains(&word) {
            names.extend(
                commands
                    .split(['`', ' '])
                    .filter(|name| !name.is_empty())
                    .map(|name| name.replace('\u{0}', "|").to_lowercase()),
            );
        }
    }
    names
}

#[test]
fn the_page_lists_exactly_the_commands_that_the_server_knows() {
    let page = std::fs::read_to_string(PAGE).expect("COMPATIBILITY.md");
    let server = Server::start(&[]);
    let Reply::Array(list) = server.client().call(&["COMMAND", "LIST"]) else {
        panic!("COMMAND LIST is an array");
    };
    let known: BTreeSet<String> = list.iter().map(text).collect();
    assert_eq!(rows_that_say(&page, &["yes", "partly", "own"]), known);
    let absent = rows_that_say(&page, &["no"]);
    assert!(!absent.is_empty());
    assert_eq!(absent.intersection(&known).next(), None);
}
