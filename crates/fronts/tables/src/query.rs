//! Query entities: the filter says where to look and what to keep, the answer ends with where to go on.

use std::sync::Arc;
use std::time::Instant;

use lazuli_engine::PageLimit;
use lazuli_http::{Response, StatusCode};
use lazuli_shapes::record::{Filter as Keep, Query, RecordPage, RecordRange, RecordRef, Records};

use crate::entity::Properties;
use crate::error::{Result, Subject, from_core};
use crate::filter::{Filter, Plan};
use crate::request::EntityQuery;
use crate::response::{EntityWriter, entities_bytes};
use crate::tables::container;
use crate::{Call, Front, access, response, token};

pub(crate) async fn query(
    front: &Front,
    call: &Call,
    table: &str,
    query: EntityQuery,
) -> Result<Response> {
    let (limits, began) = (&front.limits, Instant::now());
    let name = container(&call.target.account, table);
    let most = query.top.unwrap_or(limits.page_items_max);
    let filter = access::narrow(&call.access, query.filter);
    let plan = match most {
        0 => Plan::Nothing,
        _ => Plan::of(filter.as_ref()),
    };
    let keep = filter.filter(|filter| !plan.is_exact(filter)).map(keep);
    let mut body = response::begin_list(call, table);
    let mut writer = EntityWriter::new(call, table, query.select.as_deref());
    let mut next = query.after;
    let (mut found, mut examined) = (0, 0);
    loop {
        let limit = PageLimit { items: most - found, bytes: limits.page_bytes_max };
        let after = next.take();
        let page = page(&front.records, &name, &plan, keep.clone(), limit, after)
            .await
            .map_err(|error| from_core(&error, Subject::Entities))?;
        body.reserve(entities_bytes(&page.records));
        for record in page.records {
            if found > 0 {
                body.push(b',');
            }
            writer.write(&mut body, &record)?;
            found += 1;
        }
        next = page.next;
        examined += page.examined;
        let full = found >= most
            || body.len() >= limits.page_bytes_max
            || examined >= limits.scan_entities_max as u64
            || began.elapsed() >= limits.scan_time_max;
        if next.is_none() || full {
            break;
        }
    }
    let answer = response::json(StatusCode::OK, call, response::end_list(body));
    Ok(match next.filter(|_| most > 0) {
        Some((partition_key, row_key)) => answer
            .with("x-ms-continuation-nextpartitionkey", token::write(&partition_key))
            .with("x-ms-continuation-nextrowkey", token::write(&row_key)),
        None => answer,
    })
}

/// One page of records that can be and are kept.
async fn page(
    records: &Records,
    name: &str,
    plan: &Plan,
    filter: Option<Keep>,
    limit: PageLimit,
    after: Option<(String, String)>,
) -> lazuli_engine::Result<RecordPage> {
    let range = match plan.clone() {
        // An empty range still tells a missing table from an empty answer.
        Plan::Nothing => {
            let nowhere = || Some(String::new());
            RecordRange::Partitions { from: String::new(), to: nowhere() }
        }
        Plan::Point(partition_key, row_key) => {
            RecordRange::Rows { partition_key, to: Some(format!("{row_key}\0")), from: row_key }
        }
        Plan::Rows(partition_key, rows) => {
            RecordRange::Rows { partition_key, from: rows.from, to: rows.to }
        }
        Plan::Partitions(keys) => RecordRange::Partitions { from: keys.from, to: keys.to },
        Plan::Everything => RecordRange::All,
    };
    records.query(name, &Query { range, filter, limit, after }).await
}

/// The filter as the shape takes it. A record that can't be read is kept, so that writing the answer reports it.
fn keep(filter: Filter) -> Keep {
    Arc::new(move |record: &RecordRef<'_>| {
        Properties::open(record.payload).is_err()
            || filter.matches(&|name: &str| response::property(record, name))
    })
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
