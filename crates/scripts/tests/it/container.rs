//! A container in memory as the host of scripts, and the ways in which the tests run them.

use std::collections::BTreeMap;
use std::sync::Arc;

use lazuli_scripts::{
    Answer, Call, Host, Input, Limits, Link, Message, Outcome, Role, ScriptError, Scripts,
};
use lazuli_value::{Object, Value};

pub(crate) const SELF_LINK: &str = "dbs/AAAAAA==/colls/AAAAAIAAAAA=/";
pub(crate) const ALT_LINK: &str = "dbs/d/colls/c";

#[derive(Default)]
pub(crate) struct Container {
    pub(crate) items: BTreeMap<String, Object>,
    /// Every call in its order, as its debug form says it.
    pub(crate) calls: Vec<Call>,
}

impl Container {
    pub(crate) fn with(items: &[&str]) -> Self {
        let mut container = Self::default();
        for item in items {
            let Value::Object(item) = json(item) else { panic!("{item} is no object") };
            container.put(item);
        }
        container
    }

    pub(crate) fn ids(&self) -> Vec<&str> {
        self.items.keys().map(String::as_str).collect()
    }

    fn put(&mut self, mut item: Object) -> Answer {
        let Some(Value::String(id)) = item.get("id").cloned() else {
            return failed(400, "The input content is invalid because 'id' is missing.");
        };
        item.insert("_self", Value::String(format!("{SELF_LINK}docs/{id}/")));
        self.items.insert(id, item.clone());
        Answer::Item(Value::Object(item))
    }

    fn write(&mut self, mut item: Object, generates_id: bool) -> Answer {
        if item.get("id").is_none() && generates_id {
            item.insert("id", Value::from("generated"));
        }
        self.put(item)
    }

    fn page(&self, page: &lazuli_scripts::Page) -> Answer {
        let from: usize =
            page.continuation.as_deref().map_or(0, |token| token.parse().expect("a token of ours"));
        let to = (from + page.size as usize).min(self.items.len());
        let items = self.items.values().skip(from).take(page.size as usize);
        let items = items.map(|item| Value::Object(item.clone())).collect();
        Answer::Feed { items, continuation: (to < self.items.len()).then(|| to.to_string()) }
    }

    fn answer(&mut self, call: Call) -> Answer {
        match call {
            Call::Read { item, .. } => match self.items.get(name(&item)) {
                Some(item) => Answer::Item(Value::Object(item.clone())),
                None => failed(404, "Resource Not Found"),
            },
            Call::ReadFeed(page) | Call::Query { page, .. } => self.page(&page),
            Call::Create(write) => {
                let id = write.body.get("id").and_then(|id| match id {
                    Value::String(id) => Some(id.clone()),
                    _ => None,
                });
                if id.is_some_and(|id| self.items.contains_key(&id)) {
                    return failed(409, "Resource with specified id or name already exists.");
                }
                self.write(write.body, write.generates_id)
            }
            Call::Upsert(write) => self.write(write.body, write.generates_id),
            Call::Replace { item, write } if self.items.contains_key(name(&item)) => {
                self.put(write.body)
            }
            Call::Delete { item, .. } if self.items.remove(name(&item)).is_some() => {
                Answer::Deleted
            }
            Call::Replace { .. } | Call::Delete { .. } => failed(404, "Resource Not Found"),
        }
    }
}

impl Host for Container {
    async fn perform(&mut self, call: Call) -> Answer {
        self.calls.push(call.clone());
        self.answer(call)
    }
}

fn name(link: &Link) -> &str {
    match link {
        Link::Id(name) | Link::Rid(name) => name,
    }
}

fn failed(status: u16, message: &str) -> Answer {
    Answer::Failed { status, message: message.to_owned() }
}

pub(crate) fn json(text: &str) -> Value {
    Value::from_json(text.as_bytes()).expect("it is JSON")
}

pub(crate) fn input(role: Role) -> Input {
    Input {
        role,
        self_link: SELF_LINK.to_owned(),
        alt_link: ALT_LINK.to_owned(),
        request: Message {
            body: None,
            headers: vec![("x-ms-version".to_owned(), "2020-07-15".to_owned())],
        },
        logging: true,
    }
}

pub(crate) fn procedure(arguments: &str) -> Input {
    let Value::Array(arguments) = json(arguments) else { panic!("{arguments} is no array") };
    input(Role::Procedure { arguments })
}

/// Runs a script to its end on one thread.
pub(crate) fn run_with(
    container: &mut Container,
    source: &str,
    input: Input,
    limits: Limits,
) -> Result<Outcome, ScriptError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime");
    let scripts = Scripts::new(1, limits);
    runtime.block_on(scripts.run(Arc::from(source), input, container))
}

pub(crate) fn run(
    container: &mut Container,
    source: &str,
    arguments: &str,
) -> Result<Outcome, ScriptError> {
    run_with(container, source, procedure(arguments), Limits::default())
}

/// The body of the response as JSON, or the error as its text.
pub(crate) fn response(container: &mut Container, source: &str, arguments: &str) -> String {
    match run(container, source, arguments) {
        Ok(outcome) => outcome.response.map_or("undefined".to_owned(), |body| body.to_json()),
        Err(ScriptError::Thrown(exception)) => {
            format!("{} ({:?})", exception.text, exception.number)
        }
        Err(error) => error.to_string(),
    }
}
