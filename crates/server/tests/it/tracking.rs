//! CLIENT TRACKING over sockets: caches of clients are told, in both protocols.

use crate::common::{
    Client, Reply, Server, array, bulk, command, error, eventually, now, ok, simple, text,
};

fn push(words: &[&str]) -> Reply {
    Reply::Push(vec![bulk("invalidate"), array(words)])
}

fn client(server: &Server, resp: &str) -> Client {
    let mut client = server.client();
    client.call(&["HELLO", resp]);
    client
}

fn id(client: &mut Client) -> String {
    match client.call(&["CLIENT", "ID"]) {
        Reply::Integer(id) => id.to_string(),
        other => panic!("{other:?}"),
    }
}

/// No other server tells it before somebody touches the key.
#[test]
fn a_client_is_told_at_the_deadline_of_a_key_that_nobody_touches() {
    let server = Server::start(&[]);
    let (mut reader, mut writer) = (client(&server, "3"), server.client());
    assert_eq!(reader.call(&["CLIENT", "TRACKING", "ON"]), ok());
    let began = now();
    assert_eq!(writer.call(&["SET", "k", "v", "PX", "300"]), ok());
    assert_eq!(reader.call(&["GET", "k"]), bulk("v"));
    assert_eq!(reader.read(), push(&["k"]));
    assert!(began.elapsed().as_millis() >= 300, "never early");
    assert_eq!(reader.call(&["GET", "k"]), Reply::Null);
}

#[test]
fn readers_on_all_loops_are_told_of_changes_after_their_replies() {
    let server = Server::start(&["--threads", "2"]);
    let mut writer = server.client();
    let mut readers: Vec<Client> = (0..6).map(|_| client(&server, "3")).collect();
    for reader in &mut readers {
        assert_eq!(reader.call(&["CLIENT", "TRACKING", "ON"]), ok());
        assert_eq!(
            reader.call(&["MGET", "a", "b"]),
            Reply::Array(vec![Reply::Null; 2])
        );
    }
    assert_eq!(writer.call(&["MSET", "a", "1", "c", "2"]), ok());
    for reader in &mut readers {
        assert_eq!(reader.read(), push(&["a"]));
    }
    assert_eq!(readers[0].call(&["SET", "b", "1"]), ok());
    for reader in &mut readers {
        assert_eq!(reader.read(), push(&["b"]));
    }
    assert_eq!(writer.call(&["FLUSHALL"]), ok());
    for reader in &mut readers {
        assert_eq!(
            reader.read(),
            Reply::Push(vec![bulk("invalidate"), Reply::Null])
        );
        assert!(reader.is_silent());
    }
    // Keys that a script and a transaction read are tracked too.
    let reader = &mut readers[0];
    let text_of = "return redis.call('get', KEYS[1])";
    assert_eq!(reader.call(&["EVAL", text_of, "1", "s"]), Reply::Null);
    for words in [&["MULTI"][..], &["GET", "t"], &["EXEC"]] {
        reader.call(words);
    }
    assert_eq!(writer.call(&["SET", "s", "1"]), ok());
    assert_eq!(reader.read(), push(&["s"]));
    assert_eq!(writer.call(&["SET", "t", "1"]), ok());
    assert_eq!(reader.read(), push(&["t"]));
    assert_eq!(writer.info("clients", "tracking_clients"), "6");
    drop(readers);
    eventually("those who are gone are forgotten", || {
        let keys = writer.info("stats", "tracking_total_keys");
        (keys == "0" && writer.info("clients", "tracking_clients") == "0").then_some(())
    });
}

#[test]
fn a_client_of_resp2_has_another_told() {
    let server = Server::start(&["--threads", "2"]);
    let mut writer = server.client();
    for _ in 0..2 {
        // Clients are spread over the loops.
        let (mut reader, mut listener) = (server.client(), server.client());
        let other = id(&mut listener);
        listener.call(&["SUBSCRIBE", "__redis__:invalidate"]);
        let on = ["CLIENT", "TRACKING", "ON", "REDIRECT", &other];
        assert_eq!(reader.call(&on), ok());
        assert_eq!(
            reader.call(&["CLIENT", "GETREDIR"]),
            Reply::Integer(other.parse().expect("a number"))
        );
        reader.call(&["GET", "k"]);
        writer.call(&["SET", "k", "1"]);
        let message = |keys| {
            let words = vec![bulk("message"), bulk("__redis__:invalidate"), keys];
            Reply::Array(words)
        };
        assert_eq!(listener.read(), message(array(&["k"])));
        writer.call(&["FLUSHALL"]);
        assert_eq!(listener.read(), message(Reply::Null));
        assert!(reader.is_silent());
        // One who is gone cannot be told, and the reader learns of that.
        reader.call(&["HELLO", "3"]);
        reader.call(&["GET", "k"]);
        drop(listener);
        eventually("the listener is gone", || {
            let list = text(&writer.call(&["CLIENT", "LIST", "ID", &other]));
            list.is_empty().then_some(())
        });
        writer.call(&["SET", "k", "2"]);
        let gone = other.parse().expect("a number");
        assert_eq!(
            reader.read(),
            Reply::Push(vec![bulk("tracking-redir-broken"), Reply::Integer(gone)])
        );
        let list = text(&reader.call(&["CLIENT", "LIST"]));
        let mine = format!("redir={other} ");
        let line = list.lines().find(|line| line.contains(&mine));
        assert!(
            line.is_some_and(|line| line.contains("flags=tR ")),
            "{list}"
        );
    }
}

#[test]
fn a_client_may_be_told_of_everything_with_its_prefixes() {
    let server = Server::start(&[]);
    let (mut all, mut writer) = (client(&server, "3"), server.client());
    let on = [
        "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "p:", "PREFIX", "q", "NOLOOP",
    ];
    assert_eq!(all.call(&on), ok());
    writer.call(&["MSET", "p:1", "a", "r", "b"]);
    assert_eq!(all.read(), push(&["p:1"]));
    all.call(&["SET", "p:1", "mine"]);
    writer.call(&["SET", "q", "c"]);
    assert_eq!(all.read(), push(&["q"]));
    let flags = ["on", "bcast", "noloop"].map(bulk).to_vec();
    assert_eq!(
        all.call(&["CLIENT", "TRACKINGINFO"]),
        Reply::Map(vec![
            (bulk("flags"), Reply::Set(flags)),
            (bulk("redirect"), Reply::Integer(0)),
            (bulk("prefixes"), array(&["p:", "q"])),
        ])
    );
    assert_eq!(writer.info("stats", "tracking_total_prefixes"), "2");
    assert_eq!(
        all.call(&["CLIENT", "TRACKING", "ON"]),
        error(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then \
             re-enabling it with a different mode."
        )
    );
    assert_eq!(all.call(&["RESET"]), simple("RESET"));
    writer.call(&["SET", "q", "d"]);
    assert!(all.is_silent());
}

#[test]
fn a_client_may_choose_for_each_command() {
    let server = Server::start(&[]);
    let (mut chooser, mut writer) = (client(&server, "3"), server.client());
    assert_eq!(chooser.call(&["CLIENT", "TRACKING", "ON", "OPTIN"]), ok());
    chooser.call(&["GET", "a"]);
    assert_eq!(chooser.call(&["CLIENT", "CACHING", "YES"]), ok());
    chooser.call(&["GET", "b"]);
    chooser.call(&["GET", "c"]);
    writer.call(&["MSET", "a", "1", "b", "1", "c", "1"]);
    assert_eq!(chooser.read(), push(&["b"]));
    assert!(chooser.is_silent());
    assert_eq!(
        chooser.call(&["CLIENT", "CACHING", "NO"]),
        error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
    );
    chooser.call(&["CLIENT", "TRACKING", "OFF"]);
    chooser.call(&["CLIENT", "TRACKING", "ON", "OPTOUT"]);
    assert_eq!(chooser.call(&["CLIENT", "CACHING", "NO"]), ok());
    chooser.call(&["GET", "a"]);
    chooser.call(&["GET", "b"]);
    writer.call(&["MSET", "a", "2", "b", "2"]);
    assert_eq!(chooser.read(), push(&["b"]));
    assert!(chooser.is_silent());
}

#[test]
fn keys_that_a_full_table_forgets_are_announced() {
    let server = Server::start(&["--tracking-table-max-keys", "10", "--shards", "1"]);
    let mut reader = client(&server, "3");
    assert_eq!(reader.call(&["CLIENT", "TRACKING", "ON"]), ok());
    for i in 0..30 {
        reader.send(format!("GET key:{i}\r\n").as_bytes());
    }
    let (mut replies, mut told) = (0, 0);
    while replies < 30 || told < 20 {
        match reader.read() {
            Reply::Push(_) => told += 1,
            _ => replies += 1,
        }
    }
    assert!(reader.is_silent());
    let mut other = server.client();
    assert_eq!(other.info("stats", "tracking_total_keys"), "10");
    assert_ne!(other.info("memory", "mem_tracking_tables"), "0");
}

#[test]
fn a_table_that_may_have_fewer_keys_forgets_those_beyond_at_once() {
    let server = Server::start(&["--shards", "64"]);
    let mut reader = client(&server, "3");
    assert_eq!(reader.call(&["CLIENT", "TRACKING", "ON"]), ok());
    reader.call(&["MGET", "a", "b"]);
    let mut other = server.client();
    other.call(&["CONFIG", "SET", "tracking-table-max-keys", "1"]);
    assert!([push(&["a"]), push(&["b"])].contains(&reader.read()));
    // A key of another shard finds no room there.
    reader.send(b"GET c\r\n");
    let told = [reader.read(), reader.read()];
    assert!(told.iter().any(|reply| matches!(reply, Reply::Push(_))));
    assert_eq!(other.info("stats", "tracking_total_keys"), "1");
}

/// A thousand names of a megabyte took a gigabyte that nothing counted.
#[test]
fn prefixes_and_names_of_keys_are_bounded_in_bytes_too() {
    let server = Server::start(&[]);
    let mut broadcast = client(&server, "3");
    let long = "p".repeat(600 << 10);
    let words = ["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX"];
    assert_eq!(broadcast.call(&[&words[..], &[&long]].concat()), ok());
    let other = "q".repeat(600 << 10);
    let refused = broadcast.call(&[&words[..], &[&other]].concat());
    assert!(text(&refused).contains("too many prefixes"), "{refused:?}");
    let mut reader = client(&server, "3");
    assert_eq!(reader.call(&["CLIENT", "TRACKING", "ON"]), ok());
    let name = "n".repeat(8 << 20);
    for i in 0..40 {
        reader.send(&command(&["GET", &format!("{name}{i}")]));
        while reader.read() != Reply::Null {}
    }
    let bytes: u64 = server
        .client()
        .info("memory", "mem_tracking_tables")
        .parse()
        .expect("a number");
    assert!(bytes < 280 << 20, "{bytes} bytes");
}
