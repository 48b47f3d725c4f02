//! One attempt of a script's transaction: what it reads comes from the container and from its own changes, what it writes is
//! kept here, and all of it is committed at once if nothing that it has read was changed meanwhile.

use std::collections::BTreeMap;

use lazuli_engine::{Kind as ErrorKind, Lsn, PageLimit};
use lazuli_query::Parameters;
use lazuli_scripts::{
    Answer, Call as ScriptCall, Host, IndexAction, Link, Page, TriggerOperation, Write,
};
use lazuli_shapes::document::{
    Action, Body, Document, DocumentReason, Etag, ItemFeed, Operation, Outcome, PartitionKey,
    Scope, etag,
};
use lazuli_value::{Object, Value};

use crate::charge::{self, Units};
use crate::containers::Opened;
use crate::error::{Fault, Result, Status};
use crate::feed::{position, position_text};
use crate::items::{from_core, written};
use crate::scripts::etag_condition;
use crate::{Call, Front, query};

/// The most bytes of items that one query of a script looks at.
const QUERY_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(crate) struct Attempt<'a> {
    front: &'a Front,
    call: &'a Call,
    opened: &'a Opened,
    key: &'a PartitionKey,
    /// What the script has read or written, by id.
    touched: BTreeMap<String, Touched>,
    /// The ids of items that the script has seen, by their resource ids.
    ids: BTreeMap<String, String>,
    units: Units,
    made: u64,
}

/// An item that a script has to do with.
#[derive(Clone)]
struct Touched {
    /// Its version before the script; none if there was no item.
    before: Option<Lsn>,
    /// What the script has made of it; none if it has only read it.
    now: Option<Now>,
}

#[derive(Clone)]
enum Now {
    Body(Box<Body>),
    Deleted,
}

/// The operation of a request that has triggers.
#[derive(Clone)]
pub(crate) struct Change {
    id: String,
    act: TriggerOperation,
    body: Option<Value>,
    etag: Etag,
}

impl Change {
    pub(crate) fn of(operation: &Operation) -> Result<Self> {
        let (act, body) = match &operation.action {
            Action::Create(body) => (TriggerOperation::Create, Some(body.value())),
            Action::Upsert(body) => (TriggerOperation::Upsert, Some(body.value())),
            Action::Replace(body) => (TriggerOperation::Replace, Some(body.value())),
            Action::Delete => (TriggerOperation::Delete, None),
            Action::Read | Action::Update(_) => {
                return Err(Fault::bad_request("Triggers are not supported for this operation."));
            }
        };
        Ok(Self { id: operation.id.clone(), act, body, etag: operation.etag })
    }

    pub(crate) fn trigger(&self) -> TriggerOperation {
        self.act
    }

    pub(crate) fn body(&self) -> Option<Value> {
        self.body.clone()
    }

    pub(crate) fn set_body(&mut self, body: Value) {
        if self.body.is_some() {
            if let Value::Object(object) = &body
                && let Some(Value::String(id)) = object.get("id")
                && self.act != TriggerOperation::Replace
            {
                self.id.clone_from(id);
            }
            self.body = Some(body);
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn is_delete(&self) -> bool {
        self.act == TriggerOperation::Delete
    }
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(
        front: &'a Front,
        call: &'a Call,
        opened: &'a Opened,
        key: &'a PartitionKey,
    ) -> Self {
        let (touched, ids) = (BTreeMap::new(), BTreeMap::new());
        Self { front, call, opened, key, touched, ids, units: 0.0, made: 0 }
    }

    /// What the operations of the script have cost.
    pub(crate) fn units(&self) -> Units {
        self.units
    }

    /// The operation of a request, with what came of it.
    pub(crate) async fn apply(&mut self, change: &Change) -> Result<Option<Value>> {
        match (&change.act, &change.body) {
            (TriggerOperation::Delete, _) => {
                self.delete(&change.id, change.etag).await?;
                Ok(None)
            }
            (act, Some(body)) => {
                let body = Body::from_value(body).map_err(from_core)?;
                let act = *act;
                self.write(act, change.id.clone(), body, change.etag).await.map(Some)
            }
            (_, None) => Err(Fault::internal("a write without a body")),
        }
    }

    /// The item as the script sees it.
    async fn current(&mut self, id: &str) -> Result<Option<Value>> {
        if let Some(Touched { now: Some(now), .. }) = self.touched.get(id) {
            return Ok(match now {
                Now::Body(body) => Some(self.shown(body)),
                Now::Deleted => None,
            });
        }
        let documents = &self.front.documents;
        match documents.read(&self.opened.collection, self.key, id, Etag::Any).await {
            Ok(found) => {
                self.units += charge::read(found.work.bytes_read as usize);
                let document = found.document.ok_or_else(Fault::not_found)?;
                let before = Some(document.version);
                self.touched.entry(id.to_owned()).or_insert(Touched { before, now: None });
                self.ids.insert(document.rid.to_string(), id.to_owned());
                Ok(Some(document.value().map_err(from_core)?))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.touched.entry(id.to_owned()).or_insert(Touched { before: None, now: None });
                Ok(None)
            }
            Err(error) => Err(from_core(error)),
        }
    }

    /// An item that is not committed yet, as the script gets it.
    fn shown(&self, body: &Body) -> Value {
        let Value::Object(mut shown) = body.value() else { return Value::Null };
        let link = format!("{}/docs/{}", self.opened.path(), body.id());
        shown.insert("_rid", body.id().into());
        shown.insert("_self", link.into());
        shown.insert("_etag", etag(Lsn(self.made)).into());
        shown.insert("_attachments", "attachments/".into());
        shown.insert("_ts", ((self.call.received_ms / 1_000) as i64).into());
        Value::Object(shown)
    }

    async fn write(
        &mut self,
        act: TriggerOperation,
        id: String,
        body: Body,
        condition: Etag,
    ) -> Result<Value> {
        let there = self.current(&id).await?;
        match (act, &there) {
            (TriggerOperation::Create, Some(_)) => return Err(Fault::exists()),
            (TriggerOperation::Replace, None) => return Err(Fault::not_found()),
            _ => {}
        }
        if body.id() != id {
            return Err(Fault::bad_input("an item keeps its id"));
        }
        let paths = &self.opened.collection.definition().key_paths;
        if PartitionKey::of(paths, body.view().into())? != *self.key && !self.key.is_none() {
            let message = "Requests originating from scripts cannot reference partition keys other than \
                           the one for which client request was submitted.";
            return Err(Fault::forbidden(message));
        }
        self.check(&id, condition)?;
        self.made += 1;
        let shown = self.shown(&body);
        self.put(id, Now::Body(Box::new(body)));
        Ok(shown)
    }

    async fn delete(&mut self, id: &str, condition: Etag) -> Result<()> {
        if self.current(id).await?.is_none() {
            return Err(Fault::not_found());
        }
        self.check(id, condition)?;
        self.put(id.to_owned(), Now::Deleted);
        Ok(())
    }

    fn check(&self, id: &str, condition: Etag) -> Result<()> {
        let before = self.touched.get(id).and_then(|touched| touched.before);
        let holds = match condition {
            Etag::Any => true,
            Etag::Is(version) => before.is_none_or(|before| before == version),
            Etag::IsNot(version) => before != Some(version),
            Etag::Absent => before.is_none(),
        };
        if holds { Ok(()) } else { Err(Fault::precondition()) }
    }

    fn put(&mut self, id: String, now: Now) {
        let touched = self.touched.entry(id).or_insert(Touched { before: None, now: None });
        touched.now = Some(now);
    }

    /// Commits all that was done. None if something that was read has changed, so that the script must be run again.
    pub(crate) async fn commit(&mut self) -> Result<Option<Vec<Outcome>>> {
        let mut operations = Vec::new();
        for (id, touched) in &self.touched {
            let is = touched.before.map_or(Etag::Absent, Etag::Is);
            let operation = match (&touched.now, touched.before) {
                (Some(Now::Body(body)), Some(_)) => {
                    Operation::replace(id, (**body).clone()).with(is)
                }
                (Some(Now::Body(body)), None) => Operation::create((**body).clone()),
                (Some(Now::Deleted), Some(_)) => Operation::delete(id).with(is),
                (None, Some(_)) => Operation::read(id).with(is),
                (Some(Now::Deleted) | None, None) => continue,
            };
            operations.push(operation);
        }
        if operations.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let documents = &self.front.documents;
        match documents.run(&self.opened.collection, self.key, operations).await {
            Ok(outcomes) => {
                self.units += outcomes.iter().map(written).sum::<Units>();
                Ok(Some(outcomes))
            }
            // These were checked before, so another request came in between.
            Err(error)
                if error.is(DocumentReason::EtagMismatch)
                    || error.is(DocumentReason::ItemExists)
                    || error.is(DocumentReason::ItemMissing) =>
            {
                Ok(None)
            }
            Err(error) => Err(from_core(error)),
        }
    }

    async fn id_of(&mut self, item: Link) -> Result<String> {
        match item {
            Link::Id(id) => Ok(id),
            Link::Rid(rid) if self.ids.contains_key(&rid) => Ok(self.ids[&rid].clone()),
            Link::Rid(rid) => {
                let items = self.items().await?;
                let found = items.iter().find_map(|item| match item {
                    Value::Object(item)
                        if item.get("_rid") == Some(&Value::String(rid.clone())) =>
                    {
                        item.get("id").cloned()
                    }
                    _ => None,
                });
                match found {
                    Some(Value::String(id)) => Ok(id),
                    _ => Err(Fault::not_found()),
                }
            }
        }
    }

    /// All items of the partition key as the script sees them, by id.
    async fn items(&mut self) -> Result<Vec<Value>> {
        let mut items: BTreeMap<String, Value> = BTreeMap::new();
        let (mut after, mut bytes) = (None, 0);
        loop {
            let scope = Scope::Key(self.key.clone());
            let asked = ItemFeed { scope, limit: PageLimit::items(1_000), after };
            let documents = &self.front.documents;
            let page = documents.items(&self.opened.collection, &asked).await.map_err(from_core)?;
            bytes += page.work.bytes_read;
            if bytes > QUERY_BYTES_MAX {
                let message = "A script reads more items than fit into its memory.";
                return Err(Fault::new(Status::RequestEntityTooLarge, message));
            }
            for document in &page.documents {
                self.saw(document);
                items.insert(document.id.clone(), document.value().map_err(from_core)?);
            }
            self.units += charge::feed(page.documents.len(), page.work.bytes_read as usize);
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        for (id, touched) in &self.touched {
            match &touched.now {
                Some(Now::Body(body)) => drop(items.insert(id.clone(), self.shown(body))),
                Some(Now::Deleted) => drop(items.remove(id)),
                None => {}
            }
        }
        Ok(items.into_values().collect())
    }

    fn saw(&mut self, document: &Document) {
        self.ids.insert(document.rid.to_string(), document.id.clone());
    }

    async fn query(&mut self, text: &str, parameters: Parameters, page: &Page) -> Result<Answer> {
        let prepared = query::prepare_text(text, &parameters)?;
        let after = match &page.continuation {
            Some(text) => {
                let decoded = lazuli_query::Continuation::decode(&position(text)?);
                Some(decoded.map_err(query::failed)?)
            }
            None => None,
        };
        let items = self.items().await?;
        let rows = page.size as usize;
        let found = query::page_of(&prepared, self.call.received_ms, rows, &items, after)?;
        let items = found.rows.iter().map(|row| query::value(row)).collect::<Result<_>>()?;
        let continuation = found.continuation.map(|next| position_text(&next.encode()));
        Ok(Answer::Feed { items, continuation })
    }

    async fn written(
        &mut self,
        act: TriggerOperation,
        id: Option<String>,
        write: Write,
    ) -> Result<Answer> {
        if write.index == IndexAction::Exclude {
            return Err(Fault::gap("Leaving an item out of the index"));
        }
        let mut body: Object = write.body;
        if write.generates_id && body.get("id").is_none() {
            body.insert("id", self.front.fresh_id().into());
        }
        let body = Body::from_value(&Value::Object(body)).map_err(from_core)?;
        let id = id.unwrap_or_else(|| body.id().to_owned());
        let condition = etag_condition(write.etag.as_deref())?;
        self.write(act, id, body, condition).await.map(Answer::Item)
    }

    async fn answer(&mut self, call: ScriptCall) -> Result<Answer> {
        match call {
            ScriptCall::Read { item, if_none_match } => {
                let id = self.id_of(item).await?;
                let found = self.current(&id).await?.ok_or_else(Fault::not_found)?;
                let known = if_none_match.map(Value::String);
                let is_known = match &found {
                    Value::Object(item) => known.is_some() && item.get("_etag") == known.as_ref(),
                    _ => false,
                };
                Ok(if is_known { Answer::NotModified } else { Answer::Item(found) })
            }
            ScriptCall::ReadFeed(page) => {
                self.query("SELECT * FROM c", Parameters::new(), &page).await
            }
            ScriptCall::Query { text, parameters, page } => {
                self.query(&text, parameters.into_iter().collect(), &page).await
            }
            ScriptCall::Create(write) => self.written(TriggerOperation::Create, None, write).await,
            ScriptCall::Upsert(write) => self.written(TriggerOperation::Upsert, None, write).await,
            ScriptCall::Replace { item, write } => {
                let id = self.id_of(item).await?;
                self.written(TriggerOperation::Replace, Some(id), write).await
            }
            ScriptCall::Delete { item, etag } => {
                let id = self.id_of(item).await?;
                self.delete(&id, etag_condition(etag.as_deref())?).await?;
                Ok(Answer::Deleted)
            }
        }
    }
}

impl Host for Attempt<'_> {
    async fn perform(&mut self, call: ScriptCall) -> Answer {
        match self.answer(call).await {
            Ok(answer) => answer,
            Err(fault) => Answer::Failed { status: fault.status.number(), message: fault.message },
        }
    }
}
