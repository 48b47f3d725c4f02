//! The price of PostgreSQL: inserts and gets of table entities through HTTP, on a node with its catalog and its shard in
//! databases, against an embedded server. Both are in this process and take turns.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lazuli_postgres_server::Server;
use lazuli_store::Result;
use lazuli_trial::client::{Client, Request};
use serde_json::json;

use super::Size;
use crate::figures::failed;
use crate::report::{Report, Turns};
use crate::server::{Admin, BenchServer};

const TABLE: &str = "things";
const CONNECTIONS: [usize; 2] = [1, 16];

fn key(connection: usize, n: u64) -> (String, String) {
    (format!("key-{connection:02}"), format!("row-{n:08}"))
}

fn insert(connection: usize, n: u64) -> Request {
    let (partition, row) = key(connection, n);
    let text = "x".repeat(500);
    let entity = json!({ "PartitionKey": partition, "RowKey": row, "Text": text });
    Request::tables("POST", &format!("/{TABLE}"), "", entity.to_string())
        .with("prefer", "return-no-content")
}

fn get(connection: usize, n: u64) -> Request {
    let (partition, row) = key(connection, n);
    let path = format!("/{TABLE}(PartitionKey='{partition}',RowKey='{row}')");
    Request::tables("GET", &path, "", "")
}

/// A server, and the rows that it has.
struct Side {
    server: BenchServer,
    tables: SocketAddr,
    _folder: tempfile::TempDir,
    /// Rows beyond which no connection has inserted any.
    rows: u64,
    /// Rows that the first connection has inserted in the first turn.
    readable: u64,
}

impl Side {
    async fn start(settings: &[(&'static str, &str)], shard: Option<String>) -> Result<Self> {
        let folder = tempfile::tempdir().map_err(failed)?;
        let server = BenchServer::start(folder.path(), settings).await?;
        let (tables, admin) = (server.address("tables")?, server.address("admin")?);
        let begun = tokio::task::spawn_blocking(move || {
            if let Some(location) = shard {
                let body = json!({ "name": "shard-1", "location": location });
                Admin::connect(admin)?.json("POST", "/v1/shards", &body)?;
            }
            Client::connect(tables).and_then(|mut it| it.create_table(TABLE)).map_err(failed)
        });
        begun.await.map_err(failed)??;
        Ok(Self { server, tables, _folder: folder, rows: 0, readable: 0 })
    }

    /// Requests per second. Gets ask for rows that the inserts before have made.
    async fn turn(&mut self, size: Size, connections: usize, inserts: bool) -> Result<f64> {
        let (address, rows, readable) = (self.tables, self.rows, self.readable);
        let begun = Instant::now();
        let until = begun + Duration::from_millis(size.turn_ms);
        let client = move |connection: usize| -> Result<u64> {
            let mut client = Client::connect(address).map_err(failed)?;
            let mut count = 0;
            while Instant::now() < until {
                let request = match inserts {
                    true => insert(connection, rows + count),
                    false => get(0, (count * 7 + connection as u64) % readable.max(1)),
                };
                let statuses: &[u16] = if inserts { &[201, 204] } else { &[200] };
                client.expect(request, statuses).map_err(failed)?;
                count += 1;
            }
            Ok(count)
        };
        let clients = (0..connections).map(|n| tokio::task::spawn_blocking(move || client(n)));
        let (mut all, mut least) = (0, u64::MAX);
        for done in clients.collect::<Vec<_>>() {
            let count = done.await.map_err(failed)??;
            (all, least) = (all + count, least.min(count));
        }
        if inserts {
            self.rows = rows + all;
            self.readable = if rows == 0 { least } else { self.readable };
        }
        Ok(all as f64 / begun.elapsed().as_secs_f64())
    }
}

/// Measures the price, and says it: there is no bound, because it is that of the database.
pub(super) async fn run(server: &Server, size: Size, report: &mut Report) -> Result<()> {
    for database in ["catalog", "shard"] {
        server.psql("postgres", &format!("CREATE DATABASE {database}")).map_err(failed)?;
    }
    let catalog = server.address("catalog");
    let settings = [("catalog", catalog.as_str()), ("node-name", "bench")];
    let mut ours = Side::start(&settings, Some(server.address("shard"))).await?;
    let mut theirs = Side::start(&[], None).await?;
    for (inserts, connections) in
        [true, false].into_iter().flat_map(|inserts| CONNECTIONS.map(|it| (inserts, it)))
    {
        let mut turns = Turns::default();
        for _ in 0..size.rounds {
            turns.ours.push(ours.turn(size, connections, inserts).await?);
            turns.theirs.push(theirs.turn(size, connections, inserts).await?);
        }
        let what = if inserts { "insert" } else { "get" };
        let name = format!("table {what} through HTTP, {connections} connections");
        let [ours, theirs] = turns.medians();
        report.say(format_args!("{name}: {ours:.0} a second, embedded: {theirs:.0}"));
        report.figure(format!("{name}, share"), turns.share());
    }
    ours.server.stop().await;
    theirs.server.stop().await;
    Ok(())
}
