//! `lazuli search …`: indexes, documents and keys of the running server, over its public protocol.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use lazuli_console::progress::{Figures, Meter};
use lazuli_console::{Failure, Result, output};
use lazuli_http::client::blocking::{Connection, Options};
use lazuli_http::uri::percent_encode;
use serde_json::{Map, Value, json};

use crate::args::search::{Account, Query, SearchCommand};
use crate::client::Client;

const VERSION: &str = "api-version=2024-07-01";
/// The service takes so many documents in one request,
const BATCH_DOCUMENTS: usize = 1_000;
/// and we send at most so many bytes, well below its limit.
const BATCH_BYTES: usize = 8 * 1024 * 1024;
/// The longest line of a file: the longest request of the service.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The longest definition that is read.
const DEFINITION_BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(crate) fn run(command: SearchCommand) -> Result<()> {
    match command {
        SearchCommand::List(account) => list(&account),
        SearchCommand::Create { file, account } => create(&file, &account),
        SearchCommand::Load { index, file, merge, account } => load(&index, &file, merge, &account),
        SearchCommand::Query(query) => search(&query),
        SearchCommand::Delete { index, account } => delete(&index, &account),
        SearchCommand::Scale { index, partitions, replicas, account } => {
            scale(&index, partitions, replicas, &account)
        }
        SearchCommand::Keys { add, delete, account } => keys(add, delete, &account),
    }
}

/// The front of the running server, with an admin key.
struct Service {
    connection: Connection,
    authority: String,
    keys: Vec<String>,
}

impl Service {
    fn find(account: &Account) -> Result<Self> {
        let admin = Client::find(&account.target)?;
        let status = admin.get("/v1/status")?;
        let url = status["endpoints"]["search"].as_str();
        let authority = url.and_then(|url| url.strip_prefix("http://")).ok_or_else(|| {
            Failure::failed("the server does not serve search over HTTP")
                .hint("start it with --search-port and --search-tls beside or off")
        })?;
        let listed = admin.get("/v1/accounts?keys=true")?;
        let mut accounts = listed["accounts"].as_array().into_iter().flatten();
        let asked = account.name.as_deref();
        let found = accounts.find(|one| asked.is_none_or(|name| one["name"] == name));
        let found = found.ok_or_else(|| {
            Failure::failed("the server has no such account")
                .hint("`lazuli account list` lists them")
        })?;
        let keys = ["key1", "key2"].iter().filter_map(|key| found[key].as_str());
        let keys = keys.map(str::to_owned).collect();
        let options = Options { answer_wait: Duration::from_secs(120), ..Options::default() };
        let connection = Connection::open(authority, &options)
            .map_err(|error| Failure::failed(format!("cannot connect to {authority}: {error}")))?;
        Ok(Self { connection, authority: authority.to_owned(), keys })
    }

    fn send(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        headers: &str,
    ) -> Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let key = self.keys.first().map(String::as_str).unwrap_or_default();
        let head = format!(
            "{method} {path}?{VERSION} HTTP/1.1\r\nhost: {}\r\napi-key: {key}\r\n{headers}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.authority,
            body.len()
        );
        let sent = self.connection.exchange(head.as_bytes(), body.as_bytes());
        let (answer, _) =
            sent.map_err(|error| Failure::failed(format!("the server did not answer: {error}")))?;
        match answer.status {
            204 => Ok(Value::Null),
            200..300 => Ok(answer.json()),
            status => {
                let said = answer.json()["error"]["message"].as_str().map(str::to_owned);
                Err(Failure::failed(said.unwrap_or_else(|| format!("{status} {}", answer.text()))))
            }
        }
    }
}

fn path_of(index: &str) -> String {
    format!("/indexes/{}", percent_encode(index))
}

fn list(account: &Account) -> Result<()> {
    let answer = Service::find(account)?.send("GET", "/indexstats", None, "")?;
    if account.target.json {
        output::json(&answer);
        return Ok(());
    }
    let columns = ["name", "documentCount", "storageSize"];
    output::table(&["index", "documents", "bytes"], &output::rows(&answer["value"], &columns));
    Ok(())
}

fn create(file: &Path, account: &Account) -> Result<()> {
    let failed = |what: String| Failure::failed(format!("{}: {what}", file.display()));
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(|error| failed(error.to_string()))?;
    let read = opened.take(DEFINITION_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| failed(error.to_string()))?;
    let body: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    let made = Service::find(account)?.send("POST", "/indexes", Some(&body), "")?;
    output::changed(account.target.json, &made, || {
        format!("created the index {}", made["name"].as_str().unwrap_or_default())
    });
    Ok(())
}

fn delete(index: &str, account: &Account) -> Result<()> {
    Service::find(account)?.send("DELETE", &path_of(index), None, "")?;
    let answer = json!({ "deleted": index });
    output::changed(account.target.json, &answer, || format!("deleted the index {index}"));
    Ok(())
}

fn scale(
    index: &str,
    partitions: Option<u32>,
    replicas: Option<u32>,
    account: &Account,
) -> Result<()> {
    let path = format!("{}/lazuli.scale", path_of(index));
    let mut service = Service::find(account)?;
    let answer = match (partitions, replicas) {
        (None, None) => service.send("GET", &path, None, "")?,
        _ => {
            let body = json!({ "partitionCount": partitions, "replicaCount": replicas });
            service.send("PUT", &path, Some(&body), "")?
        }
    };
    output::changed(account.target.json, &answer, || {
        format!(
            "{index}: {} partitions, {} replicas, {} partitions of its map to move",
            answer["partitionCount"], answer["replicaCount"], answer["partitionsToMove"]
        )
    });
    Ok(())
}

fn keys(add: Option<String>, delete: Option<String>, account: &Account) -> Result<()> {
    let mut service = Service::find(account)?;
    let path = "/lazuli.querykeys";
    if let Some(name) = add {
        service.send("POST", path, Some(&json!({ "name": name })), "")?;
    }
    if let Some(name) = delete {
        service.send("DELETE", &format!("{path}/{}", percent_encode(&name)), None, "")?;
    }
    let listed = service.send("GET", path, None, "")?;
    if account.target.json {
        output::json(&json!({ "adminKeys": service.keys, "queryKeys": listed["value"] }));
        return Ok(());
    }
    let admin = service.keys.iter().map(|key| vec!["admin".to_owned(), String::new(), key.clone()]);
    let query =
        listed["value"].as_array().into_iter().flatten().map(|one| {
            vec!["query".to_owned(), output::cell(&one["name"]), output::cell(&one["key"])]
        });
    output::table(&["kind", "name", "key"], &admin.chain(query).collect::<Vec<_>>());
    Ok(())
}

fn search(query: &Query) -> Result<()> {
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    set("search", query.text.clone().unwrap_or_else(|| "*".to_owned()).into());
    set("top", query.top.into());
    set("count", true.into());
    set("queryType", if query.full { "full" } else { "simple" }.into());
    for (name, value) in
        [("filter", &query.filter), ("orderby", &query.order_by), ("select", &query.select)]
    {
        if let Some(value) = value {
            set(name, value.clone().into());
        }
    }
    let path = format!("{}/docs/search", path_of(&query.index));
    let headers = if query.wait { "x-lazuli-wait: visible\r\n" } else { "" };
    let mut service = Service::find(&query.account)?;
    let answer = service.send("POST", &path, Some(&Value::Object(body)), headers)?;
    if query.account.target.json {
        output::json(&answer);
        return Ok(());
    }
    for hit in answer["value"].as_array().into_iter().flatten() {
        let mut hit = hit.clone();
        let score = hit.as_object_mut().and_then(|hit| hit.remove("@search.score"));
        let score = score.and_then(|score| score.as_f64()).unwrap_or_default();
        output::line(&format!("{score:.4} {hit}"));
    }
    output::line(&format!("{} found", answer["@odata.count"]));
    Ok(())
}

/// Sends the lines of a file in batches. A line that the server refuses ends the load, and says which one it was.
fn load(index: &str, file: &Path, merge: bool, account: &Account) -> Result<()> {
    let failed = |what: String| Failure::failed(format!("{}: {what}", file.display()));
    let is_standard = file == Path::new("-");
    let reader: Box<dyn Read> = match is_standard {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(file).map_err(|error| failed(error.to_string()))?),
    };
    let whole = if is_standard { None } else { std::fs::metadata(file).ok().map(|it| it.len()) };
    let mut service = Service::find(account)?;
    let begin = Figures::default();
    let mut meter = Meter::new("wrote", "documents", account.target.json, begin, whole);
    let mut reader = BufReader::new(reader);
    let (mut batch, mut batch_bytes) = (Vec::new(), 0);
    let (mut documents, mut bytes, mut line_number) = (0_u64, 0_u64, 0_u64);
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut reader).take(LINE_BYTES_MAX as u64 + 1);
        let read = limited.read_until(b'\n', &mut line).map_err(|it| failed(it.to_string()))?;
        line_number += 1;
        if read > LINE_BYTES_MAX {
            return Err(failed(format!(
                "line {line_number} is longer than {LINE_BYTES_MAX} bytes"
            )));
        }
        let is_full = batch.len() >= BATCH_DOCUMENTS || batch_bytes + read > BATCH_BYTES;
        if (read == 0 || is_full) && !batch.is_empty() {
            documents += send(&mut service, index, std::mem::take(&mut batch))?;
            batch_bytes = 0;
            meter.show(Figures { items: documents, bytes });
        }
        if read == 0 {
            break;
        }
        bytes += read as u64;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let document: Value = serde_json::from_slice(&line)
            .map_err(|error| failed(format!("line {line_number}: {error}")))?;
        let Value::Object(mut document) = document else {
            return Err(failed(format!("line {line_number} is no JSON object")));
        };
        let action = if merge { "mergeOrUpload" } else { "upload" };
        document.insert("@search.action".to_owned(), action.into());
        batch.push((line_number, Value::Object(document)));
        batch_bytes += read;
    }
    meter.finish();
    let answer = json!({ "index": index, "documents": documents });
    output::changed(account.target.json, &answer, || {
        format!("wrote {documents} documents to {index}")
    });
    Ok(())
}

fn send(service: &mut Service, index: &str, batch: Vec<(u64, Value)>) -> Result<u64> {
    let (lines, actions): (Vec<u64>, Vec<Value>) = batch.into_iter().unzip();
    let first = lines.first().copied().unwrap_or_default();
    let path = format!("{}/docs/index", path_of(index));
    let sent = service.send("POST", &path, Some(&json!({ "value": actions })), "");
    let answer = sent.map_err(|failure| {
        Failure::failed(format!("documents from line {first} on: {}", failure.reason()))
    })?;
    let results = answer["value"].as_array().cloned().unwrap_or_default();
    for (line, result) in lines.iter().zip(&results) {
        if result["status"] != json!(true) {
            let said = result["errorMessage"].as_str().unwrap_or("refused");
            return Err(Failure::failed(format!("line {line}: {said}")));
        }
    }
    Ok(lines.len() as u64)
}
