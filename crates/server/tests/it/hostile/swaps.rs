//! Databases are exchanged and emptied as a whole, also beside each other; a pause is in force when
//! it is answered.

use std::sync::atomic::{AtomicBool, Ordering};

use super::tools::{client_of_loop, flood, script};
use crate::common::{Client, Reply, Server, ok};

const KEYS: usize = 1_500;

fn fill(client: &mut Client, database: usize) {
    let mut bytes = format!("SELECT {database}\r\n").into_bytes();
    for i in 0..KEYS {
        bytes.extend_from_slice(format!("SET {database}:{i} v\r\n").as_bytes());
    }
    assert_eq!(flood(client, &bytes, KEYS + 1, &ok()), 0);
}

fn count(client: &mut Client, database: usize, pattern: &str) -> usize {
    script(client, &format!("SELECT {database}"));
    match client.call(&["KEYS", pattern]) {
        Reply::Array(keys) => keys.len(),
        other => panic!("{other:?}"),
    }
}

/// Runs one line again and again while another does the same.
fn beside(server: &Server, lines: [&str; 2], times: usize) {
    std::thread::scope(|scope| {
        for line in lines {
            scope.spawn(move || {
                let mut client = server.client();
                let bytes = format!("{line}\r\n").repeat(times);
                assert_eq!(flood(&mut client, bytes.as_bytes(), times, &ok()), 0);
            });
        }
    });
}

#[test]
fn swaps_beside_each_other_mix_no_databases() {
    let server = Server::start(&["--shards", "1024"]);
    let mut client = server.client();
    for database in 0..3 {
        fill(&mut client, database);
    }
    beside(&server, ["SWAPDB 0 1", "SWAPDB 1 2"], 400);
    let mut whole = 0;
    for database in 0..3 {
        let counts = [0, 1, 2].map(|from| count(&mut client, database, &format!("{from}:*")));
        whole += usize::from(counts.contains(&KEYS) && counts.iter().sum::<usize>() == KEYS);
    }
    assert_eq!(whole, 3, "each database holds what one of them held");
}

#[test]
fn a_flush_beside_a_swap_empties_one_database_and_no_part_of_another() {
    let server = Server::start(&["--shards", "1024"]);
    let mut client = server.client();
    for _ in 0..100 {
        for database in 0..2 {
            fill(&mut client, database);
        }
        beside(&server, ["FLUSHDB", "SWAPDB 0 1"], 1);
        for database in 0..2 {
            let left = count(&mut client, database, "*");
            assert!(left == 0 || left == KEYS, "{left} of {KEYS} keys are left");
        }
        assert_eq!(client.call(&["FLUSHALL"]), ok());
    }
}

/// A large value is copied before its key is locked. A pause that was answered in between did not
/// hold the write back.
#[test]
fn when_a_pause_is_answered_nobody_writes_any_more() {
    let server = Server::start(&[]);
    let mut boss = server.client();
    let mut others = Vec::new();
    let mut writer = client_of_loop(&server, &mut boss, 1, &mut others);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in (0..10_u8)
                .cycle()
                .take_while(|_| !done.load(Ordering::Relaxed))
            {
                let value = char::from(b'0' + i).to_string().repeat(8 << 20);
                assert_eq!(writer.call(&["SET", "k", &value]), ok());
            }
        });
        let result = (0..80).try_for_each(|_| {
            assert_eq!(boss.call(&["CLIENT", "PAUSE", "60000", "WRITE"]), ok());
            let mut first = || boss.call(&["GETRANGE", "k", "0", "0"]);
            let before = first();
            let same = (0..60).all(|_| first() == before);
            assert_eq!(boss.call(&["CLIENT", "UNPAUSE"]), ok());
            same.then_some(())
        });
        done.store(true, Ordering::Relaxed);
        assert_eq!(result, Some(()), "the value changed during a pause");
    });
}
