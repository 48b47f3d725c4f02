//! Plans of queries for clients that run them range by range: what to send to each range, and what to do with the rows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lazuli_http::{Response, StatusCode};
use lazuli_query::partitioned::{KeyHashRange, execution_info, required_features};
use lazuli_query::plan::{Access, IndexScan, Plan, Step};
use lazuli_shapes::document::{PartitionKey, epk_text};
use lazuli_value::{Object, Value};

use crate::address::ContainerName;
use crate::containers::Opened;
use crate::error::{Fault, Result};
use crate::items::{of_container, parse};
use crate::query::{Prepared, computed, not_answered, prepare, refused};
use crate::{Call, Front, charge, response};

pub(crate) async fn read(
    front: &Front,
    call: &Call,
    container: &ContainerName,
    body: &[u8],
) -> Result<Response> {
    let opened = front.open(call, container).await?;
    let prepared = prepare(&parse(body)?, &computed(&opened.resource.body)?)?;
    let given = &call.headers.query_features;
    let has = |feature: &str| given.split(',').any(|one| one.trim() == feature);
    let missing = required_features(prepared.query.select());
    if let Some(missing) = missing.into_iter().find(|feature| !has(feature)) {
        return Err(Fault::bad_request(format!(
            "Query contains the following features, which the calling client does not support: {missing}"
        )));
    }
    let key = key(front, call, &opened, &prepared).await?;
    let (ranges, is_one_key) = match &key {
        Some(key) => {
            let epk = epk_text(&opened.collection.epk(key)?);
            (KeyHashRange { min: epk.clone(), max: epk, is_max_inclusive: true }, true)
        }
        None => {
            let (min, max) = (String::new(), "FF".to_owned());
            (KeyHashRange { min, max, is_max_inclusive: false }, false)
        }
    };
    let (query, parameters) = (&prepared.query, &prepared.parameters);
    let info = execution_info(query, parameters, &[ranges], is_one_key).map_err(refused)?;
    let response = response::json(StatusCode::OK, &info);
    Ok(response::charged(of_container(&opened, response, None), charge::METADATA_READ))
}

/// The one partition key that a query is about, by its header or its filter.
async fn key(
    front: &Front,
    call: &Call,
    opened: &Opened,
    prepared: &Prepared,
) -> Result<Option<PartitionKey>> {
    let levels = opened.collection.definition().levels();
    let part = front.part(call, opened).await?;
    if let lazuli_shapes::document::Scope::Key(key) = &part.scope {
        return Ok(Some(key.clone()).filter(|key| key.0.len() == levels));
    }
    let documents = &front.documents;
    let plan = documents.plan(&opened.collection, &prepared.checked, &part.scope).await;
    let plan = plan.map_err(not_answered)?;
    if plan.partition_key.len() != levels {
        return Ok(None);
    }
    let undefined = || Value::Object(Object::new());
    let values: Vec<Value> =
        plan.partition_key.into_iter().map(|value| value.unwrap_or_else(undefined)).collect();
    Ok(Some(PartitionKey::from_values(&values)?))
}

/// Which indexes a query has used, as clients decode it.
pub(crate) fn utilization(plan: &Plan) -> String {
    let scans: Vec<&IndexScan> = match &plan.access {
        Access::Index(scan) => vec![scan],
        Access::AnyOf(scans) => scans.iter().collect(),
        Access::Nothing | Access::OneRow | Access::Items | Access::Composite { .. } => Vec::new(),
    };
    let single = scans.iter().map(|scan| {
        let mut one = Object::new();
        one.insert("IndexSpec", format!("{}/?", path(scan)).into());
        Value::Object(one)
    });
    let of = |single: Vec<Value>| {
        let mut indexes = Object::new();
        indexes.insert("SingleIndexes", Value::Array(single));
        indexes.insert("CompositeIndexes", Value::Array(Vec::new()));
        Value::Object(indexes)
    };
    let mut body = Object::new();
    body.insert("UtilizedIndexes", of(single.collect()));
    body.insert("PotentialIndexes", of(Vec::new()));
    STANDARD.encode(Value::Object(body).to_json())
}

fn path(scan: &IndexScan) -> String {
    let steps = scan.path.0.iter().map(|step| match step {
        Step::Name(name) => format!("/{name}"),
        Step::Element => "/[]".to_owned(),
    });
    steps.collect()
}
