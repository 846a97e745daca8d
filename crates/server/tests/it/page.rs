//! The page of time, and what it asks for.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::common::{Client, Reply, eventually, have, ok};
use crate::pages::{connect, get, start, status};

/// What a path answers as JSON, for who sends these headers.
fn asked(port: u16, path: &str, headers: &str) -> Value {
    let reply = get(port, path, headers);
    assert_eq!(status(&reply), "200", "{path}: {reply}");
    let (_, body) = reply.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str(body).unwrap_or_else(|why| panic!("{path}: {why}: {body}"))
}

/// Makes users who may do one thing each; their headers.
fn users(client: &mut Client) -> [(&'static str, &'static str); 3] {
    for (name, password, rights) in [
        ("mon", ">m", "+info"),
        ("eve", ">e", "+expiry|forecast"),
        ("kim", ">k", "+type +pttl +scan ~mine:*"),
    ] {
        let rights = rights.split(' ');
        let words: Vec<&str> = ["ACL", "SETUSER", name, "on", password]
            .into_iter()
            .chain(rights)
            .collect();
        assert_eq!(client.call(&words), ok());
    }
    [
        ("mon", "Authorization: Basic bW9uOm0=\r\n"),
        ("eve", "Authorization: Basic ZXZlOmU=\r\n"),
        ("kim", "Authorization: Basic a2ltOms=\r\n"),
    ]
}

#[test]
fn the_page_loads_its_own_parts_only_and_makes_no_markup_of_text() {
    let (_server, port) = start(&[]);
    let page = get(port, "/", "");
    assert_eq!(status(&page), "200");
    for rule in [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(page.contains(rule), "{rule}");
    }
    for part in ["/page.css", "/page.js"] {
        assert!(page.contains(part), "{part}");
        assert_eq!(status(&get(port, part, "")), "200");
    }
    // Nothing inline: the policy would refuse it.
    for inline in [
        "<style",
        "style=",
        "onclick",
        "javascript:",
        "http://localhost",
        "https://",
    ] {
        assert!(!page.contains(inline), "{inline}");
    }
    let script = get(port, "/page.js", "");
    for sink in [
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
    ] {
        assert!(!script.contains(sink), "{sink}");
    }
}

#[test]
fn a_password_is_asked_for_where_one_is_needed() {
    let (_server, port) = start(&["--requirepass", "pw"]);
    let (known, wrong) = (
        "Authorization: Basic ZGVmYXVsdDpwdw==\r\n",
        "Authorization: Basic ZGVmYXVsdDpubw==\r\n",
    );
    for path in [
        "/",
        "/sign-in",
        "/now",
        "/hour",
        "/events",
        "/key?key=a",
        "/forecast",
        "/largest",
    ] {
        for header in ["", wrong] {
            let reply = get(port, path, header);
            assert_eq!(status(&reply), "401", "{path}");
            assert!(reply.contains("www-authenticate: Basic"), "{path}: {reply}");
        }
    }
    assert_eq!(status(&get(port, "/", known)), "200");
    assert!(get(port, "/sign-in", known).contains("location: /\r\n"));
    assert_eq!(status(&get(port, "/hour", known)), "200");
}

#[test]
fn each_part_is_shown_to_who_may_run_its_command() {
    let (server, port) = start(&[]);
    let mut client = server.client();
    client.call(&["SET", "mine:a", "1", "EX", "100"]);
    client.call(&["SET", "other", "1", "EX", "100"]);
    let [(_, mon), (_, eve), (_, kim)] = users(&mut client);
    // The numbers are as old as the last second's.
    let now = eventually("both keys are counted", || {
        let now = asked(port, "/now", mon);
        (now["numbers"]["keys"] == json!(2.0)).then_some(now)
    });
    assert_eq!(now["databases"][0]["keys"], 2);
    for part in ["forecast", "slow", "clients", "latencies", "user"] {
        let why = now[part]["no"].as_str().unwrap_or_default();
        assert!(why.starts_with("NOPERM"), "{part}: {now}");
    }
    let now = asked(port, "/now?parts=numbers,forecast", eve);
    assert!(now["numbers"]["no"].is_string(), "{now}");
    assert_eq!(now["forecast"].as_array().map(Vec::len), Some(65));
    assert_eq!(now.get("slow"), None);
    assert_eq!(status(&get(port, "/hour", eve)), "403");
    assert_eq!(status(&get(port, "/forecast", eve)), "403");
    assert_eq!(status(&get(port, "/largest", kim)), "403");
    // Kim sees the time left of its own keys only.
    assert_eq!(asked(port, "/forecast", kim)["found"], 1);
    assert_eq!(asked(port, "/key?key=mine%3Aa", kim)["type"], "string");
    let other = asked(port, "/key?key=other", kim).to_string();
    assert!(
        other.contains("NOPERM") && !other.contains("embstr"),
        "{other}"
    );
}

#[test]
fn pages_of_others_get_nothing() {
    let (_server, port) = start(&[]);
    for (site, path, expected) in [
        ("cross-site", "/now", "403"),
        ("same-site", "/largest", "403"),
        ("cross-site", "/metrics", "403"),
        ("same-origin", "/now", "200"),
        ("none", "/metrics", "200"),
        // A link that somebody follows.
        ("cross-site", "/", "200"),
    ] {
        let reply = get(port, path, &format!("Sec-Fetch-Site: {site}\r\n"));
        assert_eq!(status(&reply), expected, "{site} {path}");
    }
}

#[test]
fn the_hour_gets_a_row_each_second() {
    let (server, port) = start(&[]);
    let rows = || {
        let hour = asked(port, "/hour", "");
        let rows = hour["rows"].as_array().expect("rows").clone();
        let names = hour["names"].as_array().expect("names");
        let column = names.iter().position(|name| name == "keys").expect("keys");
        (rows.len(), rows.last().expect("a row")[column].clone())
    };
    let (before, _) = rows();
    assert_eq!(server.client().call(&["SET", "a", "1"]), ok());
    eventually("the key is in a later row", || {
        let (now, keys) = rows();
        (now > before && keys == 1).then_some(())
    });
    assert_eq!(
        asked(port, "/hour?every=3600", "")["rows"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[test]
fn keys_of_a_window_are_found_with_their_prefixes_and_any_name_leads_on() {
    let (server, port) = start(&["--databases", "3"]);
    let mut client = server.client();
    client.call(&["SELECT", "2"]);
    let odd = "<img src=x onerror=a()>&\"'% +ü";
    for (key, ms) in [
        ("session:1", "50000"),
        ("session:2", "60000"),
        (odd, "55000"),
        ("user:1", "9000000"),
    ] {
        client.call(&["SET", key, "1", "PX", ms]);
    }
    client.call(&["SET", "kept", "1"]);
    let found = asked(port, "/forecast?db=2&from=1000&to=100000", "");
    assert_eq!(found["looked"], 5);
    assert_eq!(found["found"], 3);
    assert_eq!(found["cursor"], "0");
    assert_eq!(
        found["prefixes"][0],
        json!({ "prefix": "session:", "keys": 2 })
    );
    let sample = &found["samples"][1]["key"];
    assert_eq!(sample["text"], odd);
    let id = sample["id"].as_str().expect("an address' form");
    let key = asked(port, &format!("/key?db=2&key={id}"), "");
    assert_eq!(
        (&key["key"]["text"], &key["type"]),
        (&json!(odd), &json!("string"))
    );
    assert_eq!(asked(port, "/forecast?db=0", "")["looked"], 0);
    assert_eq!(status(&get(port, "/forecast?db=99", "")), "503");
}

#[test]
fn large_keys_and_members_with_deadlines_are_shown() {
    let (server, port) = start(&[]);
    let mut client = server.client();
    client.call(&["SET", "big", &"x".repeat(50_000)]);
    for i in 0..30 {
        client.call(&["SET", &format!("small:{i}"), "1"]);
    }
    client.call(&["HSET", "h", "a", "1", "b", "2"]);
    client.call(&["HPEXPIRE", "h", "90000", "FIELDS", "1", "b"]);
    client.call(&["ZADD", "z", "1", "a", "2", "b"]);
    client.call(&["ZPEXPIRE", "z", "90000", "MEMBERS", "1", "b"]);
    client.call(&["SADD", "s", "a", "b"]);
    client.call(&["SPEXPIRE", "s", "90000", "MEMBERS", "1", "b"]);
    let large = asked(port, "/largest", "");
    assert_eq!(large["looked"], 34);
    assert_eq!(large["keys"][0]["key"]["text"], "big");
    for key in ["h", "z", "s"] {
        let key = asked(port, &format!("/key?key={key}"), "");
        assert_eq!(key["length"], 2, "{key}");
        assert_eq!(key["members"]["looked"], 2, "{key}");
        assert_eq!(
            key["members"]["timed"].as_array().map(Vec::len),
            Some(1),
            "{key}"
        );
        assert_eq!(key["members"]["timed"][0]["member"], "b", "{key}");
    }
    assert_eq!(asked(port, "/key?key=gone", "")["type"], "none");
    assert_eq!(asked(port, "/key", "")["type"], "none");
}

/// Opens a stream of events; its first bytes have come.
fn stream(port: u16) -> (TcpStream, String) {
    let mut stream = connect(port);
    let request = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).expect("it reads");
    let mut head = [0; 1024];
    let read = stream.read(&mut head).expect("it answers");
    (stream, String::from_utf8_lossy(&head[..read]).into_owned())
}

#[test]
fn thirty_two_streams_of_events_and_no_more() {
    let (server, port) = start(&[]);
    let mut streams: Vec<TcpStream> = (0..32)
        .map(|_| {
            let (stream, head) = stream(port);
            assert!(
                head.starts_with("HTTP/1.1 200") && head.contains("text/event-stream"),
                "{head}"
            );
            stream
        })
        .collect();
    let (_, head) = stream(port);
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(status(&get(port, "/healthz", "")), "200");
    // Who reads nothing keeps its place; who goes makes room.
    drop(streams.pop());
    eventually("there is room", || {
        stream(port).1.starts_with("HTTP/1.1 200").then_some(())
    });
    streams.clear();
    eventually("their connections have ended", || {
        (server.client().info("clients", "connected_clients") == "1").then_some(())
    });
}

#[test]
fn a_stream_tells_of_each_second() {
    let (server, port) = start(&[]);
    let (mut stream, mut told) = stream(port);
    assert_eq!(server.client().call(&["SET", "a", "1", "EX", "100"]), ok());
    let mut more = [0; 4096];
    while !(told.contains("\"keys\":1.0") && told.contains(",131072,1]")) {
        let read = stream.read(&mut more).expect("the next second comes");
        assert!(read > 0, "it ended: {told}");
        told.push_str(&String::from_utf8_lossy(&more[..read]));
    }
}

/// Reads to the end of a stream, which comes before its next event.
fn ends_at_once(stream: &mut TcpStream, what: &str) {
    let mut rest = Vec::new();
    // It may be reset.
    let _ = stream.read_to_end(&mut rest);
    let rest = String::from_utf8_lossy(&rest);
    assert!(!rest.contains("data:"), "{what}: {rest}");
}

/// It went on until the next second, and without an end if its user was only switched off.
#[test]
fn a_stream_of_events_ends_at_once_with_the_rights_of_its_user() {
    let (server, port) = start(&[]);
    let mut admin = server.client();
    for change in [
        &["ACL", "DELUSER", "mon"][..],
        &["ACL", "SETUSER", "mon", "off"],
        &["ACL", "SETUSER", "mon", "-info"],
        &["ACL", "SETUSER", "mon", "-@all"],
        &["ACL", "SETUSER", "mon", "reset"],
        &["ACL", "SETUSER", "mon", "<m", ">n"],
    ] {
        let [(_, mon), ..] = users(&mut admin);
        let mut viewer = connect(port);
        let request = format!("GET /events HTTP/1.1\r\nHost: localhost\r\n{mon}\r\n");
        viewer.write_all(request.as_bytes()).expect("it reads");
        // What takes nothing away ends nothing.
        let mut told = String::new();
        let more = |viewer: &mut TcpStream, told: &mut String, events: usize| {
            let mut more = [0; 4096];
            while told.matches("data:").count() < events || !told.ends_with("\n\n\r\n") {
                let read = viewer.read(&mut more).expect("the next second comes");
                assert!(read > 0, "it ended: {told}");
                told.push_str(&String::from_utf8_lossy(&more[..read]));
            }
        };
        more(&mut viewer, &mut told, 1);
        let adds = ["ACL", "SETUSER", "mon", "+expiry|forecast", "+get", "~x"];
        assert_eq!(admin.call(&adds), ok());
        assert_eq!(admin.call(&["CONFIG", "SET", "timeout", "100"]), ok());
        more(&mut viewer, &mut told, 2);
        assert!(matches!(
            admin.call(change),
            Reply::Simple(_) | Reply::Integer(1)
        ));
        ends_at_once(&mut viewer, &change.join(" "));
        admin.call(&["ACL", "DELUSER", "mon"]);
    }
    // Who gives no name is the default user.
    let (mut viewer, mut told) = stream(port);
    while !told.ends_with("\n\n\r\n") {
        let mut more = [0; 4096];
        let read = viewer.read(&mut more).expect("the first second");
        told.push_str(&String::from_utf8_lossy(&more[..read]));
    }
    assert_eq!(admin.call(&["CONFIG", "SET", "requirepass", "x"]), ok());
    ends_at_once(&mut viewer, "requirepass");
}

#[test]
fn a_browser_shows_what_happens_and_has_nothing_to_complain_of() {
    if !have("chromium", &["--version"]) {
        return;
    }
    let (server, port) = start(&[]);
    let mut client = server.client();
    let odd = "<img src=x onerror=\"document.title='hit'\">";
    client.call(&["SET", odd, &"x".repeat(9_000), "EX", "90"]);
    client.call(&["HSET", "h", odd, "1", "b", "2"]);
    client.call(&["HPEXPIRE", "h", "90000", "FIELDS", "1", odd]);
    let mut browser = Browser::open(port);
    let text = |browser: &mut Browser, selector: &str| {
        let found = browser.value(&format!(
            "document.querySelector({selector:?})?.textContent ?? ''"
        ));
        found.as_str().unwrap_or_default().to_owned()
    };
    let comes = |browser: &mut Browser, selector: &str, expected: &str| {
        let what = format!("{selector} says {expected}");
        eventually(&what, || {
            let said = text(browser, selector);
            let complains = !browser.console.is_empty();
            assert!(!complains, "{what}, not {said}: {:?}", browser.console);
            said.contains(expected).then_some(())
        });
    };
    comes(&mut browser, "#state", "live");
    comes(&mut browser, "#now", "Keys2");
    // The hash counts with its field's deadline.
    comes(&mut browser, ".bars button:nth-child(7)", "24 min");
    comes(&mut browser, "#about", "you are default");
    // Numbers follow what happens.
    client.call(&["SET", "more", "1", "PX", "1"]);
    comes(&mut browser, "#lateness .summary", "1 key");
    // A key's name is text wherever it is shown.
    browser.value("document.querySelector('.bars button:nth-child(7)').click()");
    comes(&mut browser, "#forecast .detail", odd);
    browser.value("document.querySelector('#look-large').click()");
    comes(&mut browser, "#large .rows", odd);
    browser.value("document.querySelector('#large td button').click()");
    comes(&mut browser, "#key .detail", "Time left");
    comes(&mut browser, "#key .detail", odd);
    browser.value("document.querySelector('#key-name').value = 'h'; document.querySelector('#key form').requestSubmit()");
    comes(&mut browser, "#key .detail", "Members with deadlines");
    comes(&mut browser, "#key table", odd);
    assert_eq!(browser.value("document.title"), "Tidewheel");
    assert_eq!(
        browser.value("document.querySelectorAll('main img').length"),
        0
    );
    assert_eq!(browser.console, Vec::<String>::new());
}

#[test]
fn a_browser_says_which_parts_a_user_may_not_see() {
    if !have("chromium", &["--version"]) {
        return;
    }
    let (server, port) = start(&[]);
    let mut client = server.client();
    client.call(&[
        "ACL",
        "SETUSER",
        "default",
        "-@all",
        "+expiry|forecast",
        "+auth",
    ]);
    let mut browser = Browser::open(port);
    let told = "[...document.querySelectorAll('section > .no, .rows > .no')].filter((of) => of.textContent.startsWith('Not allowed')).length";
    // This second, the last hour, lateness; latencies, the slow log, clients.
    eventually("it is told", || (browser.value(told) == 6).then_some(()));
    let bars = browser.value("document.querySelectorAll('.bars button').length");
    assert_eq!(bars, 17);
}
