//! The check: every answered document is there as its last action left it, by its key and in searches.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lazuli_trial::Result;
use lazuli_trial::search::SearchClient;
use serde_json::{Value, json};

use super::INDEX;
use super::writers::{DocumentWrite, WriterLog, text};

/// The last write of every document ever written, by key: settled once, exact from then on.
pub(super) type Expected = BTreeMap<String, DocumentWrite>;

/// The most results of a page.
const PAGE: usize = 1_000;

/// What one writer left behind. Of a batch in doubt, each document may be as before or after.
pub(super) fn read(address: SocketAddr, log: WriterLog) -> Result<Expected> {
    let mut client = SearchClient::connect(address)?;
    let mut expected = log.documents;
    let in_doubt = log.in_doubt;
    for (key, after) in in_doubt {
        let before = expected.get(&key).cloned();
        let found = look_up(&mut client, &key)?;
        let is = |write: &DocumentWrite| match &found {
            Some(document) => write.is_there && document["number"] == json!(write.number),
            None => !write.is_there,
        };
        if is(&after) {
            expected.insert(key, after);
        } else if !before.as_ref().map_or(found.is_none(), is) {
            return Err(format!("{key} is {found:?}: neither {before:?} nor {after:?}"));
        }
    }
    for (key, write) in &expected {
        let found = look_up(&mut client, key)?;
        check(key, write, found.as_ref())?;
    }
    Ok(expected)
}

fn look_up(client: &mut SearchClient, key: &str) -> Result<Option<Value>> {
    let path = format!("/indexes/{INDEX}/docs/{key}");
    let answer = client.send("GET", &path, None)?;
    match answer.status {
        200 => Ok(Some(answer.json())),
        404 => Ok(None),
        status => Err(format!("{path}: {status} {}", answer.text())),
    }
}

fn check(key: &str, write: &DocumentWrite, found: Option<&Value>) -> Result {
    let is_right = match found {
        None => !write.is_there,
        Some(document) => {
            write.is_there
                && document["number"] == json!(write.number)
                && document["text"] == json!(text(write.number))
        }
    };
    match is_right {
        true => Ok(()),
        false => Err(format!("{key} is {found:?}, and was answered as {write:?}")),
    }
}

pub(super) fn count(address: SocketAddr, expected: &Expected) -> Result {
    let there = expected.values().filter(|write| write.is_there).count();
    let counted = SearchClient::connect(address)?.count(INDEX)?;
    match counted == there {
        true => Ok(()),
        false => Err(format!("{counted} documents are counted, and there are {there}")),
    }
}

/// Searches for all documents, or for those of a round, and compares. Answers how many there are.
pub(super) fn search(
    address: SocketAddr,
    expected: &Expected,
    round: Option<u64>,
) -> Result<usize> {
    let mut client = SearchClient::connect(address)?;
    let is_meant =
        |write: &&DocumentWrite| write.is_there && round.is_none_or(|round| write.round == round);
    let there = expected.values().filter(is_meant).count();
    let mut found = BTreeMap::new();
    let mut last = String::new();
    loop {
        let mut filter = format!("id gt '{last}'");
        if let Some(round) = round {
            filter.push_str(&format!(" and round eq {round}"));
        }
        let body = json!({
            "search": "*", "filter": filter, "orderby": "id", "top": PAGE, "count": true,
            "select": "id,number,text",
        });
        let path = format!("/indexes/{INDEX}/docs/search");
        let mut page = client.expect("POST", &path, Some(&body), &[200])?;
        if last.is_empty() && page["@odata.count"] != json!(there) {
            let count = &page["@odata.count"];
            return Err(format!("searches count {count} documents, and there are {there}"));
        }
        let Value::Array(hits) = page["value"].take() else { return Err("no value".into()) };
        for hit in &hits {
            let key = hit["id"].as_str().unwrap_or_default().to_owned();
            let write = expected.get(&key).ok_or(format!("{key} was never written"))?;
            check(&key, write, Some(hit))?;
            if found.insert(key.clone(), ()).is_some() {
                return Err(format!("{key} is found twice"));
            }
            last = key;
        }
        if hits.len() < PAGE {
            break;
        }
    }
    match found.len() == there {
        true => Ok(there),
        false => Err(format!("{} documents are found, and there are {there}", found.len())),
    }
}
