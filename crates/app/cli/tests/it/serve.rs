//! `lazuli serve`: how it gets ready, whom it refuses, how it stops, and that nothing answered is lost.

use crate::program::{ACCOUNT, PUBLISHED_KEY, Server, ask, exchange, lazuli, run, stderr};
use lazuli_http::client::blocking::Trust;

const TABLES: &str = "/devstoreaccount1/Tables";
const ENTITIES: &str = "/devstoreaccount1/things";
const ENTITY: &str = "/devstoreaccount1/things(PartitionKey='p',RowKey='r')";

fn put_something(server: &Server) {
    let created = server.tables(PUBLISHED_KEY, "POST", TABLES, r#"{"TableName":"things"}"#);
    assert_eq!(created.0, 201, "{}", created.1);
    let entity = r#"{"PartitionKey":"p","RowKey":"r","Colour":"blue"}"#;
    assert_eq!(server.tables(PUBLISHED_KEY, "POST", ENTITIES, entity).0, 201);
}

#[test]
fn when_ready_it_says_so_in_one_line_and_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let [blobs, tables, documents, kafka, bus, admin] =
        ["blobs", "tables", "documents", "kafka", "bus", "admin"].map(|name| server.endpoint(name));
    assert_eq!(ask(&admin, "GET", "/healthz", &[], ""), (200, "ok\n".to_owned()));
    assert_eq!(ask(&tables, "GET", TABLES, &[], "").0, 401);
    let token = server.ready["admin_token_file"].as_str().unwrap();
    assert!(std::path::Path::new(token).is_absolute() && std::fs::read(token).is_ok());
    // The line comes after the file, so there is a moment to wait for it.
    let line = loop {
        let text = std::fs::read_to_string(folder.path().join("stdout.txt")).unwrap();
        if text.ends_with('\n') {
            break text;
        }
        std::thread::yield_now();
    };
    let [queues, cache, search, sql] =
        ["queues", "cache", "search", "sql"].map(|name| server.endpoint(name));
    let expected = format!(
        "lazuli ready blobs=http://{blobs} queues=http://{queues} tables=http://{tables} \
         documents=http://{documents} documents=https://{documents} kafka={kafka} \
         bus=sb://{bus} bus=amqps://{bus} cache=redis://{cache} cache=rediss://{cache} \
         search=http://{search} search=https://{search} sql=postgresql://{sql} admin=http://{admin}\n"
    );
    assert_eq!(line, expected);
}

#[test]
fn a_signal_stops_it_cleanly_and_what_was_answered_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    for (round, signal) in ["-TERM", "-INT", "-KILL", "-TERM"].into_iter().enumerate() {
        let mut server = Server::start(folder.path());
        if round == 0 {
            put_something(&server);
        }
        let (status, body) = server.tables(PUBLISHED_KEY, "GET", ENTITY, "");
        assert_eq!(status, 200, "{body}");
        assert!(body.contains(r#""Colour":"blue""#), "{body}");
        server.signal(signal);
        let status = server.wait();
        assert_eq!(status.code(), (signal != "-KILL").then_some(0));
        let left = folder.path().join("lazuli-data/admin.json");
        assert_eq!(left.exists(), signal == "-KILL");
    }
}

#[test]
fn a_second_signal_stops_it_at_once() {
    use std::io::Write;
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--stop-timeout", "1h", "--header-timeout", "1h"];
    let mut server = Server::start_with(folder.path(), &flags, &[]);
    let mut unfinished = std::net::TcpStream::connect(server.endpoint("admin")).unwrap();
    unfinished.write_all(b"POST /v1/accounts HTTP/1.1\r\ncontent-length: 9\r\n").unwrap();
    // Answered only once the connection above has been accepted.
    assert_eq!(ask(&server.endpoint("admin"), "GET", "/healthz", &[], "").0, 200);
    server.signal("-TERM");
    let log = || std::fs::read_to_string(folder.path().join("stderr.txt")).unwrap();
    while !log().contains("stopping") {
        std::thread::yield_now();
    }
    server.signal("-TERM");
    assert_eq!(server.wait().code(), Some(1));
    assert!(log().contains("stopped at once by a second SIGTERM"), "{}", log());
}

#[test]
fn published_keys_are_refused_where_other_machines_can_reach_them() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--host", "0.0.0.0", "--ports", "free"];
    let refused = run(folder.path(), &arguments);
    assert_eq!(refused.status.code(), Some(1));
    let text = stderr(&refused);
    assert!(text.contains("whose key is published"), "{text}");
    assert!(text.contains("hint: ") && text.contains("LAZULI_ACCOUNTS="), "{text}");

    let given = format!("mine:{PUBLISHED_KEY}");
    let refused = lazuli(folder.path(), &arguments).env("LAZULI_ACCOUNTS", given).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("account mine has a published key"));
    assert!(!stderr(&refused).contains(PUBLISHED_KEY));

    let own = [("LAZULI_ACCOUNTS", "devstoreaccount1:b3duIGtleQ==")];
    let server = Server::start_with(folder.path(), &["--host", "0.0.0.0"], &own);
    assert_eq!(server.tables(PUBLISHED_KEY, "GET", TABLES, "").0, 403);
    assert_eq!(server.tables("b3duIGtleQ==", "GET", TABLES, "").0, 200);
    assert!(server.endpoint("admin").starts_with("127.0.0.1:"));
}

#[test]
fn a_folder_in_use_and_a_port_in_use_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let refused = run(folder.path(), &["serve", "--ports", "free"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("is in use by process"), "{}", stderr(&refused));

    let other = tempfile::tempdir().unwrap();
    let tables = server.endpoint("tables");
    let (_, port) = tables.rsplit_once(':').unwrap();
    let refused = run(
        other.path(),
        &[
            "serve",
            "--blob-port",
            "0",
            "--queue-port",
            "0",
            "--table-port",
            port,
            "--admin-port",
            "0",
        ],
    );
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("cannot listen on"), "{}", stderr(&refused));
}

#[test]
fn the_admin_api_needs_its_token() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let admin = server.endpoint("admin");
    let get = |path: &str, headers: &[(&str, &str)]| ask(&admin, "GET", path, headers, "");
    for headers in [&[][..], &[("authorization", "Bearer wrong")], &[("authorization", "Bearer ")]]
    {
        let (status, body) = get("/v1/status", headers);
        assert_eq!(status, 401);
        let code = if headers.is_empty() { "token-needed" } else { "token-wrong" };
        assert!(body.contains(&format!(r#""code":"{code}""#)) && body.contains("hint"), "{body}");
    }
    let token = std::fs::read_to_string(folder.path().join("lazuli-data/admin-token")).unwrap();
    let bearer = format!("Bearer {}", token.trim());
    assert_eq!(get("/v1/status", &[("authorization", &bearer)]).0, 200);
    assert_eq!(get("/v1/nothing", &[("authorization", &bearer)]).0, 404);
    assert_eq!(get("/healthz", &[]).0, 200);

    let chosen = [("LAZULI_ADMIN_TOKEN", "a token of sixteen")];
    let other = tempfile::tempdir().unwrap();
    let refused = lazuli(other.path(), &["serve"]).envs(chosen).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "spaces cannot be sent in a header");
}

#[test]
fn metrics_count_requests_by_operation_and_status() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    put_something(&server);
    assert_eq!(server.tables(PUBLISHED_KEY, "GET", ENTITY, "").0, 200);
    assert_eq!(ask(&server.endpoint("tables"), "GET", ENTITY, &[], "").0, 401);
    let metrics = || ask(&server.endpoint("admin"), "GET", "/metrics", &[], "");
    let (mut status, mut text) = metrics();
    // A connection that the client has closed is counted until the server hears of it.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let settled = |text: &str| {
        text.contains("lazuli_connections_open{front=\"tables\"} 0")
            && text.contains("lazuli_connections_open{front=\"admin\"} 1")
    };
    while !settled(&text) && std::time::Instant::now() < deadline {
        (status, text) = metrics();
    }
    assert_eq!(status, 200);
    for line in [
        r#"lazuli_requests_total{front="tables",operation="CreateTable",status="201"} 1"#,
        r#"lazuli_requests_total{front="tables",operation="InsertEntity",status="201"} 1"#,
        r#"lazuli_requests_total{front="tables",operation="GetEntity",status="200"} 1"#,
        r#"lazuli_request_seconds_count{front="tables",operation="GetEntity"} 1"#,
        r#"lazuli_connections_open{front="tables"} 0"#,
        r#"lazuli_connections_open{front="admin"} 1"#,
        r#"lazuli_partition_items{shard="1",partition="1"} 1"#,
        r#"lazuli_partition_writes_total{shard="1",partition="1"} 1"#,
    ] {
        assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
    }
    assert!(text.contains("lazuli_shard_commits_total{shard=\"1\"} "));
    assert!(text.contains("process_resident_memory_bytes "));
}

#[test]
fn limits_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--body-bytes-max", "1KiB", "--header-bytes-max", "8KiB"];
    let server = Server::start_with(folder.path(), &flags, &[]);
    let body = format!(r#"{{"TableName":"{}"}}"#, "x".repeat(2_000));
    assert_eq!(server.tables(PUBLISHED_KEY, "POST", TABLES, &body).0, 413);
    let long = "x".repeat(20_000);
    let (status, _) = ask(&server.endpoint("tables"), "GET", TABLES, &[("x-long", &long)], "");
    assert_eq!(status, 431);
}

#[test]
fn a_shard_that_is_gone_is_down_and_the_others_serve() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    put_something(&server);
    server.command(&["shard", "add", "second"]);
    server.signal("-TERM");
    server.wait();
    let shards = folder.path().join("lazuli-data/shards");
    std::fs::rename(shards.join("shard-0001"), folder.path().join("taken-away")).unwrap();
    let mut server = Server::start(folder.path());
    let listed = server.json(&["shard", "list"]);
    let states: Vec<_> = listed["shards"].as_array().unwrap().iter().map(|s| &s["state"]).collect();
    assert_eq!(states, ["down", "online"]);
    assert_eq!(server.tables(PUBLISHED_KEY, "GET", ENTITY, "").0, 503);
    let checked = run(folder.path(), &["fsck"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(
        crate::program::stdout(&checked).contains("shard-down"),
        "{}",
        crate::program::stdout(&checked)
    );
    server.signal("-TERM");
    server.wait();
    std::fs::rename(folder.path().join("taken-away"), shards.join("shard-0001")).unwrap();
    let server = Server::start(folder.path());
    assert_eq!(server.tables(PUBLISHED_KEY, "GET", ENTITY, "").0, 200);
}

/// The status of an answer over TLS, trusting the certificate that the server keeps.
fn ask_tls(authority: &str, certificate: &[u8], path: &str) -> u16 {
    let trust = Trust::from_pem(&[certificate.to_vec()]).unwrap();
    exchange(authority, Some(trust), "GET", path, &[], "").unwrap().status
}

#[test]
fn https_is_served_beside_http_or_alone_with_a_kept_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("lazuli-data/tls/cert.pem");
    let both = Server::start_with(folder.path(), &["--tls", "beside"], &[]);
    let certificate = std::fs::read(&kept).unwrap();
    let tables = both.endpoint("tables");
    assert_eq!(tables, both.endpoint("tables-https"));
    assert_eq!(ask_tls(&tables, &certificate, TABLES), 401);
    assert_eq!(ask(&tables, "GET", TABLES, &[], "").0, 401);
    drop(both);

    let alone = Server::start_with(folder.path(), &["--tls", "only"], &[]);
    assert_eq!(std::fs::read(&kept).unwrap(), certificate);
    assert!(alone.ready["endpoints"]["tables"].as_str().unwrap().starts_with("https://"));
    assert_eq!(ask_tls(&alone.endpoint("tables"), &certificate, TABLES), 401);
}

#[test]
fn relaxed_durability_is_said_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start_with(
        folder.path(),
        &["--durability", "relaxed", "--log-format", "json"],
        &[],
    );
    put_something(&server);
    server.signal("-TERM");
    assert!(server.wait().success());
    let log = std::fs::read_to_string(folder.path().join("stderr.txt")).unwrap();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| {
        line["level"] == "WARN" && line["message"].as_str().unwrap().contains("relaxed")
    }));
    assert!(!log.contains(PUBLISHED_KEY) && !log.contains(ACCOUNT));
}

/// Generous bounds, for debug builds on busy machines; `cargo xtask bench start` has the exact ones.
#[test]
fn a_start_is_quick_and_an_idle_server_is_small() {
    let folder = tempfile::tempdir().unwrap();
    let mut times = Vec::new();
    for _ in 0..2 {
        let began = std::time::Instant::now();
        let mut server = Server::start(folder.path());
        times.push(began.elapsed());
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kib < 200 * 1024, "{kib} KiB");
        assert!(!server.log().contains("WARN"), "{}", server.log());
        server.signal("-TERM");
        server.wait();
    }
    let seconds = std::time::Duration::from_secs;
    assert!(times[0] < seconds(10) && times[1] < seconds(5), "{times:?}");
}

#[test]
fn status_shows_each_front_with_its_connection_string() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let shown = server.command(&["status"]);
    for (name, field) in
        [("blobs", "BlobEndpoint"), ("queues", "QueueEndpoint"), ("tables", "TableEndpoint")]
    {
        let url = server.ready["endpoints"][name].as_str().unwrap();
        let line =
            shown.lines().find(|line| line.starts_with(&format!("connection_strings.{name} ")));
        let line = line.unwrap_or_else(|| panic!("{shown}"));
        assert!(line.contains(&format!("{field}={url}/devstoreaccount1;")), "{line}");
        assert!(line.contains("AccountKey=Eby8vdM02xNO"), "{line}");
    }
    let url = server.ready["endpoints"]["documents"].as_str().unwrap();
    let expected = format!("AccountEndpoint={url}/;AccountKey=C2y6yDjf5/R+ob0N8A7Cgv30");
    assert!(shown.contains(&expected), "{shown}");
}
