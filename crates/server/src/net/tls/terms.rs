//! The terms on which TLS is spoken: certificates, authorities, versions and suites, read from
//! files as the settings say. New terms hold for new connections; terms that cannot be made leave
//! the old ones in force.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use parking_lot::Mutex;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};

use super::certificate::{CertificateEnd, advice, first_end, warn_of_untimely};
use crate::config::{ClientCertificates, Port, Settings, TlsSettings, open_regular};

/// The longest file of certificates or keys, in bytes.
const FILE_MAX: u64 = 16 << 20;

/// The most certificates of a chain, and the most bytes of all: what clients read of a server at
/// least. OpenSSL reads 100 KiB, and rustls 64 KiB.
const CHAIN_MAX: usize = 32;
const CHAIN_BYTES_MAX: usize = 60 << 10;

/// The tickets that a client gets with TLS 1.3.
const TICKETS: usize = 1;

/// Terms that were made.
#[derive(Debug)]
struct Made {
    terms: Arc<ServerConfig>,
    ends: CertificateEnds,
}

/// When the certificates in force end: the first of the server's own, and of the authorities'.
#[derive(Debug, Clone, Default)]
pub(crate) struct CertificateEnds {
    pub(crate) own: Option<CertificateEnd>,
    pub(crate) authority: Option<CertificateEnd>,
}

/// The terms in force, if TLS is spoken.
#[derive(Debug, Default)]
pub(crate) struct TlsTerms(Mutex<Option<Made>>);

impl TlsTerms {
    /// Returns the terms for the next connection.
    pub(crate) fn current(&self) -> Option<Arc<ServerConfig>> {
        let made = self.0.lock();
        made.as_ref().map(|made| Arc::clone(&made.terms))
    }

    /// Returns when the certificates end.
    pub(crate) fn ends(&self) -> CertificateEnds {
        let made = self.0.lock();
        made.as_ref()
            .map(|made| made.ends.clone())
            .unwrap_or_default()
    }

    /// Reads the files again, and puts the terms into force if they are right. The time is a second
    /// of Unix time.
    pub(crate) fn renew(&self, settings: &Settings, now_s: i64) -> anyhow::Result<()> {
        if settings.tls.port != Port::Off {
            let made = make(&settings.tls, now_s)?;
            *self.0.lock() = Some(made);
        }
        Ok(())
    }
}

/// Makes terms as the settings say, or says what is missing or wrong.
fn make(settings: &TlsSettings, now_s: i64) -> anyhow::Result<Made> {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: suites(settings),
        ..ring::default_provider()
    });
    let versions = versions(settings);
    let (clients, authority) = clients(settings, &provider)?;
    let key = key(&settings.key, "tls-key-file")?;
    let chain = chain(&settings.certificate, "tls-cert-file")?;
    let own = first_end(chain.iter().map(AsRef::as_ref));
    let shown = chain.clone();
    let mut terms = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .context("no suite of tls-ciphers or tls-ciphersuites is of a version of tls-protocols")?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .map_err(|why| {
            let (chain, key, advice) = (
                &settings.certificate,
                &settings.key,
                advice(&why.to_string()),
            );
            anyhow::anyhow!(
                "the certificate in {chain} and the key in {key} do not serve: {why}{advice}"
            )
        })?;
    terms.ignore_client_order = settings.own_order;
    terms.session_storage = Arc::new(NoServerSessionStorage {});
    terms.send_tls13_tickets = 0;
    if settings.tickets {
        terms.send_tls13_tickets = TICKETS;
        // A new key: who may not come in any more cannot come in by a ticket either.
        terms.ticketer = ring::Ticketer::new().context("no random bytes for tickets")?;
    }
    warn_of_untimely(&shown, now_s);
    Ok(Made {
        terms: Arc::new(terms),
        ends: CertificateEnds { own, authority },
    })
}

/// Returns the suites that the settings name, in their order.
fn suites(settings: &TlsSettings) -> Vec<SupportedCipherSuite> {
    let all = ring::default_provider().cipher_suites;
    let named = |names: &[&str], of_13: bool| -> Vec<SupportedCipherSuite> {
        let of_version = all.iter().filter(|suite| suite.tls13().is_some() == of_13);
        let of_version: Vec<_> = of_version.copied().collect();
        if names.is_empty() {
            return of_version;
        }
        let is = |name: &str, suite: &&SupportedCipherSuite| name_of(**suite) == name;
        let find = |name: &&str| of_version.iter().find(|suite| is(name, suite)).copied();
        names.iter().filter_map(find).collect()
    };
    let mut suites = named(&settings.suites_13, true);
    suites.extend(named(&settings.suites_12, false));
    suites
}

/// Returns the name of a suite in settings: `TLS_AES_128_GCM_SHA256` of TLS 1.3, and
/// `ECDHE-RSA-AES128-GCM-SHA256` of TLS 1.2, as OpenSSL has it.
fn name_of(suite: SupportedCipherSuite) -> String {
    let name = format!("{:?}", suite.suite());
    if let Some(rest) = name.strip_prefix("TLS13_") {
        return format!("TLS_{rest}");
    }
    let name = name.trim_start_matches("TLS_").replace("WITH_", "");
    let name = name.replace("AES_", "AES").replace('_', "-");
    match name.strip_suffix("-SHA256") {
        Some(rest) if rest.ends_with("POLY1305") => rest.to_owned(),
        _ => name,
    }
}

fn versions(settings: &TlsSettings) -> Vec<&'static SupportedProtocolVersion> {
    let protocols = settings.protocols;
    let v13 = protocols.v13.then_some(&rustls::version::TLS13);
    let v12 = protocols.v12.then_some(&rustls::version::TLS12);
    v13.into_iter().chain(v12).collect()
}

/// Returns what clients must show, and the authority that ends first.
fn clients(
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
) -> anyhow::Result<(Arc<dyn ClientCertVerifier>, Option<CertificateEnd>)> {
    if settings.clients == ClientCertificates::Ignored {
        return Ok((WebPkiClientVerifier::no_client_auth(), None));
    }
    let (file, folder) = (&settings.authorities_file, &settings.authorities_folder);
    if file.is_empty() && folder.is_empty() {
        anyhow::bail!(
            "clients must show certificates, but there are no authorities for these: set tls-ca-cert-file or \
             tls-ca-cert-dir, or tls-auth-clients no"
        );
    }
    let keys = ["tls-ca-cert-file", "tls-ca-cert-dir"];
    let found = authority_certificates(file, folder, keys)?;
    let end = first_end(found.iter().map(Vec::as_slice));
    let roots = Arc::new(trusted(found, file, folder)?);
    let clients = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
    let clients = match settings.clients {
        ClientCertificates::Optional => clients.allow_unauthenticated(),
        _ => clients,
    };
    let clients = clients.build().context("the authorities do not serve")?;
    Ok((clients, end))
}

/// Reads the authorities of a file and of those in a folder. Errors name what has set them.
pub(super) fn authorities(
    file: &str,
    folder: &str,
    keys: [&str; 2],
) -> anyhow::Result<RootCertStore> {
    trusted(authority_certificates(file, folder, keys)?, file, folder)
}

fn authority_certificates(
    file: &str,
    folder: &str,
    [of_file, of_folder]: [&str; 2],
) -> anyhow::Result<BTreeSet<Vec<u8>>> {
    // The links of a folder that OpenSSL has numbered name each file twice.
    let mut found = BTreeSet::new();
    let ders = |certificates: Vec<CertificateDer<'_>>| {
        let ders: Vec<Vec<u8>> = certificates.iter().map(|of| of.to_vec()).collect();
        ders
    };
    if !file.is_empty() {
        found.extend(ders(certificates(Path::new(file), of_file)?));
    }
    if !folder.is_empty() {
        let unread = |why: &str| format!("cannot read {why}{folder} ({of_folder})");
        for entry in std::fs::read_dir(folder).with_context(|| unread(""))? {
            let path = entry.with_context(|| unread("in "))?.path();
            if path.is_file() {
                found.extend(ders(certificates(&path, of_folder)?));
            }
        }
    }
    Ok(found)
}

fn trusted(found: BTreeSet<Vec<u8>>, file: &str, folder: &str) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let (added, unusable) =
        roots.add_parsable_certificates(found.into_iter().map(CertificateDer::from));
    if added == 0 {
        anyhow::bail!("there is no authority in {file}{folder}");
    }
    if unusable > 0 {
        tracing::warn!(
            unusable,
            "certificates of authorities are left out: they are not right"
        );
    }
    Ok(roots)
}

/// Reads the certificate and those between it and the authority.
pub(super) fn chain(path: &str, setting: &str) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    if path.is_empty() {
        anyhow::bail!("TLS needs a certificate: set {setting}");
    }
    let chain = certificates(Path::new(path), setting)?;
    if chain.is_empty() {
        anyhow::bail!("there is no certificate in {path} ({setting})");
    }
    let (count, bytes) = (chain.len(), chain.iter().map(|of| of.len()).sum::<usize>());
    if count > CHAIN_MAX || bytes > CHAIN_BYTES_MAX {
        anyhow::bail!(
            "the chain in {path} ({setting}) has {count} certificates and {bytes} bytes, more than the {CHAIN_MAX} \
             and {CHAIN_BYTES_MAX} that all clients read: leave out those that are not between the first and its \
             authority"
        );
    }
    Ok(chain)
}

fn certificates(path: &Path, key: &str) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let text = read(path, key)?;
    let found = CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>();
    found.with_context(|| format!("{} ({key}) is no PEM", path.display()))
}

/// Reads the key of the certificate.
pub(super) fn key(path: &str, setting: &str) -> anyhow::Result<PrivateKeyDer<'static>> {
    if path.is_empty() {
        anyhow::bail!("TLS needs the key of the certificate: set {setting}");
    }
    let text = read(Path::new(path), setting)?;
    let has = |mark: &str| text.windows(mark.len()).any(|part| part == mark.as_bytes());
    if has("BEGIN ENCRYPTED PRIVATE KEY") || has("Proc-Type: 4,ENCRYPTED") {
        anyhow::bail!(
            "the key in {path} has a password: take it off with `openssl pkey -in {path} -out PLAIN`, and protect the \
             file"
        );
    }
    PrivateKeyDer::from_pem_slice(&text)
        .with_context(|| format!("there is no key in {path} ({setting})"))
}

fn read(path: &Path, key: &str) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    let more = FILE_MAX + 1;
    let read = open_regular(path).and_then(|file| file.take(more).read_to_end(&mut text));
    let read = read.with_context(|| format!("cannot read {} ({key})", path.display()))?;
    if read as u64 == more {
        anyhow::bail!("{} ({key}) has more than {FILE_MAX} bytes", path.display());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CONFIG SET opened whatever it was told, and the server waited.
    #[cfg(unix)]
    #[test]
    fn a_pipe_is_no_certificate_and_nobody_waits_for_it() {
        let path = std::env::temp_dir().join(format!("tidewheel-terms-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo runs").success());
        let refused = read(&path, "tls-cert-file").expect_err("it is a pipe");
        std::fs::remove_file(&path).expect("it is there");
        assert!(
            format!("{refused:#}").contains("it is no regular file"),
            "{refused:#}"
        );
    }

    #[test]
    fn every_suite_that_settings_name_is_there() {
        let all = ring::default_provider().cipher_suites;
        let names: BTreeSet<String> = all.iter().map(|suite| name_of(*suite)).collect();
        let known = crate::config::SUITES_13
            .iter()
            .chain(crate::config::SUITES_12);
        let known: BTreeSet<String> = known.map(|name| (*name).to_owned()).collect();
        assert_eq!(names, known);
    }
}
