//! What a certificate says: until when it holds, and whom it names.

use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

use crate::config::CertifiedUser;

/// The serial number of a certificate and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificateEnd {
    /// In hexadecimal.
    pub(crate) serial: String,
    /// The second of Unix time after which it does not hold.
    pub(crate) second: i64,
}

/// Returns the one of these certificates that ends first.
pub(super) fn first_end<'c>(
    certificates: impl IntoIterator<Item = &'c [u8]>,
) -> Option<CertificateEnd> {
    let ends = certificates.into_iter().filter_map(|der| {
        let certificate = parse(der)?;
        Some(CertificateEnd {
            serial: format!("{:X}", certificate.serial),
            second: certificate.validity().not_after.timestamp(),
        })
    });
    ends.min_by_key(|end| end.second)
}

/// Warns of each of the server's certificates that does not hold at this second of Unix time. It is
/// served all the same: clients decide whether they accept it.
pub(super) fn warn_of_untimely(chain: &[CertificateDer<'_>], now_s: i64) {
    for certificate in chain.iter().filter_map(|der| parse(der)) {
        let held = certificate.validity();
        let (from, until) = (held.not_before, held.not_after);
        let why = if now_s > until.timestamp() {
            "has expired"
        } else if now_s < from.timestamp() {
            "is not valid yet"
        } else {
            continue;
        };
        tracing::warn!(
            serial = format!("{:X}", certificate.serial),
            %from,
            %until,
            "a certificate of tls-cert-file {why}: clients that check it do not connect"
        );
    }
}

/// Returns the users that a client's certificate names, in its order: its common name, or its URIs.
/// A name with a control character is nobody's: another reader may see its first part only.
pub(crate) fn names(certificate: &CertificateDer<'_>, by: CertifiedUser) -> Vec<String> {
    let Some(certificate) = parse(certificate) else {
        return Vec::new();
    };
    let mut found: Vec<String> = Vec::new();
    match by {
        CertifiedUser::Nobody => {}
        CertifiedUser::CommonName => {
            let names = certificate.subject().iter_common_name();
            found.extend(
                names
                    .filter_map(|name| name.as_str().ok())
                    .map(str::to_owned),
            );
        }
        CertifiedUser::Uri => {
            let names = certificate.subject_alternative_name().ok().flatten();
            for name in names.iter().flat_map(|names| &names.value.general_names) {
                if let GeneralName::URI(uri) = name {
                    found.push((*uri).to_owned());
                }
            }
        }
    }
    found.retain(|name| !name.contains(char::is_control));
    found
}

/// Returns what to add to an error of rustls, which reads no certificates of X.509 version 1 and
/// does not say so in plain words. OpenSSL 3.0 makes one if nobody asks for an extension.
pub(crate) fn advice(why: &str) -> &'static str {
    match why.contains("UnsupportedCertVersion") {
        true => {
            ": a certificate of X.509 version 1 is not read; make it anew with an extension, and with \
             -copy_extensions copy if an authority signs it"
        }
        false => "",
    }
}

fn parse(der: &[u8]) -> Option<X509Certificate<'_>> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    Some(certificate)
}
