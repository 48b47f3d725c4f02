//! The one table of settings. Flags, environment variables, TOML keys, help and `docs/settings.md` are made from it.

use std::sync::LazyLock;

use super::{cache, documents, messaging, search, storage};
use crate::fronts::FRONTS;

/// One setting. Its name is the same everywhere: `table-port` is the flag `--table-port`, the variable
/// `LAZULI_TABLE_PORT` and the TOML key `table-port`.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    /// What a value looks like, as help prints it.
    pub takes: &'static str,
    /// None where nothing is the default.
    pub default: Option<&'static str>,
    /// A secret is masked wherever it is printed and has no flag, because command lines are visible to all users.
    pub secret: bool,
    pub help: &'static str,
    /// Whether it can also be set for one front: `tls` for all of them, `table-tls` for Tables.
    pub per_front: bool,
    /// Whether this row is the setting of one front in place of the one for all.
    pub is_override: bool,
}

impl Row {
    const fn per_front(self) -> Self {
        Self { per_front: true, ..self }
    }

    /// The environment variable of this setting.
    pub fn variable(&self) -> String {
        variable(self.name)
    }
}

/// The environment variable of a setting of this name.
pub fn variable(name: &str) -> String {
    format!("{VARIABLE_PREFIX}{}", name.replace('-', "_").to_ascii_uppercase())
}

/// What the names of all our environment variables start with.
pub const VARIABLE_PREFIX: &str = "LAZULI_";

/// Variables that are no settings of the server: where the settings file is, where a running server's admin API is, and
/// one in which addresses of databases may say that the password is (`password_env=LAZULI_DATABASE_PASSWORD`).
pub const OTHER_VARIABLES: &[&str] =
    &["LAZULI_CONFIG", "LAZULI_ADMIN", "LAZULI_DATABASE_PASSWORD", "LAZULI_SQL_PASSWORD"];

pub(crate) const fn row(
    name: &'static str,
    takes: &'static str,
    default: Option<&'static str>,
    help: &'static str,
) -> Row {
    Row { name, takes, default, secret: false, help, per_front: false, is_override: false }
}

const fn secret(name: &'static str, takes: &'static str, help: &'static str) -> Row {
    Row { secret: true, ..row(name, takes, None, help) }
}

/// All settings: those below, the port of each front, and what can be set for one front alone.
pub static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let mut table = Vec::new();
    for row in all_rows() {
        table.push(*row);
        if row.name == "host" {
            table.extend(FRONTS.iter().map(|front| front.port_row()));
        }
    }
    for front in FRONTS {
        table.push(front.accounts_row());
        for row in ROWS.iter().filter(|row| row.per_front) {
            let name = front.own(row.name);
            if all_rows().all(|other| other.name != name) {
                let default = front.tls_default.filter(|_| row.name == "tls");
                let own = Row { name: name.leak(), default, per_front: false, ..*row };
                table.push(Row { is_override: true, ..own });
            }
        }
    }
    table
});

/// The rows of all fronts, of the server, and of the fronts that have a file of their own here.
fn all_rows() -> impl Iterator<Item = &'static Row> {
    let fronts = storage::ROWS.iter().chain(documents::ROWS).chain(messaging::ROWS);
    ROWS.iter().chain(fronts).chain(search::ROWS).chain(cache::ROWS)
}

const ROWS: &[Row] = &[
    row("data", "DIR", Some("./lazuli-data"), "The data folder"),
    row("catalog", "postgres://…", None, "The catalog of the fleet to join; without it all is in data"),
    row("blocks", "ADDRESS", None, "Where a fleet keeps large blobs: postgres://…, az://… or s3://…; without it beside its catalog"),
    row("node-name", "NAME", None, "What this node of a fleet is called; without it as its host"),
    row("host", "ADDRESS", Some("127.0.0.1"), "The address that the fronts listen on"),
    row(
        "ports",
        "usual|free",
        Some("usual"),
        "The ports that nothing else sets, also the admin API's: the usual ones, or any free ones",
    ),
    row(
        "admin-port",
        "PORT",
        Some("10010"),
        "The port of the admin API on 127.0.0.1; 0 takes any free one",
    ),
    row(
        "admin-remote",
        "ADDRESS:PORT",
        None,
        "Serve the admin API and the portal at this address too, over TLS only",
    ),
    row(
        "admin-names",
        "NAME,…",
        None,
        "Names by which browsers reach the portal at admin-remote, beside its address",
    ),
    row(
        "ready-file",
        "FILE",
        None,
        "Write the endpoints as JSON to this file once all accept",
    ),
    row(
        "durability",
        "synced|relaxed",
        Some("synced"),
        "When a write is acknowledged: after its fsync (synced) or before it (relaxed)",
    ),
    row("cache-size", "BYTES", Some("64MiB"), "The cache size of each shard"),
    row(
        "tls",
        "off|beside|only",
        Some("off"),
        "TLS: off, accepted beside plain connections on the same ports, or required",
    )
    .per_front(),
    row(
        "tls-cert",
        "FILE",
        None,
        "The certificate chain (PEM); without it a self-signed one is created and stored",
    ),
    row("tls-key", "FILE", None, "The private key of tls-cert (PEM)"),
    row(
        "allow-addresses",
        "ADDRESS[/BITS],…",
        None,
        "The client addresses that may connect to the fronts; without it all",
    )
    .per_front(),
    row(
        "oauth",
        "off|basic",
        Some("off"),
        "Bearer tokens over HTTPS: refused, or accepted after checks of all but their signature",
    ),
    row(
        "connections-max",
        "COUNT",
        Some("4096"),
        "Connections of a front at the same time; beyond it clients get 503",
    )
    .per_front(),
    row("header-bytes-max", "BYTES", Some("64KiB"), "The largest request head: request line and headers")
        .per_front(),
    row("body-bytes-max", "BYTES", Some("4MiB"), "The largest request body, except contents of blobs").per_front(),
    row(
        "in-flight-bytes-max",
        "BYTES",
        Some("256MiB"),
        "Memory for all bodies and answers in flight of the whole process; beyond it requests get 503",
    ),
    row(
        "header-timeout",
        "TIME",
        Some("15s"),
        "How long the head of a request may take to arrive; the first one from when the connection began",
    )
    .per_front(),
    row(
        "body-timeout",
        "TIME",
        Some("30s"),
        "How long the next piece of a body may take to arrive",
    )
    .per_front(),
    row(
        "body-rate-min",
        "BYTES",
        Some("1KiB"),
        "The lowest transfer rate of a request body or a response, in bytes per second",
    )
    .per_front(),
    row(
        "idle-timeout",
        "TIME",
        Some("120s"),
        "How long a connection may be idle",
    )
    .per_front(),
    row("request-timeout", "TIME", Some("5m"), "How long a request may take altogether")
        .per_front(),
    row(
        "stop-timeout",
        "TIME",
        Some("10s"),
        "How long requests may continue after a stop signal",
    ),
    row(
        "blob-collect-interval",
        "TIME",
        Some("5s"),
        "How often unreferenced contents of blobs are garbage collected",
    ),
    row(
        "history-partitions-max",
        "COUNT",
        Some("10000"),
        "How many partitions keep their figures of the last day in memory, up to 11 KB each",
    ),
    row(
        "balance",
        "off|on",
        Some("off"),
        "Whether the balancer splits, merges and moves partitions by itself (docs/balancing.md)",
    ),
    row(
        "balance-interval",
        "TIME",
        Some("1m"),
        "How often the balancer plans",
    ),
    row("balance-average", "TIME", Some("5m"), "The time over which requests are averaged"),
    row(
        "balance-goals",
        "GOALS",
        Some("bytes=1,requests=1,items=0"),
        "What is evened out over the shards, with weights; 0 means not at all",
    ),
    row(
        "balance-band",
        "PERCENT",
        Some("10%"),
        "How far a shard may be from the mean before the balancer acts",
    ),
    row(
        "balance-gain-min",
        "PERCENT",
        Some("50%"),
        "What a move must take off the difference of both shards beyond its own weight",
    ),
    row(
        "balance-floor-bytes",
        "BYTES",
        Some("64MiB"),
        "Smaller differences in bytes are ignored",
    ),
    row("balance-floor-requests", "NUMBER", Some("10"), "The same in requests per second"),
    row("balance-floor-items", "NUMBER", Some("100000"), "The same in items"),
    row(
        "balance-rest",
        "TIME",
        Some("10m"),
        "How long a partition is left alone after a move or merge",
    ),
    row("balance-split-bytes", "BYTES", Some("10GiB"), "Partitions with more bytes are split"),
    row(
        "balance-split-requests",
        "NUMBER",
        Some("2000"),
        "Partitions with more requests per second are split",
    ),
    row(
        "balance-split-share",
        "PERCENT",
        Some("25%"),
        "Partitions of more than this part of a shard's mean load are split where it has too much",
    ),
    row(
        "balance-hot-share",
        "PERCENT",
        Some("50%"),
        "A shardlet with this share of its partition's requests is isolated",
    ),
    row(
        "balance-merge-bytes",
        "BYTES",
        Some("64MiB"),
        "Neighbours with no more bytes together are merged; 0 means never",
    ),
    row(
        "balance-merge-requests",
        "NUMBER",
        Some("1"),
        "Neighbours with more requests per second together are not merged",
    ),
    row("balance-moves-at-once", "COUNT", Some("8"), "Moves under way at the same time"),
    row("balance-moves-per-shard", "COUNT", Some("2"), "Of these, from or to one shard"),
    row(
        "balance-bandwidth",
        "BYTES",
        Some("256MiB"),
        "The bandwidth limit of all its moves together, per second",
    ),
    row(
        "balance-window",
        "FROM-TO",
        None,
        "The part of the day, UTC, in which actions may begin, such as 22:00-04:00",
    ),
    row(
        "balance-actions-max",
        "COUNT",
        Some("10000"),
        "The most actions of one plan; the next plan continues",
    ),
    row(
        "log-level",
        "error|warn|info|debug|trace",
        Some("info"),
        "The least important lines to log",
    ),
    row("log-format", "text|json", Some("text"), "How lines are logged, on standard error"),
    secret("admin-token", "TEXT", "The token of the admin API; without it one is generated and stored"),
    secret(
        "accounts",
        "NAME:KEY[:KEY];…",
        "Accounts of this run, in place of the stored ones and of devstoreaccount1",
    ),
];

/// The row of this name.
pub fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_make_plain_variables() {
        assert!(find("table-tls").is_some_and(|row| row.is_override && row.default.is_none()));
        assert!(find("blob-request-timeout").is_some_and(|row| !row.is_override));
        let mut names: Vec<_> = TABLE.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
        assert_eq!(find("table-port").map(Row::variable).as_deref(), Some("LAZULI_TABLE_PORT"));
        assert!(TABLE.iter().all(|row| !OTHER_VARIABLES.contains(&row.variable().as_str())));
    }
}
