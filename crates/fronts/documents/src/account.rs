//! The account document, by which clients learn where to send their requests, and the certificate that they may trust.

use lazuli_http::{Request, Response, StatusCode};
use lazuli_value::{Object, Value};

use crate::error::{Fault, Result};
use crate::response;

/// The one region there is.
const REGION: &str = "Local";
/// The longest host that is repeated to a client.
const HOST_BYTES_MAX: usize = 300;

/// What clients with a query engine of their own want to know of ours.
const QUERY_ENGINE: &str = concat!(
    r#"{"maxSqlQueryInputLength":524288,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":2000,"#,
    r#""maxLogicalOrPerSqlQuery":2000,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,"#,
    r#""queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,"#,
    r#""sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,"#,
    r#""sqlAllowLike":true,"sqlAllowGroupByClause":true,"maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,"#,
    r#""sqlDisableQueryILOptimization":false,"sqlDisableFilterPlanOptimization":false,"sqlAllowTop":true,"#,
    r#""enableSpatialIndexing":true}"#
);

/// The account as the client addressed it: it goes on with the host and the scheme that it came by, whatever proxies and
/// port mappings are between.
pub(crate) fn read(account: &str, request: &Request) -> Response {
    let mut body = Object::new();
    body.insert("_self", "".into());
    body.insert("id", account.into());
    body.insert("_rid", account.into());
    body.insert("media", "//media/".into());
    body.insert("addresses", "//addresses/".into());
    body.insert("_dbs", "//dbs/".into());
    if let Some(endpoint) = endpoint(request) {
        let location = || Value::Array(vec![location(&endpoint)]);
        body.insert("writableLocations", location());
        body.insert("readableLocations", location());
    }
    body.insert("enableMultipleWriteLocations", false.into());
    body.insert("userReplicationPolicy", replicas());
    body.insert("systemReplicationPolicy", replicas());
    let mut consistency = Object::new();
    consistency.insert("defaultConsistencyLevel", "Session".into());
    body.insert("userConsistencyPolicy", Value::Object(consistency));
    let mut reads = Object::new();
    reads.insert("primaryReadCoefficient", 1.into());
    reads.insert("secondaryReadCoefficient", 1.into());
    body.insert("readPolicy", Value::Object(reads));
    body.insert("queryEngineConfiguration", QUERY_ENGINE.into());
    response::json(StatusCode::OK, &Value::Object(body))
}

/// The address that the client used. None if it did not say.
fn endpoint(request: &Request) -> Option<String> {
    let host = request.header("host").filter(|host| host.len() <= HOST_BYTES_MAX)?;
    let scheme = if request.secure { "https" } else { "http" };
    Some(format!("{scheme}://{host}/"))
}

fn location(endpoint: &str) -> Value {
    let mut location = Object::new();
    location.insert("name", REGION.into());
    location.insert("databaseAccountEndpoint", endpoint.into());
    Value::Object(location)
}

fn replicas() -> Value {
    let mut policy = Object::new();
    policy.insert("asyncReplication", false.into());
    policy.insert("minReplicaSetSize", 1.into());
    policy.insert("maxReplicasetSize", 1.into());
    Value::Object(policy)
}

pub(crate) fn certificate(pem: Option<&str>) -> Result<Response> {
    let pem = pem.ok_or_else(Fault::not_found)?;
    Ok(Response::new(StatusCode::OK)
        .with("content-type", "application/x-pem-file")
        .with_body(pem.to_owned()))
}
