//! The steps before the switch: the feed of all versions, the new container, the copy, and following changes.

use lazuli_console::{Failure, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::item::Item;
use super::super::service::{Asked, read};
use super::Work;
use super::apply::Task;
use crate::session::{Call, ServiceError};

/// For how long versions are kept, in minutes: for so long the command may be away between two runs.
const RETENTION_MINUTES: u64 = 7 * 24 * 60;
/// So many changes on a page mean that the writers are caught up with: the next page would have as many.
const CHANGES_FEW: usize = 100;
/// What belongs to the service in the description of a container or a script.
const SYSTEM: [&str; 11] = [
    "_rid",
    "_self",
    "_etag",
    "_ts",
    "_docs",
    "_sprocs",
    "_triggers",
    "_udfs",
    "_conflicts",
    "id",
    "partitionKey",
];
const FEED: [(&str, &str); 2] =
    [("a-im", "Full-Fidelity Feed"), ("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15")];

/// A change as the feed of all versions has it.
#[derive(Deserialize)]
struct Change {
    current: Option<Item>,
    previous: Option<Item>,
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    operation_type: String,
    id: Option<String>,
}

#[derive(Deserialize)]
struct Changes {
    #[serde(rename = "Documents")]
    documents: Vec<Change>,
}

impl Work {
    /// Has the service keep all versions, and takes the position from which changes will be followed.
    pub(super) fn prepare(&mut self, body: &Value, rid: &str) -> Result<()> {
        if self.service.find(&self.target)?.is_some() {
            let message = format!("there is a container {} already", self.target.shown());
            return Err(Failure::failed(message).hint("name another one with --former"));
        }
        if body["changeFeedPolicy"]["retentionDuration"].as_u64().unwrap_or_default() == 0 {
            let mut changed = body.clone();
            changed["changeFeedPolicy"] = json!({ "retentionDuration": RETENTION_MINUTES });
            let text = changed.to_string();
            let path = self.source.path();
            let call = Call { body: text.as_bytes(), ..Call::new("PUT", &path) };
            self.service.session.expect(call)?;
        }
        let (position, _) = self.changes("*")?;
        rid.clone_into(&mut self.at.source_rid);
        self.at.position = position;
        self.save()
    }

    /// Creates the new container as the former is, but for its key, with its scripts.
    pub(super) fn create_target(&mut self, body: &Value, throughput: Option<u32>) -> Result<()> {
        let mut new = body.clone();
        if let Value::Object(object) = &mut new {
            object.retain(|name, _| !SYSTEM.contains(&name.as_str()));
            // What was turned on for the copy is not wanted afterwards.
            object.remove("changeFeedPolicy");
        }
        new["id"] = json!(self.target.container);
        let paths: Vec<String> = self.to.texts();
        let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
        new["partitionKey"] = json!({ "paths": paths, "kind": kind, "version": 2 });
        let units = match throughput {
            Some(units) => Some(units.to_string()),
            None => self.throughput()?,
        };
        let headers: Vec<(&str, &str)> =
            units.iter().map(|units| ("x-ms-offer-throughput", units.as_str())).collect();
        let path =
            format!("/dbs/{}/colls", lazuli_http::uri::percent_encode(&self.target.database));
        let text = new.to_string();
        let call = Call { headers: &headers, body: text.as_bytes(), ..Call::new("POST", &path) };
        let answer = self.service.session.ask(call)?.answer;
        // It may be that a run before this created it and was killed.
        if !matches!(answer.status, 200..=299 | 409) {
            return Err(ServiceError::of(&answer).failure());
        }
        let made = self.service.describe(&self.target)?;
        if made.keys != self.to {
            return Err(Failure::failed(format!("{} has another key", self.target.shown())));
        }
        for kind in [("sprocs", "StoredProcedures"), ("triggers", "Triggers")]
            .into_iter()
            .chain([("udfs", "UserDefinedFunctions")])
        {
            self.copy_scripts(kind)?;
        }
        self.at.target_rid = made.rid;
        self.save()
    }

    /// The throughput of the former container, if it has one of its own.
    fn throughput(&mut self) -> Result<Option<String>> {
        let answer = self.service.session.expect(Call::new("GET", "/offers"))?;
        let offers: Value = read(&answer.body)?;
        let all = offers["Offers"].as_array();
        let ours = |offer: &&Value| offer["offerResourceId"] == json!(self.at.source_rid);
        let offer = all.into_iter().flatten().find(ours);
        let units = offer.and_then(|offer| offer["content"]["offerThroughput"].as_u64());
        Ok(units.map(|units| units.to_string()))
    }

    fn copy_scripts(&mut self, (segment, plural): (&str, &str)) -> Result<()> {
        let path = format!("{}/{segment}", self.source.path());
        let answer = self.service.session.expect(Call::new("GET", &path))?;
        let listed: Value = read(&answer.body)?;
        for script in listed[plural].as_array().into_iter().flatten() {
            let text = script.to_string();
            let path = format!("{}/{segment}", self.target.path());
            let headers = [("x-ms-documentdb-is-upsert", "True")];
            let call =
                Call { headers: &headers, body: text.as_bytes(), ..Call::new("POST", &path) };
            self.service.session.expect(call)?;
        }
        Ok(())
    }

    /// Copies all items, page by page.
    pub(super) fn copy(&mut self) -> Result<()> {
        let asked = Asked::all(&self.source, "SELECT * FROM c");
        while !self.at.is_copied {
            let page = self.service.page(&asked, self.at.next.as_deref())?;
            let mut tasks = Vec::new();
            for row in &page.rows {
                let item = Item::parse(row.get().as_bytes()).map_err(Failure::failed)?;
                tasks.push(Task::Put { item: item.plain(), previous: None });
            }
            self.at.copied += tasks.len() as u64;
            self.apply(tasks)?;
            self.at.is_copied = page.next.is_none();
            self.at.next = page.next;
            self.save_if_due()?;
            self.show();
        }
        self.save()
    }

    /// Applies changes until few are left, while writers go on.
    pub(super) fn follow(&mut self) -> Result<()> {
        self.follow_until(CHANGES_FEW)
    }

    /// Applies changes until there are none. Only where writers are held back does that end.
    pub(super) fn follow_to_the_end(&mut self) -> Result<()> {
        self.follow_until(0)
    }

    fn follow_until(&mut self, few: usize) -> Result<()> {
        loop {
            let position = self.at.position.clone();
            let (next, changes) = self.changes(&position)?;
            let is_last = changes.len() <= few;
            let tasks = changes.into_iter().map(task).collect::<Result<Vec<_>>>()?;
            self.at.changes += tasks.len() as u64;
            self.apply(tasks)?;
            self.at.position = next;
            if is_last {
                return self.save();
            }
            self.save_if_due()?;
            self.show();
        }
    }

    /// The next page of changes, and the position behind it.
    fn changes(&mut self, position: &str) -> Result<(String, Vec<Change>)> {
        let path = format!("{}/docs", self.source.path());
        let mut headers = FEED.to_vec();
        headers.push(("if-none-match", position));
        headers.push(("x-ms-max-item-count", "500"));
        let call = Call { headers: &headers, ..Call::new("GET", &path) };
        let answer = self.service.session.ask(call)?.answer;
        let changes = match answer.status {
            304 => Vec::new(),
            200..=299 => read::<Changes>(&answer.body)?.documents,
            _ => return Err(ServiceError::of(&answer).failure()),
        };
        let next = answer.header("etag").map(str::to_owned);
        let next = next.ok_or_else(|| Failure::failed("the feed of changes has no position"))?;
        Ok((next, changes))
    }
}

fn task(change: Change) -> Result<Task> {
    let previous = change.previous.map(Item::plain);
    if change.metadata.operation_type != "delete" {
        let item = change.current.ok_or_else(|| Failure::failed("a change without its item"))?;
        return Ok(Task::Put { item: item.plain(), previous });
    }
    match (previous, change.metadata.id) {
        (Some(previous), _) => Ok(Task::Delete(previous)),
        (None, Some(id)) => Ok(Task::Gone(id)),
        (None, None) => Err(Failure::failed("a deletion without the id of its item")),
    }
}
