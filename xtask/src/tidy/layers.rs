//! Layers: which crate may name which, and which crates from outside core may name.
//!
//! Dependencies point down and nowhere else. What a crate's tests need is held to the same table: a test that has to
//! reach up or sideways tests the wrong crate.

use super::{Finding, Repository};
use crate::workspace::{Dependency, Package};

/// One crate, or every crate in a folder, and what it may name.
struct Layer {
    /// A crate's folder, or with a slash at the end every crate below it.
    folder: &'static str,
    may_name: &'static [&'static str],
    /// What its tests may name on top of that.
    tests_may_name: &'static [&'static str],
    why: &'static str,
}

const ENV: &str = "crates/core/env";
const STORE: &str = "crates/core/store";
const SHARDMAP: &str = "crates/core/shardmap";
const BALANCE: &str = "crates/core/balance";
const ENGINE: &str = "crates/core/engine";
const HISTORY: &str = "crates/core/history";
const VALUE: &str = "crates/core/value";
const QUERY: &str = "crates/core/query";
const SHAPES: &str = "crates/core/shapes";
const LOG: &str = "crates/core/log";
const BUS_SHAPE: &str = "crates/core/bus";
const KEYSPACE: &str = "crates/core/keyspace";
const INDEX: &str = "crates/core/index";
const STORES: &str = "crates/stores/";
const WIRE: &str = "crates/wire/";
const NET: &str = "crates/wire/net";
const HTTP: &str = "crates/wire/http";
const KAFKA: &str = "crates/wire/kafka";
const PG: &str = "crates/wire/pg";
const RESP: &str = "crates/wire/resp";
const AMQP: &str = "crates/wire/amqp";
const AZURE: &str = "crates/wire/azure";
const FRONTS: &str = "crates/fronts/";
const PORTAL: &str = "crates/app/portal";
const CONSOLE: &str = "crates/app/console";
const TRANSFER: &str = "crates/app/transfer";
const APP: &str = "crates/app/";
const SERVER: &str = "crates/app/server";
const SQL_MODEL: &str = "crates/core/sharded-sql";
const CONTROL: &str = "crates/sql/control";
const CLIENT: &str = "crates/client";
const LUA: &str = "crates/lua";
const SCRIPTS: &str = "crates/scripts";
const SEARCH: &str = "crates/search";
const SIM: &str = "crates/sim";
const BENCH: &str = "crates/bench";
const TRIAL: &str = "crates/trial";
const POSTGRES_SERVER: &str = "crates/postgres-server";
const XTASK: &str = "xtask";

const LAYERS: &[Layer] = &[
    Layer {
        folder: ENV,
        may_name: &[],
        tests_may_name: &[],
        why: "clock, chance and tasks are below everything",
    },
    Layer {
        folder: STORE,
        may_name: &[ENV],
        tests_may_name: &[],
        why: "a store knows keys, values, ranges and transactions, and nothing else",
    },
    Layer {
        folder: SHARDMAP,
        may_name: &[STORE, ENV],
        tests_may_name: &[],
        why: "maps are data in a store; what is done with a partition is the engine's",
    },
    Layer {
        folder: BALANCE,
        may_name: &[SHARDMAP, STORE],
        tests_may_name: &[ENV],
        why: "the balancer plans from figures; who gathers them and who moves is above it",
    },
    Layer {
        folder: ENGINE,
        may_name: &[SHARDMAP, STORE, ENV],
        tests_may_name: &[],
        why: "the engine orders writes and knows no data model and no protocol",
    },
    Layer {
        folder: HISTORY,
        may_name: &[ENGINE, STORE],
        tests_may_name: &[SHARDMAP, ENV],
        why: "the history keeps what the engine counts; when it looks and who asks is above it",
    },
    Layer {
        folder: VALUE,
        may_name: &[],
        tests_may_name: &[ENV],
        why: "values are data; where they are kept and who asks for them is above",
    },
    Layer {
        folder: QUERY,
        may_name: &[VALUE],
        tests_may_name: &[ENV],
        why: "a query plans and computes over values; where items come from is above",
    },
    Layer {
        folder: SHAPES,
        may_name: &[ENGINE, QUERY, VALUE],
        tests_may_name: &[SHARDMAP, STORE, ENV],
        why: "a shape decides through the engine; its tests build an engine on an in-memory store",
    },
    Layer {
        folder: LOG,
        may_name: &[ENGINE, SHARDMAP, STORE, ENV],
        tests_may_name: &[],
        why: "logs decide through the engine, as every shape does, and lie beside the others because nothing joins them",
    },
    Layer {
        folder: BUS_SHAPE,
        may_name: &[ENGINE, SHARDMAP, ENV],
        tests_may_name: &[STORE],
        why: "a shape decides through the engine; one of its own so that it compiles without the others",
    },
    Layer {
        folder: KEYSPACE,
        may_name: &[ENGINE, SHARDMAP, ENV],
        tests_may_name: &[STORE],
        why: "the keyspace lives in memory and is written down through the engine, as any shape is",
    },
    Layer {
        folder: INDEX,
        may_name: &[ENGINE, SHARDMAP, VALUE, ENV],
        tests_may_name: &[STORE],
        why: "a shape decides through the engine; text indexes are derived from it above, with files and threads of their own",
    },
    Layer {
        folder: STORES,
        may_name: &[STORE, ENV],
        tests_may_name: &[POSTGRES_SERVER],
        why: "a store keeps bytes; everything that it could decide is decided above it",
    },
    Layer {
        folder: SQL_MODEL,
        may_name: &[SHARDMAP],
        tests_may_name: &[],
        why: "the model of a sharded database is data that routers, movers and clients share",
    },
    Layer {
        folder: CONTROL,
        may_name: &[SQL_MODEL, SHARDMAP, STORE, ENV, "crates/stores/postgres"],
        tests_may_name: &[POSTGRES_SERVER],
        why: "changes users' databases and the catalog's records of them; who asks for it is above",
    },
    Layer {
        folder: CLIENT,
        may_name: &[SQL_MODEL, SHARDMAP, STORE, "crates/stores/postgres", HTTP],
        tests_may_name: &[],
        why: "a client library asks the admin API and the shards, as any program may",
    },
    Layer {
        folder: LUA,
        may_name: &[RESP],
        tests_may_name: &[],
        why: "an interpreter with limits; what scripts may do is the host's",
    },
    Layer {
        folder: SCRIPTS,
        may_name: &[QUERY, VALUE],
        tests_may_name: &[],
        why: "a script sees values, its host and the query that calls it; what they run on is decided above",
    },
    Layer {
        folder: SEARCH,
        may_name: &[],
        tests_may_name: &[],
        why: "a text index is files and threads that are derived from documents; who feeds it is above",
    },
    Layer {
        folder: NET,
        may_name: &[],
        tests_may_name: &[],
        why: "a listener knows connections, limits and counts, and no protocol",
    },
    Layer {
        folder: HTTP,
        may_name: &[ENV, NET],
        tests_may_name: &[],
        why: "HTTP is one protocol on a listener and knows no service",
    },
    Layer {
        folder: PG,
        may_name: &[],
        tests_may_name: &[],
        why: "messages of PostgreSQL's protocol are bytes; sessions and shards are above",
    },
    Layer {
        folder: KAFKA,
        may_name: &[],
        tests_may_name: &[],
        why: "record batches and primitive types are bytes; topics and groups are above",
    },
    Layer {
        folder: RESP,
        may_name: &[],
        tests_may_name: &[],
        why: "requests and replies are bytes; commands are above",
    },
    Layer {
        folder: AMQP,
        may_name: &[NET],
        tests_may_name: &[ENV, HTTP],
        why: "AMQP is one protocol on a stream of bytes and knows no service",
    },
    Layer {
        folder: AZURE,
        may_name: &[HTTP],
        tests_may_name: &[],
        why: "what the storage services share stands on HTTP, and would serve another engine as well",
    },
    Layer {
        folder: FRONTS,
        may_name: &[
            WIRE, SHAPES, LOG, BUS_SHAPE, INDEX, KEYSPACE, ENGINE, VALUE, QUERY, SCRIPTS, SEARCH,
            LUA, SHARDMAP, SQL_MODEL,
        ],
        tests_may_name: &[STORE, ENV, POSTGRES_SERVER],
        why: "a front decodes, makes one call and encodes; it never sees a store or another front",
    },
    Layer {
        folder: PORTAL,
        may_name: &[HTTP, NET],
        tests_may_name: &[],
        why: "the portal knows nothing but what the admin API tells everybody",
    },
    Layer {
        folder: CONSOLE,
        may_name: &[],
        tests_may_name: &[],
        why: "what commands print is the same whatever they do",
    },
    Layer {
        folder: TRANSFER,
        may_name: &[CONSOLE, WIRE],
        tests_may_name: &[],
        why: "transfers speak to any service over the public protocols",
    },
    Layer {
        folder: APP,
        may_name: &[
            APP, FRONTS, STORES, SCRIPTS, SHAPES, LOG, BUS_SHAPE, INDEX, KEYSPACE, SQL_MODEL,
            CONTROL, HISTORY, ENGINE, BALANCE, SHARDMAP, STORE, ENV, WIRE,
        ],
        tests_may_name: &[POSTGRES_SERVER, CLIENT],
        why: "the application is the wiring of all the rest",
    },
    Layer {
        folder: SIM,
        may_name: &[
            SHAPES, LOG, BUS_SHAPE, INDEX, KEYSPACE, QUERY, VALUE, ENGINE, SHARDMAP, STORE, ENV,
        ],
        tests_may_name: &[],
        why: "the simulator runs core and brings its own clock, store and network",
    },
    Layer {
        folder: BENCH,
        may_name: &[
            SERVER,
            SHAPES,
            BUS_SHAPE,
            HISTORY,
            ENGINE,
            SHARDMAP,
            STORE,
            ENV,
            STORES,
            WIRE,
            TRIAL,
            POSTGRES_SERVER,
        ],
        tests_may_name: &[],
        why: "benchmarks measure core and stores from inside, fronts and the server over the wire",
    },
    Layer {
        folder: TRIAL,
        may_name: &[ENV, WIRE],
        tests_may_name: &[],
        why: "a trial knows the server as strangers do: as a process, over the wire",
    },
    Layer {
        folder: POSTGRES_SERVER,
        may_name: &[],
        tests_may_name: &[],
        why: "a server of somebody else's is started as a program, and nothing of ours is known to it",
    },
    Layer {
        folder: XTASK,
        may_name: &[],
        tests_may_name: &[],
        why: "tooling compiles first and starts the rest as programs",
    },
];

/// The folder of the deterministic zone.
const CORE: &str = "crates/core/";

/// Crates from outside that core may name, with the features that it may use of them. Any feature not listed could
/// bring in threads, time or files of its own.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("aes", &[]),
    ("bytes", &[]),
    ("crc64fast-nvme", &[]),
    ("ctr", &[]),
    ("hashbrown", &["inline-more"]),
    ("md-5", &[]),
    ("regex-lite", &[]),
    ("sha2", &[]),
    ("tokio", &["sync", "macros"]),
    ("xxhash-rust", &["xxh3", "const_xxh3"]),
];

/// What `env` may use on top: it is the one place where the real clock and the real tasks are.
const OUTSIDE_ENV: (&str, &[&str]) = ("tokio", &["rt", "time"]);

/// Crates from outside that the tests of core may name; all their features are fine.
const OUTSIDE_TESTS: &[&str] = &["tokio", "proptest"];

/// No crate names another one that its layer does not allow.
pub(super) fn edges(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &repository.packages {
        let manifest = format!("{}/Cargo.toml", package.folder);
        let Some(layer) = LAYERS.iter().find(|layer| belongs(&package.folder, layer.folder)) else {
            findings.push(Finding::at(&manifest, "this crate is in no layer"));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|it| it.ours) {
            let Some(other) = repository.packages.iter().find(|it| it.name == dependency.name)
            else {
                findings.push(Finding::at(&manifest, format!("{} is unknown", dependency.name)));
                continue;
            };
            if !may_name(layer, dependency, other) {
                let message = format!("may not name {}: {}", dependency.name, layer.why);
                findings.push(Finding::at(&manifest, message));
            }
        }
    }
    findings
}

fn may_name(layer: &Layer, dependency: &Dependency, other: &Package) -> bool {
    let for_tests = if dependency.dev { layer.tests_may_name } else { &[] };
    let mut allowed = layer.may_name.iter().chain(for_tests);
    allowed.any(|folder| belongs(&other.folder, folder))
}

fn belongs(folder: &str, place: &str) -> bool {
    if place.ends_with('/') { folder.starts_with(place) } else { folder == place }
}

/// Core names no crate from outside but the few that are known to be free of time, chance, threads and files.
pub(super) fn outside(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in repository.packages.iter().filter(|it| it.folder.starts_with(CORE)) {
        let manifest = format!("{}/Cargo.toml", package.folder);
        for dependency in package.dependencies.iter().filter(|it| !it.ours) {
            let name = dependency.name.as_str();
            if dependency.dev && OUTSIDE_TESTS.contains(&name) {
                continue;
            }
            let Some((_, features)) = OUTSIDE.iter().find(|(it, _)| *it == name) else {
                findings.push(Finding::at(&manifest, format!("core may not use {name}")));
                continue;
            };
            for feature in &dependency.features {
                let of_env = package.folder == ENV
                    && OUTSIDE_ENV.0 == name
                    && OUTSIDE_ENV.1.contains(&feature.as_str());
                if !of_env && !features.contains(&feature.as_str()) {
                    let message = format!("core may not use {name} with feature '{feature}'");
                    findings.push(Finding::at(&manifest, message));
                }
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str, dependencies: Vec<Dependency>) -> Package {
        let name = folder.rsplit('/').next().unwrap().to_owned();
        Package { name, folder: folder.to_owned(), dependencies, targets: Vec::new() }
    }

    fn ours(name: &str, dev: bool) -> Dependency {
        Dependency { name: name.to_owned(), dev, ours: true, features: Vec::new() }
    }

    fn theirs(name: &str, dev: bool, features: &[&str]) -> Dependency {
        let features = features.iter().map(|it| (*it).to_owned()).collect();
        Dependency { name: name.to_owned(), dev, ours: false, features }
    }

    fn repository(packages: Vec<Package>) -> Repository {
        Repository { files: Vec::new(), packages }
    }

    fn count(rule: fn(&Repository) -> Vec<Finding>, packages: Vec<Package>) -> usize {
        rule(&repository(packages)).len()
    }

    #[test]
    fn an_edge_that_points_down_is_fine_and_one_that_points_up_is_found() {
        let down = vec![package(STORE, vec![ours("env", false)]), package(ENV, vec![])];
        assert_eq!(count(edges, down), 0);
        let up = vec![package(STORE, vec![]), package(ENV, vec![ours("store", false)])];
        assert_eq!(count(edges, up), 1);
    }

    #[test]
    fn a_front_may_name_neither_a_store_nor_another_front() {
        let front = package("crates/fronts/tables", vec![ours("embedded", false)]);
        assert_eq!(count(edges, vec![front, package("crates/stores/embedded", vec![])]), 1);
        let front = package("crates/fronts/tables", vec![ours("blobs", false)]);
        assert_eq!(count(edges, vec![front, package("crates/fronts/blobs", vec![])]), 1);
    }

    #[test]
    fn the_portal_names_nothing_but_wire() {
        let portal = |other| package(PORTAL, vec![ours(other, false)]);
        assert_eq!(count(edges, vec![portal("http"), package(HTTP, vec![])]), 0);
        assert_eq!(count(edges, vec![portal("azure"), package(AZURE, vec![])]), 1);
        assert_eq!(count(edges, vec![portal("engine"), package(ENGINE, vec![])]), 1);
        let server = package("crates/app/server", vec![]);
        assert_eq!(count(edges, vec![portal("server"), server]), 1);
    }

    #[test]
    fn tests_of_core_stay_in_core() {
        let engine = package(ENGINE, vec![ours("sim", true)]);
        assert_eq!(count(edges, vec![engine, package(SIM, vec![])]), 1);
        let shapes = package(SHAPES, vec![ours("store", true)]);
        assert_eq!(count(edges, vec![shapes, package(STORE, vec![])]), 0);
        let shapes = package(SHAPES, vec![ours("store", false)]);
        assert_eq!(count(edges, vec![shapes, package(STORE, vec![])]), 1);
    }

    #[test]
    fn a_crate_outside_of_all_layers_is_found() {
        assert_eq!(count(edges, vec![package("crates/glue", vec![])]), 1);
    }

    #[test]
    fn core_may_use_only_the_listed_crates_and_features() {
        let store = |it| vec![package(STORE, vec![it])];
        assert_eq!(count(outside, store(theirs("bytes", false, &[]))), 0);
        assert_eq!(count(outside, store(theirs("tokio", false, &["sync"]))), 0);
        assert_eq!(count(outside, store(theirs("tokio", false, &["net"]))), 1);
        assert_eq!(count(outside, store(theirs("tokio", false, &["time"]))), 1);
        assert_eq!(count(outside, store(theirs("rand", false, &[]))), 1);
        assert_eq!(count(outside, store(theirs("proptest", true, &[]))), 0);
        assert_eq!(count(outside, store(theirs("proptest", false, &[]))), 1);
        let env = package(ENV, vec![theirs("tokio", false, &["rt", "time"])]);
        assert_eq!(count(outside, vec![env]), 0);
    }
}
