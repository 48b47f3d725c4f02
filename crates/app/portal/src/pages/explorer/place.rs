//! The pages of the explorer and their paths. Names of blobs and keys of entities are parameters of the query and not
//! pieces of the path, because browsers resolve `..` in paths.

use lazuli_http::uri::percent_encode;

use crate::page::Part;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExplorerPage {
    Index,
    /// The tables, containers or queues of an account.
    List(Kind, String),
    /// Creates a table, a container or a queue of an account.
    Create(Kind, String),
    Table(ItemPath, TablePage),
    Container(ItemPath, ContainerPage),
    Queue(ItemPath, QueuePage),
    Collection(ItemPath, CollectionPage),
    /// A text index, its search box and its analyzers.
    TextIndex(ItemPath),
}

/// What accounts have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tables,
    Blobs,
    Queues,
    Documents,
    Indexes,
}

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Tables, Self::Blobs, Self::Queues, Self::Documents, Self::Indexes];

    /// As paths have it, here and in the admin API.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::Blobs => "blobs",
            Self::Queues => "queues",
            Self::Documents => "documents",
            Self::Indexes => "indexes",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// A table, a container or a queue. The name of a container of documents is `DATABASE/CONTAINER`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemPath {
    kind: Kind,
    pub(super) account: String,
    pub(super) name: String,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePage {
    Messages,
    Put,
    Clear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectionPage {
    Items,
    Put,
    Item,
    /// Replaces or deletes an item.
    Change,
    Ranges,
    /// Changes the throughput.
    Throughput,
}

impl ExplorerPage {
    /// The page at these pieces of a path, behind `explorer`.
    pub(crate) fn parse(pieces: &[&str]) -> Option<Self> {
        Some(match *pieces {
            [] => Self::Index,
            [kind, account] => Self::List(Kind::parse(kind)?, account.to_owned()),
            ["create", kind, account] => Self::Create(Kind::parse(kind)?, account.to_owned()),
            [kind, account, name, ref rest @ ..] => {
                let kind = Kind::parse(kind)?;
                let path = ItemPath { kind, account: account.to_owned(), name: name.to_owned() };
                match kind {
                    Kind::Tables => Self::Table(path, TablePage::parse(rest)?),
                    Kind::Blobs => Self::Container(path, ContainerPage::parse(rest)?),
                    Kind::Queues => Self::Queue(path, QueuePage::parse(rest)?),
                    Kind::Documents => Self::Collection(path, CollectionPage::parse(rest)?),
                    Kind::Indexes => rest.is_empty().then_some(Self::TextIndex(path))?,
                }
            }
            _ => return None,
        })
    }

    /// Whether a request to it changes something.
    pub(crate) fn changes(&self) -> bool {
        match self {
            Self::Index | Self::List(..) | Self::TextIndex(_) => false,
            Self::Create(..) => true,
            Self::Table(_, page) => {
                matches!(page, TablePage::Insert | TablePage::Import | TablePage::Change)
            }
            Self::Container(_, page) => {
                matches!(page, ContainerPage::Upload | ContainerPage::Tags | ContainerPage::Delete)
            }
            Self::Queue(_, page) => matches!(page, QueuePage::Put | QueuePage::Clear),
            Self::Collection(_, page) => matches!(
                page,
                CollectionPage::Put | CollectionPage::Change | CollectionPage::Throughput
            ),
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

impl CollectionPage {
    fn parse(rest: &[&str]) -> Option<Self> {
        Some(match rest {
            [] => Self::Items,
            ["put"] => Self::Put,
            ["item"] => Self::Item,
            ["change"] => Self::Change,
            ["ranges"] => Self::Ranges,
            ["throughput"] => Self::Throughput,
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

impl ItemPath {
    pub(super) fn link(&self, page: &[&str], query: &[(&str, &str)]) -> String {
        link(&[&[self.kind.word(), &self.account, &self.name], page].concat(), query)
    }

    /// The list that it is in.
    pub(super) fn list(&self) -> (&str, String) {
        (self.account.as_str(), link(&[self.kind.word(), &self.account], &[]))
    }

    /// The pieces of its path in the admin API, with those of an operation.
    pub(super) fn api<'a>(&'a self, rest: &[&'a str]) -> Vec<&'a str> {
        [&["v1", "explorer", self.kind.word(), &self.account, &self.name], rest].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_places_and_links_lead_back_to_them() {
        assert_eq!(ExplorerPage::parse(&[]), Some(ExplorerPage::Index));
        let create = ExplorerPage::parse(&["create", "queues", "mine"]);
        assert_eq!(create, Some(ExplorerPage::Create(Kind::Queues, "mine".to_owned())));
        assert_eq!(ExplorerPage::parse(&["create", "cakes", "mine"]), None);
        let (kind, account, name) = (Kind::Tables, "mine".to_owned(), "a/b".to_owned());
        let path = ItemPath { kind, account, name };
        let entity = ExplorerPage::Table(path.clone(), TablePage::Entity);
        assert_eq!(ExplorerPage::parse(&["tables", "mine", "a/b", "entity"]), Some(entity));
        assert_eq!(
            path.link(&["entity"], &[("row_key", "<&>"), ("partition_key", "%2f..")]),
            "/portal/explorer/tables/mine/a%2Fb/entity?row_key=%3C%26%3E&partition_key=%252f.."
        );
        for wrong in
            [&["tables"][..], &["tables", "a", "b", "c"], &["x", "a"], &["blobs", "a", "b", "put"]]
        {
            assert_eq!(ExplorerPage::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_changes_something_is_told_from_what_shows_it() {
        let changes = |pieces: &[&str]| ExplorerPage::parse(pieces).map(|place| place.changes());
        assert_eq!(changes(&["blobs", "a", "b", "delete"]), Some(true));
        assert_eq!(changes(&["blobs", "a", "b", "content"]), Some(false));
        assert_eq!(changes(&["queues", "a", "b", "clear"]), Some(true));
        assert_eq!(changes(&["tables", "a", "b", "change"]), Some(true));
        assert_eq!(changes(&["tables", "a", "b", "entity"]), Some(false));
    }
}
