//! The audit log: every change through the admin API is logged before it begins and again when it ends.
//!
//! One line of JSON for each, on disk before the change begins. A change that cannot be written down is not made. What
//! stands in a line is chosen by the table of routes: names and numbers, never a key, a token, or what users stored.

mod files;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use lazuli_azure::auth::sas::without_signature;
use serde_json::{Map, Value, json};

use crate::failure::Result;
use files::Files;

/// The longest text of a line that comes from outside; longer ones are cut.
const TEXT_BYTES_MAX: usize = 1024;
/// The most fields of a request that one line shows.
const FIELDS_MAX: usize = 32;

pub(crate) struct Audit(Arc<Mutex<Files>>);

/// By which way a change was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Via {
    /// With the token, by a command or any other program.
    Api,
    /// By a page of the portal, in a session that began with the token.
    Portal,
}

impl Via {
    fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Portal => "portal",
        }
    }
}

/// A change that is asked for.
pub(crate) struct Change {
    pub(crate) received_ms: u64,
    pub(crate) via: Via,
    pub(crate) operation: &'static str,
    /// The path as it was sent: it names what is changed.
    pub(crate) path: String,
    /// The parameters of the query, and what the route's row says may be shown of the body.
    pub(crate) parameters: Map<String, Value>,
}

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended<'a> {
    pub(crate) status: u16,
    /// Why it was refused or failed, if it was.
    pub(crate) code: Option<&'a str>,
}

impl Audit {
    /// The log of a data folder.
    pub(crate) fn open(data: &Path) -> Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Files::open(&data.join("audit"))?))))
    }

    /// Writes a change down. It may be made once this has returned.
    pub(crate) async fn begin(&self, change: Change) -> Result<Begun> {
        let mut line = Map::new();
        line.insert("time_ms".to_owned(), json!(change.received_ms));
        line.insert("via".to_owned(), json!(change.via.name()));
        line.insert("operation".to_owned(), json!(change.operation));
        line.insert("path".to_owned(), json!(cut(&change.path)));
        let shown = change.parameters.into_iter().take(FIELDS_MAX).map(|(name, value)| {
            let value = match value {
                Value::String(text) => json!(without_signature(&text)),
                other => other,
            };
            let text = value.to_string();
            let value = if text.len() > TEXT_BYTES_MAX { json!(cut(&text)) } else { value };
            (cut(&name), value)
        });
        line.insert("parameters".to_owned(), Value::Object(shown.collect()));
        let (files, mut first) = (self.0.clone(), line.clone());
        first.insert("outcome".to_owned(), json!("begun"));
        let number = blocking(move || lock(&files).append(None, first)).await?;
        let (files, began) = (self.0.clone(), Instant::now());
        Ok(Begun { files, number, line: Some(line), began })
    }

    /// A page of changes, the newest first, each as it ended: those with numbers below `before`. `next` is the `before` of
    /// the next page.
    pub(crate) async fn page(&self, before: Option<u64>, most: usize) -> Result<Value> {
        let files = self.0.clone();
        let (changes, more) = blocking(move || lock(&files).newest(before, most)).await?;
        let next = changes.last().filter(|_| more).map(|change| change["number"].clone());
        Ok(json!({ "changes": changes, "next": next }))
    }
}

/// A logged change that has not ended. If it is dropped before its end it is logged as abandoned: the client has
/// disconnected, or the request has timed out.
pub(crate) struct Begun {
    files: Arc<Mutex<Files>>,
    number: u64,
    line: Option<Map<String, Value>>,
    began: Instant,
}

impl Begun {
    /// Writes down how the change ended. If that fails the log keeps the change as begun, and the server says so.
    pub(crate) async fn end(mut self, ended: Ended<'_>) {
        let outcome = match ended.status {
            ..400 => "done",
            400..500 => "refused",
            _ => "failed",
        };
        let Some(mut line) = self.last_line(outcome) else { return };
        line.insert("status".to_owned(), json!(ended.status));
        line.insert("code".to_owned(), json!(ended.code));
        let (files, number) = (self.files.clone(), self.number);
        let written = blocking(move || lock(&files).append(Some(number), line)).await;
        if let Err(error) = written {
            tracing::error!(number, %error, "the end of a change is not in the audit log");
        }
    }

    fn last_line(&mut self, outcome: &str) -> Option<Map<String, Value>> {
        let mut line = self.line.take()?;
        line.insert("outcome".to_owned(), json!(outcome));
        let took = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        line.insert("took_ms".to_owned(), json!(took));
        Some(line)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let Some(line) = self.last_line("abandoned") else { return };
        if let Err(error) = lock(&self.files).append(Some(self.number), line) {
            let number = self.number;
            tracing::error!(number, %error, "the end of a change is not in the audit log");
        }
    }
}

/// The beginning of a text, as much of it as a line shows.
fn cut(text: &str) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=TEXT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", &text[..end])
}

fn lock(files: &Mutex<Files>) -> std::sync::MutexGuard<'_, Files> {
    // What a panic could leave half done is a line, and the next one begins on its own.
    files.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs disk access on a thread where it blocks no other task.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(files::failure(format!("the audit log failed: {error}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(operation: &'static str, parameters: Value) -> Change {
        Change {
            received_ms: 7,
            via: Via::Portal,
            operation,
            path: "/v1/shards/a".to_owned(),
            parameters: parameters.as_object().unwrap().clone(),
        }
    }

    #[tokio::test]
    async fn changes_are_listed_newest_first_as_they_ended_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let audit = Audit::open(folder.path()).unwrap();
        let add = audit.begin(change("add-shard", json!({ "region": "x" }))).await.unwrap();
        add.end(Ended { status: 200, code: None }).await;
        let remove = audit.begin(change("remove-shard", json!({}))).await.unwrap();
        remove.end(Ended { status: 409, code: Some("shard-not-empty") }).await;
        drop(audit.begin(change("fsck", json!({}))).await.unwrap());
        // Neither an end nor a drop: as if the process had died.
        std::mem::forget(audit.begin(change("drain-shard", json!({}))).await.unwrap());
        let audit = Audit::open(folder.path()).unwrap();
        let page = audit.page(None, 3).await.unwrap();
        let seen = |page: &Value| -> Vec<String> {
            let one = |change: &Value| format!("{} {}", change["operation"], change["outcome"]);
            page["changes"].as_array().unwrap().iter().map(one).collect()
        };
        assert_eq!(
            seen(&page),
            [r#""drain-shard" "begun""#, r#""fsck" "abandoned""#, r#""remove-shard" "refused""#]
        );
        assert_eq!(page["changes"][2]["code"], "shard-not-empty");
        let rest = audit.page(page["next"].as_u64(), 3).await.unwrap();
        assert_eq!(seen(&rest), [r#""add-shard" "done""#]);
        assert_eq!(rest["next"], Value::Null);
        let first = &rest["changes"][0];
        assert_eq!((&first["via"], &first["time_ms"]), (&json!("portal"), &json!(7)));
        assert_eq!(first["parameters"], json!({ "region": "x" }));
        let again = audit.begin(change("fsck", json!({}))).await.unwrap();
        assert_eq!(again.number, 5);
    }

    #[tokio::test]
    async fn signatures_in_addresses_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let audit = Audit::open(folder.path()).unwrap();
        let parameters = json!({ "source": "http://a/b?sp=r&sig=hush&se=x", "count": 1 });
        drop(audit.begin(change("restore", parameters)).await.unwrap());
        let page = audit.page(None, 1).await.unwrap();
        let expected = json!({ "source": "http://a/b?sp=r&sig=XXXXX&se=x", "count": 1 });
        assert_eq!(page["changes"][0]["parameters"], expected);
    }

    #[tokio::test]
    async fn long_texts_and_many_fields_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let audit = Audit::open(folder.path()).unwrap();
        let many: Map<String, Value> =
            (0..1000).map(|n| (format!("f{n}"), json!("ü".repeat(10_000)))).collect();
        let begun = audit.begin(change("x", Value::Object(many))).await.unwrap();
        begun.end(Ended { status: 200, code: None }).await;
        let page = audit.page(None, 1).await.unwrap();
        let shown = page["changes"][0]["parameters"].as_object().unwrap();
        assert_eq!(shown.len(), FIELDS_MAX);
        assert!(page.to_string().len() < 2 * FIELDS_MAX * TEXT_BYTES_MAX);
    }
}
