//! CONFIG over the wire: names and what they read back.

use crate::common::{Server, array, error, ok};

#[test]
fn an_old_name_reads_and_sets_what_the_new_name_does() {
    let server = Server::start(&["--zset-max-ziplist-value", "1kb"]);
    let mut client = server.client();
    let get = ["CONFIG", "GET", "*listpack-v*", "zset-max-ziplist-*"];
    let found = client.call(&get);
    assert_eq!(
        found,
        array(&[
            "hash-max-listpack-value",
            "64",
            "set-max-listpack-value",
            "64",
            "zset-max-ziplist-entries",
            "128",
            "zset-max-listpack-value",
            "1024",
            "zset-max-ziplist-value",
            "1024",
        ])
    );
    let set = ["CONFIG", "SET", "hash-max-ziplist-entries", "7"];
    assert_eq!(client.call(&set), ok());
    assert_eq!(
        client.call(&["CONFIG", "GET", "hash-max-listpack-entries"]),
        array(&["hash-max-listpack-entries", "7"])
    );
    let twice = ["hash-max-ziplist-entries", "7"].repeat(2);
    let twice: Vec<&str> = ["CONFIG", "SET"].into_iter().chain(twice).collect();
    assert_eq!(
        client.call(&twice),
        error(
            "ERR CONFIG SET failed (possibly related to argument 'hash-max-listpack-entries') - \
             duplicate parameter"
        )
    );
}

#[test]
fn the_memory_of_clients_may_be_limited_in_percent_of_maxmemory() {
    let server = Server::start(&["--maxmemory", "100mb", "--maxmemory-clients", "5%"]);
    let mut client = server.client();
    let get = ["CONFIG", "GET", "maxmemory-clients"];
    assert_eq!(client.call(&get), array(&["maxmemory-clients", "5%"]));
    assert_eq!(
        client.call(&["CONFIG", "SET", "maxmemory-clients", "101%"]),
        error(
            "ERR CONFIG SET failed (possibly related to argument 'maxmemory-clients') - percentage \
             argument must be less or equal to 100"
        )
    );
    assert_eq!(
        client.call(&["CONFIG", "SET", "maxmemory-clients", "1mb"]),
        ok()
    );
    assert_eq!(client.call(&get), array(&["maxmemory-clients", "1048576"]));
}
