//! Certificates: which ones are shown, read again and accepted, and whom they name.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;

use rcgen::SanType;

use super::{BOTH, Files, TlsClient};
use crate::common::{eventually, ok, simple, text};

#[test]
fn certificates_are_read_again_and_broken_ones_change_nothing() {
    let files = Files::new("again");
    let server = files.server(&[]);
    let mut first = files.connect(server.port);
    assert_eq!(first.call(&["PING"]), simple("PONG"));
    let shown = |files: &Files| {
        let mut client = files.connect(server.port);
        assert_eq!(client.call(&["PING"]), simple("PONG"));
        client.certificate()
    };
    let before = first.certificate();
    assert_eq!(shown(&files), before);
    // By CONFIG SET of the same name.
    files.make("server");
    assert_eq!(shown(&files), before, "nobody has asked yet");
    let (certificate, key) = (files.text("server.crt"), files.text("server.key"));
    let set = ["CONFIG", "SET", "tls-cert-file", &certificate];
    assert_eq!(first.call(&set), ok());
    let second = shown(&files);
    assert_ne!(second, before);
    // By a signal.
    files.make("server");
    server.signal(rustix::process::Signal::HUP);
    server.logged("were read again (SIGHUP)");
    let third = shown(&files);
    assert_ne!(third, second);
    // A key that is another certificate's, one that is broken, and none.
    files.make("other");
    let other = files.text("other.key");
    for wrong in [&other, &certificate, "/nowhere/a.key", ""] {
        let refused = text(&first.call(&["CONFIG", "SET", "tls-key-file", wrong]));
        assert!(refused.contains("'tls-key-file'"), "{refused}");
        assert_eq!(shown(&files), third);
    }
    fs::write(files.path("server.crt"), "no certificate").expect("a file");
    server.signal(rustix::process::Signal::HUP);
    server.logged("the certificates stay as they were: there is no certificate in");
    assert_eq!(shown(&files), third);
    let kept = first.call(&["CONFIG", "GET", "tls-key-file"]);
    assert_eq!(kept, crate::common::array(&["tls-key-file", &key]));
    assert_eq!(first.call(&["PING"]), simple("PONG"), "it goes on");
}

#[test]
fn clients_show_certificates_if_they_must() {
    let files = Files::new("clients");
    let stranger = Files::new("stranger");
    let server = files.server(&["--tls-auth-clients", "yes"]);
    let served = |config| {
        let mut client = TlsClient::connect(server.port, config);
        client.stream.write_all(b"PING\r\n").is_ok() && client.try_read().is_ok()
    };
    let mut own = TlsClient::connect(server.port, files.client_config(BOTH, true));
    for (mode, without) in [
        ("yes", false),
        ("optional", true),
        ("no", true),
        ("yes", false),
    ] {
        assert_eq!(own.call(&["CONFIG", "SET", "tls-auth-clients", mode]), ok());
        for version in BOTH {
            let versions = &[*version];
            assert!(served(files.client_config(versions, true)), "{mode}");
            assert_eq!(
                served(files.client_config(versions, false)),
                without,
                "{mode}"
            );
            // Another authority's.
            let mut config = (*files.client_config(versions, true)).clone();
            config.client_auth_cert_resolver = Arc::clone(
                &stranger
                    .client_config(versions, true)
                    .client_auth_cert_resolver,
            );
            assert_eq!(served(Arc::new(config)), mode == "no", "{mode}");
        }
    }
    server.logged("its TLS handshake has failed");
    // Without authorities nobody could come in.
    let refused = text(&own.call(&["CONFIG", "SET", "tls-ca-cert-file", ""]));
    assert!(refused.contains("no authorities"), "{refused}");
    // A folder in which there are other files, too.
    let folder = files.folder.text();
    let set = [
        "CONFIG",
        "SET",
        "tls-ca-cert-file",
        "",
        "tls-ca-cert-dir",
        folder,
    ];
    assert_eq!(own.call(&set), ok());
    assert!(served(files.client_config(BOTH, true)));
}

#[test]
fn a_client_is_the_user_whom_its_certificate_names() {
    let files = Files::new("user");
    let server = files.server(&["--tls-auth-clients", "optional", "--requirepass", "secret"]);
    let mut boss = files.connect(server.port);
    assert_eq!(boss.call(&["AUTH", "secret"]), ok());
    let who = |config| {
        let mut client = TlsClient::connect(server.port, config);
        text(&client.call(&["ACL", "WHOAMI"]))
    };
    let named = |version| who(files.client_config(&[version], true));
    for name in ["client", "urn:second"] {
        let set = ["ACL", "SETUSER", name, "on", ">unknown", "+@all", "~*"];
        assert_eq!(boss.call(&set), ok());
    }
    assert_eq!(boss.call(&["ACL", "SETUSER", "urn:first", "off"]), ok());
    let stranger = "NOAUTH Authentication required.";
    for (setting, user) in [("off", stranger), ("CN", "client"), ("URI", "urn:second")] {
        let set = ["CONFIG", "SET", "tls-auth-clients-user", setting];
        assert_eq!(boss.call(&set), ok());
        for version in BOTH {
            assert_eq!(named(version), user, "{setting}");
        }
        assert_eq!(who(files.client_config(BOTH, false)), stranger);
    }
    // A ticket names whom the certificate has named.
    let config = files.client_config(BOTH, true);
    assert_eq!(who(Arc::clone(&config)), "urn:second");
    assert_eq!(who(config), "urn:second");
    assert_eq!(boss.call(&["ACL", "SETUSER", "urn:second", "off"]), ok());
    assert_eq!(named(BOTH[0]), stranger);
}

/// Read up to the NUL, it is another's.
#[test]
fn a_common_name_with_a_nul_is_nobodys() {
    let files = Files::new("nul");
    files.make_for("client", "client\0stranger");
    let flags = ["--tls-auth-clients", "yes", "--tls-auth-clients-user", "CN"];
    let server = files.server(&flags);
    let mut client = TlsClient::connect(server.port, files.client_config(BOTH, true));
    client.call(&["ACL", "SETUSER", "client", "on", "nopass", "+@all"]);
    let mut again = TlsClient::connect(server.port, files.client_config(BOTH, true));
    assert_eq!(text(&again.call(&["ACL", "WHOAMI"])), "default");
}

#[test]
fn info_says_when_the_certificates_end() {
    let files = Files::new("end");
    let server = files.server(&["--tls-auth-clients", "optional"]);
    let mut client = files.connect(server.port);
    // rcgen's end in the year 4096.
    for field in ["server", "ca"] {
        let field = format!("tls_{field}_cert_expires_in_seconds");
        assert!(client.info("tls", &field) > 2_000 * 31_536_000);
    }
    let info = text(&client.call(&["INFO", "tls"]));
    assert!(!info.contains("serial:none"), "{info}");
    assert_eq!(
        client.call(&["CONFIG", "SET", "tls-auth-clients", "no"]),
        ok()
    );
    let info = text(&client.call(&["INFO", "tls"]));
    let none = "tls_ca_cert_serial:none\r\ntls_ca_cert_expires_in_seconds:0";
    assert!(info.contains(none), "{info}");
}

#[test]
fn a_certificate_that_does_not_hold_now_is_served_with_a_warning() {
    let files = Files::new("untimely");
    let set = |from, until| {
        files.make_with("server", "server", |params| {
            params.not_before = rcgen::date_time_ymd(from, 3, 1);
            params.not_after = rcgen::date_time_ymd(until, 3, 1);
        });
    };
    set(2001, 2002);
    let server = files.server(&[]);
    let expired = &server.logged("has expired")[0];
    for part in [
        "WARN",
        "Mar  1 00:00:00 2001",
        "Mar  1 00:00:00 2002",
        "serial=",
    ] {
        assert!(expired.contains(part), "{part}: {expired}");
    }
    // Who does not check it is served, so somebody can mend it.
    set(3001, 3002);
    server.signal(rustix::process::Signal::HUP);
    let early = &server.logged("is not valid yet")[0];
    assert!(early.contains("Mar  1 00:00:00 3001"), "{early}");
    set(2001, 3001);
    server.signal(rustix::process::Signal::HUP);
    eventually("the second reading", || {
        (server.logged("certificates were read again").len() == 2).then_some(())
    });
    let mut client = files.connect(server.port);
    assert_eq!(client.call(&["PING"]), simple("PONG"));
    set(2003, 2004);
    let certificate = files.text("server.crt");
    let set = ["CONFIG", "SET", "tls-cert-file", &certificate];
    assert_eq!(client.call(&set), ok());
    server.logged("Mar  1 00:00:00 2004");
}

/// Nobody could read them: the server seemed to be up, and each handshake failed.
#[test]
fn a_chain_that_clients_do_not_read_is_refused() {
    let files = Files::new("chain");
    let server = files.server(&[]);
    let mut client = files.connect(server.port);
    let one = fs::read_to_string(files.path("server.crt")).expect("a file");
    let long = files.text("long.crt");
    fs::write(&long, one.repeat(32)).expect("a file");
    let set = ["CONFIG", "SET", "tls-cert-file", &long];
    assert_eq!(client.call(&set), ok());
    for (count, why) in [
        (33, "33 certificates"),
        (20_000, "20000 certificates"),
        (40_000, "more than 16777216 bytes"),
    ] {
        fs::write(&long, one.repeat(count)).expect("a file");
        let refused = text(&client.call(&set));
        assert!(refused.contains(why), "{refused}");
    }
    files.make_with("long", "server", |params| {
        let names = (0..3_000).map(|i| format!("host-{i}.example.org"));
        let name = |name: String| SanType::DnsName(name.try_into().expect("a name"));
        params.subject_alt_names.extend(names.map(name));
    });
    server.signal(rustix::process::Signal::HUP);
    server.logged("the certificates stay as they were: the chain in");
    assert_eq!(client.call(&["PING"]), simple("PONG"));
}

/// A ticket of one that was let in does not let it in when it may not come in any more.
#[test]
fn a_ticket_does_not_outlive_the_authority() {
    let files = Files::new("ticket");
    let stranger = Files::new("ticket-stranger");
    let server = files.server(&["--tls-auth-clients", "yes"]);
    let config = files.client_config(BOTH, true);
    let mut client = TlsClient::connect(server.port, Arc::clone(&config));
    assert_eq!(client.call(&["PING"]), simple("PONG"));
    let mut again = TlsClient::connect(server.port, Arc::clone(&config));
    assert_eq!(again.call(&["PING"]), simple("PONG"));
    let kind = again.stream.conn.handshake_kind();
    assert_eq!(kind, Some(rustls::HandshakeKind::Resumed));
    let ca = stranger.text("ca.crt");
    assert_eq!(
        client.call(&["CONFIG", "SET", "tls-ca-cert-file", &ca]),
        ok()
    );
    let mut late = TlsClient::connect(server.port, config);
    let refused = late.stream.write_all(b"PING\r\n").is_err() || late.try_read().is_err();
    assert!(refused);
}
