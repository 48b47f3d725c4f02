//! Outboxes: tables on the source into which triggers write the keys of rows that change while they are copied.
//!
//! A trigger for each statement sees all its rows at once, which costs half of what a trigger for each row does. On a partitioned table
//! such a trigger would miss statements that name a partition, so there it fires for each row.

use lazuli_store::Result;

use super::{MovedTable, Mover, outbox_columns, with_short_lock};
use crate::shape::Shape;

const EVENTS: [(&str, &str, &str); 3] = [
    ("i", "INSERT", "NEW TABLE AS new_rows"),
    ("u", "UPDATE", "OLD TABLE AS old_rows NEW TABLE AS new_rows"),
    ("d", "DELETE", "OLD TABLE AS old_rows"),
];

/// Makes the outbox of a table and its triggers. Idempotent. From the commit on, every change of a row in the range leaves its key.
pub(super) async fn make(mover: &Mover<'_>, table: &MovedTable) -> Result<()> {
    let key = &table.shape.key;
    let columns: Vec<String> = key
        .iter()
        .enumerate()
        .map(|(nth, column)| format!("k{} {}", nth + 1, column.sql_type))
        .collect();
    let made = format!(
        "CREATE TABLE IF NOT EXISTS {} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {})",
        table.outbox,
        columns.join(", ")
    );
    let function = match table.shape.is_partitioned {
        true => row_function(mover, table),
        false => statement_function(mover, table),
    };
    let mut statement = format!("{made}; {function}");
    for (letter, event, tables) in EVENTS {
        let trigger = trigger(mover.job, letter);
        let (each, referencing) = match table.shape.is_partitioned {
            true => ("ROW", String::new()),
            false => ("STATEMENT", format!("REFERENCING {tables}")),
        };
        statement.push_str(&format!(
            "; CREATE OR REPLACE TRIGGER {trigger} AFTER {event} ON {} {referencing} \
             FOR EACH {each} EXECUTE FUNCTION {}()",
            table.shape.table(),
            function_name(mover.job, table)
        ));
    }
    with_short_lock(mover, &mover.source, &statement).await
}

/// Takes triggers and outbox away again. Idempotent.
pub(super) async fn unmake(mover: &Mover<'_>, table: &MovedTable) -> Result<()> {
    let mut statement = String::new();
    for (letter, _, _) in EVENTS {
        let trigger = trigger(mover.job, letter);
        statement
            .push_str(&format!("DROP TRIGGER IF EXISTS {trigger} ON {}; ", table.shape.table()));
    }
    statement.push_str(&format!(
        "DROP FUNCTION IF EXISTS {}(); DROP TABLE IF EXISTS {}",
        function_name(mover.job, table),
        table.outbox
    ));
    with_short_lock(mover, &mover.source, &statement).await
}

fn trigger(job: u64, letter: &str) -> String {
    format!("zz_lazuli_out_{job}_{letter}")
}

fn function_name(job: u64, table: &MovedTable) -> String {
    format!("lazuli.changed_{job}_{}", table.form.id)
}

fn head(mover: &Mover<'_>, table: &MovedTable) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER \
         SET search_path = pg_catalog, pg_temp AS $lazuli$ BEGIN ",
        function_name(mover.job, table)
    )
}

fn statement_function(mover: &Mover<'_>, table: &MovedTable) -> String {
    let (key, outbox) = (&table.shape.key, &table.outbox);
    let into = format!("INSERT INTO {outbox} ({})", outbox_columns(key));
    let from = |rows: &str| {
        format!(
            "SELECT {} FROM {rows} t WHERE {}",
            Shape::names(key, "t"),
            mover.within(table, "t")
        )
    };
    let (old, new) = (from("old_rows"), from("new_rows"));
    format!(
        "{} IF TG_OP = 'INSERT' THEN {into} {new}; \
         ELSIF TG_OP = 'DELETE' THEN {into} {old}; \
         ELSE {into} {old} UNION {new}; END IF; RETURN NULL; END $lazuli$",
        head(mover, table)
    )
}

fn row_function(mover: &Mover<'_>, table: &MovedTable) -> String {
    let (key, outbox) = (&table.shape.key, &table.outbox);
    let columns = outbox_columns(key);
    let from = |row: &str| {
        format!(
            "IF {} THEN INSERT INTO {outbox} ({columns}) VALUES ({}); END IF;",
            mover.within(table, row),
            Shape::names(key, row)
        )
    };
    format!(
        "{} IF TG_OP <> 'INSERT' THEN {} END IF; IF TG_OP <> 'DELETE' THEN {} END IF; \
         RETURN NULL; END $lazuli$",
        head(mover, table),
        from("OLD"),
        from("NEW")
    )
}
