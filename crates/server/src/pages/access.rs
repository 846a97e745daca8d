//! Which requests are heard: by the host that they name, and by their user.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// A user's name and password, as a request gives them.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) name: Vec<u8>,
    pub(super) password: Vec<u8>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(redacted)")
    }
}

/// True if a request names this server by an address, as `localhost`, or by a name that
/// `http-hosts` has. A page of somebody else may have its own name lead to this address, and would
/// then read what we answer: the name tells.
pub(super) fn is_host(host: &str, names: &[String]) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) => (name, port),
            None => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port = port.strip_prefix(':').unwrap_or(port);
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    name.parse::<std::net::IpAddr>().is_ok() || is("localhost") || names.iter().any(|own| is(own))
}

/// True if a page of somebody else asks, as its browser says: it could not read the answer, but it
/// would cost us.
pub(super) fn is_foreign(site: Option<&[u8]>) -> bool {
    site.is_some_and(|site| site != b"same-origin" && site != b"none")
}

/// Reads the header `Authorization: Basic …`.
pub(super) fn credentials(header: &[u8]) -> Option<Credentials> {
    let (scheme, text) = header.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let both = BASE64_STANDARD.decode(text.trim_ascii()).ok()?;
    let colon = both.iter().position(|byte| *byte == b':')?;
    Some(Credentials {
        name: both[..colon].to_vec(),
        password: both[colon + 1..].to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_addresses_localhost_and_names_of_ours() {
        let names = ["cache.example".to_owned()];
        for (host, is_ours) in [
            ("127.0.0.1:8379", true),
            ("[::1]:8379", true),
            ("[::1]", true),
            ("LocalHost", true),
            ("cache.example:80", true),
            ("Cache.Example", true),
            ("evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example:8379", false),
            ("", false),
            ("[evil.example]", false),
            ("[::1", false),
            ("127.0.0.1:80@evil.example", false),
            ("localhost:evil", false),
        ] {
            assert_eq!(is_host(host, &names), is_ours, "{host}");
        }
    }

    #[test]
    fn credentials_are_a_name_and_a_password() {
        let read = |text: &str| credentials(text.as_bytes());
        let found = read("Basic YWxpY2U6YTpi").expect("alice, a:b");
        assert_eq!(
            (found.name, found.password),
            (b"alice".to_vec(), b"a:b".to_vec())
        );
        assert!(read("basic YWxpY2U6").is_some_and(|found| found.password.is_empty()));
        for wrong in [
            "",
            "Basic",
            "Bearer YWxpY2U6YQ==",
            "Basic !!!",
            "Basic YWxpY2U=",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
