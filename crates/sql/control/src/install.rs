//! What is installed in a shard's database: the schema `lazuli`, and triggers on the users' tables.
//!
//! The shard's *local map* says which mappings it holds, at which epoch and in which state. Every write of a row looks up the
//! mapping of the row's key there and takes a key-share lock on one of the 64 *fence rows* of that mapping and epoch. Closing
//! a mapping updates all 64, which changes their keys: it waits for every transaction that has written (the drain), and
//! whoever comes later finds no row of his epoch. At REPEATABLE READ the lock fails with 40001. Sixty-four rows instead of one,
//! because one row that all writers lock at the same time makes PostgreSQL write a multixact for each commit.

use lazuli_sharded_sql::{
    ColumnType, LEDGER_SCHEMA, ShardMap, TableName, next_id_sql, quote_ident, quote_literal,
};
use lazuli_store::{Error, Result};

use crate::form::{ModelForm, PlaceForm, ShardForm, TableForm};
use crate::link::Link;
use crate::routes;

/// How many fence rows a mapping has on its shard.
pub(crate) const STRIPES: u32 = 64;
/// The version of what is installed.
const FORMAT: i32 = 1;
/// The trigger that checks rows. Triggers of one table run in the order of their names, so this one sees the row as it will be
/// written.
pub(crate) const FENCE_TRIGGER: &str = "zz_lazuli_fence";
const TRUNCATE_TRIGGER: &str = "zz_lazuli_truncate";
/// The trigger that checks sessions that say which mapping they are for, also where a statement finds no row: rows that have
/// moved away are none.
const SESSION_TRIGGER: &str = "zz_lazuli_session";

const SCHEMA: &str = "
CREATE SCHEMA IF NOT EXISTS lazuli;
CREATE TABLE IF NOT EXISTS lazuli.identity (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    database text NOT NULL, shard bigint NOT NULL, name text NOT NULL, format integer NOT NULL);
CREATE TABLE IF NOT EXISTS lazuli.local_map (
    mapping bigint PRIMARY KEY, map bigint NOT NULL, low bytea NOT NULL, high bytea,
    epoch bigint NOT NULL, state text NOT NULL, UNIQUE (map, low));
CREATE TABLE IF NOT EXISTS lazuli.fence (
    mapping bigint NOT NULL, stripe integer NOT NULL, epoch bigint NOT NULL,
    PRIMARY KEY (mapping, stripe, epoch));
CREATE TABLE IF NOT EXISTS lazuli.moves (
    job bigint NOT NULL, epoch bigint NOT NULL, PRIMARY KEY (job, epoch));
CREATE TABLE IF NOT EXISTS lazuli.progress (
    job bigint NOT NULL, tbl bigint NOT NULL, last text[], copied bigint NOT NULL DEFAULT 0,
    done boolean NOT NULL DEFAULT false, PRIMARY KEY (job, tbl));
CREATE TABLE IF NOT EXISTS lazuli.operations (number bigint PRIMARY KEY);
GRANT USAGE ON SCHEMA lazuli TO PUBLIC;
CREATE OR REPLACE FUNCTION lazuli.escaped(bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $lazuli$
DECLARE rest bytea := $1; made bytea := ''; zero integer;
BEGIN
    LOOP
        zero := position('\\x00'::bytea in rest);
        EXIT WHEN zero = 0;
        made := made || substring(rest from 1 for zero - 1) || '\\x00ff'::bytea;
        rest := substring(rest from zero + 1);
    END LOOP;
    RETURN made || rest || '\\x0001'::bytea;
END $lazuli$;
CREATE OR REPLACE FUNCTION lazuli.mapping_state(wanted bigint) RETURNS text LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $lazuli$
    SELECT epoch || ' ' || state FROM lazuli.local_map WHERE mapping = wanted
$lazuli$;
CREATE OR REPLACE FUNCTION lazuli.guard_session() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $lazuli$
DECLARE session text := current_setting('lazuli.mapping', true);
BEGIN
    PERFORM 1 FROM lazuli.local_map WHERE mapping || '/' || epoch = session;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this session is for mapping %, which is not here any more', session
            USING ERRCODE = 'LZ004', HINT = 'Refresh the map and connect again.';
    END IF;
    RETURN NULL;
END $lazuli$;
CREATE OR REPLACE FUNCTION lazuli.guard_reference() RETURNS trigger LANGUAGE plpgsql AS $lazuli$
BEGIN
    IF current_setting('lazuli.reference', true) IS DISTINCT FROM 'on' THEN
        RAISE EXCEPTION 'table % has the same rows on every shard and is not written on one alone', TG_TABLE_NAME
            USING ERRCODE = 'LZ005', HINT = 'Write it through the SQL endpoint of Lazuli.';
    END IF;
    RETURN NULL;
END $lazuli$;
CREATE OR REPLACE FUNCTION lazuli.guard_single() RETURNS trigger LANGUAGE plpgsql AS $lazuli$
BEGIN
    RAISE EXCEPTION 'table % lives on another shard', TG_TABLE_NAME USING ERRCODE = 'LZ002';
END $lazuli$;
CREATE OR REPLACE FUNCTION lazuli.guard_truncate() RETURNS trigger LANGUAGE plpgsql AS $lazuli$
BEGIN
    RAISE EXCEPTION 'table % is sharded, and TRUNCATE goes around its fence', TG_TABLE_NAME
        USING ERRCODE = 'LZ005', HINT = 'Use DELETE, or `lazuli sql ddl`.';
END $lazuli$;
";

/// Installs or renews everything on a shard that does not depend on mappings. Idempotent.
pub(crate) async fn install(link: &Link, model: &ModelForm, shard: &ShardForm) -> Result<()> {
    check_server(link).await?;
    let found = link
        .text("SELECT CASE WHEN to_regclass('lazuli.identity') IS NULL THEN '' ELSE 'there' END")
        .await?;
    if found == "there" {
        let owner = link.text("SELECT database || '/' || shard FROM lazuli.identity").await?;
        let wanted = format!("{}/{}", model.name, shard.id);
        if !owner.is_empty() && owner != wanted {
            let message = format!(
                "shard {}: this database is already shard {owner}; one database is one shard",
                shard.name
            );
            return Err(Error::exists("sql-shard-taken", message));
        }
    }
    let next_id = next_id_sql(shard.id)
        .ok_or_else(|| Error::too_large("too-many-sql-shards", "there are too many shards"))?;
    let identity = format!(
        "INSERT INTO lazuli.identity (database, shard, name, format) VALUES ({}, {}, {}, {FORMAT}) \
         ON CONFLICT (one) DO UPDATE SET name = excluded.name, format = excluded.format",
        quote_literal(&model.name),
        shard.id,
        quote_literal(&shard.name)
    );
    let grant = "GRANT USAGE ON SEQUENCE lazuli.ids TO PUBLIC";
    let mut script = format!("BEGIN;{SCHEMA}{LEDGER_SCHEMA};{next_id};{grant};{identity};");
    let snapshot = model.snapshot(std::iter::empty())?;
    for map in &snapshot.maps {
        script.push_str(&routes::route_function(map));
        script.push(';');
    }
    script.push_str("COMMIT");
    roll_back(link, link.run(&script).await).await
}

/// Leaves no transaction open behind a script that failed.
pub(crate) async fn roll_back<T>(link: &Link, outcome: Result<T>) -> Result<T> {
    if outcome.is_err() {
        let _ = link.run("ROLLBACK").await;
    }
    outcome
}

/// Refuses servers on which sharding cannot work.
async fn check_server(link: &Link) -> Result<()> {
    let query = "SELECT current_setting('server_version_num') || ' ' || getdatabaseencoding() || ' ' \
         || pg_is_in_recovery() || ' ' \
         || has_parameter_privilege('session_replication_role', 'SET')";
    let told = link.text(query).await?;
    let refuse = |why: String| Err(Error::invalid("bad-sql-shard", why));
    let mut words = told.split(' ');
    let version: u32 = words.next().and_then(|it| it.parse().ok()).unwrap_or(0);
    if version < 150_000 {
        let (name, have) = (&link.name, version / 10_000);
        return refuse(format!("shard {name} is PostgreSQL {have}; 15 is the oldest"));
    }
    if words.next() != Some("UTF8") {
        return refuse(format!("the database of shard {} is not encoded in UTF8", link.name));
    }
    if words.next() != Some("false") {
        return refuse(format!("shard {} is a standby, which takes no writes", link.name));
    }
    if words.next() != Some("true") {
        return refuse(format!(
            "on shard {} our role may not set session_replication_role, which moves need: \
             GRANT SET ON PARAMETER session_replication_role TO the role of its address",
            link.name
        ));
    }
    Ok(())
}

/// Puts the triggers on one table of a shard that its kind needs. Idempotent.
pub(crate) async fn guard_table(
    link: &Link,
    model: &ModelForm,
    table: &TableForm,
    shard: &ShardForm,
) -> Result<()> {
    let name = table.table_name();
    let script = match &table.place {
        PlaceForm::Sharded { map, columns } => {
            let map = model.map(*map)?.map(Vec::new())?;
            let columns: Vec<_> = columns.iter().map(|it| it.column()).collect::<Result<_>>()?;
            let function = fence_function(table.id, &map, &columns);
            let fence = row_trigger(&name, FENCE_TRIGGER, &format!("lazuli.fence_{}()", table.id));
            let truncate = statement_trigger(&name, TRUNCATE_TRIGGER, "TRUNCATE", "guard_truncate");
            let session = session_trigger(&name);
            format!("{function};{fence};{truncate};{session}")
        }
        PlaceForm::Reference => {
            let events = "INSERT OR UPDATE OR DELETE OR TRUNCATE";
            statement_trigger(&name, FENCE_TRIGGER, events, "guard_reference")
        }
        PlaceForm::Single { shard: home } if *home == shard.id => return Ok(()),
        PlaceForm::Single { .. } => {
            let regclass = format!("SELECT to_regclass({})::text", quote_literal(&quoted(&name)));
            if link.text(&regclass).await?.is_empty() {
                return Ok(());
            }
            let events = "INSERT OR UPDATE OR DELETE OR TRUNCATE";
            statement_trigger(&name, FENCE_TRIGGER, events, "guard_single")
        }
    };
    roll_back(link, link.run(&format!("BEGIN;{script};COMMIT")).await).await
}

/// Takes the triggers off again, for a table that is sharded no more.
pub(crate) async fn unguard_table(link: &Link, table: &TableForm) -> Result<()> {
    let name = quoted(&table.table_name());
    let script = format!(
        "BEGIN; DROP TRIGGER IF EXISTS {FENCE_TRIGGER} ON {name}; \
         DROP TRIGGER IF EXISTS {TRUNCATE_TRIGGER} ON {name}; \
         DROP TRIGGER IF EXISTS {SESSION_TRIGGER} ON {name}; \
         DROP FUNCTION IF EXISTS lazuli.fence_{}(); COMMIT",
        table.id
    );
    roll_back(link, link.run(&script).await).await
}

fn row_trigger(table: &TableName, trigger: &str, function: &str) -> String {
    let table = quoted(table);
    format!(
        "CREATE OR REPLACE TRIGGER {trigger} BEFORE INSERT OR UPDATE OR DELETE ON {table} \
         FOR EACH ROW EXECUTE FUNCTION {function}"
    )
}

fn statement_trigger(table: &TableName, trigger: &str, events: &str, function: &str) -> String {
    let table = quoted(table);
    format!(
        "CREATE OR REPLACE TRIGGER {trigger} BEFORE {events} ON {table} \
         FOR EACH STATEMENT EXECUTE FUNCTION lazuli.{function}()"
    )
}

/// It costs sessions nothing that name no mapping.
fn session_trigger(table: &TableName) -> String {
    let table = quoted(table);
    format!(
        "CREATE OR REPLACE TRIGGER {SESSION_TRIGGER} BEFORE INSERT OR UPDATE OR DELETE ON {table} \
         FOR EACH STATEMENT WHEN (current_setting('lazuli.mapping', true) <> '') \
         EXECUTE FUNCTION lazuli.guard_session()"
    )
}

pub(crate) fn quoted(name: &TableName) -> String {
    format!("{}.{}", quote_ident(&name.schema), quote_ident(&name.name))
}

/// The function that checks every row of one sharded table. The lookup stands in each function by itself, because a call of
/// another function with settings of its own would cost as much as the lookup.
fn fence_function(table: u32, map: &ShardMap, columns: &[(String, ColumnType)]) -> String {
    let old = routes::route_of(map, columns, "OLD");
    let new = routes::route_of(map, columns, "NEW");
    let missing: Vec<String> =
        columns.iter().map(|(name, _)| format!("NEW.{} IS NULL", quote_ident(name))).collect();
    let missing = missing.join(" OR ");
    let map = map.id;
    format!(
        "CREATE OR REPLACE FUNCTION lazuli.fence_{table}() RETURNS trigger LANGUAGE plpgsql \
         SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $lazuli$
DECLARE
    route bytea; other bytea; held record; session text;
BEGIN
    IF TG_OP <> 'INSERT' THEN route := {old}; END IF;
    IF TG_OP <> 'DELETE' THEN
        IF {missing} THEN
            RAISE EXCEPTION 'a row of % without a sharding key has no shard', TG_TABLE_NAME USING ERRCODE = '23502';
        END IF;
        other := {new};
        IF route IS NULL THEN route := other; END IF;
    END IF;
    LOOP
        SELECT mapping, epoch, state, high INTO held FROM lazuli.local_map
            WHERE map = {map} AND low <= route ORDER BY low DESC LIMIT 1;
        IF NOT FOUND OR (held.high IS NOT NULL AND route >= held.high) THEN
            RAISE EXCEPTION 'a row of % belongs on another shard', TG_TABLE_NAME
                USING ERRCODE = 'LZ002', HINT = 'Connect to the SQL endpoint of Lazuli, or refresh the map.';
        ELSIF held.state = 'fenced' THEN
            RAISE EXCEPTION 'a row of % is moving to another shard', TG_TABLE_NAME USING ERRCODE = 'LZ001', HINT = 'Try again.';
        ELSIF held.state <> 'open' THEN
            RAISE EXCEPTION 'the mapping of a row of % is %', TG_TABLE_NAME, held.state USING ERRCODE = 'LZ003';
        END IF;
        session := current_setting('lazuli.mapping', true);
        IF session <> '' AND session <> held.mapping || '/' || held.epoch THEN
            RAISE EXCEPTION 'this session is for mapping %, and the row is in %/%', session, held.mapping, held.epoch
                USING ERRCODE = 'LZ004', HINT = 'Refresh the map and connect again.';
        END IF;
        PERFORM 1 FROM lazuli.fence WHERE mapping = held.mapping AND stripe = pg_backend_pid() % {STRIPES}
            AND epoch = held.epoch FOR KEY SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'a row of % is moving to another shard', TG_TABLE_NAME USING ERRCODE = 'LZ001', HINT = 'Try again.';
        END IF;
        EXIT WHEN other IS NULL OR route = other;
        route := other;
    END LOOP;
    IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
    RETURN NEW;
END $lazuli$"
    )
}
