//! How much a range takes up on disk: measured if it is small, and otherwise estimated by the server's statistics.

use std::fmt::Write;

use lazuli_store::KeyRange;
use tokio_postgres::SimpleQueryMessage;
use tokio_postgres::types::ToSql;

use crate::fault::Fault;
use crate::key::Bounds;
use crate::limits::{ROW_OVERHEAD_BYTES, SAMPLE_ROWS};
use crate::session::Session;
use crate::sql::Sql;

pub(crate) async fn size(session: &Session, schema: &str, range: &KeyRange) -> Result<u64, Fault> {
    let [sample] = session.prepared([Sql::Sample]).await?;
    let bounds = Bounds::of(range);
    let (start, start_tail) = (&bounds.start.0[..], &bounds.start.1[..]);
    let (end, end_tail) = (&bounds.end.0[..], &bounds.end.1[..]);
    let most = SAMPLE_ROWS as i64;
    let parameters: [&(dyn ToSql + Sync); 5] = [&start, &start_tail, &end, &end_tail, &most];
    let row = session.client.query_one(&sample, &parameters).await?;
    let (rows, bytes): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let bytes = bytes as u64 + rows as u64 * ROW_OVERHEAD_BYTES;
    if rows < most {
        return Ok(bytes);
    }
    let estimated = estimated_rows(session, schema, start, end).await?;
    Ok(bytes.max(estimated.saturating_mul(bytes / rows as u64)))
}

/// What the planner expects. The bounds are part of the text, because the plan of a prepared statement does not look at them.
async fn estimated_rows(
    session: &Session,
    schema: &str,
    start: &[u8],
    end: &[u8],
) -> Result<u64, Fault> {
    let query = format!(
        "EXPLAIN SELECT 1 FROM {schema}.kv WHERE p >= {} AND p < {}",
        literal(start),
        literal(end)
    );
    let answer = session.client.simple_query(&query).await?;
    let line = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    Ok(line.and_then(rows_of).unwrap_or(0))
}

fn literal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2 + 12);
    text.push_str("'\\x");
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.push_str("'::bytea");
    text
}

/// The estimate in the first line of a plan.
fn rows_of(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once(" rows=")?;
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_read_from_a_plan() {
        let line = "Index Only Scan using kv_pkey on kv  (cost=0.42..2660.42 rows=1500 width=4)";
        assert_eq!(rows_of(line), Some(1500));
        assert_eq!(rows_of("Result"), None);
        assert_eq!(literal(b"a\xff"), "'\\x61ff'::bytea");
    }
}
