//! The settings of TLS.

use super::value::Port;

/// Whether clients show certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientCertificates {
    /// They must.
    Required,
    /// They may; one that is shown must be right.
    Optional,
    /// They are not asked.
    Ignored,
}

/// What in a client's certificate names its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CertifiedUser {
    Nobody,
    CommonName,
    Uri,
}

/// The cipher suites of TLS 1.3, as settings name them.
pub(crate) const SUITES_13: &[&str] = &[
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// The cipher suites of TLS 1.2, as settings name them.
pub(crate) const SUITES_12: &[&str] = &[
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-RSA-CHACHA20-POLY1305",
];

/// What the keys `tls-…` set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsSettings {
    pub(crate) port: Port,
    /// Paths; empty: none.
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) authorities_file: String,
    pub(crate) authorities_folder: String,
    pub(crate) clients: ClientCertificates,
    pub(crate) user: CertifiedUser,
    pub(crate) protocols: Protocols,
    /// Suites of TLS 1.3 by their names; empty: all.
    pub(crate) suites_13: Vec<&'static str>,
    /// The same of TLS 1.2.
    pub(crate) suites_12: Vec<&'static str>,
    /// The server's order of the suites counts, not the client's.
    pub(crate) own_order: bool,
    /// Clients that come again get tickets, and need no whole handshake.
    pub(crate) tickets: bool,
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self {
            port: Port::Off,
            certificate: String::new(),
            key: String::new(),
            authorities_file: String::new(),
            authorities_folder: String::new(),
            clients: ClientCertificates::Required,
            user: CertifiedUser::Nobody,
            protocols: Protocols::default(),
            suites_13: Vec::new(),
            suites_12: Vec::new(),
            own_order: false,
            tickets: true,
        }
    }
}

/// The versions of TLS that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Protocols {
    pub(crate) v12: bool,
    pub(crate) v13: bool,
}

impl Default for Protocols {
    fn default() -> Self {
        Self {
            v12: true,
            v13: true,
        }
    }
}

impl Protocols {
    /// Reads versions, with spaces between them; none: both.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut protocols = Self {
            v12: false,
            v13: false,
        };
        for word in text.split_ascii_whitespace() {
            match word.to_ascii_lowercase().as_str() {
                "tlsv1.2" => protocols.v12 = true,
                "tlsv1.3" => protocols.v13 = true,
                "sslv3" | "tlsv1" | "tlsv1.1" => {
                    return Err(format!(
                        "{word} is not secure and not spoken; TLSv1.2 and TLSv1.3 are"
                    ));
                }
                _ => {
                    return Err(format!(
                        "there is no version '{word}'; name TLSv1.2, TLSv1.3"
                    ));
                }
            }
        }
        match protocols.v12 || protocols.v13 {
            true => Ok(protocols),
            false => Ok(Self::default()),
        }
    }
}

impl std::fmt::Display for Protocols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match (self.v12, self.v13) {
            (true, false) => "TLSv1.2",
            (false, true) => "TLSv1.3",
            _ => "TLSv1.2 TLSv1.3",
        })
    }
}

/// Reads names of suites with colons between them, in the order in which they are preferred.
pub(crate) fn suites(
    text: &str,
    known: &'static [&'static str],
) -> Result<Vec<&'static str>, String> {
    let names = text.split(':').filter(|name| !name.is_empty());
    let find = |name: &str| {
        let mut known_names = known.iter().copied();
        let found = known_names.find(|known| known.eq_ignore_ascii_case(name));
        found.ok_or_else(|| format!("'{name}' is not there; there are {}", known.join(":")))
    };
    names.map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_and_unknown_suites_are_refused_by_their_names() {
        for (text, why) in [
            ("TLSv1.1 TLSv1.2", "TLSv1.1 is not secure"),
            ("TLSv1.4", "no version 'TLSv1.4'"),
        ] {
            let refused = Protocols::parse(text).expect_err(text);
            assert!(refused.contains(why), "{refused}");
        }
        assert_eq!(Protocols::parse("tlsv1.3").unwrap().to_string(), "TLSv1.3");
        assert_eq!(Protocols::parse("").unwrap(), Protocols::default());
        let refused = suites("TLS_AES_128_CCM_SHA256", SUITES_13).expect_err("not there");
        assert!(
            refused.starts_with("'TLS_AES_128_CCM_SHA256' is not"),
            "{refused}"
        );
        let two = "TLS_AES_128_GCM_SHA256:tls_aes_256_gcm_sha384";
        let found = suites(two, SUITES_13).expect("both are there");
        assert_eq!(found, [SUITES_13[1], SUITES_13[0]]);
    }
}
