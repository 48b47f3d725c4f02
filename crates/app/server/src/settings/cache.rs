//! The settings of the cache.

use std::collections::BTreeSet;

use lazuli_keyspace::{Persistence, Policy};

use super::table::{Row, row};
use super::{Reader, Result, value};

/// What the cache is told.
#[derive(Clone, Debug)]
pub struct CacheSettings {
    pub persistence: Persistence,
    pub memory_bytes_max: u64,
    pub policy: Policy,
    pub disabled: BTreeSet<String>,
    /// The ports of the nodes in cluster mode, one for each shard; none means that there is no such mode.
    pub cluster_ports: Vec<u16>,
    /// The servers that the cache may follow as a replica.
    pub source_hosts: Vec<String>,
}

pub(super) const ROWS: &[Row] = &[
    row(
        "cache-persistence",
        "none|everysec|always",
        Some("none"),
        "What a crash takes of the cache: everything, at most about a second, or nothing that was answered",
    ),
    row(
        "cache-maxmemory",
        "BYTES|none",
        Some("none"),
        "The most that keys and values of the cache may take; CONFIG SET maxmemory changes it at run time",
    ),
    row(
        "cache-maxmemory-policy",
        "POLICY",
        Some("noeviction"),
        "Which keys go when the cache is full: noeviction, allkeys-lru, allkeys-lfu, allkeys-random, volatile-lru, volatile-lfu, volatile-random, volatile-ttl",
    ),
    row(
        "cache-disabled-commands",
        "NAME,…",
        None,
        "Commands that the cache does not know, as the managed service disables CONFIG or DEBUG",
    ),
    row(
        "cache-cluster-ports",
        "PORT,…",
        None,
        "Ports on which the cache is a cluster whose nodes are the shards, in the order of their ids; 0 takes any free one",
    ),
    row(
        "cache-source-hosts",
        "HOST[:PORT],…",
        None,
        "Redis servers that REPLICAOF may name, to copy their keys; on this machine itself only with a port",
    ),
];

const PERSISTENCES: &[(&str, Persistence)] = &[
    ("none", Persistence::None),
    ("everysec", Persistence::EverySecond),
    ("always", Persistence::Always),
];

pub(super) fn cache(one: &Reader<'_>) -> Result<CacheSettings> {
    let lower = |text: &str| {
        let names = value::names(text)?;
        Ok(names.iter().map(|it| it.to_ascii_lowercase()).collect())
    };
    let ports = |text: &str| text.split(',').map(|it| value::port(it.trim())).collect();
    Ok(CacheSettings {
        persistence: one.need("cache-persistence", |text| value::choice(text, PERSISTENCES))?,
        memory_bytes_max: one.need("cache-maxmemory", memory)?,
        policy: one.need("cache-maxmemory-policy", |text| value::choice(text, &Policy::ALL))?,
        disabled: one.may("cache-disabled-commands", lower)?.unwrap_or_default(),
        cluster_ports: one.may("cache-cluster-ports", ports)?.unwrap_or_default(),
        source_hosts: one.may("cache-source-hosts", value::hosts)?.unwrap_or_default(),
    })
}

fn memory(text: &str) -> value::Parsed<u64> {
    if text == "none" { Ok(0) } else { value::bytes(text) }
}
