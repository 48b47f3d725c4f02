//! Where in the explorer a visitor is. Names of blobs and keys of entities are parameters of the query and not pieces of
//! the path, where browsers would take `..` for something else.

use lazuli_http::uri::percent_encode;

use crate::page::Part;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Index,
    Tables(String),
    Containers(String),
    Queues(String),
    /// Creates a table, a container or a queue of an account.
    Create(Kind, String),
    Table(TablePath, TablePage),
    Container(ContainerPath, ContainerPage),
    Queue(QueuePath, QueuePage),
}

/// What accounts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tables,
    Blobs,
    Queues,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Tables, Self::Blobs, Self::Queues];

    /// As paths have it, here and in the admin API.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::Blobs => "blobs",
            Self::Queues => "queues",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TablePath {
    pub(super) account: String,
    pub(super) table: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TablePage {
    Entities,
    Insert,
    Import,
    Export,
    Entity,
    /// Replaces, merges or deletes an entity.
    Change,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerPath {
    pub(super) account: String,
    pub(super) container: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContainerPage {
    List,
    Upload,
    Blob,
    Content,
    Image,
    Tags,
    Delete,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuePath {
    pub(super) account: String,
    pub(super) queue: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePage {
    Messages,
    Put,
    Clear,
}

impl Place {
    /// The place at these pieces of a path, behind `explorer`.
    pub(crate) fn parse(pieces: &[&str]) -> Option<Self> {
        let owned = |text: &str| text.to_owned();
        Some(match *pieces {
            [] => Self::Index,
            ["tables", account] => Self::Tables(owned(account)),
            ["blobs", account] => Self::Containers(owned(account)),
            ["queues", account] => Self::Queues(owned(account)),
            ["create", kind, account] => {
                let kind = Kind::ALL.into_iter().find(|known| known.word() == kind)?;
                Self::Create(kind, owned(account))
            }
            ["tables", account, table, ref rest @ ..] => {
                let path = TablePath { account: owned(account), table: owned(table) };
                Self::Table(path, TablePage::parse(rest)?)
            }
            ["blobs", account, container, ref rest @ ..] => {
                let path = ContainerPath { account: owned(account), container: owned(container) };
                Self::Container(path, ContainerPage::parse(rest)?)
            }
            ["queues", account, queue, ref rest @ ..] => {
                let path = QueuePath { account: owned(account), queue: owned(queue) };
                Self::Queue(path, QueuePage::parse(rest)?)
            }
            _ => return None,
        })
    }

    /// Whether what is sent there changes something.
    pub(crate) fn changes(&self) -> bool {
        match self {
            Self::Index | Self::Tables(_) | Self::Containers(_) | Self::Queues(_) => false,
            Self::Create(..) => true,
            Self::Table(_, page) => {
                matches!(page, TablePage::Insert | TablePage::Import | TablePage::Change)
            }
            Self::Container(_, page) => {
                matches!(page, ContainerPage::Upload | ContainerPage::Tags | ContainerPage::Delete)
            }
            Self::Queue(_, page) => matches!(page, QueuePage::Put | QueuePage::Clear),
        }
    }
}

impl TablePage {
    fn parse(rest: &[&str]) -> Option<Self> {
        Some(match rest {
            [] => Self::Entities,
            ["insert"] => Self::Insert,
            ["import"] => Self::Import,
            ["export"] => Self::Export,
            ["entity"] => Self::Entity,
            ["change"] => Self::Change,
            _ => return None,
        })
    }
}

impl ContainerPage {
    fn parse(rest: &[&str]) -> Option<Self> {
        Some(match rest {
            [] => Self::List,
            ["upload"] => Self::Upload,
            ["blob"] => Self::Blob,
            ["content"] => Self::Content,
            ["image"] => Self::Image,
            ["tags"] => Self::Tags,
            ["delete"] => Self::Delete,
            _ => return None,
        })
    }
}

impl QueuePage {
    fn parse(rest: &[&str]) -> Option<Self> {
        Some(match rest {
            [] => Self::Messages,
            ["put"] => Self::Put,
            ["clear"] => Self::Clear,
            _ => return None,
        })
    }
}

/// The path of these pieces in the explorer, with a query.
pub(super) fn link(pieces: &[&str], query: &[(&str, &str)]) -> String {
    let mut out = Part::Explorer.path().to_owned();
    for piece in pieces {
        out.push('/');
        out.push_str(&percent_encode(piece));
    }
    for (at, (name, value)) in query.iter().enumerate() {
        out.push(if at == 0 { '?' } else { '&' });
        out.push_str(name);
        out.push('=');
        out.push_str(&percent_encode(value));
    }
    out
}

impl TablePath {
    pub(super) fn link(&self, page: &[&str], query: &[(&str, &str)]) -> String {
        link(&[&["tables", &self.account, &self.table], page].concat(), query)
    }

    /// The pieces of the path in the admin API.
    pub(super) fn api<'a>(&'a self, page: &'a str) -> [&'a str; 6] {
        ["v1", "explorer", "tables", &self.account, &self.table, page]
    }
}

impl ContainerPath {
    pub(super) fn link(&self, page: &[&str], query: &[(&str, &str)]) -> String {
        link(&[&["blobs", &self.account, &self.container], page].concat(), query)
    }

    pub(super) fn api<'a>(&'a self, page: &'a str) -> [&'a str; 6] {
        ["v1", "explorer", "blobs", &self.account, &self.container, page]
    }
}

impl QueuePath {
    pub(super) fn link(&self, page: &[&str], query: &[(&str, &str)]) -> String {
        link(&[&["queues", &self.account, &self.queue], page].concat(), query)
    }

    pub(super) fn api(&self) -> [&str; 5] {
        ["v1", "explorer", "queues", &self.account, &self.queue]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_places_and_links_lead_back_to_them() {
        assert_eq!(Place::parse(&[]), Some(Place::Index));
        let create = Place::parse(&["create", "queues", "mine"]);
        assert_eq!(create, Some(Place::Create(Kind::Queues, "mine".to_owned())));
        assert_eq!(Place::parse(&["create", "cakes", "mine"]), None);
        let path = TablePath { account: "mine".to_owned(), table: "a/b".to_owned() };
        let entity = Place::Table(path.clone(), TablePage::Entity);
        assert_eq!(Place::parse(&["tables", "mine", "a/b", "entity"]), Some(entity));
        assert_eq!(
            path.link(&["entity"], &[("row_key", "<&>"), ("partition_key", "%2f..")]),
            "/portal/explorer/tables/mine/a%2Fb/entity?row_key=%3C%26%3E&partition_key=%252f.."
        );
        for wrong in
            [&["tables"][..], &["tables", "a", "b", "c"], &["x", "a"], &["blobs", "a", "b", "put"]]
        {
            assert_eq!(Place::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_changes_something_is_told_from_what_shows_it() {
        let changes = |pieces: &[&str]| Place::parse(pieces).map(|place| place.changes());
        assert_eq!(changes(&["blobs", "a", "b", "delete"]), Some(true));
        assert_eq!(changes(&["blobs", "a", "b", "content"]), Some(false));
        assert_eq!(changes(&["queues", "a", "b", "clear"]), Some(true));
        assert_eq!(changes(&["tables", "a", "b", "change"]), Some(true));
        assert_eq!(changes(&["tables", "a", "b", "entity"]), Some(false));
    }
}
