//! Rows about TLS.

use super::{ChangeTime, ConfigKey, Group, only, put};
use crate::config::tls::{
    CertifiedUser, ClientCertificates, Protocols, SUITES_12, SUITES_13, suites,
};
use crate::config::value::{Port, name_of, name_of_bool, word, yes_or_no};

const CLIENTS: &[(&str, ClientCertificates)] = &[
    ("yes", ClientCertificates::Required),
    ("no", ClientCertificates::Ignored),
    ("optional", ClientCertificates::Optional),
];

const USERS: &[(&str, CertifiedUser)] = &[
    ("off", CertifiedUser::Nobody),
    ("CN", CertifiedUser::CommonName),
    ("URI", CertifiedUser::Uri),
];

pub(super) static KEYS: &[ConfigKey] = &[
    ConfigKey {
        name: "tls-port",
        value: "PORT",
        help: "port for TLS; 0 = none, any = a free one",
        group: Group::Users,
        change: ChangeTime::AtStart,
        get: |s| s.tls.port.to_string(),
        set: |s, v| put(&mut s.tls.port, Port::parse(v)?),
    },
    ConfigKey {
        name: "tls-cert-file",
        value: "FILE",
        help: "the server's certificate and those between it and the authority, in PEM; read again when it is set",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| s.tls.certificate.clone(),
        set: |s, v| put(&mut s.tls.certificate, v.to_owned()),
    },
    ConfigKey {
        name: "tls-key-file",
        value: "FILE",
        help: "the key of the certificate, in PEM, without a password",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| s.tls.key.clone(),
        set: |s, v| put(&mut s.tls.key, v.to_owned()),
    },
    ConfigKey {
        name: "tls-key-file-pass",
        value: "PASSWORD",
        help: "keys with a password are not read; only the empty one is accepted",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |_| String::new(),
        set: |_, v| {
            let why = "keys with a password are not read: take it off with `openssl pkey -in KEY -out PLAIN`, and \
                       protect the file";
            only(v, "", why)
        },
    },
    ConfigKey {
        name: "tls-ca-cert-file",
        value: "FILE",
        help: "authorities whose clients are let in, in PEM",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| s.tls.authorities_file.clone(),
        set: |s, v| put(&mut s.tls.authorities_file, v.to_owned()),
    },
    ConfigKey {
        name: "tls-ca-cert-dir",
        value: "FOLDER",
        help: "a folder of such files",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| s.tls.authorities_folder.clone(),
        set: |s, v| put(&mut s.tls.authorities_folder, v.to_owned()),
    },
    ConfigKey {
        name: "tls-auth-clients",
        value: "yes|no|optional",
        help: "whether clients must show a certificate of these authorities",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| name_of(s.tls.clients, CLIENTS),
        set: |s, v| put(&mut s.tls.clients, word(v, CLIENTS)?),
    },
    ConfigKey {
        name: "tls-auth-clients-user",
        value: "off|CN|URI",
        help: "a client is the user whom its certificate names so, without a password, if there is such a user",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| name_of(s.tls.user, USERS),
        set: |s, v| put(&mut s.tls.user, word(v, USERS)?),
    },
    ConfigKey {
        name: "tls-protocols",
        value: "VERSION VERSION",
        help: "versions to speak",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| s.tls.protocols.to_string(),
        set: |s, v| put(&mut s.tls.protocols, Protocols::parse(v)?),
    },
    ConfigKey {
        name: "tls-ciphersuites",
        value: "NAME:NAME",
        help: "cipher suites of TLS 1.3, the preferred first; empty = all",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| s.tls.suites_13.join(":"),
        set: |s, v| put(&mut s.tls.suites_13, suites(v, SUITES_13)?),
    },
    ConfigKey {
        name: "tls-ciphers",
        value: "NAME:NAME",
        help: "cipher suites of TLS 1.2, the preferred first; empty = all",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| s.tls.suites_12.join(":"),
        set: |s, v| put(&mut s.tls.suites_12, suites(v, SUITES_12)?),
    },
    ConfigKey {
        name: "tls-prefer-server-ciphers",
        value: "yes|no",
        help: "take the first suite of the server's list that the client has, not of the client's",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| name_of_bool(s.tls.own_order),
        set: |s, v| put(&mut s.tls.own_order, yes_or_no(v)?),
    },
    ConfigKey {
        name: "tls-session-caching",
        value: "yes|no",
        help: "give tickets to clients, with which they come again without a whole handshake",
        group: Group::Users,
        change: ChangeTime::Live,
        get: |s| name_of_bool(s.tls.tickets),
        set: |s, v| put(&mut s.tls.tickets, yes_or_no(v)?),
    },
    // Tools ask for these. The answers are true, and any other value is refused.
    ConfigKey {
        name: "tls-replication",
        value: "no",
        help: "replicate by TLS; only `no` is accepted",
        group: Group::Users,
        change: ChangeTime::AtStart,
        get: |_| "no".to_owned(),
        set: |_, v| only(v, "no", "there is no replication yet"),
    },
    ConfigKey {
        name: "tls-cluster",
        value: "no",
        help: "talk to a cluster by TLS; only `no` is accepted",
        group: Group::Users,
        change: ChangeTime::AtStart,
        get: |_| "no".to_owned(),
        set: |_, v| only(v, "no", "this server is not part of a cluster"),
    },
];
