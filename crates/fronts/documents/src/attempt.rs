//! One attempt of a script's transaction: a session of the shape, and what a script asks of it.

use std::collections::BTreeMap;

use lazuli_engine::{Error, Lsn};
use lazuli_query::Parameters;
use lazuli_scripts::{
    Answer, Call as ScriptCall, Host, IndexAction, Link, Page, TriggerOperation, Write,
};
use lazuli_shapes::document::{
    Action, Body, DocumentReason, Etag, IndexDirective, Operation, Outcome, PartitionKey, Session,
    SessionItem, etag,
};
use lazuli_value::{Object, Value};

use crate::charge::Units;
use crate::containers::Opened;
use crate::error::{Fault, Result};
use crate::feed::{position, position_text};
use crate::items::{from_core, written};
use crate::scripts::etag_condition;
use crate::{Call, Front, query};

pub(crate) struct Attempt<'a> {
    front: &'a Front,
    call: &'a Call,
    opened: &'a Opened,
    key: &'a PartitionKey,
    session: Session,
    /// The ids of items that the script has seen, by their resource ids.
    ids: BTreeMap<String, String>,
    /// How many operations it has made.
    made: usize,
    /// Whether something that it has read was changed meanwhile, so that it must be run again.
    is_stale: bool,
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
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(
        front: &'a Front,
        call: &'a Call,
        opened: &'a Opened,
        key: &'a PartitionKey,
    ) -> Result<Self> {
        let session = front.documents.session(&opened.collection, key)?;
        let ids = BTreeMap::new();
        Ok(Self { front, call, opened, key, session, ids, made: 0, is_stale: false })
    }

    /// Whether the script must be run again, however it ended.
    pub(crate) fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// How many operations were made so far.
    pub(crate) fn made(&self) -> usize {
        self.made
    }

    /// Commits all that was done, and says what it has cost. None if something that was read has changed, so that the
    /// script must be run again.
    pub(crate) async fn commit(self) -> Result<Option<(Vec<Outcome>, Units)>> {
        match self.session.commit().await {
            Ok(outcomes) => {
                let units = outcomes.iter().map(written).sum();
                Ok(Some((outcomes, units)))
            }
            Err(error) if error.is(DocumentReason::SessionConflict) => Ok(None),
            Err(error) => Err(from_core(error)),
        }
    }

    fn failed(&mut self, error: Error) -> Fault {
        self.is_stale |= error.is(DocumentReason::SessionConflict);
        from_core(error)
    }

    /// The operation of a request, with the item that came of it.
    pub(crate) async fn apply(&mut self, change: &Change) -> Result<Option<Value>> {
        match (&change.act, &change.body) {
            (TriggerOperation::Delete, _) => {
                self.run(Operation::delete(&change.id).with(change.etag)).await?;
                Ok(None)
            }
            (act, Some(body)) => {
                let body = Body::from_value(body).map_err(from_core)?;
                let body = body.indexed(self.call.headers.indexing);
                self.write(*act, change.id.clone(), body, change.etag).await.map(Some)
            }
            (_, None) => Err(Fault::internal("a write without a body")),
        }
    }

    async fn run(&mut self, operation: Operation) -> Result<()> {
        let done = self.session.apply(operation).await;
        done.map_err(|error| self.failed(error))?;
        self.made += 1;
        Ok(())
    }

    /// The item as the script sees it.
    async fn current(&mut self, id: &str) -> Result<Option<Value>> {
        let found = self.session.read(id).await.map_err(|error| self.failed(error))?;
        found.map(|item| self.shown(item)).transpose()
    }

    /// An item as the script gets it. One that is not committed yet has no resource id, and its id stands for it.
    fn shown(&mut self, item: SessionItem) -> Result<Value> {
        match item {
            SessionItem::Stored(document) => {
                self.ids.insert(document.rid.to_string(), document.id.clone());
                document.value().map_err(from_core)
            }
            SessionItem::Written(body) => Ok(self.uncommitted(&body)),
        }
    }

    fn uncommitted(&self, body: &Body) -> Value {
        let Value::Object(mut shown) = body.value() else { return Value::Null };
        let link = format!("{}/docs/{}", self.opened.path(), body.id());
        shown.insert("_rid", body.id().into());
        shown.insert("_self", link.into());
        shown.insert("_etag", etag(Lsn(self.made as u64)).into());
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
        if body.id() != id {
            return Err(Fault::bad_input("an item keeps its id"));
        }
        let paths = &self.opened.collection.definition().key_paths;
        if PartitionKey::of(paths, body.view().into())? != *self.key && !self.key.is_none() {
            let message = "Requests originating from scripts cannot reference partition keys other than \
                           the one for which client request was submitted.";
            return Err(Fault::forbidden(message));
        }
        let shown = self.uncommitted(&body);
        let operation = match act {
            TriggerOperation::Create => Operation::create(body),
            TriggerOperation::Upsert => Operation::upsert(body),
            TriggerOperation::Replace => Operation::replace(&id, body),
            TriggerOperation::Delete => Operation::delete(&id),
        };
        self.run(operation.with(condition)).await?;
        Ok(shown)
    }

    async fn id_of(&mut self, item: Link) -> Result<String> {
        let rid = match item {
            Link::Id(id) => return Ok(id),
            Link::Rid(rid) => rid,
        };
        if !self.ids.contains_key(&rid) {
            self.items(|_| true).await?;
        }
        // What is not committed has its id in the place of a resource id.
        Ok(self.ids.get(&rid).cloned().unwrap_or(rid))
    }

    /// Items of the partition key as the script sees them, by id.
    async fn items(&mut self, is_wanted: impl Fn(&SessionItem) -> bool) -> Result<Vec<Value>> {
        let items = self.session.items().await.map_err(|error| self.failed(error))?;
        items.into_iter().filter(is_wanted).map(|item| self.shown(item)).collect()
    }

    async fn query(&mut self, text: &str, parameters: Parameters, page: &Page) -> Result<Answer> {
        let definition = self.opened.collection.definition().clone();
        let items = self.items(|item| definition.finds(item.directive())).await?;
        self.page(text, parameters, page, &items)
    }

    fn page(
        &self,
        text: &str,
        parameters: Parameters,
        page: &Page,
        items: &[Value],
    ) -> Result<Answer> {
        let prepared = query::prepare_text(text, parameters, &[])?;
        let after = match &page.continuation {
            Some(text) => {
                let decoded = lazuli_query::Continuation::decode(&position(text)?);
                Some(decoded.map_err(query::failed)?)
            }
            None => None,
        };
        let rows = page.size as usize;
        let found = query::page_of(&prepared, self.call.received_ms, rows, items, after)?;
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
        let directive = match write.index {
            IndexAction::Default => IndexDirective::Policy,
            IndexAction::Include => IndexDirective::Include,
            IndexAction::Exclude => IndexDirective::Exclude,
        };
        let mut body: Object = write.body;
        if write.generates_id && body.get("id").is_none() {
            body.insert("id", self.front.fresh_id().into());
        }
        let body = Body::from_value(&Value::Object(body)).map_err(from_core)?.indexed(directive);
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
                let items = self.items(|_| true).await?;
                self.page("SELECT * FROM c", Parameters::new(), &page, &items)
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
                let condition = etag_condition(etag.as_deref())?;
                self.run(Operation::delete(&id).with(condition)).await?;
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
