//! What the real program keeps closed: its admin API, its files, its ports to those who made up a token.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::program::{Server, ask, lazuli, run, stderr};

#[test]
fn the_admin_api_is_no_source_of_a_copy() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let created = server.blobs("PUT", "/devstoreaccount1/con?restype=container", &[], "");
    assert_eq!(created.0, 201, "{}", created.1);
    let token = fs::read_to_string(folder.path().join("lazuli-data/admin-token")).unwrap();
    let bearer = format!("Bearer {}", token.trim());
    let port = server.endpoint("admin").rsplit_once(':').unwrap().1.to_owned();
    for host in ["127.0.0.1", "localhost", "127.1", "0.0.0.0", "[::ffff:127.0.0.1]"] {
        let source = format!("http://{host}:{port}/v1/accounts?keys=true");
        let headers =
            [("x-ms-copy-source", source.as_str()), ("x-ms-copy-source-authorization", &bearer)];
        let (status, body) = server.blobs("PUT", "/devstoreaccount1/con/b", &headers, "");
        assert_eq!(status, 403, "{host}: {body}");
        assert!(body.contains("CannotVerifyCopySource"), "{body}");
    }
    // A front of the same server is one.
    let put = [("x-ms-blob-type", "BlockBlob")];
    assert_eq!(server.blobs("PUT", "/devstoreaccount1/con/a", &put, "hello").0, 201);
    let public = [("x-ms-blob-public-access", "blob")];
    let acl = "/devstoreaccount1/con?restype=container&comp=acl";
    assert_eq!(server.blobs("PUT", acl, &public, "").0, 200);
    let blob_port = server.endpoint("blobs").rsplit_once(':').unwrap().1.to_owned();
    let source = format!("http://localhost:{blob_port}/devstoreaccount1/con/a");
    let (status, body) =
        server.blobs("PUT", "/devstoreaccount1/con/b", &[("x-ms-copy-source", &source)], "");
    assert_eq!(status, 202, "{body}");
}

#[test]
fn wrong_tokens_are_throttled_at_both_doors_together() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let admin = server.endpoint("admin");
    let token = fs::read_to_string(folder.path().join("lazuli-data/admin-token")).unwrap();
    let right = format!("Bearer {}", token.trim());
    let status = |header: &str| ask(&admin, "GET", "/v1/status", &[("authorization", header)], "");
    assert_eq!(status(&right).0, 200);
    // Who shows no token has not tried one.
    for _ in 0..20 {
        assert_eq!(ask(&admin, "GET", "/v1/status", &[], "").0, 401);
    }
    for _ in 0..5 {
        assert_eq!(status("Bearer wrong").0, 401);
        let form = [("content-type", "application/x-www-form-urlencoded")];
        assert_eq!(ask(&admin, "POST", "/portal/login", &form, "token=wrong").0, 403);
    }
    for header in ["Bearer wrong", &right] {
        let (code, body) = status(header);
        assert_eq!(code, 429, "{body}");
        assert!(body.contains("too-many-wrong-tokens") && body.contains("seconds"), "{body}");
    }
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(ask(&admin, "POST", "/portal/login", &form, "token=wrong").0, 429);
    assert_eq!(ask(&admin, "GET", "/healthz", &[], "").0, 200);
}

#[test]
fn tokens_that_anybody_can_make_are_refused_where_other_machines_can_reach_them() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["serve", "--oauth", "basic", "--host", "0.0.0.0", "--ports", "free", "--tls", "only"];
    let mut command = lazuli(folder.path(), &arguments);
    let refused = command.env("LAZULI_ACCOUNTS", "mine:a2V5a2V5a2V5").output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let text = stderr(&refused);
    assert!(text.contains("bearer token") && text.contains("hint: "), "{text}");
    assert!(!folder.path().join("lazuli-data").exists(), "nothing was begun");
}

fn files(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let (path, kept) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
        found.push((path.clone(), kept.permissions().mode() & 0o777));
        if kept.is_dir() {
            found.extend(files(&path));
        }
    }
    found
}

/// Files without secrets that others may read.
const PUBLIC: [&str; 2] = ["format", "cert.pem"];

fn assert_private(data: &Path) {
    let open: Vec<_> = files(data)
        .into_iter()
        .filter(|(_, mode)| mode & 0o077 != 0)
        .filter(|(path, _)| !PUBLIC.iter().any(|name| path.ends_with(name)))
        .collect();
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn every_file_that_can_hold_a_secret_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("lazuli-data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    let mut server = Server::start_with(folder.path(), &["--tls", "beside"], &[]);
    server.command(&["account", "create", "mine"]);
    server.command(&["table", "create", "things"]);
    assert_eq!(server.blobs("PUT", "/devstoreaccount1/con?restype=container", &[], "").0, 201);
    let put = [("x-ms-blob-type", "BlockBlob")];
    let large = "x".repeat(200_000);
    assert_eq!(server.blobs("PUT", "/devstoreaccount1/con/large", &put, &large).0, 201);
    assert_private(&data);
    server.signal("-TERM");
    server.wait();
    assert_private(&data);
    // As a version left them that did not care.
    for (path, mode) in files(&data) {
        fs::set_permissions(&path, Permissions::from_mode(mode | 0o055)).unwrap();
    }
    let server = Server::start_with(folder.path(), &["--tls", "beside"], &[]);
    let closed = |name: &str| !data.join(name).starts_with(data.join("blocks"));
    let open: Vec<_> = files(&data)
        .into_iter()
        .filter(|(path, mode)| mode & 0o077 != 0 && closed(path.to_str().unwrap()))
        .filter(|(path, _)| path.parent() != Some(&data) || path.is_dir())
        .collect();
    assert!(open.is_empty(), "{open:?}");
    let mode = |name: &str| fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("blocks"), mode("admin-token")), (0o700, 0o600));
    let backups = folder.path().join("backups");
    fs::create_dir(&backups).unwrap();
    let to = backups.to_str().unwrap();
    server.command(&["partition", "backup", "--map", "tables/devstoreaccount1/things", "--to", to]);
    assert_private(&backups);
}

#[test]
fn a_signature_that_is_none_or_there_twice_is_forbidden_at_every_front() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let version = "sv=2021-12-02&se=2100-01-01";
    for (front, path, own) in [
        ("blobs", "con/b", "sp=r&sr=b"),
        ("queues", "queue/messages", "sp=p"),
        ("tables", "things()", "sp=r&tn=things"),
    ] {
        for own in [own, "sp=r&ss=bqt&srt=sco"] {
            for sig in ["sig=%25", "sig=abc", "sig=", "sig=AAEC&sig=AAEC"] {
                let path = format!("/devstoreaccount1/{path}?{version}&{own}&{sig}");
                let (status, body) = ask(&server.endpoint(front), "GET", &path, &[], "");
                assert_eq!(status, 403, "{front} {path}: {body}");
                assert!(body.contains("AuthenticationFailed"), "{body}");
            }
        }
    }
}

#[test]
fn a_certificate_of_version_1_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let certificate =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../wire/net/tests/certificates/version-1.pem");
    let ports = ["--ports", "free"];
    let tls = ["serve", "--tls", "only", "--tls-cert", certificate, "--tls-key", certificate];
    let refused = run(folder.path(), &[&tls[..], &ports].concat());
    assert_eq!(refused.status.code(), Some(1));
    let text = stderr(&refused);
    assert!(text.contains("X.509 version 1") && text.contains("openssl req -x509"), "{text}");
}
