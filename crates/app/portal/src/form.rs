//! Forms: the fields that a browser sends with a change, read within limits.

use std::sync::{Mutex, PoisonError};

use lazuli_http::uri::Query;
use lazuli_http::{Body, BodyError};

/// The longest form, in bytes.
pub(crate) const FORM_BYTES_MAX: usize = 256 * 1024;

/// The field with the CSRF token of the session.
pub(crate) const CSRF_FIELD: &str = "csrf";

/// The fields of one form, decoded.
#[derive(Debug, Default)]
pub(crate) struct Form {
    fields: Vec<(String, String)>,
    /// Still coming in, so it can be taken once.
    file: Mutex<Option<File>>,
}

/// A file that a browser sends with a form.
#[derive(Debug)]
pub(crate) struct File {
    /// As the browser calls it; empty if none was chosen.
    pub(crate) name: String,
    pub(crate) content_type: String,
    pub(crate) body: Body,
}

impl Form {
    pub(crate) fn new(fields: Vec<(String, String)>, file: Option<File>) -> Self {
        Self { fields, file: Mutex::new(file) }
    }

    /// The file, if there is one that was not taken yet.
    pub(crate) fn take_file(&self) -> Option<File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Reads and discards a file that no page has taken, within limits, so that a browser that is still sending reads the
    /// answer.
    pub(crate) async fn discard_file(&self) {
        if let Some(mut file) = self.take_file() {
            file.body.discard().await;
        }
    }

    /// Reads a form of the type `application/x-www-form-urlencoded`.
    pub(crate) async fn read(body: Body) -> Result<Self, BodyError> {
        let bytes = body.collect(FORM_BYTES_MAX).await?;
        let text = std::str::from_utf8(&bytes).map_err(|_| BodyError::Broken)?;
        let fields = Query::parse(text).map_err(|_| BodyError::Broken)?;
        let owned = fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Self::new(owned.collect(), None))
    }

    /// The first field of this name; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }
}
