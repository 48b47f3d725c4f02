//! The contract of all fronts: ports that are taken, fronts that are off, settings for one front, the same metrics for all.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the failure report")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use lazuli_server::Server;
use lazuli_server::endpoints::ready_line;
use lazuli_server::settings::{Port, Settings, Sources};

const METHODS: &str =
    "GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Settings of a server on free ports with data of its own.
fn settings(folder: &Path, more: &[(&'static str, &str)]) -> Settings {
    let mut flags: BTreeMap<_, _> = [("ports", "free".to_owned())].into();
    flags.insert("data", folder.join("data").to_string_lossy().into_owned());
    flags.extend(more.iter().map(|(name, text)| (*name, (*text).to_owned())));
    let sources = Sources { flags, folder: folder.to_owned(), ..Sources::default() };
    Settings::read(&sources.texts().unwrap()).unwrap()
}

fn address(server: &Server, name: &str) -> Option<SocketAddr> {
    server.endpoints().iter().find(|endpoint| endpoint.name == name).map(|it| it.address)
}

fn ask(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn metrics(server: &Server) -> String {
    let text = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    ask(address(server, "admin").unwrap(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_whose_default_port_is_taken_does_not_keep_the_others_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut left_out = settings(folder.path(), &[]);
    left_out.fronts[0].port = Port::Default(port);
    let server = Server::start(left_out).await.unwrap();
    let [blobs] = server.not_started() else { panic!("{:?}", server.not_started()) };
    assert_eq!(blobs.name, "blobs");
    assert!(blobs.reason.contains(&port.to_string()), "{}", blobs.reason);
    assert!(ready_line(server.endpoints(), server.not_started()).ends_with(" blobs=not-started"));
    assert!(address(&server, "blobs").is_none());
    assert!(ask(address(&server, "tables").unwrap(), METHODS).starts_with("HTTP/1.1 401 "));
    server.stop().await;
    // One that was asked for by number is an error, and so is a server without any front.
    let mut asked = settings(folder.path(), &[]);
    asked.fronts[0].port = Port::Asked(port);
    let mut none = settings(folder.path(), &[]);
    none.fronts.iter_mut().for_each(|front| front.port = Port::Default(port));
    for refused in [asked, none] {
        let failure = Server::start(refused).await.err().unwrap();
        assert_eq!(failure.code(), "cannot-listen");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_that_is_off_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(settings(folder.path(), &[("queue-port", "off")])).await.unwrap();
    assert!(address(&server, "queues").is_none() && server.not_started().is_empty());
    assert!(address(&server, "tables").is_some() && address(&server, "blobs").is_some());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_and_accounts_can_be_set_for_one_front() {
    let folder = tempfile::tempdir().unwrap();
    let flags = [("queue-allow-addresses", "10.0.0.0/8"), ("blob-accounts", "other")];
    let server = Server::start(settings(folder.path(), &flags)).await.unwrap();
    let get = "GET /devstoreaccount1/?comp=list HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    assert_eq!(ask(address(&server, "queues").unwrap(), get), "");
    // Who sends nothing but a name is told nothing of whether the account is there.
    assert!(ask(address(&server, "blobs").unwrap(), get).starts_with("HTTP/1.1 403 "));
    assert!(ask(address(&server, "tables").unwrap(), METHODS).starts_with("HTTP/1.1 401 "));
    let text = metrics(&server);
    assert!(text.contains("lazuli_connections_refused_total{front=\"queues\"} 1"), "{text}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_front_has_the_same_families_of_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(settings(folder.path(), &[])).await.unwrap();
    let fronts = ["blobs", "queues", "tables", "admin"];
    for front in fronts {
        let path = if front == "admin" { "/healthz" } else { "/devstoreaccount1/a" };
        let text = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert!(ask(address(&server, front).unwrap(), &text).starts_with("HTTP/1.1 "));
    }
    let text = metrics(&server);
    for front in fronts {
        for family in [
            "lazuli_requests_total",
            "lazuli_request_seconds_bucket",
            "lazuli_request_seconds_sum",
            "lazuli_bytes_total",
            "lazuli_connections_open",
            "lazuli_connections_total",
        ] {
            let start = format!("{family}{{front=\"{front}\"");
            assert!(text.lines().any(|line| line.starts_with(&start)), "{start} in\n{text}");
        }
    }
    server.stop().await;
}
