//! Requests and their replies as messages.

use bytes::Bytes;
use lazuli_amqp::{Body, Map, Properties, Sections, Value, Writer};

use crate::error::{Fault, Result};

/// A request that came on a link.
pub(crate) struct Request {
    pub(crate) message_id: Value,
    pub(crate) reply_to: Option<String>,
    pub(crate) properties: Map,
    pub(crate) body: Body,
}

impl Request {
    pub(crate) fn read(payload: &Bytes) -> Result<Self> {
        let sections = Sections::split(payload)?;
        let properties = sections.properties()?;
        Ok(Self {
            message_id: properties.message_id,
            reply_to: properties.reply_to.as_text().map(str::to_owned),
            properties: sections.application_properties()?,
            body: sections.body()?,
        })
    }

    pub(crate) fn operation(&self) -> &str {
        self.properties.text("operation").unwrap_or_default()
    }

    /// The body as a map; empty if it is none.
    pub(crate) fn map(&self) -> Map {
        match &self.body {
            Body::Value(Value::Map(map)) => map.clone(),
            _ => Map::default(),
        }
    }
}

/// How the fields of a status are called: the two kinds of services write them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `status-code`: tokens, and event hubs.
    Dashes,
    /// `statusCode`: management of entities.
    Camel,
}

/// A reply on its way.
pub(crate) struct Reply {
    pub(crate) status: i32,
    pub(crate) description: String,
    pub(crate) condition: Option<&'static str>,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn ok(body: impl Into<Value>) -> Self {
        Self { status: 200, description: "OK".into(), condition: None, body: body.into() }
    }

    pub(crate) fn accepted() -> Self {
        let description = "Accepted".into();
        Self { status: 202, description, condition: None, body: Value::Null }
    }

    /// Nothing was found, which is no failure.
    pub(crate) fn nothing() -> Self {
        let description = "No content".into();
        Self { status: 204, description, condition: None, body: Value::Map(Map::default()) }
    }

    pub(crate) fn of(result: Result<Self>) -> Self {
        result.unwrap_or_else(|fault: Fault| Self {
            status: fault.status,
            description: fault.description,
            condition: Some(fault.condition),
            body: Value::Map(Map::default()),
        })
    }

    /// The message: the id of the request comes back with the type that it had.
    pub(crate) fn message(&self, asked: &Value, spelling: Spelling) -> Bytes {
        let [code, description, condition] = match spelling {
            Spelling::Dashes => ["status-code", "status-description", "error-condition"],
            Spelling::Camel => ["statusCode", "statusDescription", "errorCondition"],
        };
        let mut said = Map::default()
            .with_text(code, self.status)
            .with_text(description, self.description.as_str());
        if let Some(name) = self.condition {
            said = said.with_text(condition, Value::symbol(name));
        }
        let properties = Properties { correlation_id: asked.clone(), ..Properties::default() };
        Writer::new()
            .properties(&properties)
            .application_properties(&said)
            .value(&self.body)
            .finish()
    }
}
