//! TLS and the plain protocol on one port: the first byte of a connection tells.

use std::sync::Arc;

use lazuli_net::{Tls, self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::harness::{Client, Setup};

#[tokio::test]
async fn the_first_byte_tells_whether_a_client_speaks_tls() {
    let made = self_signed(&["localhost".into()]).unwrap();
    let tls = Tls::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
    let address = Setup { tls: Some(tls), ..Setup::default() }.serve().await.address;
    let mut plain = Client::connect(address).await;
    assert_eq!(plain.text(&["SET", "k", "plain"]).await, "OK");

    let mut roots = RootCertStore::empty();
    let own = CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap();
    roots.add(own).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut secure = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    secure.write_all(b"GET k\r\nSET k secure\r\n").await.unwrap();
    let mut reply = [0; 16];
    secure.read_exact(&mut reply).await.unwrap();
    assert_eq!(&reply, b"$5\r\nplain\r\n+OK\r\n");
    assert_eq!(plain.text(&["GET", "k"]).await, "secure");
}
