//! Queries over items and over resources: text in, one page of rows out.
//!
//! The server runs queries over several partitions itself. Clients that want to do so send the range with each request, and
//! ask for a plan before.

use std::sync::Arc;
use std::time::Instant;

use lazuli_engine::KeyRange;
use lazuli_http::{Response, StatusCode};
use lazuli_query::evaluate::Context;
use lazuli_query::execute::{Execution, Page, PageOptions, Wants};
use lazuli_query::tree::Expression;
use lazuli_query::{
    Checked, ComputedProperties, Continuation, Parameters, Query, QueryError, QueryErrors,
};
use lazuli_shapes::document::{QueryFailure, QueryPage, QueryRequest, Scope};
use lazuli_value::{Value, View, json};

use crate::address::ContainerName;
use crate::charge::{self, Work};
use crate::containers::Opened;
use crate::error::{Fault, Result};
use crate::feed::{self, Part, position, position_text};
use crate::items::{from_core, of_container, parse};
use crate::limits::QUERY_BYTES_MAX;
use crate::{Call, Front, plan, response, scripts};

/// A query that can be run.
pub(crate) struct Prepared {
    pub(crate) query: Query,
    pub(crate) parameters: Parameters,
    pub(crate) checked: Arc<Checked>,
    pub(crate) fingerprint: u64,
}

/// Reads `{"query": "…", "parameters": [{"name": "@a", "value": 1}]}`.
pub(crate) fn prepare(body: &Value, computed: &ComputedProperties) -> Result<Prepared> {
    let (text, parameters) = text_of(body)?;
    prepare_text(&text, parameters, computed)
}

pub(crate) fn prepare_text(
    text: &str,
    parameters: Parameters,
    computed: &ComputedProperties,
) -> Result<Prepared> {
    let query = Query::parse(text).map_err(refused)?;
    let checked = Arc::new(query.check_with(&parameters, computed).map_err(refused)?);
    let fingerprint = query.fingerprint(&parameters);
    Ok(Prepared { query, parameters, checked, fingerprint })
}

/// The properties that the definition of a container computes.
pub(crate) fn computed(definition: &Value) -> Result<Vec<(String, Expression)>> {
    let Value::Object(definition) = definition else { return Ok(Vec::new()) };
    let Some(Value::Array(list)) = definition.get("computedProperties") else {
        return Ok(Vec::new());
    };
    let one = |value: &Value| match value {
        Value::Object(one) => match (one.get("name"), one.get("query")) {
            (Some(Value::String(name)), Some(Value::String(text))) => {
                let query = Query::parse(text).and_then(|query| query.computed_property());
                Ok((name.clone(), query.map_err(refused)?))
            }
            _ => Err(Fault::bad_input("a computed property needs a name and a query")),
        },
        _ => Err(Fault::bad_input("a computed property is an object")),
    };
    list.iter().map(one).collect()
}

fn text_of(body: &Value) -> Result<(String, Parameters)> {
    let bad = || Fault::bad_request("The body of a query must be an object with a text 'query'.");
    let (text, given) = match body {
        // The oldest clients send the text alone.
        Value::String(text) => (text, None),
        Value::Object(body) => match body.get("query") {
            Some(Value::String(text)) => (text, body.get("parameters")),
            _ => return Err(bad()),
        },
        _ => return Err(bad()),
    };
    if text.len() > QUERY_BYTES_MAX {
        return Err(Fault::bad_request(format!(
            "The SQL query text exceeded the maximum limit of {QUERY_BYTES_MAX} bytes."
        )));
    }
    let mut parameters = Parameters::new();
    match given {
        None | Some(Value::Null) => {}
        Some(Value::Array(given)) => {
            for one in given {
                let Value::Object(one) = one else { return Err(bad()) };
                let Some(Value::String(name)) = one.get("name") else { return Err(bad()) };
                parameters.insert(name.clone(), one.get("value").cloned().unwrap_or(Value::Null));
            }
        }
        Some(_) => return Err(bad()),
    }
    Ok((text.clone(), parameters))
}

pub(crate) fn refused(errors: QueryErrors) -> Fault {
    Fault::bad_request(errors.to_json()).charged(charge::MISS)
}

pub(crate) fn failed(error: QueryError) -> Fault {
    refused(QueryErrors::from(error))
}

/// Runs a query over values that are all there.
pub(crate) fn over_values(
    call: &Call,
    plural: &str,
    owner: &str,
    rows: Vec<Value>,
    body: &Value,
) -> Result<Response> {
    let prepared = prepare(body, &[])?;
    let continuation = decode(call.headers.continuation.as_deref())?;
    let rows_max = call.headers.items_max.unwrap_or(PageOptions::default().rows);
    let page = page_of(&prepared, call.received_ms, rows_max, &rows, continuation)?;
    let shown: Result<Vec<Value>> = page.rows.iter().map(|row| value(row)).collect();
    let body = crate::resources::feed(owner, plural, shown?);
    let response =
        response::json(StatusCode::OK, &body).with("x-ms-item-count", page.rows.len().to_string());
    let response = response::charged(response, charge::METADATA_READ);
    Ok(match page.continuation {
        Some(next) => response.with("x-ms-continuation", position_text(&next.encode())),
        None => response,
    })
}

/// A page of a query over values.
pub(crate) fn page_of(
    prepared: &Prepared,
    now_ms: u64,
    rows_max: usize,
    values: &[Value],
    continuation: Option<Continuation>,
) -> Result<Page> {
    let after = continuation.clone();
    let options = PageOptions::of_rows(rows_max);
    let context = Context::new(now_ms as i64, now_ms);
    let checked = prepared.checked.clone();
    let begun =
        Execution::new(checked, prepared.fingerprint, context, options, false, continuation);
    let mut execution = begun.map_err(failed)?;
    if execution.reads_nothing() {
        execution.push_nothing().map_err(failed)?;
        return execution.finish(true).map_err(failed);
    }
    let mut is_end = true;
    for (place, value) in (0_u64..).zip(values) {
        let place = place.to_be_bytes();
        if after.as_ref().is_some_and(|after| after.position.is_behind(&place)) {
            continue;
        }
        let encoded = value.encode();
        let view = View::parse(&encoded).map_err(|error| Fault::internal(error.to_string()))?;
        if execution.push(&place, view).map_err(failed)? == Wants::NoMore {
            is_end = false;
            break;
        }
    }
    execution.finish(is_end).map_err(failed)
}

pub(crate) fn value(row: &[u8]) -> Result<Value> {
    let view = View::parse(row).map_err(|error| Fault::internal(error.to_string()))?;
    Ok(view.to_value())
}

fn decode(text: Option<&str>) -> Result<Option<Continuation>> {
    let Some(text) = text else { return Ok(None) };
    Continuation::decode(&position(text)?).map(Some).map_err(failed)
}

pub(crate) async fn run(
    front: &Front,
    call: &Call,
    container: &ContainerName,
    body: &[u8],
) -> Result<Response> {
    let began = Instant::now();
    let opened = front.open(call, container).await?;
    let part = front.part(call, &opened).await?;
    let prepared = prepare(&parse(body)?, &computed(&opened.resource.body)?)?;
    check_scope(front, call, &opened, &part, &prepared).await?;
    let budget = front.admit_part(call, &opened, &part).await?;
    let compiled = began.elapsed();
    let QueryPage { page, plan, work } = page(front, call, &opened, &part, &prepared).await?;
    let bytes: usize = page.rows.iter().map(Vec::len).sum();
    let mut out = String::with_capacity(bytes + bytes / 4 + 1024);
    feed::begin(&mut out, &opened);
    for (n, row) in page.rows.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        json::write(View::trusted(row).into(), &mut out);
    }
    feed::end(&mut out, page.rows.len());
    let ranges = if part.is_whole { front.ranges(&opened).await?.len() } else { 1 };
    let work = Work {
        partitions: if plan.partition_key.is_empty() { ranges } else { 1 },
        items_loaded: work.items_read,
        bytes_loaded: work.bytes_read,
        index_entries: work.entries_read,
        bytes_out: out.len() as u64,
    };
    let units = charge::query(&work);
    budget.take(units);
    let seen = feed::seen(front, &opened, part.range).await?;
    let mut response =
        response::text(StatusCode::OK, out).with("x-ms-item-count", page.rows.len().to_string());
    if call.headers.wants_metrics {
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1_000.0;
        let (rows, bytes) = (page.rows.len(), work.bytes_out);
        let (items, loaded) = (work.items_loaded, work.bytes_loaded);
        let ratio = if items == 0 { 1.0 } else { rows as f64 / items as f64 };
        let all = ms(began.elapsed());
        response = response.with(
            "x-ms-documentdb-query-metrics",
            format!(
                "totalExecutionTimeInMs={all:.2};queryCompileTimeInMs={:.2};\
                 queryLogicalPlanBuildTimeInMs=0.00;queryPhysicalPlanBuildTimeInMs=0.00;\
                 queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs={:.2};indexLookupTimeInMs=0.00;\
                 instructionCount=0;documentLoadTimeInMs=0.00;systemFunctionExecuteTimeInMs=0.00;\
                 userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount={items};\
                 retrievedDocumentSize={loaded};outputDocumentCount={rows};outputDocumentSize={bytes};\
                 writeOutputTimeInMs=0.00;indexUtilizationRatio={:.2}",
                ms(compiled),
                all - ms(compiled),
                ratio.min(1.0)
            ),
        );
    }
    if call.headers.wants_index_metrics {
        response = response.with("x-ms-cosmos-index-utilization", plan::utilization(&plan));
    }
    let response = response::charged(of_container(&opened, response, seen), units);
    Ok(match page.continuation {
        Some(next) => response.with("x-ms-continuation", position_text(&next.encode())),
        None => response,
    })
}

/// Refuses a query over several partitions that the client did not allow.
async fn check_scope(
    front: &Front,
    call: &Call,
    opened: &Opened,
    part: &Part,
    prepared: &Prepared,
) -> Result<()> {
    if !part.is_whole || call.headers.cross_partition {
        return Ok(());
    }
    let documents = &front.documents;
    let plan = documents.plan(&opened.collection, &prepared.checked, &part.scope).await;
    let levels = opened.collection.definition().levels();
    if plan.map_err(not_answered)?.partition_key.len() == levels {
        return Ok(());
    }
    Err(Fault::bad_request(
        "Cross partition query is required but disabled. Please set \
         x-ms-documentdb-query-enablecrosspartition to true, specify x-ms-documentdb-partitionkey, \
         or revise your query to avoid this exception.",
    ))
}

/// The errors of a query that was begun.
pub(crate) fn not_answered(failure: QueryFailure) -> Fault {
    match failure {
        QueryFailure::Core(error) => from_core(error),
        QueryFailure::Query(error) => failed(error),
    }
}

/// One page of a query over items.
async fn page(
    front: &Front,
    call: &Call,
    opened: &Opened,
    part: &Part,
    prepared: &Prepared,
) -> Result<QueryPage> {
    let limits = &front.parts.limits;
    let mut context = Context::new(call.received_ms as i64, call.received_ms);
    if prepared.query.text().contains("udf") {
        context.functions = Some(scripts::functions(front, call, opened).await?);
    }
    let request = QueryRequest {
        checked: prepared.checked.clone(),
        fingerprint: prepared.fingerprint,
        context,
        options: PageOptions {
            bytes: limits.page_bytes_max,
            has_null_extremes: part.is_whole,
            ..PageOptions::of_rows(limits.page_items(call.headers.items_max))
        },
        scope: part.scope.clone(),
        continuation: decode(call.headers.continuation.as_deref())?,
        deadline: Some(front.documents.engine().env().clock.uptime() + limits.query_time_max),
        is_strict: true,
    };
    let documents = &front.documents;
    documents.query(&opened.collection, request).await.map_err(not_answered)
}

/// How many items a container has.
pub(crate) async fn count(front: &Front, call: &Call, opened: &Opened) -> Result<u64> {
    let prepared = prepare_text("SELECT VALUE COUNT(1) FROM c", Parameters::new(), &[])?;
    let scope = Scope::Routes(KeyRange::all());
    let part = Part { scope, range: None, is_whole: true };
    let counted = page(front, call, opened, &part, &prepared).await?;
    match counted.page.rows.first().map(|row| value(row)).transpose()? {
        Some(Value::Int64(count)) => Ok(u64::try_from(count).unwrap_or(0)),
        _ => Ok(0),
    }
}
