//! The admin API at an address that other machines can reach: over TLS, by the names that were listed.

use std::path::Path;

use lazuli_http::client::blocking::{Answer, Connection, Options, Trust};

use crate::program::{Server, lazuli, run, stderr, stdout};

/// Another address of loopback, so that the test stays on this machine.
const ELSEWHERE: &str = "127.0.0.2:0";

fn start(folder: &Path) -> Server {
    let flags = ["--admin-remote", ELSEWHERE, "--admin-names", "lazuli.example"];
    Server::start_with(folder, &flags, &[])
}

fn ask(server: &Server, folder: &Path, host: &str, head: &str) -> Answer {
    let pem = std::fs::read(folder.join("lazuli-data/tls/cert.pem")).unwrap();
    let options = Options { trust: Some(Trust::from_pem(&[pem]).unwrap()), ..Options::default() };
    let mut connection = Connection::open(&server.endpoint("admin-https"), &options).unwrap();
    let head = format!("{head} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n");
    connection.exchange(head.as_bytes(), b"").unwrap().0
}

#[test]
fn commands_of_another_machine_need_tls_and_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let url = server.ready["endpoints"]["admin-https"].as_str().unwrap();
    assert!(url.starts_with("https://127.0.0.2:"), "{url}");
    let shards = server.command(&["shard", "list", "--admin", url]);
    assert!(shards.contains("shard-0001"), "{shards}");
    let wrong = lazuli(folder.path(), &["shard", "list", "--admin", url])
        .env("LAZULI_ADMIN_TOKEN", "another-token-of-some-length")
        .output()
        .unwrap();
    assert!(stderr(&wrong).contains("does not take this admin token"), "{}", stderr(&wrong));
    let plain = run(folder.path(), &["shard", "list", "--admin", "http://192.0.2.1:1"]);
    assert_eq!(plain.status.code(), Some(2), "{}", stdout(&plain));
    assert!(stderr(&plain).contains("over https only"), "{}", stderr(&plain));
}

#[test]
fn browsers_reach_the_portal_by_listed_names_and_get_cookies_for_tls_alone() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let page = |host: &str| ask(&server, folder.path(), host, "GET /portal/login").status;
    assert_eq!((page("lazuli.example:1"), page("127.0.0.2")), (200, 200));
    assert_eq!(page("other.example"), 421);
}
