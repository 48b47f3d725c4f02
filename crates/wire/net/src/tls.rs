//! TLS by rustls with ring: a given certificate, or one that we make ourselves.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What a listener needs to speak TLS. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// Whether clients that begin without TLS are served all the same.
    pub(crate) plain_too: bool,
    certificate: Arc<[u8]>,
}

/// One sentence on why a certificate or key can't be used.
#[derive(Debug)]
pub struct TlsError(String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsError {}

const VERSION_1: &str = "the certificate is one of X.509 version 1, which names no hosts and which clients refuse: \
     make one of version 3, for example with `openssl req -x509 -newkey rsa:2048 -nodes -days 365 -keyout key.pem \
     -out cert.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1`";

/// Whether a certificate is one of X.509 version 1. Those alone do not say their version: what is signed begins with the
/// serial number there, and with the version under tag 0 in all others.
fn is_version_1(certificate: &[u8]) -> bool {
    const INTEGER: u8 = 0x02;
    let signed = sequence(certificate).and_then(sequence);
    signed.is_some_and(|signed| signed.first() == Some(&INTEGER))
}

/// What is in a DER sequence at the beginning of these bytes.
fn sequence(bytes: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const LONG: u8 = 0x80;
    let (tag, rest) = bytes.split_first()?;
    let (length, rest) = rest.split_first()?;
    let more = if *length < LONG { 0 } else { usize::from(length - LONG) };
    (*tag == SEQUENCE).then(|| rest.get(more..)).flatten()
}

impl Tls {
    /// From PEM text: the certificate with its chain, and the private key.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| TlsError(format!("the certificate is not valid PEM: {error}")))?;
        if chain.is_empty() {
            return Err(TlsError("the certificate file holds no certificate".into()));
        }
        if chain.first().is_some_and(|own| is_version_1(own)) {
            return Err(TlsError(VERSION_1.into()));
        }
        let own: Arc<[u8]> = chain.first().map(|own| own.as_ref().into()).unwrap_or_default();
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsError(format!("the private key is not valid PEM: {error}")))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError(error.to_string()))?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| TlsError(format!("certificate and key can't be used: {error}")))?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { acceptor, plain_too: false, certificate: own })
    }

    /// The certificate itself (DER), for protocols that bind logins to it.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// TLS beside the plain protocol on the same port: the first byte of a connection tells which one a client speaks.
    #[must_use]
    pub fn beside_plain(self) -> Self {
        Self { plain_too: true, ..self }
    }

    /// The same for a protocol that clients may name in the handshake.
    pub(crate) fn speaking(self, protocol: Option<&[u8]>) -> Self {
        let Some(protocol) = protocol else { return self };
        let mut config = ServerConfig::clone(self.acceptor.config());
        config.alpn_protocols = vec![protocol.to_vec()];
        Self { acceptor: TlsAcceptor::from(Arc::new(config)), ..self }
    }
}

/// A certificate and its private key as PEM text. The key is a secret, so this type doesn't print.
pub struct CertificatePem {
    pub certificate: String,
    pub key: String,
}

/// Makes a certificate for these host names and IP addresses, signed by itself. The caller keeps it, so that clients
/// need to trust it only once.
pub fn self_signed(names: &[String]) -> Result<CertificatePem, TlsError> {
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| TlsError(format!("can't make a certificate: {error}")))?;
    Ok(CertificatePem { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_certificate_can_be_served() {
        let made = self_signed(&["localhost".into(), "127.0.0.1".into()]).unwrap();
        Tls::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
    }

    /// Made with `openssl req -new` and `openssl x509 -req` without extensions.
    const OF_VERSION_1: &str = include_str!("../tests/certificates/version-1.pem");

    #[test]
    fn a_certificate_of_version_1_is_refused_with_what_to_do() {
        let key = self_signed(&["localhost".into()]).unwrap().key;
        let refused = Tls::from_pem(OF_VERSION_1.as_bytes(), key.as_bytes()).err().unwrap();
        let said = refused.to_string();
        assert!(said.contains("version 1") && said.contains("openssl req -x509"), "{said}");
        let made = self_signed(&["localhost".into()]).unwrap();
        let der = CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap();
        assert!(!is_version_1(&der));
        for bytes in [&b""[..], b"0", b"0\x80", b"0\xff\xff", b"0\x03\x02\x01\x01"] {
            assert!(!is_version_1(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_certificate_is_refused_with_a_sentence() {
        let made = self_signed(&["localhost".into()]).unwrap();
        let other = self_signed(&["localhost".into()]).unwrap();
        let refused = |certificate: &str, key: &str| {
            Tls::from_pem(certificate.as_bytes(), key.as_bytes()).err().unwrap().to_string()
        };
        assert!(refused("", &made.key).contains("no certificate"));
        assert!(refused(&made.certificate, "").contains("private key"));
        assert!(refused(&made.certificate, &other.key).contains("can't be used"));
    }
}
