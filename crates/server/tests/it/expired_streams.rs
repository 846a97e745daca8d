//! Keys that expire become entries of a stream, over real sockets and clocks.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::common::{Client, PATIENCE, Reply, Server, array, error, eventually, now, ok, text};

/// Keys that are due within a second: ten times as many in the deep tier.
fn keys() -> usize {
    match std::env::var_os("TIDEWHEEL_DEEP") {
        Some(_) => 1_000_000,
        None => 100_000,
    }
}

/// The server's wall clock.
fn wall_ms(client: &mut Client) -> u64 {
    let Reply::Array(parts) = client.call(&["TIME"]) else {
        panic!("no time");
    };
    let [seconds, micros] = [0, 1].map(|at| text(&parts[at]).parse::<u64>().expect("a number"));
    seconds * 1_000 + micros / 1_000
}

/// The entries of a reply of XREADGROUP: key, deadline, and when it fired.
fn read(reply: &Reply) -> Vec<(String, u64, u64)> {
    let list = |reply: &Reply| match reply {
        Reply::Array(items) => items.clone(),
        other => panic!("no list: {other:?}"),
    };
    let entries = list(&list(&list(reply)[0])[1]);
    let entries = entries.iter().map(|entry| {
        let words = list(&list(entry)[1]);
        let number = |at: usize| text(&words[at]).parse().expect("milliseconds");
        (text(&words[1]), number(3), number(5))
    });
    entries.collect()
}

fn number(client: &mut Client, field: &str) -> u64 {
    client.info("expiry", field).parse().expect("a number")
}

#[test]
fn keys_that_are_due_in_one_second_are_all_read_by_a_group_once_and_none_early() {
    let keys = keys();
    let server = Server::start(&["--expired-stream", "0 gone 2000000"]);
    let mut client = server.client();
    let create = ["XGROUP", "CREATE", "gone", "workers", "$", "MKSTREAM"];
    assert_eq!(client.call(&create), ok());
    let told = Arc::new(AtomicUsize::new(0));
    let mut consumers = Vec::new();
    for name in ["anna", "bela"] {
        let (mut consumer, told) = (server.client(), Arc::clone(&told));
        consumers.push(std::thread::spawn(move || {
            let words = [
                "XREADGROUP",
                "GROUP",
                "workers",
                name,
                "COUNT",
                "1000",
                "BLOCK",
                "500",
                "NOACK",
                "STREAMS",
                "gone",
                ">",
            ];
            let (mut all, until) = (Vec::new(), now() + 4 * PATIENCE);
            while told.load(Relaxed) < keys && now() < until {
                if let reply @ Reply::Array(_) = consumer.call(&words) {
                    let entries = read(&reply);
                    told.fetch_add(entries.len(), Relaxed);
                    all.extend(entries);
                }
            }
            all
        }));
    }
    // However long it takes to load them, they are due in one second.
    assert_eq!(client.call(&["EXPIRY", "FREEZE"]), ok());
    for from in (0..keys).step_by(10_000) {
        let mut batch = Vec::new();
        for i in from..from + 10_000 {
            write!(batch, "SET k:{i} v PX {}\r\n", 1 + i * 7_919 % 1_000).expect("memory");
        }
        client.send(&batch);
        (0..10_000).for_each(|_| assert_eq!(client.read(), ok()));
    }
    let first = wall_ms(&mut client);
    assert_eq!(client.call(&["EXPIRY", "RESUME"]), ok());
    let mut told = BTreeSet::new();
    for consumer in consumers {
        for (key, deadline, fired) in consumer.join().expect("it reads") {
            assert!(first < deadline && deadline <= fired, "{key} was early");
            assert!(told.insert(key), "told twice");
        }
    }
    assert_eq!(told.len(), keys);
    assert_eq!(client.call(&["DBSIZE"]), Reply::Integer(1));
    assert_eq!(client.call(&["XLEN", "gone"]), Reply::Integer(keys as i64));
    assert_eq!(number(&mut client, "expired_stream_appended"), keys as u64);
    let lost = ["queued", "failed", "dropped", "flushed", "trimmed"];
    let lost = lost.map(|name| number(&mut client, &format!("expired_stream_{name}")));
    assert_eq!(lost, [0; 5]);
}

#[test]
fn keys_that_expire_while_a_script_has_the_stream_are_told_after_it() {
    const KEYS: usize = 2_000;
    let server = Server::start(&["--expired-stream", "0 gone 2000000 values"]);
    let mut client = server.client();
    let mut batch = Vec::new();
    for i in 0..KEYS {
        write!(batch, "SET k:{i} v:{i} PX 50\r\n").expect("memory");
    }
    client.send(&batch);
    (0..KEYS).for_each(|_| assert_eq!(client.read(), ok()));
    // It has the shard of the stream, and expiry goes on in the others.
    let body =
        "local n = 0 for i = 1, 30000000 do n = n + i % 7 end return redis.call('xlen', KEYS[1])";
    let during = client.call(&["EVAL", body, "1", "gone"]);
    assert!(matches!(during, Reply::Integer(_)), "{during:?}");
    eventually("all are told", || {
        (client.call(&["XLEN", "gone"]) == Reply::Integer(KEYS as i64)).then_some(())
    });
    let page = client.call(&["XREAD", "COUNT", "100000", "STREAMS", "gone", "0"]);
    let told: BTreeSet<String> = read(&page).into_iter().map(|(key, ..)| key).collect();
    assert_eq!(told.len(), KEYS);
}

#[test]
fn a_name_of_another_type_is_said_once_and_counted() {
    let server = Server::start_logged(&[]);
    let mut client = server.client();
    let get = ["CONFIG", "GET", "expired-stream"];
    assert_eq!(client.call(&get), array(&["expired-stream", ""]));
    let set = ["CONFIG", "SET", "expired-stream"];
    let wrong = client.call(&[&set[..], &["0 gone"]].concat());
    assert_eq!(
        wrong,
        error(
            "ERR CONFIG SET failed (possibly related to argument 'expired-stream') - write database, \
             name and length, and 'values' if entries are to have them"
        )
    );
    // It was accepted, and nothing ever entered that stream.
    let nowhere = client.call(&[&set[..], &["0 gone 10 16 gone 100"]].concat());
    assert_eq!(
        nowhere,
        error(
            "ERR CONFIG SET failed (possibly related to argument 'expired-stream') - there is no database 16: \
             --databases is 16"
        )
    );
    let right = "3 gone 100 values 0 taken 50";
    assert_eq!(client.call(&[&set[..], &[right]].concat()), ok());
    assert_eq!(client.call(&get), array(&["expired-stream", right]));
    assert_eq!(client.call(&["SET", "taken", "by me"]), ok());
    for i in 1..=3 {
        assert_eq!(client.call(&["SET", "k", "v", "PX", "1"]), ok());
        eventually("it has failed", || {
            (number(&mut client, "expired_stream_failed") == i).then_some(())
        });
    }
    assert_eq!(server.logged("cannot be appended to the stream").len(), 1);
    assert_eq!(client.call(&[&set[..], &[""]].concat()), ok());
    assert_eq!(client.call(&["SET", "k", "v", "PX", "1"]), ok());
    eventually("it has expired", || {
        (number(&mut client, "expired_keys") == 4).then_some(())
    });
    assert_eq!(number(&mut client, "expired_stream_failed"), 3);
}
