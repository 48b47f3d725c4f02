//! The certificate of the fronts: from files, or self-signed, generated once and stored in the data folder.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use lazuli_net::{Tls, self_signed};

use crate::failure::{Failure, Result};
use crate::folder::{Folder, make_folder, read_small, write_atomically};
use crate::settings::{Settings, TlsMode};

/// What the fronts need for TLS.
pub(crate) struct Certificate {
    pub(crate) tls: Tls,
    /// The certificate chain without its key, for clients that have to trust it.
    pub(crate) pem: String,
}

/// The certificate of the fronts; none if no front speaks TLS.
pub(crate) fn load(settings: &Settings, folder: &Folder) -> Result<Option<Certificate>> {
    if settings.fronts.iter().all(|front| front.listening.tls == TlsMode::Off) {
        return Ok(None);
    }
    if settings.fleet.is_some() && settings.tls_files.is_none() {
        let message = "the nodes of a fleet show one certificate, so none is made here";
        return Err(Failure::new("no-certificate", message)
            .hint("give all nodes the same tls-cert and tls-key, or set tls to off"));
    }
    load_files(settings.tls_files.as_ref(), settings.host, folder).map(Some)
}

fn load_files(
    given: Option<&(PathBuf, PathBuf)>,
    host: IpAddr,
    folder: &Folder,
) -> Result<Certificate> {
    let own = folder.path().join("tls");
    let own = (own.join("cert.pem"), own.join("key.pem"));
    let (certificate, key) = given.unwrap_or(&own);
    if given.is_none() && !(certificate.is_file() && key.is_file()) {
        make(host, certificate, key)?;
    }
    let pem = read(certificate)?;
    let tls = Tls::from_pem(pem.as_bytes(), read(key)?.as_bytes());
    let tls = tls.map_err(|error| {
        Failure::new("bad-certificate", format!("{}: {error}", certificate.display()))
            .hint("tls-cert takes a PEM file of the certificate and its chain, tls-key its key")
    })?;
    Ok(Certificate { tls, pem })
}

fn make(host: IpAddr, certificate: &Path, key: &Path) -> Result<()> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !host.is_unspecified() && !host.is_loopback() {
        names.push(host.to_string());
    }
    let made =
        self_signed(&names).map_err(|error| Failure::new("bad-certificate", error.to_string()))?;
    if let Some(parent) = key.parent() {
        make_folder(parent)?;
    }
    // The certificate comes last, so that one without its key is never found.
    write_atomically(key, &made.key, 0o600)?;
    write_atomically(certificate, &made.certificate, 0o644)?;
    tracing::debug!(file = %certificate.display(), "made a self-signed certificate");
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    read_small(path)?
        .ok_or_else(|| Failure::new("file-error", format!("there is no file {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_made_once_and_its_key_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::open(&parent.path().join("data")).unwrap();
        let host = IpAddr::from([10, 0, 0, 1]);
        load_files(None, host, &folder).unwrap();
        let (cert, key) = (folder.path().join("tls/cert.pem"), folder.path().join("tls/key.pem"));
        let made = std::fs::read(&cert).unwrap();
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        load_files(None, host, &folder).unwrap();
        assert_eq!(std::fs::read(&cert).unwrap(), made);
    }

    #[test]
    fn given_files_must_exist_and_hold_a_certificate() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::open(&parent.path().join("data")).unwrap();
        let path = parent.path().join("cert.pem");
        let given = (path.clone(), path.clone());
        let host = IpAddr::from([127, 0, 0, 1]);
        let refused = || load_files(Some(&given), host, &folder).map(|_| ()).unwrap_err();
        assert_eq!(refused().code(), "file-error");
        std::fs::write(&path, "nonsense").unwrap();
        assert_eq!(refused().code(), "bad-certificate");
    }
}
