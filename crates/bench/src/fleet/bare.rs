//! The side of PostgreSQL itself: `pgbench`, and the bare statements.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::{SinkExt, TryStreamExt};
use lazuli_env::SplitMix64;
use lazuli_postgres_server::Server;
use lazuli_store::Result;
use tokio::net::TcpStream;
use tokio_postgres::{Client, Config, NoTls};

use super::Size;
use super::ours::{key, value};
use crate::figures::{failed, mebibytes};

pub(super) struct Bare<'s> {
    server: &'s Server,
    client: Client,
    size: Size,
}

impl<'s> Bare<'s> {
    pub(super) async fn new(server: &'s Server, size: Size) -> Result<Self> {
        for database in ["bench", "pgbench"] {
            let create = format!("CREATE DATABASE {database}");
            server.psql("postgres", &create).map_err(failed)?;
        }
        let scale = (size.rows / 20_000).max(1).to_string();
        let bare = Self { server, client: connect(server).await?, size };
        bare.run_pgbench(&["-i", "-q", "-s", &scale])?;
        let table = "CREATE TABLE bare (k bytea PRIMARY KEY, v bytea NOT NULL)";
        bare.client.batch_execute(table).await.map_err(failed)?;
        Ok(bare)
    }

    fn run_pgbench(&self, words: &[&str]) -> Result<String> {
        let mut pgbench = self.server.program("pgbench");
        let port = self.server.port().to_string();
        pgbench.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port]).args(words);
        let output = pgbench.arg("pgbench").output().map_err(failed)?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(failed(String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// Transactions per second of prepared `pgbench`.
    pub(super) fn pgbench(&self, kind: &str, clients: usize) -> Result<f64> {
        let seconds = self.size.turn_ms.div_ceil(1_000).to_string();
        let (clients, threads) = (clients.to_string(), clients.min(2).to_string());
        let words = [kind, "-n", "-M", "prepared", "-T", &seconds, "-c", &clients, "-j", &threads];
        let told = self.run_pgbench(&words)?;
        let rate = told.lines().find_map(|line| line.strip_prefix("tps = "));
        let rate = rate.and_then(|it| it.split(' ').next()).and_then(|it| it.parse().ok());
        rate.ok_or_else(|| failed("pgbench does not say how fast it was"))
    }

    pub(super) fn analyze(&self) -> Result<()> {
        self.server.psql("bench", "VACUUM ANALYZE lazuli.kv").map_err(failed).map(drop)
    }

    /// From here on segments of the log are used again, as on a server that has run for a while. A new one is filled with
    /// zeros and synced before it is used, which costs as much as what is written to it.
    pub(super) fn recycle_log(&self) -> Result<()> {
        self.server.psql("bench", "CHECKPOINT").map_err(failed).map(drop)
    }

    /// Rows per second of the bare query on the same rows.
    pub(super) async fn scans(&self) -> Result<f64> {
        let query = "SELECT p, v FROM lazuli.kv WHERE p >= $1 AND p < $2 ORDER BY p LIMIT 1000";
        let query = self.client.prepare(query).await.map_err(failed)?;
        let until = Instant::now() + Duration::from_millis(self.size.turn_ms);
        let (begun, mut noise, mut count) = (Instant::now(), SplitMix64::new(3), 0);
        let end = &b"item0"[..];
        while Instant::now() < until {
            let start = noise.next_u64() % (self.size.rows as u64 - 1_000);
            let start = key("item", start as usize);
            let start = &start[..];
            let rows = self.client.query_raw(&query, [&start, &end]).await.map_err(failed)?;
            let rows: Vec<(Bytes, Bytes)> = rows
                .map_ok(|row| {
                    let (key, value): (&[u8], &[u8]) = (row.get(0), row.get(1));
                    (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value))
                })
                .try_collect()
                .await
                .map_err(failed)?;
            count += rows.len();
        }
        Ok(count as f64 / begun.elapsed().as_secs_f64())
    }

    /// Rows per second of one binary COPY of the same rows into a table of keys and values.
    pub(super) async fn copies(&self) -> Result<f64> {
        self.client.batch_execute("TRUNCATE bare").await.map_err(failed)?;
        let mut noise = SplitMix64::new(9);
        let rows = self.size.rows / 4;
        let items: Vec<_> = (0..rows).map(|n| (key("load-0", n), value(&mut noise))).collect();
        let begun = Instant::now();
        let copy = "COPY bare FROM STDIN (FORMAT binary)";
        let mut sink = Box::pin(self.client.copy_in::<_, Bytes>(copy).await.map_err(failed)?);
        let mut buffer = BytesMut::new();
        buffer.put_slice(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
        for (key, value) in &items {
            buffer.put_i16(2);
            for field in [key, value] {
                buffer.put_i32(field.len() as i32);
                buffer.put_slice(field);
            }
            if buffer.len() > 128 * 1024 {
                sink.feed(buffer.split().freeze()).await.map_err(failed)?;
            }
        }
        buffer.put_i16(-1);
        sink.send(buffer.freeze()).await.map_err(failed)?;
        sink.as_mut().finish().await.map_err(failed)?;
        Ok(rows as f64 / begun.elapsed().as_secs_f64())
    }

    /// MiB per second of files of 8 MiB that are written in one call and synced.
    pub(super) fn device(&self, size: Size) -> Result<f64> {
        let bytes = SplitMix64::new(5).bytes(8 << 20);
        let folder = tempfile::tempdir().map_err(failed)?;
        let until = Instant::now() + Duration::from_millis(size.turn_ms);
        let (begun, mut written) = (Instant::now(), 0);
        while Instant::now() < until {
            let path = folder.path().join("file");
            let mut file = File::create(&path).map_err(failed)?;
            file.write_all(&bytes).and_then(|()| file.sync_data()).map_err(failed)?;
            std::fs::remove_file(&path).map_err(failed)?;
            written += bytes.len() as u64;
        }
        Ok(mebibytes(written) / begun.elapsed().as_secs_f64())
    }
}

async fn connect(server: &Server) -> Result<Client> {
    let stream = TcpStream::connect(server.host()).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let mut config = Config::new();
    config.user("postgres").dbname("bench").options("-c enable_seqscan=off -c jit=off");
    let (client, connection) = config.connect_raw(stream, NoTls).await.map_err(failed)?;
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}
