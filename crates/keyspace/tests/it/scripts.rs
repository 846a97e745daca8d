//! The keyspace's part of scripts: commands that are not known beforehand, as one.

use tidewheel_keyspace::{
    Begun, Keyspace, Reach, Seat, Session, Time, Transaction, Watching, resolve,
};
use tidewheel_resp::{Args, Protocol, Reply, Writer};

use crate::common::{Rig, call_at, show, time};

fn with_script<R>(
    keyspace: &Keyspace,
    reach: Reach,
    keys: &[&[u8]],
    run: impl FnOnce(&mut Transaction<'_>) -> R,
) -> R {
    let mut seat: Seat = keyspace.seat();
    seat.enter();
    let now: Time = time(10);
    let begun = keyspace.script(&mut seat, now, reach, keys.iter().copied());
    let Begun::Runs(mut script) = begun else {
        panic!("nobody else is there");
    };
    let result = run(&mut script);
    script.end(&mut seat, now, &mut Writer::default());
    seat.leave();
    result
}

fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}

fn lacks(script: &Transaction<'_>, line: &str) -> Option<Reach> {
    let words = words(line);
    let args = Args::from_slices(&words);
    script.lacks(resolve(args).expect("a command"), args)
}

fn call(script: &mut Transaction<'_>, line: &str) -> String {
    let (words, mut out) = (words(line), Writer::new(Protocol::Resp2));
    let args = Args::from_slices(&words);
    let row = resolve(args).expect("a command");
    assert_eq!(script.lacks(row, args), None);
    script.call(row, &mut Session::default(), args, &mut out);
    let (reply, _) = Reply::read(out.as_bytes()).expect("valid").expect("whole");
    show(&reply)
}

/// Keys of other shards than that of `a`.
fn elsewhere(keyspace: &Keyspace) -> String {
    with_script(keyspace, Reach::Keys, &[b"a"], |script| {
        let names = (0..).map(|i| format!("k{i}"));
        let mut far = names.filter(|name| lacks(script, &format!("GET {name}")).is_some());
        far.next().expect("most are")
    })
}

#[test]
fn a_script_reaches_the_keys_that_were_named_and_asks_for_more() {
    let rig = Rig::new();
    let far = elsewhere(&rig.keyspace);
    let get = format!("GET {far}");
    with_script(&rig.keyspace, Reach::Keys, &[b"a"], |script| {
        assert_eq!(call(script, "SET a 1"), "OK");
        assert_eq!(lacks(script, &get), Some(Reach::Shards));
        assert_eq!(lacks(script, "KEYS *"), Some(Reach::Whole));
        assert_eq!(lacks(script, "SORT a"), Some(Reach::Shards));
        assert_eq!(lacks(script, "TIME"), None);
    });
    with_script(&rig.keyspace, Reach::Shards, &[], |script| {
        assert_eq!(call(script, "GET a"), "'1'");
        assert_eq!(call(script, &format!("SET {far} 2")), "OK");
        assert_eq!(call(script, "DEL l"), ":0");
        assert_eq!(call(script, "RPUSH l 2 1"), ":2");
        assert_eq!(call(script, "SORT l"), "['1' '2']");
        assert_eq!(lacks(script, "DBSIZE"), Some(Reach::Whole));
    });
    with_script(&rig.keyspace, Reach::Whole, &[], |script| {
        assert_eq!(call(script, "DBSIZE"), ":3");
        assert_eq!(call(script, "FLUSHALL"), "OK");
        assert_eq!(call(script, &get), "nil");
    });
}

#[test]
fn a_script_that_has_written_takes_more_shards_if_nobody_has_them() {
    let rig = Rig::new();
    let far = elsewhere(&rig.keyspace);
    let (line, keyspace) = (format!("SET {far} 1"), &rig.keyspace);
    let words = words(&line);
    let args = Args::from_slices(&words);
    let row = resolve(args).expect("a command");
    with_script(keyspace, Reach::Keys, &[b"a"], |script| {
        call(script, "SET a 1");
        assert!(script.lock_more(row, args));
        assert_eq!(call(script, &line), "OK");
        // Who has it does not give way.
        let other = std::thread::scope(|scope| {
            let run = || {
                with_script(keyspace, Reach::Keys, &[b"zz"], |script| {
                    script.lock_more(row, args)
                })
            };
            scope.spawn(run).join()
        });
        assert!(!other.expect("no panic"));
    });
}

/// The end of the script let the others in, between the transaction's commands.
#[test]
fn a_script_within_a_transaction_leaves_it_whole() {
    let rig = Rig::new();
    let (keyspace, nothing) = (&rig.keyspace, Watching::default());
    let mut seat = keyspace.seat();
    seat.enter();
    let begun = keyspace.transaction(&mut seat, time(10), 0, std::iter::empty(), &nothing, true);
    let Ok(Begun::Runs(outer)) = begun else {
        panic!("nobody else is there");
    };
    let Begun::Runs(script) = keyspace.script(&mut seat, time(10), Reach::Whole, [].into_iter())
    else {
        panic!("nobody else is there");
    };
    script.end(&mut seat, time(10), &mut Writer::default());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| call_at(keyspace, 10, 0, "SET a 1"));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!other.is_finished(), "it waits for the transaction");
        outer.end(&mut seat, time(10), &mut Writer::default());
        seat.leave();
        assert_eq!(show(&other.join().expect("no panic")), "OK");
    });
}

#[test]
fn a_script_gets_large_values_whole() {
    let mut rig = Rig::new();
    let long = "x".repeat(100_000);
    rig.run(&format!("SET a {long}"));
    with_script(&rig.keyspace, Reach::Keys, &[b"a"], |script| {
        assert_eq!(call(script, "GET a"), format!("'{long}'"));
        assert_eq!(call(script, "GETDEL a"), format!("'{long}'"));
        assert_eq!(call(script, "GET a"), "nil");
    });
}
