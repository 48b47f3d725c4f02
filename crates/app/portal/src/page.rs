//! The input and output of a page: a visit with its session and its form, and what the visitor sees next.

use lazuli_http::uri::Query;
use lazuli_http::{Response, StatusCode};
use maud::Markup;

use crate::api::{Api, Refused};
use crate::form::{CSRF_FIELD, Form};
use crate::session::{Notice, Session};

/// One request of a logged-in visitor.
pub(crate) struct Visit<'a> {
    pub(crate) api: &'a Api,
    pub(crate) session: &'a Session,
    pub(crate) query: Query<'a>,
    /// Empty unless the visitor changes something; then it carried the CSRF token of the session.
    pub(crate) form: Form,
}

impl Visit<'_> {
    /// Whether the form is one of this session.
    pub(crate) fn is_vouched(&self) -> bool {
        self.session.vouches_for(self.form.get(CSRF_FIELD))
    }
}

/// The parts of the portal, as its navigation lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Overview,
    Services,
    Shards,
    Containers,
    Explorer,
    Messaging,
    Sql,
    Jobs,
    Rebalance,
    Backups,
    Accounts,
    Audit,
    Advice,
    Settings,
}

impl Part {
    pub(crate) const ALL: &[Self] = &[
        Self::Overview,
        Self::Services,
        Self::Shards,
        Self::Containers,
        Self::Explorer,
        Self::Messaging,
        Self::Sql,
        Self::Jobs,
        Self::Rebalance,
        Self::Backups,
        Self::Accounts,
        Self::Audit,
        Self::Advice,
        Self::Settings,
    ];

    /// Its title, and its path.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Overview => ("Overview", "/portal/"),
            Self::Services => ("Services", "/portal/services"),
            Self::Shards => ("Shards", "/portal/shards"),
            Self::Containers => ("Containers", "/portal/containers"),
            Self::Explorer => ("Explorer", "/portal/explorer"),
            Self::Messaging => ("Messaging", "/portal/messaging"),
            Self::Sql => ("Sharded SQL", "/portal/sql"),
            Self::Jobs => ("Jobs", "/portal/jobs"),
            Self::Rebalance => ("Rebalance", "/portal/rebalance"),
            Self::Backups => ("Backups", "/portal/backups"),
            Self::Accounts => ("Accounts", "/portal/accounts"),
            Self::Audit => ("Audit log", "/portal/audit"),
            Self::Advice => ("Advice", "/portal/advice"),
            Self::Settings => ("Settings", "/portal/settings"),
        }
    }

    pub(crate) fn title(self) -> &'static str {
        self.words().0
    }

    pub(crate) fn path(self) -> &'static str {
        self.words().1
    }
}

pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) part: Part,
    pub(crate) body: Markup,
}

/// The answer to a visit.
pub(crate) enum Outcome {
    Page(Page),
    /// A redirect to another page, which shows the notice.
    Moved {
        to: String,
        notice: Notice,
    },
    /// Stored bytes to download, not a page.
    File(Response),
}

impl Outcome {
    pub(crate) fn page(title: impl Into<String>, part: Part, body: Markup) -> Result {
        Ok(Self::Page(Page { title: title.into(), part, body }))
    }

    pub(crate) fn done(to: impl Into<String>, text: impl Into<String>) -> Result {
        Ok(Self::Moved { to: to.into(), notice: Notice { text: text.into(), good: true } })
    }
}

/// Why a page cannot be shown, or a change was not made.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), hint: None }
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        let Refused { status, message, hint } = refused;
        Self { status, message, hint }
    }
}

pub(crate) type Result<T = Outcome> = std::result::Result<T, Fault>;
