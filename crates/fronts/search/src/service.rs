//! Statistics of the whole service: what it holds, and its limits. Programs ask for them to see whether the service is up.

use std::sync::Arc;

use lazuli_http::{Response, StatusCode};
use lazuli_index::RecordKind;
use serde_json::{Value, json};

use crate::error::Result;
use crate::limits::{ALIASES_MAX, INDEXES_MAX, SYNONYM_MAPS_MAX};
use crate::{Call, Front, indexes, response};

pub(crate) async fn statistics(front: &Front, call: &Call) -> Result<Response> {
    let account = &call.sender.account;
    let all = front.indexes.indexes(account).await?;
    let count = all.len();
    let (mut documents, mut bytes, mut vector_bytes) = (0, 0, 0);
    for index in all {
        let figures = indexes::figures(front, call, &Arc::new(index)).await?;
        let number = |name: &str| figures[name].as_u64().unwrap_or(0);
        documents += number("documentCount");
        bytes += number("storageSize");
        vector_bytes += number("vectorIndexSize");
    }
    let synonyms = front.indexes.records(account, RecordKind::SynonymMap).await?.len();
    let aliases = front.indexes.records(account, RecordKind::Alias).await?.len();
    let counter = |usage: u64, quota: Option<usize>| json!({ "usage": usage, "quota": quota });
    let none = || -> Value { json!({ "usage": 0, "quota": 0 }) };
    let body = json!({
        "counters": {
            "aliasesCount": counter(aliases as u64, Some(ALIASES_MAX)),
            "documentCount": counter(documents, None),
            "indexesCount": counter(count as u64, Some(INDEXES_MAX)),
            "indexersCount": none(),
            "dataSourcesCount": none(),
            "storageSize": counter(bytes, None),
            "synonymMaps": counter(synonyms as u64, Some(SYNONYM_MAPS_MAX)),
            "skillsetCount": none(),
            "vectorIndexSize": counter(vector_bytes, None),
        },
        "limits": {
            "maxFieldsPerIndex": 1000,
            "maxFieldNestingDepthPerIndex": 10,
            "maxComplexCollectionFieldsPerIndex": 40,
            "maxComplexObjectsInCollectionsPerDocument": 3000,
            "maxStoragePerIndex": null,
        },
        "indexersRuntime": null,
    });
    Ok(response::json(StatusCode::OK, &body))
}
