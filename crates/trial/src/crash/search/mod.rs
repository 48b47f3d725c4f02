//! Search: every answered document is found after a kill, by its key and by searches, none twice, and counts are exact; also
//! while the slices of the index are on their way to other shards.

mod check;
mod writers;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;

use lazuli_trial::Result;
use lazuli_trial::client::Client;
use lazuli_trial::search::SearchClient;
use lazuli_trial::server::Server;
use serde_json::json;

use super::{Load, read_all};
use check::Expected;
use writers::WriterLog;

const INDEX: &str = "crash";

/// Connections that write documents; one more spreads the index over other numbers of shards.
const DOCUMENT_WRITERS: usize = 7;
/// Shards beside the first one.
const MORE_SHARDS: [&str; 2] = ["shard-0002", "shard-0003"];

#[derive(Default)]
pub(crate) struct Search {
    expected: Expected,
    answered: BTreeMap<&'static str, usize>,
    in_doubt: usize,
    scales: usize,
    /// Documents that searches answered with.
    found: usize,
}

impl Load for Search {
    type Log = WriterLog;
    const FRONT: &str = "search";
    const WRITERS: usize = DOCUMENT_WRITERS + 1;
    const LIFE_MS: Range<u64> = 50..1_200;

    fn prepare(&self, server: &Server, folder: &Path) -> Result {
        let token = folder.join("data").join("admin-token");
        let token = std::fs::read_to_string(&token).map_err(|it| format!("{token:?}: {it}"))?;
        let mut admin = Client::connect(server.endpoint("admin")?)?;
        for name in MORE_SHARDS {
            let body = json!({ "name": name, "region": "local", "labels": {} }).to_string();
            let request = format!(
                "POST /v1/shards HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                token.trim(),
                body.len()
            );
            let answer = admin.exchange(request.as_bytes())?;
            if answer.status / 100 != 2 {
                return Err(format!("add a shard: {} {}", answer.status, answer.text()));
            }
        }
        Ok(())
    }

    fn create(&self, address: SocketAddr) -> Result {
        let text = |name: &str| json!({ "name": name, "type": "Edm.String", "searchable": true });
        let number = |name: &str| json!({ "name": name, "type": "Edm.Int64", "sortable": true });
        let key = json!({ "name": "id", "type": "Edm.String", "key": true, "sortable": true });
        let fields = json!([key, number("round"), number("number"), text("text")]);
        let body = json!({ "name": INDEX, "fields": fields });
        let mut client = SearchClient::connect(address)?;
        client.expect("POST", "/indexes", Some(&body), &[201]).map(drop)
    }

    fn write(&self, address: SocketAddr, round: u64, writer: usize) -> Result<WriterLog> {
        match writer < DOCUMENT_WRITERS {
            true => writers::write(address, round, writer),
            false => writers::scale(address, round),
        }
    }

    fn settle(&mut self, address: SocketAddr, logs: Vec<WriterLog>) -> Result {
        if logs.is_empty() {
            return Ok(());
        }
        for log in &logs {
            for (name, count) in &log.answered {
                *self.answered.entry(name).or_default() += count;
            }
            self.in_doubt += log.in_doubt.len();
            self.scales += log.scales;
        }
        let mut of_round = Expected::new();
        for found in read_all(address, logs, check::read)? {
            of_round.extend(found);
        }
        let round = of_round.values().next().map(|document| document.round);
        self.expected.extend(of_round);
        check::count(address, &self.expected)?;
        if let Some(round) = round {
            self.found += check::search(address, &self.expected, Some(round))?;
        }
        Ok(())
    }

    fn check_all(&self, address: SocketAddr) -> Result {
        check::search(address, &self.expected, None).map(drop)
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.answered.iter().map(|(kind, count)| format!("{count} {kind}"));
        writeln!(f, "answered: {}", kinds.collect::<Vec<_>>().join(", "))?;
        writeln!(
            f,
            "{} actions in doubt; {} changes of the number of partitions",
            self.in_doubt, self.scales
        )?;
        writeln!(f, "{} documents found by searches after the kills", self.found)?;
        let there = self.expected.values().filter(|document| document.is_there).count();
        write!(f, "0 lost, 0 twice: {there} documents of {} ever written", self.expected.len())
    }
}
