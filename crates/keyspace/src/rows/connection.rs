//! Rows: the connection itself, run by the server, apart from SELECT.

use super::command::{Command, chapter, row};
use super::kinds::Group;

#[rustfmt::skip] // One call for each thing that is said would take three times the lines.
pub(super) const ROWS: &[Command] = &chapter(Group::Connection, "@connection", [
    row("auth", -2, "noscript loading stale fast no_auth allow_busy", "[username@6.0.0] password")
        .says("Authenticates the connection.")
        .complexity("O(N) where N is the number of passwords defined for the user")
        .history(&[("6.0.0", "Added ACL style (username and password).")]),
    row("client", -2, "", "")
        .since("2.4.0").in_categories("-")
        .says("A container for client connection commands.")
        .complexity("Depends on subcommand."),
    row("client|caching", 3, "noscript loading stale", "mode(YES|NO)")
        .since("6.0.0")
        .says("Instructs the server whether to track the keys in the next request."),
    row("client|getname", 2, "noscript loading stale", "")
        .since("2.6.9")
        .says("Returns the name of the connection."),
    row("client|getredir", 2, "noscript loading stale", "")
        .since("6.0.0")
        .says("Returns the client ID to which the connection's tracking notifications are \
            redirected."),
    row("client|help", 2, "loading stale", "")
        .since("5.0.0")
        .says("Returns helpful text about the different subcommands."),
    row("client|id", 2, "noscript loading stale", "")
        .since("5.0.0")
        .says("Returns the unique client ID of the connection."),
    row("client|info", 2, "noscript loading stale", "")
        .since("6.2.0")
        .says("Returns information about the connection."),
    row("client|kill", -3, "admin noscript loading stale",
        "filter(old-format|new-format([ID client-id:int]|[TYPE \
            client-type(NORMAL|MASTER|REPLICA|PUBSUB)]|[USER username]|[ADDR addr]|[LADDR \
            laddr]|[SKIPME skipme(YES|NO)])...)")
        .since("2.4.0")
        .says("Terminates open connections.")
        .complexity("O(N) where N is the number of client connections"),
    row("client|list", -2, "admin noscript loading stale",
        "[TYPE client-type(NORMAL|MASTER|REPLICA|PUBSUB)] [ID client-id:int...] [USER username] \
            [ADDR addr] [LADDR laddr] [IP ip] [NAME name] [LIB-NAME library] [LIB-VER version] \
            [FLAGS flags] [DB db:int] [MAXAGE maxage:int] [IDLE idle:int] [SKIPME skipme(YES|NO)]")
        .since("2.4.0")
        .says("Lists open connections.")
        .complexity("O(N) where N is the number of client connections"),
    row("client|no-evict", 3, "admin noscript loading stale", "enabled(ON|OFF)")
        .since("7.0.0")
        .says("Sets the client eviction mode of the connection."),
    row("client|no-touch", 3, "noscript loading stale", "enabled(ON|OFF)")
        .since("7.2.0")
        .says("Controls whether commands sent by the client affect the LRU/LFU of accessed keys."),
    row("client|pause", -3, "admin noscript loading stale", "timeout:int [mode(WRITE|ALL)@6.2.0]")
        .since("3.0.0")
        .says("Suspends commands processing."),
    row("client|reply", 3, "noscript loading stale", "action(ON|OFF|SKIP)")
        .since("3.2.0")
        .says("Instructs the server whether to reply to commands."),
    row("client|setinfo", 4, "noscript loading stale", "attr(LIB-NAME libname|LIB-VER libver)")
        .since("7.2.0")
        .says("Sets information specific to the client or connection."),
    row("client|setname", 3, "noscript loading stale", "connection-name")
        .since("2.6.9")
        .says("Sets the connection name."),
    row("client|tracking", -3, "noscript loading stale",
        "status(ON|OFF) [REDIRECT client-id:int] [PREFIX prefix...] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]")
        .since("6.0.0")
        .says("Controls server-assisted client-side caching for the connection.")
        .complexity("O(1). Some options may introduce additional complexity."),
    row("client|trackinginfo", 2, "noscript loading stale", "")
        .since("6.2.0")
        .says("Returns information about server-assisted client-side caching for the connection."),
    row("client|unblock", -3, "admin noscript loading stale",
        "client-id:int [unblock-type(TIMEOUT|ERROR)]")
        .since("5.0.0")
        .says("Unblocks a client blocked by a blocking command from a different connection.")
        .complexity("O(log N) where N is the number of client connections"),
    row("client|unpause", 2, "admin noscript loading stale", "")
        .since("6.2.0")
        .says("Resumes processing commands from paused clients.")
        .complexity("O(N) Where N is the number of paused clients"),
    row("echo", 2, "loading stale fast", "message")
        .says("Returns the given string."),
    row("hello", -1, "noscript loading stale fast no_auth allow_busy",
        "[arguments(protover:int [AUTH auth(username password)] [SETNAME clientname])]")
        .since("6.0.0")
        .says("Handshakes with the server."),
    row("ping", -1, "fast", "[message]")
        .hints("request_policy:all_shards response_policy:all_succeeded")
        .says("Returns the server's liveliness response."),
    row("quit", -1, "noscript loading stale fast no_auth allow_busy", "")
        .says("Closes the connection.")
        .replaced_by("7.2.0", "just closing the connection"),
    row("reset", 1, "noscript loading stale fast no_auth allow_busy", "")
        .since("6.2.0")
        .says("Resets the connection."),
    row("select", 2, "loading stale fast", "index:int")
        .says("Changes the selected database."),
]);
