//! The certificate of the fronts: from files, or self-signed, generated once and stored in the data folder.

use std::path::{Path, PathBuf};

use lazuli_net::{Tls, self_signed};

use crate::failure::{Failure, Result};
use crate::folder::{Folder, make_folder, read_small, write_atomically};
use crate::settings::{Settings, TlsMode};

/// What every machine calls itself.
const OWN_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// What the fronts need for TLS.
pub(crate) struct Certificate {
    pub(crate) tls: Tls,
    /// The certificate chain without its key, for clients that have to trust it.
    pub(crate) pem: String,
}

/// The certificate of the fronts; none if no front speaks TLS.
pub(crate) fn load(settings: &Settings, folder: &Folder) -> Result<Option<Certificate>> {
    let is_plain = settings.fronts.iter().all(|front| front.listening.tls == TlsMode::Off);
    if is_plain && settings.admin_remote.is_none() {
        return Ok(None);
    }
    if settings.fleet.is_some() && settings.tls_files.is_none() {
        let message = "the nodes of a fleet show one certificate, so none is made here";
        return Err(Failure::new("no-certificate", message)
            .hint("give all nodes the same tls-cert and tls-key, or set tls to off"));
    }
    let remote = settings.admin_remote.map(|address| address.ip());
    let addresses = [Some(settings.host), remote].into_iter().flatten();
    let addresses = addresses.filter(|it| !it.is_unspecified());
    let names = settings.admin_names.iter().cloned();
    let names = addresses.map(|address| address.to_string()).chain(names).collect();
    load_files(settings.tls_files.as_ref(), names, folder).map(Some)
}

fn load_files(
    given: Option<&(PathBuf, PathBuf)>,
    names: Vec<String>,
    folder: &Folder,
) -> Result<Certificate> {
    let own = folder.path().join("tls");
    let own = (own.join("cert.pem"), own.join("key.pem"));
    let (certificate, key) = given.unwrap_or(&own);
    if given.is_none() && !(certificate.is_file() && key.is_file()) {
        make(names, certificate, key)?;
    }
    let pem = read(certificate)?;
    let tls = Tls::from_pem(pem.as_bytes(), read(key)?.as_bytes());
    let tls = tls.map_err(|error| {
        Failure::new("bad-certificate", format!("{}: {error}", certificate.display()))
            .hint("tls-cert takes a PEM file of the certificate and its chain, tls-key its key")
    })?;
    Ok(Certificate { tls, pem })
}

/// Makes a certificate of this machine's own names and of others.
fn make(others: Vec<String>, certificate: &Path, key: &Path) -> Result<()> {
    let mut names: Vec<String> = OWN_NAMES.map(str::to_owned).to_vec();
    names.extend(others.into_iter().filter(|other| !OWN_NAMES.contains(&other.as_str())));
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
        let names = vec!["10.0.0.1".to_owned(), "127.0.0.1".to_owned()];
        load_files(None, names.clone(), &folder).unwrap();
        let (cert, key) = (folder.path().join("tls/cert.pem"), folder.path().join("tls/key.pem"));
        let made = std::fs::read(&cert).unwrap();
        assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        load_files(None, names.clone(), &folder).unwrap();
        assert_eq!(std::fs::read(&cert).unwrap(), made);
    }

    #[test]
    fn given_files_must_exist_and_hold_a_certificate() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::open(&parent.path().join("data")).unwrap();
        let path = parent.path().join("cert.pem");
        let given = (path.clone(), path.clone());
        let refused = || load_files(Some(&given), Vec::new(), &folder).map(|_| ()).unwrap_err();
        assert_eq!(refused().code(), "file-error");
        std::fs::write(&path, "nonsense").unwrap();
        assert_eq!(refused().code(), "bad-certificate");
    }
}
