//! What the endpoint keeps in the shards' databases: the ledger of two-phase commits, and ids that are unique over all shards.

/// What every global identifier of a prepared transaction of ours begins with.
pub const GID_PREFIX: &str = "lazuli_";

/// The most shards that ids tell apart.
pub const SHARD_NUMBERS: u32 = 1024;

/// The ledger, in the schema `lazuli` of every shard; the one on the catalog shard is used. `coordinator` has one row for each
/// process that commits on several shards; recovery raises its epoch, and from then on that process can decide nothing.
/// `transaction` has a row from before the first PREPARE until every shard has finished, with the name that it has on each:
/// names of prepared transactions are the server's, and several shards may be on one.
pub const LEDGER_SCHEMA: &str = "\
CREATE SCHEMA IF NOT EXISTS lazuli;
CREATE TABLE IF NOT EXISTS lazuli.coordinator (
    id text PRIMARY KEY,
    epoch bigint NOT NULL,
    seen timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS lazuli.transaction (
    gid text PRIMARY KEY,
    coordinator text NOT NULL,
    epoch bigint NOT NULL,
    shards text[] NOT NULL,
    gids text[] NOT NULL,
    committed boolean NOT NULL DEFAULT false,
    begun timestamptz NOT NULL DEFAULT now()
);
CREATE SEQUENCE IF NOT EXISTS lazuli.ids;
";

/// The statement that creates `lazuli_next_id()` on the shard with this number: a number of the shard's own sequence and the
/// shard's number, so that no two shards ever give the same id and no clock matters. None if the number is too high.
pub fn next_id_sql(shard: u32) -> Option<String> {
    (shard < SHARD_NUMBERS).then(|| {
        format!(
            "CREATE OR REPLACE FUNCTION public.lazuli_next_id() RETURNS bigint LANGUAGE sql VOLATILE AS \
             $$ SELECT nextval('lazuli.ids') * {SHARD_NUMBERS} + {shard} $$"
        )
    })
}
