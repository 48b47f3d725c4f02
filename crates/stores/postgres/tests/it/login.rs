//! Logging in: passwords, TLS, servers and poolers that are refused.

use std::process::Command;

use lazuli_postgres_server::Server;
use lazuli_store::Store;
use lazuli_store_postgres::{Password, PostgresStore, Settings, TlsMode};

use crate::place;

const SECRET: &str = "correct horse battery staple";

/// Everything that a test sees of a failure.
async fn failure(settings: &Settings) -> String {
    let error = PostgresStore::open(settings.clone()).await.err().expect("it must not open");
    format!("{error} {error:?} {settings:?}")
}

#[tokio::test]
async fn a_password_is_needed_and_never_printed() {
    let Some(server) = Server::start().unwrap() else { return };
    server.psql("postgres", &format!("CREATE ROLE lazuli LOGIN PASSWORD '{SECRET}'")).unwrap();
    server.psql("postgres", "CREATE DATABASE fleet OWNER lazuli").unwrap();
    let rules = "host all postgres 127.0.0.1/32 trust\nhost all lazuli 127.0.0.1/32 scram-sha-256";
    server.set_logins(&format!("{rules}\n")).unwrap();
    server.reload().unwrap();
    let address = format!("postgres://lazuli@{}/fleet", server.host());
    let mut settings = Settings::parse(&address).unwrap();
    assert!(failure(&settings).await.contains("password"));

    let file = server.write_file("password", &format!("{SECRET}\n")).unwrap();
    settings.password = Password::File(file.clone());
    let store = PostgresStore::open(settings.clone()).await.unwrap();
    assert_eq!(store.get(b"a").await.unwrap(), None);
    let by_address = format!("{address}?password_file={}", file.display());
    PostgresStore::open(Settings::parse(&by_address).unwrap()).await.unwrap();

    let wrong = server.write_file("wrong", "tr0ub4dor&3").unwrap();
    settings.password = Password::File(wrong);
    let told = failure(&settings).await;
    assert!(told.contains("database-login-refused"), "{told}");
    assert!(!told.contains("tr0ub4dor") && !told.contains(SECRET));
    settings.password = Password::File(file);
    settings.database = "no_such_database".to_owned();
    assert!(!failure(&settings).await.contains(SECRET));
    assert!(!server.log().contains(SECRET) || server.log().contains("CREATE ROLE"));
}

/// A certificate authority, and a certificate for `localhost` that it has signed.
fn certificates(server: &Server) -> std::path::PathBuf {
    let folder = server.folder();
    let script = r#"
        set -e; umask 077
        openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca 2>/dev/null
        openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost 2>/dev/null
        printf 'subjectAltName=DNS:localhost\n' > names
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
            -extfile names -out server.pem 2>/dev/null
    "#;
    let made = Command::new("sh").args(["-c", script]).current_dir(folder).status().unwrap();
    assert!(made.success(), "openssl makes certificates");
    for name in ["server.key", "server.pem", "ca.pem"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        server.write_file(name, &text).unwrap();
    }
    folder.join("ca.pem")
}

#[tokio::test]
async fn tls_is_used_as_the_mode_says() {
    if !Command::new("openssl").arg("version").output().is_ok_and(|it| it.status.success()) {
        assert!(std::env::var_os("CI").is_none(), "openssl is not installed");
        eprintln!("SKIPPED: openssl is not installed");
        return;
    }
    let Some(mut server) = Server::start().unwrap() else { return };
    let ca = certificates(&server);
    let plain = Settings::parse(&server.address("postgres")).unwrap();
    let mut require = plain.clone();
    require.tls.mode = TlsMode::Require;
    let refused = failure(&require).await;
    assert!(refused.contains("TLS"), "the server has none: {refused}");
    let mut prefer = plain.clone();
    prefer.tls.mode = TlsMode::Prefer;
    PostgresStore::open(prefer.clone()).await.unwrap();

    let folder = server.folder().display().to_string();
    server
        .configure(&[
            "ssl=on",
            &format!("ssl_cert_file='{folder}/server.pem'"),
            &format!("ssl_key_file='{folder}/server.key'"),
        ])
        .unwrap();
    server.stop(lazuli_postgres_server::Stop::Fast).unwrap();
    server.begin().unwrap();
    let encrypted = |expected: &str| {
        let count = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE ssl AND application_name = 'lazuli'";
        assert_eq!(server.psql("postgres", count).unwrap(), expected);
    };
    let mut verify = require.clone();
    verify.tls.mode = TlsMode::VerifyFull;
    verify.tls.ca_file = Some(ca.clone());
    verify.hosts[0].name = "localhost".to_owned();
    let mut by_chain = require.clone();
    by_chain.tls.ca_file = Some(ca);
    for settings in [&require, &prefer, &verify, &by_chain] {
        let store = PostgresStore::open(settings.clone()).await.unwrap();
        encrypted("1");
        store.close().await.unwrap();
        while server.psql("postgres", "SELECT count(*) FROM pg_stat_ssl WHERE ssl").unwrap() != "0"
        {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
    // The certificate is for another name, or of another authority.
    verify.hosts[0].name = "127.0.0.1".to_owned();
    assert!(failure(&verify).await.contains("certificate"));
    let stranger = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other", "-days", "2"])
        .args(["-keyout", "/dev/null", "-out"])
        .arg(server.folder().join("other.pem"))
        .output()
        .unwrap();
    assert!(stranger.status.success());
    for settings in [&mut verify, &mut by_chain] {
        settings.hosts[0].name = "localhost".to_owned();
        settings.tls.ca_file = Some(server.folder().join("other.pem"));
        assert!(failure(settings).await.contains("certificate"));
    }
}

/// A pooler in front of a server, ended with the test.
struct Pooler {
    process: std::process::Child,
    port: u16,
}

impl Pooler {
    fn start(server: &Server, ignored: &str) -> Option<Self> {
        let program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"];
        let Some(program) = program.into_iter().find(|it| std::path::Path::new(it).exists()) else {
            assert!(std::env::var_os("CI").is_none(), "pgbouncer is not installed");
            eprintln!("SKIPPED: pgbouncer is not installed");
            return None;
        };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\n\
             listen_addr=127.0.0.1\nlisten_port={port}\nauth_type=any\npool_mode=transaction\n\
             unix_socket_dir=\nignore_startup_parameters={ignored}\n",
            server.port()
        );
        let file = server.write_file(&format!("pgbouncer-{port}.ini"), &settings).unwrap();
        let mut command = server.other_program(program);
        let process = command.arg("-q").arg(file).spawn().unwrap();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Some(Self { process, port })
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[tokio::test]
async fn a_pooler_in_between_is_refused_with_advice() {
    let Some(settings) = place::settings() else { return };
    let server = place::server().unwrap();
    for ignored in ["extra_float_digits", "options"] {
        let Some(pooler) = Pooler::start(server, ignored) else { return };
        let mut settings = settings.clone();
        settings.hosts[0].port = pooler.port;
        let told = failure(&settings).await;
        assert!(told.contains("database-pooler"), "{told}");
        assert!(told.contains("give the address of PostgreSQL itself"), "{told}");
    }
    // What a role is set to does not win over what the session asks for.
    let role = "CREATE ROLE slow SUPERUSER LOGIN; ALTER ROLE slow SET lock_timeout = '7s'";
    server.psql(&settings.database, role).unwrap();
    let settings = Settings { user: "slow".to_owned(), ..settings };
    PostgresStore::open(settings).await.unwrap();
}

#[tokio::test]
async fn tables_of_a_later_version_are_refused() {
    let Some(settings) = place::settings() else { return };
    let server = place::server().unwrap();
    PostgresStore::open(settings.clone()).await.unwrap();
    let later = "UPDATE lazuli.format SET version = 999";
    server.psql(&settings.database, later).unwrap();
    assert!(failure(&settings).await.contains("database-format"));
    let elsewhere = Settings { schema: "other".to_owned(), ..settings };
    PostgresStore::open(elsewhere).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_processes_may_create_the_tables_at_once() {
    let Some(settings) = place::settings() else { return };
    let opening = (0..12).map(|_| tokio::spawn(PostgresStore::open(settings.clone())));
    for store in opening.collect::<Vec<_>>() {
        store.await.unwrap().unwrap().get(b"a").await.unwrap();
    }
}
