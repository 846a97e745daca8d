//! Users: who may come in, and what each may do, from outside.

use crate::common::{
    Client, Reply, Server, array, bulk, command, error, eventually, ok, simple, text,
};

/// A server with an administrator's connection, and a user `bob` with these rules and no password.
fn with_bob(rules: &[&str]) -> (Server, Client, Client) {
    let server = Server::start(&["--enable-debug-command", "yes"]);
    let (mut admin, mut bob) = (server.client(), server.client());
    set_user(&mut admin, "bob", &[&["on", "nopass"], rules].concat());
    assert_eq!(bob.call(&["AUTH", "bob", "x"]), ok());
    (server, admin, bob)
}

fn set_user(admin: &mut Client, name: &str, rules: &[&str]) {
    let words = [&["ACL", "SETUSER", name], rules].concat();
    assert_eq!(admin.call(&words), ok(), "{rules:?}");
}

/// The rules of a user, as ACL LIST shows them.
fn rules_of(admin: &mut Client, name: &str) -> String {
    let Reply::Array(lines) = admin.call(&["ACL", "LIST"]) else {
        panic!("a list")
    };
    let start = format!("user {name} ");
    let lines = lines.iter().map(text);
    let mut found = lines.filter_map(|line| Some(line.strip_prefix(&start)?.to_owned()));
    found.next_back().expect("the user")
}

fn is_denied(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(why) if why.starts_with("NOPERM"))
}

#[test]
fn rules_are_kept_in_the_order_that_makes_them() {
    let server = Server::start(&[]);
    let mut admin = server.client();
    assert_eq!(
        rules_of(&mut admin, "default"),
        "on nopass sanitize-payload ~* &* +@all"
    );
    for (rules, expected) in [
        (&["on"][..], "on sanitize-payload resetchannels -@all"),
        (
            &["+get", "+set", "-get"],
            "off sanitize-payload resetchannels -@all +set -get",
        ),
        (
            &["+@all", "-config", "+CONFIG|Get"],
            "off sanitize-payload resetchannels +@all -config +config|get",
        ),
        (
            &["+config|get", "-config"],
            "off sanitize-payload resetchannels -@all -config",
        ),
        (
            &["+select|0", "%R~r", "%W~w", "%RW~rw", "~a"],
            "off sanitize-payload %R~r %W~w ~rw ~a resetchannels -@all +select|0",
        ),
        (
            &["%R~x", "%W~x"],
            "off sanitize-payload ~x resetchannels -@all",
        ),
        // As elsewhere, the pattern may be missing: it fits the empty key.
        (&["%RW"], "off sanitize-payload ~ resetchannels -@all"),
        (&["%r"], "off sanitize-payload %R~ resetchannels -@all"),
        (
            &["&a", "&b", "allkeys", "skip-sanitize-payload"],
            "off skip-sanitize-payload ~* resetchannels &a &b -@all",
        ),
        (
            &["(+get", "~a)", "(%W~b +set)"],
            "off sanitize-payload resetchannels -@all (~a resetchannels -@all +get) (%W~b resetchannels -@all +set)",
        ),
        (
            &[">abc"],
            "off sanitize-payload #ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad resetchannels -@all",
        ),
        (
            &["+cluster|nodes", "-readonly"],
            "off sanitize-payload resetchannels -@all +cluster|nodes -readonly",
        ),
        (
            &[">abc", "nopass"],
            "off nopass sanitize-payload resetchannels -@all",
        ),
        (
            &["+@all", "~*", "&*", "reset"],
            "off sanitize-payload resetchannels -@all",
        ),
    ] {
        admin.call(&["ACL", "DELUSER", "u"]);
        set_user(&mut admin, "u", rules);
        assert_eq!(rules_of(&mut admin, "u"), expected, "{rules:?}");
    }
}

#[test]
fn a_wrong_rule_changes_nothing_and_names_itself() {
    let server = Server::start(&[]);
    let mut admin = server.client();
    set_user(&mut admin, "u", &["+get"]);
    for (rule, why) in [
        ("+nope", "Unknown command or category name in ACL"),
        ("+@nope", "Unknown command or category name in ACL"),
        ("-get|x", "Unknown command or category name in ACL"),
        ("+config|nope", "Unknown command or category name in ACL"),
        (
            "+config|get|dir",
            "Allowing first-arg of a subcommand is not supported",
        ),
        ("+get|", "Syntax error"),
        ("nope", "Syntax error"),
        ("%~a", "Syntax error"),
        ("%", "Syntax error"),
        ("%Ra", "Syntax error"),
        ("%RR~a", "Syntax error"),
        ("~a b", "Syntax error"),
        ("+select|0\nuser evil on", "Syntax error"),
        ("(~q))", "Syntax error"),
        ("#abc", "The password hash must be exactly 64 characters"),
        ("db=", "Syntax error"),
        ("db=,0", "Syntax error"),
        ("db=0,", "Syntax error"),
        ("db=0,,1", "Syntax error"),
        ("db=abc", "Syntax error"),
        ("db=-1", "The provided database ID is out of range"),
        (
            "db=12345678987654321",
            "The provided database ID is out of range",
        ),
        (
            "<abc",
            "The password you are trying to remove from the user does not exist",
        ),
    ] {
        let reply = text(&admin.call(&["ACL", "SETUSER", "u", "+set", rule]));
        assert!(
            reply.starts_with("ERR Error in ACL SETUSER modifier"),
            "{reply}"
        );
        assert!(reply.contains(why), "{rule}: {reply}");
        assert!(rules_of(&mut admin, "u").ends_with("-@all +get"), "{rule}");
    }
    let reply = text(&admin.call(&["ACL", "SETUSER", "u", "(+get", "~a"]));
    assert_eq!(
        reply,
        "ERR Unmatched parenthesis in acl selector starting at '(+get'."
    );
    let many: Vec<String> = (0..1_025).map(|i| format!("~k{i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let reply = text(&admin.call(&[&["ACL", "SETUSER", "u"], &many[..]].concat()));
    assert!(reply.contains("at most 1024"), "{reply}");
    let reply = text(&admin.call(&["ACL", "SETUSER", "", "on"]));
    assert!(reply.starts_with("ERR Usernames can't"), "{reply}");
    let reply = text(&admin.call(&["ACL", "SETUSER", "a b", "on"]));
    assert!(reply.starts_with("ERR Usernames can't contain"), "{reply}");
    let reply = text(&admin.call(&["ACL", "DELUSER", "default"]));
    assert_eq!(reply, "ERR The 'default' user cannot be removed");
}

#[test]
fn passwords_let_in_who_knows_them() {
    let server = Server::start(&[]);
    let (mut admin, mut client) = (server.client(), server.client());
    let wrong = error("WRONGPASS invalid username-password pair or user is disabled.");
    set_user(&mut admin, "u", &[">one", ">two", "+@all", "~*"]);
    assert_eq!(client.call(&["AUTH", "u", "one"]), wrong, "it is off");
    set_user(&mut admin, "u", &["on"]);
    for (password, expected) in [("one", ok()), ("two", ok()), ("three", wrong.clone())] {
        assert_eq!(client.call(&["AUTH", "u", password]), expected);
    }
    assert_eq!(client.call(&["ACL", "WHOAMI"]), bulk("u"));
    set_user(&mut admin, "u", &["<one"]);
    assert_eq!(client.call(&["AUTH", "u", "one"]), wrong);
    // It stays who it was.
    assert_eq!(client.call(&["ACL", "WHOAMI"]), bulk("u"));
    let list = text(&admin.call(&["CLIENT", "LIST", "USER", "u"]));
    assert!(list.contains(" user=u "), "{list}");
    assert_eq!(client.call(&["HELLO", "2", "AUTH", "nobody", "x"]), wrong);
    // Who is on no more goes on, as in the public servers.
    set_user(&mut admin, "u", &["off"]);
    assert_eq!(client.call(&["PING"]), Reply::Simple("PONG".into()));
    // The default user's password is what requirepass says.
    assert_eq!(admin.call(&["CONFIG", "SET", "requirepass", "abc"]), ok());
    let rules = rules_of(&mut admin, "default");
    assert!(rules.contains("#ba7816bf8f01cfea"), "{rules}");
    assert!(is_noauth(&server.client().call(&["GET", "k"])));
    assert_eq!(server.client().call(&["AUTH", "abc"]), ok());
    assert_eq!(server.client().call(&["AUTH", "default", "abc"]), ok());
    assert_eq!(admin.call(&["ACL", "SETUSER", "default", "nopass"]), ok());
    assert_eq!(server.client().call(&["GET", "k"]), Reply::Null);
    set_user(&mut admin, "default", &["off"]);
    assert!(is_noauth(&server.client().call(&["GET", "k"])));
}

fn is_noauth(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(why) if why.starts_with("NOAUTH"))
}

#[test]
fn a_call_needs_its_command_all_its_keys_and_its_channels() {
    let rules = [
        "+@read",
        "+mset",
        "+set",
        "+copy",
        "+del",
        "+subscribe",
        "+psubscribe",
        "+publish",
        "+bitfield",
        "+xreadgroup",
        "+georadius",
        "+config|get",
        "+select|1",
        "~own:*",
        "%R~r:*",
        "%W~w:*",
        "&news.*",
    ];
    let (_server, mut admin, mut bob) = with_bob(&rules);
    for (call, allowed) in [
        ("GET own:a", true),
        ("GET r:a", true),
        ("GET w:a", false),
        ("GET x", false),
        ("get own:a", true),
        ("SET own:a 1", true),
        ("SET w:a 1", true),
        ("SET w:a 1 GET", false),
        ("SET r:a 1", false),
        ("MGET own:a r:a own:b", true),
        ("MGET own:a x own:b", false),
        ("MSET own:a 1 w:a 1", true),
        ("MSET own:a 1 r:a 1", false),
        ("COPY r:a w:b", true),
        ("COPY w:a own:b", false),
        ("COPY own:a r:b", false),
        ("DEL w:a own:a", true),
        ("DEL r:a", false),
        ("BITFIELD r:a GET u8 0", true),
        ("BITFIELD r:a SET u8 0 1", false),
        ("XREAD STREAMS own:a r:b 0 0", true),
        ("XREAD STREAMS own:a x 0 0", false),
        ("XREADGROUP GROUP g c STREAMS x >", false),
        ("GEORADIUS r:a 0 0 1 m STORE own:b", true),
        ("GEORADIUS r:a 0 0 1 m STORE x", false),
        ("SORT_RO own:a", true),
        ("SORT_RO own:a BY nosort", true),
        ("LPUSH own:a 1", false),
        ("CONFIG GET maxmemory", true),
        ("CONFIG SET maxmemory 0", false),
        ("CONFIG RESETSTAT", false),
        ("SELECT 1", true),
        ("SELECT 0", false),
        ("PUBLISH news.a x", true),
        ("PUBLISH other x", false),
        ("ACL WHOAMI", false),
        ("OBJECT ENCODING r:a", true),
        ("OBJECT ENCODING x", false),
        ("PING", false),
        ("AUTH bob x", true),
        ("HELLO", true),
    ] {
        let words: Vec<&str> = call.split(' ').collect();
        let denied = is_denied(&bob.call(&words));
        assert_eq!(denied, !allowed, "{call}");
        let dry = admin.call(&[&["ACL", "DRYRUN", "bob"], &words[..]].concat());
        assert_eq!(dry == ok(), allowed, "{call}: {dry:?}");
    }
    for (call, why) in [
        (
            "PING",
            "User bob has no permissions to run the 'ping' command",
        ),
        (
            "CONFIG SET a b",
            "User bob has no permissions to run the 'config|set' command",
        ),
        ("GET x", "No permissions to access a key"),
        ("PUBLISH x y", "No permissions to access a channel"),
    ] {
        let words: Vec<&str> = call.split(' ').collect();
        assert_eq!(bob.call(&words), error(&format!("NOPERM {why}")), "{call}");
    }
    assert_eq!(
        admin.call(&["ACL", "DRYRUN", "bob", "GET", "x"]),
        bulk("User bob has no permissions to access the 'x' key")
    );
    let sorted = text(&bob.call(&["SORT_RO", "own:a", "BY", "own:*"]));
    assert_eq!(
        sorted,
        "ERR BY option of SORT denied due to insufficient ACL permissions."
    );
    let sorted = text(&bob.call(&["SORT_RO", "own:a", "GET", "#"]));
    assert_eq!(
        sorted,
        "ERR GET option of SORT denied due to insufficient ACL permissions."
    );
    set_user(&mut admin, "bob", &["%R~*"]);
    assert_eq!(bob.call(&["SORT_RO", "own:a", "BY", "own:*"]), array(&[]));
    // So does what shows the beginnings of all keys.
    let by_prefix = ["EXPIRY", "FORECAST", "BY", "PREFIX"];
    assert_eq!(bob.call(&by_prefix), array(&[]));
    set_user(&mut admin, "bob", &["resetkeys", "~own:*"]);
    assert!(is_denied(&bob.call(&by_prefix)));
    assert!(!is_denied(&bob.call(&by_prefix[..2])));
}

#[test]
fn one_selector_must_allow_all_of_a_call() {
    let rules = ["+get", "~a", "(+set +get ~b)", "(%R~c %W~d +copy)"];
    let (_server, _admin, mut bob) = with_bob(&rules);
    for (call, allowed) in [
        ("GET a", true),
        ("SET a 1", false),
        ("SET b 1", true),
        ("GET b", true),
        ("GET c", false),
        ("COPY c d", true),
        ("COPY d c", false),
    ] {
        let words: Vec<&str> = call.split(' ').collect();
        assert_eq!(!is_denied(&bob.call(&words)), allowed, "{call}");
    }
}

#[test]
fn a_call_needs_its_databases() {
    let (_server, mut admin, mut bob) = with_bob(&["~*", "&*", "+@all", "db=1,0,1"]);
    let no = || error("NOPERM No permissions to access database");
    assert_eq!(
        rules_of(&mut admin, "bob"),
        "on nopass sanitize-payload ~* &* db=0,1 +@all"
    );
    let allowed = |bob: &mut Client, call: &str| {
        let reply = bob.call(&call.split(' ').collect::<Vec<_>>());
        assert!(!matches!(reply, Reply::Error(_)), "{call}: {reply:?}");
    };
    for call in [
        "SET a 1",
        "SELECT 1",
        "SET b 1",
        "DBSIZE",
        "SELECT 0",
        "MOVE a 1",
        "SET a 1",
        "COPY a c DB 1",
        "SWAPDB 0 1",
        "FLUSHDB",
        "PING",
        "INFO keyspace",
        "PUBLISH c m",
        "EXPIRY FORECAST",
        "KEYS *",
        "EVAL return{redis.call('set',KEYS[1],1)} 1 a",
        "ACL DRYRUN bob SELECT 1",
    ] {
        allowed(&mut bob, call);
    }
    for call in [
        "SELECT 2",
        "MOVE a 2",
        "COPY a c DB 2",
        "COPY a c DB 1 REPLACE DB 2",
        "SWAPDB 0 2",
        "SWAPDB 2 0",
        "FLUSHALL",
        "EXPIRY FREEZE",
        "EXPIRY RESUME",
    ] {
        assert_eq!(
            bob.call(&call.split(' ').collect::<Vec<_>>()),
            no(),
            "{call}"
        );
    }
    // What is no database is the command's own affair.
    for call in [
        "SELECT 16",
        "SELECT x",
        "MOVE a 99",
        "COPY a c DB",
        "COPY a c DB x",
    ] {
        let reply = bob.call(&call.split(' ').collect::<Vec<_>>());
        assert!(
            matches!(&reply, Reply::Error(why) if why.starts_with("ERR")),
            "{call}: {reply:?}"
        );
    }
    // In a transaction, and in a script, each call runs in the database that it is in by then.
    for (call, queued) in [
        ("MULTI", ok()),
        ("SELECT 1", simple("QUEUED")),
        ("GET a", simple("QUEUED")),
    ] {
        assert_eq!(bob.call(&call.split(' ').collect::<Vec<_>>()), queued);
    }
    assert_eq!(bob.call(&["SELECT", "2"]), no());
    assert!(matches!(bob.call(&["EXEC"]), Reply::Error(why) if why.starts_with("EXECABORT")));
    let script = "redis.call('select', 1) redis.call('set', KEYS[1], 1) \
                  return redis.call('select', ARGV[1])";
    assert_eq!(bob.call(&["EVAL", script, "1", "a", "0"]), ok());
    let Reply::Error(why) = bob.call(&["EVAL", script, "1", "a", "2"]) else {
        panic!("database 2 is denied")
    };
    assert!(
        why.contains("ACL failure in script: No permissions to access database"),
        "{why}"
    );
    // The selected one may be taken away.
    set_user(&mut admin, "bob", &["db=1"]);
    for call in [
        "GET a",
        "DBSIZE",
        "SCAN 0",
        "COPY a c DB 1",
        "MOVE a 1",
        "EXPIRY FORECAST",
        "WATCH a",
    ] {
        assert_eq!(
            bob.call(&call.split(' ').collect::<Vec<_>>()),
            no(),
            "{call}"
        );
    }
    for call in ["PING", "SELECT 1", "GET a", "WATCH a"] {
        allowed(&mut bob, call);
    }
    // It is told which one, and another selector may allow it.
    let dry =
        |admin: &mut Client, call: &[&str]| admin.call(&[&["ACL", "DRYRUN", "bob"], call].concat());
    assert_eq!(
        dry(&mut admin, &["SWAPDB", "1", "7"]),
        bulk("User bob has no permissions to access database 7")
    );
    assert_eq!(
        dry(&mut admin, &["GET", "a"]),
        bulk("User bob has no permissions to access database GET")
    );
    set_user(&mut admin, "bob", &["(db=7 ~* +@read)"]);
    assert_eq!(
        bob.call(&["SELECT", "7"]),
        error("NOPERM User bob has no permissions to run the 'select' command")
    );
    assert_eq!(bob.call(&["SELECT", "8"]), no());
    let Reply::Array(denied) = admin.call(&["ACL", "LOG", "1"]) else {
        panic!("an entry")
    };
    let is_entry =
        |entry: &Reply| matches!(entry, Reply::Array(fields) if fields.contains(&bulk("database")));
    assert!(denied.iter().all(is_entry), "{denied:?}");
    set_user(&mut admin, "bob", &["resetdbs"]);
    assert_eq!(bob.call(&["SELECT", "0"]), no());
    set_user(&mut admin, "bob", &["clearselectors", "alldbs"]);
    assert_eq!(
        rules_of(&mut admin, "bob"),
        "on nopass sanitize-payload ~* &* +@all"
    );
    allowed(&mut bob, "FLUSHALL");
}

#[test]
fn numbers_of_databases_are_read_as_elsewhere() {
    let server = Server::start(&[]);
    let mut admin = server.client();
    for (rule, kept) in [
        ("db=007", "db=7"),
        ("db=+1,-0", "db=0,1"),
        ("DB=00,2147483647", "db=0,2147483647"),
    ] {
        set_user(&mut admin, "bob", &["reset", rule]);
        assert_eq!(
            rules_of(&mut admin, "bob"),
            format!("off sanitize-payload resetchannels {kept} -@all")
        );
    }
    for rule in ["db=+", "db=+-1", "db= 1", "db=1,", "db=0x1", "db=-"] {
        let reply = admin.call(&["ACL", "SETUSER", "bob", rule]);
        let why = format!("ERR Error in ACL SETUSER modifier '{rule}': Syntax error");
        assert_eq!(reply, error(&why));
    }
    for rule in ["db=-1", "db=2147483648", "db=99999999999999999999999"] {
        let reply = admin.call(&["ACL", "SETUSER", "bob", rule]);
        let why = format!(
            "ERR Error in ACL SETUSER modifier '{rule}': The provided database ID is out of range"
        );
        assert_eq!(reply, error(&why));
    }
}

#[test]
fn a_script_without_keys_needs_the_selected_database() {
    let (_server, _admin, mut bob) = with_bob(&["~*", "+@all", "db=1"]);
    let no = error("NOPERM No permissions to access database");
    assert_eq!(bob.call(&["EVAL", "return 1", "0"]), no);
    assert_eq!(bob.call(&["FCALL_RO", "f", "0"]), no);
    assert_eq!(
        bob.call(&["SCRIPT", "EXISTS", "x"]),
        Reply::Array(vec![Reply::Integer(0)])
    );
    assert_eq!(bob.call(&["SELECT", "1"]), ok());
    assert_eq!(bob.call(&["EVAL", "return 1", "0"]), Reply::Integer(1));
}

#[test]
fn what_no_database_is_named_by_is_refused_by_the_command_itself() {
    let (_server, _admin, mut bob) = with_bob(&["~*", "+@all", "db=0"]);
    for (call, why) in [
        ("SWAPDB 1 x", "ERR invalid second DB index"),
        ("SWAPDB x 1", "ERR invalid first DB index"),
        ("SWAPDB 1 99", "ERR DB index is out of range"),
        ("COPY a b FOO DB 1", "ERR syntax error"),
        ("COPY a b DB 1 DB", "ERR syntax error"),
    ] {
        let reply = bob.call(&call.split(' ').collect::<Vec<_>>());
        assert_eq!(reply, error(why), "{call}");
    }
    for call in ["COPY a b REPLACE DB 1", "COPY a b DB 0 db 1", "SWAPDB 0 1"] {
        let reply = bob.call(&call.split(' ').collect::<Vec<_>>());
        assert!(is_denied(&reply), "{call}: {reply:?}");
    }
    // Nor does it change where the commands behind it run.
    for (call, reply) in [
        ("MULTI", ok()),
        ("SELECT 99", simple("QUEUED")),
        ("SET a 1", simple("QUEUED")),
    ] {
        assert_eq!(bob.call(&call.split(' ').collect::<Vec<_>>()), reply);
    }
    let Reply::Array(replies) = bob.call(&["EXEC"]) else {
        panic!("both have run")
    };
    assert_eq!(replies, [error("ERR DB index is out of range"), ok()]);
}

#[test]
fn who_may_not_debug_is_told_so_first() {
    let (server, mut admin, mut bob) = with_bob(&["~*", "+@all", "-debug"]);
    let no = error("NOPERM User bob has no permissions to run the 'debug' command");
    assert_eq!(bob.call(&["DEBUG", "NOPE"]), no);
    assert!(is_denied(&bob.call(&["DEBUG", "OBJECT"])));
    assert!(is_denied(&bob.call(&["debug", "sleep", "1", "2"])));
    let Reply::Array(denied) = admin.call(&["ACL", "LOG"]) else {
        panic!("three entries")
    };
    assert_eq!(denied.len(), 3);
    set_user(&mut admin, "bob", &["+@all", "-@dangerous"]);
    assert_eq!(bob.call(&["DEBUG", "NOPE"]), no);
    set_user(&mut admin, "default", &["resetpass", ">x"]);
    let mut nobody = server.client();
    let unknown = error("NOAUTH Authentication required.");
    assert_eq!(nobody.call(&["DEBUG", "NOPE"]), unknown);
    assert_eq!(nobody.call(&["DEBUG", "OBJECT"]), unknown);
    // Other subcommands are no secret.
    let reply = bob.call(&["CONFIG", "NOPE"]);
    assert_eq!(
        reply,
        error("ERR unknown subcommand 'NOPE'. Try CONFIG HELP.")
    );
}

#[test]
fn transactions_and_scripts_run_nothing_that_is_denied() {
    let rules = ["+@all", "-del", "~own:*"];
    let (_server, mut admin, mut bob) = with_bob(&rules);
    bob.call(&["MULTI"]);
    assert!(is_denied(&bob.call(&["GET", "x"])));
    let reply = text(&bob.call(&["EXEC"]));
    assert!(reply.starts_with("EXECABORT"), "{reply}");
    // What was queued is compared again when it runs.
    bob.call(&["MULTI"]);
    bob.call(&["SET", "own:a", "1"]);
    bob.call(&["SET", "own:b", "1"]);
    set_user(&mut admin, "bob", &["resetkeys", "~own:a"]);
    let Reply::Array(replies) = bob.call(&["EXEC"]) else {
        panic!("replies")
    };
    assert!(replies[0] == ok() && is_denied(&replies[1]), "{replies:?}");
    assert_eq!(admin.call(&["EXISTS", "own:b"]), Reply::Integer(0));
    set_user(&mut admin, "bob", &["~own:*"]);
    for (script, keys, part) in [
        (
            "return redis.call('get', 'x')",
            &["0"][..],
            "ACL failure in script: No permissions to access a key",
        ),
        (
            "return redis.call('del', KEYS[1])",
            &["1", "own:a"],
            "ACL failure in script: User bob has no permissions to run the 'del' command",
        ),
        ("return 1", &["1", "x"], "No permissions to access a key"),
        (
            "return redis.pcall('get', 'x').err",
            &["0"],
            "NOPERM ACL failure in script",
        ),
    ] {
        let reply = text(&bob.call(&[&["EVAL", script], keys].concat()));
        assert!(reply.contains(part), "{script}: {reply}");
    }
    for (call, expected) in [
        ("'get', 'own:a'", 1),
        ("'get', 'x'", 0),
        ("'del', 'own:a'", 0),
    ] {
        let script = format!("if redis.acl_check_cmd({call}) then return 1 else return 0 end");
        assert_eq!(
            bob.call(&["EVAL", &script, "0"]),
            Reply::Integer(expected),
            "{call}"
        );
    }
}

#[test]
fn who_may_not_hear_a_channel_any_more_is_closed() {
    let rules = ["+subscribe", "+psubscribe", "+ping", "&a*", "&p.*"];
    let (server, mut admin, mut bob) = with_bob(&rules);
    assert!(is_denied(&bob.call(&["SUBSCRIBE", "a", "b"])));
    assert!(
        is_denied(&bob.call(&["PSUBSCRIBE", "p.x*"])),
        "literally the same"
    );
    bob.call(&["SUBSCRIBE", "a1"]);
    let mut other = server.client();
    other.call(&["AUTH", "bob", "x"]);
    other.call(&["PSUBSCRIBE", "p.*"]);
    set_user(&mut admin, "bob", &["&news"]);
    assert_eq!(admin.call(&["PUBLISH", "a1", "x"]), Reply::Integer(1));
    set_user(&mut admin, "bob", &["resetchannels", "&a*"]);
    eventually("the other one is closed", || {
        let list = text(&admin.call(&["CLIENT", "LIST", "USER", "bob"]));
        (list.lines().count() == 1).then_some(())
    });
    assert_eq!(
        admin.call(&["ACL", "DELUSER", "bob", "nobody"]),
        Reply::Integer(1)
    );
    eventually("its clients are closed", || {
        let list = text(&admin.call(&["CLIENT", "LIST"]));
        (list.lines().count() == 1).then_some(())
    });
}

#[test]
fn who_waits_for_what_it_may_not_have_any_more_is_told() {
    let (server, mut admin, mut bob) = with_bob(&["+blpop", "~a", "~b"]);
    bob.send(&command(&["BLPOP", "a", "b", "0"]));
    eventually("it waits", || {
        let info = text(&admin.call(&["INFO", "clients"]));
        info.contains("blocked_clients:1\r\n").then_some(())
    });
    // At once: what comes behind it finds nobody.
    let denies = command(&["ACL", "SETUSER", "bob", "resetkeys", "~b"]);
    admin.send(&[denies, command(&["LPUSH", "a", "1"])].concat());
    assert_eq!((admin.read(), admin.read()), (ok(), Reply::Integer(1)));
    assert_eq!(bob.read(), error("NOPERM No permissions to access a key"));
    assert_eq!(admin.call(&["LLEN", "a"]), Reply::Integer(1));
    let Reply::Array(denied) = admin.call(&["ACL", "LOG"]) else {
        panic!("an entry")
    };
    let [Reply::Array(fields)] = &denied[..] else {
        panic!("one entry: {denied:?}")
    };
    let told = ["reason", "key", "context", "toplevel", "object", "a"];
    assert_eq!(fields[2..8], told.map(bulk));
    assert_eq!(admin.info("stats", "acl_access_denied_key"), "1");
    // It has not run, as one that is denied at once.
    let counted = admin.info("commandstats", "cmdstat_blpop");
    assert_eq!(
        counted,
        "calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,failed_calls=0"
    );
    // So it is when its user goes, or when it is closed.
    for ends in [
        &["ACL", "DELUSER", "bob"][..],
        &["CLIENT", "KILL", "TYPE", "normal"],
    ] {
        set_user(&mut admin, "bob", &["on", "nopass", "~b", "+blpop"]);
        let mut waits = server.client();
        assert_eq!(waits.call(&["AUTH", "bob", "x"]), ok());
        waits.send(&command(&["BLPOP", "b", "0"]));
        eventually("it waits", || {
            let info = text(&admin.call(&["INFO", "clients"]));
            info.contains("blocked_clients:1\r\n").then_some(())
        });
        admin.send(&[command(ends), command(&["LPUSH", "b", "1"])].concat());
        let ended = admin.read();
        assert!(matches!(ended, Reply::Integer(1..)), "{ended:?}");
        assert_eq!(admin.read(), Reply::Integer(1), "{ends:?}");
        assert_eq!(admin.call(&["DEL", "b"]), Reply::Integer(1), "{ends:?}");
    }
}

#[test]
fn denials_are_listed_and_counted() {
    let (_server, mut admin, mut bob) = with_bob(&["+get", "~a"]);
    for _ in 0..3 {
        bob.call(&["GET", "x"]);
    }
    bob.call(&["SET", "a", "1"]);
    bob.call(&["AUTH", "mallory", "guess"]);
    let Reply::Array(entries) = admin.call(&["ACL", "LOG"]) else {
        panic!("entries")
    };
    let field = |entry: &Reply, name: &str| {
        let Reply::Array(fields) = entry else {
            panic!("pairs")
        };
        let at = fields.iter().position(|field| *field == bulk(name));
        fields[at.expect(name) + 1].clone()
    };
    for (entry, (reason, object, user, count)) in entries.iter().zip([
        ("auth", "AUTH", "mallory", 1),
        ("command", "set", "bob", 1),
        ("key", "x", "bob", 3),
    ]) {
        assert_eq!(field(entry, "reason"), bulk(reason));
        assert_eq!(field(entry, "object"), bulk(object));
        assert_eq!(field(entry, "username"), bulk(user));
        assert_eq!(field(entry, "count"), Reply::Integer(count));
        assert_eq!(field(entry, "context"), bulk("toplevel"));
        assert!(text(&field(entry, "client-info")).contains("user=bob"));
    }
    assert_eq!(entries.len(), 3);
    // Each tells of the command that was denied, not of the one before.
    for (entry, cmd) in entries.iter().zip(["auth", "set", "get"]) {
        let client = text(&field(entry, "client-info"));
        assert!(client.contains(&format!(" cmd={cmd} ")), "{client}");
    }
    let info = text(&admin.call(&["INFO", "stats"]));
    for line in ["auth:1", "cmd:1", "key:3", "channel:0", "db:0"] {
        assert!(
            info.contains(&format!("acl_access_denied_{line}\r\n")),
            "{info}"
        );
    }
    assert_eq!(admin.call(&["ACL", "LOG", "RESET"]), ok());
    assert_eq!(admin.call(&["ACL", "LOG"]), array(&[]));
    admin.call(&["CONFIG", "SET", "acllog-max-len", "1"]);
    bob.call(&["GET", "x"]);
    bob.call(&["GET", "y"]);
    let Reply::Array(entries) = admin.call(&["ACL", "LOG", "5"]) else {
        panic!("entries")
    };
    assert_eq!(entries.len(), 1);
}

#[test]
fn users_stand_in_a_file() {
    let folder = std::env::temp_dir().join(format!("tidewheel-users-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("users.acl");
    std::fs::write(&file, "# who\nuser bob on >pw +@all ~*\n").expect("a file");
    let dir = folder.to_str().expect("text");
    let server = Server::start(&["--dir", dir, "--aclfile", "users.acl"]);
    let mut client = server.client();
    assert_eq!(client.call(&["AUTH", "bob", "pw"]), ok());
    set_user(&mut client, "eve", &["on", "nopass", "+get"]);
    assert_eq!(client.call(&["ACL", "SAVE"]), ok());
    let saved = std::fs::read_to_string(&file).expect("a file");
    assert!(saved.contains("user eve on nopass sanitize-payload resetchannels -@all +get\n"));
    assert!(saved.contains("user default on nopass sanitize-payload ~* &* +@all\n"));
    let mut eve = server.client();
    assert_eq!(eve.call(&["AUTH", "eve", "x"]), ok());
    std::fs::write(&file, "user bob on >pw +nope\nusr x\n").expect("a file");
    let reply = text(&client.call(&["ACL", "LOAD"]));
    assert!(
        reply.contains(":1: Error") && reply.contains(":2: "),
        "{reply}"
    );
    assert_eq!(
        eve.call(&["GET", "x"]).clone(),
        error("NOPERM No permissions to access a key")
    );
    std::fs::write(&file, "user bob on >pw +@all ~*\n").expect("a file");
    assert_eq!(client.call(&["ACL", "LOAD"]), ok());
    assert_eq!(eve.try_call(&["GET", "x"]), None, "she is no more");
    assert_eq!(client.call(&["ACL", "USERS"]), array(&["bob", "default"]));
    std::fs::remove_dir_all(&folder).expect("the folder");
    let plain = Server::start(&[]);
    let reply = text(&plain.client().call(&["ACL", "LOAD"]));
    assert!(
        reply.starts_with("ERR This instance is not configured"),
        "{reply}"
    );
}

/// A script looked at the rights that its user had when it began.
#[test]
fn a_running_script_loses_the_rights_that_are_taken_away() {
    let server = Server::start(&["--threads", "4"]);
    let script = "for i = 1, 1e9 do local got = redis.pcall('GET', KEYS[1]) \
                  if got and got.err then return got.err end end";
    for change in [
        &["ACL", "SETUSER", "bob", "-get"][..],
        &["ACL", "SETUSER", "bob", "resetkeys"],
        &["ACL", "DELUSER", "bob"],
    ] {
        let (mut admin, mut bob) = (server.client(), server.client());
        set_user(&mut admin, "bob", &["on", "nopass", "~*", "+@all"]);
        assert_eq!(bob.call(&["AUTH", "bob", "x"]), ok());
        bob.send(&command(&["EVAL", script, "1", "a1"]));
        // It has begun by then.
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(matches!(
            admin.call(change),
            Reply::Simple(_) | Reply::Integer(1)
        ));
        match bob.try_read() {
            Some(reply) => assert!(text(&reply).contains("NOPERM"), "{change:?}: {reply:?}"),
            None => assert_eq!(change[1], "DELUSER", "it was closed"),
        }
    }
}

/// Commands of one pipeline ran by the rights of its beginning.
#[test]
fn no_command_of_a_pipeline_begins_by_rights_of_before() {
    let server = Server::start(&["--threads", "4"]);
    let mut admin = server.client();
    let pipeline = command(&["GET", "k"]).repeat(2_000);
    for round in 0..150 {
        let mut bob = server.client();
        set_user(&mut admin, "bob", &["reset", "on", "nopass", "~*", "+@all"]);
        assert_eq!(bob.call(&["AUTH", "bob", "x"]), ok());
        assert_eq!(admin.call(&["SET", "k", "known"]), ok());
        bob.send(&pipeline);
        std::thread::sleep(std::time::Duration::from_micros(round * 20));
        set_user(&mut admin, "bob", &["-get"]);
        assert_eq!(admin.call(&["SET", "k", "secret"]), ok());
        for _ in 0..2_000 {
            assert_ne!(bob.read(), bulk("secret"));
        }
    }
}

#[test]
fn who_may_only_write_compares_nothing() {
    let (_server, mut admin, mut bob) = with_bob(&["%W~k", "+@all"]);
    assert_eq!(admin.call(&["SET", "k", "secret"]), ok());
    assert_eq!(bob.call(&["SET", "k", "v", "KEEPTTL"]), ok());
    for option in [&["GET"][..], &["IFEQ", "guess"], &["ifne", "guess"]] {
        let words = [&["SET", "k", "v"], option].concat();
        assert!(is_denied(&bob.call(&words)), "{option:?}");
    }
}

/// It went on as the new one, without its password, if that was made before the clients of the old
/// one had been looked for.
#[test]
fn who_has_lost_its_user_is_closed_also_if_another_of_that_name_is_made_at_once() {
    let server = Server::start(&["--threads", "4"]);
    let mut admin = server.client();
    let mut others: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for round in 0..400 {
        let mut bob = server.client();
        set_user(&mut admin, "bob", &["reset", "on", "nopass", "+@all"]);
        assert_eq!(bob.call(&["AUTH", "bob", "x"]), ok());
        let other = &mut others[round % 4];
        admin.send(&command(&["ACL", "DELUSER", "bob"]));
        other.send(&command(&["ACL", "SETUSER", "bob", "on", ">new", "+@all"]));
        assert_eq!((admin.read(), other.read()), (Reply::Integer(1), ok()));
        assert_eq!(bob.try_read(), None, "it is closed");
    }
}

/// The change waited for the command, and all loops for the change.
#[test]
fn a_change_of_rights_waits_for_no_long_command() {
    let server = Server::start(&["--threads", "4"]);
    let (mut admin, mut other, mut busy) = (server.client(), server.client(), server.client());
    let members: Vec<String> = (0..300_000).map(|n| n.to_string()).collect();
    for some in members.chunks(1_000) {
        let words: Vec<&str> = ["SADD", "large"]
            .into_iter()
            .chain(some.iter().map(String::as_str))
            .collect();
        busy.call(&words);
    }
    busy.send(&command(&[
        "SUNIONSTORE",
        "copy",
        "large",
        "large",
        "large",
    ]));
    std::thread::sleep(std::time::Duration::from_millis(30));
    set_user(&mut admin, "bob", &["on", "nopass", "+get"]);
    assert_eq!(other.call(&["PING"]), simple("PONG"));
    assert!(busy.is_silent(), "the command should take longer");
    assert_eq!(busy.read(), Reply::Integer(300_000));
}
