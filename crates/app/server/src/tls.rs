//! The certificate of the fronts: given by files, or made once, signed by itself, and kept in the data folder.

use std::net::IpAddr;
use std::path::Path;

use lazuli_http::tls::{Tls, self_signed};

use crate::failure::{Failure, Result};
use crate::folder::{Folder, make_folder, read_small, write_atomically};
use crate::settings;

/// What the fronts need for HTTPS; none if it is off.
pub(crate) fn load(settings: &settings::Tls, host: IpAddr, folder: &Folder) -> Result<Option<Tls>> {
    if settings.mode == settings::TlsMode::Off {
        return Ok(None);
    }
    let own = folder.path().join("tls");
    let own = (own.join("cert.pem"), own.join("key.pem"));
    let (certificate, key) = settings.files.as_ref().unwrap_or(&own);
    if settings.files.is_none() && !(certificate.is_file() && key.is_file()) {
        make(host, certificate, key)?;
    }
    let tls = Tls::from_pem(read(certificate)?.as_bytes(), read(key)?.as_bytes());
    tls.map(Some).map_err(|error| {
        Failure::new("bad-certificate", format!("{}: {error}", certificate.display()))
            .hint("tls-cert takes a PEM file of the certificate and its chain, tls-key its key")
    })
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
    tracing::info!(file = %certificate.display(), "made a self-signed certificate");
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    read_small(path)?
        .ok_or_else(|| Failure::new("file-error", format!("there is no file {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TlsMode;

    #[test]
    fn a_certificate_is_made_once_and_its_key_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::open(&parent.path().join("data")).unwrap();
        let host = IpAddr::from([10, 0, 0, 1]);
        let off = settings::Tls { mode: TlsMode::Off, files: None };
        assert!(load(&off, host, &folder).unwrap().is_none());
        let only = settings::Tls { mode: TlsMode::Only, files: None };
        assert!(load(&only, host, &folder).unwrap().is_some());
        let (cert, key) = (folder.path().join("tls/cert.pem"), folder.path().join("tls/key.pem"));
        let made = std::fs::read(&cert).unwrap();
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(load(&only, host, &folder).unwrap().is_some());
        assert_eq!(std::fs::read(&cert).unwrap(), made);
    }

    #[test]
    fn given_files_must_exist_and_hold_a_certificate() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::open(&parent.path().join("data")).unwrap();
        let path = parent.path().join("cert.pem");
        let given =
            settings::Tls { mode: TlsMode::Beside, files: Some((path.clone(), path.clone())) };
        let host = IpAddr::from([127, 0, 0, 1]);
        let refused = || load(&given, host, &folder).map(|_| ()).unwrap_err();
        assert_eq!(refused().code(), "file-error");
        std::fs::write(&path, "nonsense").unwrap();
        assert_eq!(refused().code(), "bad-certificate");
    }
}
