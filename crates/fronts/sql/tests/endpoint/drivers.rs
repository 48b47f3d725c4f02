//! Programs that people use, on the endpoint: psql and pgbench, and where they are installed the drivers of other languages.

use std::process::Command;

use crate::fixture::Endpoint;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

fn psql(endpoint: &Endpoint, commands: &[&str]) -> String {
    psql_as(endpoint, &["-A", "-t"], commands)
}

fn psql_as(endpoint: &Endpoint, form: &[&str], commands: &[&str]) -> String {
    let mut psql = endpoint.server.program("psql");
    psql.args(form).env("PGPASSWORD", "secret").args([
        "-X",
        "-v",
        "ON_ERROR_STOP=1",
        "-h",
        "127.0.0.1",
    ]);
    psql.args(["-p", &endpoint.port.to_string(), "-U", "ada", "-d", "shop"]);
    for command in commands {
        psql.args(["-c", command]);
    }
    run(&mut psql)
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_shows_tables_and_runs_scripts() {
    let Some(endpoint) = Endpoint::start().await else { return };
    tokio::task::spawn_blocking(move || {
        let listed = psql(&endpoint, &["\\dt"]);
        assert!(listed.contains("orders") && listed.contains("countries"), "{listed}");
        let described = psql_as(&endpoint, &["-A"], &["\\d orders"]);
        assert!(
            described.contains("tenant|integer") && described.contains("orders_pkey"),
            "{described}"
        );
        for command in ["\\l", "\\dn", "\\du", "\\df", "\\di", "\\dT", "\\d+ items", "\\conninfo"] {
            psql(&endpoint, &[command]);
        }
        psql(&endpoint, &["\\set x 1", "INSERT INTO orders (tenant, id) VALUES (1, 1)"]);
        let said = psql(&endpoint, &["SELECT count(*) FROM orders; SELECT 2"]);
        assert_eq!(said, "1\n2\n");
        let plan = psql(&endpoint, &["EXPLAIN SELECT * FROM orders WHERE tenant = 1"]);
        assert!(plan.contains("orders"), "{plan}");
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_the_login_is_bound_to_the_certificate() {
    let Some(endpoint) = Endpoint::start().await else { return };
    let port = endpoint.serve_tls().await;
    tokio::task::spawn_blocking(move || {
        let psql = |mode: &str| {
            let mut psql = endpoint.server.program("psql");
            let address = format!("host=127.0.0.1 port={port} user=ada dbname=shop {mode}");
            psql.env("HOME", endpoint.server.folder()).env("PGPASSWORD", "secret");
            psql.args(["-X", "-A", "-t", "-c", "SELECT 7", &address]);
            psql.output().unwrap()
        };
        let bound = psql("sslmode=require channel_binding=require");
        assert_eq!(String::from_utf8_lossy(&bound.stdout), "7\n", "{bound:?}");
        let plain = psql("sslmode=disable");
        let said = String::from_utf8_lossy(&plain.stderr).into_owned();
        assert!(said.contains("over TLS only"), "{said}");
    })
    .await
    .unwrap();
}

/// The drivers of other languages; `cargo xtask test --only sql-drivers` installs them and names them here.
#[tokio::test(flavor = "multi_thread")]
async fn drivers_of_python_and_javascript_work() {
    let Some(endpoint) = Endpoint::start().await else { return };
    tokio::task::spawn_blocking(move || {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/programs/sql");
        let port = endpoint.port.to_string();
        if let Some(python) = std::env::var_os("LAZULI_SQL_PYTHON") {
            println!(
                "{}",
                run(Command::new(python).arg(format!("{folder}/drivers.py")).arg(&port)).trim()
            );
        }
        if let Some(modules) = std::env::var_os("LAZULI_SQL_NODE") {
            let script = format!("{}/drivers.mjs", modules.to_string_lossy());
            println!("{}", run(Command::new("node").arg(script).arg(&port)).trim());
        }
    })
    .await
    .unwrap();
}
